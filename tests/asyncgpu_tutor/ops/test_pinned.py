"""Memory that a kernel and the host see at once, and kernels that wait: for the host, and for each other."""

import asyncio
import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from tests.laws.test_waiting import awaited

# Bounded, so that a mistake in a test costs a GPU seconds, and not its life.
BOUND = 20_000_000

ECHO = f"""__global__ void echo(volatile unsigned* mail, int rounds) {{
    for (int k = 1; k <= rounds; ++k) {{
        mail[1] = mail[2] * 2;
        __threadfence_system();
        mail[0] = 2 * k - 1;                       // asked
        unsigned turns = 0;
        while (mail[0] != 2 * k) {{
            if (++turns > {BOUND}u) {{ mail[3] = 1; return; }}
            __nanosleep(100);
        }}
        __threadfence_system();
    }}
}}"""

SQUARES = """__global__ void squares(int n, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}"""


class TestMapped:
    def test_the_host_may_write_after_a_copy_of_what_is_half_written(self, device: Device) -> None:
        host = agt.pinned(8)
        half = agt.with_context(lambda context: agt.value(context.empty((8,)))).sync()
        fill = agt.Kernel("__global__ void fill(float* y) { y[threadIdx.x] = 1; }")
        fill(half.borrow(), grid=1, block=4).sync()
        seen = agt.mapped(host)
        agt.memcpy(seen.borrow(), half.borrow()).sync()
        host[:] = 3
        squares = agt.Kernel(SQUARES)(8, seen.borrow(), agt.zeros(8), grid=1, block=8)
        assert squares.output().to_host().sync().tolist() == [9.0] * 8

    def test_it_is_the_same_memory_in_the_next_launch(self, device: Device) -> None:
        x, y = agt.pin(np.ones(64, np.float32)), agt.pinned(64)
        inside, out = agt.mapped(x), agt.mapped(y)
        kernel = agt.Kernel(SQUARES)
        for value in (3.0, 5.0):
            x[:] = value
            kernel(64, inside.borrow(), out.borrow(), grid=2, block=32).sync()
            assert y.tolist() == [value * value] * 64

    def test_it_keeps_the_host_array_alive(self, device: Device) -> None:
        array = agt.mapped(agt.pin(np.full(64, 2.0, np.float32)))
        out = agt.pinned(64)
        agt.Kernel(SQUARES)(64, array, agt.mapped(out), grid=2, block=32).sync()
        assert out.tolist() == [4.0] * 64

    def test_only_a_whole_pinned_array(self, device: Device) -> None:
        parts = agt.pinned(128)[:64], agt.pinned(20, np.int8)[:18]
        for host in (np.zeros(64), *parts, [1.0] * 64):
            with pytest.raises(errors.UsageError, match=r"agt\.pin"):
                agt.mapped(host)  # type: ignore[arg-type]

    def test_only_what_a_kernel_may_use_as_the_host_does(self, device: Device) -> None:
        fixed = agt.pinned(4)
        fixed.flags.writeable = False
        for host, what in ((agt.pinned((2, 3)).T, "is not C-contiguous"), (fixed, "is read-only")):
            with pytest.raises(errors.UsageError, match=what):
                agt.mapped(host)
        assert agt.mapped(agt.pinned(0)).shape == (0,)
        assert agt.mapped(agt.pinned(4).view(np.int32)).dtype == np.int32


async def answer(mail: np.ndarray[Any, Any], rounds: int) -> list[int]:
    seen: list[int] = []
    for k in range(1, rounds + 1):
        while mail[0] != 2 * k - 1:
            await agt.sleep(1)
        seen.append(int(mail[1]))
        mail[2] = k
        mail[0] = 2 * k
    return seen


class TestAKernelThatWaitsForTheHost:
    async def test_it_is_answered_again_and_again(self, device: Device) -> None:
        mail = agt.pin(np.zeros(4, np.uint32))
        op = agt.Kernel(ECHO)(agt.mapped(mail), 20, grid=1, block=1)
        seen, _ = await asyncio.gather(answer(mail, 20), op)
        assert seen == [2 * k for k in range(20)]

    def test_calls_to_the_device_are_turns_too(self, device: Device) -> None:
        mail = agt.pin(np.zeros(4, np.uint32))
        kernel = agt.Kernel(ECHO)
        stream = agt.create_stream()
        kernel(agt.mapped(mail), 1, grid=1, block=1).async_on(stream)
        while mail[0] != 1:
            assert not stream.done
        mail[0] = 2
        stream.synchronize()
        assert stream.done
        assert mail[3] == 0

    async def test_a_host_that_is_late_is_waited_for(self, device: Device) -> None:
        mail = agt.pin(np.zeros(4, np.uint32))
        op = agt.Kernel(ECHO)(agt.mapped(mail), 1, grid=1, block=1)
        task = agt.spawn(op)
        for _ in range(200):
            await asyncio.sleep(0)
        while mail[0] != 1:
            await agt.sleep(1)
        mail[0] = 2
        await task
        assert int(mail[3]) == 0

    def test_who_counts_its_turns_gives_up_when_the_host_blocks(self) -> None:
        source = ECHO.replace(str(BOUND), "50")
        with agt.using("sim"):
            mail = agt.pin(np.zeros(4, np.uint32))
            agt.Kernel(source)(agt.mapped(mail), 1, grid=1, block=1).sync()
        assert mail.tolist() == [1, 0, 0, 1]

    @pytest.mark.parametrize("awaits", [False, True])
    def test_and_a_kernel_that_does_not_is_a_deadlock(self, awaits: bool) -> None:
        source = ECHO.replace(f"if (++turns > {BOUND}u) {{ mail[3] = 1; return; }}", "")
        device = agt.SimDevice()
        device.machine.patience_s = 0.01
        with agt.using(device):
            before = agt.in_flight()
            mail = agt.pin(np.zeros(4, np.uint32))
            op = agt.Kernel(source)(agt.mapped(mail), 1, grid=1, block=1)
            with pytest.raises(errors.DeadlockError, match="the host") as caught:
                asyncio.run(awaited(op)) if awaits else op.sync()
            assert "while (mail[0]" in str(caught.value)
            assert agt.in_flight() <= before
            assert agt.ones((2,)).to_host().sync().tolist() == [1, 1]


PRODUCE = """__global__ void produce(int n, int* data, int* flags) {
    for (int k = 0; k < n; ++k) {
        data[k] = k * k;
        __threadfence();
        atomicExch(&flags[k], 1);
    }
}"""

CONSUME = f"""__global__ void consume(int n, const int* data, int* flags, int* sum) {{
    int total = 0;
    for (int k = 0; k < n; ++k) {{
        unsigned turns = 0;
        while (atomicAdd(&flags[k], 0) == 0) {{
            if (++turns > {BOUND}u) {{ *sum = -1; return; }}
            __nanosleep(100);
        }}
        __threadfence();
        total += data[k];
    }}
    *sum = total;
}}"""

# Two of these wait for each other: one takes the even turns and the other the odd ones.
TURNS = f"""__global__ void turns(int n, int mine, int* turn, volatile int* sum) {{
    for (int k = 0; k < n; ++k) {{
        unsigned looks = 0;
        while (atomicAdd(turn, 0) % 2 != mine) {{
            if (++looks > {BOUND}u) return;
            __nanosleep(100);
        }}
        *sum = 2 * *sum + mine;
        __threadfence();
        atomicAdd(turn, 1);
    }}
}}"""


def pair(n: int, consume: str = CONSUME) -> tuple[Any, Any, agt.DeviceArray]:
    """A producer and a consumer of `n` items, and what the consumer adds up."""
    data, flags, total = (agt.zeros((k,), np.int32).sync() for k in (n, n, 1))
    agt.synchronize()
    make, take = agt.Kernel(PRODUCE), agt.Kernel(consume)
    return (
        make(n, data.borrow(), flags.borrow(), grid=1, block=1),
        take(n, data.borrow(), flags.borrow(), total.borrow(), grid=1, block=1),
        total,
    )


class TestKernelsThatWaitForEachOther:
    @pytest.mark.parametrize("order", [1, -1])
    def test_producer_and_consumer(self, device: Device, order: int) -> None:
        produce, consume, total = pair(12)
        for op in (produce, consume)[::order]:
            op.async_on(agt.create_stream())
        agt.synchronize()
        assert agt.d2h(total).sync().tolist() == [sum(k * k for k in range(12))]

    @pytest.mark.parametrize("on_host", [False, True])
    def test_both_wait(self, device: Device, on_host: bool) -> None:
        turn, total = (agt.zeros((1,), np.int32).sync() for _ in range(2))
        total = agt.mapped(agt.pin(np.zeros(1, np.int32))) if on_host else total
        agt.synchronize()
        for mine in (1, 0):
            op = agt.Kernel(TURNS)(9, mine, turn.borrow(), total.borrow(), grid=1, block=1)
            op.async_on(agt.create_stream())
        agt.synchronize()
        assert agt.d2h(total).sync().tolist() == [int("01" * 9, 2)]

    def test_a_consumer_in_front_of_its_producer_waits_for_ever(self, sim: Device) -> None:
        forever = f"if (++turns > {BOUND}u) {{ *sum = -1; return; }}"
        assert forever in CONSUME
        produce, consume, _ = pair(2, CONSUME.replace(forever, ""))
        stream = agt.create_stream()
        consume.async_on(stream)
        produce.async_on(stream)
        with pytest.raises(errors.DeadlockError, match="consume"):
            stream.synchronize()

    def test_and_gives_up_if_it_counts(self, sim: Device) -> None:
        _, consume, total = pair(2, CONSUME.replace(str(BOUND), "40"))
        consume.sync()
        assert agt.d2h(total).sync().tolist() == [-1]

    def test_kernels_that_do_not_wait_still_race(self, sim: Device) -> None:
        looks = "while (atomicAdd(&flags[k], 0) == 0)"
        produce, consume, _ = pair(2, CONSUME.replace(looks, "if (flags[k] == 0)"))
        produce.async_on(agt.create_stream())
        with pytest.raises(errors.StreamRaceError):
            consume.async_on(agt.create_stream())

    def test_a_consumer_that_fills_the_device_keeps_its_producer_out(self, sim: SimDevice) -> None:
        source = """__global__ void all_wait(int* flag) {
            while (atomicAdd(flag, 0) == 0) { __nanosleep(100); }
        }
        __global__ void set(int* flag) { atomicExch(flag, 1); }"""
        wait, release = agt.Kernel(source, "all_wait"), agt.Kernel(source, "set")
        for blocks in (sim.spec.sms, 2 * sim.spec.sms):  # half of the device, and all of it
            flag = agt.zeros((1,), np.int32).sync()
            agt.synchronize()
            wait(flag.borrow(), grid=blocks, block=1024).async_on(agt.create_stream())
            release(flag.borrow(), grid=1, block=1).async_on(agt.create_stream())
            if blocks == sim.spec.sms:
                agt.synchronize()
        with pytest.raises(errors.DeadlockError, match="all_wait"):
            agt.synchronize()

    def test_an_interrupt_ends_one_that_looks_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from simgpu.cuda_c import Execution

        with agt.using("sim"):
            mail, stream = agt.pin(np.zeros(4, np.uint32)), agt.create_stream()
            agt.Kernel(ECHO)(agt.mapped(mail), 1, grid=1, block=1).async_on(stream)
            while mail[0] != 1:
                assert not stream.done
            mail[0] = 2

            def interrupted(*_: object, **__: object) -> bool:
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(Execution, "go_on", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    stream.synchronize()
            with pytest.raises(errors.DeviceError, match="interrupted by KeyboardInterrupt"):
                stream.synchronize()
            assert agt.ones((2,)).to_host().sync_on(stream).tolist() == [1, 1]


@pytest.mark.parametrize("fence", ["", "__threadfence();"])
async def test_a_letter_to_the_host_is_fenced_off_from_its_flag(sim: Device, fence: str) -> None:
    mail = agt.pin(np.zeros(4, np.uint32))
    kernel = agt.Kernel(ECHO.replace("__threadfence_system();", fence, 1))
    answering = asyncio.create_task(answer(mail, 2))
    with pytest.raises(errors.RaceError, match="took for a signal"):
        await kernel(agt.mapped(mail), 2, grid=1, block=1)
    answering.cancel()


ASKS = ECHO[ECHO.index("        mail[1]") : ECHO.index("    // asked")]
MISPLACED = [
    (ASKS, "mail[0] = 2 * k - 1; mail[1] = mail[2] * 2;"),
    (ASKS, "mail[0] = 2 * k - 1; __threadfence_system(); mail[1] = k;"),
    ("        __threadfence_system();\n    }", "    }"),
]


@pytest.mark.parametrize(("was", "instead"), MISPLACED)
async def test_a_flag_stands_between_letter_and_answer(sim: Device, was: str, instead: str) -> None:
    mail = agt.pin(np.zeros(4, np.uint32))
    answering = asyncio.create_task(answer(mail, 2))
    with pytest.raises(errors.RaceError, match=r"only then that|may get an old value"):
        await agt.Kernel(ECHO.replace(was, instead))(agt.mapped(mail), 2, grid=1, block=1)
    answering.cancel()


@pytest.mark.parametrize("watched", [False, True])
async def test_a_word_behind_the_flag_need_not_be_a_letter(sim: Device, watched: bool) -> None:
    """It may be the next letter, which nobody reads yet, or one that is looked at all the time.

    What is read with strides is read there, and not behind.
    """
    mail = agt.pin(np.zeros(5, np.uint32))
    kernel = agt.Kernel(ECHO.replace("// asked", "mail[4] = k;"))
    task = agt.spawn(kernel(agt.mapped(mail), 5, grid=1, block=1))
    while not task.done():
        await agt.sleep(1)
        assert not watched or mail[4] <= 5
        if mail[0] % 2:
            *_, letter, signal = mail[3::-1].tolist()
            mail[2], mail[0] = letter, signal + 1
    await task


STEPS = """__global__ void steps(volatile int* mail, float* out) {
    float x = 1.0f;
    for (int k = 1; k <= 4; ++k) {
        for (int i = 0; i < 2000; ++i) x = 0.5f * (x + 3.0f / x);
        mail[0] = k;
    }
    WAITS
    out[0] = x;
}"""


@pytest.mark.parametrize("waits", ["", "while (mail[1] == 0) __nanosleep(100);"])
async def test_the_host_sees_a_write_when_the_kernel_is_there(sim: Device, waits: str) -> None:
    """And what the host has written meanwhile stays."""
    mail, seen = agt.pin(np.zeros(2, np.int32)), dict[int, float]()
    op = agt.Kernel(STEPS.replace("WAITS", waits))(agt.mapped(mail), agt.zeros(1), grid=1, block=1)
    with agt.record() as trace:
        task = agt.spawn(op)
        while not task.done():
            await agt.sleep(1)
            seen.setdefault(int(mail[0]), sim.now())
            mail[1] = mail[0]
        await task
    (kernel,) = trace.find("steps")
    times = [kernel.start, *(seen[k] for k in (1, 2, 3, 4))]
    assert all(60 < after - before < 80 for before, after in pairwise(times))
    assert times[-1] < kernel.end + 3
    assert mail.tolist() == [4, 4]


def test_writes_within_a_trip_over_the_bus_come_as_one(sim: Device) -> None:
    source = STEPS.replace("2000", "(k == 2 ? 16 : 500)").replace("mail[0] = k", "mail[k] = 1")
    mail, seen = agt.pin(np.zeros(5, np.int32)), set[int]()
    op = agt.Kernel(source.replace("WAITS", ""))(agt.mapped(mail), agt.zeros(1), grid=1, block=1)
    op.async_on(agt.create_stream())
    while mail[4] == 0:
        agt.work(0.1)
        seen.add(sum(mail.tolist()))
    assert seen == {0, 2, 3, 4}


LATER = """__global__ void later(volatile int* mail, volatile int* flag, int* out) {
    int t = threadIdx.x;
    if (t == 0) {
        float x = 1.0f;
        for (int k = 0; k < 1000; ++k) x = 0.5f * (x + 3.0f / x);
        mail[0] = (int)x;
        while (mail[1] == 0) __nanosleep(100);
        __threadfence_system();
        flag[0] = 2;
    }
    __syncthreads();
    for (int k = 0; k < TURNS; ++k) out[t] = k * k ^ t;
}"""


async def _later(sim: SimDevice, turns: int, out: agt.DeviceArray) -> tuple[float, float]:
    """How long the kernel takes whose host keeps it waiting for 500 us; and when before its end it flags."""
    mail, flag, seen = agt.pin(np.zeros(2, np.int32)), agt.pin(np.zeros(1, np.int32)), list[float]()
    kernel, began = agt.Kernel(LATER.replace("TURNS", str(turns))), sim.now()
    with agt.record() as trace:
        task = agt.spawn(kernel(agt.mapped(mail), agt.mapped(flag), out, grid=1, block=1024))
        while mail[0] == 0:
            await agt.sleep(1)
        await agt.sleep(500)
        mail[1] = 1
        while not task.done():
            await agt.sleep(1)
            if flag[0] == 2 and not seen:
                seen.append(sim.now() - began)
        await task
    (span,) = trace.find("later")
    return span.duration, span.end - seen[0]


async def test_work_behind_a_wait_takes_as_long_as_any(sim: SimDevice) -> None:
    """Whatever was done before; and a flag is seen before it, wherever the work's results go."""
    short, _ = await _later(sim, 1, await agt.zeros(1024, np.int32))
    long, before = await _later(sim, 2001, await agt.zeros(1024, np.int32))
    alone = (
        "__global__ void alone(int* out) { int t = threadIdx.x;" + LATER[LATER.rindex("    for") :]
    )
    took = list[float]()
    for turns in ("1", "2001"):
        kernel = agt.Kernel(alone.replace("TURNS", turns))
        with agt.record() as trace:
            await kernel(agt.zeros(1024, np.int32), grid=1, block=1024)
        took.append(trace.find("alone")[0].duration)
    assert long - short == pytest.approx(took[1] - took[0], rel=0.02)
    assert before == pytest.approx(long - short, rel=0.05)
    other = await _later(sim, 2001, agt.mapped(agt.pin(np.zeros(1024, np.int32))))
    assert other == pytest.approx((long, before), abs=0.5)


def _chosen_by(host: Any) -> Any:
    return np.add.reduce(np.ones(host.nbytes), where=host.view(bool))


LOOKS: list[Any] = [
    np.sum, np.negative, str, list, max, _chosen_by, np.sort, np.median, copy.copy,
    lambda host: host[[0]], lambda host: host[[True]], lambda host: host.take(0),
    lambda host: np.array_equal(host, host), lambda host: np.concatenate([np.zeros(1), host]),
    lambda host: np.copyto(np.zeros(1), host), lambda host: np.where([True], host, 1),
    lambda host: float(host.reshape(())),
]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
def test_an_array_is_not_read_while_a_device_may_write_it(sim: Device, look: Any) -> None:
    host, x, stream = agt.pin(np.ones((2, 8), np.float32)), agt.ones(8).sync(), agt.create_stream()
    agt.d2h(x, out=host[0]).async_on(stream)
    look(host[1][:1])
    with pytest.raises(errors.HostBufferError, match="wait for that first"):
        look(host[0][1:2])
    stream.synchronize()
    look(host[0][:1])


def test_to_ask_for_a_form_or_a_view_reads_nothing(sim: Device) -> None:
    host, x, stream = agt.pin(np.ones((4, 8), np.float32)), agt.ones(8).sync(), agt.create_stream()
    agt.d2h(x, out=host[1]).async_on(stream)
    assert (np.shape(host), np.zeros_like(host).shape, np.reshape(host, -1).size) == (
        (4, 8),
        (4, 8),
        32,
    )
    assert [part.shape for part in np.split(host, 2)] == [(2, 8)] * 2
    np.copyto(host[2:], 3)
    for index in ([0, 2], (slice(2, None), [7]), [True, False, True, True], ([0, 3], [0, 5]), []):
        assert host[index].size == np.zeros((4, 8))[index].size
    for index in ([0, 1], (slice(None), [7]), [False, True, False, True], ([0, 1], [0, 5])):
        with pytest.raises(errors.HostBufferError):
            host[index]
    stream.synchronize()


def test_a_view_with_strides_is_read_where_it_has_bytes(sim: Device) -> None:
    host, x, stream = agt.pin(np.ones((4, 8), np.float32)), agt.ones(8).sync(), agt.create_stream()
    agt.d2h(x, out=host[1]).async_on(stream)
    for part in (host[::2], host[::-2, 3:][:1], host[2:, ::3]):
        assert np.sum(part) == part.size
    for part in (host.T, host[:, 2:5], host[::-1], host[1, ::3], host[1::2].T):
        with pytest.raises(errors.HostBufferError):
            np.sum(part)
    stream.synchronize()


def test_the_host_leaves_alone_what_a_kernel_uses_in_place(sim: Device) -> None:
    host, stream = agt.pin(np.ones(64, np.float32)), agt.create_stream()
    for arrays in ((agt.ones(64), agt.mapped(host)), (agt.mapped(host), agt.zeros(64))):
        stream.synchronize()  # what a kernel itself has written is no change
        agt.Kernel(SQUARES)(64, *arrays, grid=2, block=32).async_on(stream)
    host[3] = 7.0
    with pytest.raises(errors.HostBufferError, match="its kernel"):
        stream.synchronize()
