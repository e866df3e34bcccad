"""Law 14: on the simulated device the same program gives the same trace, to the last digit."""

from hypothesis import given

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from tests.tools import python

from .programs import PROGRAMS, Program
from .shape import structure

PROGRAM = """
import asyncio
import asyncgpu_tutor as agt

def batch(i):
    n = 64
    out = agt.zeros((n,)).partition(16)
    x = agt.overlap(agt.full((n, n), i), agt.arange(n))
    op = x.and_then(lambda p: agt.matvec_naive(n, n, p[0], p[1], out))
    return op.last().unpartition().to_host().named(f"batch {i}")

async def main():
    with agt.record() as trace:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait(batch(i))) for i in range(5)]
            group.create_task(tick())
    print(trace.to_json())

async def wait(op):
    return await op

async def tick():
    for _ in range(20):
        await agt.sleep(3.0)
        agt.work(0.5, "tick")

agt.use("sim")
asyncio.run(main())
"""


def test_two_processes_agree_to_the_byte() -> None:
    one, other = (python("-c", PROGRAM, PYTHONHASHSEED=seed).stdout for seed in ("1", "271828"))
    assert one == other
    assert "matvec_naive" in one


@given(program=PROGRAMS)
def test_two_fresh_machines_agree(program: Program) -> None:
    def run() -> list[tuple[object, ...]]:
        with agt.using(SimDevice(machine=SimMachine())), agt.record() as trace:
            program.op().to_host().sync()
        return structure(trace)

    assert run() == run()
