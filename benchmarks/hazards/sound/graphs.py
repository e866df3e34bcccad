"""Correct uses of graphs that look as if they were not."""

import asyncio
import contextlib

import asyncgpu_tutor as agt
from benchmarks.hazards.host import SIZE, full, host_array, op, sound_on_the_host


@sound_on_the_host(why="launches on one stream follow each other")
def graph_launched_many_times():
    x, stream = full(), agt.create_stream()
    graph = op("more", x).graph_on(stream)
    for _ in range(5):
        graph.launch().async_on(stream)
    assert agt.d2h(x).sync_on(stream)[0] == 5


@sound_on_the_host(why="one graph doesn't run beside itself: its launches wait for each other")
def graph_launched_on_two_streams():
    x, one, two = full(), agt.create_stream(), agt.create_stream()
    graph = op("more", x).graph_on(one)
    graph.launch().async_on(one)
    graph.launch().async_on(two)
    agt.synchronize()


@sound_on_the_host(why="the graph keeps what it points at")
def arrays_dropped_after_the_capture():
    x, y = full(1.0), full()
    graph = op("twice", y, x).graph_on(agt.create_stream())
    del x, y
    other = [full(9.0) for _ in range(3)]
    graph.launch().sync()
    assert agt.d2h(other[0]).sync()[0] == 9


@sound_on_the_host(why="a launch keeps its graph")
def graph_dropped_while_it_runs():
    x, y, stream = full(1.0), full(), agt.create_stream()
    graph = op("twice", y, x).graph_on(stream)
    graph.launch().async_on(stream)
    del graph
    assert agt.d2h(y).sync_on(stream)[0] == 2


@sound_on_the_host(why="prepare() takes allocations: each launch has arrays of the pipeline's own")
def allocation_in_a_prepared_pipeline():
    prepared = agt.zeros(SIZE).and_then(lambda x: op("more", x)).prepare()
    for _ in range(2):
        prepared.launch().sync()


@sound_on_the_host(why="two branches read one array, and each writes one of its own")
def two_branches_read_one_array():
    x, y, z = full(1.0), full(), full()
    graph = agt.overlap(op("twice", y, x), op("twice", z, x)).graph_on(agt.create_stream())
    graph.launch().sync()


@sound_on_the_host(why="what follows the overlap waits for both branches")
def branches_are_joined_before_the_sum():
    x, y, z, w = full(1.0), full(), full(), full()
    both = agt.overlap(op("twice", y, x), op("twice", z, x))
    graph = both.and_then(lambda _: op("plus", w, y, z)).graph_on(agt.create_stream())
    graph.launch().sync()
    assert agt.d2h(w).sync()[0] == 4


@sound_on_the_host(why="an event behind the launch stands for the whole graph")
def other_stream_waits_for_a_graph():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graph = op("twice", y, x).graph_on(one)
    graph.launch().async_on(one)
    two.wait_event(one.record())
    assert agt.d2h(y).sync_on(two)[0] == 2


@sound_on_the_host(why="the slot is filled again when the launch before is done")
def slot_filled_between_launches():
    x, slot, stream = full(), host_array(1.0), agt.create_stream()
    graph = agt.memcpy(x.borrow(), slot).graph_on(stream)
    for number in range(3):
        slot[:] = number
        graph.launch().sync_on(stream)
        assert agt.d2h(x.borrow()).sync_on(stream)[0] == number


@sound_on_the_host(why="to capture is not to run: the array is free until the launch")
def array_used_elsewhere_after_the_capture():
    x, y, one, two = full(1.0), full(), agt.create_stream(), agt.create_stream()
    graph = op("twice", y, x).graph_on(one)
    op("more", y).sync_on(two)
    graph.launch().sync_on(one)


@sound_on_the_host(why="two graphs on one stream are as ordered as two kernels")
def two_graphs_on_one_stream():
    x, y, stream = full(1.0), full(), agt.create_stream()
    first, second = op("twice", y, x).graph_on(stream), op("more", y).graph_on(stream)
    first.launch().async_on(stream)
    second.launch().async_on(stream)
    assert agt.d2h(y).sync_on(stream)[0] == 3


@sound_on_the_host(why="two graphs that share nothing may run at once")
def two_graphs_on_two_streams():
    graphs = []
    for _ in range(2):
        x, y, stream = full(1.0), full(), agt.create_stream()
        graphs.append((op("twice", y, x).graph_on(stream), stream))
    for graph, stream in graphs:
        graph.launch().async_on(stream)


@sound_on_the_host(why="within a graph, input and output of one slot follow each other")
def slot_read_and_written_in_one_graph():
    x, y, slot, stream = full(), full(), host_array(3.0), agt.create_stream()
    first = agt.memcpy(x.borrow(), slot).and_then(lambda _: op("twice", y, x))
    graph = first.and_then(lambda _: agt.d2h(y.borrow(), out=slot)).graph_on(stream)
    for _ in range(2):
        graph.launch().async_on(stream)
    stream.synchronize()
    assert slot[0] == 12


@sound_on_the_host(why="what a refused capture leaves is a stream as before")
def stream_used_after_a_refused_capture():
    x, y, stream = full(1.0), full(), agt.create_stream()
    with contextlib.suppress(agt.errors.CaptureError):
        agt.zeros(SIZE).graph_on(stream)
    op("twice", y, x).graph_on(stream).launch().sync_on(stream)


@sound_on_the_host(why="each await is over before the next launch")
async def graph_awaited_again_and_again():
    x = full()
    graph = op("more", x).graph_on(agt.create_stream())
    for _ in range(3):
        await graph.launch()
    assert agt.d2h(x).sync()[0] == 3


@sound_on_the_host(why="each task has a graph and arrays of its own")
async def tasks_with_a_graph_each():
    async def one(number):
        x, y = full(number), full()
        graph = op("twice", y, x).graph_on(agt.create_stream())
        await graph.launch()
        return (await agt.d2h(y))[0]

    assert await asyncio.gather(one(1), one(2)) == [2, 4]
