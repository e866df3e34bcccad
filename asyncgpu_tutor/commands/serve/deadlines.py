"""Deadlines of a connection: for the head of a request, and for reading an answer.

A client may open a connection and send its first line a byte a minute, or ask for a thousand things and
never read an answer. An application of ASGI sees neither: it's called when a head is complete, and what it
sends ends up in a buffer. Each of these connections keeps a file open, and processes have few of those. So
this is a part of the protocol below.

There is one rule for each direction. While no request is under way, the other side owes us a head; that
also ends the rest of a body that nobody wanted. And whatever it doesn't read has to be gone after a while,
which we only notice because the buffer for it has room for nothing: with the usual 64 KiB, the last answers
of somebody who never reads would stay in there, and closing a connection waits for them.
"""

import asyncio
import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from asyncgpu_tutor.commands.serve.questions import ApiError

HEAD_S = 10.0  # until the head of a request has to be there, all of it
UNREAD_S = 10.0  # until all that was sent has to be read


class PunctualProtocol(H11Protocol):
    """HTTP on a connection that ends if the other side takes too long."""

    _head_until: asyncio.TimerHandle | None = None
    _read_until: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn has it
        """Wait for a head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Take what has come, and wait for more of it if it isn't a whole head."""
        super().data_received(data)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        for timer in (self._head_until, self._read_until):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        """Something wasn't read at once."""
        super().pause_writing()
        self._read_until = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """All of it has been read, or is on its way."""
        super().resume_writing()
        if self._read_until is not None:
            self._read_until.cancel()

    def _expect_head(self) -> None:
        asked = self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] - it's None until a head has come
        if asked and self._head_until is not None:
            self._head_until.cancel()
            self._head_until = None
        elif not asked and self._head_until is None:
            self._head_until = self.loop.call_later(HEAD_S, self._no_head)

    def _no_head(self) -> None:
        if self.conn.our_state is h11.IDLE and not self.transport.is_closing():
            told = ApiError(f"the head of a request wasn't there within {HEAD_S:.0f} s", 408)
            body = json.dumps(told.body).encode()
            head = "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()
