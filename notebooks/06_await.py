"""The programs of 06_await.ipynb as a script: python 06_await.py [--device sim|cuda]."""

import argparse
import asyncio

import numpy as np

import asyncgpu_tutor as agt

N = 4_000_000
data = []


def batch(i):
    return agt.h2d(data[i], "x").to_host().named(f"batch {i}")


def each_with_sync():
    return [batch(i).sync() for i in range(4)]


async def all_together():
    return await asyncio.gather(*[batch(i) for i in range(4)])


async def heart():
    while True:
        agt.work(10, "beat")
        await agt.sleep(150)


async def main():
    await all_together()  # a first time, not recorded
    with agt.record() as with_sync:
        each_with_sync()
    beating = asyncio.create_task(heart())
    with agt.record() as together:
        results = await all_together()
    beating.cancel()

    assert [r[0] for r in results] == [1, 2, 3, 4]
    for name, trace in [("each with sync", with_sync), ("all together", together)]:
        m = trace.metrics()
        print(f"{name}: {m.makespan:.0f} µs ({trace.clock}), overlap {m.overlap:.0f} µs")
    assert together.metrics().overlap > 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    with agt.using(parser.parse_args().device):
        data.extend(agt.pin(np.full(N, i + 1, np.float32)) for i in range(4))
        asyncio.run(main())
