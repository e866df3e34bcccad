"""Graphs: right ones that look wrong; what a capture can't hold; and graphs that share arrays without order."""

import asyncio
import contextlib

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import SIZE, bug, full, locked, op, sound


@sound("launches on one stream follow each other")
def graph_launched_many_times():
    x, stream = full(), agt.create_stream()
    graph = op("more", x).graph_on(stream)
    for _ in range(5):
        graph.launch().async_on(stream)
    assert agt.d2h(x).sync_on(stream)[0] == 5


@sound("one graph doesn't run beside itself: its launches wait for each other")
def graph_launched_on_two_streams():
    x, one, two = full(), agt.create_stream(), agt.create_stream()
    graph = op("more", x).graph_on(one)
    graph.launch().async_on(one)
    graph.launch().async_on(two)
    agt.synchronize()


@sound("the graph keeps what it points at")
def arrays_dropped_after_the_capture():
    x, y = full(1.0), full()
    graph = op("twice", y, x).graph_on(agt.create_stream())
    del x, y
    other = [full(9.0) for _ in range(3)]
    graph.launch().sync()
    assert agt.d2h(other[0]).sync()[0] == 9


@sound("a launch keeps its graph")
def graph_dropped_while_it_runs():
    x, y, stream = full(1.0), full(), agt.create_stream()
    graph = op("twice", y, x).graph_on(stream)
    graph.launch().async_on(stream)
    del graph
    assert agt.d2h(y).sync_on(stream)[0] == 2


@sound("prepare() takes allocations: each launch has arrays of the pipeline's own")
def allocation_in_a_prepared_pipeline():
    prepared = agt.zeros(SIZE).and_then(lambda x: op("more", x)).prepare()
    for _ in range(2):
        prepared.launch().sync()


@sound("two branches read one array, and each writes one of its own")
def two_branches_read_one_array():
    x, y, z = full(1.0), full(), full()
    graph = agt.overlap(op("twice", y, x), op("twice", z, x)).graph_on(agt.create_stream())
    graph.launch().sync()


@sound("what follows the overlap waits for both branches")
def branches_are_joined_before_the_sum():
    x, y, z, w = full(1.0), full(), full(), full()
    both = agt.overlap(op("twice", y, x), op("twice", z, x))
    graph = both.and_then(lambda _: op("plus", w, y, z)).graph_on(agt.create_stream())
    graph.launch().sync()
    assert agt.d2h(w).sync()[0] == 4


@sound("an event behind the launch stands for the whole graph")
def other_stream_waits_for_a_graph():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graph = op("twice", y, x).graph_on(one)
    graph.launch().async_on(one)
    two.wait_event(one.record())
    assert agt.d2h(y).sync_on(two)[0] == 2


@sound("the slot is filled again when the launch before is done")
def slot_filled_between_launches():
    x, slot, stream = full(), locked(1.0), agt.create_stream()
    graph = agt.memcpy(x.borrow(), slot).graph_on(stream)
    for number in range(3):
        slot[:] = number
        graph.launch().sync_on(stream)
        assert agt.d2h(x.borrow()).sync_on(stream)[0] == number


@sound("to capture is not to run: the array is free until the launch")
def array_used_elsewhere_after_the_capture():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graph = op("twice", y, x).graph_on(one)
    op("more", y).sync_on(two)
    graph.launch().sync_on(one)


@sound("two graphs on one stream are as ordered as two kernels")
def two_graphs_on_one_stream():
    x, y, stream = full(1.0), full(), agt.create_stream()
    first, second = op("twice", y, x).graph_on(stream), op("more", y).graph_on(stream)
    first.launch().async_on(stream)
    second.launch().async_on(stream)
    assert agt.d2h(y).sync_on(stream)[0] == 3


@sound("two graphs that share nothing may run at once")
def two_graphs_on_two_streams():
    graphs = []
    for _ in range(2):
        x, y, stream = full(1.0), full(), agt.create_stream()
        graphs.append((op("twice", y, x).graph_on(stream), stream))
    for graph, stream in graphs:
        graph.launch().async_on(stream)


@sound("within a graph, input and output of one slot follow each other")
def slot_read_and_written_in_one_graph():
    x, y, slot, stream = full(), full(), locked(3.0), agt.create_stream()
    first = agt.memcpy(x.borrow(), slot).and_then(lambda _: op("twice", y, x))
    graph = first.and_then(lambda _: agt.d2h(y.borrow(), out=slot)).graph_on(stream)
    for _ in range(2):
        graph.launch().async_on(stream)
    stream.synchronize()
    assert slot[0] == 12


@sound("what a refused capture leaves is a stream as before")
def stream_used_after_a_refused_capture():
    x, y, stream = full(1.0), full(), agt.create_stream()
    with contextlib.suppress(agt.errors.CaptureError):
        agt.zeros(SIZE).graph_on(stream)
    op("twice", y, x).graph_on(stream).launch().sync_on(stream)


@sound("each await is over before the next launch")
async def graph_awaited_again_and_again():
    x = full()
    graph = op("more", x).graph_on(agt.create_stream())
    for _ in range(3):
        await graph.launch()
    assert agt.d2h(x).sync()[0] == 3


@sound("each task has a graph and arrays of its own")
async def tasks_with_a_graph_each():
    async def one(number):
        x, y = full(number), full()
        graph = op("twice", y, x).graph_on(agt.create_stream())
        await graph.launch()
        return (await agt.d2h(y))[0]

    assert await asyncio.gather(one(1), one(2)) == [2, 4]


def refused(why: str, about: str, finds: str = "Capture"):
    """A program that captures what no graph can hold."""
    return bug(f"{finds}: {about}", why)


def race(why: str, about: str = "order"):
    """A program of which a graph shares an array with something, without an order."""
    return bug(f"StreamRace: {about}", why)


@refused("a graph has no allocation that stays the same from launch to launch", "zeros")
def allocation_in_a_capture():
    agt.zeros(SIZE).graph_on(agt.create_stream())  # <- bug


@refused("the copy to the host would need a new array in each launch", "d2h")
def download_to_a_new_array_in_a_capture():
    agt.d2h(full()).graph_on(agt.create_stream())  # <- bug


@refused("the upload allocates", "h2d")
def upload_to_a_new_array_in_a_capture():
    agt.h2d(locked()).graph_on(agt.create_stream())  # <- bug


@refused("pageable memory is copied elsewhere first, once, while the graph is captured", "pageable")
def pageable_array_in_a_capture():
    x, host = full(), np.ones(SIZE, np.float32)
    agt.memcpy(x.borrow(), host).graph_on(agt.create_stream())  # <- bug


@refused("nothing runs while a graph is captured, so nobody can wait for it", "sync", "NestedSync")
def wait_in_a_capture():
    x, y = full(1.0), full()

    def looks(_):
        return agt.value(agt.d2h(y.borrow()).sync())  # <- bug

    op("twice", y, x).and_then(looks).graph_on(agt.create_stream())


@refused("the host waits for a stream that is being captured", "synchronize", "NestedSync")
def stream_synchronized_in_a_capture():
    x, y = full(1.0), full()

    def waits(context, _):
        context.stream.synchronize()  # <- bug
        return agt.value(None)

    op("twice", y, x).and_then_with_context(waits).graph_on(agt.create_stream())


@refused("an event of one capture means nothing in another", "event")
def event_of_another_capture():
    events = []

    def records(context):
        events.append(context.stream.record())
        return agt.value(None)

    def waits(context):
        context.stream.wait_event(events[0])  # <- bug
        return agt.value(None)

    agt.with_context(records).graph_on(agt.create_stream())
    agt.with_context(waits).graph_on(agt.create_stream())


@refused("the branch is never joined, so the graph's end doesn't wait for it", "waits|waited")
def branch_that_is_not_joined():
    x, y = full(1.0), full()

    def forks(context):
        branch = context.fork()
        branch.stream.wait_event(context.stream.record())
        branch.copy(y, x)
        return agt.value(None)

    agt.with_context(forks).graph_on(agt.create_stream())  # <- bug


@refused("work on a stream that is no part of the capture would not be in the graph", "stream")
def other_stream_in_a_capture():
    other = agt.create_stream()

    def elsewhere(context):
        context.on(other).empty((SIZE,))  # <- bug
        return agt.value(None)

    agt.with_context(elsewhere).graph_on(agt.create_stream())


@refused("the result of what was captured exists only when the graph has run", "capture")
def result_of_what_was_captured():
    x, y = full(1.0), full()
    shared = op("twice", y, x).shared()
    shared.graph_on(agt.create_stream())
    shared.sync()  # <- bug


@refused("the graph's output has one owner", "taken")
def output_taken_twice():
    x, y = full(1.0), full()
    graph = agt.memcpy(y, x.borrow()).graph_on(agt.create_stream())
    graph.take_output()
    graph.take_output()  # <- bug


@refused("what the graph points at was moved to somebody else", "moved", "UseAfterMove")
def launch_of_a_graph_whose_array_was_moved():
    x, y = full(1.0), full()
    graph = op("twice", y, x).graph_on(agt.create_stream())
    agt.d2h(y).sync()
    graph.launch().sync()  # <- bug


@refused("the graph borrowed the array, and its owner has given it away", "moved", "UseAfterMove")
def launch_of_a_graph_whose_array_was_shared():
    x, y = full(1.0), full()
    graph = op("twice", y, x).graph_on(agt.create_stream())
    kept = y.share()
    graph.launch().sync()  # <- bug
    agt.d2h(kept).sync()


@race("two branches of one graph write one array")
def two_branches_write_one_array():
    x, y = full(1.0), full()
    graph = agt.overlap(op("twice", y, x), op("more", y)).graph_on(agt.create_stream())
    graph.launch().sync()  # <- bug


@race("a branch reads what the other one writes")
def branch_reads_what_another_writes():
    x, y, z = full(1.0), full(), full()
    graph = agt.overlap(op("twice", y, x), op("twice", z, y)).graph_on(agt.create_stream())
    graph.launch().sync()  # <- bug


@race("two graphs write one array, on two streams")
def two_graphs_on_one_array():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graphs = [op("twice", y, x).graph_on(one) for _ in range(2)]
    graphs[0].launch().async_on(one)  # <- bug
    graphs[1].launch().async_on(two)  # <- bug


@race("the download doesn't wait for the graph")
def result_of_a_graph_read_on_another_stream():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graph = op("twice", y, x).graph_on(one)
    graph.launch().async_on(one)  # <- bug
    agt.d2h(y.borrow()).async_on(two)  # <- bug


@race("the next input is copied in while the graph may still read the last one")
def input_of_a_graph_replaced_on_another_stream():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graph = op("twice", y, x).graph_on(one)
    graph.launch().async_on(one)  # <- bug
    agt.memcpy(x.borrow(), locked(2.0)).async_on(two)  # <- bug


@bug("HostBuffer: changed", "the graph's copy may not have read the slot yet")
def slot_of_a_graph_filled_again_too_early():
    x, slot, stream = full(), locked(1.0), agt.create_stream()
    graph = agt.memcpy(x.borrow(), slot).graph_on(stream)
    graph.launch().async_on(stream)
    slot[:] = 2.0
    graph.launch().async_on(stream)  # <- bug
    stream.synchronize()  # <- bug


@bug("OutOfBounds: 64", "a kernel in a graph goes out of bounds, too")
def stray_kernel_in_a_graph():
    graph = op("stray", full()).graph_on(agt.create_stream())
    graph.launch().sync()  # <- bug
