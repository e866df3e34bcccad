"""Who has a packet: what the simulated device says of a kernel that takes no turns with the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import RaceError

BEGIN = "int p = hostcall_begin(host); "
ASK = BEGIN + "hostcall_ask(host, p, 16, me, 0, 0); "
WAIT = "hostcall_wait(host, p); "
END = "hostcall_end(host, p); "
LANES = (
    "__shared__ int p; if (i == 0) { " + ASK.replace("int p", "p") + WAIT + "} __syncthreads(); "
)
READ = "out[32 * me + i] = hostcall_answer(host, p); "


async def run(body: str, **options: Any) -> list[int]:
    source = f"""#include "hostcall.cuh"
    __global__ void ask(unsigned long long* mail, unsigned long long* stack, unsigned long long* out) {{
        Hostcalls host = hostcalls(mail, stack);
        int me = blockIdx.x, i = threadIdx.x;
        {body}
    }}"""
    out = agt.zeros(64, np.uint64).sync()
    async with agt.hostcalls({16: lambda call: call.a + 5}, packets=1) as host:
        await host.run(agt.Kernel(source)(*host.arrays, out.borrow(), grid=2, **options))
    return agt.d2h(out).sync()[::32].tolist()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (ASK + READ + END, "reads the answer of a packet that the host has"),
        (ASK + END, "gives back a packet that the host has"),
        (ASK + "hostcall_ask(host, p, 16, 1, 0, 0); " + WAIT + READ + END, "asks by a packet"),
        (ASK + WAIT + END + READ, "reads"),
    ],
)
async def test_a_step_out_of_turn(sim: Device, body: str, told: str) -> None:
    with pytest.raises(RaceError, match=told):
        await run(body, block=1)


async def test_all_lanes_have_read_before_one_gives_it_back(sim: Device) -> None:
    last = "if (i == 0) " + END
    assert await run(LANES + READ + "__syncthreads(); " + last, block=32) == [5, 6]
    with pytest.raises(RaceError, match=r"which thread \(31, 0, 0\) reads"):
        await run(LANES + READ + last, block=32)
