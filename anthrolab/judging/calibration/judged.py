"""Having dialogues judged, more than once if wanted; whatever was paid for is on disk at once and is not asked again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from anthrolab.cards.library import Library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, content_hash, cut_torn_line, only_one, whole_lines
from anthrolab.judging.llm import LLMJudge
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.judging.verdict import Judge, Verdict
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import Fault, ModelError
from anthrolab.models.engine import Engine, open_engine
from anthrolab.models.opening import open_model
from anthrolab.models.systems import System, SystemsError, default_systems_path, find_system, load_systems
from anthrolab.runtime.dialogue import Dialogue, Speaker

RULES = "rules"
"""The name of the rules judge."""

VERDICTS, CALLS = "verdicts.jsonl", "calls.jsonl"
_SAY_EVERY = 25
FINAL: dict[str, Fault] = {"model_error:unreachable": "unreachable", "model_error:over_budget": "over_budget"}
"""What a verdict says where asking on is no use."""


V = TypeVar("V", bound=Verdict)


class CheckError(AnthrolabError):
    """A check of a judge that cannot be made as asked."""


class Repeated(Verdict):
    """A verdict, of which judging of the same dialogue it is (from 1), and the content hash of the cards it was judged by."""

    repeat: int = Field(ge=1)
    cards_hash: str | None = None


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
) -> list[dict[str, Verdict]]:
    """The verdicts by dialogue id, one mapping a repeat; `repeats` says how often to judge each dialogue.

    `name` is "rules" or a system that serves as model judge. A repeat asks a model judge everything anew. Verdicts on
    disk under the same judge, rubric, dialogue and cards are taken; incomplete ones (a call got no answer) are asked for
    again. A judge whose endpoint is unreachable ends the command with its ModelError; what was judged before stays.
    """
    hashes = {key: content_hash(d.to_line()) for key, d in dialogues.items()}
    scenarios = library.all_scenarios()
    cards = {key: _cards_hash(d.cards_of(library.personas), scenarios.get(d.scenario or "")) for key, d in dialogues.items()}
    found: list[dict[str, Verdict]] = []
    async with open_judge(name, rubric, out / CALLS, systems_file) as (judge_of, at_once):
        identity = judge_of("").identity
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
            await judge_each(judge_of(f"repeat-{repeat}" if repeat > 1 else ""), todo.values(), library, at_once, keep)
            found.append({key: there[repeat, key] for key in wanted})
    return found


async def judge_each(
    judge: Judge, dialogues: Iterable[Dialogue], library: Library, at_once: int, keep: Callable[[Verdict], None]
) -> None:
    """Have dialogues judged, `at_once` of them at a time; `keep` is given every verdict as soon as it is there.

    A judge that cannot be asked any more (unreachable, no money left) ends it with its ModelError; what was judged before
    is kept.
    """
    room, scenarios = asyncio.Semaphore(at_once), library.all_scenarios()

    async def one(dialogue: Dialogue) -> None:
        async with room:
            scenario = scenarios.get(dialogue.scenario or "")
            verdict = await judge.judge(dialogue, dialogue.cards_of(library.personas), scenario)
        keep(verdict)
        for error in verdict.errors:
            if error.fault in FINAL:
                raise ModelError(FINAL[error.fault], error.message)

    async with asyncio.TaskGroup() as group:
        for dialogue in dialogues:
            group.create_task(one(dialogue))


def _cards_hash(personas: Mapping[Speaker, Persona], scenario: Scenario | None) -> str:
    """What a judge is shown beside the dialogue."""
    shown = {side: persona.model_dump(mode="json") for side, persona in personas.items()}
    return content_hash({"personas": shown, "scenario": scenario.model_dump(mode="json") if scenario else None})


def locked(out: Path) -> AbstractContextManager[None]:
    """Only one command at a time works in the folder; CheckError if another is at it."""
    return only_one(out, CheckError(f"{out}: another anthrolab command works here; wait for it or use another --out"))


def _no_limit(_system: System) -> AbstractAsyncContextManager[Engine]:
    return open_engine()


@asynccontextmanager
async def open_judge(
    name: str,
    rubric: Rubric,
    calls: Path,
    systems_file: Path | None,
    engine_for: Callable[[System], AbstractAsyncContextManager[Engine]] = _no_limit,
) -> AsyncIterator[tuple[Callable[[str], Judge], int]]:
    """The judge under a salt (see LLMJudge), and how many dialogues it takes at once; its calls are logged in `calls`.

    engine_for: opens the engine that a model judge's calls go through and are paid by.
    """
    if name == RULES:
        rules = RulesJudge(rubric)
        yield lambda _salt: rules, 1
        return
    system = find_system(load_systems(systems_file or default_systems_path()), name)
    if system.policy != "chat":
        raise SystemsError(f"system '{name}': cannot judge: a judge is a chat model (policy: chat); name another")
    async with open_model(system) as bare, engine_for(system) as engine:
        client = Recorded(bare, CallLog(calls, engine), engine.meter.toll(system, "judge"))
        yield lambda salt: LLMJudge(client, system, rubric, salt=salt), system.most_at_once


def verdicts_in(path: Path, kind: type[V]) -> Iterator[V]:
    """The verdicts of a file, if there is one, in its order; a last line that was half written is cut off.

    CheckError names the line of one that is none.
    """
    cut_torn_line(path)
    for number, line in enumerate(whole_lines(path) if path.exists() else (), 1):
        try:
            yield kind.model_validate_json(line)
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise CheckError(f"{path}: line {number}: {where}: {first['msg']}; remove that line and do it again") from e
