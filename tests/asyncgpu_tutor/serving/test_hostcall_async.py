"""Calls to the host as futures: joined, limited, dropped, asked for ahead."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

HEAD = """#include "hostcall_async.cuh"
__global__ void k(unsigned long long* mail, unsigned long long* stack, int n, int m,
                  unsigned long long* out) {
    Hostcalls host = hostcalls(mail, stack);
"""
ONE = "Ask one = ask(host, 16, 1, 0, 0); block_on(one); out[0] = one.answer; out[1] = one.error;"
JOINED = """auto both = join(ask(host, 16, 1, 0, 0), ask(host, 16, 2, 0, 0));
    block_on(both);
    out[0] = both.a.answer; out[1] = both.b.answer;"""
APART = """float x = 1.0f;
    Ask calls[2] = {ask(host, 16, 1, 0, 0), ask(host, 16, 2, 0, 0)};
    for (int c = 0; c < 2; ++c) {
        for (int i = 0; i < 2000; ++i) x = 0.5f * (x + 3.0f / x);
        calls[c].poll();
    }
    for (int c = 0; c < 2; ++c) block_on(calls[c]);
    for (int c = 0; c < 2; ++c) out[c] = calls[c].answer + (x < 0);"""
LIMITED = """auto quick = within(ask(host, 16, 1, 0, 0), 1000LL * n);
    block_on(quick);
    out[0] = quick.winner; out[1] = quick.a.answer;"""
# Block b asks n times, each with a limit, and drops what is late; then all take packets until none is left.
HASTY = """unsigned long long won = 0, wrong = 0;
    for (int k = 0; k < n; ++k) {
        auto quick = within(ask(host, 16, blockIdx.x, k, 0), 1000LL * m);
        block_on(quick);
        if (quick.winner == 0) { ++won; wrong += quick.a.answer != 100 * blockIdx.x + k; }
    }
    out[2 * blockIdx.x] = won; out[2 * blockIdx.x + 1] = wrong;"""
KEPT = """Ask one = {};
    for (int k = 0; k < 3; ++k, out[0] += one.answer) {
        one.drop();
        one = ask_keeping(host, 16, 1, 0, 0);
        block_on(one);
    }"""
# The host is done with the last packet only, which lies under another one that was left.
HIDDEN = """Ask calls[3] = {ask(host, 16, 1, 300, 0), ask(host, 16, 2, 300, 0), ask(host, 16, 3, 0, 0)};
    for (int c = 0; c < 3; ++c) calls[c].poll();
    Deadline limit = {clock64() + 100000}; block_on(limit);
    for (int c = 2; c >= 0; c -= 2) calls[c].drop();
    out[0] = hostcall_try_begin(host);"""
TAKE_ALL = "for (unsigned k = 0; k < host.packets; ++k) out[0] += hostcall_begin(host) >= 0;"
PIECES = """float sum = 0.0f;
    Ask next = ask_keeping(host, 16, 0, 0, 0);
    if (m) next.poll();
    for (int k = 0; k < n; k++) {
        Ask mine = next;
        block_on(mine);
        next = ask_keeping(host, 16, k + 1, 0, 0);
        if (m && k + 1 < n) next.poll();
        float x = 1.0f + mine.bytes()[0];
        for (int step = 0; step < 3000; step++) x = 0.5f * (x + 3.0f / x);
        sum += x + mine.bytes()[0];
        mine.end();
    }
    out[0] = (unsigned long long)(sum + 0.5f);"""


def kernel(body: str) -> agt.Kernel:
    return agt.Kernel(HEAD + body + "}")


async def run(body: str, handler: Any, n: int = 0, m: int = 0, grid: int = 1, **office: Any) -> Any:
    """The kernel's results, and how long it took."""
    device, out = agt.current_device(), agt.pin(np.zeros(2 * grid, np.uint64))
    async with agt.hostcalls({16: handler}, **office) as host:
        start = device.now()
        await host.run(kernel(body)(*host.arrays, n, m, agt.mapped(out), grid=grid, block=1))
        took = device.now() - start
    return out.tolist(), took


def after(us: float) -> Any:
    async def answer(call: Any) -> int:
        await agt.sleep(us + call.b)
        return 10 * call.a

    return answer


async def test_two_joined_calls_take_as_long_as_one(sim: Device) -> None:
    (one, took), (both, together) = await run(ONE, after(50)), await run(JOINED, after(50))
    assert one == [10, 0]
    assert both == [10, 20]
    assert together < 1.25 * took


@pytest.mark.parametrize("handler", [after(200), lambda call: 10 * call.a])
async def test_two_questions_between_waits_come_each_at_its_time(sim: Device, handler: Any) -> None:
    with agt.record() as trace:
        found, _ = await run(APART, handler)
    (k,) = trace.find("k")
    one, two = sorted(span.start for span in trace if span.kind == "work")
    assert found == [10, 20]
    assert k.start + 60 < one < two - 60 < k.start + 90


@pytest.mark.parametrize(("limit", "answers"), [(300, True), (20, False)])
async def test_a_limit_or_the_answer_comes_first(sim: Device, limit: int, answers: bool) -> None:
    found, took = await run(LIMITED, after(60), limit)
    assert (found == [0, 10] and took < 120) if answers else found[0] == 1


async def test_a_refusal_and_a_host_that_has_gone_are_errors_of_the_future(device: Device) -> None:
    def refuses(_: Any) -> int:
        raise agt.errors.CallRefusedError(13)

    assert (await run(ONE, refuses))[0] == [13, 13]

    def fails(_: Any) -> int:
        raise LookupError("gone")

    out = agt.pin(np.zeros(2, np.uint64))
    with pytest.raises(LookupError, match="gone"):
        async with agt.hostcalls({16: fails}) as host:
            await host.run(kernel(ONE)(*host.arrays, 0, 0, agt.mapped(out), grid=1, block=1))
    assert out.tolist() == [0, 2**64 - 1]


@pytest.mark.parametrize("taken", ["", "hostcall_begin(host);"])
@pytest.mark.parametrize("wait", [ONE, "hostcall_begin(host); hostcall_begin(host);"])
async def test_no_wait_for_the_host_is_endless(sim: Device, taken: str, wait: str) -> None:
    out = agt.pin(np.zeros(2, np.uint64))
    with pytest.raises(agt.errors.HostcallError, match="gave up"):
        async with agt.hostcalls({16: after(0)}, packets=1) as host:
            kernel(taken + wait)(*host.arrays, 0, 0, agt.mapped(out), grid=1, block=1).sync()


@pytest.mark.parametrize(("body", "number", "found"), [(KEPT, 1, 30), (HIDDEN, 3, 2)])
async def test_a_dropped_packet_is_back(sim: Device, body: str, number: int, found: int) -> None:
    assert (await run(body, after(1), packets=number))[0][0] == found


@pytest.mark.parametrize("seed", range(12))
async def test_a_losers_packet_is_not_lost_and_nothing_is_answered_twice(seed: int) -> None:
    """Any delays, limits, packets and blocks, on a hostile device."""
    draw = random.Random(seed)
    blocks, packets, times = draw.randint(1, 3), draw.randint(1, 4), draw.randint(2, 6)
    seen, delays = Counter[tuple[int, int]](), random.Random(seed)

    async def answer(call: Any) -> int:
        seen[call.a, call.b] += 1
        await agt.sleep(delays.choice([0, 0, 20, 100]))
        return 100 * call.a + call.b

    with agt.using(agt.SimDevice(adversary=seed)):
        out, all_packets = (agt.pin(np.zeros(size, np.uint64)) for size in (2 * blocks, 2))
        hasty, take = kernel(HASTY), kernel(TAKE_ALL)
        async with agt.hostcalls({16: answer}, packets=packets) as host:
            limit = draw.choice([5, 40, 200])
            args = (times, limit, agt.mapped(out))
            await host.run(hasty(*host.arrays, *args, grid=blocks, block=1))
            await host.run(take(*host.arrays, 0, 0, agt.mapped(all_packets), grid=1, block=1))
    won, wrong = out.reshape(blocks, 2).T.tolist()
    assert all_packets[0] == packets
    assert wrong == [0] * blocks
    assert set(seen.values()) <= {1}
    assert sum(won) <= len(seen) == host.answered


async def test_what_is_asked_for_ahead_hides_the_time_of_the_host(sim: Device) -> None:
    async def answer(call: Any) -> int:
        await agt.sleep(50)
        call.data[0] = call.a % 2
        return 0

    one, in_turn = await run(PIECES, answer, number := 16, 0)
    two, ahead = await run(PIECES, answer, number, 1)
    assert one == two
    assert in_turn - ahead > 0.8 * 50 * number


async def test_a_warp_asks_with_all_its_lanes(device: Device) -> None:
    asks = """Ask mine = ask(host, 16, threadIdx.x, 0, 0);
        warp_block_on(mine);
        out[threadIdx.x] = mine.answer;"""
    out = agt.pin(np.zeros(32, np.uint64))
    async with agt.hostcalls(batch_handlers={16: lambda a, b, c: 3 * a}, packets=7) as host:
        await host.run(kernel(asks)(*host.arrays, 0, 0, agt.mapped(out), grid=1, block=32))
    assert out.tolist() == [3 * lane for lane in range(32)]
