"""The clock of a simulated host, and how an event loop of asyncio moves it."""

from __future__ import annotations

import asyncio
import weakref

import simgpu.machine
from asyncgpu_tutor.devices.event_loop import nothing_ready
from simgpu.machine import Wake, exclusive
from simgpu.order import Clock
from simgpu.queues import EngineEvent

# Turns of the event loop without a call to any device after which the host counts as idle although
# something is still ready to run: a task that does nothing but yield, say. A result travels through a few
# callbacks (future, task, group, parent) before somebody acts on it, so it takes more than one.
QUIET_TURNS = 64

LOOK_AGAIN_S = 0.001  # how often the loop is asked while a kernel waits for the host


class Machine(simgpu.machine.Machine):
    """A host and the engine behind it, whose time goes on when an event loop has nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self._turning: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    @exclusive
    def watch(
        self, event: EngineEvent, before: Clock, wake: Wake, delay: float, owner: object = None
    ) -> None:
        """Call `wake` once, when `event` has passed and the event loop has had its say."""
        loop = asyncio.get_running_loop()
        super().watch(event, before, wake, delay, loop)
        if loop not in self._turning:
            self._turning.add(loop)
            loop.call_soon(self._turn, loop, self.calls, 0)

    def gone(self, owner: object) -> bool:
        """Whether the event loop that a wait belongs to is closed."""
        return isinstance(owner, asyncio.AbstractEventLoop) and owner.is_closed()

    async def sleep(self, us: float) -> None:
        """Let other tasks run for `us` microseconds of the host's clock."""
        event, queue = self.timer(us)
        try:
            await self._until(event, 0.0)
        finally:
            queue.waiting.clear()  # where the task was cancelled, time need not go there

    async def until_paused(self, delay: float) -> None:
        """Let other tasks run until a kernel waits for the host, which needs `delay` us to notice."""
        await self._until(self.engine.when_paused(), delay)

    async def _until(self, event: EngineEvent, delay: float) -> None:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def release() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake(_: BaseException | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(release)

        self.watch(event, Clock(), wake, delay)
        try:
            await woken
        except BaseException:
            self.unwatch(wake)
            raise

    @exclusive
    def _turn(self, loop: asyncio.AbstractEventLoop, calls: int, quiet: int) -> None:
        """Once a turn of the loop: let time pass when nobody has used the device for a while."""
        quiet = quiet + 1 if calls == self.calls else 0
        try:
            if quiet >= QUIET_TURNS or (quiet and nothing_ready(loop)):
                quiet = 0
                self.advance()
            else:  # a task that keeps the host busy does not keep others from what is done by now
                self.wake()
        except KeyboardInterrupt:
            # What was interrupted has failed, and tells so who awaits it. Raised from here, a notebook's loop
            # would end with it.
            pass
        finally:  # an interrupt must not stop time for good
            if not self.waits(loop):
                self._turning.discard(loop)
            elif self.patient:
                loop.call_later(LOOK_AGAIN_S, self._turn, loop, self.calls, quiet)
            else:
                loop.call_soon(self._turn, loop, self.calls, quiet)
