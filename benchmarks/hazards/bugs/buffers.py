"""Bugs of host buffers: read before the copy is done, or written while one reads."""

import asyncio

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import (
    SIZE,
    array,
    bug_on_the_host,
    download,
    full,
    host_array,
    op,
    pinned,
    run,
    upload,
)


def changed(why: str, about: str = "changed"):
    """A program that writes to a host array which a copy reads."""
    return bug_on_the_host(finds=f"HostBuffer: {about}", why=why)


def early(why: str, about: str = "host"):
    """A program that reads a host array to which a copy may still write."""
    return bug_on_the_host(finds=f"NotReady HostBuffer: {about}", why=why)


@changed("the copy reads a pinned array later than the call returns")
def pinned_array_written_after_the_upload_call(one, x, host):
    upload(one, x, host)  # <- bug
    host[:] = 2.0
    one.synchronize()  # <- bug


@changed("the second batch goes into the slot of the first one, which is still on its way")
def slot_filled_for_the_next_batch(one, x, y, host):
    for number, target in enumerate((x, y)):
        host[:] = number
        upload(one, target, host)  # <- bug
    one.synchronize()  # <- bug


@changed("one element is enough")
def one_element_of_a_slot_changed(one, x, host):
    upload(one, x, host)  # <- bug
    host[SIZE - 1] = 7.0
    one.synchronize()  # <- bug


@changed("the host has waited for another stream")
def slot_filled_after_the_wrong_wait(one, two, x, host):
    upload(one, x, host)  # <- bug
    two.synchronize()
    host[:] = 2.0
    one.synchronize()  # <- bug


@changed("the event is recorded before the copy, so it stands for nothing")
def slot_filled_after_an_early_event(one, x, host):
    done = one.record()
    upload(one, x, host)  # <- bug
    done.synchronize()
    host[:] = 2.0
    one.synchronize()  # <- bug


@changed("of two slots, the third batch needs the first one before it was waited for")
def third_batch_into_the_first_of_two_slots(device, one, x):
    slots = [pinned(device), pinned(device)]
    for number in range(3):
        host = slots[number % 2]
        host[:] = number + 1
        upload(one, x, host)  # <- bug
    one.synchronize()  # <- bug


@changed("a view of the pinned array is the pinned array")
def slot_changed_through_a_view(one, x, host):
    half = host[:32]
    upload(one, x, host)  # <- bug
    half += 1
    one.synchronize()  # <- bug


@changed("a task's array changes while another task's upload reads it")
async def two_tasks_share_a_slot():
    slot, x, y = host_array(), full(), full()

    async def batch(target, number):
        slot[:] = number
        await agt.memcpy(target.borrow(), slot)  # <- bug

    await asyncio.gather(batch(x, 1), batch(y, 2))  # <- bug


@changed("the operation is enqueued, and not done", "changed")
def batch_written_after_async_on():
    batch, stream = host_array(1.0), agt.create_stream()
    result = agt.h2d(batch).to_host().async_on(stream)
    batch += 1
    stream.synchronize()  # <- bug
    del result


@early("a function of and_then runs while the work is described")
def result_read_in_and_then():
    def report(host):
        print(host.sum())  # <- bug
        return agt.value(host)

    agt.ones(SIZE).to_host().and_then(report).sync()


@early("what async_on returns is not there yet")
def result_read_after_async_on():
    host = agt.ones(SIZE).to_host().async_on(agt.create_stream())
    print(host[0])  # <- bug


@early("the host has waited for another stream")
def result_read_after_the_wrong_wait():
    one, two = agt.create_stream(), agt.create_stream()
    host = agt.ones(SIZE).to_host().async_on(one)
    two.synchronize()
    print(host.sum())  # <- bug


@early("a result is handed to the next upload before it has come")
def result_passed_on_too_early():
    host = agt.ones(SIZE).to_host().async_on(agt.create_stream())
    np.add(host, 1, out=np.zeros(SIZE, np.float32))  # <- bug


@early("the array that out= names is the copy's until the stream has been waited for")
def array_of_out_read_too_early():
    host, x = agt.pinned((SIZE,)), full(1.0)
    agt.d2h(x, out=host).async_on(agt.create_stream())  # <- bug
    print(host.sum())  # <- bug


@changed("host and download write one array, and nothing says who is last")
def array_written_while_a_download_writes_it(device, one):
    x, host = array(device, 1.0), pinned(device)
    download(one, host, x)  # <- bug
    host[:] = 3.0
    one.synchronize()  # <- bug


@bug_on_the_host(
    finds="StreamRace HostBuffer: order", why="two downloads into one host array, on two streams"
)
def two_downloads_into_one_array(device, one, two):
    x, y, host = array(device, 1.0), array(device, 2.0), pinned(device)
    download(one, host, x)  # <- bug
    download(two, host, y)  # <- bug


@bug_on_the_host(
    finds="StreamRace HostBuffer: order",
    why="the upload reads what the download on another stream may not have written yet",
)
def upload_of_what_a_download_brings(device, one, two, y):
    x, host = array(device, 1.0), pinned(device)
    download(one, host, x)  # <- bug
    upload(two, y, host)  # <- bug


@bug_on_the_host(
    finds="StreamRace HostBuffer: order",
    why="a kernel reads mapped memory that a copy on another stream writes",
)
def mapped_memory_beside_a_download():
    host, x, y, one, two = host_array(), full(1.0), full(), agt.create_stream(), agt.create_stream()
    agt.d2h(x, out=host).async_on(one)  # <- bug
    op("twice", y, agt.mapped(host)).async_on(two)  # <- bug


@changed("the kernel reads mapped memory while it runs, later than the launch returns")
def mapped_memory_written_after_the_launch(device, one, y, host):
    run("twice", one, y, device.map_host(host, "host"))  # <- bug
    host[:] = 2.0
    one.synchronize()  # <- bug
