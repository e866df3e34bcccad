"""Where requests come from, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

__all__ = ["END", "has_come", "next_of"]

END: Any = object()  # of the requests: no request is this


async def next_of(source: AsyncIterator[Any]) -> Any:
    """The next request, or `END`."""
    return await anext(source, END)


def has_come(arrival: asyncio.Future[Any]) -> bool:
    """Whether what was asked for is there, and is a request."""
    return arrival.done() and arrival.exception() is None and arrival.result() is not END
