"""The services that every `hostcalls` has for kernels that call the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError

Words = npt.NDArray[np.uint64]

TIME, RANDOM, PRINT, READ, WRITE = 1, 2, 3, 4, 5  # as in hostcall.cuh
FIRST_FREE = 16


class Call(NamedTuple):
    """One call of a kernel, with its arguments: `a`, `b` and `c` are 0 to 2**64 - 1."""

    service: int  # the number of the service that it asks for
    a: int
    b: int
    c: int
    data: npt.NDArray[np.uint8]  # the bytes that go with it, to read and to write


Handler = Callable[[Call], Any]
BatchHandler = Callable[[Words, Words, Words], Any]


class Files:
    """The files that a kernel may use, by number. They are opened when first asked for."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._paths = [Path(path) for path in paths]
        self._open: dict[tuple[int, bool], FileIO] = {}

    def read(self, call: Call) -> int:
        """As HOSTCALL_READ in hostcall.cuh."""
        return self._at(call, writes=False).readinto(call.data.data[: call.c])

    def write(self, call: Call) -> int:
        """As HOSTCALL_WRITE in hostcall.cuh. The rest of the file stays."""
        return self._at(call, writes=True).write(call.data.data[: call.c])

    def close(self) -> None:
        """Close all of them."""
        while self._open:
            self._open.popitem()[1].close()

    def _at(self, call: Call, *, writes: bool) -> FileIO:
        if call.a >= len(self._paths):
            raise UsageError(
                f"a kernel uses file {call.a}, and there are {len(self._paths)}: "
                "agt.hostcalls(files=[...]) says which"
            )
        if call.c > call.data.nbytes:
            raise UsageError(
                f"a kernel moves {call.c} bytes of a file at once, and a packet comes with "
                f"{call.data.nbytes}: agt.hostcalls(nbytes=...) gives it more"
            )
        key = (call.a, writes)
        if key not in self._open:
            path = self._paths[call.a]
            mode = "rb" if not writes else "r+b" if path.exists() else "w+b"
            self._open[key] = path.open(mode, buffering=0)
        file = self._open[key]
        file.seek(call.b)
        return file


def _print(call: Call) -> None:
    text = call.data[: call.a].tobytes().decode("utf-8", "replace")
    print(text, end="")  # noqa: T201 - what the kernel has printed


def each(files: Files, own: Mapping[int, Handler]) -> dict[int, Handler]:
    """The services that answer calls one by one."""
    return {PRINT: _print, READ: files.read, WRITE: files.write, **own}


def together(device: Device, own: Mapping[int, BatchHandler]) -> dict[int, BatchHandler]:
    """The services that answer all calls that are there at once."""
    generator = np.random.default_rng(0)

    def now(a: Words, b: Words, c: Words) -> int:
        return int(device.now() * 1000)

    def random(a: Words, b: Words, c: Words) -> Words:
        return generator.integers(0, 2**64, len(a), dtype=np.uint64)

    return {TIME: now, RANDOM: random, **own}


def words(answer: Any) -> Any:
    """An answer, or an array of them, as 64 bits without a sign; of floats these are a double's bits."""
    if answer is None or type(answer) is int:
        return (answer or 0) & 0xFFFFFFFFFFFFFFFF
    found = np.asarray(answer)
    if found.dtype.kind == "f":
        return found.astype(np.float64).view(np.uint64)
    if found.dtype.kind not in "iub":
        raise UsageError(
            f"the host answers a kernel with integers or floats, and got {answer!r} "
            f"({type(answer).__name__})"
        )
    return found.astype(np.int64).view(np.uint64) if found.dtype.kind == "i" else found
