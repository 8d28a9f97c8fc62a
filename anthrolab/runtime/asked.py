"""The prompts of a finished dialogue again: what each speaker was shown at each ask (paper section 4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anthrolab.runtime.dialogue import Ask, Dialogue, Speaker, Summary
from anthrolab.runtime.history import History, Notes, Said
from anthrolab.runtime.prompt import chat_snapshot, chat_system
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.session import replay
from anthrolab.runtime.summary_rules import RulesSummariser
from anthrolab.sync import run_async

Past = Literal["rules", "none", "logged"]
"""Where the summaries of older messages come from: made by the rules, none, or those of the record (made by a model)."""


@dataclass(frozen=True)
class AskedPrompt:
    """The two messages of one ask as they were first sent: `system` is z, `user` the snapshot.

    `index` is the ask's position (from 0) in the dialogue's asks, and `ask` that record; `folded`: how many messages stood
    in the summary only.
    """

    index: int
    ask: Ask
    system: str
    user: str
    folded: int = 0


class _Logged:
    """A summariser for a past that stands in the record already."""

    async def note(self, known: Summary | None, said: Sequence[Said]) -> Notes:
        raise ValueError(f"the record lacks the summary of {len(said)} messages")


def prompts_of(
    dialogue: Dialogue, table: Mapping[Speaker, Seat], rules: Rules, *, window: int, past: Past = "rules"
) -> list[AskedPrompt]:
    """Every ask's prompt, in the order of the asks, byte for byte as the chat policy built it at the first asking.

    `table`, `rules` and `window` must be those that the dialogue was played with. A transcript policy was shown other
    words for the same state; this gives the chat policy's. ValueError if the log does not fit rules or messages, or lacks a summary.
    """
    course = replay(dialogue, rules)
    summaries = list(dialogue.summaries or []) if past == "logged" else []
    summariser = {"rules": RulesSummariser(), "none": None, "logged": _Logged()}[past]
    history = History(table["a"], window, summariser, summaries)
    systems = {speaker: chat_system(seat, rules.max_delay_s) for speaker, seat in table.items()}

    async def all_prompts() -> list[AskedPrompt]:
        prompts = []
        for i, (asked, ask) in enumerate(zip(course.asks, dialogue.asks or (), strict=True)):
            recall = await history.recall(asked.messages)
            user = chat_snapshot(table[asked.speaker], asked, recall)
            prompts.append(AskedPrompt(i, ask, systems[asked.speaker], user, recall.summary.upto if recall.summary else 0))
        return prompts

    return run_async(all_prompts())
