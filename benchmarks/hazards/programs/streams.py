"""Streams: right uses that look wrong; two on one array without an order, and orders that are none."""

from benchmarks.hazards.host import array, bug, clear, copy, download, pinned, run, sound, upload


@sound("reading orders nothing and needs no order")
def two_streams_read_one_array(device, one, two, y, z):
    x = array(device, 1.0)
    run("twice", one, y, x)
    run("twice", two, z, x)


@sound("the event stands behind the producer")
def consumer_waits_for_an_event(one, two, x, y):
    run("fill", one, x, 1.0)
    two.wait_event(one.record())
    run("twice", two, y, x)


@sound("three waits for two, which has waited for one")
def order_by_way_of_a_third_stream(one, two, three, x, y):
    run("fill", one, x, 1.0)
    two.wait_event(one.record())
    three.wait_event(two.record())
    run("twice", three, y, x)


@sound("the host has waited for the producer, and enqueues the consumer after that")
def order_by_way_of_the_host(one, two, x, y):
    run("fill", one, x, 1.0)
    one.synchronize()
    run("twice", two, y, x)


@sound("waiting for an event on the host is an order, too")
def host_waits_for_an_event(one, two, x, y):
    run("fill", one, x, 1.0)
    done = one.record()
    run("fill", one, y, 3.0)
    done.synchronize()
    run("more", two, x)


@sound("a stream does its work in order, whatever kind it is")
def one_stream_writes_reads_copies(one, x, y, host):
    upload(one, x, host)
    run("twice", one, y, x)
    copy(one, x, y)
    clear(one, y)
    download(one, host, x)


@sound("the producer waits for the consumer of the round before")
def one_buffer_with_the_way_back(one, two, x, y):
    for number in range(3):
        run("fill", one, x, number)
        two.wait_event(one.record())
        run("twice", two, y, x)
        one.wait_event(two.record())


@sound("before a buffer is written again, the event of its consumer is waited for")
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


@sound("the two kernels write different halves of one array")
def two_streams_write_two_halves(one, two, x):
    run("fill_part", one, x, 1.0, 0)
    run("fill_part", two, x, 2.0, 32)


@sound("atomics of two kernels on one counter don't race: their scope is the device")
def two_streams_count_by_atomics(device, one, two):
    x, y, total = array(device, 1.0), array(device, 1.0), array(device, 0, "int32")
    run("count", one, total, x)
    run("count", two, total, y)


@sound("the later event covers all that its stream held before")
def last_event_of_a_stream_covers_all(one, two, x, y, z):
    run("fill", one, x, 1.0)
    run("fill", one, y, 2.0)
    two.wait_event(one.record())
    run("plus", two, z, x, y)


@sound("an event may be waited for by many")
def one_producer_many_consumers(device, one, two, three, four, x):
    others = two, three, four
    ys = [array(device) for _ in range(3)]
    run("fill", one, x, 1.0)
    done = one.record()
    for stream, y in zip(others, ys, strict=True):
        stream.wait_event(done)
        run("twice", stream, y, x)


@sound("each producer is waited for")
def many_producers_one_consumer(one, two, three, x, y, z):
    run("fill", one, x, 1.0)
    run("fill", two, y, 2.0)
    three.wait_event(one.record())
    three.wait_event(two.record())
    run("plus", three, z, x, y)


@sound("waiting for the same event twice, or for one that is over, changes nothing")
def wait_for_what_is_over(device, one, two, x, y):
    run("fill", one, x, 1.0)
    done = one.record()
    device.synchronize()
    two.wait_event(done)
    two.wait_event(done)
    run("twice", two, y, x)


@sound("each turn waits for the one before, by whichever stream")
def ring_of_streams(one, two, three, x):
    streams = one, two, three
    before = None
    for turn in range(7):
        stream = streams[turn % 3]
        if before is not None:
            stream.wait_event(before)
        run("more", stream, x)
        before = stream.record()


@sound("the whole device has been waited for")
def synchronize_of_the_device(device, one, two, x, y):
    run("fill", one, x, 1.0)
    device.synchronize()
    run("twice", two, y, x)


@sound("chunks of a pipeline share streams, not arrays")
def three_stages_four_chunks(device, one, two, three):
    streams = one, two, three
    chunks = [(array(device), array(device), pinned(device, k), pinned(device)) for k in range(4)]
    for number, (x, y, host, back) in enumerate(chunks):
        stream = streams[number % 3]
        upload(stream, x, host)
        run("twice", stream, y, x)
        download(stream, back, y)


@sound("a query that has said yes is an order")
def event_that_was_asked_until_it_was_done(device, one, two, x, y):
    run("fill", one, x, 1.0)
    done = one.record()
    while not done.done:
        device.work(1, "poll")
    run("twice", two, y, x)


@sound("the launch keeps its arrays until it is done")
def array_dropped_while_its_kernel_runs(device, one, two):
    x = array(device)
    run("fill", one, x, 1.0)
    del x
    y = array(device)
    run("fill", two, y, 2.0)


def race(why: str, about: str = "order"):
    """A program of which two streams touch one array without an order."""
    return bug(f"StreamRace: {about}", why)


@race("nothing says which of the two is last")
def two_streams_write_one_array(one, two, x):
    run("fill", one, x, 1.0)  # <- bug
    run("fill", two, x, 2.0)  # <- bug


@race("the second stream doesn't wait for the first one")
def producer_and_consumer_on_two_streams(one, two, x, y):
    run("fill", one, x, 1.0)  # <- bug
    run("twice", two, y, x)  # <- bug


@race("the event is recorded before the work that it should stand for")
def event_recorded_too_early(one, two, x, y):
    done = one.record()
    run("fill", one, x, 1.0)  # <- bug
    two.wait_event(done)
    run("twice", two, y, x)  # <- bug


@race("the wait comes after the launch that needs it")
def wait_behind_the_launch(one, two, x, y):
    run("fill", one, x, 1.0)  # <- bug
    run("twice", two, y, x)  # <- bug
    two.wait_event(one.record())


@race("the event is one of the stream that waits, so it waits for itself")
def event_of_the_wrong_stream(one, two, x, y):
    run("fill", one, x, 1.0)  # <- bug
    two.wait_event(two.record())
    run("twice", two, y, x)  # <- bug


@race("of two producers, the consumer waits for one only")
def one_of_two_events_is_missing(one, two, three, x, y, z):
    run("fill", one, x, 1.0)
    run("fill", two, y, 2.0)  # <- bug
    three.wait_event(one.record())
    run("plus", three, z, x, y)  # <- bug


@race("the producer of the next round writes while the consumer of this one still reads")
def buffer_used_again_before_it_was_read(one, two, x, y):
    for number in range(2):
        run("fill", one, x, number)  # <- bug
        two.wait_event(one.record())
        run("twice", two, y, x)  # <- bug


@race(
    "two buffers, three rounds: the third one writes what the first one's consumer may still read"
)
def double_buffer_without_the_way_back(device, one, two):
    buffers, y = [array(device), array(device)], array(device)
    for number in range(3):
        x = buffers[number % 2]
        run("fill", one, x, number)  # <- bug
        two.wait_event(one.record())
        run("twice", two, y, x)  # <- bug


@race("a stream of its own is not ordered behind the default stream's work")
def default_stream_first_then_another(device, one, x, y):
    run("fill", device.default_stream, x, 1.0)  # <- bug
    run("twice", one, y, x)  # <- bug


@race("the default stream doesn't wait for streams that are not blocking")
def default_stream_behind_another(device, one, x, y):
    run("fill", one, x, 1.0)  # <- bug
    run("twice", device.default_stream, y, x)  # <- bug


@race("the upload is on a stream of its own, and the kernel doesn't wait for it")
def kernel_beside_the_upload_of_its_input(one, two, x, y, host):
    upload(one, x, host)  # <- bug
    run("twice", two, y, x)  # <- bug


@race("the download begins while the kernel may still write")
def download_beside_the_kernel(one, two, x, host):
    run("fill", one, x, 1.0)  # <- bug
    download(two, host, x)  # <- bug


@race("the next upload overwrites the input of a kernel that may still run")
def upload_over_an_input(device, one, two, y):
    x, host = array(device, 1.0), pinned(device, 2.0)
    run("twice", one, y, x)  # <- bug
    upload(two, x, host)  # <- bug


@race("the memset may come before or after the kernel")
def memset_on_another_stream(device, one, two):
    x = array(device, 1.0)
    clear(one, x)  # <- bug
    run("more", two, x)  # <- bug


@race("a copy on the device is work of its stream as any other")
def copy_on_the_device_beside_a_kernel(one, two, x, y):
    run("fill", one, x, 1.0)  # <- bug
    copy(two, y, x)  # <- bug


@race("three waits for two before two has been told to wait for one")
def chain_with_its_first_link_too_late(one, two, three, x, y):
    run("fill", one, x, 1.0)  # <- bug
    three.wait_event(two.record())
    two.wait_event(one.record())
    run("twice", three, y, x)  # <- bug


@race("only the first half of the work was waited for")
def event_between_two_kernels(one, two, x, y, z):
    run("fill", one, x, 1.0)
    half = one.record()
    run("fill", one, y, 2.0)  # <- bug
    two.wait_event(half)
    run("plus", two, z, x, y)  # <- bug


@race("the host has waited for one, not for two")
def synchronize_of_the_wrong_stream(one, two, three, x, y):
    run("fill", two, x, 1.0)  # <- bug
    one.synchronize()
    run("twice", three, y, x)  # <- bug


@race("that a moment has gone by is no order")
def host_that_was_busy_for_a_while(device, one, two, x, y):
    run("fill", one, x, 1.0)  # <- bug
    device.work(10_000, "something else")
    run("twice", two, y, x)  # <- bug


@race("the event was recorded again later, but what waits, waits for the first one")
def old_event_of_two(one, two, x, y):
    first = one.record()
    run("fill", one, x, 1.0)  # <- bug
    one.record()
    two.wait_event(first)
    run("twice", two, y, x)  # <- bug


@race("both read and write the running sum")
def two_streams_add_to_one_array(one, two, x):
    run("more", one, x)  # <- bug
    run("more", two, x)  # <- bug


@race(
    "the ring of three streams is not closed: a stream's next turn doesn't wait for the last one's"
)
def ring_of_streams_that_is_open(one, two, three, x):
    streams = one, two, three
    before = None
    for turn in range(4):
        stream = streams[turn % 3]
        if before is not None and turn < 3:
            stream.wait_event(before)
        run("more", stream, x)  # <- bug
        before = stream.record()
