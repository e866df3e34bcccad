"""Which of the two recorders a recording gets."""

from __future__ import annotations

from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.cupti import CuptiRecorder, CuptiRefusedError
from asyncgpu_tutor.devices.cuda.recorder import Recorder
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans import SpanLog

__all__ = ["AnyRecorder", "open_recorder"]

AnyRecorder = Recorder | CuptiRecorder


def open_recorder(log: SpanLog, ordinal: int, source: str) -> AnyRecorder:
    """A recorder that fills `log`.

    Parameters
    ----------
    source : {"auto", "cupti", "all", "events"}
        ``"auto"`` is CUPTI where it can be used, else events; `log.about` says why. ``"all"`` is CUPTI, and
        what other libraries enqueue.

    Raises
    ------
    UsageError
        If CUPTI was asked for and cannot be used.
    """
    facts = runtime.getDeviceProperties(ordinal)
    slots = facts["multiProcessorCount"] * facts["maxThreadsPerMultiProcessor"]
    log.about["threads_at_once"] = int(slots)
    if source == "events":
        return Recorder(log)
    try:
        return CuptiRecorder(log, ordinal, everything=source == "all")
    except CuptiRefusedError as reason:
        if source in ("cupti", "all"):
            raise UsageError(
                f"record(source={source!r}) is not possible, because {reason}. source='auto' takes CUDA "
                "events then."
            ) from None
        recorder = Recorder(log)
        log.about["instead_of_cupti"] = f"CUDA events, because {reason}"
        return recorder
