"""What a table shows, in plain sentences. Each is said only where its numbers bear it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from asyncgpu_tutor.commands.mlp.printout import Row

GAIN = 0.95  # what takes more than this part of the other's makespan is called no gain
BUSY = 0.5  # a device with work in less than this part of the makespan waits for the host


def conclusion_lines(table: Sequence[Row], devices: int = 1) -> list[str]:
    """Where several streams gain, where the host is the bottleneck, and what a graph cures."""
    return wrap(" ".join(_sentences(table, devices)), 80)


def _sentences(table: Sequence[Row], devices: int) -> Iterator[str]:
    if len(table) == 1:
        yield _alone(table[0])
        return
    found = {row.how: row for row in table}
    streams, prepared, graph = (found[how] for how in ("streams", "prepared", "graph"))
    if len(streams.metrics.stream_busy) > devices:
        yield _of_streams(found["one-stream"], streams)
    yield _of_graph(streams, prepared, graph, devices)


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
    if _waits(row):
        return (
            f"Nothing overlaps: {_busy(row)}, so the host is the bottleneck. Try --how graph, or a larger "
            "--dim."
        )
    return "Nothing overlaps."


def _of_streams(one: Row, streams: Row) -> str:
    name = streams.name.capitalize()
    m = streams.metrics
    if _gains(streams, one):
        told = f", with work on up to {m.max_concurrency} of them at once" if m.overlap else ""
        return f"{name} take {_less(streams, one)} less time than one{told}."
    reason = f": {_busy(streams)}, so the host is the bottleneck" if _waits(streams) else ""
    return f"{name} bring no gain over one{reason}."


def _of_graph(streams: Row, prepared: Row, graph: Row, devices: int) -> str:
    several = len(streams.metrics.stream_busy) > devices
    than = f"than on {streams.name}" if several else "than as tasks"
    m = graph.metrics
    if _gains(graph, prepared) and _gains(graph, streams):
        calls = "one call of the host" if devices == 1 else "one call for each device"
        seen = bool(m.overlap) and not graph.blind
        told = (
            f", and overlap in {m.overlap_fraction:.0%} of the device's busy time" if seen else ""
        )
        return (
            f"As a graph, started by {calls}, the batches take {_less(graph, streams)} less time "
            f"{than}{told}."
        )
    if _gains(prepared, streams):
        return (
            f"Prepared once, the batches take {_less(prepared, streams)} less time {than}, and a graph "
            "brings no more."
        )
    reason = "" if _waits(streams) else f": {_busy(streams)} without them"
    return f"Neither preparing nor a graph brings a gain{reason}."


def _gains(row: Row, other: Row) -> bool:
    return row.metrics.makespan <= GAIN * other.metrics.makespan


def _less(row: Row, other: Row) -> str:
    return f"{1 - row.metrics.makespan / other.metrics.makespan:.0%}"


def _waits(row: Row) -> bool:
    """Whether the device mostly waits for the host."""
    return row.metrics.device_active < BUSY * row.metrics.makespan


def _busy(row: Row) -> str:
    return (
        f"the device has work in {row.metrics.device_active / row.metrics.makespan:.0%} of the time"
    )
