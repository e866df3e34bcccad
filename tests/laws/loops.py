"""Verbs for laws that hold in each event loop: see the fixture `loop`."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import sniffio

any_loop = pytest.mark.usefixtures("loop")
turn = anyio.lowlevel.checkpoint


def nursery() -> Any:
    """What `agt.spawn` takes here."""
    if sniffio.current_async_library() == "trio":
        import trio

        return trio.open_nursery()
    import asyncio

    return asyncio.TaskGroup()


async def outcome(of: Awaitable[Any]) -> Any:
    """The result, or the error."""
    try:
        return await of
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error


async def together(*all_of_them: Awaitable[Any]) -> list[Any]:
    """The results of tasks, or their errors, in order."""
    found: dict[int, Any] = {}

    async def one(at: int, of: Awaitable[Any]) -> None:
        found[at] = await outcome(of)

    async with anyio.create_task_group() as group:
        for at, of in enumerate(all_of_them):
            group.start_soon(one, at, of)
    return [found[at] for at in range(len(found))]


class Left:
    """``async with Left(function)``: a task that is cancelled at the end of the block, or by `cancel`."""

    def __init__(self, function: Callable[[], Awaitable[Any]]) -> None:
        self._group, self._function = anyio.create_task_group(), function

    async def __aenter__(self) -> Callable[[], None]:
        await self._group.__aenter__()
        self._group.start_soon(self._function)
        return self._group.cancel_scope.cancel

    async def __aexit__(self, *error: Any) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._group.__aexit__(*error)
