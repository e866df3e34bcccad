"""Correct uses of host buffers that look as if they were not."""

import asyncio

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import (
    SIZE,
    array,
    download,
    full,
    host_array,
    op,
    pinned,
    run,
    sound_on_the_host,
    upload,
)


@sound_on_the_host(why="a pageable array has been read when the call returns")
def pageable_array_written_after_the_upload_call(one, x):
    host = np.ones(SIZE, np.float32)
    upload(one, x, host)
    host[:] = 2.0
    one.synchronize()


@sound_on_the_host(why="a download to a pageable array is over when the call returns")
def pageable_result_read_at_once(device, one):
    x, host = array(device, 3.0), np.zeros(SIZE, np.float32)
    download(one, host, x)
    assert host[0] == 3


@sound_on_the_host(why="the stream has been waited for")
def slot_filled_after_the_wait(one, x, host):
    for number in range(3):
        host[:] = number
        upload(one, x, host)
        one.synchronize()


@sound_on_the_host(
    why="the copy's event has been waited for, though the kernel behind it still runs"
)
def slot_filled_while_the_kernel_runs(one, x, y, host):
    upload(one, x, host)
    copied = one.record()
    run("twice", one, y, x)
    copied.synchronize()
    host[:] = 2.0
    one.synchronize()


@sound_on_the_host(why="each batch has a slot of its own")
def a_slot_for_each_batch(device, one):
    xs, slots = [array(device) for _ in range(3)], [pinned(device) for _ in range(3)]
    for number, (x, host) in enumerate(zip(xs, slots, strict=True)):
        host[:] = number
        upload(one, x, host)
    one.synchronize()


@sound_on_the_host(why="before a slot is filled again, the event of its copy is waited for")
def two_slots_in_turn(device, one, x):
    slots, copied = [pinned(device), pinned(device)], [None, None]
    for number in range(5):
        turn = number % 2
        if copied[turn] is not None:
            copied[turn].synchronize()
        slots[turn][:] = number
        upload(one, x, slots[turn])
        copied[turn] = one.record()
    one.synchronize()


@sound_on_the_host(why="the copy keeps the array that it reads")
def slot_dropped_while_it_is_read(device, one, x):
    host = pinned(device, 4.0)
    upload(one, x, host)
    del host
    other = pinned(device, 9.0)
    one.synchronize()
    assert x.get()[0] == 4
    del other


@sound_on_the_host(why="reading what a copy reads is no conflict")
def slot_read_while_it_is_copied(one, x, host):
    upload(one, x, host)
    assert host.sum() == SIZE
    one.synchronize()


@sound_on_the_host(why="two uploads may read one array at once")
def one_slot_two_uploads(one, two, x, y, host):
    upload(one, x, host)
    upload(two, y, host)


@sound_on_the_host(why="the same bytes again are no change that anybody could see")
def slot_read_and_kept_as_it_is(one, x, host):
    upload(one, x, host)
    copy = host.copy()
    copy += 1
    one.synchronize()


@sound_on_the_host(why="download and upload of one slot are on one stream")
def slot_goes_down_and_up_again(device, one, y):
    x, host = array(device, 5.0), pinned(device)
    download(one, host, x)
    upload(one, y, host)
    one.synchronize()
    assert host[0] == y.get()[0] == 5


@sound_on_the_host(why="the host has waited before it reads")
def result_read_after_the_wait():
    stream = agt.create_stream()
    host = agt.ones(SIZE).to_host().async_on(stream)
    stream.synchronize()
    assert host.sum() == SIZE


@sound_on_the_host(why="to await is to wait")
async def result_read_after_await():
    assert (await agt.ones(SIZE).to_host()).sum() == SIZE


@sound_on_the_host(why="each task has a slot of its own")
async def tasks_with_a_slot_each():
    async def batch(number):
        slot = host_array(number)
        x = await agt.h2d(slot)
        slot[:] = 0
        return (await agt.d2h(x))[0]

    assert await asyncio.gather(batch(1), batch(2)) == [1, 2]


@sound_on_the_host(why="a copy of the batch is uploaded, and the batch is the caller's again")
def batch_copied_before_it_is_uploaded():
    batch, stream = host_array(1.0), agt.create_stream()
    result = agt.h2d(agt.pin(batch.copy())).to_host().async_on(stream)
    batch[:] = 2.0
    stream.synchronize()
    assert result[0] == 1


@sound_on_the_host(why="kernel and host take turns at mapped memory, with a wait between")
def mapped_memory_in_turns():
    host, y = host_array(1.0), full()
    for number in range(3):
        host[:] = number
        op("twice", y, agt.mapped(host)).sync()
        assert agt.d2h(y.borrow()).sync()[0] == 2 * number


@sound_on_the_host(why="the result is named by out=, and read when its operation is done")
def array_of_out_read_after_sync():
    host, x = agt.pinned((SIZE,)), full(1.0)
    agt.d2h(x, out=host).sync()
    assert host.sum() == SIZE
