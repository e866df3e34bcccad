"""A run in words. Each function gives the lines of one part of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from asyncgpu_tutor import DeviceArray, Trace
from asyncgpu_tutor.commands.mlp.job import Shares
from asyncgpu_tutor.commands.mlp.measuring import Outcome
from asyncgpu_tutor.commands.mlp.verification import output_ok
from asyncgpu_tutor.commands.mlp.ways import WAYS
from asyncgpu_tutor.data import Digits
from asyncgpu_tutor.traces.spans import Metrics
from asyncgpu_tutor.traces.spans.table import key, strips
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
WIDTH = 60  # columns of a timeline
GLUE = "\N{NO-BREAK SPACE}"


def weight_line(weight: DeviceArray, several: bool = False) -> str:
    """Shape and share count of one of the weights."""
    shape = "x".join(str(size) for size in weight.shape)
    where = weight.device.name if several else "device"
    return f"  {weight.name}: {shape} on {where} (share count {weight.share_count})"


def shares_line(when: str, shares: Shares) -> str:
    """The share counts of all weights at some time."""
    devices = list(dict.fromkeys(device for device, _ in shares))
    told = [
        ", ".join(f"{name} {count}" for (there, name), count in shares.items() if there == device)
        + (f" on {device}" if len(devices) > 1 else "")
        for device in devices
    ]
    return f"  Share counts {when}: {'; '.join(told)}"


def batch_lines(outcome: Outcome, softmax: bool = False) -> Iterator[str]:
    """One line for each batch: size, first values, and whether the last kernel ran."""
    name = "softmax" if softmax else "ReLU"
    for number, output in enumerate(outcome.outputs):
        mark = f"[{name} OK]" if output_ok(output, softmax) else f"[{name} FAILED]"
        # str() of a NumPy float32 has the fewest digits that tell it from its neighbours.
        first = ", ".join(str(value) for value in output[:8])
        yield f"Batch {number}: {output.size} elements, first 8 = [{first}] {mark}"


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


# ------------------------------------------------------------------ the ways beside each other
class Row(NamedTuple):
    """One way in the table."""

    how: str  # as for ``--how``
    name: str  # in the table
    trace: Trace
    metrics: Metrics  # of the trace
    # Whether the trace has a graph as one bar, so that nobody knows what overlapped in it.
    blind: bool


def rows(outcomes: Mapping[str, Outcome], streams: int) -> list[Row]:
    """One for each way, in the order in which they ran."""
    return [
        Row(how, _name(how, streams), outcome.trace, outcome.trace.metrics(), _blind(outcome.trace))
        for how, outcome in outcomes.items()
    ]


def _name(how: str, streams: int) -> str:
    if streams == 1:
        return WAYS[how].name.format(streams="one stream, awaited")
    word = NUMBERS[streams] if streams < len(NUMBERS) else str(streams)
    return WAYS[how].name.format(streams=f"{word} streams")


def _blind(trace: Trace) -> bool:
    return any(span.kind == "graph" for span in trace.device_spans)


def best(table: Sequence[Row]) -> Row:
    """The way with the smallest makespan."""
    return min(table, key=lambda row: row.metrics.makespan)


def table_lines(table: Sequence[Row]) -> Iterator[str]:
    """Makespan, overlap in us and of the device's busy time, and speed-up over the first."""
    first = table[0]
    alone = len(table) == 1
    size = max(len(row.name) for row in table)
    yield f"Timeline ({clock_words(first.trace.clock)}):"
    heading = f"  {'':{size}} {'makespan':>13} {'overlap':>17} {'busy at once':>14}"
    yield heading if alone else f"{heading} {'speed-up':>9}"
    for row in table:
        m = row.metrics
        overlap = f"{m.overlap:.1f} us {m.overlap_fraction:5.0%}"
        at_once = count(m.max_concurrency, "stream")
        if row.blind:
            overlap, at_once = "not seen", "one bar"
        line = f"  {row.name:{size}} {m.makespan:>10.1f} us {overlap:>17} {at_once:>14}"
        yield line if alone else f"{line} {first.metrics.makespan / m.makespan:>9.2f}"
    if any(row.blind for row in table):
        yield "  (CUDA events see a graph as one bar: pip install 'asyncgpu_tutor[trace]' to look inside.)"


def timeline_lines(shown: Sequence[Row]) -> Iterator[str]:
    """Host and streams of some ways as text, on one scale."""
    begins = [min(span.start for span in row.trace) for row in shown]
    column = max(row.metrics.makespan for row in shown) / WIDTH
    yield f"One column is {column:.1f} us:"
    for row, begin in zip(shown, begins, strict=True):
        yield f"  {row.name}:"
        lines = strips(
            row.trace, begin=begin, column=column, width=WIDTH, groups=("host", "streams")
        )
        yield from (f"    {line}" for line in lines)
    # A letter and its meaning must not be parted, so `wrap` sees no space in between.
    letters = " ".join(key(row.trace for row in shown).split()).split(", ")
    glued = ", ".join([letter.replace(" ", GLUE) for letter in letters])
    for line in wrap(glued, 80, initial_indent="  ", subsequent_indent="    "):
        yield line.replace(GLUE, " ")
