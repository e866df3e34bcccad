"""A run of trio as `event_loop.running_loop` gives it out, with methods called as those of asyncio's loop.

What is hard here is time. A simulated device's clock may go on when no task can run. Trio has a public way to
wait for that, `wait_all_tasks_blocked`, so a system task waits for it, lets time pass, and does so again for
as long as anybody waits for the device. A task that only yields is never blocked. For its sake an instrument
counts the turns in which nobody called the device. With `DeviceClock`, trio asks the clock itself how long to
sleep, and does that only where no task can run. Then the system task isn't needed, and awaiting costs what it
costs in asyncio.

Trio runs the tasks of one turn in random order, so pictures may differ from run to run where several tasks
start work. Only a private switch for trio's tests would prevent that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from errno import ECONNRESET
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio
import trio.lowlevel
import trio.testing

from asyncgpu_tutor.errors import UsageError

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.simulated.sim_device import SimMachine

T = TypeVar("T")


class TrioWaiter:
    """As much of `asyncio.Future` as we use: one task waits for it, and there is nothing to get."""

    def __init__(self, run: TrioRun) -> None:
        self._run = run
        self._task: trio.lowlevel.Task | None = None
        self._over = False

    def get_loop(self) -> TrioRun:
        return self._run

    def done(self) -> bool:
        return self._over

    def set_result(self, _: None) -> None:
        self._over = True
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._over = True
        return trio.lowlevel.Abort.SUCCEEDED

    def __await__(self) -> Generator[Any, Any, None]:
        if not self._over:
            self._task = trio.lowlevel.current_task()
            yield from trio.lowlevel.wait_task_rescheduled(self._abort).__await__()


class TrioRun(trio.abc.Instrument):
    """One call of `trio.run`. All who ask in it get the same object."""

    cancelled: type[BaseException] = trio.Cancelled

    def __init__(self, turned: Callable[[], None]) -> None:
        self._turned = turned  # to be called once a turn
        self._token = trio.lowlevel.current_trio_token()
        self._closed = False
        # Empty if there is only one task that can run in this turn: see `after_io_wait`, and `ready_in`.
        self._ready: list[None] = [None]
        # The hosts whose time has to go on: their calls at the last turn, and the turns without one.
        self._hosts: dict[SimMachine, tuple[int, int]] = {}
        trio.lowlevel.add_instrument(self)

    # ------------------------------------------------------------------ as asyncio's loop has it
    def create_future(self) -> TrioWaiter:
        return TrioWaiter(self)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        """Call it in this run; `RuntimeError` where that is over (trio's `RunFinishedError` is one)."""
        if current() is self:
            callback(*args)
        else:
            self._token.run_sync_soon(callback, *args)

    def is_closed(self) -> bool:
        return self._closed

    # ------------------------------------------------------------------ see `AsyncioWays`
    def entering(self) -> Generator[Any, Any, None]:
        yield from trio.lowlevel.checkpoint_if_cancelled().__await__()

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def all_of(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        found: dict[int, T] = {}

        async def one(at: int, coroutine: Coroutine[Any, Any, T]) -> None:
            found[at] = await coroutine

        async with trio.open_nursery() as nursery:
            for at, coroutine in enumerate(coroutines):
                nursery.start_soon(one, at, coroutine)
        return [found[at] for at in range(len(coroutines))]

    async def on_thread(self, threads: Executor, act: Callable[[], T]) -> T:
        future = threads.submit(act)
        return await trio.to_thread.run_sync(future.result, abandon_on_cancel=True)

    async def connect(self, host: str, port: int) -> tuple[Any, Any, Any]:
        stream = await trio.open_tcp_stream(host, port)

        async def receive(size: int) -> bytes:
            try:
                return bytes(await stream.receive_some(size))
            except trio.ClosedResourceError:  # meanwhile, by us
                return b""
            except trio.BusyResourceError as error:  # as asyncio has it
                raise RuntimeError("another task receives from this connection") from error
            except trio.BrokenResourceError as error:
                raise ConnectionResetError(ECONNRESET, "the connection is broken") from error

        async def send(data: bytes) -> None:
            try:
                await stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise ConnectionResetError(ECONNRESET, "the connection is broken") from error

        return receive, send, stream.socket.close

    def shielded(self) -> trio.CancelScope:
        return trio.CancelScope(shield=True)

    async def background(self, *, eager: bool) -> TrioTasks:
        manager = trio.open_nursery()
        return TrioTasks(manager, await manager.__aenter__())

    def spawn(self, future: Awaitable[T], name: str, nursery: Any) -> Spawned[T]:
        if nursery is None:
            raise UsageError(
                "in a run of trio spawn() needs the nursery that the task belongs to: agt.spawn(op, "
                "nursery=nursery) in `async with trio.open_nursery() as nursery`"
            )
        spawned = Spawned(future, name)
        nursery.start_soon(spawned.drive, name=name)
        return spawned

    # ------------------------------------------------------------------ a simulated host's time
    def let_time_pass(self, host: SimMachine) -> None:
        """From now on, and for as long as anybody here waits for it, let a host's time go on."""
        if host not in self._hosts:
            self._hosts[host] = host.calls, 0
            if getattr(trio.lowlevel.current_clock(), "machine", None) is not host:
                trio.lowlevel.spawn_system_task(self._while_waiting, host, name="simulated time")

    async def _while_waiting(self, host: SimMachine) -> None:
        try:
            waits = True
            while waits:
                if host.patient:
                    await trio.sleep(host.LOOK_AGAIN_S)
                else:
                    await trio.testing.wait_all_tasks_blocked()
                # Who is woken has not run yet, and may wait again: starting a task for each would cost more.
                if waits := host.waits(self):
                    host.advance()
        finally:
            del self._hosts[host]

    def after_io_wait(self, timeout: float) -> None:
        """Once a turn: a task that keeps the host busy doesn't keep others from what is done by now.

        A turn costs trio more than a short kernel takes. So a task that is alone in its turn looks at its
        event for a while instead, and this tells it that it is alone. Those that are started in the same
        turn aren't counted, and wait for as long as such a look may take.
        """
        self._turned()
        if not self._hosts:  # on a simulated device nobody looks
            self._ready[:] = (None,) * (trio.lowlevel.current_statistics().tasks_runnable - 1)
        for host, (calls, turns) in list(self._hosts.items()):
            quiet = turns + 1 if calls == host.calls else 0
            if not quiet:  # only a call takes time, in which something may have ended
                host.wake()
            elif quiet >= host.QUIET_TURNS:
                quiet = 0
                host.advance()
            self._hosts[host] = host.calls, quiet

    def after_run(self) -> None:
        self._closed = True


_run: trio.lowlevel.RunVar[TrioRun | None] = trio.lowlevel.RunVar("asyncgpu_tutor", None)


def current(turned: Callable[[], None] | None = None) -> TrioRun | None:
    """The run that this thread is in, if it is in one; the first who asks says what to call in each turn."""
    if not trio.lowlevel.in_trio_run():
        return None
    run = _run.get()
    if run is None and turned is not None:
        run = TrioRun(turned)
        _run.set(run)
    return run


# ---------------------------------------------------------------------- tasks
class Spawned(Generic[T]):
    """What `spawn` returns in a run of trio. Any number of tasks may await it; each gets the result."""

    def __init__(self, future: Awaitable[T], name: str) -> None:
        self._future, self._name = future, name
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        self._value: Any = None
        cancelled = f"{name!r} was cancelled, so it has no result"
        self._error: Exception | None = UsageError(cancelled)  # unless it ends in another way

    def __repr__(self) -> str:
        return f"<Spawned {self._name!r}, {'over' if self.done() else 'going on'}>"

    async def drive(self) -> None:
        """The task. Its nursery hears of a failure, as an `asyncio.TaskGroup` does."""
        try:
            with self._scope:
                self._value, self._error = await self._future, None
        except Exception as error:
            self._error = error
            raise
        finally:
            self._ended.set()

    def done(self) -> bool:
        """Tell whether it is over."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Stop the waiting, not the work."""
        self._scope.cancel()

    def __await__(self) -> Generator[Any, Any, T]:
        yield from self._ended.wait().__await__()
        if self._error is not None:
            raise self._error
        return self._value


class TrioTasks:
    """Tasks that raise nothing, and end with the object that starts them."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], nursery: trio.Nursery) -> None:
        self._manager, self._nursery = manager, nursery

    def start(self, coroutine: Coroutine[Any, Any, None], name: str | None = None) -> None:
        async def drive() -> None:
            await coroutine

        self._nursery.start_soon(drive, name=name)

    async def end_all(self) -> None:
        self._nursery.cancel_scope.cancel()
        # Without the error of the block: a nursery would raise it again, in a group.
        await self._manager.__aexit__(None, None, None)
