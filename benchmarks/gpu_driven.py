"""Loops and queues driven by the host, beside the same driven by the GPU: chapter 11 of the course, measured.

    python benchmarks/gpu_driven.py [--device sim]

Newton's square roots until none moves: a flag that is read back after each round, a graph with a `while`
node, or one launch whose threads decide. Small jobs: a launch each, a graph of these launches, or one kernel
that stays and takes them from a counter. Three sizes of each; "prepared" is the same with `op.prepare()`.
Ways are measured in turns, in one process; medians, in us. Values are compared with NumPy's. On the simulated
device the times are the model's.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from in_turns import device_us, in_turns, medians
from numpy.typing import NDArray

import asyncgpu_tutor as agt

SOURCE = Path(__file__).with_name("gpu_driven.cu").read_text("utf-8")
BLOCK, WORKERS, ROUNDS = 256, 64, 30
Way = Callable[[], NDArray[np.float32]]
Numbers = NDArray[np.float32]


def newton_ways(n: int) -> tuple[dict[str, Way], Numbers]:
    """The ways to n square roots, and the roots."""
    a = np.random.default_rng(0).uniform(1, 1000, n).astype(np.float32)
    stream = agt.create_stream()
    given = agt.h2d(agt.pin(a)).sync_on(stream).share()
    step, whole = agt.Kernel(SOURCE, "newton_step"), agt.Kernel(SOURCE, "newton")
    x, moved = agt.ones(n).sync_on(stream), agt.zeros(1, np.int32).sync_on(stream)
    flag = agt.pinned(1, np.int32)
    never, spare = (agt.zeros(1, np.int32).sync_on(stream) for _ in range(2))
    one, none, yes = (agt.pin(a) for a in (np.ones(n, np.float32), np.int32([0]), np.int32([1])))
    start = agt.memcpy(x.borrow(), one)

    def one_step(told: agt.DeviceArray) -> agt.DeviceOp[object]:
        return step(n, given, x.borrow().partition(BLOCK), told.borrow())

    def round_op() -> agt.DeviceOp[object]:
        asked = agt.memcpy(moved.borrow(), none)
        return agt.zip(asked, one_step(moved), agt.d2h(moved.borrow(), out=flag))

    def whole_op() -> agt.DeviceOp[object]:
        return whole(n, given, x.borrow().partition(BLOCK))

    prepared_round, prepared_whole = round_op().prepare(), whole_op().prepare()

    def loop(steps: int) -> agt.CudaGraph[object]:
        # A step more than is needed changes nothing, so that several may come between two questions.
        first = agt.zip(agt.memcpy(moved.borrow(), never.borrow()), one_step(moved))
        body = agt.zip(first, *[one_step(spare) for _ in range(steps - 1)])
        whole_loop = agt.zip(
            agt.memcpy(x.borrow(), one),
            agt.memcpy(moved.borrow(), yes),
            agt.CudaGraph.while_loop(moved.borrow(), body),
        )
        return whole_loop.graph_on(stream)

    looping, unrolled = loop(1), loop(4)

    def asked(run_round: Callable[[], object]) -> Numbers:
        start.sync_on(stream)
        flag[0] = 1
        while flag[0]:
            run_round()
        return agt.d2h(x.borrow()).sync_on(stream)

    def decided(make: Callable[[], agt.DeviceOp[object]]) -> Way:
        return lambda: (make().sync_on(stream), agt.d2h(x.borrow()).sync_on(stream))[1]

    return {
        "host-driven": lambda: asked(lambda: round_op().sync_on(stream)),
        "host-driven, prepared": lambda: asked(lambda: prepared_round.launch().sync_on(stream)),
        "GPU-driven": decided(whole_op),
        "GPU-driven, prepared": decided(prepared_whole.launch),
        "while": decided(looping.launch),
        "while, by four": decided(unrolled.launch),
    }, np.sqrt(a)


def queue_ways(jobs: int) -> tuple[dict[str, Way], Numbers]:
    """The ways to the results of so many small jobs, and the results."""
    lengths = np.random.default_rng(1).integers(10, 1000, jobs).astype(np.uint32)
    stream = agt.create_stream()
    given = agt.h2d(agt.pin(lengths)).sync_on(stream).share()
    one, worker = agt.Kernel(SOURCE, "one_job"), agt.Kernel(SOURCE, "worker")
    results = agt.zeros(jobs).sync_on(stream)
    counter, none = agt.zeros(1, np.uint32).sync_on(stream), agt.pin(np.zeros(1, np.uint32))

    def one_op(job: int) -> agt.DeviceOp[object]:
        return one(job, given, results.borrow(), grid=1, block=64)

    def stay_op() -> agt.DeviceOp[object]:
        stay = worker(jobs, given, counter.borrow(), results.borrow(), grid=WORKERS, block=64)
        return agt.zip(agt.memcpy(counter.borrow(), none), stay)

    each, stays = [one_op(job).prepare() for job in range(jobs)], stay_op().prepare()

    every = agt.zip(*[one_op(job) for job in range(jobs)]).graph_on(stream)

    def left(run: Callable[[], object]) -> Numbers:
        run()
        return agt.d2h(results.borrow()).sync_on(stream)

    right = np.array([(1 / np.arange(1, n + 1, dtype=float) ** 2).sum() for n in lengths])
    return {
        "host-driven": lambda: left(lambda: [one_op(i).async_on(stream) for i in range(jobs)]),
        "host-driven, prepared": lambda: left(lambda: [p.launch().async_on(stream) for p in each]),
        "GPU-driven": lambda: left(lambda: stay_op().async_on(stream)),
        "GPU-driven, prepared": lambda: left(lambda: stays.launch().async_on(stream)),
        "a graph of them": lambda: left(lambda: every.launch().async_on(stream)),
    }, right.astype(np.float32)


def measure(ways: dict[str, Way], right: Numbers, rounds: int) -> dict[str, float]:
    """The median time of each way, in us, measured in turns, after each has been seen to be right."""
    for name, way in ways.items():
        got = way()
        if not np.allclose(got, right, rtol=1e-5):
            raise AssertionError(f"{name}: the numbers are not NumPy's")
    return medians(in_turns(ways, rounds, warm=0, took=device_us))


def report(title: str, found: dict[str, float]) -> None:
    """Print one row."""
    ratio = found["host-driven"] / found["GPU-driven"]
    prepared = found["host-driven, prepared"] / found["GPU-driven, prepared"]
    cells = "  ".join(f"{us:9.0f}" for us in found.values())
    print(f"{title:28}{cells}   {ratio:6.1f}  {prepared:6.1f}")


def main(device: str, rounds: int) -> None:
    """Measure and print both tables."""
    with agt.using(device) as chosen:
        simulated = chosen.simulated
        rounds = 1 if simulated else rounds
        print(
            f"{chosen!r}; us, medians of {rounds}: host, prepared, GPU, prepared; a `while` node, by four"
        )
        print("steps, or a graph of all launches; host / GPU, both prepared")
        for n in (1024, 16_384, 65_536) if simulated else (1024, 65_536, 1_048_576):
            report(f"Newton, {n:,} numbers", measure(*newton_ways(n), rounds))
        for n in (16, 64, 256) if simulated else (64, 256, 1024):
            report(f"{n:,} jobs", measure(*queue_ways(n), rounds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="auto", choices=["auto", "cuda", "sim"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    main(given.device, given.rounds)
