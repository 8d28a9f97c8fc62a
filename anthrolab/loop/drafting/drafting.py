"""Drafting cards at scale: a model writes personas and scenarios to a plan, round by round (paper sections 4.5 and 4.6, Table 1,
Figure 2).

A round is the first slots that are still to be done. Their drafts are asked for at the same time; when all are there, they are
checked in the order of the slots, alone and against everything accepted before. So what is accepted does not depend on which reply
came first, and a command that was killed goes on with the same round and the same requests. A rejected draft comes again in the
next round with every reason against it. Scenarios begin when no persona is left to be drafted.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from anthrolab.bench.effort import NO_LIMIT, Effort, cache_report
from anthrolab.bench.plan import Progress
from anthrolab.bench.settings import chat_system_for
from anthrolab.bench.ticker import Ticker
from anthrolab.bench.workers import work_through
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.loop.drafting.corpus import Corpus
from anthrolab.loop.drafting.desk import Desk, Slot
from anthrolab.loop.drafting.folder import DraftFolder, DraftingError
from anthrolab.loop.drafting.plan import PersonaSlot, make_plan
from anthrolab.loop.drafting.quotas import load_quotas
from anthrolab.loop.drafting.report import Counts, closing_lines, counts_of, make_report
from anthrolab.loop.drafting.schema import persona_schema, scenario_schema
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import FINAL_FAULTS, ModelError, Reply
from anthrolab.models.engine import Engine
from anthrolab.models.opening import open_models
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System, default_systems_path, load_systems
from anthrolab.sync import run_async

PERSONAS, SCENARIOS, BINDINGS = 261, 334, 400
"""The paper's scale (section 4.6: 334 scenario cards, 261 persona cards, 400 directed role pairs)."""
ATTEMPTS = 3


def draft_cards(
    out: Path,
    writer: str,
    *,
    personas: int = PERSONAS,
    scenarios: int = SCENARIOS,
    bindings: int | None = None,
    quotas_file: Path | None = None,
    seed: int = 0,
    attempts: int = ATTEMPTS,
    systems_file: Path | None = None,
    effort: Effort = NO_LIMIT,
    progress: Progress = print,
) -> Counts:
    """Have every planned card of a folder that is not there yet; returns what is there and what is not.

    bindings: the paper's ratio to the scenarios if None. attempts: drafts of one card, over all commands; a slot that used them
    up stays open until a command allows more. New cards are also kept apart from those that come with anthrolab: training data
    must not copy the benchmark.
    What is on disk is not asked for again. A slot whose model did not answer is left for the next command. ModelError if the
    writer cannot be reached or may cost no more, DraftingError if the folder was begun with other settings, QuotaError and
    YamlError for quotas.
    """
    if attempts < 1:
        raise DraftingError(f"--attempts {attempts}: at least 1")
    if bindings is None:
        bindings = max(scenarios, round(scenarios * BINDINGS / SCENARIOS))
    known = load_systems(systems_file or default_systems_path())
    system = chat_system_for("--writer", writer, known)
    quotas = load_quotas(quotas_file)
    apart = load_library(default_cards_dir())
    settings = {
        "personas": personas, "scenarios": scenarios, "bindings": bindings, "seed": seed,
        "quotas": {"personas": quotas.personas, "scenarios": quotas.scenarios},
    }  # fmt: skip
    taken = [p.name for p in apart.personas.values()]
    folder = DraftFolder(out)
    plan = make_plan(quotas, personas, scenarios, bindings, seed, taken)  # before a folder is made for a plan that cannot be
    with folder.locked():
        plan = folder.begin(settings, plan)
        folder.read_rounds()
        desk = Desk(folder, plan, system, Corpus(apart), attempts)
        if todo := len(desk.open_slots()):
            progress(f"{system.name} drafts into {out}: {todo} of {len(plan.personas) + len(plan.scenarios)} cards to have")
            opened = effort.engine(folder.run, *known.values())
            try:
                run_async(_have_all(desk, opened, effort, progress))
            except (ModelError, KeyboardInterrupt):
                _settle(desk, known, progress)
                raise
        return _settle(desk, known, progress)


async def _have_all(desk: Desk, opened: AbstractAsyncContextManager[Engine], effort: Effort, progress: Progress) -> None:
    """Round after round until nothing is left that can be done. A final fault ends all; its round is asked for again by the
    next command, from the call log where replies came."""
    async with open_models() as models, opened as engine:
        log = CallLog(desk.folder.run.calls / "writer.jsonl", engine)
        client = Recorded(await models.client(desk.writer), log, engine.meter.toll(desk.writer, "writer"))
        ladder, ticker = Ladder(), Ticker(len(desk.open_slots()), engine.meter)
        replies: dict[str, Reply] = {}
        faults: list[ModelError] = []

        async def ask(slot: Slot) -> None:
            schema = persona_schema() if isinstance(slot, PersonaSlot) else scenario_schema()
            replies[slot.id] = (await ladder.ask(client, desk.request(slot, log), schema))[0]

        def failed(slot: Slot, e: ModelError) -> None:
            faults.append(e)
            desk.unanswered[slot.id] = e

        answered = False
        while batch := desk.next_round():
            replies.clear()
            faults.clear()
            await work_through(
                batch, ask, failed, most=len(batch), flows=models.flows, calls_each=1, deadline_s=effort.deadline_s,
                beat=lambda: progress(f"  {ticker.line()}"),
            )  # fmt: skip
            ends = [e for e in faults if e.fault in FINAL_FAULTS]
            if ends or (faults and not replies and not answered):  # a server that answers nothing is not asked hundreds of times
                raise (ends or faults)[0]
            answered = answered or bool(replies)
            outcomes = desk.settle([(slot, replies[slot.id]) for slot in batch if slot.id in replies])
            taken = [o for o in outcomes if o.card is not None]
            for outcome in taken:
                ticker.finish(outcome.attempt)
            lost = f", {len(faults)} not answered ({faults[0].fault}: {faults[0]})" if faults else ""
            progress(f"  {batch[0].id} to {batch[-1].id}: {len(taken)} of {len(outcomes)} drafts accepted{lost}   ({ticker.line()})")
    for line in cache_report(engine):
        progress(line)


def _settle(desk: Desk, systems: Mapping[str, System], progress: Progress) -> Counts:
    """Write the report and say what it says."""
    report = make_report(desk, systems)
    desk.folder.write_report(report)
    for line in closing_lines(desk.folder.path, report):
        progress(line)
    return counts_of(report)
