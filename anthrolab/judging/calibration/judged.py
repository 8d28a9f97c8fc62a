"""Having dialogues judged, more than once if wanted; whatever was paid for is on disk at once and is not asked again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

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
from anthrolab.models.client import ModelClient, ModelError, Reply, Request
from anthrolab.models.opening import open_model
from anthrolab.models.systems import SystemsError, default_systems_path, find_system, load_systems
from anthrolab.runtime.dialogue import Dialogue, Speaker

RULES = "rules"
"""The name of the rules judge."""

VERDICTS, CALLS = "verdicts.jsonl", "calls.jsonl"
_SAY_EVERY = 25


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
    async with _open_judge(name, rubric, out, systems_file) as (judge_of, concurrency):
        room = asyncio.Semaphore(concurrency)
        identity = judge_of(1).identity
        there = {
            (v.repeat, v.dialogue_id): v for v in _on_disk(out)
            if v.complete and v.judge == name and v.judge_identity == identity and v.rubric == rubric.hash
            and v.dialogue_id in dialogues
            and (v.dialogue_hash, v.cards_hash) == (hashes[v.dialogue_id], cards[v.dialogue_id])
        }  # fmt: skip
        for repeat in range(1, max(repeats.values(), default=0) + 1):
            judge = judge_of(repeat)
            wanted = [key for key in dialogues if repeats[key] >= repeat]
            todo = [key for key in wanted if (repeat, key) not in there]
            if todo and name != RULES:
                progress(f"judge {name}, repeat {repeat}: {len(todo)} of {len(wanted)} dialogues to judge")

            async def one(key: str, judge: Judge, repeat: int, done: list[str]) -> None:
                dialogue = dialogues[key]
                async with room:
                    scenario = scenarios.get(dialogue.scenario or "")
                    verdict = await judge.judge(dialogue, dialogue.cards_of(library.personas), scenario)
                fields = {**dict(verdict), "dialogue_hash": hashes[key], "cards_hash": cards[key], "repeat": repeat}
                kept = Repeated.model_validate(fields)
                append_line(out / VERDICTS, kept.to_line())
                there[repeat, key] = kept
                gone = next((e for e in verdict.errors if e.fault == "model_error:unreachable"), None)
                if gone:
                    raise ModelError("unreachable", gone.message)
                done.append(key)
                if name != RULES and len(done) % _SAY_EVERY == 0:
                    progress(f"  {len(done)} judged")

            done: list[str] = []
            async with asyncio.TaskGroup() as group:
                for key in todo:
                    group.create_task(one(key, judge, repeat, done))
            found.append({key: there[repeat, key] for key in wanted})
    return found


def _cards_hash(personas: Mapping[Speaker, Persona], scenario: Scenario | None) -> str:
    """What a judge is shown beside the dialogue."""
    shown = {side: persona.model_dump(mode="json") for side, persona in personas.items()}
    return content_hash({"personas": shown, "scenario": scenario.model_dump(mode="json") if scenario else None})


def locked(out: Path) -> AbstractContextManager[None]:
    """Only one command at a time works in the folder; CheckError if another is at it."""
    return only_one(out, CheckError(f"{out}: another anthrolab command works here; wait for it or use another --out"))


class _Anew:
    """A client that has the requests of one repeat drawn anew; the first is what any other command would ask."""

    def __init__(self, client: ModelClient, repeat: int) -> None:
        self.client = client
        self.repeat = repeat

    @property
    def identity(self) -> str:
        return self.client.identity

    async def ask(self, request: Request) -> Reply:
        if self.repeat > 1:
            request = replace(request, salt=f"{request.salt} repeat-{self.repeat}".strip())
        return await self.client.ask(request)


@asynccontextmanager
async def _open_judge(
    name: str, rubric: Rubric, out: Path, systems_file: Path | None
) -> AsyncIterator[tuple[Callable[[int], Judge], int]]:
    """The judge of each repeat, and how many dialogues it takes at once."""
    if name == RULES:
        rules = RulesJudge(rubric)
        yield lambda _repeat: rules, 1
        return
    system = find_system(load_systems(systems_file or default_systems_path()), name)
    if system.policy != "chat":
        raise SystemsError(f"system '{name}': cannot judge: a judge is a chat model (policy: chat); name another")
    async with open_model(system) as bare:
        client = Recorded(bare, CallLog(out / CALLS))
        yield lambda repeat: LLMJudge(_Anew(client, repeat), system, rubric), system.concurrency


def _on_disk(out: Path) -> Iterator[Repeated]:
    path = out / VERDICTS
    cut_torn_line(path)
    for number, line in enumerate(whole_lines(path) if path.exists() else (), 1):
        try:
            yield Repeated.model_validate_json(line)
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise CheckError(f"{path}: line {number}: {where}: {first['msg']}; remove that line and check again") from e
