"""The deterministic L0 gate over one dialogue (paper section 5.2, Table 3).

Decided here: L0-01, 02, 03, 05, 06 and 08 from the messages, 04 from the asks. L0-07, 09 and 10, and what rules cannot
see of 06 and 08, are a judge's. Precision comes first: gating out a person's chat is worse than missing a case.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import get_args

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.judging.l0 import facts, identity, medium, presence, time_logic
from anthrolab.judging.l0.clock import Clock
from anthrolab.judging.l0.prefilter import Prefilter
from anthrolab.judging.l0.repetition import Repetition
from anthrolab.judging.l0.result import ConstraintId, L0Result, Violation
from anthrolab.runtime.dialogue import Dialogue, Speaker, other


@cache
def prefilter() -> Prefilter:
    """The triggers of all rules that read single messages."""
    return Prefilter(
        {
            "identity": identity.TRIGGERS,
            "medium": medium.TRIGGERS,
            "presence": presence.TRIGGERS,
            "over": time_logic.end_triggers(),
            "age": facts.age.TRIGGERS,
            "gender": facts.gender.TRIGGERS,
            "city": facts.city.triggers(),
            "occupation": facts.occupation.TRIGGERS,
            "work": facts.occupation.MENTIONS,
            "relationship": facts.relationship.TRIGGERS,
            "question": facts.answers.TRIGGERS,
        },
        whole=("city", "occupation", "work"),
    )


def check(dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None = None) -> L0Result:
    """Gate one dialogue.

    `personas` holds the cards of the speakers; either may be missing (then L0-06 does not run for that side).
    An unknown scenario counts as remote. The opener is given: never gated, but context for repetition.
    """
    remote = scenario is None or scenario.remote
    found: dict[Speaker, list[Violation]] = {"a": [], "b": []}
    _check_asks(dialogue, found)
    messages = dialogue.messages
    repetition, clock, triggers = Repetition(), Clock(messages), prefilter()
    bits = triggers.bits
    of_claims = bits["identity"] | bits["medium"] | bits["presence"] * remote
    fact_bits: list[tuple[facts.Fact, int]] = [(fact, bits[fact]) for fact in get_args(facts.Fact)]
    of_facts = sum(bit for _, bit in fact_bits)
    of_talk, of_ends = of_facts | bits["work"] | bits["question"], bits["over"]
    rules = 0
    for i, message in enumerate(messages):
        text, speaker = message.content, message.speaker
        copied = repetition.add(i, speaker, text)
        if message.opener:
            rules = of_talk
            continue
        out, asked = found[speaker], rules
        if copied:
            out.append(Violation("L0-05", i, copied))
        rules = triggers.rules(text)
        partner, answers = "", False
        if (rules | asked) & of_talk and i and messages[i - 1].speaker != speaker:
            partner = messages[i - 1].content
            answers = bool(asked & of_talk) and facts.may_answer(text, partner, bool(asked & bits["question"]))
        if rules & of_claims or rules & of_facts or answers:
            recent = [m.content for m in messages[max(0, i - 2) : i]]
            if rules & of_claims:
                for constraint, evidence in _claims(text, rules & of_claims, recent, dialogue.speakers[speaker].name):
                    out.append(Violation(constraint, i, evidence))
            persona = personas.get(speaker)
            if persona and (answers or rules & of_facts):
                about = [fact for fact, bit in fact_bits if rules & bit]
                year = (dialogue.start or messages[0].at).year
                heard = facts.Heard(recent, partner, answers)
                out.extend(Violation("L0-06", i, said) for said in facts.find(text, persona, about, year, heard))
        if rules & of_ends and (impossible := clock.finished(i)):
            out.append(Violation("L0-08", i, impossible))
    return _verdict(dialogue, found, remote, dialogue.evaluated_role in personas)


def _claims(text: str, rules: int, recent: Sequence[str], name: str) -> list[tuple[ConstraintId, str]]:
    """What a message says of its speaker's nature, the medium and the place, read by the patterns that it triggers."""
    bits, said = prefilter().bits, list[tuple[ConstraintId, str]]()
    if rules & bits["identity"] and (evidence := identity.find(text, name, recent)):
        said.append(("L0-01", evidence))
    if rules & bits["medium"] and (evidence := medium.find(text, recent)):
        said.append(("L0-02", evidence))
    if rules & bits["presence"] and (evidence := presence.find(text)):
        said.append(("L0-03", evidence))
    return said


def _check_asks(dialogue: Dialogue, found: dict[Speaker, list[Violation]]) -> None:
    """L0-04: replies that broke the output contract; placed at the last message that the ask could see."""
    asks = dialogue.asks or []
    # The scheduler asks both speakers after every message, so pair k of asks saw k + 1 messages; by the clock
    # alone a reply sent in the same second would count as seen. Logs from elsewhere may hold other asks.
    pairs = list(zip(asks[::2], asks[1::2], strict=False))
    paired = 2 * len(pairs) == len(asks) and all(x.now == y.now and x.speaker != y.speaker for x, y in pairs)
    for number, ask in enumerate(asks):
        if ask.error is not None:
            by_clock = sum(message.at <= ask.now for message in dialogue.messages)
            seen = min(number // 2 + 1, by_clock) if paired else by_clock
            found[ask.speaker].append(Violation("L0-04", seen - 1, ask.error))


def _verdict(dialogue: Dialogue, found: Mapping[Speaker, list[Violation]], remote: bool, card_known: bool) -> L0Result:
    role = dialogue.evaluated_role
    own, partners = (tuple(sorted(found[side], key=lambda v: (v.message_index, v.id))) for side in (role, other(role)))
    ran: list[tuple[ConstraintId, bool]] = [
        ("L0-01", True), ("L0-02", True), ("L0-03", remote), ("L0-04", bool(dialogue.asks)), ("L0-05", True),
        ("L0-06", card_known), ("L0-08", True),
    ]  # fmt: skip
    executed = tuple(constraint for constraint, did in ran if did)
    if any(v.severity == "fatal" for v in own):
        return L0Result(False, "fatal", own, partners, executed)
    if not dialogue.turns():
        return L0Result(False, "no_turns", own, partners, executed)
    return L0Result(True, None, own, partners, executed)
