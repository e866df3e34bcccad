"""Kernels that call the host: right ones that look wrong; packets, answers and flags that are not."""

import asyncio

import numpy as np

import asyncgpu_tutor as agt
from benchmarks.hazards.host import SIZE, asking, asks_once, bug, by_letter, full, locked, op, sound

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


@sound("the kernel is over, so what it wrote is there")
async def mapped_result_read_after_await():
    host = locked()
    await op("fill", agt.mapped(host), 1.0)
    assert np.sum(host) == SIZE


@sound("other work goes on while a kernel asks")
async def launch_beside_a_kernel_that_asks():
    async with agt.hostcalls({16: lambda call: 1}) as host:
        asks = host.run(asks_once(host))
        x, y = full(1.0), full()
        await op("twice", y, x)
        await asks


@bug("Deadlock Hostcall: host", "the host is blocked, and can't answer")
async def host_that_waits_for_the_kernel_that_waits_for_it():
    async with agt.hostcalls({16: lambda call: 1}) as host:
        asks_once(host).sync()  # <- bug


@bug("Usage: open", "the host is there within the block only")
async def arrays_of_a_host_that_is_gone():
    async with agt.hostcalls({16: lambda call: 1}) as host:
        pass
    op("twice", full(), *host.arrays[:1])  # <- bug


@bug("ZeroDivision: zero", "a handler failed, and whoever awaits is told")
async def handler_that_fails():
    async with agt.hostcalls({16: lambda call: 1 // call.a}) as host:
        await host.run(asks_once(host))  # <- bug


@bug("HostBuffer NotReady: host", "the kernel may not have written its letter yet")
async def mapped_result_read_before_the_kernel_is_done():
    host = locked()
    running = asyncio.ensure_future(op("fill", agt.mapped(host), 1.0).into_future())
    print(np.sum(host))  # <- bug
    await running
