"""Law 16: a kernel's bar begins when its first block has a place; waiting for one is in no sum."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.simulated import SPECS, SimDevice, SimMachine

SPIN = agt.Kernel(
    """
    extern "C" __global__ void spin(float* out, unsigned rounds) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        float x = i;
        for (unsigned r = 0; r < rounds; ++r) x = 0.5f * x + 1.0f;
        out[i] = x;
    }
    """
)
# Small and slow, so that little interpreting fills it for long: it has places for 16 blocks of 256 threads.
SMALL = replace(SPECS["h200"], sms=2, clock_mhz=20.0)
LAUNCH = st.tuples(st.integers(1, 70), st.integers(1, 30))  # blocks, rounds


def recorded(launches: list[tuple[int, int]]) -> Trace:
    """At most four launches, each as an operation of its own and on a stream of its own."""

    async def program() -> Trace:
        arrays = [agt.zeros((256 * blocks,)).sync() for blocks, _ in launches]
        with agt.record() as trace:
            pairs = zip(arrays, launches, strict=True)
            spins = [SPIN(array, rounds, grid=n, block=256) for array, (n, rounds) in pairs]
            await asyncio.gather(*map(agt.spawn, spins))
        return trace

    with agt.using(SimDevice(machine=SimMachine(), spec=SMALL), agt.StreamPoolRoundRobin(4)):
        return asyncio.run(program())


def test_a_kernel_that_finds_the_device_full_has_no_bar_until_there_is_room() -> None:
    first, second = recorded([(64, 30), (64, 30)]).find("spin")
    assert first.waited_for_room == 0.0
    assert second.waited_for_room > first.duration / 2
    # Its first block gets a place when the last ones of the first are under way.
    assert first.start + first.duration / 2 < second.start < first.end


@given(st.lists(LAUNCH, min_size=1, max_size=4))
def test_bars_that_run_beside_each_other_have_room(launches: list[tuple[int, int]]) -> None:
    """Whoever has more blocks than there are places shares the device with nobody, but while it drains."""
    trace = recorded(launches)
    spans = trace.find("spin")
    starts = [span.start for span in spans]
    assert starts == sorted(starts), "places are handed out in the order of the calls"
    for span, (blocks, _) in zip(spans, launches, strict=True):
        if blocks > 16:
            beside = [s for s in spans if span.start < s.start < span.start + span.duration / 4]
            assert not beside


def test_waiting_for_room_is_in_no_sum() -> None:
    trace = recorded([(64, 30), (64, 30), (3, 10)])
    assert any(span.waited_for_room for span in trace)
    bare = Trace([replace(span, detail={}) for span in trace], trace.clock, trace.device)
    ours, theirs = trace.metrics(), bare.metrics()
    assert ours == theirs
    paths = [[(s.start, s.end) for s in found.critical_path] for found in (ours, theirs)]
    assert paths[0] == paths[1]
    first, second, _ = trace.find("spin")
    assert trace.overlap_between(first, second) == pytest.approx(first.end - second.start)


def test_it_is_told_apart() -> None:
    trace = recorded([(64, 30), (64, 30)])
    causes = {idle.cause for idle in agt.analyse(trace).streams if idle.span.waited_for_room}
    assert "occupancy" in causes
    assert ": = no room yet" in trace.table()
    assert ": = no room yet" not in recorded([(64, 30)]).table()


@pytest.mark.parametrize(("blocks", "waits"), [(64, True), (8, False)])
def test_a_fill_queues_for_a_place_as_kernels_do(blocks: int, waits: bool) -> None:
    """In recordings of an H200 a fill comes when the blocks of all kernels before it have places."""
    with agt.using(SimDevice(machine=SimMachine(), spec=SMALL)) as device:
        array, one, two = agt.zeros((256 * blocks,)).sync(), *(agt.create_stream() for _ in "12")
        with agt.record() as trace:
            SPIN(array, 30, grid=blocks, block=256).async_on(one)
            agt.zeros(16).async_on(two)
            device.synchronize()
    (spin,), (fill,) = trace.find("spin"), trace.find("memset")
    assert fill.start < spin.end
    assert (fill.waited_for_room > spin.duration / 4) is waits
    assert bool(fill.waited_for_room) is waits
