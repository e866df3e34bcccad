"""A loop for the coroutine of a check, inside of a notebook's, by private names of asyncio.

`completed` runs a coroutine to its end where a loop is running already, as in a notebook's cell.
`asyncio.run` refuses to. A thread with a loop of its own would do, but a browser has no threads. And
entering the outer loop again would run the notebook's other tasks in the middle of ours. So the outer loop
is set aside for a while, and a small loop runs, without sockets, which a browser lacks as well. The outer
one stands still meanwhile, hence a wait for something that only it could do never ends, and is refused
after a second.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncgpu_tutor as agt

T = TypeVar("T")

_LOOK_S = 0.001  # how often a loop of our own looks for what other threads want of it
_PATIENCE_S = 1.0  # and for how long, where it has nothing else to wait for


def completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, in a loop of its own: a notebook has one that is running already.

    That one stands still meanwhile. No thread is started, because a browser has none.

    Raises `UsageError` if the coroutine waits for something that can never come.
    """
    outer = asyncio._get_running_loop()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownVariableType]
    task = asyncio.current_task(outer) if outer is not None else None
    if outer is not None and task is not None:
        asyncio.tasks._leave_task(outer, task)
    asyncio._set_running_loop(None)
    try:
        # Not Runner.run: that takes an interrupt as a wish to cancel the coroutine at its next turn.
        with asyncio.Runner(loop_factory=_Loop) as runner:
            loop, others = runner.get_loop(), list[dict[str, Any]]()
            loop.set_exception_handler(lambda _, failed: others.append(failed))
            result = loop.run_until_complete(coroutine)  # if it raises, that is told, and no more
            loop.set_exception_handler(None)
            for failed in others:
                loop.call_exception_handler(failed)
            return result
    finally:
        asyncio._set_running_loop(outer)
        if outer is not None and task is not None:
            asyncio.tasks._enter_task(outer, task)


class _Loop(asyncio.BaseEventLoop):
    """asyncio's loop with tasks and timers, and without sockets: its `select` only sleeps.

    asyncio's own loops open a pair of sockets, so that other threads can wake them. This one looks for what
    they have put into its queue instead.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector = self  # what asyncio's part of the loop calls `select` of
        self._idle_since: float | None = None

    def select(self, timeout: float | None) -> list[Any]:
        """Called once a turn; `timeout` in seconds is None where no timer is set."""
        if timeout is not None:
            self._idle_since = None
            if timeout > 0:  # a sleep of 0 s takes 90 us, and some programs look 60,000 times
                time.sleep(min(timeout, _LOOK_S))
            return []
        idle_since = self._idle_since = self._idle_since or time.perf_counter()
        idle_s = time.perf_counter() - idle_since
        if idle_s > _PATIENCE_S and getattr(self, "_default_executor", None) is None:
            raise agt.UsageError(
                "the coroutine waits for something that will never happen: no other task can run, and no "
                "timer is set. Did a task end too early, or does nobody set the event that it waits for?"
            )
        time.sleep(_LOOK_S)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Do nothing: nobody sleeps who would have to be woken."""
