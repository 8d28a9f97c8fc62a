"""How often a model keeps the JSON contract on asks that it was not trained on (a decision as `runtime/decision.py` reads it).

Every held-out sample's two messages are put to a system once, with no second ask and, unless it is wanted, no structured
output: what is measured is what the model has learnt, not what a grammar forces. A folder holds one check:

    <check>/contract.json    what is asked of whom; fixed by the first command
            rows.jsonl       one row a sample: {"id", "valid", "error", "recovered", "silent", "text"}
            failures.jsonl   samples that got no answer from the endpoint in the last command; they stay to be done
            calls/           every model call
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from anthrolab.bench.effort import NO_LIMIT, Effort, cache_report
from anthrolab.bench.plan import Progress
from anthrolab.bench.store import Run
from anthrolab.bench.ticker import Ticker
from anthrolab.bench.workers import work_through
from anthrolab.files import append_line, content_hash, cut_torn_line, only_one, read_text, whole_lines, write_atomic
from anthrolab.loop.sft.samples import Sample, read_samples
from anthrolab.metrics.stops import MODEL_FAULTS
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import FINAL_FAULTS, ModelError, Reply, Request
from anthrolab.models.opening import model_identity, open_models
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import OPERATION, System, default_systems_path, find_system, load_systems
from anthrolab.runtime.decision import decision_schema, parse_decision
from anthrolab.runtime.dialogue import STAMP
from anthrolab.runtime.schedule import Plan
from anthrolab.sync import run_async
from anthrolab.training.contract_result import ContractResult, Row, result_of
from anthrolab.training.settings import TrainingError

SETTINGS, ROWS, FAILURES = "contract.json", "rows.jsonl", "failures.jsonl"

MOST = 256
"""Requests at once on a server of one's own."""

MAX_DELAY_S = 600
"""The longest delay that the runtime tells speakers; a later time is valid and clipped."""

_NOW = re.compile(r"现在是 ?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


@dataclass
class _Check:
    run: Run
    system: System
    samples: list[Sample]
    structured: bool
    seed: int
    rows: dict[str, Row] = field(default_factory=dict)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        append_line(self.run.path / ROWS, json.dumps(asdict(row), ensure_ascii=False))
        self.rows[row.id] = row

    def fail(self, sample: Sample, e: ModelError) -> None:
        self.failures[sample.id] = {"id": sample.id, "fault": e.fault, "error": str(e)}

    def settle(self) -> ContractResult:
        order = [s.id for s in self.samples]
        done = [self.rows[i] for i in order if i in self.rows]
        self.run.settle(ROWS, (json.dumps(asdict(row), ensure_ascii=False) for row in done))
        self.run.settle(FAILURES, (json.dumps(self.failures[i], ensure_ascii=False) for i in order if i in self.failures))
        faults = [str(failure["fault"]) for failure in self.failures.values()]
        return result_of(self.system.name, self.structured, self.samples, done, faults)


def check_contract(
    system_name: str,
    samples_file: Path,
    out: Path,
    *,
    limit: int | None = None,
    seed: int = 0,
    structured: bool = False,
    systems_file: Path | None = None,
    effort: Effort = NO_LIMIT,
    progress: Progress = print,
) -> ContractResult:
    """Ask a chat system for the decision of every sample of a JSONL file (or of `limit` of them, chosen by `seed`).

    out: the check's folder. The same command again asks nothing that was answered, and does what is left. A reply that is
    empty, cut or refused is the model's own and breaks the contract; a fault of the endpoint is nobody's and is counted apart.
    TrainingError for a system that is no chat system, or a folder that holds another check.
    """
    system = find_system(load_systems(systems_file or default_systems_path()), system_name)
    if system.policy != "chat":
        raise TrainingError(
            f"{system.name}: policy is {system.policy}, but the contract is one of chats; add a system with policy: chat for the same "
            "weights (a GGUF with the chat template of the training)"
        )
    samples = chosen(read_samples(samples_file), limit, seed)
    if not samples:
        raise TrainingError(f"{samples_file}: holds no samples; make the data first")
    for sample in samples:
        expected(sample)
    run = Run(out)
    with only_one(out, TrainingError(f"{out}: another command is at work in this folder; wait until it is done")):
        _begin(run, system, samples, structured, seed)
        check = _Check(run, system, samples, structured, seed, _read_rows(out / ROWS))
        try:
            if any(s.id not in check.rows for s in samples):
                run_async(_ask_all(check, effort, progress))
        finally:
            result = check.settle()
        return result


def chosen(samples: Sequence[Sample], limit: int | None, seed: int) -> list[Sample]:
    """`limit` of the samples (None: all) in the order of the file; fewer of the same seed are among the more."""
    if limit is None or limit >= len(samples):
        return list(samples)
    if limit < 1:
        raise TrainingError(f"limit is {limit}; ask at least 1 sample")
    taken = set(sorted((s.id for s in samples), key=lambda i: content_hash(f"{seed}/{i}"))[:limit])
    return [s for s in samples if s.id in taken]


def expected(sample: Sample) -> tuple[str, datetime]:
    """The own name that a decision must carry, and the time of the ask (the last one that the prompt states)."""
    times = _NOW.findall(sample.user)
    try:
        return str(json.loads(sample.completion)["role"]), datetime.strptime(times[-1], STAMP)
    except (ValueError, KeyError, TypeError, IndexError):
        raise TrainingError(f"sample {sample.id}: states no role in its completion or no time in its prompt; make the data again") from None


async def _ask_all(check: _Check, effort: Effort, progress: Progress) -> None:
    system = check.system
    todo = [s for s in check.samples if s.id not in check.rows]
    batches = _batches(todo, system.embedded)
    async with open_models() as models, effort.engine(check.run, system) as engine:
        log = CallLog(check.run.calls / "tested.jsonl", engine)
        client = Recorded(await models.client(system), log, engine.meter.toll(system, "tested"))
        ladder, ticker = Ladder(), Ticker(len(todo), engine.meter)

        async def one(sample: Sample) -> None:
            role, now = expected(sample)
            request = _request(check, sample)
            try:
                if check.structured:
                    reply, _ = await ladder.ask(client, request, decision_schema(role))
                else:
                    reply = await client.ask(request)
            except ModelError as e:
                if e.fault not in MODEL_FAULTS:
                    raise
                check.add(Row(sample.id, False, f"no reply ({e.fault})", None, False, ""))
            else:
                check.add(_read(sample.id, reply, role, now))
            ticker.finish(1)
            if ticker.finished % 50 == 0:
                progress(f"  {ticker.line()}")

        async def ask(batch: list[Sample]) -> None:
            for sample in batch:
                try:
                    await one(sample)
                except ModelError as e:
                    if e.fault in FINAL_FAULTS:
                        raise
                    check.fail(sample, e)

        def failed(batch: list[Sample], e: ModelError) -> None:
            check.fail(next(s for s in batch if s.id not in check.rows and s.id not in check.failures), e)

        await work_through(
            batches, ask, failed, most=system.most_at_once if system.embedded else MOST, flows=models.flows, calls_each=1,
            deadline_s=effort.deadline_s * max(map(len, batches)), beat=lambda: progress(f"  {ticker.line()}"),
        )  # fmt: skip
    for line in cache_report(engine):
        progress(line)


def _batches(samples: Sequence[Sample], embedded: bool) -> list[list[Sample]]:
    """What is asked one after the other. On the embedded server that is a speaker's samples of one dialogue: they stay in one
    slot, whose cache holds the long common beginning of their prompts. A server of one's own caches for all requests."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.dialogue_id, sample.speaker), []).append(sample)
    return list(groups.values()) if embedded else [[s] for group in groups.values() for s in group]


def _request(check: _Check, sample: Sample) -> Request:
    salt = f"contract/{check.seed}/{sample.id}"
    draw = {"seed": int(content_hash(salt)[:8], 16) & 0x7FFFFFFF} if check.system.server == "llama.cpp" else {}
    return check.system.request(messages=sample.messages()[0], params=draw, salt=salt)


def _read(id: str, reply: Reply, role: str, now: datetime) -> Row:
    read = parse_decision(reply, role, now, MAX_DELAY_S)
    plan: Plan | None = read.value
    return Row(id, plan is not None, read.error, read.recovered, plan is not None and plan.silent, reply.text)


def _begin(run: Run, system: System, samples: Sequence[Sample], structured: bool, seed: int) -> None:
    """Write what is checked, or see that the folder holds the same; TrainingError if not."""
    asked = content_hash([[s.id, s.system, s.user, s.completion] for s in samples])
    entry = system.model_dump(mode="json", exclude={*OPERATION, "partner"})
    wanted = {
        "system": entry, "identity": model_identity(system), "samples": len(samples), "asked": asked,
        "structured": structured, "seed": seed,
    }  # fmt: skip
    path = run.path / SETTINGS
    if not path.exists():
        write_atomic(path, json.dumps(wanted, ensure_ascii=False, indent=1) + "\n")
        return
    try:
        found = json.loads(read_text(path))
    except ValueError as e:
        raise TrainingError(f"{path}: no JSON ({e}); take another folder") from None
    other = [name for name in wanted if not isinstance(found, dict) or found.get(name) != wanted[name]]
    if other:
        raise TrainingError(f"{path}: {other[0]}: differs from what is asked for now; take another folder, or remove this one")


def _read_rows(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    cut_torn_line(path)
    try:
        return {row.id: row for row in (Row(**json.loads(line)) for line in whole_lines(path))}
    except (ValueError, TypeError) as e:
        raise TrainingError(f"{path}: a line is no row of a check ({e}); remove that line and give the command again") from None
