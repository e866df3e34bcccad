"""Bugs of streams: two of them on one array without an order, and orders that aren't what they look like."""

from benchmarks.hazards.host import (
    array,
    bug_on_the_host,
    clear,
    copy,
    download,
    pinned,
    run,
    upload,
)


def race(why: str, about: str = "order"):
    """A program of which two streams touch one array without an order."""
    return bug_on_the_host(finds=f"StreamRace: {about}", why=why)


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
