"""Clocks that the results of single operations take, on a GPU and in the model: one warp that is alone.

On the GPU:  python tools/fidelity chains record FILE
Anywhere:    python tools/fidelity chains [FILE]       (compares)

`chains.txt` has them. Clocks of a turn are those by which 1,024 turns take longer than 512, by `clock64`.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
FILE = HERE / "recordings" / "chains.json"
TURNS = (512, 1024)
KERNEL = """extern "C" __global__ void {kernel}(
    {type}* x, const float* far, long long* clocks, {type} b, {type} c, int stride, int turns) {{
    {rooms}
    {type} a = x[threadIdx.x];
    long long begin = clock64();
    for (int t = 0; t < turns; ++t) {{ {body} }}
    clocks[threadIdx.x] = clock64() - begin;
    x[threadIdx.x] = a;
}}
"""
# What a statement may use besides.
ROOMS = {
    "table[": "__shared__ unsigned table[256]; "
    "for (int k = threadIdx.x; k < 256; k += 32) table[k] = k * 167u + 13u & 255u; __syncthreads();",
    "pair[": "__shared__ uint2 pair[128]; "
    "for (int k = threadIdx.x; k < 128; k += 32) pair[k] = make_uint2(k * 7u, 3u); __syncthreads();",
    "own[": "unsigned own[16]; for (int k = 0; k < 16; ++k) own[k] = (k * stride + 5u) & 15u;",
    "near[": "__shared__ float near[32]; near[threadIdx.x] = 0.0f; __syncthreads();",
}
KINDS = {"float": "f4", "sum": "f4", "unsigned": "u4", "unsigned long long": "u8", "double": "f8"}


class Chain(NamedTuple):
    """What is handed on from turn to turn, and a kernel that does."""

    kind: str
    kernel: str
    source: str

    @property
    def given(self) -> tuple[Any, Any, Any, Any]:
        """Where it begins, what it may load, and its constants."""
        kind = np.dtype(KINDS[self.kind])
        start, b, c = (1.25, 1.5, 0.75) if kind.kind == "f" else (12345, 97, 1103)
        loaded = np.full(1 << 18, 0.5, np.float32)
        return np.full(32, start, kind), loaded, kind.type(b), kind.type(c)


def chains() -> dict[str, Chain]:
    """By name."""
    found: dict[str, Chain] = {}
    for line in (HERE / "chains.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, body = (part.strip() for part in line.split(" | ", 1))
            kind, kernel = name.split(":")[0], f"chain{len(found)}"
            rooms = " ".join(text for word, text in ROOMS.items() if word in body)
            of = "float" if kind == "sum" else kind
            source = KERNEL.format(kernel=kernel, type=of, rooms=rooms, body=body)
            found[name] = Chain(kind, kernel, source)
    return found


def measured() -> dict[str, float]:
    """On the GPU."""
    import cupy

    from asyncgpu_tutor.devices.cuda.compile import compile_module

    cases, found = chains(), dict[str, float]()
    source = "".join(chain.source for chain in cases.values())
    module, names = compile_module(source, [chain.kernel for chain in cases.values()])
    for name, chain in cases.items():
        start, far, b, c = chain.given
        function, loaded = module.get_function(names[chain.kernel]), cupy.asarray(far)
        took: list[float] = []
        for turns in TURNS:
            runs: list[int] = []
            for _ in range(9):
                x, clocks = cupy.asarray(start), cupy.zeros(32, np.int64)
                function((1,), (32,), (x, loaded, clocks, b, c, np.int32(32), np.int32(turns)))
                runs.append(int(clocks.get()[0]))
            took.append(statistics.median(runs))
        found[name] = round((took[1] - took[0]) / (TURNS[1] - TURNS[0]), 2)
    return found


def modelled() -> dict[str, float]:
    """By the model."""
    from simgpu.cuda_c import GlobalMemory, compile_source
    from simgpu.spec import H200
    from simgpu.times import kernel_time

    found = dict[str, float]()
    for name, chain in chains().items():
        took: list[float] = []
        program = compile_source(chain.source)
        for turns in TURNS:
            start, far, b, c = chain.given
            memories: list[Any] = []
            for value in (start, far, np.zeros(32, np.int64)):
                memory = GlobalMemory(value.nbytes, "argument")
                memory.data[:] = value.view(np.uint8)
                memory.mark_written()
                memories.append(memory)
            args = [*memories, b, c, np.int32(32), np.int32(turns)]
            counts = program.begin(chain.kernel, (1, 1, 1), (32, 1, 1), args).finish().counts
            took.append(kernel_time(H200, counts, 32, 0).bounds["latency"] * H200.clock_mhz)
        found[name] = round((took[1] - took[0]) / (TURNS[1] - TURNS[0]), 2)
    return found


def main() -> None:
    """Measure on a GPU, or compare the model with what was measured."""
    if "record" in sys.argv:
        Path(sys.argv[-1]).write_text(json.dumps(measured(), indent=1) + "\n")
        return
    real = json.loads((Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).read_text())
    for name, clocks in modelled().items():
        known = real.get(name, float("nan"))
        print(f"{name:36} {known:8.1f} {clocks:8.1f} {clocks / known - 1:+6.0%}")
