"""Opening systems: from an entry of systems.yaml to a client that answers, each server started only once."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelClient
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.faults import public_url
from anthrolab.models.flow import Flow
from anthrolab.models.local import EmbeddedServer, find_model
from anthrolab.models.systems import System, SystemsError


class Models:
    """Clients of several systems, to be had from `open_models()`.

    Systems with the same embedded model share one server (with the slots and the context of the first), and
    systems that are reached in the same way share one client.
    """

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._clients: dict[tuple[object, ...], Endpoint] = {}
        self._servers: dict[str, EmbeddedServer] = {}

    async def client(self, system: System) -> ModelClient:
        """The client of a system; its embedded server is started if it does not run yet."""
        if system.embedded:
            way: tuple[object, ...] = ("embedded", system.model, system.timeout_s, system.retries)
        else:
            way = (system.endpoint, system.api_key_env, system.timeout_s, system.retries, system.most_at_once)
        if way not in self._clients:
            made = await self._embedded(system) if system.embedded else remote_client(system)
            self._clients[way] = await self._stack.enter_async_context(made)
        return self._clients[way]

    @property
    def flows(self) -> list[Flow]:
        """The flows of all endpoints that are open."""
        return [client.flow for client in self._clients.values()]

    async def _embedded(self, system: System) -> Endpoint:
        server = self._servers.get(system.model)
        if server is None:
            server = EmbeddedServer(system.model, context=system.context, slots=system.most_at_once)
            self._servers[system.model] = await self._stack.enter_async_context(server)
        return server.client(budget_of(system))


@asynccontextmanager
async def open_models() -> AsyncIterator[Models]:
    """Opens systems on demand; all clients and servers are closed at the end, in whatever way that comes."""
    async with AsyncExitStack() as stack:
        yield Models(stack)


@asynccontextmanager
async def open_model(system: System) -> AsyncIterator[ModelClient]:
    """The client of one system, for as long as the context lasts."""
    async with open_models() as models:
        yield await models.client(system)


def model_identity(system: System) -> str:
    """Names server and model file as the client's `identity` does, without opening either; the file must be there."""
    return find_model(system.model)[1] if system.embedded else public_url(system.endpoint)


def remote_client(system: System) -> Endpoint:
    """The client of a system on a server of its own; SystemsError if its key is not set."""
    return Endpoint(system.endpoint, api_key=read_key(system), budget=budget_of(system), concurrency=system.most_at_once)


def budget_of(system: System) -> Budget:
    """The retry budget of one request: `retries` after the first attempt, within half as much time again as
    the attempts alone could take."""
    attempts = system.retries + 1
    return Budget(attempts=attempts, seconds=1.5 * system.timeout_s * attempts, attempt_seconds=system.timeout_s)


def read_key(system: System) -> str | None:
    """The API key from the variable that the system names; SystemsError if it is not set there."""
    if system.api_key_env is None:
        return None
    key = os.environ.get(system.api_key_env, "").strip()
    if not key:
        raise SystemsError(
            f"{system.name}: api_key_env: the environment variable {system.api_key_env} is not set; "
            f"run: export {system.api_key_env}=<your key>"
        )
    return key
