"""Bugs of graphs: what a capture can't hold, and graphs that share arrays without an order."""

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import SIZE, bug_on_the_host, full, host_array, op


def refused(why: str, about: str, finds: str = "Capture"):
    """A program that captures what no graph can hold."""
    return bug_on_the_host(finds=f"{finds}: {about}", why=why)


def race(why: str, about: str = "order"):
    """A program of which a graph shares an array with something, without an order."""
    return bug_on_the_host(finds=f"StreamRace: {about}", why=why)


@refused("a graph has no allocation that stays the same from launch to launch", "zeros")
def allocation_in_a_capture():
    agt.zeros(SIZE).graph_on(agt.create_stream())  # <- bug


@refused("the copy to the host would need a new array in each launch", "d2h")
def download_to_a_new_array_in_a_capture():
    agt.d2h(full()).graph_on(agt.create_stream())  # <- bug


@refused("the upload allocates", "h2d")
def upload_to_a_new_array_in_a_capture():
    agt.h2d(host_array()).graph_on(agt.create_stream())  # <- bug


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
    agt.memcpy(x.borrow(), host_array(2.0)).async_on(two)  # <- bug


@bug_on_the_host(finds="HostBuffer: changed", why="the graph's copy may not have read the slot yet")
def slot_of_a_graph_filled_again_too_early():
    x, slot, stream = full(), host_array(1.0), agt.create_stream()
    graph = agt.memcpy(x.borrow(), slot).graph_on(stream)
    graph.launch().async_on(stream)
    slot[:] = 2.0
    graph.launch().async_on(stream)  # <- bug
    stream.synchronize()  # <- bug


@bug_on_the_host(finds="OutOfBounds: 64", why="a kernel in a graph goes out of bounds, too")
def stray_kernel_in_a_graph():
    graph = op("stray", full()).graph_on(agt.create_stream())
    graph.launch().sync()  # <- bug
