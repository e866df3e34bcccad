"""A run in words: its results, checked against a reference in float64, and the ways beside each other."""

from collections.abc import Iterator, Mapping

import numpy as np

from asyncgpu_tutor import Trace
from asyncgpu_tutor.commands.mlp.ways import WAYS, _Array
from asyncgpu_tutor.data import Digits, MlpInputs, reference_forward
from asyncgpu_tutor.traces.spans.metrics import Metrics, measure
from asyncgpu_tutor.traces.spans.vocabulary import clock_words

_BUSY = 0.5  # a device with work in less than this part of a run waits for the host


def batch_lines(outputs: _Array) -> Iterator[str]:
    """One line for each batch: size, first values, and whether the last kernel ran."""
    for number, output in enumerate(outputs):
        mark = "[ReLU OK]" if np.all(output >= 0) else "[ReLU FAILED]"
        # str() of a NumPy float32 has the fewest digits that tell it from its neighbours.
        first = ", ".join(str(value) for value in output[:8])
        yield f"Batch {number}: {output.size} elements, first 8 = [{first}] {mark}"


def quality_lines(digits: Digits, outputs: _Array) -> Iterator[str]:
    """Counts of how well the scores tell the digit from the others."""
    quality = digits.quality(outputs)
    yield f"Digits: is it a {digits.digit}? {quality.total} samples that training never saw"
    yield (
        f"  accuracy {quality.accuracy:.3f} (always answering no: {quality.baseline:.3f}), "
        f"balanced accuracy {quality.balanced_accuracy:.3f}"
    )
    yield f"  precision {quality.precision:.3f}, recall {quality.recall:.3f}"
    yield f"  Data: {digits.source}; {digits.licence}"


def until_done(trace: Trace) -> Metrics:
    """The metrics of a run that ends with the device.

    Some ways end with a wait in a call, and others with a task whose waking isn't in the trace.
    """
    return measure(span for span in trace if span.kind != "wait")


def table_lines(traces: Mapping[str, Trace]) -> Iterator[str]:
    """When each way's device is done, overlap in us and of its busy time, and speed-up over the first."""
    measured = {how: until_done(trace) for how, trace in traces.items()}
    first = next(iter(measured))
    best = min(measured, key=lambda how: measured[how].makespan)
    yield f"Timeline ({clock_words(traces[first].clock)}):"
    if best != first:
        quick, slow = measured[best].makespan, measured[first].makespan
        told = f"{WAYS[best].name}, {quick:.1f} µs instead of {slow:.1f}"
        yield f"  The same work, {slow / quick:.1f} times as fast: {told}"
    yield f"  {'':21} {'device done':>13} {'device busy':>12} {'overlap':>17} {'speed-up':>9}"
    blind = False
    for how, m in measured.items():
        busy, overlap = f"{m.device_active / m.makespan:.0%}", f"{m.overlap:.1f} µs"
        overlap += f" {m.overlap_fraction:5.0%}"
        if any(span.kind == "graph" for span in traces[how].device_spans):
            blind, overlap = True, "not seen"
        speed_up = measured[first].makespan / m.makespan
        name = f"{WAYS[how].name:21} {m.makespan:>10.1f} µs"
        yield f"  {name} {busy:>12} {overlap:>17} {speed_up:>9.2f}"
    if blind:
        yield "  (CUDA events see a graph as one bar: pip install 'asyncgpu_tutor[trace]' to look inside.)"
    if any(m.device_active < _BUSY * m.makespan for m in measured.values()):
        yield "  A device that is busy for less than half of the time waits for Python: no stream helps."


def rounding_bound(inputs: MlpInputs) -> np.ndarray:
    """Bound on float32's distance from the exact result, for each sample, whatever the order of its sums.

    Each element of a product ``a @ b`` of length k is off by at most ``g(k) |a| |b|``, where
    ``g(k) = k u / (1 - k u)`` and ``u = 2**-24``, and by ``e |b|`` more if a is off by e (N. Higham, Accuracy
    and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 3.5).
    """
    values = inputs.batches.astype(np.float64)
    off = np.zeros_like(values)
    for weight in (inputs.w0.astype(np.float64), inputs.w1.astype(np.float64)):
        most = len(weight) * 2.0**-24
        off = off @ abs(weight) + most / (1 - most) * (abs(values) + off) @ abs(weight)
        values = values @ weight
    return off


def problems(inputs: MlpInputs, outputs: _Array) -> Iterator[str]:
    """Say what is wrong with a run; nothing if all is right."""
    expected = reference_forward(inputs.batches, inputs.w0, inputs.w1)
    allowed = rounding_bound(inputs)
    for number, output in enumerate(outputs):
        if not np.all(output >= 0):
            yield f"batch {number} has values below zero: the ReLU did not run"
        # Written so that NaN counts as wrong.
        wrong = ~(abs(output - expected[number]) <= allowed[number])
        if wrong.any():
            first = int(np.argmax(wrong))
            yield (
                f"batch {number} differs from the reference in {np.sum(wrong)} of {output.size} "
                f"elements; the first is element {first}, {output[first]:.6g} instead of "
                f"{expected[number, first]:.6g} (allowed: {allowed[number, first]:.1g})"
            )
