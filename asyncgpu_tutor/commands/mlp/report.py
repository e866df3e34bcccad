"""A run in words: its results, the ways beside each other, and what follows from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from asyncgpu_tutor import Trace
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
GAIN = 0.95  # what takes more than this part of the other's makespan is called no gain
BUSY = 0.5  # a device with work in less than this part of the makespan waits for the host


def shares_line(when: str, shares: Mapping[str, int]) -> str:
    """The share counts of all weights at some time."""
    told = ", ".join(f"{name} {number}" for name, number in shares.items())
    return f"  Share counts {when}: {told}"


def batch_lines(outcome: Outcome, softmax: bool) -> Iterator[str]:
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
    blind: bool  # the trace has a graph as one bar, so nobody knows what overlapped in it

    @property
    def makespan(self) -> float:
        """From the first start to the last end, in us."""
        return self.metrics.makespan

    @property
    def busy(self) -> float:
        """The part of the time in which the device has work."""
        return self.metrics.device_active / self.makespan

    def gains_over(self, other: Row) -> bool:
        """True if it takes clearly less time."""
        return self.makespan <= GAIN * other.makespan


def rows(outcomes: Mapping[str, Outcome], streams: int) -> list[Row]:
    """One for each way, in the order in which they ran."""
    word = NUMBERS[streams] if streams < len(NUMBERS) else str(streams)
    several = "one stream, awaited" if streams == 1 else f"{word} streams"
    found: list[Row] = []
    for how, outcome in outcomes.items():
        trace = outcome.trace
        blind = any(span.kind == "graph" for span in trace.device_spans)
        name = WAYS[how].name.format(streams=several)
        found.append(Row(how, name, trace, trace.metrics(), blind))
    return found


def table_lines(table: Sequence[Row]) -> Iterator[str]:
    """Makespan, overlap in us and of the device's busy time, and speed-up over the first."""
    first, alone = table[0], len(table) == 1
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
        line = f"  {row.name:{size}} {row.makespan:>10.1f} us {overlap:>17} {at_once:>14}"
        yield line if alone else f"{line} {first.makespan / row.makespan:>9.2f}"
    if any(row.blind for row in table):
        yield "  (CUDA events see a graph as one bar: pip install 'asyncgpu_tutor[trace]' to look inside.)"


def timeline_lines(shown: Sequence[Row]) -> Iterator[str]:
    """Host and streams of some ways as text, on one scale."""
    column = max(row.makespan for row in shown) / WIDTH
    yield f"One column is {column:.1f} us:"
    for row in shown:
        yield f"  {row.name}:"
        begin = min(span.start for span in row.trace)
        groups = ("host", "streams")
        lines = strips(row.trace, begin=begin, column=column, width=WIDTH, groups=groups)
        yield from (f"    {line}" for line in lines)
    # A letter and its meaning must not be parted, so `wrap` sees no space in between.
    letters = " ".join(key(row.trace for row in shown).split()).split(", ")
    glued = ", ".join([letter.replace(" ", GLUE) for letter in letters])
    for line in wrap(glued, 80, initial_indent="  ", subsequent_indent="    "):
        yield line.replace(GLUE, " ")


# ------------------------------------------------------------------ what follows
def conclusion_lines(table: Sequence[Row]) -> list[str]:
    """Plain sentences, each said only where the numbers bear it out."""
    found = {row.how: row for row in table}
    if len(table) == 1:
        told = _alone(table[0])
    else:
        told = _of_graph(found["streams"], found["prepared"], found["graph"])
        if len(found["streams"].metrics.stream_busy) > 1:
            told = f"{_of_streams(found['one-stream'], found['streams'])} {told}"
    return wrap(told, 80)


def _alone(row: Row) -> str:
    m = row.metrics
    if row.blind:
        return f"The run took {m.makespan:.1f} us; what overlapped in the graph is not known."
    if m.overlap:
        return (
            f"In {m.overlap_fraction:.0%} of the device's busy time, several streams had work: at most "
            f"{m.max_concurrency} at once."
        )
    if row.how == "sequential":
        return "Nothing overlaps: each batch is waited for before the next is submitted."
    if len(m.stream_busy) == 1:
        return "Nothing overlaps: there is one stream."
    if row.busy < BUSY:
        return f"Nothing overlaps: {_bottleneck(row)}. Try --how graph, or a larger --dim."
    return "Nothing overlaps."


def _of_streams(one: Row, streams: Row) -> str:
    name, m = streams.name.capitalize(), streams.metrics
    if streams.gains_over(one):
        told = f", with work on up to {m.max_concurrency} of them at once" if m.overlap else ""
        return f"{name} take {_less(streams, one)} less time than one{told}."
    reason = f": {_bottleneck(streams)}" if streams.busy < BUSY else ""
    return f"{name} bring no gain over one{reason}."


def _of_graph(streams: Row, prepared: Row, graph: Row) -> str:
    m = graph.metrics
    than = "as tasks" if len(streams.metrics.stream_busy) == 1 else f"on {streams.name}"
    if graph.gains_over(prepared) and graph.gains_over(streams):
        told = f", and overlap in {m.overlap_fraction:.0%} of the device's busy time"
        return (
            "As a graph, started by one call of the host, the batches take "
            f"{_less(graph, streams)} less time than {than}{told if m.overlap and not graph.blind else ''}."
        )
    if prepared.gains_over(streams):
        return (
            f"Prepared once, the batches take {_less(prepared, streams)} less time than {than}, and a "
            "graph brings no more."
        )
    busy = f"the device has work in {streams.busy:.0%} of the time without them"
    reason = f": {busy}" if streams.busy >= BUSY else ""
    return f"Neither preparing nor a graph brings a gain{reason}."


def _less(row: Row, other: Row) -> str:
    return f"{1 - row.makespan / other.makespan:.0%}"


def _bottleneck(row: Row) -> str:
    return f"the device has work in {row.busy:.0%} of the time, so the host is the bottleneck"
