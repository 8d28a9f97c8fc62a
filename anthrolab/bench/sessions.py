"""A series of sessions: the same pair, days apart in virtual time, each remembering the other from before."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.manifest import begin, code_hash, library_versions, with_new
from anthrolab.bench.plan import Progress, troubles
from anthrolab.bench.settings import NO_PACE, Limits, Pace, State, chat_system_for
from anthrolab.bench.stage import Stage
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.memory import Memory
from anthrolab.cards.series import Series
from anthrolab.files import content_hash
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import ModelError
from anthrolab.models.engine import Engine
from anthrolab.models.opening import model_identity, open_models
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System, default_systems_path, find_partner, find_system, load_systems
from anthrolab.runtime.auxiliary import Auxiliary
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.memory import Updater
from anthrolab.runtime.seat import seats
from anthrolab.sync import run_async


def play_series(
    run_dir: Path,
    system: str,
    series_id: str,
    memory: str,
    *,
    partner: str | None = None,
    role: Speaker = "a",
    max_messages: int = 50,
    window: int = 12,
    pace: Pace = NO_PACE,
    summary: str = "rules",
    skills: Mapping[str, str] | None = None,
    seed: int = 0,
    systems_file: Path | None = None,
    cards_dir: Path | None = None,
    skills_dir: Path | None = None,
    effort: Effort = NO_LIMIT,
    progress: Progress = print,
) -> dict[str, int]:
    """Play a series session by session; after each one `memory`, a chat system, updates what each remembers.

    Every version of a memory stays in `memories.jsonl`. Returns counts: `planned`, `done` (sessions), `updates`
    and `failed_updates` (the memory then stayed as it was). What is on disk is not asked for again. A model that
    fails, or would cost too much (`effort`), ends the command with ModelError; the same command goes on from there.
    """
    library = load_library(cards_dir or default_cards_dir())
    series = library.find_series(series_id)
    known = load_systems(systems_file or default_systems_path())
    tested = find_system(known, system)
    reference = find_partner(known, tested, partner)
    remembers = chat_system_for("--memory", memory, known)
    limits = Limits(max_messages=max_messages, window=window, pace=pace)
    state = State.of(skills_dir, cards_dir, skills or {}, summary, known)
    run = Run(run_dir)
    with run.locked():
        run.mend()
        settings = {"series": series.id, "memory": remembers.model_dump(mode="json"), "role": role}
        hashes = {"series": content_hash(series.model_dump(mode="json")), "memory": model_identity(remembers)}
        manifest, _old = begin(run, tested, reference, library, limits, state, seed, settings, hashes)
        run.write_manifest(manifest)
        counts = _count(run, series)
        if counts["done"] < counts["planned"] or counts["updates"] < 2 * counts["planned"]:
            manifest["code"] = with_new(manifest["code"], code_hash())
            manifest["versions"] = with_new(manifest["versions"], library_versions())
            run.write_manifest({**manifest, "counts": counts})
            left = counts["planned"] - counts["done"]
            progress(f"{tested.name} and {reference.name}, series {series.id}: {left} of {counts['planned']} sessions to have; {state.in_words()}")
            try:
                opened = effort.engine(run, *known.values())
                run_async(_sessions(run, manifest["run"], series, library, tested, reference, remembers, role, limits, state, seed, opened, progress))
            finally:
                counts = _count(run, series)
                run.write_manifest({**manifest, "counts": counts})
    return counts


def _count(run: Run, series: Series) -> dict[str, int]:
    updates = run.memory_updates()
    return {
        "planned": len(series.sessions),
        "done": len(run.dialogues()),
        "updates": len(updates),
        "failed_updates": sum(u.error is not None for u in updates),
    }


async def _sessions(
    run: Run, name: str, series: Series, library: Library, tested: System, reference: System, remembers: System,
    role: Speaker, limits: Limits, state: State, seed: int, opened: AbstractAsyncContextManager[Engine], progress: Progress,
) -> None:  # fmt: skip
    a, b = library.personas[series.persona_a], library.personas[series.persona_b]
    owners: dict[Speaker, tuple[str, str]] = {"a": (a.id, b.id), "b": (b.id, a.id)}
    memories: dict[tuple[str, str], Memory] = dict(library.memories)
    done = run.dialogues()
    updates = {(u.after, u.owner): u for u in run.memory_updates()}
    async with open_models() as models, opened as engine:
        stage = await Stage.open(models, engine, tested, reference, limits, state)
        writer, ladder = await models.client(remembers), Ladder()
        for scenario in series.sessions:
            dialogue_id = f"{name}-{scenario.id}"
            log = CallLog(run.calls / f"{scenario.id}.jsonl", engine)
            salt = f"{seed}/{scenario.id}"
            try:
                dialogue = done.get(dialogue_id)
                if dialogue is None:
                    table = seats(a, b, scenario, memories=memories, skills=state.skills)
                    dialogue = await stage.play(dialogue_id, table, log, salt, tested_role=role)
                    run.add_dialogue(dialogue)
                updater = Updater(Auxiliary(Recorded(writer, log, engine.meter.toll(remembers, "memory")), remembers, ladder), salt)
                for speaker, pair in owners.items():
                    update = updates.get((dialogue_id, pair[0]))
                    if update is None:
                        update = await updater.update(memories.get(pair), dialogue, speaker)
                        run.add_memory_update(update)
                    if update.memory is not None:
                        memories[pair] = update.memory
                    if update.error is not None:
                        progress(f"  {scenario.id}: {pair[0]} remembers only what was before: {update.error} (another --run asks anew)")
            except ModelError as e:
                said = f"{scenario.id}: {e}; the same command goes on from here"
                raise ModelError(e.fault, said, e.side, e.system) from e
            kept = sum(len(memories[pair].lines()) for pair in owners.values() if pair in memories)
            progress(
                f"  {scenario.id}: {len(dialogue.messages)} messages, {dialogue.stop}{troubles(dialogue)}; "
                f"{kept} lines remembered"
            )
