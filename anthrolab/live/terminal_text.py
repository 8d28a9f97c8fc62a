"""What the terminal chat prints, as plain lines: pure, and nothing in them can steer the terminal."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from anthrolab.live.chat import LiveChat
from anthrolab.live.context import Context
from anthrolab.live.events import ContextSet
from anthrolab.live.view import Line, View
from anthrolab.show.chat_panel import Call
from anthrolab.show.unsent import STILL_UNSENT, unsent_drafts

_KEPT = "\u200d\u3000\u00a0"
"""Not printable for Python and harmless: the joiner inside emoji, and wide and unbroken blanks."""

GO_ON = ("go on", "go", "/go", "continue", "继续", "继续聊", "接着聊")
END = ("end", "/end", "stop", "quit", "结束", "不聊了", "停")

HELP = """\
Enter sends what is typed. //text sends a message that begins with /.
  /pause            time stands still
  /go               time goes on; after an error the model is asked again
  /speed N          N times real time
  /back N           takes back all after message N, which is answered anew
  /draft            what is unsent now, and what was withheld so far
  /shown [N]        what the model was shown after message N, and its raw reply
  /context          what is taken to be known of you, with the evidence
  /tell KIND VALUE  sets something that is known of you by hand
  /forget N         takes entry N of /context away for good
  /end              ends the chat
Ctrl-C pauses. Ctrl-D leaves without ending: a saved chat can be gone on with."""


def visible(text: str) -> str:
    """The text with every character spelled out that would act on a terminal or cannot be seen, line ends but for \\n included.

    >>> visible("a\\x1b[2J")
    'a\\\\u001b[2J'
    """
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n").expandtabs(4)
    return "".join(c if c.isprintable() or c == "\n" or c in _KEPT else f"\\u{ord(c):04x}" for c in text)


def message_text(line: Line) -> str:
    """A message: number, time, name, text. Its further lines stand under the first."""
    head = f"[{(line.index or 0) + 1}] {line.at:%H:%M:%S} {visible(line.name)}: "
    return head + visible(line.text).replace("\n", "\n    ")


def waiting_text(view: View) -> str:
    """The person's messages that are not out yet, each with a line end."""
    return "".join(f"waits to go out: {visible(line.text)}\n" for line in view.lines if line.index is None)


def framed(text: str, columns: int) -> str:
    """A notice in a frame, apart from the chat; folded to the columns of the terminal."""
    width = max(10, min(columns, 80) - 4)
    rows = [row for line in visible(text).split("\n") for row in folded(line, width)]
    rule = "+" + "-" * (width + 2) + "+"
    inside = [f"| {row}{' ' * (width - cells(row))} |" for row in rows]
    return "\n".join(["", rule, *inside, rule, ""])


def folded(text: str, columns: int) -> list[str]:
    """The text in rows of at most so many cells (at least 2); a Chinese character takes two. Words of ASCII stay whole where
    they fit into a row."""
    rows = [""]
    for piece in re.findall(r"[!-~]+|.", text):
        if cells(rows[-1] + piece) > columns:
            rows = [*rows[:-1], rows[-1].rstrip(), ""] if rows[-1] else rows
            while cells(piece) > columns:
                rows, piece = [*rows[:-1], piece[:columns], ""], piece[columns:]
            piece = piece.lstrip(" ")
        rows[-1] += piece
    return rows


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    from prompt_toolkit.utils import get_cwidth

    return get_cwidth(text)


def toolbar_text(view: View, speed: float, columns: int) -> str:
    """What stands under the input all the time: that this is an AI, the virtual time, what the persona is seen doing."""
    mine = [line for line in view.lines if line.mine and line.index is not None]
    seen = "对方正在输入…" if view.typing else "已读" if mine and mine[-1].read else ""
    parts = [f"{view.now:%Y-%m-%d %H:%M:%S}", "" if speed == 1 else f"x{speed:g}", seen, view.status, "/help"]
    rows = [*folded(visible(view.header), columns), *folded("  ".join(part for part in parts if part), columns)]
    return "\n".join(rows)


def drafts_text(chat: LiveChat) -> str:
    """What the persona has unsent now, and every draft that did not go out as it stood."""
    lines = ["nothing is unsent now"]
    over = chat.phase == "over"
    if chat.draft is not None and not over:
        lines = [f"unsent now, due at {chat.setting.seat.clock(chat.draft.due_s):%H:%M:%S}: {visible(chat.draft.content)}"]
    for unsent in unsent_drafts(chat.dialogue()):
        if unsent.speaker == chat.persona and (over or unsent.fate != STILL_UNSENT):
            became = f" -> {visible(unsent.became)}" if unsent.became else ""
            lines.append(f"after [{unsent.after + 1}] {unsent.at:%H:%M:%S} {unsent.fate}: {visible(unsent.content)}{became}")
    return "\n".join(lines)


def call_text(call: Call) -> str:
    """What a model was shown and what it replied, word for word."""
    lines = [line for role, text in call.shown for line in (f"--- shown ({role})", visible(text))]
    if call.reply.reasoning:
        lines += ["--- thought", visible(call.reply.reasoning)]
    return "\n".join([*lines, "--- replied", visible(call.reply.text), "---"])


def context_text(context: Context, analysed: bool, analyses: Sequence[ContextSet] = ()) -> str:
    """What is taken to be known, with its evidence, and what the analyser made of the latest messages; numbers are those of /forget."""
    lines = []
    for number, entry in enumerate(context.entries, 1):
        evidence = "set by hand" if entry.by == "hand" else f"from [{(entry.message or 0) + 1}]: “{visible(entry.quote)}”"
        lines.append(f"{number}. {entry.kind}: {visible(entry.value)} ({evidence})")
    if not lines:
        lines = ["nothing is taken to be known of you"]
    if analyses:
        last = analyses[-1]
        lines += [f"refused: {r.kind}: {visible(r.value)} ({r.reason})" for r in last.refused if r.reason != "known already"]
        lines += [f"the analyser failed: {visible(last.error)}"] if last.error else []
    if not analysed:
        lines.append("no analyser reads the chat (--analyser SYSTEM); /tell KIND VALUE sets something by hand")
    return "\n".join(lines)


def farewell(folder: Path | None, chat: str, messages: int, over: bool) -> str:
    """What is said at the end: where the chat is, how to go on with it, how to judge it."""
    if folder is None:
        return "Nothing was saved; --save FOLDER keeps a chat."
    if not messages:
        return "Nothing was said, so there is nothing to keep."
    where = shlex.quote(str(folder))
    lines = [f"Saved in {where} as {chat}."]
    if not over:
        lines.append(f"Go on with it: the same command with --chat {chat}")
    lines.append(f"Judge it: anthrolab judge {where}")
    return "\n".join(lines)
