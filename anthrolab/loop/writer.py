"""What the writer does in a round: it repairs what was rejected, then rewrites a skill (paper section 4.5)."""

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext

from anthrolab.bench.effort import cache_report
from anthrolab.bench.store import Run
from anthrolab.judging.calibration.judged import open_judge
from anthrolab.loop.context import Context
from anthrolab.loop.evolution import evolve_skills
from anthrolab.loop.filter import Filtered
from anthrolab.loop.folder import REPAIRS
from anthrolab.loop.repair import repair_all
from anthrolab.loop.rewrite import Repairer
from anthrolab.loop.skill_files import Evolution
from anthrolab.loop.workshop import Workshop
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.opening import open_models
from anthrolab.runtime.auxiliary import Auxiliary


async def repair_and_evolve(
    shop: Workshop, number: int, filtered: list[Filtered], stop: Callable[[Counter[str]], None]
) -> tuple[Counter[str], Evolution]:
    """Repairs by outcome, and what became of the skills. Held-back dialogues are not repaired.

    stop: is given the faults for which repairs got no answer, and raises if the command is to end there.
    """
    loop, settings, folder, run = shop.loop, shop.settings, shop.loop.round_dir(number), shop.loop.run(number)
    assert settings.writer is not None
    system, context = shop.systems[settings.writer], Context.of_run(run, shop.library, loop.skills_dir)
    may_take = shop.effort_for(Run(folder))
    async with open_models() as models, may_take.engine(Run(folder), *shop.systems.values()) as engine:
        client, toll = await models.client(system), engine.meter.toll(system, "writer")

        def writer(log: str) -> Auxiliary:
            return Auxiliary(Recorded(client, CallLog(folder / "calls" / log, engine), toll), system)

        # the log of the run's judge: what it was asked about turns that stay as they are is not asked again
        calls = run.calls / f"judge-{settings.judge}.jsonl"
        async with open_judge(settings.judge, shop.rubric, calls, shop.files.systems, lambda _known: nullcontext(engine), models) as opened:
            by = Repairer(
                writer("repair.jsonl"), opened.judge, shop.rubric, shop.hints, shop.library, context.rules, settings.thresholds,
                settings.repair_attempts, settings.most_changes, round=number,
            )  # fmt: skip
            own = [f for f in filtered if f.binding not in settings.held_back]
            repairs = await repair_all(own, by, folder / REPAIRS, flows=models.flows, deadline_s=may_take.deadline_s)
        outcomes = Counter(r.outcome for r in repairs)
        stop(Counter(r.fault or "unknown" for r in repairs if r.outcome == "model_error"))
        shop.progress(f"round {number}: repairs: {', '.join(f'{n} {outcome}' for outcome, n in outcomes.items()) or 'nothing to repair'}")
        evolution = await evolve_skills(loop, number, writer("skills.jsonl"), shop.rubric, shop.library)
        for line in cache_report(engine):
            shop.progress(line)
    return Counter({str(k): n for k, n in outcomes.items()}), evolution
