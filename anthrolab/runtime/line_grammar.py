"""What a transcript line may look like: a time from now to the longest delay, one of two names, one line of text.

The same rule in three forms: a GBNF grammar (llama.cpp), a regular expression (vLLM), and a parser.
Only the minutes that lie ahead are offered; without that a small model's clock runs away (24:19:31).
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

MAX_CHARS = 60
"""The longest message a line may hold, in characters."""

LINE = re.compile(r"^(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\] (?P<rest>.*)$", re.DOTALL)


@dataclass(frozen=True)
class LineRule:
    """The rule for the next line: who writes, who the partner is, and the window of time."""

    name: str
    partner: str
    now: datetime
    max_delay_s: int

    def minutes(self) -> list[tuple[str, int]]:
        """`HH:MM:` prefixes from now to the longest delay, each with its first allowed second."""
        last = (self.now + timedelta(seconds=self.max_delay_s)).replace(second=0)
        minute = self.now.replace(second=0)
        found: list[tuple[str, int]] = []
        while minute <= last:
            found.append((f"{minute:%H:%M}:", self.now.second if not found else 0))
            minute += timedelta(minutes=1)
        return found

    def clock(self) -> str:
        """What every allowed time begins with, e.g. `20:3`. It goes into the prompt: no need to have it sampled."""
        first, last = self.minutes()[0][0], self.minutes()[-1][0]
        same = next((i for i, (x, y) in enumerate(zip(first, last, strict=True)) if x != y), len(first))
        return first[:same]

    def gbnf(self) -> str:
        """The rule as a llama.cpp grammar for what follows `clock()`."""
        known = len(self.clock())
        times = " | ".join(f"{_quoted(p[known:])} {_seconds(first, gbnf=True)}" for p, first in self.minutes())
        return (
            f'root ::= ({times}) "] " ({_quoted(self.name + ": ")} text "\\n" | {_quoted(self.partner + ":")})\n'
            f"text ::= [^\\n\\r]{{1,{MAX_CHARS}}}\n"
        )

    def regex(self) -> str:
        """The rule as a regular expression for what follows `clock()`."""
        known = len(self.clock())
        times = "|".join(f"{p[known:]}{_seconds(first, gbnf=False)}" for p, first in self.minutes())
        return (
            rf"({times})\] ({re.escape(self.name)}: [^\n\r]{{1,{MAX_CHARS}}}\n|{re.escape(self.partner)}:)"
        )

    def parse(self, text: str) -> tuple[int, str | None]:
        """Delay in seconds and message (None: the line is the partner's, which is silence) of `clock()` + reply.

        A delay below 0 or above `max_delay_s` is what a server without a grammar lets pass; the scheduler clips it.

        ValueError says what is wrong with the line.
        """
        match = LINE.match(text)
        if match is None:
            raise ValueError(f"the line does not begin with a time: {text!r:.60}")
        try:
            at = self.now.replace(hour=int(match["h"]), minute=int(match["m"]), second=int(match["s"]))
        except ValueError:
            raise ValueError(f"{match['h']}:{match['m']}:{match['s']} is no time of day") from None
        delay = int((at - self.now).total_seconds())
        if delay < 0 and delay + 86400 <= self.max_delay_s:
            delay += 86400  # past midnight; any other earlier time is a time that has passed
        rest = match["rest"]
        if rest.startswith(f"{self.name}:"):
            return delay, rest[len(self.name) + 1 :].split("\n")[0].strip()
        if rest.startswith(f"{self.partner}:"):
            return delay, None
        raise ValueError(f"the line is neither {self.name}'s nor {self.partner}'s: {rest!r:.60}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _seconds(first: int, gbnf: bool) -> str:
    """Two digits from `first` to 59."""
    tens, ones = divmod(first, 10)
    space = " " if gbnf else ""
    tail = f"[{tens}]{space}[{ones}-9]" if ones else f"[{tens}]{space}[0-9]"
    higher = f"[{tens + 1}-5]{space}[0-9]" if tens < 5 else ""
    return f"({tail}{f' | {higher}' if gbnf else f'|{higher}'})" if higher else f"({tail})"
