"""The model judge: one call per evaluated turn, one per dialogue, at zero temperature (paper sections 5.3 and 6.1)."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from string import Template

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.files import content_hash
from anthrolab.judging import materials
from anthrolab.judging.answers import Answers, answer_schema, answer_text, read_answers
from anthrolab.judging.rubric import Need, Rubric, Scope
from anthrolab.judging.verdict import JUDGED_L0, BoxVerdict, JudgeFault, L0Answer, TurnVerdict, Verdict
from anthrolab.models.client import ModelClient, ModelError
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.dialogue import Dialogue, Speaker

PROMPTS = ("turn.md", "dialogue.md", "question.md")
SOURCES = ("judging/llm.py", "judging/materials.py", "models/fence.py", "judging/answers.py", "judging/verdict.py")
REASKS = 1
"""Times that a call asks again for the ids without a usable answer."""

_AGAIN = "上一次的回答里这些编号没有可用的答案，请重新作答，每个编号只答一次。"


@cache
def template(name: str) -> Template:
    """A prompt file of this room."""
    return Template((files("anthrolab.judging") / "prompts" / name).read_text(encoding="utf-8"))


def rubric_text(rubric: Rubric, scope: Scope) -> str:
    """The checkboxes of a scope as they stand in the prompt."""
    lines = []
    for dimension in rubric.of_scope(scope):
        lines.append(f"{dimension.id} {dimension.name}")
        lines += [f"- {box.id} {box.question}{f'（{box.note}）' if box.note else ''}" for box in dimension.checkboxes]
    return "\n".join(lines)


@dataclass
class _Call:
    """One call and what came of it; `number` is the turn's index, None for the dialogue."""

    scope: Scope
    number: int | None
    ids: list[str]
    answers: Answers = field(default_factory=Answers)
    errors: list[JudgeFault] = field(default_factory=list)
    rungs: Counter[str] = field(default_factory=Counter)
    from_reasoning: int = 0

    def fault(self, kind: str, message: str) -> None:
        self.errors.append(JudgeFault(scope=self.scope, turn_index=self.number, fault=kind, message=message))


@dataclass(frozen=True)
class _Sheet:
    """All calls about one dialogue: which cards there are, the messages (by index) of the evaluated turns, one call for
    each turn in `local`, and the one for the dialogue."""

    known: Mapping[Need, bool]
    indices: list[int]
    local: list[_Call]
    whole: _Call


class LLMJudge:
    """A judge (see `verdict.Judge`) that asks a model.

    client, system: who is asked, and how; as a judge it is greedy whatever its sampling says (`System.as_judge`).
    rubric: what is asked.
    salt: has all requests drawn anew that were asked under another one, for a repeat of the same judging; it is no part
        of the judge's identity.

    No failed call raises: its checkboxes are unassessed as `model_error:<fault>` and the verdict is marked
    incomplete, so that the dialogue can be judged again. Answers that cannot be used are asked for once more,
    by themselves, and then stay unassessed under their reason.
    """

    def __init__(
        self,
        client: ModelClient,
        system: System,
        rubric: Rubric,
        *,
        salt: str = "",
    ) -> None:
        self.name = system.name
        self.rubric = rubric
        self.ladder = Ladder()
        self._client, self._system, self._salt = client, system.as_judge(), salt
        self._systems: dict[Scope, str] = {
            scope: template(f"{scope}.md").substitute(rubric=rubric_text(rubric, scope))
            for scope in ("turn", "dialogue")
        }

    @cached_property
    def identity(self) -> str:
        """Changes with the model, its server, how it is asked, the rubric, the prompts and how answers are read."""
        parts = [template(name).template for name in PROMPTS]
        parts += [(files("anthrolab") / name).read_text(encoding="utf-8") for name in SOURCES]
        asked = self._system.request(messages=[{"role": "system", "content": ""}, {"role": "user", "content": ""}])
        return content_hash([asked.key(self._client.identity), self.rubric.hash, parts])

    async def judge(
        self, dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None
    ) -> Verdict:
        """The verdict on the evaluated role; all calls of the dialogue run at the same time."""
        sheet = self._sheet(dialogue, personas, scenario)
        if not sheet.indices:
            sheet.whole.answers.missing = dict.fromkeys(sheet.whole.ids, "no_turns")
            return self._verdict(dialogue, sheet)
        background = "\n\n".join(
            (
                materials.person(personas.get(dialogue.evaluated_role)),
                materials.situation(scenario, dialogue),
                materials.memory(dialogue),
                "",
            )
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask(sheet.whole, background + materials.whole(dialogue), sheet.indices))
            for call, window in zip(sheet.local, materials.windows(dialogue), strict=True):
                group.create_task(self._ask(call, background + window, sheet.indices))
        return self._verdict(dialogue, sheet)

    def unanswered(
        self,
        dialogue: Dialogue,
        personas: Mapping[Speaker, Persona],
        scenario: Scenario | None,
        fault: str,
        message: str,
    ) -> Verdict:
        """The verdict on a dialogue that was given up (`fault` in the words of `models.client`, such as "deadline").

        All that would have been asked is unassessed as `model_error:<fault>`, the rest as in `judge`; the verdict is
        incomplete and has one JudgeFault, with `message`.
        """
        sheet = self._sheet(dialogue, personas, scenario)
        for call in (*sheet.local, sheet.whole):
            call.answers.missing = dict.fromkeys(call.ids, f"model_error:{fault}")
        sheet.whole.fault(f"model_error:{fault}", message)
        return self._verdict(dialogue, sheet)

    def _sheet(self, dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None) -> _Sheet:
        has_persona = dialogue.evaluated_role in personas
        known: dict[Need, bool] = {"persona": has_persona, "scenario": scenario is not None}
        indices = dialogue.turns()
        local = [_Call("turn", number, self._ids("turn", known)) for number in range(1, len(indices) + 1)]
        l0 = [i for i in JUDGED_L0 if i != "L0-06" or has_persona]
        return _Sheet(known, indices, local, _Call("dialogue", None, self._ids("dialogue", known) + l0))

    def _verdict(self, dialogue: Dialogue, sheet: _Sheet) -> Verdict:
        calls = [*sheet.local, sheet.whole]
        return Verdict(
            dialogue_id=dialogue.dialogue_id,
            judge=self.name,
            judge_identity=self.identity,
            rubric=self.rubric.hash,
            complete=not any(error.fault.startswith("model_error:") for call in calls for error in call.errors),
            turns=[
                TurnVerdict(turn_index=number, message_index=index, boxes=self._card(call, sheet.known))
                for number, (call, index) in enumerate(zip(sheet.local, sheet.indices, strict=True), 1)
            ],
            dialogue=self._card(sheet.whole, sheet.known),
            l0=[_l0_answer(sheet.whole, i) for i in JUDGED_L0],
            errors=[error for call in calls for error in call.errors],
            rungs=dict(sorted(sum((call.rungs for call in calls), Counter[str]()).items())),
            from_reasoning=sum(call.from_reasoning for call in calls),
        )

    def _ids(self, scope: Scope, known: Mapping[Need, bool]) -> list[str]:
        return [box.id for box in self.rubric.boxes(scope) if all(known[need] for need in box.needs)]

    async def _ask(self, call: _Call, material: str, messages: Sequence[int]) -> None:
        """Fill in a call's answers, asking once more for the ids that got none."""
        open_ids = call.ids
        for attempt in range(1 + REASKS):
            question = template("question.md").substitute(ids="、".join(open_ids), again=_AGAIN if attempt else "")
            request = self._system.request(
                messages=[
                    {"role": "system", "content": self._systems[call.scope]},
                    {"role": "user", "content": f"{material}\n\n{question}"},
                ],
                salt=" ".join(part for part in (f"again-{attempt}" if attempt else "", self._salt) if part),
            )
            try:
                reply, rung = await self.ladder.ask(self._client, request, answer_schema(open_ids))
            except ModelError as error:
                call.fault(f"model_error:{error.fault}", str(error))
                call.answers.missing = dict.fromkeys(open_ids, f"model_error:{error.fault}")
                return
            call.rungs[rung] += 1
            text, thought = answer_text(reply)
            call.from_reasoning += thought
            got = read_answers(text, open_ids, messages, reply.truncated)
            call.answers.boxes |= got.boxes
            call.answers.l0 |= got.l0
            call.answers.missing = got.missing
            if unknown := [i for i in got.unknown if i not in call.ids]:
                call.fault("unknown_id", ", ".join(unknown)[:200])
            open_ids = list(got.missing)
            if not open_ids:
                return
        for reason, count in sorted(Counter(call.answers.missing.values()).items()):
            ids = ", ".join(i for i in open_ids if call.answers.missing[i] == reason)
            call.fault(reason, f"no usable answer to {count} of {len(call.ids)} after asking again: {ids}")

    def _card(self, call: _Call, known: Mapping[Need, bool]) -> list[BoxVerdict]:
        """Every checkbox of the scope, in the rubric's order."""
        card = []
        for box in self.rubric.boxes(call.scope):
            lacking = [f"no_{need}" for need in box.needs if not known[need]]
            unassessed = lacking[0] if lacking else call.answers.missing.get(box.id)
            card.append(call.answers.boxes.get(box.id) or BoxVerdict(id=box.id, unassessed=unassessed))
        return card


def _l0_answer(whole: _Call, i: str) -> L0Answer:
    return whole.answers.l0.get(i) or L0Answer(id=i, unassessed=whole.answers.missing.get(i, "no_persona"))
