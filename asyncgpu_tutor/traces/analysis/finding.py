"""Findings of the detective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# By finding: what helps any program, and how to do that in each language.
_ADVICE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "null stream": ("Give the work a stream of its own", {
        "ours": "leave the choice to a policy, or call agt.create_stream().",
        "CuPy": "with cupy.cuda.Stream(non_blocking=True).",
        "PyTorch": "with torch.cuda.stream(torch.cuda.Stream()).",
        "CUDA": "cudaStreamCreateWithFlags with cudaStreamNonBlocking.",
    }),
    "hidden synchronisation": ("Enqueue everything first and wait once", {
        "ours": "combine the operations with and_then, or await them together.",
        "CuPy": "keep numbers in arrays: float(x), x.get() and `if x:` wait.",
        "PyTorch": "keep numbers in tensors: .item(), .cpu() and `if x:` wait.",
        "CUDA": "order work by events (cudaStreamWaitEvent), and synchronise at the end.",
    }),
    "pageable copy": ("Pin host arrays once, and reuse them", {
        "ours": "agt.pin or agt.pinned.",
        "CuPy": "cupyx.empty_pinned, and array.get(out=..., blocking=False).",
        "PyTorch": "DataLoader(pin_memory=True), or x.pin_memory(), and .to(..., non_blocking=True).",
        "CUDA": "cudaMallocHost or cudaHostRegister.",
    }),
    "page migration": ("Move whole arrays before the work begins", {
        "ours": "agt.h2d.",
        "CuPy": "cupy.cuda.runtime.memPrefetchAsync.",
        "PyTorch": "x.to(device) before the loop.",
        "CUDA": "cudaMemPrefetchAsync before the launch.",
    }),
    "lazy module loading": ("Run the program once before it is timed or recorded.", {}),
    "allocation in the loop": ("Allocate once before the loop, and use the array again in each round", {
        "ours": "lend it with x.borrow().",
    }),
    "too few streams": ("Use more streams, and see CUDA_DEVICE_MAX_CONNECTIONS for their hardware queues", {
        "ours": "a policy such as agt.StreamPoolRoundRobin(4).",
    }),
    "one big kernel": ("Streams don't help. Make the kernel faster, or split it so that copies overlap", {
        "ours": "agt.microscope looks into it.",
    }),
    "host-bound": ("Ask for more with each call: larger batches, fewer and larger kernels, a graph", {
        "ours": "op.prepare(), or op.graph_on.",
        "CuPy": "cupy.fuse or one RawKernel for several small steps, Stream.begin_capture, out= for arrays.",
        "PyTorch": "torch.compile, or torch.cuda.graph.",
        "CUDA": "cudaStreamBeginCapture and cudaGraphLaunch.",
    }),
    "gaps": ("Do what the host does in that stretch before or behind the work, or beside it", {
        "ours": "trace.between shows it; a task of its own, or asyncio.to_thread for long Python.",
        "CuPy": "enqueue on a stream, and read results back later.",
        "PyTorch": "DataLoader with workers, and read results back later.",
        "CUDA": "a thread of its own.",
    }),
    "low utilisation": ("Give each launch more blocks, or run several side by side", {
        "ours": "agt.overlap, StreamPoolRoundRobin, larger batches.",
        "CuPy": "batch the arrays along a new axis, or use several non-blocking streams.",
        "PyTorch": "a larger batch.",
        "CUDA": "larger grids, or several streams.",
    }),
}  # fmt: skip


def advice(name: str, language: str) -> str:
    """What to do about a finding; for a program of this package also what helps in CuPy."""
    general, told = _ADVICE[name]
    ways = [told[language]] if language in told else []
    if language == "ours" and "CuPy" in told:
        ways.append(f"In CuPy: {told['CuPy']}")
    named = f": {' '.join(ways)}" if language == "ours" else f". In {language}: {' '.join(ways)}"
    return general + named if ways else general.rstrip(".") + "."


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, with the evidence.

    Attributes
    ----------
    name : str
        Which defect, such as ``"null stream"``, or which limit, such as ``"host-bound"``; docs/profiling.md
        has all of them.
    title : str
        The same in a few words, for people.
    sentence : str
        What was seen, with numbers.
    advice : str
        What to do about it.
    spans : tuple of int
        Ids of the spans that show it, ascending: ``trace.plot(highlight=...)`` takes the spans.
    cost : float
        About how much time it costs, in us; 0 where that cannot be told from the trace.
    limit : bool
        Whether it is what limits the program, rather than a mistake in it.
    """

    name: str
    title: str
    sentence: str
    advice: str
    spans: tuple[int, ...]
    cost: float = 0.0
    limit: bool = False

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence} {self.advice}"
