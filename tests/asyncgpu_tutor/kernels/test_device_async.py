"""The header of chapter 12: futures, executors, a warp that agrees, channels. On both devices."""

from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

HEAD = '#include "device_async.cuh"\nextern "C" __global__ void k('


def run(source: str, *arrays: Any, grid: int = 1, block: int = 1) -> list[int]:
    """What the kernel leaves in its last array."""
    given = [agt.h2d(np.asarray(array)) for array in arrays]
    op = agt.Kernel(HEAD + source)(*given, grid=grid, block=block)
    return op.last().to_host().sync().tolist()


@pytest.mark.parametrize(("a", "b"), [(2, 5), (5, 2), (3, 3), (0, 4)])
def test_join_ends_with_the_later_and_select_with_the_first(device: Device, a: int, b: int) -> None:
    source = """const int* left, int* out) {
        auto both = join(Timer{left[0]}, Timer{left[1]});
        out[0] = block_on(both);
        auto either = select(Timer{left[0]}, Timer{left[1]});
        out[1] = block_on(either);
        out[2] = either.winner;
        auto nested = join(select(Timer{left[0]}, Timer{left[1]}), Timer{9});
        out[3] = block_on(nested);
    }"""
    found = run(source, np.array([a, b], np.int32), np.zeros(4, np.int32))
    assert found == [max(a, b) + 1, min(a, b) + 1, int(b < a), 10]


@pytest.mark.parametrize("n", [1, 3, 32])
def test_run_all_polls_in_turns(device: Device, n: int) -> None:
    source = """int* out) {
        const int n = NUMBER;
        Timer timers[n];
        for (int k = 0; k < n; k++) timers[k].left = 3 * k % 7;
        out[0] = run_all(timers, n);
    }"""
    found = run(source.replace("NUMBER", str(n)), np.zeros(1, np.int32))
    assert found == [max(3 * k % 7 for k in range(n)) + 1]


@pytest.mark.parametrize("waits", ["block_on(slow)", "run_all(&slow, 1)", "warp_block_on(slow)"])
@pytest.mark.parametrize("rounds", [49, 50])
def test_an_executor_runs_out_of_patience(sim: Device, waits: str, rounds: int) -> None:
    source = f"int* out) {{ Timer slow = {{{rounds}}}; out[threadIdx.x] = {waits}; }}"
    patient = agt.Kernel("#define ASYNC_PATIENCE 50\n" + HEAD + source)
    op = patient(agt.zeros(32, np.int32), grid=1, block=32).last().to_host()
    if rounds < 50:
        assert op.sync().tolist() == [50] * 32
    else:
        with pytest.raises(agt.errors.DeviceError, match="trap"):
            op.sync()


def test_a_warp_learns_what_its_first_lane_has_got(device: Device) -> None:
    source = """unsigned int* cell, unsigned int* out) {
        Oneshot letter = {cell, cell + 1, 0};
        if (blockIdx.x == 1) {
            if (threadIdx.x == 0) letter.send(42);
            return;
        }
        int lane = threadIdx.x % 32;
        unsigned int rounds = 0;
        Poll state = PENDING;
        while (state == PENDING) {
            if (lane == 0) state = letter.poll();
            state = from_first_lane(state);
            if (++rounds > ASYNC_PATIENCE) __trap();
        }
        out[threadIdx.x] = from_first_lane(letter.value) + lane;
    }"""
    found = run(source, np.zeros(2, np.uint32), np.zeros(32, np.uint32), grid=2, block=32)
    assert found == [42 + lane for lane in range(32)]


@pytest.mark.parametrize("sent", [True, False])
def test_a_letter_or_a_limit(device: Device, sent: bool) -> None:
    source = """unsigned int* cell, unsigned int* out) {
        Oneshot letter = {cell, cell + 1, 0};
        if (blockIdx.x == 1) {
            letter.send(42);
            return;
        }
        auto first = within(letter, 1000000);
        block_on(first);
        out[0] = first.winner;
    }"""
    cell, out = np.zeros(2, np.uint32), np.zeros(1, np.uint32)
    assert run(source, cell, out, grid=1 + sent) == [int(not sent)]


def test_a_warp_is_ready_when_all_its_lanes_are(device: Device) -> None:
    source = """int* out) {
        Timer mine = {(int)threadIdx.x};
        Poll own = PENDING, all = PENDING;
        int rounds = 0;
        while (all == PENDING) {
            if (own == PENDING) own = mine.poll();
            all = warp_join(own);
            rounds++;
        }
        out[threadIdx.x] = rounds;
    }"""
    assert run(source, np.zeros(32, np.int32), block=32) == [32] * 32


@pytest.mark.parametrize("sent_before", [0, 2**32 - 2])
@pytest.mark.parametrize(("capacity", "senders"), [(2, 3), (3, 5), (16, 2)])
def test_channels_lose_nothing_and_keep_order(
    device: Device, capacity: int, senders: int, sent_before: int
) -> None:
    source = """unsigned long long* words, unsigned int capacity, unsigned int each, unsigned int* out) {
        Channel channel = {words, capacity, 0};
        if (blockIdx.x == 0) {
            for (unsigned int got = 0; got < each * (gridDim.x - 1); got++) {
                block_on(channel);
                out[got] = channel.value;
            }
            return;
        }
        unsigned int sent = 0, rounds = 0;
        while (sent < each) {
            Poll state = channel.poll_send(blockIdx.x * 100 + sent);
            if (state == READY) sent++;
            if (++rounds > ASYNC_PATIENCE) __trap();
        }
    }"""
    each = 6
    words = np.zeros(2 + 2 * capacity, np.uint64)
    words[:2] = sent_before
    for place in range(sent_before, sent_before + capacity):
        words[2 + place % capacity] = place
    out = agt.zeros(each * senders, np.uint32)
    op = agt.Kernel(HEAD + source)(agt.h2d(words), capacity, each, out, grid=senders + 1, block=1)
    got = op.last().to_host().sync().tolist()
    for sender in range(1, senders + 1):
        assert [x for x in got if x // 100 == sender] == [100 * sender + k for k in range(each)]
