"""What is recorded of chapters 11 to 13: kernels that decide, wait and ask; and a host that does so for them.

The kernels are those of the pages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.commands.profile.programs import Body, recorded
from asyncgpu_tutor.types import Stream

# ------------------------------------------------------------------ 11: who decides that it is over
newton_step = agt.Kernel(r"""
extern "C" __global__ void newton_step(unsigned int n, const float* a, float* x, int* moved)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float before = x[i];
        x[i] = 0.5f * (before + a[i] / before);
        if (fabsf(x[i] - before) > 1e-6f * x[i]) {
            *moved = 1;
        }
    }
}
""")

newton = agt.Kernel(r"""
extern "C" __global__ void newton(unsigned int n, const float* a, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float now = x[i], before;
        do {
            before = now;
            now = 0.5f * (before + a[i] / before);
        } while (fabsf(now - before) > 1e-6f * now);
        x[i] = now;
    }
}
""")


def _numbers() -> tuple[DeviceArray, Stream]:
    host = np.random.default_rng(0).uniform(1, 1000, 1024).astype(np.float32)
    return agt.h2d(agt.pin(host), "numbers").sync().share(), agt.create_stream()


@recorded(
    "11_newton_by_host", "1,024 square roots: after each round the host asks whether all is done"
)
async def newton_by_host() -> Body:
    """A launch, a copy of a flag and a wait, round after round."""
    numbers, stream = _numbers()
    n = numbers.size

    async def body() -> None:
        x, moved = agt.ones(n).sync_on(stream), [1]
        while moved[0]:
            step = agt.zeros(1, np.int32).and_then(
                lambda flag: newton_step(n, numbers, x.borrow().partition(256), flag)
            )
            moved = step.last().to_host().sync_on(stream)

    return body


@recorded("11_newton", "the same square roots by one launch, whose threads decide for themselves")
async def newton_by_gpu() -> Body:
    """Nobody asks."""
    numbers, stream = _numbers()

    async def body() -> None:
        x = agt.ones(numbers.size).sync_on(stream)
        newton(numbers.size, numbers, x.borrow().partition(256)).sync_on(stream)

    return body


JOBS = 64
JOB = r"""
// The sum of 1/k^2 for k up to length. All threads of the block take part, and thread 0 gets it.
__device__ float work(unsigned int length)
{
    __shared__ float part[64];
    float sum = 0.0f;
    for (unsigned int k = threadIdx.x + 1; k <= length; k += blockDim.x) {
        sum += 1.0f / ((float)k * (float)k);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    return part[0];
}
"""
one_job = agt.Kernel(
    JOB
    + r"""
extern "C" __global__ void one_job(unsigned int job, const unsigned int* lengths, float* results)
{
    float sum = work(lengths[job]);
    if (threadIdx.x == 0) results[job] = sum;
}
"""
)

worker = agt.Kernel(
    JOB
    + r"""
extern "C" __global__ void worker(
    unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results, int* who)
{
    __shared__ unsigned int job;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(next, 1);
        __syncthreads();
        unsigned int mine = job;
        if (mine >= jobs) return;
        float sum = work(lengths[mine]);
        if (threadIdx.x == 0) {
            results[mine] = sum;
            who[mine] = blockIdx.x;
        }
        __syncthreads();
    }
}
"""
)


def _jobs() -> tuple[DeviceArray, Stream]:
    lengths = np.random.default_rng(2).integers(10, 3000, JOBS).astype(np.uint32)
    return agt.h2d(agt.pin(lengths), "lengths").sync().share(), agt.create_stream()


@recorded("11_queue_by_launches", "64 small jobs, a launch for each")
async def queue_by_launches() -> Body:
    """It takes the host longer to describe a job than the device to do it."""
    lengths, stream = _jobs()

    async def body() -> None:
        results = agt.zeros(JOBS).sync_on(stream)
        for job in range(JOBS):
            one_job(job, lengths, results.borrow(), grid=1, block=64).async_on(stream)
        agt.d2h(results).sync_on(stream)

    return body


@recorded("11_queue", "the same 64 jobs by one launch: sixteen blocks take them from a counter")
async def queue_by_worker() -> Body:
    """A kernel that stays."""
    lengths, stream = _jobs()

    async def body() -> None:
        given = agt.zip(agt.zeros(1, np.uint32), agt.zeros(JOBS), agt.zeros(JOBS, np.int32))
        done = given.and_then(lambda g: worker(JOBS, lengths, *g, grid=16, block=64))
        done.and_then(lambda g: agt.zip(agt.d2h(g[2]), agt.d2h(g[3]))).sync_on(stream)

    return body


# ------------------------------------------------------------------ 12: one thread, three cups of tea
CLOCKED = r"""
#include "device_async.cuh"

struct Wait {                                 // READY so many ticks after its first poll
    int ticks;
    long long until;
    __device__ Poll poll()
    {
        if (until == 0) until = clock64() + 4000ll * ticks;
        return clock64() < until ? PENDING : READY;
    }
};

struct Tea {
    Wait boil, steep;
    int step;
    __device__ Poll poll()
    {
        if (step == 0) {
            if (boil.poll() == PENDING) return PENDING;
            step = 1;
        }
        return steep.poll();
    }
};

extern "C" __global__ void one_by_one(int n, const int* boil, const int* steep)
{
    for (int k = 0; k < n; k++) {
        Tea tea = {{boil[k], 0}, {steep[k], 0}, 0};
        block_on(tea);
    }
}

extern "C" __global__ void in_turns(int n, const int* boil, const int* steep)
{
    Tea teas[8];
    for (int k = 0; k < n; k++) teas[k] = {{boil[k], 0}, {steep[k], 0}, 0};
    run_all(teas, n);
}
"""


async def _tea(kernel: str) -> Body:
    brew, stream = agt.Kernel(CLOCKED, kernel), agt.create_stream()
    boil, steep = (agt.h2d(np.array(t, np.int32)).sync() for t in ((2, 5, 3), (4, 2, 1)))

    async def body() -> None:
        brew(3, boil.borrow(), steep.borrow(), grid=1, block=1).sync_on(stream)

    return body


recorded("12_tea_one_by_one", "three cups of tea: one thread waits for each in turn")(
    lambda: _tea("one_by_one")
)


recorded("12_tea", "the same cups by the same thread, with an executor: it polls all of them")(
    lambda: _tea("in_turns")
)


# ------------------------------------------------------------------ 13: a file in six pieces
PIECES, PIECE = 6, 256

shout = agt.Kernel(r"""
extern "C" __global__ void shout(unsigned int n, unsigned char* text)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && text[i] >= 'a' && text[i] <= 'z') text[i] -= 32;
}
""")

pipeline = agt.Kernel(r"""
#include "hostcall.cuh"
__global__ void pipeline(unsigned long long* mail, unsigned long long* stack, int pieces, int size)
{
    Hostcalls host = hostcalls(mail, stack);
    if (threadIdx.x > 0) return;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        int p = hostcall_begin(host);
        if (p < 0) return;
        char* bytes = hostcall_bytes(host, p);
        hostcall_ask(host, p, HOSTCALL_READ, 0, piece * size, size);
        bool ok = hostcall_wait(host, p);
        if (!ok) return;
        int n = (int)hostcall_answer(host, p);
        for (int i = 0; i < n; ++i)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 32;
        hostcall_ask(host, p, HOSTCALL_WRITE, 1, piece * size, n);
        ok = hostcall_wait(host, p);
        if (!ok) return;
        hostcall_end(host, p);
    }
}
""")


async def _files(work: Callable[[Path, Path], Any]) -> Body:
    """So many pieces of text are read, changed and written."""
    line = b"all is well, and the coffee is cold\n"
    text = (line * (PIECES * PIECE // len(line) + 1))[: PIECES * PIECE]

    async def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "log.txt", Path(folder) / "loud.txt"
            source.write_bytes(text)
            await work(source, target)
            assert target.read_bytes() == text.upper()

    return body


@recorded(
    "13_six_launches", "a file in six pieces: the host reads one, launches, waits, and writes it"
)
async def six_launches() -> Body:
    """To and fro."""
    stream = agt.create_stream()

    def loud(x: DeviceArray) -> DeviceOp[DeviceArray]:
        return shout(x.size, x.partition(64)).output()

    async def work(source: Path, target: Path) -> None:
        with source.open("rb") as read, target.open("wb") as write:
            while piece := read.read(PIECE):
                text = agt.pin(np.frombuffer(piece, np.uint8))
                write.write(agt.h2d(text).and_then(loud).to_host().sync_on(stream).tobytes())

    return await _files(work)


@recorded(
    "13_hostcalls", "the same file by one launch: its blocks ask the host to read and to write"
)
async def hostcalls() -> Body:
    """One kernel, which stays until the file is done."""

    async def work(source: Path, target: Path) -> None:
        async with agt.hostcalls(files=[source, target], nbytes=PIECE) as office:
            await office.run(pipeline(*office.arrays, PIECES, PIECE, grid=4, block=32))

    return await _files(work)
