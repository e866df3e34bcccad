"""The services that every `hostcalls` has for kernels that call the host.

A kernel that can call the host could do whatever its process may: a wrong index in its threads would be a
file name. So the program says beforehand which files, folder and addresses kernels may use, and a kernel
asks for them by number. What it opens by name has to be a plain file in the folder once links are followed,
because a link could lead out of it, and a pipe could hold up the host forever. A number is never used
again, so a thread that keeps one too long gets an error and not somebody else's file.

What the system refuses, the kernel is told, by the system's own number of the error, since it can go on
without. A mistake of the program is an error of the program's: a file that it never listed, or one that it
listed and that cannot be opened.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from errno import EACCES, EBADF, EBUSY, EINVAL, EMFILE
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import CallRefusedError, UsageError, demand, entries_of, whole
from asyncgpu_tutor.serving.connections import Connection

K = TypeVar("K")
PacketWords = npt.NDArray[np.uint64]

# As in hostcall.cuh.
TIME, RANDOM, PRINT, READ, WRITE, OPEN, CLOSE, CONNECT, SEND, RECEIVE = range(1, 11)
FIRST_FREE = 16
MOST_OPEN = 64  # files and connections that kernels have opened by name, at a time


class HostcallRequest(NamedTuple):
    """One call of a kernel, with its arguments: `a`, `b` and `c` are 0 to 2**64 - 1."""

    service: int  # the number of the service that it asks for
    a: int
    b: int
    c: int
    data: npt.NDArray[np.uint8]  # the bytes that go with it, to read and to write


Handler = Callable[[HostcallRequest], Any]
BatchHandler = Callable[[PacketWords, PacketWords, PacketWords], Any]


class Files:
    """The files and connections that a kernel may use, by number, within what the office allows.

    Those of `paths` have numbers from 0 on, and are opened when first asked for.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        folder: str | os.PathLike[str] | None = None,
        addresses: Sequence[str] = (),
    ) -> None:
        self._paths = [
            Path(path) for path in entries_of("files of hostcalls", paths, (str, os.PathLike))
        ]
        if folder is not None:
            demand(folder, (str, os.PathLike), "the folder of hostcalls is a path")
        self._folder = None if folder is None else Path(folder).resolve()
        self._addresses = frozenset(entries_of("addresses of hostcalls", addresses, str))
        self._open: dict[tuple[int, bool], FileIO] = {}
        self._named: dict[int, FileIO | Connection] = {}
        self._next = len(self._paths)

    def read(self, call: HostcallRequest) -> int:
        """As HOSTCALL_READ in hostcall.cuh."""
        file = self._at(call, writes=False)
        with _refused():
            file.seek(call.b)
            return file.readinto(call.data.data[: call.c])

    def write(self, call: HostcallRequest) -> int:
        """As HOSTCALL_WRITE in hostcall.cuh. The rest of the file stays."""
        file = self._at(call, writes=True)
        with _refused():
            file.seek(call.b)
            return file.write(call.data.data[: call.c])

    def open(self, call: HostcallRequest) -> int:
        """As HOSTCALL_OPEN in hostcall.cuh: a plain file in the folder, or in one below it."""
        with _refused():
            if self._folder is None:
                raise PermissionError(EACCES, "no folder: agt.hostcalls(folder=...) allows one")
            path = Path(os.path.realpath(self._folder / os.fsdecode(_text(call))))
            if not path.is_relative_to(self._folder):
                raise PermissionError(EACCES, "outside of the folder")
            # A pipe, for one, could hold up the host forever.
            if path.exists() and not path.is_file():
                raise PermissionError(EACCES, "not a plain file")
            self._room()  # before it is opened, which empties it
            return self._number(path.open("w+b" if call.b else "rb", buffering=0))

    def close_one(self, call: HostcallRequest) -> None:
        """As HOSTCALL_CLOSE in hostcall.cuh."""
        self._of(call.a, FileIO, Connection).close()
        del self._named[call.a]

    async def connect(self, call: HostcallRequest) -> int:
        """As HOSTCALL_CONNECT in hostcall.cuh, to one of the addresses that are allowed."""
        address = os.fsdecode(_text(call))
        with _refused():
            if address not in self._addresses:
                raise PermissionError(EACCES, "agt.hostcalls(addresses=...) allows none such")
            return self._number(await Connection.to(address))

    async def send(self, call: HostcallRequest) -> int:
        """As HOSTCALL_SEND in hostcall.cuh."""
        connection, size = self._of(call.a, Connection), _fits(call)
        with _refused():
            await connection.send(call.data[:size].tobytes())
        return size

    async def receive(self, call: HostcallRequest) -> int:
        """As HOSTCALL_RECEIVE in hostcall.cuh."""
        connection, size = self._of(call.a, Connection), _fits(call)
        with _refused():
            got = await connection.receive(size)
        call.data[: len(got)] = np.frombuffer(got, np.uint8)
        return len(got)

    def close(self) -> None:
        """Close all of them."""
        for opened in (self._open, self._named):
            while opened:
                opened.popitem()[1].close()

    def _room(self) -> None:
        if len(self._named) >= MOST_OPEN:
            raise OSError(EMFILE, "too many are open")

    def _number(self, opened: FileIO | Connection) -> int:
        try:
            self._room()
        except OSError:
            opened.close()
            raise
        self._named[self._next] = opened
        self._next += 1
        return self._next - 1

    def _of(self, number: int, *kinds: type[K]) -> K:
        found = self._named.get(number)
        if not isinstance(found, kinds):
            raise CallRefusedError(EBADF)
        return found

    def _at(self, call: HostcallRequest, *, writes: bool) -> FileIO:
        if call.a >= self._next:
            raise UsageError(
                f"a kernel uses file {call.a}, and there are {len(self._paths)}: "
                "agt.hostcalls(files=[...]) says which"
            )
        _fits(call)
        if call.a >= len(self._paths):
            file = self._of(call.a, FileIO)
            if writes and not file.writable():
                raise CallRefusedError(EBADF)
        else:
            key = (call.a, writes)
            if key not in self._open:
                path = self._paths[call.a]
                mode = "rb" if not writes else "r+b" if path.exists() else "w+b"
                self._open[key] = path.open(mode, buffering=0)
            file = self._open[key]
        return file


@contextmanager
def _refused() -> Generator[None]:
    """Tell the kernel of an error of the system's, by its number."""
    try:
        yield
    except OSError as error:
        raise CallRefusedError(max(error.errno or 0, 0) or EINVAL) from error  # no name: -2
    except (ValueError, OverflowError) as error:  # a name, port or place in a file that can be none
        raise CallRefusedError(EINVAL) from error
    except RuntimeError as error:  # of asyncio: two calls wait for bytes of one connection
        raise CallRefusedError(EBUSY) from error


def _fits(call: HostcallRequest) -> int:
    if call.c > call.data.nbytes:
        raise UsageError(
            f"a kernel moves {call.c} bytes of a file at once, and a packet comes with "
            f"{call.data.nbytes}: agt.hostcalls(nbytes=...) gives it more"
        )
    return call.c


def _text(call: HostcallRequest) -> bytes:
    return call.data[: call.a].tobytes()


def _print(call: HostcallRequest) -> None:
    text = _text(call).decode("utf-8", "replace")
    print(text, end="")  # noqa: T201 - what the kernel has printed


def each(files: Files, own: Mapping[int, Handler]) -> dict[int, Handler]:
    """The services that answer calls one by one."""
    by_name = {OPEN: files.open, CLOSE: files.close_one}
    network = {CONNECT: files.connect, SEND: files.send, RECEIVE: files.receive}
    return {PRINT: _print, READ: files.read, WRITE: files.write, **by_name, **network, **own}


def together(device: Device, own: Mapping[int, BatchHandler]) -> dict[int, BatchHandler]:
    """The services that answer all calls that are there at once."""
    generator = np.random.default_rng(0)

    def now(a: PacketWords, b: PacketWords, c: PacketWords) -> int:
        return int(device.now() * 1000)

    def random(a: PacketWords, b: PacketWords, c: PacketWords) -> PacketWords:
        return generator.integers(0, 2**64, len(a), dtype=np.uint64)

    return {TIME: now, RANDOM: random, **own}


def words(answer: Any) -> Any:
    """An answer, or an array of them, as 64 bits without a sign; of floats these are a double's bits."""
    if answer is None or type(answer) is int:
        return _word(answer or 0)
    listed = type(answer) in (list, tuple)
    # NumPy would make floats of some of these.
    if listed and all(isinstance(word, int | np.integer) for word in answer):
        return np.array([_word(int(word)) for word in answer], np.uint64)
    found: npt.NDArray[Any] = np.asarray(answer)
    if found.dtype.kind == "f":
        return found.astype(np.float64).view(np.uint64)
    if found.dtype.kind not in "iub":
        raise UsageError(
            f"the host answers a kernel with integers or floats, and got {answer!r} "
            f"({type(answer).__name__})"
        )
    return found.astype(np.int64).view(np.uint64) if found.dtype.kind == "i" else found


def _word(number: int) -> int:
    if not -(2**63) <= number < 2**64:
        whole("an answer to a kernel", number, -(2**63), 2**64 - 1)
    return number & 0xFFFFFFFFFFFFFFFF
