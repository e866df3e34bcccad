"""Bugs of kernels that call the host: packets, answers, and flags in memory that both see."""

import asyncio

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import (
    asking,
    asks_once,
    bug_on_the_host,
    by_letter,
    full,
    host_array,
    op,
)

CASES = [
    asking(finds="Race Hostcall: host|answer|packet")(r"""
// answer read without waiting for it
// the host has not answered yet
    int p = hostcall_begin(host);
    hostcall_ask(host, p, 16, me, 0, 0);
    out[me] = hostcall_answer(host, p);  // <- bug
    hostcall_end(host, p);  // <- bug
"""),
    asking(packets=1, finds="Race: host|answer|packet|mail")(r"""
// packet given back before its answer is read
// the next owner's answer may be in it by then
    int p = hostcall_begin(host);
    hostcall_ask(host, p, 16, me, 0, 0);
    if (!hostcall_wait(host, p)) return;
    hostcall_end(host, p);  // <- bug
    out[me] = hostcall_answer(host, p);  // <- bug
"""),
    asking(packets=1, finds="Race Hostcall: host|packet|mail")(r"""
// packet given back while the host still has it
// another block may write its request over this one
    int p = hostcall_begin(host);
    hostcall_ask(host, p, 16, me, 0, 0);  // <- bug
    hostcall_end(host, p);  // <- bug
    out[me] = 1;
"""),
    asking(finds="Deadlock Hostcall RunawayKernel")(r"""
// packets that are never given back
// after as many calls as there are packets nobody gets one
    for (int k = 0; k < 3; ++k) {
        int p = hostcall_begin(host);  // <- bug
        if (p < 0) return;
        hostcall_ask(host, p, 16, me, 0, 0);
        if (!hostcall_wait(host, p)) return;
        out[me] = hostcall_answer(host, p);
    }
"""),
    asking(finds="Race Hostcall: host|packet|mail")(r"""
// packet asked twice without waiting
// the packet is the host's after the first request
    int p = hostcall_begin(host);
    hostcall_ask(host, p, 16, me, 0, 0);  // <- bug
    hostcall_ask(host, p, 16, me + 1, 0, 0);  // <- bug
    if (!hostcall_wait(host, p)) return;
    out[me] = hostcall_answer(host, p);
    hostcall_end(host, p);
"""),
    asking(block=32, finds="Early: p")(r"""
// one lane asks, and the others read without a barrier
// nothing holds the other lanes back until the answer is there
    __shared__ int p;
    if (threadIdx.x == 0) {
        p = hostcall_begin(host);  // <- bug
        hostcall_ask(host, p, 16, me, 0, 0);
        hostcall_wait(host, p);
    }
    out[me * 32 + threadIdx.x] = hostcall_answer(host, p);  // <- bug
    __syncthreads();
    if (threadIdx.x == 0) hostcall_end(host, p);
"""),
    asking(block=32, packets=1, finds="Race: mail")(r"""
// packet given back while other lanes read the answer
// a block that gets the packet next has it answered while a lane here still reads
    __shared__ int p;
    if (threadIdx.x == 0) {
        p = hostcall_begin(host);
        hostcall_ask(host, p, 16, me, 0, 0);
        hostcall_wait(host, p);
    }
    __syncthreads();
    out[me * 32 + threadIdx.x] = hostcall_answer(host, p);  // <- bug
    if (threadIdx.x == 0) hostcall_end(host, p);  // <- bug
"""),
    asking(block=32, finds="Early: got")(r"""
// answer shared with the block without a barrier
// lane 0 waits for the host, and nobody waits for lane 0
    __shared__ unsigned long long got;
    if (threadIdx.x == 0) hostcall(host, 16, me, 0, 0, got);  // <- bug
    out[me * 32 + threadIdx.x] = got;  // <- bug
"""),
    asking(block=4, finds="Race: out")(r"""
// all lanes write one answer
// each lane got an answer of its own, and one place for all of them
    unsigned long long got = 0;
    if (!hostcall(host, 16, threadIdx.x, 0, 0, got)) return;
    out[me] = got;  // <- bug
"""),
    asking(finds="OutOfBounds Race: mail")(r"""
// packet's bytes overrun
// a packet has 256 bytes
    int p = hostcall_begin(host);
    if (p < 0) return;
    char* bytes = hostcall_bytes(host, p);
    for (int i = 0; i < 4000; ++i) bytes[i] = 'x';  // <- bug
    hostcall_end(host, p);
"""),
    asking(finds="Usage Hostcall: 17")(r"""
// service that nobody offers
// there is a handler for 16 only
    unsigned long long got = 0;
    if (hostcall(host, 17, me, 0, 0, got)) out[me] = got;  // <- bug
"""),
    asking(finds="UninitialisedRead Usage: got|17")(r"""
// uninitialised answer used when the call was refused
// whether hostcall returned true was not asked
    unsigned long long got;
    hostcall(host, 17, me, 0, 0, got);
    out[me] = got;  // <- bug
"""),
    asking(packets=1, grid=1, finds="Deadlock Hostcall OutOfBounds")(r"""
// begin without a look at what it returns
// there is one packet, and this block wants two of them
    int p = hostcall_begin(host);
    int q = hostcall_begin(host);  // <- bug
    hostcall_ask(host, q, 16, me, 0, 0);  // <- bug
    hostcall_wait(host, q);
    out[me] = hostcall_answer(host, q);
    hostcall_end(host, q);
    hostcall_end(host, p);
"""),
    by_letter(finds="Race: mail")(r"""
// flag before the letter
// the host may look into the letter before anything is in it
    mail[0] = 1;  // <- bug
    mail[1] = 21;  // <- bug
    while (mail[0] != 2) {}
    __threadfence_system();
    out[0] = mail[2];
"""),
    by_letter(finds="Race: mail")(r"""
// letter and flag without a fence
// the host may see the flag before the letter
    mail[1] = 21;  // <- bug
    mail[0] = 1;  // <- bug
    while (mail[0] != 2) {}
    __threadfence_system();
    out[0] = mail[2];
"""),
    by_letter(finds="Race: mail")(r"""
// answer without a fence behind the flag
// the answer may be read before the flag
    mail[1] = 21;
    __threadfence_system();
    mail[0] = 1;
    while (mail[0] != 2) {}  // <- bug
    out[0] = mail[2];  // <- bug
"""),
    by_letter(finds="Race: mail")(r"""
// fence for the device before a flag for the host
// the host is not in the fence's scope
    mail[1] = 21;  // <- bug
    __threadfence();  // <- bug
    mail[0] = 1;  // <- bug
    while (mail[0] != 2) {}
    __threadfence_system();
    out[0] = mail[2];
"""),
    by_letter(mail="unsigned* mail", finds="Race Deadlock RunawayKernel")(r"""
// mail without volatile
// a compiler may read the flag once and never again
    mail[1] = 21;
    __threadfence_system();
    mail[0] = 1;
    while (mail[0] != 2) {}  // <- bug
    out[0] = mail[2];
"""),
    by_letter(finds="Early: mail")(r"""
// answer read without looking at the flag
// nothing waits for the host
    mail[1] = 21;
    __threadfence_system();
    mail[0] = 1;
    out[0] = mail[2];  // <- bug
"""),
    by_letter(grid=2, finds="Race: mail")(r"""
// two blocks use one letter
// the second block writes over the question of the first one
    mail[1] = 21 + blockIdx.x;  // <- bug
    __threadfence_system();
    mail[0] = 1;  // <- bug
    while (mail[0] != 2) {}
    __threadfence_system();
    out[blockIdx.x] = mail[2];
"""),
]


@bug_on_the_host(finds="Deadlock Hostcall: host", why="the host is blocked, and can't answer")
async def host_that_waits_for_the_kernel_that_waits_for_it():
    async with agt.hostcalls({16: lambda call: 1}) as host:
        asks_once(host).sync()  # <- bug


@bug_on_the_host(finds="Usage: open", why="the host is there within the block only")
async def arrays_of_a_host_that_is_gone():
    async with agt.hostcalls({16: lambda call: 1}) as host:
        pass
    op("twice", full(), *host.arrays[:1])  # <- bug


@bug_on_the_host(finds="ZeroDivision: zero", why="a handler failed, and whoever awaits is told")
async def handler_that_fails():
    async with agt.hostcalls({16: lambda call: 1 // call.a}) as host:
        await host.run(asks_once(host))  # <- bug


@bug_on_the_host(
    finds="HostBuffer NotReady: host", why="the kernel may not have written its letter yet"
)
async def mapped_result_read_before_the_kernel_is_done():
    host = host_array()
    running = asyncio.ensure_future(op("fill", agt.mapped(host), 1.0).into_future())
    print(np.sum(host))  # <- bug
    await running
