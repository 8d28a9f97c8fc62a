"""`anthrolab doctor --system NAME`: some twenty short requests that find out what an endpoint takes and obeys.

Thinking and structured output are crossed, because they disturb each other (JSON ends up in the reasoning field, or
thinking uses the length cap up); everything else is asked once, with the best settings found so far.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from anthrolab.models.client import ModelClient, ModelError, Request
from anthrolab.models.doctor.advice import advise, crossed_ways
from anthrolab.models.doctor.findings import (
    LINE_GRAMMAR,
    LINE_REGEX,
    NO_REPLY,
    NOT_SENT,
    OPEN,
    SCHEMA,
    SHORT,
    WORD,
    Finding,
    Reader,
    Way,
    own_way,
    read_cap,
    read_error,
    read_json,
    read_line,
    read_size,
    read_stop,
    read_word,
)
from anthrolab.models.opening import open_model, read_key
from anthrolab.models.structured import with_format
from anthrolab.models.systems import NO_EFFORTS, System, without_samplers
from anthrolab.sync import run_async

LIMIT_S = 900.0
"""Seconds that a probe may take: room for two dozen answers of a minute each, two at once. What is open by then stays open, and nothing is
concluded from it."""

DRINK = "What do you drink in the morning, and when? Answer in JSON."
TOLD = f'{DRINK} Write one JSON object and nothing else: {{"drink": "tea" or "coffee", "at": "HH:MM", "more": true or false}}'
RULE = f"The code word is {WORD}. Whenever you are asked for the code word, answer with it."
LINES = "[07:28] Ann: good morning\n[07:29] Bob: morning ann\n"

RAIN = "昨晚上下了一夜的雨，早上巷子口积了水，卖豆浆的嬢嬢把摊摊挪到屋檐底下去了。"
RAINED = "一句话说，昨晚上下雨没得？"
CHAT_SIZE, TRANSCRIPT_SIZE = 6000, 1500
"""Characters of a real prompt: in a chat, some 3,000 to 4,000 of system text with the skills, the summary and the window;
for a base model the summary and the lines of the window."""

ASK_WORD = "What is the code word?"
COUNT = "Count from 1 to 100. Write the numbers, separated by spaces."

Messages = list[dict[str, str]]
Structured = Literal["prompt", "json_object", "json_schema", "line"]
CONSTRAINED: tuple[Structured, ...] = ("json_object", "json_schema", "line")


def probe_endpoint(system: System, limit_s: float = LIMIT_S) -> list[Finding]:
    """Ask the endpoint of a system and return what was found, in the order of asking.

    Length cap and timeout are the entry's own, so that what is cut off or late here would be so in a run; one retry a
    request, two requests at once, `limit_s` seconds in all. A server that fails or goes away is a finding and no error;
    SystemsError if the system's key is not set, LocalModelError if its embedded model cannot be started.
    """
    return run_async(_probe(system, limit_s))


async def _probe(system: System, limit_s: float) -> list[Finding]:
    entry = system.model_copy(update={"retries": 1, "concurrency": 2})
    async with open_model(entry) as client:
        asker = _Asker(client, entry, asyncio.get_running_loop().time() + limit_s, limit_s)
        found = await (_chat(asker) if system.policy == "chat" else _transcript(asker))
    secret = read_key(system)
    return [replace(f, detail=f.detail.replace(secret, "***")) for f in found] if secret else found


@dataclass
class _Asker:
    """Asks one request at a time of a system, two at once, until the time or the server is gone (`over` says which)."""

    client: ModelClient
    system: System
    end: float
    limit_s: float
    over: str = ""
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    async def ask(self, asked: str, read: Reader, request: Request, way: Way = NOT_SENT) -> Finding:
        """What came of a request."""
        async with self.room:
            if self.over:
                return Finding(way, asked, "not asked", "", self.over)
            try:
                async with asyncio.timeout_at(self.end):
                    reply = await self.client.ask(request)
            except TimeoutError:
                self.over = f"the probe's {self.limit_s:g} s are over"
                return Finding(way, asked, "unanswered", "", self.over)
            except ModelError as error:
                if error.fault == "unreachable":
                    self.over = "the connection had failed"
                return Finding(way, asked, *read_error(error))
            return Finding(way, asked, *read(reply))

    async def structured(self, way: Way, asked: Structured) -> Finding:
        """What came of asking for a form. Under a constraint the prompt does not name the form: the server must hold
        the model to it."""
        system = self.system.model_copy(update=way.settings(self.system))
        if asked == "line":
            params = constraint(system)
            return await self.ask(
                asked, read_line, system.request(messages=user("Say good morning."), params=params), way
            )
        request = system.request(messages=user(DRINK if asked == "json_schema" else TOLD))
        return await self.ask(asked, read_json, with_format(request, SCHEMA, asked), way)


def user(*texts: str) -> Messages:
    """Messages of the user, one after the other."""
    return [{"role": "user", "content": text} for text in texts]


def constraint(system: System) -> dict[str, Any]:
    """How the server is told the form of a line, as `runtime.transcript` does; empty if it cannot be told."""
    constraints: dict[str, dict[str, Any]] = {
        "llama.cpp": {"grammar": LINE_GRAMMAR}, "vllm": {"structured_outputs": {"regex": LINE_REGEX}},
    }  # fmt: skip
    return constraints.get(system.server, {})


async def _chat(asker: _Asker) -> list[Finding]:
    entry, found = asker.system, await _plainest(asker)
    if found[-1].outcome in NO_REPLY:
        return found
    found += [f for group in await asyncio.gather(_size(asker), *_dialects(asker)) for f in group]
    ways, forms = crossed_ways(entry, found), CONSTRAINED[: 3 if constraint(entry) else 2]
    found += await asyncio.gather(*(asker.structured(way, form) for way in ways for form in forms))
    asker.system = entry.model_copy(update=advise(entry, found).settings)
    return found + [
        f for group in await asyncio.gather(_role(asker), _row(asker), _cap(asker), _judge(asker)) for f in group
    ]


async def _plainest(asker: _Asker) -> list[Finding]:
    """The plainest request; if it is refused, with the other name of the cap and without the entry's samplers."""
    entry, refused = asker.system, list[Finding]()
    other = "max_tokens" if entry.max_tokens_field == "max_completion_tokens" else "max_completion_tokens"
    renamed: dict[str, Any] = {"max_tokens_field": other}
    bare: dict[str, Any] = {"sampling": without_samplers(entry.sampling)}
    for changes in ({}, renamed, *((bare, bare | renamed) if bare["sampling"] != entry.sampling else ())):
        asker.system = entry.model_copy(update=changes)
        latest = await asker.structured(NOT_SENT, "prompt")
        if latest.outcome in OPEN:  # whether the changes help is not known
            return [*refused[:1], latest]
        if latest.outcome != "refused":
            blamed = {"max_tokens_field": refused[:1], "sampling": refused[len(changes) - 1 :][:1]}
            return [*(replace(f, asked=name) for name in changes for f in blamed[name]), latest]
        refused.append(latest)
    return refused[:1]


async def _size(asker: _Asker) -> list[Finding]:
    """A prompt as long as a real one, as plain as can be, so that nothing but its length can be refused."""
    system = asker.system.model_copy(update=NOT_SENT.settings(asker.system))
    if system.policy == "chat":
        request = system.request(messages=user(_filler(RAIN, CHAT_SIZE) + f"\n\n{RAINED}"))
    else:
        line = f"[07:28] 小敏: {RAIN}\n"
        request = system.request(prompt=f"{_filler(line, TRANSCRIPT_SIZE)}[07:30]", params={"stop": ["\n"]})
    latest = await asker.ask("real prompt size", read_size, request)
    if latest.outcome == "cut off":  # the thoughts of the reply were cut: the prompt was read
        latest = replace(latest, outcome="ok", thought="")
    return [latest]


def _filler(text: str, characters: int) -> str:
    """The text again and again, up to at least that many characters."""
    return text * -(-characters // len(text))


def _dialects(asker: _Asker) -> list[Coroutine[Any, Any, list[Finding]]]:
    """Every way to ask for thinking or against it, with the prompt alone."""
    own = own_way(asker.system)

    async def one(way: Way) -> list[Finding]:
        return [await asker.structured(way, "prompt")]

    async def efforts() -> list[Finding]:
        found = await one(Way("reasoning_effort", True, (own.on and own.effort) or "medium"))
        words = dict.fromkeys([*([own.effort] if own.effort and not own.on else []), *NO_EFFORTS])
        for word in words:  # not every model takes every word
            found += await one(Way("reasoning_effort", False, word))
            if found[-1].outcome != "refused":
                break
        return found

    switch = [one(Way("enable_thinking", on)) for on in (True, False)]
    return [*switch, efforts(), *(one(Way("no_think_suffix", on)) for on in (True, False))]


async def _role(asker: _Asker) -> list[Finding]:
    """A system message, and if it is not taken or not obeyed, its text before the user's."""
    messages = [{"role": "system", "content": RULE}, *user(ASK_WORD)]
    found = []
    for name, taken in (("system role", True), ("system text in user", False)):
        system = asker.system.model_copy(update={"system_role": taken})
        found.append(await asker.ask(name, read_word, system.request(messages=messages), own_way(system)))
        if found[-1].outcome in ("ok", "in reasoning", "cut off"):  # a cut reply says nothing about the role
            break
    return found


async def _row(asker: _Asker) -> list[Finding]:
    request = asker.system.request(messages=user(RULE, ASK_WORD))
    return [await asker.ask("two in a row", read_word, request, own_way(asker.system))]


async def _cap(asker: _Asker) -> list[Finding]:
    """The length cap, and if it is not kept, under its other name."""
    found = []
    other = "max_tokens" if asker.system.max_tokens_field == "max_completion_tokens" else "max_completion_tokens"
    for name, field_name in (("length cap", asker.system.max_tokens_field), ("other cap", other)):
        system = asker.system.model_copy(update={"max_tokens": SHORT, "max_tokens_field": field_name})
        latest = await asker.ask(name, read_cap, system.request(messages=user(COUNT)), own_way(system))
        if latest.outcome == "cut off":  # an empty message, its hidden thoughts cut: the cap was kept
            latest = replace(latest, outcome="ok")
        found.append(latest)
        if latest.outcome != "ignored":
            break
    return found


async def _judge(asker: _Asker) -> list[Finding]:
    """A request as to a judge, with its long cap; if it is refused, without temperature."""
    judge = asker.system.as_judge()
    found = [await asker.ask("as a judge", read_json, judge.request(messages=user(TOLD)), own_way(judge))]
    if found[0].outcome == "refused":
        judge = judge.model_copy(update={"sampling": {**judge.sampling, "temperature": None}})
        found.append(await asker.ask("no temperature", read_json, judge.request(messages=user(TOLD)), own_way(judge)))
    return found


async def _transcript(asker: _Asker) -> list[Finding]:
    system, stop = asker.system, {"stop": ["\n"]}
    found = [await asker.ask("one line", read_stop, system.request(prompt=f"{LINES}[07:30]", params=stop))]
    if found[0].outcome in NO_REPLY:
        return found
    found += await _size(asker)
    if held := constraint(system):
        found.append(await asker.ask("line", read_line, system.request(prompt=LINES, params=stop | held)))
    capped = system.model_copy(update={"max_tokens": SHORT}).request(prompt="1 2 3 4 5 6 7 8 9")
    return [*found, await asker.ask("length cap", read_cap, capped)]
