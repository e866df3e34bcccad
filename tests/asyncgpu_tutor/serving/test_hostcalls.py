"""Kernels that call the host while they run."""

import asyncio
import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.serving.services import HostcallRequest, words

# Each block asks `calls` times, and writes down each answer.
ASK = """#include "hostcall.cuh"
__global__ void ask(unsigned long long* mail, unsigned long long* stack, int service, int calls,
                    unsigned long long* out, int* stopped) {
    Hostcalls host = hostcalls(mail, stack);
    for (int i = 0; i < calls; ++i) {
        unsigned long long answer = 0;
        bool ok = hostcall(host, service, blockIdx.x, i, 7, answer);
        if (!ok) { stopped[blockIdx.x] = 1; return; }
        out[blockIdx.x * calls + i] = answer;
    }
}"""


class Asking:
    """A launch of `ask`, and what it has left behind."""

    def __init__(self, blocks: int, calls: int, service: int = 16) -> None:
        self.blocks, self.calls, self.service = blocks, calls, service
        self.out = agt.pin(np.zeros(blocks * calls, np.uint64))
        self.stopped = agt.pin(np.zeros(blocks, np.int32))
        self.kernel = agt.Kernel(ASK)

    def op(self, host: Any) -> Any:
        where = (self.service, self.calls, agt.mapped(self.out), agt.mapped(self.stopped))
        return self.kernel(*host.arrays, *where, grid=self.blocks, block=1)

    async def answered(self, handlers: Any = None, **options: Any) -> int:
        """Run it with these handlers; returns the number of calls that they had."""
        async with agt.hostcalls(handlers, **options) as host:
            await host.run(self.op(host))
            return host.answered

    @property
    def all_right(self) -> bool:
        """True if each call has its own answer, as `both` gives it."""
        wanted = [both(b, i) for b in range(self.blocks) for i in range(self.calls)]
        return self.out.tolist() == wanted and not self.stopped.any()


def both(block: int, number: int) -> int:
    return block * 100_000 + number


class TestAnswers:
    async def test_thousands_of_calls_from_132_blocks(self, device: Device) -> None:
        calls = 16 if device.simulated else 76
        seen: Counter[tuple[int, int]] = Counter()

        def answer(a: Any, b: Any, c: Any) -> Any:
            seen.update(zip(a.tolist(), b.tolist(), strict=True))
            return a * 100_000 + b

        asking = Asking(132, calls)
        assert await asking.answered(batch_handlers={16: answer}) == 132 * calls
        assert asking.all_right
        assert len(seen) == 132 * calls
        assert set(seen.values()) == {1}

    @pytest.mark.parametrize(("blocks", "calls"), [(1, 3), (3, 1), (3, 2)])
    async def test_a_batch_handler_finds_the_same_in_one_call_as_in_several(
        self, device: Device, blocks: int, calls: int
    ) -> None:
        """What it was given stays as it was; whole numbers keep their 64 bits; and it may refuse."""
        kept: list[Any] = []

        def answer(a: Any, b: Any, c: Any) -> Any:
            kept.extend((a, b))
            return [-1 if n % 2 else 2**63 for n in b.tolist()]

        def refuse(a: Any, b: Any, c: Any) -> Any:
            raise agt.errors.CallRefusedError(5)

        asking = Asking(blocks, calls)
        await asking.answered(batch_handlers={16: answer})
        assert asking.out.tolist() == [2**64 - 1 if i % 2 else 2**63 for i in range(calls)] * blocks
        found = zip(
            np.concatenate(kept[::2]).tolist(), np.concatenate(kept[1::2]).tolist(), strict=True
        )
        assert sorted(found) == [(b, i) for b in range(blocks) for i in range(calls)]
        assert (
            await asking.answered(batch_handlers={16: refuse}) == blocks
        )  # which end at the first
        assert asking.stopped.all()

    def test_a_service_has_one_handler(self, device: Device) -> None:
        with pytest.raises(
            errors.UsageError, match="16 has a handler and a batch handler: leave one"
        ):
            agt.hostcalls({16: lambda call: 1}, batch_handlers={16: lambda a, b, c: a})

    @pytest.mark.parametrize("packets", [1, 5, 64])
    async def test_fewer_packets_than_blocks(self, device: Device, packets: int) -> None:
        asking = Asking(12, 6)
        await asking.answered({16: lambda call: both(call.a, call.b)}, packets=packets)
        assert asking.all_right

    async def test_answers_that_take_their_time_do_not_hold_up_others(self, device: Device) -> None:
        delays = random.Random(5)
        order: list[tuple[int, int]] = []

        async def answer(call: HostcallRequest) -> int:
            for _ in range(delays.randrange(4)):
                await asyncio.sleep(delays.choice([0, 0.0005]))
            order.append((call.a, call.b))
            return both(call.a, call.b)

        asking = Asking(16, 4)
        await asking.answered({16: answer})
        assert asking.all_right
        assert not device.simulated or device.machine.answering == 0  # type: ignore[attr-defined]
        assert sorted(order) == [(b, i) for b in range(16) for i in range(4)]
        assert [b for b, _ in order] != sorted(b for b, _ in order)

    async def test_several_services_at_once(self, device: Device) -> None:
        source = ASK.replace("service, blockIdx.x, i, 7", "16 + blockIdx.x % 3, blockIdx.x, i, 7")
        asking = Asking(9, 2)
        asking.kernel = agt.Kernel(source)
        several = {18: lambda a, b, c: -a.astype(np.int64)}
        single = {16: lambda call: call.c, 17: lambda call: 1.5}
        await asking.answered(single, batch_handlers=several)
        got = asking.out.reshape(9, 2)[:, 1].tolist()
        assert got[0::3] == [7, 7, 7]
        assert np.array(got[1::3], np.uint64).view(np.float64).tolist() == [1.5] * 3
        assert np.array(got[2::3], np.uint64).view(np.int64).tolist() == [-2, -5, -8]

    @pytest.mark.parametrize("seed", [None, *range(4)])
    async def test_two_kernels_on_two_streams_have_one_host_in_hostile_orders_too(
        self, device: Device, seed: int | None
    ) -> None:
        with agt.using(device if seed is None else agt.SimDevice(adversary=seed)):
            one, two = Asking(5, 3), Asking(7, 2)
            handlers = {16: lambda call: both(call.a, call.b)}
            async with agt.hostcalls(handlers, packets=3) as host:
                await asyncio.gather(host.run(one.op(host)), host.run(two.op(host)))
            assert one.all_right
            assert two.all_right

    async def test_time_and_random_bits(self, device: Device) -> None:
        time, bits = Asking(1, 4, service=1), Asking(1, 4, service=2)
        async with agt.hostcalls() as host:
            await host.run(time.op(host))
            await host.run(bits.op(host))
        time, bits = time.out.tolist(), bits.out.tolist()
        assert time == sorted(time)
        assert time[0] < time[-1]
        assert bits == np.random.default_rng(0).integers(0, 2**64, 4, dtype=np.uint64).tolist()

    def test_on_the_simulated_device_it_takes_the_same_time_again(self) -> None:
        def main() -> tuple[float, list[int]]:
            with agt.using(agt.SimDevice()) as sim:
                time = Asking(3, 4, service=1)
                asyncio.run(time.answered())
                return sim.now(), time.out.tolist()

        assert main() == main()

    @pytest.mark.parametrize("blocks", [False, True])
    async def test_a_kernel_need_not_wait_for_answers(self, device: Device, blocks: bool) -> None:
        source = """#include "hostcall.cuh"
        __global__ void tell(unsigned long long* mail, unsigned long long* stack) {
            Hostcalls host = hostcalls(mail, stack);
            int p = hostcall_begin(host);
            if (p >= 0) hostcall_ask(host, p, 16, blockIdx.x, 0, 0);
        }"""
        told: list[int] = []
        kernel = agt.Kernel(source)
        async with agt.hostcalls({16: lambda call: told.append(call.a)}) as host:
            op = kernel(*host.arrays, grid=6, block=1)
            if blocks:  # so who answers gets no turn before the end of the block
                op.sync()
            else:
                await host.run(op)
        assert sorted(told) == list(range(6))


COPY = """#include "hostcall.cuh"
__global__ void shout(unsigned long long* mail, unsigned long long* stack, int size, int* failed) {
    Hostcalls host = hostcalls(mail, stack);
    int p = hostcall_begin(host);
    if (p < 0) { atomicAdd(failed, 1); return; }
    int at = blockIdx.x * size;
    hostcall_ask(host, p, HOSTCALL_READ, 0, at, size);
    bool ok = hostcall_wait(host, p);
    if (!ok) { atomicAdd(failed, 1); return; }
    int n = (int)hostcall_answer(host, p);
    char* bytes = hostcall_bytes(host, p);
    for (int i = 0; i < n; ++i)
        if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] = bytes[i] - 32;
    hostcall_ask(host, p, HOSTCALL_WRITE, 1, at, n);
    ok = hostcall_wait(host, p);
    if (!ok || (int)hostcall_answer(host, p) != n) { atomicAdd(failed, 1); return; }
    hostcall_end(host, p);
}"""


class TestFiles:
    async def test_a_file_is_read_and_another_written(self, device: Device, tmp_path: Path) -> None:
        text = "".join(random.Random(1).choices("abcdefghij KLM.\n", k=1000))
        (tmp_path / "in.txt").write_text(text)
        names = [tmp_path / "in.txt", tmp_path / "out.txt"]
        kernel, failed = agt.Kernel(COPY), agt.pin(np.zeros(1, np.int32))
        async with agt.hostcalls(files=names, packets=7) as host:
            op = kernel(*host.arrays, 64, agt.mapped(failed), grid=16, block=1)
            await host.run(op)
        assert int(failed[0]) == 0
        assert names[1].read_text() == text.upper()

    async def test_what_cannot_be_done(self, device: Device, tmp_path: Path) -> None:
        (tmp_path / "in.txt").write_text("text")
        kernel, failed = agt.Kernel(COPY), agt.mapped(agt.pin(np.zeros(1, np.int32)))
        for files, size, kind, says in (
            ([], 8, errors.UsageError, "file 0"),
            (["missing"], 8, FileNotFoundError, "missing"),
            (["in.txt"], 999, errors.UsageError, "999 bytes"),
        ):
            with pytest.raises(kind, match=says) as caught:
                async with agt.hostcalls(files=[tmp_path / name for name in files]) as host:
                    await host.run(kernel(*host.arrays, size, failed.borrow(), grid=2, block=1))
            assert "service 4" in caught.value.__notes__[0]

    async def test_it_prints_text(self, device: Device, capsys: pytest.CaptureFixture[str]) -> None:
        source = """#include "hostcall.cuh"
        __global__ void greet(unsigned long long* mail, unsigned long long* stack) {
            Hostcalls host = hostcalls(mail, stack);
            int p = hostcall_begin(host);
            if (p < 0) return;
            char* bytes = hostcall_bytes(host, p);
            bytes[0] = 'h'; bytes[1] = 'i'; bytes[2] = '\\n';
            hostcall_ask(host, p, HOSTCALL_PRINT, 3, 0, 0);
            bool ok = hostcall_wait(host, p);
            if (ok) hostcall_end(host, p);
        }"""
        kernel = agt.Kernel(source)
        async with agt.hostcalls() as host:
            await host.run(kernel(*host.arrays, grid=2, block=1))
        assert capsys.readouterr().out == "hi\nhi\n"


class TestWhatGoesWrong:
    async def test_a_cancelled_handler_is_named_and_not_asked_again(self, device: Device) -> None:
        asked: list[int] = []

        async def cancelled(call: HostcallRequest) -> int:
            asked.append(call.a)
            raise asyncio.CancelledError

        with pytest.raises(errors.HostcallError, match="service 16 was cancelled"):
            await Asking(1, 1).answered({16: cancelled})
        assert asked == [0]

    async def test_a_handlers_failure_is_told_where_the_block_fails(self, device: Device) -> None:
        def broken(call: HostcallRequest) -> int:
            raise ZeroDivisionError("no answer")

        with pytest.raises(LookupError) as caught:  # noqa: PT012 - the block is what fails
            async with agt.hostcalls({16: broken}) as host:
                await Asking(1, 1).op(host)  # and not host.run(...), which would tell
                raise LookupError("the answers are wrong")
        assert "no answer" in "".join(caught.value.__notes__)

    async def test_hostcalls_are_open_once(self, device: Device) -> None:
        host = agt.hostcalls({16: lambda call: 1})
        with pytest.raises(errors.UsageError, match="open within a block: async with"):
            _ = host.arrays
        async with host:
            pass
        with pytest.raises(errors.UsageError, match="open within a block"):
            _ = host.arrays  # a kernel that got them would wait for nobody
        with pytest.raises(errors.UsageError, match="make new ones"):
            await host.__aenter__()

    async def test_a_handler_that_the_blocks_end_cancels_is_not_blamed(self, sim: Device) -> None:
        async def slowly(call: HostcallRequest) -> int:
            await asyncio.sleep(0)
            return 5

        asking, stream = Asking(3, 1), agt.create_stream()
        async with agt.hostcalls({16: slowly}) as host:
            asking.op(host).async_on(stream)
            assert not stream.done  # the kernel has asked, and nobody has had a turn to answer
        stream.synchronize()
        assert asking.stopped.all()

    @pytest.mark.parametrize("how", ["at once", "later", "together"])
    async def test_an_exception_is_raised_at_the_await(self, device: Device, how: str) -> None:
        def fails(call: Any, *_: Any) -> int:
            if how == "together" or (call.a, call.b) == (3, 2):
                raise ZeroDivisionError("no such answer")
            return 1

        async def fails_later(call: HostcallRequest) -> int:
            await asyncio.sleep(0)
            return fails(call)

        asking = Asking(8, 5)
        given: dict[str, Any] = {
            "at once": {"handlers": {16: fails}},
            "later": {"handlers": {16: fails_later}},
            "together": {"batch_handlers": {16: fails}},
        }[how]
        async with agt.hostcalls(**given) as host:
            with pytest.raises(ZeroDivisionError, match="no such answer"):
                await host.run(asking.op(host))
        # A block whose calls had all been answered before is not stopped.
        assert (asking.stopped.astype(bool) | asking.out.reshape(8, 5).all(1)).all()
        assert asking.stopped[3]

    @pytest.mark.parametrize(
        ("handlers", "kind", "says"),
        [
            ({17: lambda call: 1}, errors.UsageError, "service 16, which nobody has"),
            ({16: lambda call: "seven"}, errors.UsageError, "'seven'"),
            ({16: lambda call: 1 // 0}, ZeroDivisionError, "division"),
        ],
    )
    @pytest.mark.parametrize("awaited", [True, False])
    async def test_what_goes_wrong_is_told_at_the_latest_where_the_block_is_left(
        self, device: Device, handlers: Any, kind: type[Exception], says: str, awaited: bool
    ) -> None:
        with pytest.raises(kind, match=says):  # noqa: PT012 - the end of the block tells it
            async with agt.hostcalls(handlers) as host:
                op = Asking(2, 2).op(host)
                await (host.run(op) if awaited else op)

    async def test_a_host_that_stops_ends_the_kernel(self, device: Device) -> None:
        async def never(_: HostcallRequest) -> int:
            await asyncio.Event().wait()
            return 0

        asking = Asking(6, 3)
        async with agt.hostcalls({16: never}) as host:
            task = asyncio.create_task(host.run(asking.op(host)))
            while len(host._at_work) < 6:
                await agt.sleep(1)
        await task
        assert asking.stopped.all()

    async def test_a_host_that_blocks_is_given_up(self) -> None:
        with pytest.raises(errors.HostcallError, match="do not block"), agt.using(agt.SimDevice()):
            async with agt.hostcalls({16: lambda call: 1}) as host:
                Asking(3, 3).op(host).sync()

    async def test_a_kernel_that_fails_spoils_its_mail_and_no_other(self) -> None:
        with agt.using(agt.SimDevice()):
            asking, broken = Asking(4, 2), Asking(4, 2)
            broken.calls = 100  # so it writes beyond its array
            handlers = {16: lambda call: both(call.a, call.b)}
            async with agt.hostcalls(handlers) as host:
                with pytest.raises(errors.OutOfBoundsError):
                    await host.run(broken.op(host))
                with pytest.raises(errors.UpstreamError, match="mail"):
                    await host.run(asking.op(host))
            await asking.answered(handlers)
        assert asking.all_right

    def test_numbers_that_are_not_possible(self, device: Device) -> None:
        for given in ({"handlers": {3: abs}}, {"packets": 0}, {"nbytes": 12}, {"nbytes": 0}):
            with pytest.raises(errors.UsageError):
                agt.hostcalls(**given)


def test_answers_are_words() -> None:
    answers = (None, 5, -1, True, 1.0, 2**64 - 1)
    assert [int(words(a)) for a in answers] == [0, 5, 2**64 - 1, 1, 0x3FF << 52, 2**64 - 1]
    assert words([np.int64(-1), 2**63, True]).tolist() == [2**64 - 1, 2**63, 1]
    for much in (2**64 + 5, [1, -(2**63) - 1]):
        with pytest.raises(errors.UsageError, match="an answer to a kernel is an integer from -9"):
            words(much)


async def test_a_recording_shows_when_the_host_answers(device: Device) -> None:
    asking = Asking(2, 3)
    async with agt.hostcalls({16: lambda call: 1}) as host:
        with agt.record() as trace:
            await host.run(asking.op(host))
    (kernel,) = trace.device_spans
    answers = [span for span in trace if span.name.startswith("answer ")]
    assert answers
    assert all(kernel.start < span.end < kernel.end for span in answers)


async def test_a_recording_shows_how_long_a_coroutine_is_at_work(device: Device) -> None:
    async def look_up(_: HostcallRequest) -> None:
        await agt.sleep(100)

    async with agt.hostcalls({16: look_up}) as host:
        with agt.record() as trace:
            await host.run(Asking(2, 1).op(host))
    one, other = (span for span in trace if span.kind == "work")
    assert {one.name, other.name} == {"look_up 0", "look_up 1"}
    assert max(one.start, other.start) + 90 < min(one.end, other.end)
    if trace.clock == "simulated":  # a GPU does not tell
        (kernel,) = trace.device_spans
        ((since, until),) = kernel.waits
        assert kernel.start < since < one.start + 5
        assert max(one.end, other.end) - 5 < until < kernel.end
        assert "only waits for 1" in trace.plot().words


STEPS = """#include "hostcall.cuh"
#define ASK hostcall_ask(host, p, 16, blockIdx.x, 0, 0);
#define READ out[32 * blockIdx.x + threadIdx.x] = hostcall_answer(host, p);
#define ONE if (threadIdx.x == 0)
__global__ void steps(unsigned long long* mail, unsigned long long* stack, unsigned long long* out) {
    Hostcalls host = hostcalls(mail, stack); __shared__ int p; ONE { p = hostcall_begin(host); ASK } %s }"""
WAIT, MEET, END = "ONE hostcall_wait(host, p);", "__syncthreads();", "ONE hostcall_end(host, p);"


OWNED = [
    ("ONE READ", "reads the answer of a packet that the host has"),
    (END, "gives back a packet that the host has"), (WAIT + END + "ONE READ", "reads"),
    (WAIT + END + END, "gives back a packet that"),
    (WAIT + END + "ONE hostcall_leave(host, p);", "leaves a packet that was given back before"),
    ("ONE hostcall_leave(host, -1);", "leaves packet -1, which is none"),
    (WAIT + MEET + "READ " + END, r"which thread \(31, 0, 0\) reads"),
    (WAIT + MEET + "READ " + MEET + END, ""),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "told"), OWNED)
async def test_a_packet_has_one_owner(sim: Device, steps: str, told: str) -> None:
    async with agt.hostcalls({16: lambda call: call.a}, packets=1) as host:
        op = agt.Kernel(STEPS % steps)(*host.arrays, agt.zeros(64, np.uint64), grid=2, block=32)
        with pytest.raises(errors.KernelFault, match=told) if told else nullcontext():
            await host.run(op)


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["plain", "later", "together"])
async def test_a_gpu_loads_no_kernel_while_one_waits_for_the_host(cuda: Device, how: str) -> None:
    def plain(call: HostcallRequest) -> int:
        text = "__global__ void first_use_of_a_handler(float* x) { x[0] = 1.0f; }"
        with pytest.raises(errors.UsageError, match=r"'first_use.*' is used for the first"):
            agt.Kernel(text)
        return both(call.a, call.b)

    async def later(call: HostcallRequest) -> int:
        return plain(call)

    def together(a: Any, b: Any, c: Any) -> Any:
        return [plain(HostcallRequest(16, *numbers, a)) for numbers in zip(a, b, c, strict=True)]

    asking = Asking(blocks=1, calls=1)
    ways: dict[str, Any] = {"handlers": {16: later if how == "later" else plain}}
    if how == "together":
        ways = {"batch_handlers": {16: together}}
    assert await asking.answered(**ways) == 1
    assert asking.all_right
