"""Chapter 20b's rungs with one change at a time, and the answers of chapter 20's exercises, on one GPU.

    python benchmarks/ladder_apart.py

A rung often changes two things. Here each is changed by itself, by replacing a few lines of the rungs' text.
They take turns with cuBLAS at 1024 and 4096, and medians of 11 are printed. It needs a GPU and PyTorch.
Pages 20 and 20b tell what an H200 took.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch
from in_turns import in_turns, medians
from ladder import built, event_ms, off

from asyncgpu_course.ladder import Rung, rung

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from course_programs.programs import on_page

# The changes: what is replaced, and by what.
NEVER = [("if (t + DEEP < n) f", "if (t + DEEP < n && !c) f")]  # nothing more is loaded or copied
SMALL = [  # a block of `top` computes 128 x 128, and two of them share an SM
    ("BROAD = 256, DEEP = 16, THREADS = 256", "BROAD = 128, DEEP = 16, THREADS = 128"),
    ("(THREADS, 1)", "(THREADS, 2)"), ("warp / 4 * 64", "warp / 2 * 64"), ("warp % 4 * 64", "warp % 2 * 64"),
]  # fmt: skip
LATE = [  # `top` reads numbers when it needs them
    ("            read(of_a[(k + 1) % 2], of_b[(k + 1) % 2], stages[(t + last) % STAGES], (k + 1) % DEEP,",
     "            read(of_a[0], of_b[0], stages[t % STAGES], k,"),
    ("of_a[k % 2][i] * of_b[k % 2][j]", "of_a[0][i] * of_b[0][j]"),
    ("last = k == DEEP - 1;", "last = false;"),
    ("        int next = t",
     "        if (t) __pipeline_wait_prior(STAGES - 2), __syncthreads();\n        int next = t"),
]  # fmt: skip
TURNED = [  # `a` is given turned, so that four of its numbers are copied at once
    ("int i = row; i < TILE + row; i += THREADS / DEEP", "int i = row / 2; i < DEEP + row / 2; i += 4"),
    ("row = threadIdx.x / DEEP, at = threadIdx.x % DEEP;",
     "row = threadIdx.x / 16, at = threadIdx.x % 32 * 4;"),
    ("&to.a[at][i], &a[i * n + at], sizeof(float)", "&to.a[i][at], &a[i * n + at], sizeof(float4)"),
    ("a += blockIdx.y * TILE * n;", "a += blockIdx.y * TILE;"), ("a + t + DEEP,", "a + (t + DEEP) * n,"),
]  # fmt: skip


def but(name: str, *changes: tuple[str, str], **more: Any) -> Rung:
    """A rung with changes in its text."""
    text = rung(name).source
    for old, new in changes:
        if old not in text:
            raise SystemExit(f"{name} has no {old!r} any more")
        text = text.replace(old, new)
    return replace(rung(name), text=text, **more)


def variants() -> dict[str, Rung]:
    """Rungs as they are, and with their changes."""
    small = {"tile": (128, 128), "block": (128, 1), "shared": 33_280}
    four = on_page("20_the_ladder", "void own(", "of_a[i] * of_b[j]")
    return {
        **{name: rung(name) for name in ("registers", "larger", "copies", "top")},
        "own": replace(rung("own"), text=four),
        "larger, never loads": but("larger", *NEVER),
        "copies, never copies": but("copies", *NEVER),
        "copies, a turned before": but("copies", *TURNED),
        "top, 128 x 128": but("top", *SMALL, **small),
        "top, late": but("top", *LATE),
        "top, late, 128 x 128": but("top", *LATE, *SMALL, **small),
    }


def measure(n: int, kernels: dict[str, tuple[Rung, Any]]) -> None:
    """Print the time of each at one size."""
    a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
    out, theirs = (torch.empty(n, n, device="cuda") for _ in range(2))
    torch.mm(a, b, out=theirs)
    plain, turned, *rest = [cupy.from_dlpack(it) for it in (a, a.T.contiguous(), b, out)]
    often = 3 if n > 2048 else 20
    ways: dict[str, Callable[[], object]] = {"cuBLAS": lambda: torch.mm(a, b, out=theirs)}
    for name, (it, kernel) in kernels.items():
        args = np.int32(n), turned if "turned" in name else plain, *rest

        def run(it: Rung = it, kernel: Any = kernel, args: Any = args) -> None:
            kernel(it.grid(n), it.block, args, shared_mem=it.shared)

        run()
        right = off(out, theirs.double()) < 1e-5  # what nobody has written may be nan
        if right == ("never" in name):
            raise SystemExit(f"{name} at {n}: the product isn't as it should be")
        ways[name] = run
    many = {name: lambda run=run: [run() for _ in range(often)] for name, run in ways.items()}
    for name, took in medians(in_turns(many, 11, took=event_ms)).items():
        used = f", {kernels[name][1].num_regs} registers" if name in kernels else ""
        print(f"{n:5d} {name:24s} {took / often:8.4f} ms{used}", flush=True)


def by_four(n: int = 1 << 28) -> None:
    """Print how long a kernel takes that multiplies floats one by one, and four at a time."""
    one = 'extern "C" __global__ void four(int n, float by, const float* x, float* y) {'
    one += " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = by * x[i]; }"
    x, y = cupy.ones(n, np.float32), cupy.zeros(n, np.float32)
    for each, text in ((1, one), (4, on_page("20_the_ladder", "void four(", "make_float4"))):
        kernel = cupy.RawKernel(text, "four")
        args = np.int32(n), np.float32(3), x, y
        took = in_turns(
            {"": lambda k=kernel, a=args, e=each: k((n // e // 256,), (256,), a)}, 9, took=event_ms
        )
        print(f"{n} floats, {each} at a time: {medians(took)['']:.3f} ms", flush=True)


def main() -> None:
    """Measure all of them."""
    torch.backends.cuda.matmul.allow_tf32 = False
    kernels = {name: (it, built(it.source, it.name, it.shared)) for name, it in variants().items()}
    for n in (1024, 4096):
        measure(n, kernels)
    by_four()


if __name__ == "__main__":
    main()
