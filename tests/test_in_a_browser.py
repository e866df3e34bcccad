"""The package starts no thread and no process, opens no socket, and runs in an event loop like a page's."""

import asyncio
import heapq
import itertools
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course.checks.own_loop import completed
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import UsageError

from .in_a_browser import PACKAGE, NotInABrowserError

ASKED = {
    "thread": "import threading; threading.Thread(target=print).start()",
    "pool": "import concurrent.futures as f; f.ThreadPoolExecutor(1).submit(print).result()",
    "process": "import subprocess, sys; subprocess.run([sys.executable, '--version'])",
    "socket": "import socket; socket.socket().close()",
}


def run_in(room: str, code: str) -> None:
    """Run this as if it were in a file of the package."""
    exec(compile(code, str(PACKAGE / room / "some.py"), "exec"), {})


@pytest.mark.parametrize("code", ASKED.values(), ids=ASKED)
def test_a_room_of_the_package_is_refused_and_a_command_is_not(code: str) -> None:
    if "cupy" in sys.modules:
        pytest.skip("where CuPy is loaded there is no browser")
    with pytest.raises(NotInABrowserError):
        run_in("exercises", code)
    run_in("commands", code)
    exec(code, {})


class PageLoop(asyncio.AbstractEventLoop):
    """A loop as Pyodide's: it calls what is due, has no sockets, and tells nobody what is waiting."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serial = itertools.count()

    def run_until_complete(self, future: Coroutine[Any, Any, Any]) -> Any:
        task = self.create_task(future)
        asyncio._set_running_loop(self)
        try:
            while not task.done():
                when, _, handle = heapq.heappop(self._due)
                time.sleep(max(when - self.time(), 0.0))
                if not handle.cancelled():
                    handle._run()
            return task.result()
        finally:
            asyncio._set_running_loop(None)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._due, (when, next(self._serial), handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.time(), callback, *args, context=context)

    call_soon_threadsafe = call_soon

    def time(self) -> float:
        return time.monotonic()

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, **options)

    def get_debug(self) -> bool:
        return False

    is_closed = get_debug

    def is_running(self) -> bool:
        return True

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is looked at when it is due."""


async def ticks() -> None:
    for _ in range(5):
        await agt.sleep(3.0)
        agt.work(0.5, "tick")


async def pipeline() -> Any:
    op = agt.arange(256).to_host()
    other = asyncio.create_task(ticks())
    results = await asyncio.gather(*(agt.spawn(op) for _ in range(3)))
    await other
    return [result.sum() for result in results]


def traced(run: Callable[[Coroutine[Any, Any, Any]], Any]) -> tuple[Any, list[Any]]:
    with agt.using(SimDevice(machine=SimMachine())), agt.record() as trace:
        result = run(pipeline())
    return result, [(s.stream, s.kind, s.name, s.start, s.end) for s in trace]


def test_a_program_has_one_trace_in_every_loop() -> None:
    usual = traced(asyncio.run)
    assert usual[0] == [32640] * 3
    assert traced(completed) == usual
    assert traced(PageLoop().run_until_complete) == usual


LOOPS = {"asyncio": asyncio.run, "page": PageLoop().run_until_complete}


@pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS)
def test_a_coroutine_is_completed_while_another_loop_runs(run: Callable[[Any], Any]) -> None:
    async def answer(depth: int) -> int:
        if depth:
            return 1 + completed(answer(depth - 1))
        await asyncio.sleep(0.002)
        return await asyncio.create_task(asyncio.sleep(0, result=0))

    async def outer() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert completed(answer(2)) == 2
        with pytest.raises(ZeroDivisionError):
            completed(fails())
        assert (asyncio.get_running_loop(), asyncio.current_task()) == (loop, task)
        await asyncio.sleep(0)  # the task goes on as if nothing had been

    async def fails() -> float:
        return 1 / 0

    run(outer())


def test_who_waits_for_what_never_comes_is_told() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with pytest.raises(UsageError, match="will never happen"):
        completed(waits())
    assert ended == ["cancelled"]


def test_another_thread_may_wake_it_and_an_interrupt_ends_it_at_once() -> None:
    async def asks(answer: int = 7) -> int:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        threading.Thread(target=loop.call_soon_threadsafe, args=(future.set_result, answer)).start()
        if await future == 8:
            raise KeyboardInterrupt
        return answer

    assert completed(asks()) == 7
    with pytest.raises(KeyboardInterrupt):
        completed(asks(8))
