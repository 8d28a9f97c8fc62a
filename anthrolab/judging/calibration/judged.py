"""Having dialogues judged, more than once if wanted; whatever was paid for is on disk at once and is not asked again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from anthrolab.cards.library import Library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, content_hash, cut_torn_line, only_one, whole_lines
from anthrolab.judging.llm import LLMJudge
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.judging.verdict import RULES, Judge, Verdict
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import FINAL_FAULTS, ModelError
from anthrolab.models.engine import Engine, open_engine
from anthrolab.models.flow import Flow
from anthrolab.models.opening import Models, open_models
from anthrolab.models.systems import System, SystemsError, default_systems_path, find_system, load_systems
from anthrolab.runtime.dialogue import Dialogue, Speaker

VERDICTS, CALLS = "verdicts.jsonl", "calls"
_SAY_EVERY = 25

EngineFor = Callable[[Iterable[System]], AbstractAsyncContextManager[Engine]]
"""Opens the engine that a model judge's calls go through and are paid by; it is given all systems that are known, for
what they cost."""

V = TypeVar("V", bound=Verdict)


class CheckError(AnthrolabError):
    """A check of a judge that cannot be made as asked."""


class Repeated(Verdict):
    """A verdict, of which judging of the same dialogue it is (from 1), and the content hash of the cards it was judged by."""

    repeat: int = Field(ge=1)
    cards_hash: str | None = None


def no_limit(_systems: Iterable[System]) -> AbstractAsyncContextManager[Engine]:
    """An engine without a shared cache and without a limit on money."""
    return open_engine()


async def judge_repeatedly(
    name: str,
    dialogues: Mapping[str, Dialogue],
    repeats: Mapping[str, int],
    library: Library,
    rubric: Rubric,
    out: Path,
    *,
    systems_file: Path | None,
    progress: Callable[[str], None],
    engine_for: EngineFor = no_limit,
    deadline_s: float | None = None,
) -> list[dict[str, Verdict]]:
    """The verdicts by dialogue id, one mapping a repeat; `repeats` says how often to judge each dialogue.

    `name` is "rules" or a system that serves as model judge. A repeat asks a model judge everything anew. Verdicts on
    disk under the same judge, rubric, dialogue and cards are taken; incomplete ones (a call got no answer) are asked for
    again. A judge whose endpoint is unreachable, or that would cost too much, ends the command with its ModelError; what
    was judged before stays. deadline_s: see `judge_each`. One command at a time may work in `out` (see `locked`).
    """
    cut_torn_line(out / VERDICTS)
    hashes = {key: content_hash(d.to_line()) for key, d in dialogues.items()}
    scenarios = library.all_scenarios()
    cards = {key: _cards_hash(d.cards_of(library.personas), scenarios.get(d.scenario or "")) for key, d in dialogues.items()}
    found: list[dict[str, Verdict]] = []
    async with open_judge(name, rubric, out / CALLS / f"judge-{name}.jsonl", systems_file, engine_for) as opened:
        identity = opened.judge.identity
        there = {
            (v.repeat, v.dialogue_id): v for v in verdicts_in(out / VERDICTS, Repeated)
            if v.complete and v.judge == name and v.judge_identity == identity and v.rubric == rubric.hash
            and v.dialogue_id in dialogues
            and (v.dialogue_hash, v.cards_hash) == (hashes[v.dialogue_id], cards[v.dialogue_id])
        }  # fmt: skip
        for repeat in range(1, max(repeats.values(), default=0) + 1):
            wanted = [key for key in dialogues if repeats[key] >= repeat]
            todo = {key: dialogues[key] for key in wanted if (repeat, key) not in there}
            if todo and name != RULES:
                progress(f"judge {name}, repeat {repeat}: {len(todo)} of {len(wanted)} dialogues to judge")

            def keep(verdict: Verdict, repeat: int = repeat, todo: Mapping[str, Dialogue] = todo) -> None:
                key = verdict.dialogue_id
                fields = {**dict(verdict), "dialogue_hash": hashes[key], "cards_hash": cards[key], "repeat": repeat}
                there[repeat, key] = Repeated.model_validate(fields)
                append_line(out / VERDICTS, there[repeat, key].to_line())
                done = sum((repeat, key) in there for key in todo)
                if name != RULES and done % _SAY_EVERY == 0:
                    progress(f"  {done} judged")

            # the first is what any other command would ask
            judge = opened.judge if repeat == 1 else opened.salted(f"repeat-{repeat}")
            await judge_each(judge, todo.values(), library, opened.at_once, keep, deadline_s=deadline_s)
            found.append({key: there[repeat, key] for key in wanted})
    return found


async def judge_each(
    judge: Judge,
    dialogues: Iterable[Dialogue],
    library: Library,
    at_once: int,
    keep: Callable[[Verdict], None],
    *,
    deadline_s: float | None = None,
) -> None:
    """Have dialogues judged, `at_once` of them at a time; `keep` is given every verdict as soon as it is there.

    A dialogue that takes longer than `deadline_s` seconds gets a verdict without answers (`LLMJudge.unanswered`, fault
    `deadline`). A judge that cannot be asked any more (FINAL_FAULTS) ends it with its ModelError; what was judged before is
    kept.
    """
    room, scenarios = asyncio.Semaphore(at_once), library.all_scenarios()

    async def one(dialogue: Dialogue) -> None:
        people, scenario = dialogue.cards_of(library.personas), scenarios.get(dialogue.scenario or "")
        async with room:
            try:
                async with asyncio.timeout(deadline_s) as limit:
                    verdict = await judge.judge(dialogue, people, scenario)
            except TimeoutError:
                if not limit.expired() or not isinstance(judge, LLMJudge):
                    raise
                late = f"took longer than {deadline_s:g} s; what was answered is kept: raise --deadline and go on"
                verdict = judge.unanswered(dialogue, people, scenario, "deadline", late)
        keep(verdict)
        raise_final(verdict)

    async with asyncio.TaskGroup() as group:
        for dialogue in dialogues:
            group.create_task(one(dialogue))


def raise_final(verdict: Verdict) -> None:
    """ModelError if a call of the verdict met one of FINAL_FAULTS: no other dialogue need be tried."""
    for error in verdict.errors:
        for fault in FINAL_FAULTS:
            if error.fault == f"model_error:{fault}":
                raise ModelError(fault, error.message)


def _cards_hash(personas: Mapping[Speaker, Persona], scenario: Scenario | None) -> str:
    """What a judge is shown beside the dialogue."""
    shown = {side: persona.model_dump(mode="json") for side, persona in personas.items()}
    return content_hash({"personas": shown, "scenario": scenario.model_dump(mode="json") if scenario else None})


def locked(out: Path) -> AbstractContextManager[None]:
    """Only one command at a time works in the folder; CheckError if another is at it."""
    return only_one(out, CheckError(f"{out}: another anthrolab command works here; wait for it or use another --out"))


@dataclass(frozen=True)
class OpenedJudge:
    """A judge that can be asked.

    judge: as any command asks it; salted: the same one under a salt, by which a model judge is asked everything anew.
    described: what a manifest says of it: `kind` (rules or model), and of a model `system`, `params` and `server`.
    engine: what its calls go through; flows: those of its endpoint; at_once: how many dialogues it takes at a time.
    """

    judge: Judge
    salted: Callable[[str], Judge]
    described: Mapping[str, Any]
    engine: Engine = field(default_factory=Engine)
    flows: list[Flow] = field(default_factory=list)
    at_once: int = 1


@asynccontextmanager
async def open_judge(
    name: str, rubric: Rubric, calls: Path, systems_file: Path | None, engine_for: EngineFor = no_limit, models: Models | None = None
) -> AsyncIterator[OpenedJudge]:
    """The judge of a name: RULES, or a system that serves as model judge, whose calls are logged in the file `calls`.

    `models`: where its client comes from, if other systems are open already. SystemsError if there is no such system, or it is
    no chat model.
    """
    if name == RULES:
        rules = RulesJudge(rubric)
        yield OpenedJudge(rules, lambda _salt: rules, {"kind": "rules"})
        return
    known = load_systems(systems_file or default_systems_path())
    system = find_system(known, name)
    if system.policy != "chat":
        raise SystemsError(f"system '{name}': cannot judge: a judge is a chat model (policy: chat); name another")
    async with nullcontext(models) if models else open_models() as opened, engine_for(known.values()) as engine:
        client = Recorded(await opened.client(system), CallLog(calls, engine), engine.meter.toll(system, "judge"))

        def salted(salt: str) -> Judge:
            return LLMJudge(client, system, rubric, salt=salt)

        described = {
            "kind": "model", "system": system.model_dump(mode="json"), "params": system.as_judge().body(), "server": client.identity,
        }  # fmt: skip
        yield OpenedJudge(salted(""), salted, described, engine, opened.flows, system.most_at_once)


def verdicts_in(path: Path, kind: type[V]) -> Iterator[V]:
    """The verdicts of a file, if there is one, in its order; a last line that is half written is passed over.

    CheckError names the line of one that is none.
    """
    for number, line in enumerate(whole_lines(path) if path.exists() else (), 1):
        try:
            yield kind.model_validate_json(line)
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise CheckError(f"{path}: line {number}: {where}: {first['msg']}; remove that line and do it again") from e
