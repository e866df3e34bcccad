"""A run in words. Each function gives the lines of one part of the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from asyncgpu_tutor import DeviceArray, Trace
from asyncgpu_tutor.commands.mlp.checks import relu_ok
from asyncgpu_tutor.commands.mlp.program import Outcome, ShareCounts
from asyncgpu_tutor.data import Digits
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count

__all__ = ["batch_lines", "quality_lines", "shares_line", "timeline_lines", "weight_line"]


def weight_line(weight: DeviceArray) -> str:
    """Shape and share count of one of the weights."""
    shape = "x".join(str(size) for size in weight.shape)
    return f"  {weight.name}: {shape} on device (share count {weight.share_count})"


def shares_line(when: str, counts: ShareCounts) -> str:
    """The share counts of both weights at some time."""
    return f"  Share counts {when}: W0 {counts.w0}, W1 {counts.w1}"


def batch_lines(outcome: Outcome) -> Iterator[str]:
    """One line for each batch: size, first values, and whether the ReLU ran."""
    for number, output in enumerate(outcome.outputs):
        mark = "[ReLU OK]" if relu_ok(output) else "[ReLU FAILED]"
        yield f"Batch {number}: {output.size} elements, first 8 = {_first(output)} {mark}"


def _first(output: npt.NDArray[Any]) -> str:
    # str() of a NumPy float32 has the fewest digits that tell it from its neighbours.
    return "[" + ", ".join(str(number) for number in output[:8]) + "]"


def quality_lines(digits: Digits, outcome: Outcome) -> Iterator[str]:
    """How well the scores tell the digit from the others."""
    quality = digits.quality(outcome.outputs)
    yield f"Digits: is it a {digits.digit}? {quality.total} samples that training never saw"
    yield (
        f"  accuracy {quality.accuracy:.3f} (always answering no: {quality.baseline:.3f}), "
        f"balanced accuracy {quality.balanced_accuracy:.3f}"
    )
    yield f"  precision {quality.precision:.3f}, recall {quality.recall:.3f}"
    yield f"  Data: {digits.source}; {digits.licence}"


def timeline_lines(trace: Trace) -> Iterator[str]:
    """What the trace says in numbers."""
    metrics = trace.metrics()
    yield f"Timeline ({clock_words(trace.clock)}):"
    yield f"  makespan {metrics.makespan:.1f} us, the device busy in {metrics.device_active:.1f} us"
    yield (
        f"  overlap {metrics.overlap:.1f} us, {metrics.overlap_fraction:.0%} of the busy time; "
        f"at most {metrics.max_concurrency} of {count(len(trace.streams), 'stream')} busy at once"
    )
    yield f"  speed-up over the same work end to end: {metrics.speedup:.2f}"
    if len(trace.streams) > 1 and not metrics.overlap:
        yield "  Each batch was done before the next one began: the host is the bottleneck."
        yield "  Larger batches overlap: see --dim."
