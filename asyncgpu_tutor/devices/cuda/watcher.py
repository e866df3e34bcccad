"""One waiting thread for each stream that is awaited.

A host callback in the stream would be the obvious way, and is the wrong one: after a fault it never
comes, and `Event.done` stays False; only a blocking wait reports the error. So a thread blocks, in the
driver, without spinning and without the interpreter's lock.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.guard import guarded

_logger = logging.getLogger(__name__)

Wake = Callable[[BaseException | None], None]
Job = tuple[Any, Wake]


class Watcher:
    """Waits for the events of one stream, in order, and wakes who asked.

    Parameters
    ----------
    ordinal : int
        The device.
    name : str
        Of the thread.
    """

    def __init__(self, ordinal: int, name: str) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ordinal = ordinal
        self._name = name
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        weakref.finalize(self, self._jobs.put, None)

    def watch(self, event: Any, wake: Wake) -> None:
        """Call `wake` on the waiting thread once `event` has passed or its device has failed."""
        with self._lock:
            if self._thread is None:
                # A daemon: a process may end while its GPU is still busy.
                self._thread = threading.Thread(
                    target=_wait_for_all,
                    args=(self._jobs, self._ordinal),
                    name=self._name,
                    daemon=True,
                )
                self._thread.start()
        self._jobs.put((event, wake))


def _wait_for_all(jobs: queue.SimpleQueue[Job | None], ordinal: int) -> None:
    while (job := jobs.get()) is not None:
        event, wake = job
        error: BaseException | None = None
        try:
            with guarded("waiting for the device"):
                # After a fault this fails too, so it belongs to each job.
                runtime.setDevice(ordinal)
                event.synchronize()
        except Exception as failure:  # noqa: BLE001 - or nobody behind it would ever be woken
            error = failure
        woken(wake, error)
        del job, event, wake, error  # or they would live until the next job comes


def woken(wake: Wake, error: BaseException | None) -> None:
    """Call `wake`. Whatever it raises must not keep the ones behind it from being woken."""
    try:
        wake(error)
    except Exception:
        _logger.exception("waking an awaiting task failed")
