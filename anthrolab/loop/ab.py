"""Did the new skills help? The tested system on bindings that taught nothing, with the skills before a round and after it.

The pairs are the cases; the two cases of a binding go together, so intervals and tests are over bindings. One question is
asked, that of the score; what else is compared is corrected for being many.
"""

import json
from collections.abc import Callable
from pathlib import Path

from pydantic import Field, ValidationError

from anthrolab.bench.cases import select_cases
from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.plan import Progress
from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.files import read_text, write_atomic
from anthrolab.judging.rubric import load_rubric
from anthrolab.loop.filtering import counted, filter_run
from anthrolab.loop.folder import Loop, LoopError
from anthrolab.loop.paired import Quantity, Verdict, compare, outcome_of, sentences, verdict_of
from anthrolab.loop.skill_files import mend_skills, read_evolution
from anthrolab.runtime.dialogue import Record
from anthrolab.yaml_files import explain

ARMS = ("before", "after")
RESULT = "result.json"


class SkillTest(Record):
    """The A/B of a round, as in `result.json`. versions: of the rewritten skill, before and after (the other two are equal);
    counts: dialogues of each arm by status, and `planned`; said: what can be said of it, in sentences."""

    round: int
    skill: str | None
    versions: list[str | None]
    system: str
    judge: str
    judge_identity: str
    cases: list[str]
    samples: int
    seed: int
    counts: dict[str, dict[str, int]]
    quantities: list[Quantity]
    verdict: Verdict
    said: list[str] = Field(default=[])


def no_limit(_run: Run) -> Effort:
    """What an arm may take where nothing else is said."""
    return NO_LIMIT


def run_ab(
    loop: Loop, number: int, *, samples: int = 1, rubric_file: Path | None = None, systems_file: Path | None = None,
    cards_dir: Path | None = None, effort_for: Callable[[Run], Effort] = no_limit, progress: Progress = print,
) -> SkillTest:  # fmt: skip
    """Generate and judge the held-back cases with both sets of skills (what is on disk is not asked again), compare them,
    and write `ab/<round>/result.json`. LoopError if the round rewrote no skill, or nothing is held back.

    Both arms have the same cases, seed, partner and judge; the partner reads the same skills as the tested system.
    effort_for: what an arm may take, given its run. The caller holds the loop's lock.
    """
    settings, evolution = loop.settings(), read_evolution(loop, number)
    if evolution is None or evolution.outcome != "rewritten":
        raise LoopError(f"{loop.path}: round {number} rewrote no skill, so there is nothing to compare; name a round that did")
    library, rubric = load_library(cards_dir or default_cards_dir()), load_rubric(rubric_file)
    cases = [case.id for case in select_cases(library, None) if case.binding in settings.held_back]
    if not cases:
        raise LoopError(f"{loop.path}: holds no binding back, so every case has taught the skills; begin a loop with held-back bindings")
    arms = {}
    mend_skills(loop)
    for arm, pins in zip(ARMS, evolution.pins(), strict=True):
        progress(f"A/B of round {number}, {arm}: {', '.join(f'{n} {v}' for n, v in pins.items())}")
        run = Run(loop.ab_dir(number) / "runs" / arm)
        generate(
            run.path, settings.system, cases=cases, samples=samples, partner=settings.partner, max_messages=settings.max_messages,
            window=settings.window, summary=settings.summary, skills=pins, seed=settings.seed, systems_file=systems_file,
            cards_dir=cards_dir, skills_dir=loop.skills_dir, effort=effort_for(run), progress=progress,
        )  # fmt: skip
        judge_run(
            run.path, settings.judge, rubric_file=rubric_file, systems_file=systems_file, cards_dir=cards_dir, effort=effort_for(run),
            progress=progress,
        )  # fmt: skip
        arms[arm] = filter_run(run, settings.judge, library, rubric, settings.thresholds)
    planned = len(cases) * samples
    counts = {arm: {"planned": planned, **dict(counted(found).items())} for arm, found in arms.items()}
    before, after = ([outcome_of(f) for f in arms[arm]] for arm in ARMS)
    quantities = compare(before, after, [d.id for d in rubric.dimensions], seed=settings.seed)
    verdict = verdict_of(quantities[0], next((q for q in quantities if q.name == "valid"), None))
    result = SkillTest(
        round=number, skill=evolution.skill, versions=[evolution.before, evolution.after], system=settings.system,
        judge=settings.judge, judge_identity=run.manifest()["judges"][settings.judge]["identity"], cases=cases,
        samples=samples, seed=settings.seed, counts=counts, quantities=quantities, verdict=verdict,
        said=sentences(quantities, verdict, counts),
    )  # fmt: skip
    write_atomic(loop.ab_dir(number) / RESULT, json.dumps(result.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")
    for line in result.said:
        progress(line)
    return result


def read_ab(loop: Loop, number: int) -> SkillTest | None:
    """The A/B of a round; None if there is none. LoopError if its file cannot be read."""
    path = loop.ab_dir(number) / RESULT
    if not path.exists():
        return None
    try:
        return SkillTest.model_validate_json(read_text(path))
    except ValidationError as e:
        raise LoopError(f"{path}: {'; '.join(explain(e, SkillTest))}; give the command that made it again") from e
