"""A model client that remembers what the model was shown, so that it can be shown to the person on demand."""

from dataclasses import dataclass, field, replace

from anthrolab.models.client import ModelClient, Reply, Request


@dataclass
class Heard:
    """A `ModelClient` that keeps every request and reply in memory, by the call's id, which it gives to every reply."""

    client: ModelClient
    calls: dict[str, tuple[Request, Reply]] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """The identity of the client behind it."""
        return self.client.identity

    async def ask(self, request: Request) -> Reply:
        """The reply of the client behind it."""
        reply = await self.client.ask(request)
        if reply.call is None:
            reply = replace(reply, call=request.key(self.client.identity))
        assert reply.call is not None
        self.calls[reply.call] = (request, reply)
        return reply
