"""Connections by TCP that kernels make through the host. A browser has no sockets, so it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from asyncgpu_tutor.devices.event_loop import AsyncioWays, loop_ways


class Connection(NamedTuple):
    """One connection, as what the event loop that it belongs to can do with it."""

    receive: Callable[[int], Awaitable[bytes]]
    send: Callable[[bytes], Awaitable[None]]
    close: Callable[[], object]  # what was sent still arrives

    @classmethod
    async def to(cls, address: str) -> Connection:
        """Connect to an address, such as ``127.0.0.1:80``."""
        host, _, port = address.rpartition(":")
        ways = loop_ways()
        if not isinstance(ways, AsyncioWays):
            return cls(*await ways.connect(host, int(port)))
        reader, writer = await asyncio.open_connection(host, int(port))

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        return cls(reader.read, send, writer.close)
