"""Contention on words of global memory, measured: one JSON line per pattern, in us a launch.

    PYTHONPATH=. python tools/fidelity/contention.py > tools/fidelity/recordings/contention.json

A launch is a node of a graph of equal nodes; each has words of its own, reset before the graph is launched.
`"sim": false` has inline PTX. The recording's `"held"` is of a first model of contention, which was dropped.
Of the present one, no constant was chosen by a kernel that `held` names, but some constants are those of the
first model, for which all times were in sight: in `cuda_c/cost/path.py` and `constants.toml` of simgpu.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("contention.cu").read_text("utf-8")

PTX = Path(__file__).with_name("contention_ptx.cu").read_text("utf-8")

WORDS = 1 << 18  # of a node


def held(name):
    """Tell whether a kernel is held out: about one in three, by its name, and chapter 11's flood."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return name == "many_blocks" or number % 3 == 0


def maze(size, seed=0):
    """Return chapter 11's maze."""
    rng, free, ends = np.random.default_rng(seed), np.zeros((size, size), np.uint8), [(0, 0)]
    free[0, 0] = 1
    while ends:
        k = -1 if rng.random() < 0.7 else rng.integers(len(ends))
        y, x = ends[k]
        near = [(y - 2, x), (y + 2, x), (y, x - 2), (y, x + 2)]
        near = [(v, u) for v, u in near if 0 <= v < size and 0 <= u < size and not free[v, u]]
        if near:
            v, u = near[rng.integers(len(near))]
            free[(y + v) // 2, (x + u) // 2] = free[v, u] = 1
            ends.append((v, u))
        else:
            ends.pop(k)
    return free


def cases():
    """(name, grid, block, n, k, m, held, first): `first` is what the node's first word holds."""

    def case(name, grid, block, n, k=1, m=1, held=False, first=0):
        numbers = {"n": n, "k": k, "m": m, "held": held, "first": first}
        return {"name": name, "grid": grid, "block": block, **numbers}

    for blocks in (1, 16, 132):
        yield case("nothing", blocks, 32, 0)
    yield case("nothing", 16, 256, 0)
    # One warp, one lane: the trip.
    for name in (
        "add_chain",
        "add_one",
        "cas_chain",
        "exch_chain",
        "min_chain",
        "float_chain",
        "look_add",
        "look_volatile",
        "look_relaxed",
        "look_acquire",
        "add_free",
        "own_chain",
    ):
        for n in (50, 200):
            yield case(name, 1, 32, n, held=n == 200 and name in ("cas_chain", "min_chain"))
    yield case("look_new", 1, 32, 50)
    yield case("look_new", 1, 32, 200, held=True)
    # Lanes of a warp.
    for lanes in (2, 8, 32):
        for name in (
            "add_chain",
            "add_one",
            "add_free",
            "cas_chain",
            "exch_chain",
            "look_add",
            "look_volatile",
            "float_chain",
        ):
            yield case(name, 1, 32, 100, m=lanes)
        yield case("own_chain", 1, 32, 100, m=lanes)
        yield case("own_chain", 1, 32, 100, k=32, m=lanes)
        yield case("own_free", 1, 32, 100, k=32, m=lanes)
    # Warps of a block, and blocks.
    for blocks, block in ((1, 128), (1, 1024), (4, 32), (16, 32), (64, 32), (132, 32), (132, 256)):
        for name in ("add_chain", "add_free", "look_add", "cas_chain"):
            yield case(name, blocks, block, 100, held=name == "cas_chain" and blocks == 64)
        yield case("look_volatile", blocks, block, 100)
        yield case("look_relaxed", blocks, block, 100)
    for blocks, block, lanes in ((132, 32, 32), (132, 256, 32), (16, 256, 32), (64, 64, 8)):
        for name in ("add_chain", "add_one", "add_free", "look_add"):
            yield case(name, blocks, block, 50, m=lanes, held=blocks == 64)
    for words in (4, 32, 256):
        for name in ("add_chain", "add_free"):
            yield case(name, 132, 256, 100, k=words)
            yield case(name, 132, 256, 20, k=words, m=32, held=words == 32)
    for step in (1, 8, 32):
        yield case("own_chain", 132, 32, 50, k=step, m=32)
        yield case("own_free", 132, 32, 50, k=step, m=32)
    # Hot for a part.
    for blocks in (1, 16, 132):
        for gap in (0, 100, 1000):
            yield case("spaced", blocks, 32, 20, m=gap)
    yield case("spaced", 132, 256, 20, m=100)
    yield case("spaced", 132, 256, 20, m=1000, held=True)
    yield case("spaced", 64, 128, 20, m=300, held=True)
    for blocks, block, n in ((16, 32, 50), (132, 32, 50), (132, 256, 50)):
        for gap in (0, 1000, 10000):
            yield case("burst", blocks, block, n, m=gap)
    yield case("burst", 64, 128, 40, m=3000, held=True)
    yield case("burst", 132, 512, 10, m=5000, held=True)
    for gap in (10, 100):
        yield case("stairs", 132, 32, 20, m=gap)
        yield case("stairs", 132, 256, 20, m=gap)
    yield case("stairs", 64, 128, 20, m=40, held=True)
    # Fences and loads.
    for block in (32, 256):
        for n in (20, 100):
            for kind in (0, 1, 2):
                yield case("fences", 16, block, n, m=kind)
            yield case("fence_load", 16, block, n, m=0)
            yield case("fence_load", 16, block, n, m=1)
    yield case("fences", 1, 32, 100, m=1)
    yield case("fences", 132, 32, 100, m=1)
    # Meetings.
    for blocks in (2, 8, 16, 64, 132):
        for name in ("meet_add", "meet_volatile", "meet_bare", "meet_acquire", "gates"):
            yield case(name, blocks, 256, 50, held=name in ("gates", "meet_volatile"))
        yield case("meet_nap", blocks, 256, 50, m=100)
    yield case("meet_add", 1, 256, 50)
    yield case("meet_add", 132, 32, 50)
    yield case("meet_add", 132, 1024, 50)
    yield case("meet_add", 16, 256, 410)
    yield case("meet_nap", 132, 256, 50, m=20)
    yield case("meet_nap", 132, 256, 50, m=1000)
    for gap in (100, 1000):
        yield case("meet_work", 16, 256, 50, m=gap, held=True)
        yield case("meet_work", 132, 256, 50, m=gap, held=True)
    # Tokens and locks.
    for blocks in (2, 16, 132):
        for name in ("token_add", "token_volatile", "token_relaxed"):
            yield case(name, blocks, 32, 200 // blocks + 1, held=name == "token_volatile")
        yield case("token_nap", blocks, 32, 200 // blocks + 1, m=100)
        yield case("tickets", blocks, 32, 100 // blocks + 1, held=True)
        yield case("lock", blocks, 32, 100 // blocks + 1, held=True)
    yield case("ping", 2, 32, 100, held=True)
    # Queues.
    for blocks, jobs in ((1, 64), (16, 64), (16, 256), (132, 1024)):
        for gap in (0, 100, 1000):
            yield case("queue", blocks, 64, 0, k=jobs, m=gap, held=blocks == 132 or gap == 100)
    for blocks in (16, 132):
        yield case("steal", blocks, 64, 0, k=4, m=1000, held=True)
        yield case("last", blocks, 256, 0, held=True)
    # Some lanes in one word.
    for hot in (0, 64, 255):
        yield case("histogram", 132, 256, 20, m=hot)
    yield case("histogram", 64, 128, 20, m=128, held=True)
    yield case("search", 20, 256, 1 << 20, k=14, held=True, first=0xFFFFFFFF)
    yield case("many_blocks", 16, 256, 64, held=True)
    yield case("many_blocks", 4, 1024, 64, held=True)
    yield case("many_blocks", 64, 64, 64, held=True)


NODES, WARM_UP, ROUNDS = 20, 2, 9
LIMIT = 54.0  # s


def main() -> None:
    """Measure all patterns."""
    import cupy

    begun = time.perf_counter()
    options = ("-std=c++17",)
    modules = [cupy.RawModule(code=text, options=options) for text in (SOURCE, PTX)]

    def kernel(name):
        ptx = name in (
            "look_relaxed",
            "look_acquire",
            "meet_acquire",
            "token_relaxed",
            "clock_rate",
        )
        return modules[ptx].get_function(name), ptx

    stream = cupy.cuda.Stream(non_blocking=True)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    facts = {
        "gpu": properties["name"].decode(),
        "cupy": cupy.__version__,
        "driver": cupy.cuda.runtime.driverGetVersion(),
    }
    with stream:
        state = cupy.zeros((NODES, WORDS), cupy.uint32)
        out = cupy.zeros(WORDS, cupy.uint32)
        looked = cupy.zeros(NODES, cupy.uint32)
        opened = cupy.asarray(maze(64, seed=1).ravel())
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        rate, _ = kernel("clock_rate")
        for n in (20_000_000, 20_000_000):  # warm up, and the clock under load
            rate((1,), (1,), (state, out, np.int32(n), np.int32(1), np.int32(1)))
        stream.synchronize()
        facts["clock_mhz"] = round(20_000_000 / int(out[0]) * 1e3, 1)
        print(json.dumps({"facts": facts}), flush=True)
        for case in cases():
            if time.perf_counter() - begun > LIMIT:
                print(json.dumps({"error": "out of time", **case}), flush=True)
                break
            name = case["name"]
            function, ptx = kernel(name)
            numbers = [np.int32(case[key]) for key in "nkm"]
            first = cupy.zeros((NODES, WORDS if name == "many_blocks" else 1 << 14), cupy.uint32)
            first[:, 0] = case["first"]
            if name == "many_blocks":
                first[:, :4096] = 0xFFFFFFFF
                first[:, 0] = 0
            size = first.shape[1]
            if name.startswith("own"):
                size = WORDS
                first = cupy.zeros((NODES, WORDS), cupy.uint32)
            try:

                def enqueue(node, name=name, numbers=numbers, function=function, case=case):
                    w = state[node]
                    args = [w, looked[node:] if name == "search" else out, *numbers]
                    if name == "many_blocks":
                        args = [np.int32(64), opened, w, w[4096:], w[8192:]]
                    function((case["grid"],), (case["block"],), tuple(args))

                state[:, :size] = first
                enqueue(0)
                stream.synchronize()
                stream.begin_capture()
                for node in range(NODES):
                    enqueue(node)
                graph = stream.end_capture()
                times = []
                for _ in range(WARM_UP + ROUNDS):
                    state[:, :size] = first
                    looked[:] = 0
                    before.record(stream)
                    graph.launch(stream)
                    after.record(stream)
                    after.synchronize()
                    times.append(cupy.cuda.get_elapsed_time(before, after) * 1e3 / NODES)
                times = sorted(times[WARM_UP:])
                row = {
                    **case,
                    "sim": not ptx,
                    "us": round(statistics.median(times), 4),
                    "low": round(times[0], 4),
                    "high": round(times[-1], 4),
                }
                if name == "many_blocks":
                    depth = state[0, :4096].view(cupy.int32).get()
                    row["steps"] = int(depth.max())
                if name == "search":
                    row["best"], row["looked"] = int(state[0, 0]), int(looked[0])
            except Exception as error:  # noqa: BLE001 - say so, and go on as far as it goes
                row = {**case, "error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(row), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - begun, 1)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
