"""The program of 08_profiling.ipynb as a script, for a profiler: python 08_profiling.py [--device sim|cuda].

    export ASYNCGPU_NVTX=1
    nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none -o report python 08_profiling.py
    nsys export --type=sqlite -o report.sqlite report.nsys-rep

Then `agt.Trace.from_nsys("report.sqlite", within="record")` has what is recorded here.
"""

import argparse
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.traces import nvtx as ranges

N = 1_500_000
data = []


def chunk(i):
    def positive(array):
        blocks = array.partition(256)
        return agt.relu(N, blocks, blocks).output()

    return agt.h2d(data[i], "chunk").and_then(positive).to_host().named(f"chunk {i}")


def report(i):
    agt.work(30, f"report {i}")  # stands for some work of Python's


async def first_version():
    results = []
    for i in range(4):
        results.append(chunk(i).sync())
        report(i)
    return results


async def second_version():
    async def one(i):
        with ranges.across("request"):
            result = await chunk(i)
            with ranges.span("report"):
                report(i)
            return result

    return await asyncio.gather(*[one(i) for i in range(4)])


async def profiled(program):
    await program()  # not recorded: the first time is special
    traces = []
    for _ in range(1 if agt.current_device().simulated else 5):
        with agt.record() as trace:
            await program()
        traces.append(trace)
    return min(traces, key=lambda trace: trace.metrics().makespan)


async def main():
    for program in (first_version, second_version):
        trace = await profiled(program)
        m = trace.metrics()
        print(
            f"{program.__name__}: {m.makespan:.0f} µs ({trace.clock}), overlap {m.overlap:.0f} µs"
        )
        for finding in agt.diagnose(trace):
            print(f"  {finding}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    with agt.using(parser.parse_args().device):
        data.extend(agt.pin(np.full(N, i + 1, np.float32)) for i in range(4))
        asyncio.run(main())
