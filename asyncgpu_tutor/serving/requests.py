"""Where the requests of a `map` come from: a list that is there, or messages that arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Coroutine, Iterable
from typing import Any

# Follows the last request. None would not do, because a source may yield it by mistake.
END: Any = object()


class Ready:
    """Requests of an iterable: the next one is there as soon as it is asked for.

    Attributes
    ----------
    ready : bool
        Whether the next request is there.
    ended : bool
        Whether the last one has been taken.
    """

    ready = True

    def __init__(self, requests: Iterable[Any]) -> None:
        self._requests = iter(requests)
        self.ended = False

    def take(self) -> Any:
        """The next request, which is there, or `END`."""
        request = next(self._requests, END)
        self.ended = request is END
        return request

    async def arrival(self) -> None:
        """Wait for the next request, the end, or an error of the source: `take` tells which."""

    async def beside(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for something else, or until a request has come that was not there."""
        await waiting

    async def close(self) -> None:
        """Ask for no more."""


class Arriving:
    """Requests of an asynchronous iterable: one is asked for ahead, and comes when it comes. See `Ready`."""

    def __init__(self, requests: AsyncIterable[Any]) -> None:
        self._requests = aiter(requests)
        self._arrival: asyncio.Future[Any] | None = None
        self.ended = False

    def _asked(self) -> asyncio.Future[Any]:
        if self._arrival is None:
            self._arrival = asyncio.ensure_future(self._fetched())
        return self._arrival

    async def _fetched(self) -> Any:
        return await anext(self._requests, END)

    @property
    def ready(self) -> bool:
        """Whether the next request is there: neither the end nor an error of the source."""
        arrival = self._asked()
        return arrival.done() and arrival.exception() is None and arrival.result() is not END

    def take(self) -> Any:
        """The next request, which is there, or `END`."""
        arrival, self._arrival = self._asked(), None
        request = arrival.result()
        self.ended = request is END
        return request

    async def arrival(self) -> None:
        """Wait for the next request, the end, or an error of the source: `take` tells which."""
        await asyncio.wait({self._asked()})

    async def beside(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for something else, or until a request has come that was not there."""
        arrival, settled = self._asked(), asyncio.ensure_future(waiting)
        both = {settled} if arrival.done() else {settled, arrival}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            settled.cancel()

    async def close(self) -> None:
        """Ask for no more, and wait until the source is not at work: only then can it be closed."""
        if self._arrival is not None:
            self._arrival.cancel()
            await asyncio.wait({self._arrival})
