"""Structured output with a ladder: JSON schema, then JSON object, then the prompt alone.

Servers differ in what `response_format` they take. The first rung that a server accepts is remembered, so
that a refusal costs one request a session and not one a call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from anthrolab.models.client import ModelClient, ModelError, Reply, Request

Rung = Literal["json_schema", "json_object", "prompt"]
RUNGS: tuple[Rung, ...] = ("json_schema", "json_object", "prompt")


@dataclass
class Ladder:
    """Where on the ladder a server stands. One per server and model; shared by all calls to it."""

    rung: Rung = "json_schema"

    async def ask(self, client: ModelClient, request: Request, schema: Mapping[str, Any]) -> tuple[Reply, Rung]:
        """The reply and the rung it was had on. ModelError as from the client once the ladder ends.

        Only an outright refusal (`rejected`) steps down; if the last rung is refused too, the refusal was about
        something else and the ladder goes back to where it stood.
        """
        start = self.rung
        for rung in RUNGS[RUNGS.index(start) :]:
            try:
                reply = await client.ask(with_format(request, schema, rung))
            except ModelError as error:
                if error.fault != "rejected" or rung == RUNGS[-1]:
                    raise
            else:
                if RUNGS.index(rung) > RUNGS.index(self.rung):
                    self.rung = rung
                return reply, rung
        raise AssertionError("the last rung returns or raises")


def with_format(request: Request, schema: Mapping[str, Any], rung: Rung) -> Request:
    """The request with the `response_format` of a rung."""
    if rung == "prompt":
        return request
    response_format: dict[str, Any] = {"type": "json_object"}
    if rung == "json_schema":
        response_format = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
        }
    return replace(request, params={**request.params, "response_format": response_format})
