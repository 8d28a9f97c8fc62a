"""Recorded chats once more, by the bare `openai` client on aiohttp: what the engine's cost is measured against.

    python -m benchmarks.bare_client CHATS URL CONCURRENCY [raw]

CHATS is a JSON file: a list of chats, each a list of events, each the two request bodies that go out together; the next
event follows when both answers are there. Prints one line of JSON: calls, seconds, CPU seconds of this process from
the first of these calls on. Start-up, reading the file and a first chat that opens connections are not counted. `raw`: by `post`
without the client's checks of what it sends and gets, as the engine does, and reading the JSON of the answer.
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

Chat = list[list[dict[str, Any]]]


def cpu_seconds() -> float:
    """CPU time of this process so far, in user and in system mode."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def replay(chats: list[Chat], url: str, concurrency: int, raw: bool) -> dict[str, float]:
    """Send all chats, at most `concurrency` requests at once."""
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        timeout=600,
        http_client=openai.DefaultAioHttpClient(trust_env=False),
    )
    free = asyncio.Semaphore(concurrency)

    async def ask(body: dict[str, Any]) -> str | None:
        async with free:
            if raw:
                response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
                return str(json.loads(response.content)["choices"][0]["message"]["content"])
            answer = await client.chat.completions.create(**body)
        text: str | None = answer.choices[0].message.content
        return text

    async def chat(events: Chat) -> None:
        for bodies in events:
            await asyncio.gather(*map(ask, bodies))

    async with client:
        await chat(chats[0])
        begun, before = time.perf_counter(), cpu_seconds()
        await asyncio.gather(*map(chat, chats))
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    return {"calls": sum(len(bodies) for events in chats for bodies in events), "seconds": seconds, "cpu": cpu}


if __name__ == "__main__":
    recorded = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(asyncio.run(replay(recorded, sys.argv[2], int(sys.argv[3]), "raw" in sys.argv[4:]))))
