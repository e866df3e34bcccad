"""CuPy for a machine without a GPU: what `devices/cuda` calls of it, done on the host before the call ends.

Memory is the host's, and kernels run in the interpreter. While a stream is captured, calls are kept and not
made. `calls` has what the runtime and the driver were asked for.
"""

import ctypes
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices import opening
from asyncgpu_tutor.run import current
from simgpu.cuda_c import GlobalMemory, compile_source
from tests.conftest import open_or_skip

calls: list[tuple[Any, ...]] = []
HANDLES = count(0x1000, 8)
ROOMS: dict[int, np.ndarray[Any, Any]] = {}  # all memory, by address
KERNELS: dict[int, tuple[Any, str]] = {}
EVENTS: dict[int, float] = {}  # when each was passed, in s
refused: set[str] = set()  # calls that fail
GRAPHS: dict[int, list[Callable[[], None]]] = {}
captures: list[list[Callable[[], None]]] = []  # the one that is going on, if any


class CudaError(Exception):
    """Any error of CUDA's."""


class MemoryBlock(np.ndarray[Any, Any]):
    """Zeros, at an address that is a multiple of 512."""

    def __new__(cls, nbytes: int) -> Any:
        room = np.zeros(nbytes + 512, np.uint8)
        start = -room.ctypes.data % 512
        block = room[start : start + nbytes].view(cls)
        ROOMS[block.ptr] = block
        return block

    @property
    def ptr(self) -> int:
        return self.ctypes.data


class PinnedBlock(ctypes.c_uint8 * (1 << 25)):
    """Of the host's memory, known to the driver. NumPy takes as much of it as was asked for."""

    def __init__(self, _: int) -> None:
        ROOMS[self.ptr] = np.frombuffer(self, np.uint8)

    @property
    def ptr(self) -> int:
        return ctypes.addressof(self)


def kind_of(address: int) -> str:
    """Whose memory this is."""
    for start, room in ROOMS.items():
        if start <= address < start + room.size:
            return "device" if isinstance(room, MemoryBlock) else "pinned"
    return "the host's own"


def later(act: Callable[[], None]) -> None:
    if captures:
        captures[0].append(act)
    else:
        act()


class Runtime:
    """The CUDA runtime: every call is noted."""

    CUDARuntimeError = CudaError
    streamCaptureModeRelaxed = 2  # noqa: N815 - CUDA's name
    current = 0

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not callable(found) or isinstance(found, type):
            return found

        def noted(*args: Any) -> Any:
            calls.append((name, *args))
            if name in refused:
                raise CudaError("cudaErrorIllegalAddress")
            return found(*args)

        return noted

    def getDeviceCount(self) -> int:
        return 4

    def funcSetAttribute(self, kernel: int, what: int, value: int) -> None:
        assert kernel in KERNELS

    def getDeviceProperties(self, ordinal: int) -> dict[str, Any]:
        facts = {
            "maxThreadsPerBlock": 1024,
            "maxThreadsDim": (1024, 1024, 64),
            "sharedMemPerBlockOptin": 227 << 10,
        }
        facts |= {"maxGridSize": (2**31 - 1, 65535, 65535), "name": b"a host"}
        return facts | {"multiProcessorCount": 2, "maxThreadsPerMultiProcessor": 2048}

    def driverGetVersion(self) -> int:
        return 13000

    def pointerGetAttributes(self, address: int) -> Any:
        return SimpleNamespace(type={"device": 2, "pinned": 1}.get(kind_of(address), 0))

    def getDevice(self) -> int:
        return Runtime.current

    def setDevice(self, ordinal: int) -> None:
        Runtime.current = ordinal

    def deviceSynchronize(self) -> None: ...

    def streamSynchronize(self, stream: int) -> None: ...

    def eventSynchronize(self, event: int) -> None:
        passed(event)

    def streamQuery(self, stream: int) -> int:
        return 0

    def streamIsCapturing(self, stream: int) -> bool:
        return bool(captures)

    def eventQuery(self, event: int) -> int:
        return 0 if event in EVENTS else 600

    def eventCreateWithFlags(self, flags: int) -> int:
        assert flags == 2, "an event without times"
        return next(HANDLES)

    def eventRecord(self, event: int, stream: int) -> None:
        later(lambda: EVENTS.update({event: time.perf_counter()}))

    def streamWaitEvent(self, stream: int, event: int) -> None:
        later(lambda: passed(event))

    def memsetAsync(self, address: int, value: int, nbytes: int, stream: int) -> None:
        later(lambda: void(ctypes.memset(address, value, nbytes)))

    def memcpyAsync(self, to: int, origin: int, nbytes: int, kind: int, stream: int) -> None:
        there = {1: [to], 2: [origin], 3: [to, origin]}[kind]
        assert {kind_of(address) for address in there} == {"device"}
        later(lambda: void(ctypes.memmove(to, origin, nbytes)))

    def memcpyPeerAsync(
        self, to: int, there: int, origin: int, here: int, nbytes: int, stream: int
    ) -> None:
        later(lambda: void(ctypes.memmove(to, origin, nbytes)))

    def deviceCanAccessPeer(self, one: int, other: int) -> bool:
        return one != other

    def deviceEnablePeerAccess(self, other: int) -> None:
        assert other != Runtime.current

    def graphLaunch(self, graph: int, stream: int) -> None:
        for act in GRAPHS[graph]:
            act()

    def launchKernel(self, kernel: int, *how: int) -> None:
        grid, block, (shared, _, table, extra) = how[:3], how[3:6], how[6:]
        assert extra == 0
        program, name = KERNELS[kernel]
        args: list[Any] = []
        places = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
        for place, one in enumerate(program.kernel(name).signature.parameters):
            dtype = np.dtype(np.uint64) if one.pointer else one.dtype
            raw = ctypes.string_at(places[place], dtype.itemsize)
            value = np.frombuffer(raw, dtype)[0]
            args.append(
                GlobalMemory(ROOMS[int(value)].size, room=ROOMS[int(value)].view(np.ndarray))
                if one.pointer
                else value
            )
        later(lambda: void(program.begin(name, grid, block, args, dynamic_shared=shared).finish()))

    launchCooperativeKernel = launchKernel  # noqa: N815 - CUDA's name


def void(_: object) -> None: ...


def passed(event: int) -> None:
    assert event in EVENTS, "it was never recorded"


RUNTIME = Runtime()


class Stream:
    """A stream; what is captured on one is captured on all."""

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.ptr, self.device_id, self.priority = (
            next(HANDLES) if non_blocking else 0,
            RUNTIME.current,
            priority,
        )

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    @staticmethod
    def from_external(foreign: Any) -> Any:
        version, handle = foreign.__cuda_stream__()
        assert version == 0
        return SimpleNamespace(ptr=handle, of=foreign)

    def begin_capture(self, mode: int) -> None:
        assert mode == RUNTIME.streamCaptureModeRelaxed
        captures.append([])

    def end_capture(self) -> Any:
        GRAPHS[graph := next(HANDLES)] = captures.pop()
        return SimpleNamespace(graphExec=graph)


class Event:
    """An event; one with times unless it says otherwise."""

    def __init__(self, disable_timing: bool = False) -> None:
        self.ptr, self.timed = next(HANDLES), not disable_timing

    def record(self, stream: Stream) -> None:
        EVENTS[self.ptr] = time.perf_counter()

    def synchronize(self) -> None:
        assert self.ptr in EVENTS


def elapsed(start: Event, end: Event) -> float:
    assert start.timed
    assert end.timed
    return (EVENTS[end.ptr] - EVENTS[start.ptr]) * 1e3


class Pool:
    """Memory: each block once."""

    def malloc(self, nbytes: int) -> MemoryBlock:
        assert nbytes % 512 == 0, "CuPy rounds up to 512 bytes"
        if "malloc" in refused:
            raise CudaError("cudaErrorMemoryAllocation")
        return MemoryBlock(nbytes)

    def free_all_blocks(self) -> None:
        calls.append(("free_all_blocks",))
        refused.discard("malloc")


class KernelModule:
    """A loaded module: its source."""

    def load(self, binary: str) -> None:
        self.program = compile_source(binary)

    def get_function(self, name: str) -> Any:
        KERNELS[handle := next(HANDLES)] = self.program, name
        return SimpleNamespace(ptr=handle, module=self)


def compiled(
    source: str, options: Sequence[str], name_expressions: Sequence[str] = (), **_: Any
) -> Any:
    assert "--fmad=false" in options
    return source.rpartition("#line 1\n")[2], {name: name for name in name_expressions}


class Communicator:
    """A rank of NCCL's; what all ranks of a group call is done when the group ends."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __getattr__(self, what: str) -> Callable[..., None]:
        return lambda *args: NCCL.parts.append((self.rank, what, args))


class Nccl:
    """NCCL: numbers of types and of sums as strings."""

    NcclError, available = CudaError, True
    NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = "add", "multiply", "maximum", "minimum"
    NCCL_FLOAT32, NCCL_INT32, NCCL_FLOAT64, NCCL_UINT8 = "f4", "i4", "f8", "u1"

    @property
    def NcclCommunicator(self) -> Any:
        return SimpleNamespace(
            initAll=lambda devices: [Communicator(rank) for rank in range(len(devices))]
        )

    def groupStart(self) -> None:
        self.parts = list[tuple[int, str, tuple[Any, ...]]]()

    def groupEnd(self) -> None:
        later(lambda parts=self.parts: self.meet(parts))

    def meet(self, parts: list[tuple[int, str, tuple[Any, ...]]]) -> None:
        """Do what these ranks have called, each on the memory of all."""
        calls = [
            (rank, what, args)
            for rank, what, args in sorted(parts, key=lambda part: part[0])
            if what not in ("send", "recv")
        ]
        if calls:
            (what,) = {what for _, what, _ in calls}
            size, how = len(calls), calls[0][2][-2]
            count, kind = calls[0][2][2:4]
            gives = count * (size if what == "reduceScatter" else 1)
            given = np.stack([at(args[0] or args[1], gives, kind).copy() for _, _, args in calls])
            total = getattr(np, how).reduce(given) if "educe" in what else None
            for rank, _, args in calls:
                if what == "allGather":
                    at(args[1], count * size, kind)[:] = given.ravel()
                else:
                    out = total[rank * count :] if what == "reduceScatter" else total
                    at(args[1], count, kind)[:] = (given[how] if out is None else out)[:count]
        sent = {
            (rank, args[3]): at(*args[:3]).copy() for rank, what, args in parts if what == "send"
        }
        for rank, what, args in parts:
            if what == "recv":
                at(*args[:3])[:] = sent[args[3], rank]


def at(address: int, count: int, kind: str) -> np.ndarray[Any, Any]:
    raw = (ctypes.c_uint8 * (count * np.dtype(kind).itemsize)).from_address(address)
    return np.frombuffer(raw, kind)


NCCL = Nccl()


def modules() -> Iterator[tuple[str, ModuleType]]:
    """What is to be in `sys.modules`."""
    cupy, cuda, finder = (ModuleType(name) for name in ("cupy", "cupy.cuda", "cuda.pathfinder"))
    Stream.null = Stream()  # type: ignore[attr-defined]
    vars(cuda).update(
        Stream=Stream, Event=Event, MemoryPool=Pool, get_elapsed_time=elapsed, runtime=RUNTIME,
        PinnedMemoryPointer=PinnedBlock, alloc_pinned_memory=PinnedBlock,
        get_current_stream=lambda: Stream.null, UnownedMemory=lambda ptr, *_: SimpleNamespace(ptr=ptr),
        MemoryPointer=lambda place, offset: SimpleNamespace(ptr=place.ptr + offset),
        compiler=SimpleNamespace(CompileException=CudaError, compile_using_nvrtc=compiled),
        driver=SimpleNamespace(CUDADriverError=CudaError, launchKernel=RUNTIME.launchKernel,
        launchCooperativeKernel=RUNTIME.launchCooperativeKernel, funcGetAttribute=lambda what, kernel: 0,
        funcSetAttribute=RUNTIME.funcSetAttribute),
        function=SimpleNamespace(Module=KernelModule),
        memory=SimpleNamespace(OutOfMemoryError=CudaError), nccl=NCCL,
    )  # fmt: skip
    cupy.cuda, cupy.__file__ = cuda, __file__  # type: ignore[attr-defined]
    finder.find_nvidia_header_directory = lambda _: None  # type: ignore[attr-defined]
    yield from [
        ("cupy", cupy),
        ("cupy.cuda", cuda),
        ("cuda", ModuleType("cuda")),
        ("cuda.pathfinder", finder),
    ]


@contextmanager
def opened() -> Iterator[list[Any]]:
    """Four devices, of modules of their own."""
    package = importlib.import_module("asyncgpu_tutor.devices.cuda")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith(f"{package.__name__}.")]:
            patch.delitem(sys.modules, name)
            patch.delattr(package, name.rpartition(".")[2])
        for name, module in modules():
            patch.setitem(sys.modules, name, module)
        known = {name: one for name, one in current._devices.items() if one.simulated}
        patch.setattr(current, "_devices", known)
        streams = set(opening.own_streams)
        Runtime.current = 0  # which threads of others may have changed; of CUDA's, each has its own
        yield [current.resolve(f"cuda:{number}") for number in range(4)]
        ROOMS.clear()
        opening.own_streams.intersection_update(streams)
        for name in [name for name in sys.modules if name.startswith(f"{package.__name__}.")]:
            del sys.modules[name]
            delattr(package, name.rpartition(".")[2])


KINDS = ["on the host", pytest.param("cuda", marks=pytest.mark.gpu)]


@contextmanager
def gpus(kind: str, count: int) -> Iterator[list[Any]]:
    """So many devices of a kind, of which the first one is current."""
    with opened() if kind == "on the host" else nullcontext() as stood_in:
        found = stood_in or [open_or_skip(f"{kind}:{number}") for number in range(count)]
        with agt.using(found[0]):
            yield found[:count]
