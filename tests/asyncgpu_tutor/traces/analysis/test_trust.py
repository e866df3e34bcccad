"""What profiles of other people's programs were told wrongly, each reduced to the smallest trace."""

import math
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.analysis.idle import Evidence, idle_of_streams
from asyncgpu_tutor.types import Span
from tests.asyncgpu_tutor.traces.formats.nsys_export import THREAD, Export, read
from tests.asyncgpu_tutor.traces.invariants import hold

from .programs import call, finding


def kernel(number: int, start: float, end: float, *after: int, stream: int = 1) -> Span:
    return Span(number, "kernel", "k", start, end, "cuda:0", stream, after=after)


def costs(trace: Trace) -> dict[str, float]:
    return {found.name: found.cost for found in agt.diagnose(trace)}


def test_a_stream_is_in_the_order_in_which_its_work_started(tmp_path: Path) -> None:
    """Ten kernels back to back whose calls were made before the capture, and one with a call."""
    export = Export()
    for number in range(10):
        export.kernel("early", 100_000 * number, 100_000 * (number + 1), 13, 0)
    export.launch("late", 200_000, 1_010_000, 1_020_000, 1)
    trace = read(export, tmp_path)
    pauses = idle_of_streams(Evidence(trace))
    assert math.fsum(p.duration for p in pauses) == pytest.approx(10)
    assert [s.name for s in trace.device_spans] == ["early"] * 10 + ["late"]
    hold(trace)


def test_calls_of_two_threads_for_one_stream_are_in_the_order_of_their_work(tmp_path: Path) -> None:
    export = Export()
    for number, start in ((1, 9_000), (2, 5_000)):
        export.call("cudaLaunchKernel_v7000", 1_000 * number, 4_000, number, thread=THREAD + number)
        export.kernel(f"k{number}", start, start + 2_000, 13, number)
    trace = read(export, tmp_path)
    assert [s.name for s in trace.device_spans] == ["k2", "k1"]
    assert [i.duration for i in Evidence(trace).idle] == pytest.approx([2])
    hold(trace)


def test_work_that_was_queued_is_no_standstill() -> None:
    """The wait ends early, and the next call comes late; the device has work meanwhile."""
    queued = [call(0, 0, 1), kernel(1, 10, 20, 0), call(2, 1, 2), kernel(3, 25, 500, 2)]
    wait = Span(4, "wait", "synchronize event", 15, 22, "cuda:0")
    trace = Trace([*queued, wait, call(5, 450, 451), kernel(6, 500, 510, 5)])
    assert "hidden synchronisation" not in costs(trace)
    # The same without the queued kernel: now the host would be sooner by its wait of 7 us.
    spans = [s for s in trace if s.id not in {2, 3}]
    assert costs(Trace(spans))["hidden synchronisation"] == 7


def test_loading_while_the_queue_is_full_costs_nothing() -> None:
    quick = [call(i, 18_000 + 10 * i, 18_006 + 10 * i) for i in range(2, 6)]
    loading = [call(1, 100, 18_000), *quick, kernel(6, 431_000, 432_000, 1)]
    assert costs(Trace(loading))["lazy module loading"] == pytest.approx(17_900)
    busy = Span(0, "kernel", "long", 0, 431_000, "cuda:0", 1)
    assert "lazy module loading" not in costs(Trace([busy, *loading]))
    # The first copy is not charged for the start of CUDA.
    copy = replace(kernel(1, 104_990, 104_992, 0), kind="h2d", detail={"pageable": True})
    trace = Trace([Span(0, "call", "enqueue h2d", 0, 105_000, "cuda:0"), copy])
    assert costs(trace)["pageable copy"] == pytest.approx(10)


def host_bound(name: str = "k") -> Trace:
    """Twenty short kernels on the null stream, with long pauses between their calls."""
    spans: list[Span] = []
    for i in range(0, 40, 2):
        work = replace(kernel(i + 1, 25 * i + 5, 25 * i + 9, i, stream=0), name=name)
        spans += [call(i, 25 * i, 25 * i + 5), work]
    return Trace(spans, "Nsight Systems", "GPU")


def test_advice_is_in_the_words_of_the_program() -> None:
    for kernels, clock, words, never in (
        ("saxpy", "Nsight Systems", "CUDA", ("agt.", "CuPy", "torch", "Python")),
        ("cupy_add", "Nsight Systems", "CuPy", ("agt.", "torch")),
        ("k", "PyTorch profiler", "PyTorch", ("agt.", "CuPy")),
    ):
        trace = Trace(host_bound(kernels).spans, clock, "GPU", {"foreign": True})
        found = agt.diagnose(trace)
        assert {f.name for f in found} == {"host-bound", "small kernels", "null stream"}
        assert words in finding(trace, "host-bound").advice
        assert not [word for word in never for f in found if word in str(f)]
    assert "op.graph_on" in finding(host_bound(), "host-bound").advice


def test_each_of_two_copies_holds_the_engine_for_its_own_time() -> None:
    times = [(1, 0, 10, 1), (2, 20, 30, 2), (3, 40, 50, 3)]
    copies = [replace(kernel(i, a, b, 0, stream=s), kind="h2d") for i, a, b, s in times]
    found = idle_of_streams(Evidence(Trace([call(0, 0, 0), *copies])))
    held = [(i.start, i.blocker.id) for i in found if i.cause == "engine busy" and i.blocker]
    assert held == [(0, 1), (0, 1), (20, 2)]


def test_nobody_knows_why_work_without_a_call_came_late() -> None:
    trace = Trace([kernel(0, 0, 5), kernel(1, 20, 30)])
    assert [(i.cause, i.duration) for i in Evidence(trace).idle] == [("unknown", 15)]
    assert "unknown" in agt.analyse(trace).table()


def test_what_two_gpus_do_at_once_is_no_overlap_of_streams() -> None:
    """Each has one stream at work, both at once, with a pause of its own."""
    one = [kernel(0, 0, 10), kernel(1, 15, 20)]
    other = [replace(s, id=s.id + 2, device="cuda:1", start=s.start + 1) for s in one]
    trace = Trace([*one, *other])
    assert trace.metrics().overlap == 0
    assert not any("overlap" in fact for fact in trace.plot().panels[0].facts())
    first, second = (part.metrics() for _, part in trace.each(trace.devices))
    for some, there in ((trace, "cuda:0, cuda:1"), (Trace(), "none")):
        with pytest.raises(UsageError, match=f"'cuda:2'; there are: {there}"):
            some.of("cuda:2")
    assert (first.device_idle, second.device_idle) == (5, 6)
    assert second.overlap == 0
    assert trace.metrics().makespan == 20
    assert trace.table().count("device busy") == 2
    words = trace.plot().words
    assert "cuda:0" in words
    assert "at the same time" not in words


WORK = st.tuples(*(st.integers(0, 3000) for _ in range(4)), st.integers(13, 15), st.booleans())


@given(
    work=st.lists(WORK, min_size=1, max_size=12),
    waits=st.lists(st.tuples(*[st.integers(0, 3000)] * 2), max_size=4),
)
def test_no_timeline_is_impossible(
    work: list[tuple[int, ...]], waits: list[tuple[int, int]], tmp_path: Path
) -> None:
    """Calls and work of any times: nothing in a file says that they fit together, and most clocks are off."""
    export = Export()
    for number, (asked, took, start, length, stream, known) in enumerate(work, 1):
        if known:
            export.call("cudaLaunchKernel_v7000", asked, asked + took, number)
        export.kernel("k" * (number % 3 + 1), start, start + length, stream, known * number)
    for number, (start, length) in enumerate(waits, 100):
        export.call("cudaDeviceSynchronize_v3020", start, start + length, number)
    try:
        trace = read(export, tmp_path)
    except UsageError:
        assert not any(start or length for _, _, start, length, *_ in work)
        return
    said = cast("list[str]", trace.about.get("damage", []))
    left_out = sum(int(line.split()[0]) for line in said if "left out" in line)
    assert len(trace.device_spans) <= len(work) <= len(trace.device_spans) + left_out
    hold(trace)


def test_ranges_alone_are_more_than_nothing() -> None:
    found = agt.analyse(Trace([Span(0, "range", "a", 0, 9, ""), Span(1, "range", "b", 1, 5, "")]))
    assert repr(found) == "<Analysis: no device work>"
    assert "No device work was recorded." in found._repr_html_()
    (panel,) = found.plot().panels
    assert {panel.state(bar) for bar in panel.layout.bars} == {""}  # there is no critical path
