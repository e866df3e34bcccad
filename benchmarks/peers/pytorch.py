"""PyTorch: its streams and its CUDA graphs, with the same kernels, compiled by its own NVRTC wrapper."""

from typing import Any

import torch
from work import BATCHES, BLOCK, KERNELS, TILE, Contender, Work


def contenders(work: Work) -> list[Contender]:
    """Four streams, a graph of them, and its own matrix product for comparison."""
    n = work.dim
    # PyTorch's wrapper passes Python's floats as doubles, whatever the kernel wants (2.11).
    sources = {
        name: source.replace("float alpha", "double alpha").replace("float beta", "double beta")
        for name, source in KERNELS.items()
    }
    compile_kernel: Any = getattr(torch.cuda, "compile_kernel", None) or torch.cuda._compile_kernel
    kernels = {
        name: compile_kernel(source, name, nvcc_options=["--fmad=false"])
        for name, source in sources.items()
    }
    w0, w1 = torch.from_numpy(work.w0).cuda(), torch.from_numpy(work.w1).cuda()
    xs = [torch.from_numpy(x).pin_memory() for x in work.xs]
    x = [torch.empty(n, n, device="cuda") for _ in range(BATCHES)]
    hidden = [torch.empty(n, n, device="cuda") for _ in range(BATCHES)]
    out = [torch.empty(n, device="cuda") for _ in range(BATCHES)]
    host = [torch.empty(n, pin_memory=True) for _ in range(BATCHES)]
    streams = [torch.cuda.Stream() for _ in range(BATCHES)]

    def batch(i: int, stream: Any) -> None:
        x[i].copy_(xs[i], non_blocking=True)
        tiles, lines = (TILE, TILE, 1), (BLOCK, 1, 1)
        args = [n, n, n, 1.0, x[i], w0, 0.0, hidden[i]]
        kernels["sgemm_naive"](grid=work.grid, block=tiles, args=args, stream=stream)
        args = [n, n, hidden[i], w1, out[i]]
        kernels["matvec_naive"](grid=work.line, block=lines, args=args, stream=stream)
        kernels["relu"](grid=work.line, block=lines, args=[n, out[i], out[i]], stream=stream)
        host[i].copy_(out[i], non_blocking=True)

    def four() -> None:
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                batch(i, stream)
        for stream in streams:
            stream.synchronize()

    def own_operators() -> None:
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                x[i].copy_(xs[i], non_blocking=True)
                torch.mm(x[i], w0, out=hidden[i])
                torch.mv(hidden[i], w1, out=out[i])
                torch.relu_(out[i])
                host[i].copy_(out[i], non_blocking=True)
        for stream in streams:
            stream.synchronize()

    def results() -> list[Any]:
        return [array.numpy().copy() for array in host]

    doubles = "the same kernels, but two doubles"
    cublas = "cuBLAS in place of sgemm_naive and matvec_naive"
    found = [
        Contender("PyTorch, four streams", four, results, doubles),
        Contender("PyTorch, four streams, its own operators", own_operators, results, cublas),
    ]
    four()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        root = torch.cuda.current_stream()
        for i, stream in enumerate(streams):
            stream.wait_stream(root)
            with torch.cuda.stream(stream):
                batch(i, stream)
        for stream in streams:
            root.wait_stream(stream)

    def replay() -> None:
        graph.replay()
        torch.cuda.current_stream().synchronize()

    return [*found, Contender("PyTorch, CUDA graph", replay, results, doubles)]
