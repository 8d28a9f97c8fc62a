"""Connections that are kept open between requests, and never hand an earlier answer to the next request.

aiohttp (up to 3.14 at least, its issue 13656) puts a connection back as soon as an answer ends. What the server sends after
that, such as the same answer once more, then lies there, and the next request would take it for its own.
"""

from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


class Connections(aiohttp.TCPConnector):
    """A connector that closes a kept connection with something unasked in it."""

    async def _get(self, key: "ConnectionKey", traces: "list[Trace]") -> "Connection | None":
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        return None
