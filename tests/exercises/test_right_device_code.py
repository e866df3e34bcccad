"""Right answers to the exercises of chapters 11 to 13 in other spellings than the solution's."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import check


async def _by_a_part_of_the_mail(mail: Any, rounds: int) -> None:
    box = mail[2:]  # what is written through it, the check does not see
    for _ in range(rounds):
        while mail[0] != 1:
            await agt.sleep(1)
        box[0] = mail[1] + mail[1]
        mail[0] += 1


async def _for_good(mail: Any, rounds: int) -> None:
    while True:
        if mail[0] == 1:
            mail[2] = 0
            mail[2] += 2 * mail[1]
            mail[0] = 2
            rounds -= 1
            if rounds == 0:
                return
        await agt.sleep(2)


MEET_ALL_FENCE = r"""
__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __threadfence();  // each thread for itself
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        unsigned int looks = 0;
        while (atomicAdd(&arrived[0], 0u) < goal) {
            if (++looks > 10000000) __trap();
        }
    }
    __syncthreads();
    __threadfence_system ( );
}
"""
MEET_IN_PARTS = r"""
__device__ bool all_here(unsigned int* arrived, unsigned int goal)
{
    bool here = atomicAdd(arrived, 0) >= goal;
    __threadfence();
    return here;
}

__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (!all_here(arrived, goal)) { }
    }
    __syncthreads();
}
"""
ONESHOT_OTHERWISE = r"""
__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (atomicCAS(cell, 1u, 1u)) {  /* cell[1] is full */
        __threadfence();
        x = *(cell + 1);
        return READY;
    }
    return PENDING;
}

__device__ void send(unsigned int* cell, unsigned int x)
{
    *(cell + 1) = x; __threadfence(); atomicAdd(cell, 1u);
}
"""
ONESHOT_IN_PARTS = r"""
__device__ bool raised(unsigned int* flag)
{
    bool up = atomicAdd(flag, 0u) != 0;
    __threadfence();
    return up;
}

__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[1] = x;
    __threadfence();
    atomicExch(&cell[0], 1u);
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (!raised(cell)) return PENDING;
    x = cell[1];
    return READY;
}
"""
ASK_OTHERWISE = r"""
__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail [1]=100+k; __threadfence_system ();
        mail[ 0 ]=1;
        int turns = 0;
        do {
            __nanosleep(100);
            if (++turns > 1000000) return;
        } while (mail[0]!=2);  // mail[2] comes next
        __threadfence_system();
        unsigned answer = mail[2];
        out[k] = answer;
    }
}
"""
ASK_WITH_OTHER_NAMES = r"""
__global__ void ask(volatile unsigned* box, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        box[1] = 100 + k;
        __threadfence_system();
        *box = 1;
        int turns = 0;
        while (*box != 2) {
            if (++turns > 1000000) return;
            __nanosleep(100);
        }
        __threadfence_system();
        out[k] = box[2];
    }
}
"""


ASK_IN_PARTS = r"""
__device__ bool answered(volatile unsigned* mail)
{
    int turns = 0;
    while (mail[0] != 2) {
        if (++turns > 1000000) return false;
        __nanosleep(100);
    }
    __threadfence_system();
    return true;
}

__global__ void ask(volatile unsigned* mail, int n, unsigned* out)
{
    for (int k = 0; k < n; ++k) {
        mail[1] = 100 + k;
        __threadfence_system();
        mail[0] = 1;
        if (!answered(mail)) return;
        out[k] = mail[2];
    }
}
"""


class _TagOfPops:
    """A stack whose top counts who takes. To come back, a packet has to be taken, so that is enough."""

    start = (0, 0)
    pushed = 0

    @staticmethod
    def pop() -> Generator[Any, Any, Any]:
        while True:
            top = yield "load", "top"
            if top[0] is None:
                return None
            below = yield "load", ("next", top[0])
            if (yield "cas", "top", top, (below, top[1] + 1)):
                return top[0]

    @classmethod
    def push(cls, packet: Any) -> Generator[Any, Any, Any]:
        while True:
            top = yield "load", "top"
            yield "store", ("next", packet), top[0]
            if (yield "cas", "top", top, (packet, top[1] + cls.pushed)):
                return


class _TagOfPushes(_TagOfPops):
    """A stack whose top counts who puts back. To come back, a packet has to be put back."""

    pushed = 1

    @staticmethod
    def pop() -> Generator[Any, Any, Any]:
        while True:
            top = yield "load", "top"
            if top[0] is None:
                return None
            below = yield "load", ("next", top[0])
            if (yield "cas", "top", top, (below, top[1])):
                return top[0]


# To PTX a volatile access is a relaxed one at system scope, so with fences it passes on a message.
ONESHOT_VOLATILE = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    volatile unsigned int* flag = cell;
    cell[1] = x;
    __threadfence();
    flag[0] = 1;
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    volatile unsigned int* flag = cell;
    if (flag[0] == 0) return PENDING;
    __threadfence();
    x = cell[1];
    return READY;
}
"""

RIGHT: list[tuple[str, Any]] = [
    ("12-oneshot", ONESHOT_VOLATILE),
    ("13-answer", _by_a_part_of_the_mail),
    ("13-answer", _for_good),
    ("11-meet", MEET_ALL_FENCE),
    ("11-meet", MEET_IN_PARTS),
    ("12-oneshot", ONESHOT_OTHERWISE),
    ("12-oneshot", ONESHOT_IN_PARTS),
    ("13-ask", ASK_OTHERWISE),
    ("13-ask", ASK_WITH_OTHER_NAMES),
    ("13-ask", ASK_IN_PARTS),
    ("12-oneshot", ONESHOT_IN_PARTS.replace("raised(cell)", "raised(&cell[0])")),
    ("13-stack", _TagOfPops),
    ("13-stack", _TagOfPushes),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_it_passes(name: str, answer: Any) -> None:
    outcome = check(name, answer)

    assert outcome.accepted, outcome.cause
