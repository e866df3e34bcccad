"""Findings of the detective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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


# By name: its title, what helps any program, and how to do that in each of these languages.
_LANGUAGES = ("Here", "In CuPy", "In PyTorch", "In CUDA")
KNOWN: Mapping[str, tuple[str, ...]] = {
    "null stream": ("Work on the null stream", "Give the work a stream of its own",
        "leave the choice to a policy, or call agt.create_stream()", "cupy.cuda.Stream(non_blocking=True)",
        "torch.cuda.stream(torch.cuda.Stream())", "cudaStreamCreateWithFlags(..., cudaStreamNonBlocking)"),
    "hidden synchronisation": ("The host waits in between", "Enqueue everything first and wait once",
        "combine the operations with and_then, or await them together",
        "keep numbers in arrays: float(x), x.get() and `if x:` wait",
        "keep numbers in tensors: .item(), .cpu() and `if x:` wait",
        "order work by events (cudaStreamWaitEvent), and synchronise at the end"),
    "pageable copy": ("Copies of pageable memory", "Pin host arrays once, and reuse them",
        "agt.pin or agt.pinned", "cupyx.empty_pinned, and array.get(out=..., blocking=False)",
        "pin_memory=True of a DataLoader, or x.pin_memory()", "cudaMallocHost or cudaHostRegister"),
    "page migration": ("Pages of unified memory move on demand", "Move whole arrays before the work begins",
        "agt.h2d", "cupy.cuda.runtime.memPrefetchAsync", "x.to(device)", "cudaMemPrefetchAsync"),
    "lazy module loading": (
        "Kernels are loaded while the clock runs", "Run the program once before it is timed or recorded"),
    "allocation in the loop": ("Arrays are allocated in a loop",
        "Allocate once before the loop, and use the array again in each round", "lend it with x.borrow()"),
    "too few streams": ("Independent operations queue behind each other",
        "Use more streams (and see CUDA_DEVICE_MAX_CONNECTIONS)", "agt.StreamPoolRoundRobin(4)"),
    "one big kernel": ("One kernel is nearly everything",
        "Make the kernel itself faster, or split it so that copies can overlap", "agt.microscope"),
    "host-bound": ("The host cannot keep up",
        "Do more with each call: larger batches, fewer and larger kernels, a graph",
        "op.prepare(), or op.graph_on", "cupy.fuse, a RawKernel for several steps, or Stream.begin_capture",
        "torch.compile, or torch.cuda.graph", "cudaStreamBeginCapture and cudaGraphLaunch"),
    "gaps": ("The device pauses for long",
        "Move the host's work in that stretch before or after the device's, or beside it",
        "trace.between shows it; a task of its own, or asyncio.to_thread", "read results back later",
        "workers of a DataLoader", "a thread of its own"),
    "low utilisation": ("Busy, and mostly empty", "Give each launch more blocks, or run several side by side",
        "agt.overlap, StreamPoolRoundRobin, larger batches", "batch arrays along a new axis, or more streams",
        "larger batches", "larger grids, or more streams"),
    "exposed copies": ("Copies with no kernel beside them",
        "Copy less, or cut the work into parts, so that one part is copied while another is computed",
        "operations on several streams", "Stream(non_blocking=True) for each part, and pinned memory",
        "x.to(device, non_blocking=True) of pinned memory, a batch ahead",
        "cudaMemcpyAsync on a second stream"),
    "exposed communication": ("Collectives with no computing beside them",
        "Begin a collective as soon as its data is there, and compute what does not need it meanwhile",
        "a stream of its own for the collective", "NCCL on a second stream",
        "buckets of DistributedDataParallel, or async_op=True", "ncclAllReduce on a second stream"),
    "waiting for a GPU": ("Collectives wait for another GPU",
        "Give each GPU as much to do as the others, and look at what the late one was doing",
        "trace.of(name) has one of them", "time each Device's part of the step",
        "a DistributedSampler deals data out evenly", "time each device's part of the step"),
    "small kernels": ("Small kernels, launched one by one",
        "Try to do with fewer of them, and gather the rest into larger kernels, or into a graph",
        "op.graph_on", "cupy.fuse, or Stream.begin_capture", "torch.compile, or torch.cuda.graph",
        "cudaStreamBeginCapture and cudaGraphLaunch"),
    "start of CUDA": ("Starting up takes most of the time",
        "Do more in one process, and start the clock after CUDA has started"),
    "kernel-bound": ("The kernels themselves are the limit",
        "Make the largest one faster, or call it less often", "agt.microscope", "cupy.fuse, or a RawKernel",
        "torch.compile, or lower precision", "Nsight Compute says what holds a kernel up"),
}  # fmt: skip


def advice(name: str, language: str) -> str:
    """Advice; for a program of this package, also what helps in CuPy."""
    _, general, *told = KNOWN[name]
    ways = dict(zip(_LANGUAGES, told, strict=False))
    wanted = ["Here", "In CuPy"] if language == "ours" else [f"In {language}"]
    return " ".join([f"{general}.", *(f"{word}: {ways[word]}." for word in wanted if word in ways)])
