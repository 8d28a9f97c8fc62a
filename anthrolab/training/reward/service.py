"""From a dialogue to what its reward is made of: the gate first, then a judge, then a score per dimension (paper sections 4.6, 5.2)."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from anthrolab.bench.effort import DEADLINE_S
from anthrolab.cards.library import Library
from anthrolab.judging.calibration.judged import EngineFor, OpenedJudge, no_limit, open_judge, raise_final
from anthrolab.judging.l0 import SEVERITY, L0Result, check
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.judging.scores import case_score, coverage
from anthrolab.judging.verdict import RULES, Judge, Verdict
from anthrolab.models.client import FINAL_FAULTS, ModelError
from anthrolab.models.opening import Models
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.sync import first_failure
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.scores import scores_of

Status = Literal["scored", "invalid", "judge_failed"]


@dataclass(frozen=True)
class Judged:
    """What is known of one dialogue.

    status: `scored`; `invalid` (a fatal violation of the evaluated role, found by the gate or the judge, or it said nothing:
        reward 0); `judge_failed` (a call to the judge got no answer: no reward).
    fault: of an invalid one `no_turns` or the ids of the fatal constraints, such as `L0-05` by the gate or `judge L0-09`; of a
        failed one the model's fault, such as `timeout` or `deadline`; None of a scored one.
    verdict: None where the judge was not asked, or took too long.
    scores, passed: (K,), see `scores_of`; nan throughout unless scored.
    rules_score: 0..100, the case score by the rules judge; None where the gate found the dialogue invalid, the rules leave
        one of its halves unassessed, or no rules judge is at hand.
    """

    dialogue_id: str
    gate: L0Result
    verdict: Verdict | None
    status: Status
    fault: str | None
    scores: Floats
    passed: Floats
    rules_score: float | None = None

    @property
    def assessed(self) -> float | None:
        """The share of the checkboxes that the judge assessed, 0..1; None without a verdict."""
        if self.verdict is None:
            return None
        seen = coverage(self.verdict.boxes())
        return seen.assessed / seen.total if seen.total else 0.0

    def as_row(self, dimensions: Dimensions) -> dict[str, Any]:
        """All of it as JSON values, scores exact to the last bit; `of_row` reads it again."""
        return {
            "dialogue_id": self.dialogue_id, "status": self.status, "fault": self.fault, "gate": self.gate.as_row(self.dialogue_id),
            "scores": _named(self.scores, dimensions), "passed": _named(self.passed, dimensions), "rules_score": self.rules_score,
            "verdict": self.verdict.model_dump(mode="json") if self.verdict else None,
        }  # fmt: skip

    @classmethod
    def of_row(cls, row: Mapping[str, Any], dimensions: Dimensions) -> "Judged":
        """What `as_row` wrote."""
        verdict = Verdict.model_validate(row["verdict"]) if row["verdict"] else None
        scores, passed = dimensions.row(row["scores"]), dimensions.row(row["passed"])
        gate = L0Result.of_row(row["gate"])
        return cls(row["dialogue_id"], gate, verdict, row["status"], row["fault"], scores, passed, row["rules_score"])


class RewardService:
    """Judges dialogues for a training, any number of them at the same time.

    The judge is asked as the bench asks it, so that replies which one of them has had are there for the other (through the
    engine's cache). rules: the rules judge, to watch beside a model judge; None leaves `rules_score` out, unless the rules
    are the judge. deadline_s: seconds that one dialogue's verdict may take. opened: what `open_reward_service` opened.
    """

    def __init__(
        self, judge: Judge, rubric: Rubric, library: Library, dimensions: Dimensions, rules: Judge | None = None, *,
        deadline_s: float = DEADLINE_S, opened: OpenedJudge | None = None,
    ) -> None:  # fmt: skip
        self.asked, self.rubric, self.library, self.dimensions, self.rules = judge, rubric, library, dimensions, rules
        self.deadline_s, self.opened = deadline_s, opened
        self._scenarios = library.all_scenarios()

    async def judge(self, dialogue: Dialogue) -> Judged:
        """What is known of a dialogue. One that the gate finds invalid is not judged.

        ModelError only if a call met one of FINAL_FAULTS, so that no other dialogue need be tried.
        """
        people, scenario = dialogue.cards_of(self.library.personas), self._scenarios.get(dialogue.scenario or "")
        gate = check(dialogue, people, scenario)
        if not gate.valid:
            fatal = {v.id for v in gate.violations if v.severity == "fatal"}
            return self._without(dialogue, gate, "invalid", ", ".join(sorted(fatal)) or str(gate.reason))
        by_rules = None
        if self.rules is not None and self.asked.name != RULES:
            by_rules = case_score(await self.rules.judge(dialogue, people, scenario), self.rubric)
        try:
            async with asyncio.timeout(self.deadline_s) as limit:
                verdict = await self.asked.judge(dialogue, people, scenario)
        except TimeoutError:
            if not limit.expired():
                raise
            return self._without(dialogue, gate, "judge_failed", "deadline", None, by_rules)
        except ModelError as e:
            if e.fault in FINAL_FAULTS:
                raise
            return self._without(dialogue, gate, "judge_failed", e.fault, None, by_rules)
        raise_final(verdict)
        if self.asked.name == RULES:
            by_rules = case_score(verdict, self.rubric)
        # a fatal violation is an answer, whatever became of the other calls; the bench takes it so too
        fatal_by_judge = sorted(v.id for v in verdict.judge_violations() if SEVERITY[v.id] == "fatal")  # type: ignore[index]
        if fatal_by_judge:
            return self._without(dialogue, gate, "invalid", f"judge {', '.join(fatal_by_judge)}", verdict, by_rules)
        if not verdict.complete:
            fault = next(iter(verdict.model_faults()), "no_reply")
            return self._without(dialogue, gate, "judge_failed", fault, verdict, by_rules)
        scores, passed = scores_of(verdict, self.rubric, self.dimensions)
        return Judged(dialogue.dialogue_id, gate, verdict, "scored", None, scores, passed, by_rules)

    async def judge_all(self, dialogues: Sequence[Dialogue | None]) -> list[Judged | None]:
        """All at the same time, in their order; None for a dialogue that could not be had. ModelError as in `judge`."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [None if d is None else group.create_task(self.judge(d)) for d in dialogues]
        except BaseExceptionGroup as failed:
            raise first_failure(failed) from None
        return [None if task is None else task.result() for task in tasks]

    def _without(
        self, dialogue: Dialogue, gate: L0Result, status: Status, fault: str, verdict: Verdict | None = None, rules_score: float | None = None
    ) -> Judged:
        """Of a dialogue without scores."""
        empty = np.full(len(self.dimensions.ids), np.nan)
        return Judged(dialogue.dialogue_id, gate, verdict, status, fault, empty, empty, rules_score)


def batch_of(judged: Sequence[Judged | None], dimensions: Dimensions) -> Batch:
    """The rows of a batch, in the same order; None (the dialogue could not be had) and `judge_failed` are not judged."""
    nothing = np.full(len(dimensions.ids), np.nan)
    rows = [
        (nothing, nothing, False, False) if j is None else (j.scores, j.passed, j.status != "invalid", j.status != "judge_failed")
        for j in judged
    ]
    return Batch.of(rows, len(dimensions.ids))


@asynccontextmanager
async def open_reward_service(
    name: str, rubric: Rubric, library: Library, dimensions: Dimensions, calls: Path, *, systems_file: Path | None = None,
    engine_for: EngineFor = no_limit, models: Models | None = None, deadline_s: float = DEADLINE_S,
) -> AsyncIterator[RewardService]:  # fmt: skip
    """The service on a judge by its name (RULES, or a system that serves as model judge), whose calls are logged in `calls`.

    engine_for: opens the engine with the reply cache and the limit on money (as `Effort.engine`, or
    `lambda _: nullcontext(engine)` for one that is open); models: where clients come from, if other systems are open already.
    SystemsError if there is no such system, or it is no chat model.
    """
    rules = RulesJudge(rubric)
    async with open_judge(name, rubric, calls, systems_file, engine_for, models) as opened:
        yield RewardService(opened.judge, rubric, library, dimensions, rules, deadline_s=deadline_s, opened=opened)


def _named(values: Floats, dimensions: Dimensions) -> dict[str, float | None]:
    return {i: None if np.isnan(v) else float(v) for i, v in zip(dimensions.ids, values, strict=True)}
