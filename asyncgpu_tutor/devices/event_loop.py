"""What the tutor asks of an event loop: asyncio's, one like it, or a run of trio. Here is all about asyncio.

Awaiting needs little of a loop: a waiter that a task can wait for and anybody can release, also from another
thread. Asyncio's loops have both. For trio, `TrioRun` in `trio_run` has methods of the same names. That
module is imported where a program has imported trio, so nobody needs trio who doesn't use it. An adapter
such as anyio would cost each await more than all of this.

One question has no public answer: is any other task ready to run? A task that awaits short work does best to
look at its event at once, because short work is often over before the loop has gone round, but only while
nobody else is ready. On the simulated device, the same question decides whether time may go on. So we look at
the loop's queue. Asyncio has it in a private attribute, which a new version may rename. Uvloop has it in a
field that Python can't see, but the garbage collector has to see it, so we ask the collector. A loop that has
neither counts as always busy: its tasks get more turns than they need, and never fewer. Trio publishes how
many tasks can run, but not how many of this turn are still to come, so we ask once a turn.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence, Sized
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from asyncgpu_tutor.errors import UsageError

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.trio_run import TrioRun, TrioWaiter

T = TypeVar("T")

AnyLoop: TypeAlias = "asyncio.AbstractEventLoop | TrioRun"
AnyWaiter: TypeAlias = "asyncio.Future[Any] | TrioWaiter"

# How long code that could go on without a turn of the loop may do so: timers and sockets wait meanwhile.
TURN_EVERY_US = 500.0

_turns = threading.local()  # `due`: when this thread's loop is to have its next turn


class AsyncioWays:
    """What asyncio does in another way than trio, whose ways are methods of `TrioRun`."""

    cancelled: type[BaseException] = asyncio.CancelledError

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for a while, in real time."""
        await asyncio.sleep(seconds)

    async def all_of(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of coroutines that run at the same time, and raise nothing themselves."""
        return await asyncio.gather(*coroutines)

    async def on_thread(self, threads: Executor, act: Callable[[], T]) -> T:
        """What `act` returns on a thread."""
        return await asyncio.get_running_loop().run_in_executor(threads, act)

    async def background(self, *, eager: bool) -> AsyncioTasks:
        """Where an object that is used in ``async with`` has its tasks."""
        return AsyncioTasks(eager)

    def spawn(self, future: Awaitable[T], name: str, nursery: Any) -> asyncio.Task[T]:
        """A task that awaits a future."""

        async def drive() -> T:
            return await future

        if nursery is not None and not hasattr(nursery, "create_task"):
            raise UsageError(
                f"in asyncio's event loop the nursery of a task is an asyncio.TaskGroup, and "
                f"{type(nursery).__name__} was given: leave it out, or have that start a function of your "
                "own that awaits the operation"
            )
        return (nursery or asyncio).create_task(drive(), name=name)


class AsyncioTasks:
    """Tasks that raise nothing, and end with the object that starts them."""

    def __init__(self, eager: bool) -> None:
        self._options: dict[str, Any] = {"eager_start": True} if eager else {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Start one."""
        loop = asyncio.get_running_loop()  # who starts eagerly has to say it in Python 3.12
        task = asyncio.Task(coroutine, loop=loop, name=name, **self._options)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end_all(self) -> None:
        """Cancel all of them, and wait for their ends."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        with shielded():
            await asyncio.gather(*tasks, return_exceptions=True)


# ---------------------------------------------------------------------- which one it is
def running_loop() -> AnyLoop:
    """The loop of asyncio, or the run of trio, that this runs in; `RuntimeError` where there is neither."""
    if "trio" in sys.modules:
        # Trio can be a guest of asyncio's loop, and asyncio's loop can run in a task of trio. The task tells.
        loop = asyncio._get_running_loop()
        if loop is None or asyncio.current_task(loop) is None:
            from asyncgpu_tutor.devices import trio_run

            if (run := trio_run.current(turn_given)) is not None:
                return run
    return asyncio.get_running_loop()


def loop_ways() -> AsyncioWays | TrioRun:
    """What the loop that this runs in does in its own way."""
    loop = running_loop()
    return AsyncioWays() if isinstance(loop, asyncio.AbstractEventLoop) else loop


def in_a_loop() -> bool:
    """Tell whether this thread runs a loop, which would stand still if the thread were blocked."""
    try:
        running_loop()
    except RuntimeError:
        return False
    return True


def opening_loop(open_in: AnyLoop | None, what: str) -> AnyLoop:
    """The loop that something is opened in; `UsageError` if it's open there, in another's block."""
    loop = running_loop()
    if loop is open_in:
        raise UsageError(f"{what} is open already, in another block or task: make one for each")
    return loop


def only_asyncio(what: str) -> None:
    """`UsageError` in a run of trio."""
    if not isinstance(running_loop(), asyncio.AbstractEventLoop):
        raise UsageError(
            f"{what} needs asyncio's event loop, and this is a run of trio: open it in asyncio.run(main()), "
            "or inside of trio_asyncio.open_loop()"
        )


def shielded() -> AbstractContextManager[Any]:
    """Let a block finish its waits in a task that is cancelled; for `__aexit__`, mostly.

    Asyncio cancels one wait of a task, so whatever is awaited after that is waited for. A scope of trio or
    anyio cancels each wait in it, until the task has left the scope.
    """
    loop = running_loop()
    if not isinstance(loop, asyncio.AbstractEventLoop):
        return loop.shielded()
    if "anyio" not in sys.modules:
        return nullcontext()
    from anyio import CancelScope

    return CancelScope(shield=True)


# ---------------------------------------------------------------------- turns
def ready_in(loop: AnyLoop) -> Sized:
    """Return what is ready to run in a loop, and empty while every other task there waits for something.

    Where the loop does not say, it is never empty.
    """
    if type(loop).__module__ == "uvloop":
        queues: list[Sized] = [held for held in gc.get_referents(loop) if type(held) is deque]
        return queues[0] if len(queues) == 1 else (None,)
    return getattr(loop, "_ready", (None,))


def turn(loop: AnyLoop) -> Generator[Any, Any, None]:
    """Let other tasks have their turns; for ``yield from`` in an `__await__`."""
    if isinstance(loop, asyncio.AbstractEventLoop):
        yield  # a task that yields nothing comes again in the loop's next turn
        turn_given()
    else:  # a run of trio notes its turns itself
        yield from loop.sleep(0).__await__()


def entering(loop: AnyLoop) -> Iterable[Any]:
    """What an await does first, for ``yield from``: in trio one that is cancelled already begins nothing."""
    return () if isinstance(loop, asyncio.AbstractEventLoop) else loop.entering()


def turn_is_due() -> bool:
    """Tell whether the loop of this thread has waited long enough for a turn."""
    return time.perf_counter() > getattr(_turns, "due", 0.0)


def turn_given(next_us: float = TURN_EVERY_US) -> None:
    """The loop of this thread has just had a turn; the next one is due after so many microseconds."""
    _turns.due = time.perf_counter() + next_us * 1e-6
