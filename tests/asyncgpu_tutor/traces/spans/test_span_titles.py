"""What stands on a bar: the program's own name, or one word for a call of the host."""

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.traces.spans import Span, SpanKind, SpanLog
from asyncgpu_tutor.traces.spans.tag import Name
from asyncgpu_tutor.types import Device

TITLES: list[tuple[SpanKind, str, str]] = [
    ("call", "launch relu", "launch"), ("call", "enqueue h2d", "h2d"), ("call", "malloc x", "malloc"),
    ("call", "record", "record"), ("wait", "synchronize stream 3", "wait"), ("kernel", "relu", "relu"),
    ("range", "a part of it", "a part of it"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "title"), TITLES)
def test_a_bar_has_a_short_title(kind: SpanKind, name: str, title: str) -> None:
    assert Span(0, kind, name, 0, 1, "sim:0").title == title


def test_a_name_that_the_program_gave_is_on_the_bar_and_the_kernels_is_kept() -> None:
    log = SpanLog("sim:0")
    given = log.finish(log.draft("kernel", "relu", 1, label=Name("activation")), 0, 1)
    usual = log.finish(log.draft("kernel", "relu", 1, label="relu"), 1, 2)
    assert (given.title, given.name, given.label) == ("activation: relu", "relu", "activation")
    assert usual.title == "relu"
    (read,) = own_json.read_own_json(own_json.parsed(agt.Trace([given]).to_json()))[0]
    assert read.title == given.title


def test_work_of_others_says_in_which_range_it_was_enqueued() -> None:
    trace = agt.Trace.load(agt.Trace.recorded_file("torch_awaiting.json"))
    kernel = next(span for span in trace.device_spans if span.kind == "kernel")
    assert kernel.label == "request"
    assert "in the range request" in trace.between(kernel.start, kernel.end).plot().svg()


def test_the_name_of_a_composite_is_on_the_bars_of_what_is_inside(device: Device) -> None:
    with agt.record() as trace:
        agt.zip(agt.zeros(4), agt.ones(4)).named("both").sync()
        agt.zeros(4).sync()
    titles = [span.title for span in trace.device_spans]
    assert titles == ["both: memset", f"both: {trace.device_spans[1].name}", "memset"]


def test_only_the_programs_own_events_are_calls_of_the_host(device: Device) -> None:
    one, two = agt.create_stream(), agt.create_stream()
    with agt.record() as trace:
        agt.zeros(4).async_on(one)
        event = one.record()
        two.wait_event(event)
        agt.zeros(4).async_on(two)
        device.synchronize()
    calls = [span for span in trace if span.kind == "call" and "malloc" not in span.name]
    names = [span.name for span in calls]
    assert names == ["enqueue memset", "record", "wait_event", "enqueue memset"]
    assert calls[1].detail["stream"] == one.number
    assert calls[2].detail == {"stream": two.number, "event_of": one.number}
    first, second = trace.find("memset")
    assert trace.happens_before(first, second)


def test_an_event_costs_what_the_model_says(sim: SimDevice) -> None:
    with agt.record() as trace:
        agt.create_stream().record()
    (call,) = trace.find("record")
    assert call.duration == pytest.approx(sim.spec.call_event_us)


def test_of_several_names_the_innermost_is_on_the_bar(device: Device) -> None:
    """Arms, links of chains and functions' results; a name ends where what was named ends."""
    x = agt.zeros(4).sync()

    def fetched() -> agt.DeviceOp[object]:
        return agt.d2h(x.borrow())

    def filled(name: str) -> agt.DeviceOp[object]:
        return agt.memcpy(x.borrow(), x.borrow()).named(name)

    inner = filled("first").and_then(lambda _: fetched()).named("layer")
    chain = inner.and_then(lambda _: fetched()).and_then(lambda _: filled("last"))
    with agt.record() as trace:
        agt.zip(chain, fetched()).named("network").sync()
    first, layer, *_ = trace.device_spans
    titles = [span.title for span in trace.device_spans]
    fill, copy = first.name, layer.name
    assert titles == [
        f"first: {fill}", f"layer: {copy}", f"network: {copy}", f"last: {fill}", f"network: {copy}"
    ]  # fmt: skip
    assert {span.label for span in trace.device_spans} == {"network"}
    assert "operation #" in trace.plot().svg()
    assert "network, in it layer" in trace.between(layer.start, layer.end).plot().svg()
    # What a chain goes on with is not called as what it begins with.
    with agt.record() as trace:
        fetched().named("load").and_then(lambda _: fetched()).sync()
        fetched().sync()
    assert [s.title for s in trace.device_spans] == [f"load: {layer.name}", layer.name, layer.name]


@pytest.mark.parametrize("way", ["prepared", "graph", "a capture in a capture"])
def test_what_was_captured_keeps_the_names_of_its_parts(device: Device, way: str) -> None:
    x = agt.zeros(4).sync()

    def fetch() -> agt.DeviceOp[object]:
        return agt.d2h(x.borrow(), out=agt.pinned(4))

    op = agt.overlap(fetch().named("left"), fetch()).named("both")
    stream = agt.create_stream()
    launch = (op.graph_on(stream) if way == "graph" else op.prepare()).launch()
    if way == "a capture in a capture":
        launch = agt.zip(launch).graph_on(stream).launch()
    with agt.record() as trace:
        launch.named("run 1").sync()
    titles = [span.title for span in trace.device_spans]
    if len(titles) > 1:  # a recording by events sees a graph as one
        name = trace.device_spans[0].name
        outer = "both" if way == "a capture in a capture" else "run 1"
        assert sorted(titles) == sorted([f"left: {name}", f"{outer}: {name}"])
