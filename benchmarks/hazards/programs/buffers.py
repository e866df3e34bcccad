"""Host buffers: right uses that look wrong; and read before the copy is done, or written while one reads."""

import asyncio
from functools import partial

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import (
    SIZE,
    array,
    bug,
    download,
    full,
    locked,
    op,
    pinned,
    run,
    sound,
    upload,
)


@sound("a pageable array has been read when the call returns")
def pageable_array_written_after_the_upload_call(one, x):
    host = np.ones(SIZE, np.float32)
    upload(one, x, host)
    host[:] = 2.0
    one.synchronize()


@sound("a download to a pageable array is over when the call returns")
def pageable_result_read_at_once(device, one):
    x, host = array(device, 3.0), np.zeros(SIZE, np.float32)
    download(one, host, x)
    assert host[0] == 3


@sound("the stream has been waited for")
def slot_filled_after_the_wait(one, x, host):
    for number in range(3):
        host[:] = number
        upload(one, x, host)
        one.synchronize()


@sound("the copy's event has been waited for, though the kernel behind it still runs")
def slot_filled_while_the_kernel_runs(one, x, y, host):
    upload(one, x, host)
    copied = one.record()
    run("twice", one, y, x)
    copied.synchronize()
    host[:] = 2.0
    one.synchronize()


@sound("each batch has a slot of its own")
def a_slot_for_each_batch(device, one):
    xs, slots = [array(device) for _ in range(3)], [pinned(device) for _ in range(3)]
    for number, (x, host) in enumerate(zip(xs, slots, strict=True)):
        host[:] = number
        upload(one, x, host)
    one.synchronize()


@sound("before a slot is filled again, the event of its copy is waited for")
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


@sound("the copy keeps the array that it reads")
def slot_dropped_while_it_is_read(device, one, x):
    host = pinned(device, 4.0)
    upload(one, x, host)
    del host
    other = pinned(device, 9.0)
    one.synchronize()
    assert x.get()[0] == 4
    del other


@sound("reading what a copy reads is no conflict")
def slot_read_while_it_is_copied(one, x, host):
    upload(one, x, host)
    assert host.sum() == SIZE
    one.synchronize()


@sound("two uploads may read one array at once")
def one_slot_two_uploads(one, two, x, y, host):
    upload(one, x, host)
    upload(two, y, host)


@sound("the same bytes again are no change that anybody could see")
def slot_read_and_kept_as_it_is(one, x, host):
    upload(one, x, host)
    copy = host.copy()
    copy += 1
    one.synchronize()


@sound("download and upload of one slot are on one stream")
def slot_goes_down_and_up_again(device, one, y):
    x, host = array(device, 5.0), pinned(device)
    download(one, host, x)
    upload(one, y, host)
    one.synchronize()
    assert host[0] == y.get()[0] == 5


@sound("the host has waited before it reads")
def result_read_after_the_wait():
    stream = agt.create_stream()
    host = agt.ones(SIZE).to_host().async_on(stream)
    stream.synchronize()
    assert host.sum() == SIZE


@sound("to await is to wait")
async def result_read_after_await():
    assert (await agt.ones(SIZE).to_host()).sum() == SIZE


@sound("each task has a slot of its own")
async def tasks_with_a_slot_each():
    async def batch(number):
        slot = locked(number)
        x = await agt.h2d(slot)
        slot[:] = 0
        return (await agt.d2h(x))[0]

    assert await asyncio.gather(batch(1), batch(2)) == [1, 2]


@sound("a copy of the batch is uploaded, and the batch is the caller's again")
def batch_copied_before_it_is_uploaded():
    batch, stream = locked(1.0), agt.create_stream()
    result = agt.h2d(agt.pin(batch.copy())).to_host().async_on(stream)
    batch[:] = 2.0
    stream.synchronize()
    assert result[0] == 1


@sound("kernel and host take turns at mapped memory, with a wait between")
def mapped_memory_in_turns():
    host, y = locked(1.0), full()
    for number in range(3):
        host[:] = number
        op("twice", y, agt.mapped(host)).sync()
        assert agt.d2h(y.borrow()).sync()[0] == 2 * number


@sound("the result is named by out=, and read when its operation is done")
def array_of_out_read_after_sync():
    host, x = agt.pinned((SIZE,)), full(1.0)
    agt.d2h(x, out=host).sync()
    assert host.sum() == SIZE


def changed(why: str, about: str = "changed"):
    """A program that writes to a host array which a copy reads."""
    return bug(f"HostBuffer: {about}", why)


def early(why: str, about: str = "host"):
    """A program that reads a host array to which a copy may still write."""
    return bug(f"NotReady HostBuffer: {about}", why)


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
    slot, x, y = locked(), full(), full()

    async def batch(target, number):
        slot[:] = number
        await agt.memcpy(target.borrow(), slot)  # <- bug

    await asyncio.gather(batch(x, 1), batch(y, 2))  # <- bug


@changed("the operation is enqueued, and not done", "changed")
def batch_written_after_async_on():
    batch, stream = locked(1.0), agt.create_stream()
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


race = partial(bug, "StreamRace HostBuffer: order")


@race("two downloads into one host array, on two streams")
def two_downloads_into_one_array(device, one, two):
    x, y, host = array(device, 1.0), array(device, 2.0), pinned(device)
    download(one, host, x)  # <- bug
    download(two, host, y)  # <- bug


@race("the upload reads what the download on another stream may not have written yet")
def upload_of_what_a_download_brings(device, one, two, y):
    x, host = array(device, 1.0), pinned(device)
    download(one, host, x)  # <- bug
    upload(two, y, host)  # <- bug


@race("a kernel reads mapped memory that a copy on another stream writes")
def mapped_memory_beside_a_download():
    host, x, y, one, two = locked(), full(1.0), full(), agt.create_stream(), agt.create_stream()
    agt.d2h(x, out=host).async_on(one)  # <- bug
    op("twice", y, agt.mapped(host)).async_on(two)  # <- bug


@changed("the kernel reads mapped memory while it runs, later than the launch returns")
def mapped_memory_written_after_the_launch(device, one, y, host):
    run("twice", one, y, device.map_host(host, "host"))  # <- bug
    host[:] = 2.0
    one.synchronize()  # <- bug
