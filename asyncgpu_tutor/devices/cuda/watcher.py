"""One waiting thread for each stream that is awaited.

An event loop must not block, so something else has to notice that a stream has come so far. A host callback
in the stream would be the obvious way, and is the wrong one: after a fault it never comes, and the task
would wait forever. A wait in the driver spins on a core, unless the event was made for a sleeping wait. An
event of that kind, recorded when somebody begins to wait, would lie behind work that was enqueued since.

So a thread looks at the very event, again and again, and sleeps in between: as long as it takes to wake a
thread, and in long waits a twentieth of the time until now, up to a bound, so it is late by little,
compared with what was waited for. There is one thread for each stream that is awaited, because events of
one stream pass in order, and those of another may come first.
"""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.compile import driver_library
from asyncgpu_tutor.devices.cuda.guard import guarded

_logger = logging.getLogger(__name__)

# Between two looks: about as long as it takes to wake a thread. In long waits so much of the time until now,
# up to a bound.
NAP_S, SHARE, LONGEST_S = 200e-6, 0.05, 0.02

_Wake = Callable[[BaseException | None], None]
Job = tuple[Any, _Wake]


class Watcher:
    """Waits for the events of one stream, in order, and wakes who asked; its thread has this name."""

    def __init__(self, ordinal: int, name: str) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ordinal = ordinal
        self._name = name
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        weakref.finalize(self, self._jobs.put, None)

    def watch(self, event: Any, wake: _Wake) -> None:
        """Call `wake` on the waiting thread once `event` has passed or its device has failed."""
        with self._lock:
            if self._thread is None:
                # A daemon: a process may end while its GPU is still busy.
                thread = threading.Thread(
                    target=_wait_for_all,
                    args=(self._jobs, self._ordinal),
                    name=self._name,
                    daemon=True,
                )
                thread.start()
                self._thread = thread  # only now, because a machine may have no thread left
        self._jobs.put((event, wake))


def _wait_for_all(jobs: queue.SimpleQueue[Job | None], ordinal: int) -> None:
    _spoil_no_capture()
    while (job := jobs.get()) is not None:
        event, wake = job
        error: BaseException | None = None
        try:
            with guarded("waiting for the device"):
                # After a fault this fails too, so it belongs to each job.
                runtime.setDevice(ordinal)
                begin = time.perf_counter()
                while not event.done:
                    waited = time.perf_counter() - begin
                    time.sleep(min(max(NAP_S, SHARE * waited), LONGEST_S))
                runtime.eventSynchronize(event.ptr)  # it raises what went wrong
        except Exception as failure:  # noqa: BLE001 - an error here must end no thread that others wait for
            error = failure
        try:
            wake(error)
        except Exception:  # whatever it is, it must not keep the ones behind it from being woken
            _logger.exception("waking an awaiting task failed")
        del job, event, wake, error  # or they would live until the next job comes


def _spoil_no_capture() -> None:
    """Let this thread look at events while others capture.

    One that is `global`, as PyTorch's are, is invalidated by any thread's call that might be meant for it,
    unless that thread's own mode is relaxed. (CUDA Driver API, "cuThreadExchangeStreamCaptureMode".)
    """
    relaxed = ctypes.c_int(2)  # CU_STREAM_CAPTURE_MODE_RELAXED
    with suppress(OSError):  # tests have no driver
        driver_library().cuThreadExchangeStreamCaptureMode(ctypes.byref(relaxed))
