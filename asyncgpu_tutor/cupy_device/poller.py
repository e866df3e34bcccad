"""From a CUDA event to an awaiting task: look for a little while, then let a thread sleep on it.

Short work is over sooner than a thread can be woken for it, and a thread that wakes fights the event loop
for the interpreter's lock. So an event is first looked at once a turn of the loop. What takes longer
than `PATIENCE_US` goes to the stream's `Watcher`, which costs no CPU.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from typing import Any

from cupy.cuda import runtime

from asyncgpu_tutor.cupy_device.watcher import Watcher, woken

__all__ = ["NOT_READY", "Poller"]

NOT_READY = 600  # cudaErrorNotReady
PATIENCE_US = 200.0

Wake = Callable[[BaseException | None], None]
Job = tuple[Any, Watcher, Wake, float]


class Poller:
    """What is being looked at, for each event loop."""

    def __init__(self) -> None:
        self._jobs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[Job]] = (
            weakref.WeakKeyDictionary()
        )

    def watch(self, event: Any, watcher: Watcher, wake: Wake) -> None:
        """Call `wake` once `event` has passed or its device has failed. Needs a running loop.

        Parameters
        ----------
        event : cupy.cuda.Event
            One whose waiter sleeps instead of spinning.
        watcher : Watcher
            Who waits for it if it takes long.
        """
        loop = asyncio.get_running_loop()
        jobs = self._jobs.setdefault(loop, [])
        if not jobs:
            loop.call_soon(self._turn, loop)
        jobs.append((event, watcher, wake, time.perf_counter() + PATIENCE_US * 1e-6))

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.perf_counter()
        jobs = self._jobs[loop]
        left: list[Job] = []
        for job in jobs:
            event, watcher, wake, until = job
            status = int(runtime.eventQuery(event.ptr))
            if status == 0:
                woken(wake, None)
            elif status == NOT_READY and now < until:
                left.append(job)
            else:  # it takes long, or has failed: a wait also says why
                watcher.watch(event, wake)
        jobs[:] = left
        if left:
            loop.call_soon(self._turn, loop)
