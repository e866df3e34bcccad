"""Correct kernels that call the host, and look as if they were not."""

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import (
    SIZE,
    asking,
    asks_once,
    by_letter,
    full,
    host_array,
    op,
    sound_on_the_host,
)

CASES = [
    asking()(r"""
// all at once
// hostcall() does all five steps
    unsigned long long got = 0;
    if (hostcall(host, 16, me, 0, 0, got)) out[me] = got;
"""),
    asking()(r"""
// step by step
// the answer is read before the packet is given back
    int p = hostcall_begin(host);
    if (p < 0) return;
    hostcall_ask(host, p, 16, me, 0, 0);
    if (!hostcall_wait(host, p)) return;
    out[me] = hostcall_answer(host, p);
    hostcall_end(host, p);
"""),
    asking()(r"""
// something else between asking and waiting
// the host answers meanwhile
    int p = hostcall_begin(host);
    if (p < 0) return;
    hostcall_ask(host, p, 16, me, 0, 0);
    unsigned sum = 0;
    for (int k = 0; k < 20; ++k) sum += k * k;
    if (!hostcall_wait(host, p)) return;
    out[me] = hostcall_answer(host, p) + sum;
    hostcall_end(host, p);
"""),
    asking(grid=8, packets=1)(r"""
// many blocks, one packet
// a block that finds no packet waits for one
    unsigned long long got = 0;
    if (hostcall(host, 16, me, 0, 0, got)) out[me] = got;
"""),
    asking()(r"""
// one packet used again and again
// between two requests the packet is the kernel's again
    int p = hostcall_begin(host);
    if (p < 0) return;
    for (int k = 0; k < 3; ++k) {
        hostcall_ask(host, p, 16, me + k, 0, 0);
        if (!hostcall_wait(host, p)) return;
        out[me] = hostcall_answer(host, p);
    }
    hostcall_end(host, p);
"""),
    asking(grid=1)(r"""
// two packets of one block at once
// there are enough packets, and each is asked once
    int p = hostcall_begin(host), q = hostcall_begin(host);
    if (p < 0 || q < 0) return;
    hostcall_ask(host, p, 16, me, 0, 0);
    hostcall_ask(host, q, 16, me + 10, 0, 0);
    if (!hostcall_wait(host, q) || !hostcall_wait(host, p)) return;
    out[me] = hostcall_answer(host, p) + hostcall_answer(host, q);
    hostcall_end(host, p);
    hostcall_end(host, q);
"""),
    asking(block=32)(r"""
// one lane asks for its block
// a barrier stands between the answer and those who read it
    __shared__ unsigned long long got;
    if (threadIdx.x == 0 && !hostcall(host, 16, me, 0, 0, got)) got = 0;
    __syncthreads();
    out[me * 32 + threadIdx.x] = got;
"""),
    asking(block=32, packets=1)(r"""
// packet given back behind a barrier
// all lanes have read before the packet goes back
    __shared__ int p;
    if (threadIdx.x == 0) {
        p = hostcall_begin(host);
        hostcall_ask(host, p, 16, me, 0, 0);
        hostcall_wait(host, p);
    }
    __syncthreads();
    out[me * 32 + threadIdx.x] = hostcall_answer(host, p);
    __syncthreads();
    if (threadIdx.x == 0) hostcall_end(host, p);
"""),
    asking(block=4)(r"""
// every lane asks for itself
// lanes of a warp may wait for packets that others of it hold: they go on independently
    unsigned long long got = 0;
    if (hostcall(host, 16, threadIdx.x, 0, 0, got)) out[me * 4 + threadIdx.x] = got;
"""),
    asking()(r"""
// a call that nobody waits for
// the packet stays the host's, which answers all the same
    int p = hostcall_begin(host);
    if (p >= 0) hostcall_ask(host, p, 16, me, 0, 0);
    out[me] = 1;
"""),
    asking()(r"""
// bytes that go along
// 256 bytes are a packet's own
    int p = hostcall_begin(host);
    if (p < 0) return;
    char* bytes = hostcall_bytes(host, p);
    for (int i = 0; i < 256; ++i) bytes[i] = 'x';
    hostcall_ask(host, p, 16, 256, 0, 0);
    if (!hostcall_wait(host, p)) return;
    out[me] = bytes[255];
    hostcall_end(host, p);
"""),
    asking()(r"""
// refused call that is looked at
// hostcall_done has no fence, and one stands behind it
    unsigned long long got = 7;
    int p = hostcall_begin(host);
    if (p < 0) return;
    hostcall_ask(host, p, 16, me, 0, 0);
    while (!hostcall_done(host, p)) __nanosleep(20);
    __threadfence_system();
    got = hostcall_answer(host, p);
    out[me] = got;
    hostcall_end(host, p);
"""),
    by_letter()(r"""
// letter, fence, flag
// a fence on each side, for the whole system
    mail[1] = 21;
    __threadfence_system();
    mail[0] = 1;
    while (mail[0] != 2) {}
    __threadfence_system();
    out[0] = mail[2];
"""),
    by_letter(mail="unsigned* mail")(r"""
// letter without volatile, flag with it
// what is handed over by fences may be plain
    mail[1] = 21;
    __threadfence_system();
    *(volatile unsigned*)mail = 1;
    while (*(volatile unsigned*)mail != 2) {}
    __threadfence_system();
    out[0] = mail[2];
"""),
    by_letter()(r"""
// question of two words
// until the flag is set the letter is the kernel's alone, and after the answer again
    mail[1] = 20;
    mail[1] = mail[1] + 1;
    __threadfence_system();
    mail[0] = 1;
    while (mail[0] != 2) {}
    __threadfence_system();
    out[0] = mail[2];
    mail[3] = out[0];
"""),
    by_letter(block=32)(r"""
// one thread of a block writes the letter
// the barrier tells the others what thread 0 has learnt
    if (threadIdx.x == 0) {
        mail[1] = 21;
        __threadfence_system();
        mail[0] = 1;
        while (mail[0] != 2) {}
        __threadfence_system();
    }
    __syncthreads();
    out[threadIdx.x] = mail[2];
"""),
]


@sound_on_the_host(why="the kernel is over, so what it wrote is there")
async def mapped_result_read_after_await():
    host = host_array()
    await op("fill", agt.mapped(host), 1.0)
    assert np.sum(host) == SIZE


@sound_on_the_host(why="other work goes on while a kernel asks")
async def launch_beside_a_kernel_that_asks():
    async with agt.hostcalls({16: lambda call: 1}) as host:
        asks = host.run(asks_once(host))
        x, y = full(1.0), full()
        await op("twice", y, x)
        await asks
