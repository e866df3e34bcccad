"""Connections by TCP that kernels make through the host. A browser has no sockets, so it has none."""

from __future__ import annotations

import asyncio
from typing import NamedTuple


class Connection(NamedTuple):
    """One connection, as asyncio has it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def to(cls, address: str) -> Connection:
        """Connect to an address, such as ``127.0.0.1:80``."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def send(self, data: bytes) -> None:
        """Send all of it, as fast as the other side takes it."""
        self.writer.write(data)
        await self.writer.drain()

    def close(self) -> None:
        """Close it; what was sent still arrives."""
        self.writer.close()
