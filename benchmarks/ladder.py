"""Chapter 20's matrix products beside cuBLAS, and its attention beside PyTorch's, on one GPU.

    python benchmarks/ladder.py --json ladder.json
    python benchmarks/ladder.py --model --sizes 256,512,1024
    python benchmarks/ladder.py --record FOLDER --sizes 1024,4096

Each rung's values are checked against float64 before it's timed. Then it and cuBLAS (`torch.mm`, TF32 off)
take turns, and a sample is as many launches as fill 3 ms, between two events. What's printed is the ratio of
the medians. Attention (heads of 64 and 128, 4,096 long, 4 x 16 of them) stands beside PyTorch's
memory-efficient kernel in the same way. It needs a GPU and PyTorch.

With `--model` it needs neither: it prints what the simulated H200 takes for each rung beside what the H200
took (recorded for 256 to 8192), and what the interpreter costs: minutes at 1024, and more above.

With `--record` each size gives one trace: the ten rungs one after the other, and cuBLAS behind them. Those of
chapter 20b are in asyncgpu_tutor/traces/recordings/ladder.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from in_turns import in_turns, medians

import asyncgpu_tutor as agt
from asyncgpu_course.ladder import RUNGS, Rung, attention_launch, attention_source, climb, ms

LENGTH, HEADS = 4096, (4, 16)
INCLUDES = ("-std=c++17", "-I/usr/local/cuda/include", "-I/usr/local/cuda/include/cccl")


def built(source: str, name: str, shared: int) -> Any:
    """A kernel that may ask for so many bytes of shared memory."""
    import cupy

    kernel = cupy.RawKernel(source, name, options=INCLUDES)
    if shared:
        kernel.max_dynamic_shared_size_bytes = shared
        kernel.preferred_shared_memory_carveout = 100
    return kernel


def event_ms(run: Callable[[], object]) -> float:
    """Milliseconds between two events around what is launched."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def beside(
    ours: Callable[[], Any], theirs: Callable[[], Any], budget_ms: float
) -> tuple[float, float]:
    """Milliseconds of two that take turns, as medians of samples of some 3 ms."""
    calls = {"ours": ours, "theirs": theirs}
    alone = {name: times[0] for name, times in in_turns(calls, 1, took=event_ms).items()}
    often = {name: max(1, int(3 / ms)) for name, ms in alone.items()}
    turns = min(25, max(3, int(budget_ms / sum(often[name] * alone[name] for name in calls))))

    def many(name: str) -> Callable[[], object]:
        return lambda: [calls[name]() for _ in range(often[name])]

    found = medians(in_turns({name: many(name) for name in calls}, turns, warm=0, took=event_ms))
    return found["ours"] / often["ours"], found["theirs"] / often["theirs"]


def off(out: Any, exact: Any) -> float:
    """How far a result is from the exact one, as a part of its length."""
    return float((out.double() - exact).norm() / exact.norm())


def products(rungs: list[Rung], n: int, budget_ms: float) -> list[dict[str, Any]]:
    """A row for each rung: its time, cuBLAS's, and both errors."""
    import cupy
    import torch

    torch.manual_seed(n)
    rows = list[dict[str, Any]]()
    for dtype in (torch.float32, torch.float16):
        half = dtype == torch.float16
        chosen = [rung for rung in rungs if (rung.name == "tensor") == half]
        if not chosen:
            continue
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        exact = a.double() @ b.double()
        out, theirs = (torch.empty(n, n, device="cuda") for _ in range(2))

        def cublas(a: Any = a, b: Any = b, theirs: Any = theirs, half: bool = half) -> None:
            if half:
                torch.mm(a, b, out_dtype=torch.float32, out=theirs)
            else:
                torch.mm(a, b, out=theirs)

        cublas()
        for rung in chosen:
            kernel = built(rung.source, rung.name, rung.shared)
            arrays = [cupy.from_dlpack(it) for it in (a, b, out)]

            def ours(kernel: Any = kernel, rung: Rung = rung, arrays: Any = arrays) -> None:
                kernel(rung.grid(n), rung.block, (np.int32(n), *arrays), shared_mem=rung.shared)

            out.fill_(math.nan)
            ours()
            torch.cuda.synchronize()
            errors = off(out, exact), off(theirs, exact)
            if not errors[0] < 4 * errors[1]:
                raise SystemExit(
                    f"{rung.name} at {n}: an error of {errors[0]:.1e}, cuBLAS {errors[1]:.1e}"
                )
            mine, other = beside(ours, cublas, budget_ms)
            row = {"rung": rung.label, "lines": rung.lines, "n": n, "ms": mine, "cublas_ms": other}
            row |= {"share": other / mine, "tflops": 2 * n**3 / mine / 1e9, "error": errors[0]}
            rows.append(row | {"cublas_error": errors[1], "registers": kernel.num_regs})
            print(
                f"{n:5d} {rung.label:14s} {mine:9.3f} ms, cuBLAS {other:8.3f}: {100 * other / mine:5.1f} %,"
                f" error {errors[0]:.1e} ({errors[1]:.1e}), {kernel.num_regs} registers",
                flush=True,
            )
    return rows


def attentions(head: int, budget_ms: float) -> dict[str, Any]:
    """A row for attention with heads of so many numbers."""
    import cupy
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.manual_seed(head)
    q, k, v = (torch.randn(*HEADS, LENGTH, head, device="cuda") for _ in range(3))
    out = torch.empty_like(q)
    one = (slice(1), slice(2))  # two heads are enough for the exact result, which takes much memory
    weights = torch.softmax(
        q[one].double() @ k[one].double().transpose(-1, -2) / math.sqrt(head), -1
    )
    exact = weights @ v[one].double()

    def efficient() -> Any:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    queries, threads, shared = attention_launch(head)
    kernel = built(attention_source(head), "attention", shared)
    scale = np.float32(math.log2(math.e) / math.sqrt(head))
    arrays = [cupy.from_dlpack(it) for it in (q, k, v, out)]

    def ours() -> None:
        grid = (LENGTH // queries, math.prod(HEADS))
        kernel(grid, (threads,), (np.int32(LENGTH), scale, *arrays), shared_mem=shared)

    out.fill_(math.nan)
    ours()
    torch.cuda.synchronize()
    theirs = efficient()
    errors, apart = (off(out[one], exact), off(theirs[one], exact)), off(out, theirs.double())
    if not (errors[0] < 4 * errors[1] and apart < 1e-5):
        raise SystemExit(f"attention of {head}: errors {errors}, {apart:.1e} from PyTorch's")
    mine, other = beside(ours, efficient, budget_ms)
    print(
        f"attention, head {head}: {mine:.3f} ms, PyTorch's {other:.3f}: {100 * other / mine:.1f} %,"
        f" error {errors[0]:.1e} ({errors[1]:.1e}), {kernel.num_regs} registers",
        flush=True,
    )
    return {"head": head, "ms": mine, "torch_ms": other, "share": other / mine, "error": errors[0]}


def recorded(n: int) -> Any:
    """A trace of the ten rungs for floats, one launch each, and of cuBLAS: the median of three."""
    import cupy
    import torch

    rungs = [rung for rung in RUNGS if rung.name != "tensor" and not rung.unsigned]
    kernels = [built(rung.source, rung.name, rung.shared) for rung in rungs]
    torch.manual_seed(n)
    a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
    out, theirs = (torch.empty(n, n, device="cuda") for _ in range(2))
    arrays = [cupy.from_dlpack(it) for it in (a, b, out)]

    def climb() -> None:
        for rung, kernel in zip(rungs, kernels, strict=True):
            with agt.ranges.span(rung.label):
                given = (np.int32(n), *arrays)
                kernel(rung.grid(n), rung.block, given, shared_mem=rung.shared)
        with agt.ranges.span("cuBLAS"):
            torch.mm(a, b, out=theirs)
        torch.cuda.synchronize()

    traces = list[agt.Trace]()
    for turn in range(5):
        with agt.record("all") as trace:
            climb()
        if turn > 1:  # the first ones load modules
            traces.append(trace)
    return sorted(traces, key=lambda trace: trace.metrics().makespan)[1]


def record(folder: Path, sizes: list[int]) -> None:
    """Write a trace for each size, as those that come with the package are written."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
    import record_course
    import torch

    with agt.using("cuda"):
        for n in sizes:
            trace = recorded(n)
            facts = {**record_course.machine_facts(), "kind": "recorded"}
            facts["command"] = f"python benchmarks/ladder.py --record FOLDER --sizes {n}"
            trace.about = {**trace.about, **facts, "torch": torch.__version__}
            record_course.write(trace, folder / f"rungs_{n}.json")


def modelled(rungs: list[Rung], n: int) -> None:
    """Print each rung's time on the simulated H200 beside the H200's."""
    print("   N rung          model, us   H200, us  ratio  CPU, s")
    for rung in rungs:
        begin, real = time.process_time(), 1e3 * ms(rung.label, n)
        us = climb(rung.label, n).us
        cpu = time.process_time() - begin
        print(
            f"{n:4d} {rung.label:13s} {us:9.1f} {real:10.1f} {us / real:6.2f} {cpu:7.1f}",
            flush=True,
        )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="2048,4096,8192", help="sides of the matrices, multiples of 256"
    )
    parser.add_argument("--only", default="", help="rungs by commas; all, if none is given")
    parser.add_argument("--budget", type=float, default=250, help="ms for each pair")
    parser.add_argument("--model", action="store_true", help="the simulated H200, without a GPU")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="traces instead of rows")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    rungs = [rung for rung in RUNGS if not only or rung.label in only]
    if options.model:
        for n in map(int, options.sizes.split(",")):
            modelled(rungs, n)
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    if options.record:
        record(options.record, [int(n) for n in options.sizes.split(",")])
        return
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    rows = list[dict[str, Any]]()
    for n in map(int, options.sizes.split(",")):
        rows += products(rungs, n, options.budget)
    for rung in rungs:
        shares = [row["share"] for row in rows if row["rung"] == rung.label]
        if shares:
            mean = 100 * statistics.geometric_mean(shares)
            print(f"{rung.label:14s} {rung.lines:3d} lines, {mean:5.1f} % of cuBLAS")
    if not only or "attention" in only:
        rows += [attentions(head, options.budget) for head in (64, 128)]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
