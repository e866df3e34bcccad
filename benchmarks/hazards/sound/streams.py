"""Correct uses of streams that look as if they were not."""

from benchmarks.hazards.host import (
    array,
    clear,
    copy,
    download,
    pinned,
    run,
    sound_on_the_host,
    upload,
)


@sound_on_the_host(why="reading orders nothing and needs no order")
def two_streams_read_one_array(device, one, two, y, z):
    x = array(device, 1.0)
    run("twice", one, y, x)
    run("twice", two, z, x)


@sound_on_the_host(why="the event stands behind the producer")
def consumer_waits_for_an_event(one, two, x, y):
    run("fill", one, x, 1.0)
    two.wait_event(one.record())
    run("twice", two, y, x)


@sound_on_the_host(why="three waits for two, which has waited for one")
def order_by_way_of_a_third_stream(one, two, three, x, y):
    run("fill", one, x, 1.0)
    two.wait_event(one.record())
    three.wait_event(two.record())
    run("twice", three, y, x)


@sound_on_the_host(why="the host has waited for the producer, and enqueues the consumer after that")
def order_by_way_of_the_host(one, two, x, y):
    run("fill", one, x, 1.0)
    one.synchronize()
    run("twice", two, y, x)


@sound_on_the_host(why="waiting for an event on the host is an order, too")
def host_waits_for_an_event(one, two, x, y):
    run("fill", one, x, 1.0)
    done = one.record()
    run("fill", one, y, 3.0)
    done.synchronize()
    run("more", two, x)


@sound_on_the_host(why="a stream does its work in order, whatever kind it is")
def one_stream_writes_reads_copies(one, x, y, host):
    upload(one, x, host)
    run("twice", one, y, x)
    copy(one, x, y)
    clear(one, y)
    download(one, host, x)


@sound_on_the_host(why="the producer waits for the consumer of the round before")
def one_buffer_with_the_way_back(one, two, x, y):
    for number in range(3):
        run("fill", one, x, number)
        two.wait_event(one.record())
        run("twice", two, y, x)
        one.wait_event(two.record())


@sound_on_the_host(why="before a buffer is written again, the event of its consumer is waited for")
def double_buffer_with_an_event_for_each(device, one, two):
    buffers, y, read = [array(device), array(device)], array(device), [None, None]
    for number in range(4):
        x, free = buffers[number % 2], read[number % 2]
        if free is not None:
            one.wait_event(free)
        run("fill", one, x, number)
        two.wait_event(one.record())
        run("twice", two, y, x)
        read[number % 2] = two.record()


@sound_on_the_host(why="the two kernels write different halves of one array")
def two_streams_write_two_halves(one, two, x):
    run("fill_part", one, x, 1.0, 0)
    run("fill_part", two, x, 2.0, 32)


@sound_on_the_host(
    why="atomics of two kernels on one counter don't race: their scope is the device"
)
def two_streams_count_by_atomics(device, one, two):
    x, y, total = array(device, 1.0), array(device, 1.0), array(device, 0, "int32")
    run("count", one, total, x)
    run("count", two, total, y)


@sound_on_the_host(why="the later event covers all that its stream held before")
def last_event_of_a_stream_covers_all(one, two, x, y, z):
    run("fill", one, x, 1.0)
    run("fill", one, y, 2.0)
    two.wait_event(one.record())
    run("plus", two, z, x, y)


@sound_on_the_host(why="an event may be waited for by many")
def one_producer_many_consumers(device, one, two, three, four, x):
    others = two, three, four
    ys = [array(device) for _ in range(3)]
    run("fill", one, x, 1.0)
    done = one.record()
    for stream, y in zip(others, ys, strict=True):
        stream.wait_event(done)
        run("twice", stream, y, x)


@sound_on_the_host(why="each producer is waited for")
def many_producers_one_consumer(one, two, three, x, y, z):
    run("fill", one, x, 1.0)
    run("fill", two, y, 2.0)
    three.wait_event(one.record())
    three.wait_event(two.record())
    run("plus", three, z, x, y)


@sound_on_the_host(why="waiting for the same event twice, or for one that is over, changes nothing")
def wait_for_what_is_over(device, one, two, x, y):
    run("fill", one, x, 1.0)
    done = one.record()
    device.synchronize()
    two.wait_event(done)
    two.wait_event(done)
    run("twice", two, y, x)


@sound_on_the_host(why="each turn waits for the one before, by whichever stream")
def ring_of_streams(one, two, three, x):
    streams = one, two, three
    before = None
    for turn in range(7):
        stream = streams[turn % 3]
        if before is not None:
            stream.wait_event(before)
        run("more", stream, x)
        before = stream.record()


@sound_on_the_host(why="the whole device has been waited for")
def synchronize_of_the_device(device, one, two, x, y):
    run("fill", one, x, 1.0)
    device.synchronize()
    run("twice", two, y, x)


@sound_on_the_host(why="chunks of a pipeline share streams, not arrays")
def three_stages_four_chunks(device, one, two, three):
    streams = one, two, three
    chunks = [(array(device), array(device), pinned(device, k), pinned(device)) for k in range(4)]
    for number, (x, y, host, back) in enumerate(chunks):
        stream = streams[number % 3]
        upload(stream, x, host)
        run("twice", stream, y, x)
        download(stream, back, y)


@sound_on_the_host(why="a query that has said yes is an order")
def event_that_was_asked_until_it_was_done(device, one, two, x, y):
    run("fill", one, x, 1.0)
    done = one.record()
    while not done.done:
        device.work(1, "poll")
    run("twice", two, y, x)


@sound_on_the_host(why="the launch keeps its arrays until it is done")
def array_dropped_while_its_kernel_runs(device, one, two):
    x = array(device)
    run("fill", one, x, 1.0)
    del x
    y = array(device)
    run("fill", two, y, 2.0)
