"""Recorded chats once more, by Inspect AI: a sample a chat, its solver generates both answers of an event together.

    .servers/inspect/bin/python benchmarks/inspect_chats.py CHATS URL CONCURRENCY

Runs in Inspect's own environment (`benchmarks.setup_inspect`) and imports nothing of anthrolab. CHATS as in
`bare_client.py`. Prints one line of JSON: calls, seconds, CPU seconds of this process from the first call to the
return of `eval`, after a first chat that does not count. No display, no scores, no samples in its log, no retries, no cache, no control server.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser}


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def converted(body: dict[str, Any]) -> tuple[list[ChatMessage], GenerateConfig]:
    """A request body in Inspect's own terms. The schema goes along as it is: Inspect's own field would lose its pattern."""
    messages: list[ChatMessage] = [KINDS[m["role"]](content=m["content"]) for m in body["messages"]]
    others = {key: value for key, value in body.items() if key not in ("model", "messages", "max_tokens")}
    return messages, GenerateConfig(max_tokens=body.get("max_tokens"), extra_body=others)


def main(path: Path, url: str, concurrency: int) -> dict[str, float]:
    chats = json.loads(path.read_text(encoding="utf-8"))
    prepared = [[[converted(body) for body in bodies] for bodies in events] for events in chats]
    model: Model = get_model(f"openai-api/mock/{chats[0][0][0]['model']}", base_url=url, api_key="none")
    begun: list[float] = []
    calls = 0

    @solver
    def chatting() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal calls
            begun.append(time.perf_counter())
            begun.append(cpu_seconds())
            for pair in prepared[int(state.sample_id)]:
                answers = await collect(*(model.generate(messages, config=config) for messages, config in pair))
                calls += sum(1 for answer in answers if answer.completion)
            return state

        return solve

    def play(numbers: range) -> None:
        task = Task([Sample(id=number, input="chat") for number in numbers], solver=chatting())
        log = eval(
            task, model=model, display="none", log_dir=logs, log_level="error", log_samples=False, log_realtime=False,
            log_model_api=False, score=False, ctl_server=False, max_samples=min(concurrency, len(chats)),
            max_connections=concurrency, max_retries=0, fail_on_error=True,
        )[0]  # fmt: skip
        assert log.status == "success", log.error

    with tempfile.TemporaryDirectory() as logs:
        play(range(1))
        begun, calls = [], 0
        play(range(len(chats)))
        seconds, cpu = time.perf_counter() - begun[0], cpu_seconds() - begun[1]
    return {"calls": calls, "seconds": seconds, "cpu": cpu}


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "127.0.0.1"
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
