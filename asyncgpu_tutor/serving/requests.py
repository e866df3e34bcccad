"""The source of a map's requests: a list that is there, or messages that arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Coroutine, Iterable
from typing import Any

# Follows the last request. None would not do, because a source may yield it by mistake.
END: Any = object()


class Source:
    """Requests of an iterable, or of an asynchronous one, which is asked for one ahead.

    Attributes
    ----------
    ended : bool
        True when the last one has been taken.
    """

    def __init__(self, requests: Iterable[Any] | AsyncIterable[Any]) -> None:
        arrive = isinstance(requests, AsyncIterable)
        self._arriving = aiter(requests) if arrive else None
        self._there = iter(()) if arrive else iter(requests)
        self._arrival: asyncio.Future[Any] | None = None
        self.ended = False

    @property
    def ready(self) -> bool:
        """True if the next request is there; the end, or an error of the source, is none."""
        if self._arriving is None:
            return True
        arrival = self._asked()
        return arrival.done() and arrival.exception() is None and arrival.result() is not END

    @property
    def coming(self) -> bool:
        """True if the next one, or the end, is still to arrive."""
        return self._arriving is not None and not self._asked().done()

    def take(self) -> Any:
        """The next request, which is there, or `END`."""
        if self._arriving is None:
            request = next(self._there, END)
        else:
            arrival, self._arrival = self._asked(), None
            request = arrival.result()
        self.ended = request is END
        return request

    async def arrival(self) -> None:
        """Wait for the next request, the end, or an error of the source: `take` tells which."""
        if self._arriving is not None:
            await asyncio.wait({self._asked()})

    async def beside(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for something else, or until the next request arrives, which is `coming`."""
        settled = asyncio.ensure_future(waiting)
        try:
            await asyncio.wait({settled, self._asked()}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            settled.cancel()
        if settled.done():
            settled.result()  # raises what went wrong

    async def close(self) -> Exception | None:
        """Ask for no more, and wait until the source is not at work: only then can it be closed.

        Returns what it has raised meanwhile, because nobody takes that any more.
        """
        if self._arrival is None:
            return None
        self._arrival.cancel()
        await asyncio.wait({self._arrival})
        error = None if self._arrival.cancelled() else self._arrival.exception()
        return error if isinstance(error, Exception) else None

    def _asked(self) -> asyncio.Future[Any]:
        if self._arrival is None:
            assert self._arriving is not None
            self._arrival = asyncio.ensure_future(anext(self._arriving, END))
        return self._arrival
