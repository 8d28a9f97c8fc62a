"""The deterministic L0 gate over one dialogue (paper section 5.2, Table 3).

Decided here: L0-01, 02, 03, 05, 06 and 08 from the messages, 04 from the asks. L0-07, 09 and 10, and what rules cannot
see of 06 and 08, are a judge's. Precision comes first: gating out a person's chat is worse than missing a case.
"""

import re
from collections.abc import Mapping

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.judging.l0 import facts, identity, medium, presence, time_logic
from anthrolab.judging.l0.repetition import Repetition
from anthrolab.judging.l0.result import ConstraintId, L0Result, Violation
from anthrolab.runtime.dialogue import Dialogue, Speaker

_IDENTITY = re.compile(identity.TRIGGER, re.I)
_MEDIUM = re.compile(medium.TRIGGER, re.I)
_PRESENCE = re.compile(presence.TRIGGER, re.I)
_FACTS = re.compile(facts.TRIGGER)
_TIME = re.compile(time_logic.TRIGGER)


def check(dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None = None) -> L0Result:
    """Gate one dialogue.

    `personas` holds the cards of the speakers, either may be missing (then L0-06 does not run for that side).
    An unknown scenario counts as remote. The opener is given: never gated, but context for repetition.
    """
    remote = scenario is None or scenario.remote
    year = (dialogue.start or (dialogue.messages[0].at if dialogue.messages else None))
    found: dict[Speaker, list[Violation]] = {"a": [], "b": []}
    _check_asks(dialogue, found)
    repetition = Repetition()
    clock = _Clock()
    contents = [m.content for m in dialogue.messages]
    for i, m in enumerate(dialogue.messages):
        text, speaker = m.content, m.speaker
        copied = repetition.add(i, speaker, text)
        if m.opener:
            continue
        out = found[speaker]
        if copied:
            out.append(Violation("L0-05", i, copied))
        if _IDENTITY.search(text):
            _add(out, "L0-01", i, identity.find(text, dialogue.speakers[speaker].name))
        if _MEDIUM.search(text):
            _add(out, "L0-02", i, medium.find(text, contents[max(0, i - 3) : i]))
        if remote and _PRESENCE.search(text):
            _add(out, "L0-03", i, presence.find(text))
        persona = personas.get(speaker)
        if persona and _FACTS.search(text):
            for evidence in facts.find(text, persona, year.year if year else None, contents[max(0, i - 2) : i]):
                out.append(Violation("L0-06", i, evidence))
        if _TIME.search(text):
            _add(out, "L0-08", i, clock.add(i, speaker, text, m.at.timestamp()))
    return _verdict(dialogue, found, remote, dialogue.evaluated_role in personas)


def _add(out: list[Violation], constraint: ConstraintId, index: int, evidence: str | None) -> None:
    if evidence:
        out.append(Violation(constraint, index, evidence))


def _check_asks(dialogue: Dialogue, found: dict[Speaker, list[Violation]]) -> None:
    """L0-04: replies that broke the output contract; placed at the last message that the ask could see."""
    for ask in dialogue.asks or []:
        if ask.error is not None:
            seen = sum(m.at <= ask.now for m in dialogue.messages)
            found[ask.speaker].append(Violation("L0-04", seen - 1, ask.error))


class _Clock:
    """When each speaker last announced each activity of `time_logic.ACTIVITIES`."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, int], tuple[int, str, float]] = {}

    def add(self, index: int, speaker: str, text: str, at_s: float) -> str | None:
        """Take in a message sent at `at_s` seconds; say what was finished too soon, or None."""
        evidence = None
        for k in time_logic.finished(text) if self._begun else ():
            begun = self._begun.pop((speaker, k), None)
            if begun and 0 <= at_s - begun[2] < time_logic.ACTIVITIES[k].least_s and evidence is None:
                evidence = f"{begun[1]} (message {begun[0]}) → {text} after {at_s - begun[2]:.0f} s"
        for k in time_logic.announced(text):
            self._begun[speaker, k] = (index, text, at_s)
        return evidence


def _verdict(dialogue: Dialogue, found: dict[Speaker, list[Violation]], remote: bool, card_known: bool) -> L0Result:
    role = dialogue.evaluated_role
    own, partners = (
        tuple(sorted(found[side], key=lambda v: (v.message_index, v.id))) for side in (role, "b" if role == "a" else "a")
    )
    executed: list[ConstraintId] = ["L0-01", "L0-02"]
    if remote:
        executed.append("L0-03")
    if dialogue.asks:
        executed.append("L0-04")
    executed.append("L0-05")
    if card_known:
        executed.append("L0-06")
    executed.append("L0-08")
    fatal = any(v.severity == "fatal" for v in own)
    spoke = any(m.speaker == role and not m.opener for m in dialogue.messages)
    reason = "fatal" if fatal else None if spoke else "no_turns"
    return L0Result(reason is None, reason, own, partners, tuple(executed))
