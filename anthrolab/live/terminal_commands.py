"""What a person does in the terminal chat: messages, and commands that begin with /."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from anthrolab.errors import AnthrolabError
from anthrolab.live.context import Fact, Kind, corrected, without
from anthrolab.live.opening import OpenChat
from anthrolab.live.scene import ChatError
from anthrolab.live.terminal_text import END, GO_ON, HELP, call_text, context_text, drafts_text, visible
from anthrolab.show.chat_panel import call_of

KINDS: tuple[str, ...] = (*get_args(Fact), *(kind for kind in get_args(Kind) if isinstance(kind, str) and kind not in get_args(Fact)))
"""What /tell can set."""


@dataclass
class Talk:
    """The person's side of an open chat. `show` prints lines, `leave` ends the program.

    `kept`: lines that could not go out while the chat stood still; they come back into the input once it goes on.
    """

    opened: OpenChat
    show: Callable[[str], None]
    leave: Callable[[], None]
    kept: list[str] = field(default_factory=list)
    printed: int = 0

    def typed(self, line: str) -> bool:
        """One line of input. False for a message that stays in the input: it could not be sent, and `show` said why."""
        is_command = line.startswith("/") and not line.startswith("//")
        try:
            if self.opened.chat.phase == "held":
                self._answer_notice(line)
            elif is_command:
                self.show(f"> {visible(line)}")
                self._command(line)
            elif line.strip():
                self._say(line.removeprefix("/") if line.startswith("//") else line)
        except AnthrolabError as e:
            self.show(f"error: {visible(str(e))}")
            return is_command
        return True

    def _say(self, text: str) -> None:
        if not _is_text(text):
            raise ChatError("the terminal sent bytes that are not UTF-8; set it to UTF-8 and type the message again")
        way_on = {"paused": "/go", "trouble": "/go", "over": "/back N"}.get(self.opened.chat.phase)
        if way_on is not None:
            self.kept.append(text)
            self.show(f"The chat stands still: what you typed is kept and comes back after {way_on}.")
            return
        self.opened.chat.say(text)

    def _answer_notice(self, line: str) -> None:
        """While a notice is up nothing but its answer is taken."""
        answer = line.strip().lower()
        if answer in GO_ON:
            self.opened.chat.go_on()
        elif answer in END:
            self._command("/end")
        elif answer.partition(" ")[0] in ("/shown", "/draft", "/context", "/help"):
            self._command(answer)
        else:
            if answer:
                self.kept.append(line)
            self.show("Nothing was sent" + (" (what you typed is kept)" if answer else "") + ". Type: go on (继续), or: end (结束)")

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        rest, chat = rest.strip(), self.opened.chat
        match name:
            case "/pause":
                chat.pause()
            case "/go":
                chat.go_on()
            case "/speed":
                self._speed(rest)
            case "/back":
                self._back(rest)
            case "/draft":
                self.show(drafts_text(chat))
            case "/shown":
                self.show(self._shown(rest))
            case "/context":
                self.show(context_text(chat.state.context, chat.parts.analyser is not None, chat.state.analyses))
            case "/forget":
                self._forget(rest)
            case "/tell":
                self._tell(rest)
            case "/end":
                self.leave()
                chat.leave()
            case "/help":
                self.show(HELP)
            case _:
                raise ChatError(f"{name}: is no command; /help lists them, and a message that begins with / is written //")

    def _speed(self, rest: str) -> None:
        try:
            self.opened.chat.set_speed(float(rest))
        except ValueError:
            raise ChatError(f"/speed {rest}: give a number above 0, such as /speed 10") from None

    def _back(self, rest: str) -> None:
        chat = self.opened.chat
        number = _number("/back", rest, len(chat.state.messages), "message")
        waiting = [typed.content for typed in chat.state.typed]
        chat.rewind(number - 1)
        self.kept += waiting
        self.printed = number
        self.show(f"-- back at [{number}]; what came after it is taken back --")

    def _shown(self, rest: str) -> str:
        answers = self.opened.chat.state.answers
        number = _number("/shown", rest, len(answers), "answered message") if rest else len(answers)
        if not number:
            raise ChatError("/shown: the model was not asked yet")
        answer = answers[number - 1]
        broken = f"\nthe reply broke the contract: {visible(answer.error)}" if answer.error else ""
        call = call_of(self.opened, answer.call) if answer.call else None
        if call is None:
            raise ChatError(f"/shown: the call behind the answer to [{number}] is not on record")
        return f"after [{number}]:\n{call_text(call)}{broken}"

    def _forget(self, rest: str) -> None:
        chat = self.opened.chat
        entries = chat.state.context.entries
        entry = entries[_number("/forget", rest, len(entries), "entry of /context") - 1]
        chat.correct(without(chat.state.context, entry))
        self.show(f"taken away: {entry.kind}")

    def _tell(self, rest: str) -> None:
        kind, _, value = rest.partition(" ")
        if kind not in KINDS or not value.strip():
            raise ChatError(f"/tell {kind}: give a kind and a value, such as /tell city 成都; kinds: {', '.join(KINDS)}")
        if not _is_text(value):
            raise ChatError("/tell: the terminal sent bytes that are not UTF-8; set it to UTF-8")
        try:
            self.opened.chat.correct(corrected(self.opened.chat.state.context, kind, value))  # type: ignore[arg-type]
        except ValueError as e:
            raise ChatError(f"/tell {e}") from e
        self.show(f"set by hand: {kind}")


def _number(command: str, text: str, most: int, what: str) -> int:
    """A number from 1 to `most`."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= most:
        there = f"1 to {most}" if most else f"there is no {what} yet"
        raise ChatError(f"{command} {text}: give the number of an {what}, {there}".replace("an message", "a message"))
    return int(text)


def _is_text(text: str) -> bool:
    """False for bytes that the terminal sent in another encoding."""
    return all(not "\ud800" <= c <= "\udfff" for c in text)
