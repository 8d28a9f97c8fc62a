"""Auxiliary model calls: a chat model writes something structured about a chat, such as a summary or a memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anthrolab.models.client import ModelClient, Reply, Request
from anthrolab.models.fence import fenced, quoted
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read, ask_for
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.history import Said
from anthrolab.runtime.prompt import template
from anthrolab.runtime.seat import shown

T = TypeVar("T")
K = TypeVar("K", bound=str)


@dataclass(frozen=True)
class Auxiliary:
    """The chat model that does it, greedy and with room for a long answer (`System.as_judge`), so that the same chat
    gives the same text. Two messages a call: what is always the same, and what is asked now."""

    client: ModelClient
    system: System
    ladder: Ladder = field(default_factory=Ladder)

    async def ask(
        self, instructions: str, question: str, schema: Mapping[str, Any], salt: str, read: Callable[[Reply], Read[T]]
    ) -> tuple[Read[T], Reply]:
        """What was read, and the reply; a reply that breaks the contract is asked for once more (see `ask_for`)."""

        def make(number: int, error: str | None) -> Request:
            user = question if error is None else f"{question}\n\n{template('again_auxiliary').substitute(error=error)}"
            messages = [{"role": "system", "content": instructions}, {"role": "user", "content": user}]
            return self.system.as_judge().request(messages=messages, salt=f"{salt}/{number}")

        async def send(request: Request) -> Reply:
            return (await self.ladder.ask(self.client, request, schema))[0]

        return await ask_for(send, make, read)


def chat_lines(said: Sequence[Said]) -> str:
    """Messages as inert lines, one each, in their fence; a very long one is cut as in every prompt."""
    return fenced("CHAT", [f"{s.at:%Y-%m-%d %H:%M:%S} {quoted(s.name)}：{quoted(shown(s.content))}" for s in said])


def known_lines(label: str, letters: Mapping[K, str], lines: Mapping[K, Sequence[str]]) -> str:
    """What is noted already, each line under its letter and number (from 1), in its fence."""
    numbered = [f"{letters[kind]}{i}：{quoted(line)}" for kind in letters for i, line in enumerate(lines.get(kind, ()), 1)]
    return fenced(label, numbered or ["（还没有）"])


def read_lists(reply: Reply, names: Sequence[str]) -> Read[dict[str, list[str]]]:
    """The lists of texts in the one object of a reply, by name; all must be there."""
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    for name in names:
        entries = found.value.get(name)
        if not isinstance(entries, list) or not all(isinstance(e, str) for e in entries):
            return Read(None, f"{name} is missing or no list of texts")
    return Read({name: found.value[name] for name in names}, None, found.recovered)
