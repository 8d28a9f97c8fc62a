"""What stands behind a live chat, on demand: what the model was shown and replied, and what it withheld. HTML, no widgets."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from anthrolab.files import whole_lines
from anthrolab.live.chat import LiveChat
from anthrolab.live.opening import OpenChat
from anthrolab.models.client import REPLY_FIELDS, Reply
from anthrolab.runtime.policy import Answer
from anthrolab.show.unsent import STILL_UNSENT, Unsent, unsent_drafts


@dataclass(frozen=True)
class Call:
    """A model call: what it was shown, as (role, text), with which parameters, and what it replied."""

    shown: Sequence[tuple[str, str]]
    params: Mapping[str, Any]
    reply: Reply


def call_of(opened: OpenChat, key: str) -> Call | None:
    """A call by its id: of this session out of memory, of an earlier one out of the saved log; None where neither has it."""
    found = opened.heard.calls.get(key)
    if found is not None:
        request, reply = found
        return Call(_shown(request.messages, request.prompt), request.params, reply)
    log = opened.folder / "calls" / f"{opened.name}.jsonl" if opened.folder else None
    for line in whole_lines(log) if log is not None and log.exists() else ():
        if f'"{key}"' in line:
            row = json.loads(line)
            reply = Reply(**{field: row["reply"].get(field) for field in REPLY_FIELDS}, call=key)
            return Call(_shown(row.get("messages"), row.get("prompt")), row["params"], reply)
    return None


def asks_listed(chat: LiveChat) -> list[tuple[str, int]]:
    """Every answered ask: a label, and the position (from 0) of the message after which it was."""
    seat, messages = chat.setting.seat, chat.state.messages
    return [
        (f"after message {i + 1}, {seat.clock(messages[i].at_s):%H:%M:%S}, {seat.name_of(messages[i].speaker)}: {short(messages[i].content)}", i)
        for i in range(len(chat.state.answers))
    ]


def shown_html(opened: OpenChat, position: int) -> str:
    """The request of one ask, word for word, the raw reply, and what was read out of it."""
    chat = opened.chat
    if not 0 <= position < len(chat.state.answers):
        return '<p class="quiet">The model has not been asked yet.</p>'
    answer = chat.state.answers[position]
    read = Markup("<h4>Read out of it</h4><p>{}</p>").format(_read(chat, answer, chat.state.messages[position].at_s))
    call = call_of(opened, answer.call) if answer.call is not None else None
    if call is None:
        return str(Markup('<p class="quiet">The call behind this answer is not on record.</p>{}').format(read))
    parts = [Markup("<h4>{}</h4><pre>{}</pre>").format(role, text) for role, text in call.shown]
    parts.append(Markup("<details><summary>parameters</summary><pre>{}</pre></details>").format(json.dumps(call.params, ensure_ascii=False, indent=1)))
    parts.append(Markup("<h4>Raw reply</h4><pre>{}</pre>").format(call.reply.text))
    if call.reply.reasoning:
        parts.append(Markup("<h4>Reasoning, which never reaches the chat</h4><pre>{}</pre>").format(call.reply.reasoning))
    return str(Markup("").join([*parts, read]))


def withheld_html(chat: LiveChat) -> str:
    """The unsent draft of this moment with its time, every draft that was not sent as it stood, and the silences."""
    dialogue, name, seat = chat.dialogue(), chat.setting.seat.name, chat.setting.seat
    drafts = [u for u in unsent_drafts(dialogue) if u.speaker == chat.persona and (u.fate != STILL_UNSENT or chat.phase == "over")]
    parts = []
    if chat.draft is not None and chat.phase != "over":
        parts.append(
            Markup('<p>Unsent at this moment: <span class="draft">{}</span>, due at {:%H:%M:%S}.</p>').format(
                chat.draft.content, seat.clock(chat.draft.due_s)
            )
        )
    if drafts:
        parts.append(Markup("<ul>{}</ul>").format(Markup("").join(map(_draft, drafts))))
    else:
        parts.append(Markup('<p class="quiet">{} has sent every earlier draft as it stood.</p>').format(name))
    asks = dialogue.asks or []
    broken = sum(a.error is not None for a in asks)
    silent = sum(a.decision is not None and (a.decision.end or not a.decision.content.strip()) for a in asks)
    parts.append(
        Markup('<p class="quiet">Asked {} times: decided {} times to send nothing; {} replies broke the contract, which counts as no decision.</p>').format(
            len(asks), silent, broken
        )
    )
    return str(Markup("").join(parts))


def short(text: str, most: int = 18) -> str:
    """A message in a list: on one line and not long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _draft(draft: Unsent) -> Markup:
    became = Markup(' by <span class="draft">{}</span>').format(draft.became) if draft.became else ""
    return Markup('<li>{:%H:%M:%S}, {}: <span class="draft">{}</span> {}{}</li>').format(
        draft.at, f"after message {draft.after + 1}" if draft.after >= 0 else "at the beginning", draft.content, draft.fate, became
    )


def _read(chat: LiveChat, answer: Answer, at_s: int) -> str:
    plan = answer.plan
    if plan is None:
        return f"The reply broke the contract ({answer.error}), so nothing was decided."
    bent = f" The reply was bent and read all the same: {answer.recovered}." if answer.recovered else ""
    if plan.silent:
        return f"To send nothing.{bent}"
    return f"To send “{plan.content}” {plan.delay_s} s later, at {chat.setting.seat.clock(at_s + plan.delay_s):%H:%M:%S}.{bent}"


def _shown(messages: Sequence[Mapping[str, str]] | None, prompt: str | None) -> list[tuple[str, str]]:
    return [("Prompt", prompt or "")] if messages is None else [(m["role"].capitalize(), m["content"]) for m in messages]
