"""Decisions as training samples: the two-message prompt of an ask, and the decision as JSON (paper section 4.6).

One sample is one line of `train.jsonl`, in TRL's conversational prompt-completion format:

    {"id": "gold-b01/4",
     "prompt": [{"role": "system", "content": "<z>"}, {"role": "user", "content": "<snapshot>"}],
     "completion": [{"role": "assistant", "content": "{\\"role\\": \\"林晓雯\\", \\"response\\": {\\"content\\": \\"咋了\\", ...}}"}],
     "dialogue_id": "gold-b01", "ask": 4, "speaker": "a", "binding": "b01", "scenario": "s01", "category": "Sport",
     "pair": "p01+p02", "directed": "p01>p02", "source": "gold", "round": null, "neutralised": false, "recovered": null}

The record of a dialogue does not depend on the policy that played it, so a base model's dialogues (transcript policy)
give samples too: with the prompts that the chat policy would have built for the same states.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from anthrolab.cards.scenario import Category
from anthrolab.errors import AnthrolabError
from anthrolab.files import whole_lines
from anthrolab.loop.sft.control_tokens import control_token_in
from anthrolab.models.fence import without_control_tokens
from anthrolab.runtime.asked import AskedPrompt
from anthrolab.runtime.dialogue import STAMP, Decision, Dialogue, Speaker, other

Source = Literal["accepted", "repaired", "gold"]
Sides = Literal["evaluated", "both"]

RECENT = 3
"""Messages before an ask by which near duplicates are found."""


class SftError(AnthrolabError):
    """Training data that cannot be made or read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One decision. `ask`: its position (from 0) in the dialogue's asks; `pair`: both persona ids, sorted; `directed`: the
    speaker's first; `round`: of the loop, None outside one. `neutralised`: the message spelled a control token, so the
    completion differs from the log there. `recovered`: how a bent or twice asked reply was read, as logged. `recent`: the
    last messages before the ask, oldest first, and `draft` the unsent draft that it saw; these two stand in no file."""

    id: str
    system: str
    user: str
    completion: str
    dialogue_id: str
    ask: int
    speaker: Speaker
    binding: str | None
    scenario: str
    category: Category
    pair: str
    directed: str
    source: Source
    round: int | None
    neutralised: bool = False
    recovered: str | None = None
    recent: tuple[str, ...] = field(default=(), compare=False)
    draft: str | None = field(default=None, compare=False)

    @property
    def response(self) -> dict[str, Any]:
        """The completion's content, timestamp and end."""
        response: dict[str, Any] = json.loads(self.completion)["response"]
        return response

    @property
    def silent(self) -> bool:
        """True if nothing is to be sent."""
        response = self.response
        return bool(response["end"]) or not response["content"].strip()

    def messages(self) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Prompt and completion as messages."""
        prompt = [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]
        return prompt, [{"role": "assistant", "content": self.completion}]

    def row(self) -> dict[str, Any]:
        """The sample as it stands in files."""
        prompt, completion = self.messages()
        rest = {name: getattr(self, name) for name in _REST}
        return {"id": self.id, "prompt": prompt, "completion": completion, **rest}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Sample":
        """The sample of a row; KeyError, ValueError or TypeError if it is none."""
        (system, user), (answer,) = row["prompt"], row["completion"]
        if (system["role"], user["role"], answer["role"]) != ("system", "user", "assistant"):
            raise ValueError("the roles are not system, user and assistant")
        texts = (system["content"], user["content"], answer["content"])
        return cls(row["id"], *texts, **{name: row[name] for name in _REST})


_REST = (
    "dialogue_id", "ask", "speaker", "binding", "scenario", "category", "pair", "directed", "source", "round",
    "neutralised", "recovered",
)  # fmt: skip


@dataclass(frozen=True)
class Taken:
    """The samples of one dialogue in the order of its asks, and how many asks gave none, by reason."""

    samples: list[Sample]
    left_out: Counter[str]


def samples_of(
    dialogue: Dialogue,
    prompts: Sequence[AskedPrompt],
    *,
    category: Category,
    source: Source,
    round: int | None = None,
    sides: Sides = "evaluated",
    stale_from: int | None = None,
) -> Taken:
    """Every decision of a dialogue as a sample; `prompts` are its `prompts_of`, `sides` whose decisions are wanted.

    A prompt stays as it was; one that spells a control token (a card or a skill does) is left out, and so is one whose
    summary covers the message `stale_from` (from 0), which a repair has changed since. Of a repaired dialogue only what went
    out (or was silence) is taken: drafts that were dropped later were neither judged nor repaired; nor was the text that a
    silence may carry, which is taken of dialogues by hand only. SftError if a speaker has no
    persona card.
    """
    personas = {side: participant.persona for side, participant in dialogue.speakers.items()}
    samples: list[Sample] = []
    left_out: Counter[str] = Counter()
    for prompt in prompts:
        ask = prompt.ask
        own, partner = personas[ask.speaker], personas[other(ask.speaker)]
        if own is None or partner is None or dialogue.scenario is None:
            raise SftError(f"{dialogue.dialogue_id}: speakers or scenario have no card, so it gives no prompts; leave it out")
        reason = _why_not(dialogue, prompt, source, sides, stale_from)
        if reason is not None:
            left_out[reason] += 1
            continue
        assert ask.decision is not None
        completion, neutralised = completion_of(dialogue.speakers[ask.speaker].name, ask.decision)
        seen = dialogue.messages[: prompt.index // 2 + 1]  # an event is one message and two asks
        samples.append(
            Sample(
                id=f"{dialogue.dialogue_id}/{prompt.index}",
                system=prompt.system,
                user=prompt.user,
                completion=completion,
                dialogue_id=dialogue.dialogue_id,
                ask=prompt.index,
                speaker=ask.speaker,
                binding=dialogue.binding,
                scenario=dialogue.scenario,
                category=category,
                pair=pair_of(own, partner),
                directed=f"{own}>{partner}",
                source=source,
                round=round,
                neutralised=neutralised,
                recovered=ask.recovered,
                recent=tuple(m.content for m in seen[-RECENT:]),
                draft=ask.previous_draft.content if ask.previous_draft else None,
            )
        )
    return Taken(samples, left_out)


def pair_of(one: str, other: str) -> str:
    """An unordered pair of persona ids as one text."""
    return "+".join(sorted((one, other)))


def completion_of(name: str, decision: Decision) -> tuple[str, bool]:
    """A decision in the contract's JSON, as the contract writes it, and whether its message was neutralised.

    All as logged: the time is the one that the scheduler allowed, a silence keeps a text that came with it.
    """
    content = without_control_tokens(decision.content)
    response = {"content": content, "timestamp": decision.at.strftime(STAMP), "end": decision.end}
    return json.dumps({"role": name, "response": response}, ensure_ascii=False), content != decision.content


def read_samples(path: Path) -> list[Sample]:
    """The samples of a JSONL file; SftError names the line that is none, or a last one that is cut."""
    found = list(_read(path, whole_lines(path)))
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                raise SftError(f"{path}: line {len(found) + 1}: is cut off, so the file is not whole; write the pool again")
    return found


def _read(path: Path, lines: Iterable[str]) -> Iterator[Sample]:
    for number, line in enumerate(lines, 1):
        try:
            yield Sample.of_row(json.loads(line))
        except (KeyError, ValueError, TypeError) as e:
            raise SftError(f"{path}: line {number}: no sample ({type(e).__name__}: {e}); write the pool again") from e


def _why_not(dialogue: Dialogue, prompt: AskedPrompt, source: Source, sides: Sides, stale_from: int | None) -> str | None:
    ask = prompt.ask
    if sides == "evaluated" and ask.speaker != dialogue.evaluated_role:
        return "not the evaluated side"
    if ask.decision is None:
        return "broken reply" if ask.error else "no decision in the log"
    if stale_from is not None and prompt.folded > stale_from:
        return "its summary is of a text that was repaired"
    if source != "gold" and ask.decision.end and ask.decision.content.strip():
        return "a silence that carries a text, which nobody judged"
    if source == "repaired" and not _silent_or_sent(dialogue, prompt.index, ask.decision):
        return "an unsent draft of a repaired dialogue, which nobody repaired"
    token = _token_in_z(prompt.system) or control_token_in(prompt.user) or control_token_in(dialogue.speakers[ask.speaker].name)
    return f"the prompt spells the control token {token}" if token else None


def _silent_or_sent(dialogue: Dialogue, index: int, decision: Decision) -> bool:
    """Whether a decision was to say nothing, or is the one that its speaker's next message came from.

    Both speakers are asked anew after every message, so it is only if that speaker sends the message after it.
    """
    if decision.end or not decision.content.strip():
        return True
    after = index // 2 + 1  # asks 2k and 2k+1 follow message k
    return after < len(dialogue.messages) and dialogue.messages[after].speaker == (dialogue.asks or [])[index].speaker


@lru_cache(maxsize=256)  # the same for all asks of a speaker in a dialogue
def _token_in_z(z: str) -> str | None:
    return control_token_in(z)


