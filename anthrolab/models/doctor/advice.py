"""From the findings of a probe to the settings of systems.yaml: pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from anthrolab.models.doctor.findings import (
    DENIED,
    MEANINGS,
    NO_REPLY,
    NOT_SENT,
    OPEN,
    UNSETTLED,
    Finding,
    Outcome,
    Way,
    find,
    own_way,
)
from anthrolab.models.structured import RUNGS
from anthrolab.models.systems import System, without_samplers

RANK: dict[Outcome, int] = {"ok": 3, "mended": 2, "in reasoning": 2, "cut off": 1}
"""How well an answer in JSON serves; from 2 on it can be used, the others are 0."""


@dataclass
class Advice:
    """Fields for the entry, why those differ from it that do, what else to know, and why it cannot serve if it cannot.

    choices: fields of which the entry should have one set, where it says nothing about thinking and the model thinks.
    unknown: what must be known before it can be said to serve, and got no answer.
    """

    settings: dict[str, JsonValue] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    choices: list[dict[str, JsonValue]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def serves(self) -> bool:
        """True if the endpoint was seen to serve the policy of the entry."""
        return not self.problems and not self.unknown


def thinks(found: Sequence[Finding], way: Way) -> bool | None:
    """Whether reasoning came when asked in this way; None if no reply came."""
    asked = find(found, "prompt", way)
    return None if asked is None or not asked.thought else asked.thought != "no"


def turning_ways(found: Sequence[Finding]) -> list[Way]:
    """The ways that are obeyed where that differs from what happens when nothing is sent."""
    usual = thinks(found, NOT_SENT)
    obeyed = dict.fromkeys(f.way for f in found if f.way.on is not None and thinks(found, f.way) is f.way.on)
    return [way for way in obeyed if way.on is not usual]


def crossed_ways(system: System, found: Sequence[Finding]) -> list[Way]:
    """The ways that are worth a look with every kind of structured output: sending nothing, the entry's own, and
    the first that changes what happens when nothing is sent. Only ways that were accepted."""
    ways = dict.fromkeys([NOT_SENT, own_way(system), *turning_ways(found)[:1]])
    return [way for way in ways if (f := find(found, "prompt", way)) and f.outcome not in NO_REPLY]


def on_the_ladder(found: Sequence[Finding], way: Way) -> Finding | None:
    """What a run would get: the first rung that is not refused, or the prompt's reply if that rung holds it to nothing."""
    tried = [f for rung in RUNGS if (f := find(found, rung, way)) and f.outcome != "refused"]
    return find(found, "prompt", way) if tried and tried[0].outcome == "ignored" else next(iter(tried), None)


def advise(system: System, found: Sequence[Finding]) -> Advice:
    """What the findings mean for an entry of systems.yaml."""
    advice = Advice()
    if gone := next((f for f in found if f.outcome == "gone"), None):
        advice.problems.append(f"the connection failed: {gone.detail}")
    elif found[-1].outcome in NO_REPLY and found[-1].asked in ("prompt", "one line"):
        advice.problems.append(f"the plainest request got no text ({found[-1].outcome}): {found[-1].detail}")
    left = [f for f in found if f.outcome in OPEN and f.outcome != "gone"]
    for detail in dict.fromkeys(f.detail for f in left):
        names = dict.fromkeys(f.asked for f in left if f.detail == detail)
        advice.notes.append(f"not everything was answered ({detail}); not known: {', '.join(names)}")
    _advise_size(system, found, advice)
    _advise_cap(system, found, advice)
    if system.policy == "transcript":
        _advise_line(found, advice)
        return advice
    _advise_thinking(system, found, advice)
    _advise_role(system, found, advice)
    _advise_judge(system, found, advice)
    advice.choices = _choices(system, found, advice)
    if (row := find(found, "two in a row")) and row.outcome in DENIED:
        advice.notes.append(f"two user messages in a row are {row.outcome}; anthrolab sends none")
    for name in [name for name, value in advice.settings.items() if value == getattr(system, name)]:
        advice.reasons.pop(name, None)
    return advice


def _advise_size(system: System, found: Sequence[Finding], advice: Advice) -> None:
    """Whether a prompt as long as those of a run is taken."""
    size = find(found, "real prompt size")
    if size and size.outcome in DENIED:
        context = "a larger `context` in the entry" if system.embedded else "a larger context of the server"
        helps = f"; at this context it cannot serve our prompts; what helps: {context}, a smaller `--window`, shorter skills"
        about_size = helps if size.outcome in ("refused", "failed") else ""
        advice.problems.append(f"a prompt of real size is {size.outcome} ({size.detail}){about_size}")
    elif size and size.outcome in OPEN:
        advice.unknown.append("a prompt of real size got no answer")


def _advise_cap(system: System, found: Sequence[Finding], advice: Advice) -> None:
    """How the length cap is called, and whether it is kept; and the entry's samplers, if they are refused."""
    other = "max_tokens" if system.max_tokens_field == "max_completion_tokens" else "max_completion_tokens"
    if refused := find(found, "max_tokens_field"):
        advice.settings["max_tokens_field"] = other
        advice.reasons["max_tokens_field"] = refused.detail
    if refused := find(found, "sampling"):
        advice.settings["sampling"] = without_samplers(system.sampling)
        advice.reasons["sampling"] = refused.detail
    cap, renamed = find(found, "length cap"), find(found, "other cap")
    if cap and renamed and renamed.outcome == "ok":
        advice.settings["max_tokens_field"] = other
        advice.reasons["max_tokens_field"] = f"as {system.max_tokens_field} it is not kept: {cap.detail}"
    elif cap and cap.outcome == "ignored":
        advice.notes.append(f"the length cap is not kept ({cap.detail}): replies may be longer than max_tokens")
    elif cap and cap.outcome == "unmarked":
        advice.notes.append(f"a reply that was cut does not say so ({cap.detail}): it counts as broken, not as cut")


def _advise_line(found: Sequence[Finding], advice: Advice) -> None:
    """Whether a base model can be held to the form of a line."""
    line = find(found, "line")
    if line and line.outcome in OPEN:
        advice.unknown.append("the form of a line got no answer")
    elif line and line.outcome != "ok" and not advice.problems:
        fix = "; is `server` right, and new enough?" if line.outcome != "cut off" else ""
        advice.problems.append(f"the form of a line is {line.outcome}: {line.detail}{fix}")
    if (stop := find(found, "one line")) and stop.outcome == "ignored":
        advice.notes.append("a completion does not end at its stop sequence: the run would read only its first line")


def _advise_thinking(system: System, found: Sequence[Finding], advice: Advice) -> None:
    """The way of thinking that does what the entry wants and leaves the best JSON; the entry's own where it is as good,
    or where that is not known."""
    own, want, ways = own_way(system), system.thinking, crossed_ways(system, found)
    named, cap = f"{'thinking ' if own == NOT_SENT else ''}{own}", f"max_tokens: {json.dumps(system.max_tokens)}"

    def outcome(way: Way) -> Outcome:
        form = on_the_ladder(found, way)
        return form.outcome if form else "failed"

    if not ways:
        return
    fitting = [w for w in ways if want is None or thinks(found, w) is want]
    tame = [w for w in ways if want is None or w.on in (None, want)]
    known = not any(f.outcome in UNSETTLED for f in found if f.way == own and f.asked in RUNGS)
    best = max(fitting or tame, key=lambda w: (RANK.get(outcome(w), 0), w == own)) if known else own
    advice.settings |= best.settings(system.model_copy(update=advice.settings))
    asked = find(found, "prompt", own)
    if asked and asked.outcome in NO_REPLY:
        reason = f"{own} is {asked.outcome}: {asked.detail}"
    elif want is not None and own not in fitting:
        reason = f"{own} does not {'make it think' if want else 'stop its thinking'}"
    else:
        instead = f" ({cap}; or raise it)" if outcome(own) == "cut off" else ""
        reason = f"{named}: {MEANINGS.get(outcome(own), '')}{instead}"
    changed = [name for name, value in best.settings(system).items() if value != getattr(system, name)]
    advice.reasons |= {name: reason for name in changed if name not in advice.reasons}
    if not known:
        advice.unknown.append(f"{named} did not get all its answers, and thinking stays as the entry has it")
    elif not any(RANK.get(outcome(w), 0) >= 2 for w in ways):
        if any(f.outcome in OPEN for f in found if f.asked in RUNGS):
            advice.unknown.append("no usable JSON came among the answers")
        elif any(outcome(w) == "cut off" for w in ways):
            advice.problems.append(f"no answer in JSON ends before the length cap ({cap}); raise it")
        elif denied := [f for w in ways if (f := on_the_ladder(found, w)) and f.outcome in DENIED]:
            advice.problems.append(f"{denied[0].asked} is {denied[0].outcome}: {denied[0].detail}")
        else:
            advice.problems.append("no kind of structured output is obeyed, with thinking or without")
    settled = not any(f.outcome in OPEN for f in found if f.asked == "prompt" and f.way.on is want)
    _note_thinking(system, found, advice, best, bool(fitting) or not known or not settled)


def _choices(system: System, found: Sequence[Finding], advice: Advice) -> list[dict[str, JsonValue]]:
    """Where the entry leaves thinking to a model that thinks: the fields that turn it off, and those that ask for it
    in the same style, both on top of the advised ones; none if nothing turns it off and leaves usable JSON."""
    if advice.settings.get("thinking", False) is not None or not thinks(found, NOT_SENT):
        return []
    usable = [w for w in turning_ways(found)[:1] if (f := on_the_ladder(found, w)) and RANK.get(f.outcome, 0) >= 2]
    same = [f.way for f in found if f.way.on and thinks(found, f.way) and f.way.style in [w.style for w in usable]]
    advised = system.model_copy(update=advice.settings)
    return [way.settings(advised) for way in dict.fromkeys([*usable, *same])]


def _note_thinking(system: System, found: Sequence[Finding], advice: Advice, best: Way, fits: bool) -> None:
    want, form, schema = system.thinking, on_the_ladder(found, best), find(found, "json_schema", best)
    if not fits:
        advice.notes.append(f"no way of asking {'makes it think' if want else 'stops its thinking'}")
    if form and form.outcome in ("in reasoning", "mended"):
        advice.notes.append(f"{form.detail}: decisions will be read so, and labelled as recovered")
    if form and form.outcome == "in reasoning" and form.thought == "no":
        advice.notes.append("nothing but the answer is in the reasoning field: is the server's reasoning parser right?")
    if form and form.outcome == "cut off" and form.thought in ("yes", "unseen"):
        advice.notes.append(f"thinking leaves no room for the answer ({form.detail}); raise max_tokens")
    if schema and schema.outcome in ("refused", "ignored"):
        held = (
            "the next rung of the ladder is used"
            if schema.outcome == "refused"
            else "only the prompt asks for the form"
        )
        advice.notes.append(f"json_schema is {schema.outcome}: {held}")


def _advise_role(system: System, found: Sequence[Finding], advice: Advice) -> None:
    """Whether the system text may go as a message of its own."""
    taken, folded = find(found, "system role"), find(found, "system text in user")
    if taken is None:
        return
    heard = ("ok", "in reasoning")
    if taken.outcome in OPEN or (taken.outcome in DENIED and folded and folded.outcome in OPEN):
        where = "" if taken.outcome in OPEN else f" (a message of its own is {taken.outcome}), before the user's"
        advice.unknown.append(f"whether it takes the system text{where} got no answer")
        return
    advice.settings["system_role"] = system.system_role
    if taken.outcome in heard:
        advice.settings["system_role"] = True
        advice.reasons["system_role"] = taken.detail
    elif folded and (folded.outcome in heard or (taken.outcome in DENIED and folded.outcome not in NO_REPLY)):
        advice.settings["system_role"] = False
        advice.reasons["system_role"] = f"a system message is {taken.outcome}: {taken.detail}"
    elif folded and taken.outcome in DENIED and folded.outcome in DENIED:
        advice.problems.append(f"the system text is {folded.outcome} in either place: {folded.detail}")
    if "cut off" in (taken.outcome, folded and folded.outcome):
        advice.notes.append("whether it follows its system text is not known: the reply was cut off at the length cap")
    elif folded and folded.outcome == "ignored":
        advice.notes.append("the model follows its system text poorly, wherever that stands")


def _advise_judge(system: System, found: Sequence[Finding], advice: Advice) -> None:
    """Whether a judge's requests are taken: at temperature 0, with room for reasons."""
    judge, free = find(found, "as a judge"), find(found, "no temperature")
    if judge is None or judge.outcome != "refused":
        return
    if free is None or free.outcome in NO_REPLY:
        cap = f"judge_max_tokens {system.judge_max_tokens}"
        advice.notes.append(f"as a judge ({cap}) it is refused: {judge.detail}")
        return
    sampling = advice.settings.get("sampling", system.sampling)
    assert isinstance(sampling, dict)
    if "temperature" in sampling:
        advice.notes.append(
            "as a judge it takes no temperature: give the judge an entry with sampling: {temperature: null}"
        )
    else:
        advice.settings["sampling"] = {**sampling, "temperature": None}
        advice.reasons.setdefault("sampling", f"as a judge: {judge.detail}")
