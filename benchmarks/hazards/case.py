"""One small program of the bench: a kernel and its launch, or a program of the host, and its mistake.

`kernel(...)` makes one from the body of a kernel in CUDA C, `launch(...)` from a whole source. On top, two
comments tell its name, and what is wrong with it, or why it is right. Those in Python are made in host.py.
In a bug, `// <- bug` (in Python `# <- bug`) marks each line that a finding may name: for a race, both sides.

What differs from another program by a few lines is written as `Case.changed` of that, as in a diff. There,
`// <- in bugs` marks a line for all the bugs that are made of a right program.

`finds` are the kinds of error, any of which is right, with spaces between them; then behind a colon the
words that a message about the cause has, ``a|b`` being either of two: "Race Barrier: tile". "Early" stands
for "Race UninitialisedRead", which are what an element is found to be that is read before it's written.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import NamedTuple

import numpy as np

import asyncgpu_tutor as agt
import simgpu

MARK, LATER = "<- bug", "<- in bugs"
_PATIENCE = 10  # s for one program
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")
_EXCERPT = re.compile(r"^ *line \d+: .*$", re.MULTILINE)  # of the source, in a message
_LINE = re.compile(r"\bline (\d+)|\.py:(\d+)")
Shape = int | tuple[int, ...]
_TYPES = {
    "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "uint8": "unsigned char",
}  # fmt: skip
_HEADERS = {  # by a word of the body that needs them
    "cuda::": "#include <cuda/atomic>\n",
    "cg::": "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n",
}


class Launch(NamedTuple):
    """How kernels are launched: those of a source, in order, or one that is told by its body."""

    grid: Shape
    block: Shape
    args: Sequence[object]
    shared: int
    head: str = ""  # of that one, without its headers

    def sound(self, program: str) -> Case:
        """A program in CUDA C that is right, and looks as if it were not."""
        return self.bug("")(program)

    def bug(self, finds: str) -> Callable[[str], Case]:
        """A program in CUDA C with a mistake."""

        def make(program: str) -> Case:
            name, why, source = headed(program)
            if self.head:
                headers = "".join(lines for word, lines in _HEADERS.items() if word in source)
                source = f"{headers}{self.head} {{\n{source}\n}}"
            return _case(name, why, source, self, finds)

        return make


def launch(grid: Shape, block: Shape, *args: object, shared: int = 0) -> Launch:
    """As ``kernel<<<grid, block, shared>>>(args)``, for the kernels of a source."""
    return Launch(grid, block, args, shared)


def kernel(
    name: str, grid: Shape, block: Shape, /, shared: int = 0, volatile: str = "", **args: object
) -> Launch:
    """The same for a kernel of which the program is the body: its parameters are those arguments.

    Those that `volatile` names, with spaces between them, point to what is volatile.
    """
    kinds = {arg: "volatile " * (arg in volatile.split()) + _type(args[arg]) for arg in args}
    parameters = ", ".join(f"{kind} {arg}" for arg, kind in kinds.items())
    head = f"__global__ void {name}({parameters})"
    return Launch(grid, block, [*args.values()], shared, head)


@dataclass(frozen=True)
class Finding:
    """What the device said of a program."""

    kind: str  # the error's class, without "Error"; "" where there was none
    message: str = ""
    lines: tuple[int, ...] = ()  # that it names, in the source or in the file of the program
    seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """A program, and what is to be found in it: nothing if `finds` is empty."""

    name: str
    source: str  # what the line numbers of findings count in
    run: Callable[[], object] = field(repr=False)
    finds: tuple[str, ...] = ()  # kinds of findings that are right, such as "Race"
    about: str = ""  # words that a message about the cause has: "tile fence|release"
    why: str = ""  # a bug's cause, or why the program is right
    first_line: int = 1  # the number of the source's first line
    launch: Launch | None = None
    told: str = ""  # the source as it was told, with marks for what is made of it

    @property
    def marked(self) -> set[int]:
        """The numbers of the lines that a finding may name."""
        lines = enumerate(self.source.split("\n"), self.first_line)
        return {number for number, line in lines if MARK in line}

    def check(self) -> Finding:
        """Run it, and tell what was found."""
        began = time.perf_counter()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.alarm(_PATIENCE)
        try:
            with agt.using(agt.SimDevice()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what failed leaves operations that never ran
                found = self.run()
                if inspect.iscoroutine(found):
                    asyncio.run(found)
                agt.synchronize()
        except Exception as error:  # noqa: BLE001 - whatever is said about a program is a finding
            first = _first(error)
            spent = time.perf_counter() - began
            kind = type(first).__name__.removesuffix("Error")
            return Finding(kind, str(first), tuple(_lines(first, self.run)), spent)
        except KeyboardInterrupt:
            return Finding("", f"nothing in {_PATIENCE} s", seconds=time.perf_counter() - began)
        finally:
            signal.alarm(0)
        return Finding("", seconds=time.perf_counter() - began)

    def is_found(self, finding: Finding) -> bool:
        """Whether a finding is of a kind that is expected here."""
        return finding.kind in self.finds

    def names_line(self, finding: Finding) -> bool:
        """Whether it names a marked line."""
        return not self.marked.isdisjoint(finding.lines)

    def tells_cause(self, finding: Finding) -> bool:
        """Whether its message has each of the words in `about`."""
        said = _EXCERPT.sub("", finding.message).lower()
        words = self.about.lower().split()
        return all(any(one in said for one in word.split("|")) for word in words)

    def changed(self, finds: str = "") -> Callable[[str], Case]:
        """This program with changes: a line's first character says what becomes of the rest.

        "-" goes, "+" is put in behind what the change tells before, and " " stays, with the mark that it has
        here. Each line of the program that is told is the next one which reads so.
        """

        def make(program: str) -> Case:
            assert self.launch is not None
            name, why, changes = headed(program)
            lines, at = self.told.split("\n"), 0
            for change in changes.splitlines():
                kind, line = change[0], change[1:]
                if kind != "+":
                    at = [_unmarked(old) for old in lines].index(_unmarked(line), at)
                lines[at : at + (kind != "+")] = [line] if kind != "-" else []
                at += kind != "-"
            return _case(name, why, "\n".join(lines), self.launch, finds)

        return make


@dataclass(frozen=True)
class Empty:
    """An array that nobody has written."""

    size: int
    dtype: str = "float32"


class Freed(Empty):
    """The address of an array that was freed, as an entry of a `Table`."""


@dataclass(frozen=True)
class Table:
    """An array of addresses of arrays, as a parameter ``float**`` takes it."""

    entries: tuple[np.ndarray | Empty | None, ...]


def ints(size: int, value: int | None = None) -> np.ndarray:
    """An array of int with this value, or with 0, 1, 2, ..."""
    return np.full(size, value, np.int32) if value is not None else np.arange(size, dtype=np.int32)


def floats(size: int, value: float | None = None) -> np.ndarray:
    """An array of float with this value, or with 0, 1, 2, ..."""
    return ints(size).astype(np.float32) if value is None else np.full(size, value, np.float32)


ZERO = ints(1, 0)


def raw(size: int) -> np.ndarray:
    """Some bytes, all of them 1."""
    return np.ones(size, np.uint8)


def headed(program: str) -> tuple[str, str, str]:
    """Its name and its reason, which the first two lines tell, and the rest."""
    name, why, *source = program.strip("\n").split("\n")
    return name.removeprefix("// "), why.removeprefix("// "), "\n".join(source)


def expected(finds: str) -> tuple[tuple[str, ...], str]:
    """The kinds of findings that are right, and the words that a message has."""
    kinds, _, about = finds.replace("Early", "Race UninitialisedRead").partition(": ")
    return tuple(kinds.split()), about


def _case(name: str, why: str, told: str, launch: Launch, finds: str) -> Case:
    source = re.sub(f"  // {LATER}$", f"  // {MARK}" if finds else "", told, flags=re.MULTILINE)
    run = _launches(source, launch)
    case = Case(name, source, run, *expected(finds), why, launch=launch, told=told)
    assert bool(case.marked) == bool(finds), f"{name!r} has a mistake and no mark, or the reverse"
    return case


def _type(arg: object) -> str:
    if isinstance(arg, np.ndarray | Empty):
        return f"{_TYPES[str(arg.dtype)]}*"
    return "float**" if isinstance(arg, Table) else type(arg).__name__


def _unmarked(line: str) -> str:
    return line.removesuffix(f"  // {MARK}").removesuffix(f"  // {LATER}")


def kernels_of(source: str) -> list[str]:
    """The names of its kernels, in their order."""
    return _KERNEL.findall(source)


def cases_of(module: object) -> list[Case]:
    """The programs of a file: those in its list `CASES`, and its decorated functions."""
    listed: list[Case] = getattr(module, "CASES", [])
    cases = (value for value in vars(module).values() if isinstance(value, Case))
    return listed + [case for case in cases if not case.launch]


def _launches(source: str, launch: Launch) -> Callable[[], None]:
    grid, block, args, shared, _ = launch

    def run() -> None:
        device = simgpu.Device()
        kept: list[object] = []
        passed = [_argument(arg, device, kept) for arg in args]
        for name in _KERNEL.findall(source):
            kernel = simgpu.RawKernel(source, name, enable_cooperative_groups=True)
            kernel(grid, block, passed, shared_mem=shared, stream=device.default_stream)
        device.synchronize()

    return run


def _argument(arg: object, device: simgpu.Device, kept: list[object]) -> object:
    """The argument on a device; what it refers to by address is kept in a list."""
    match arg:
        case np.ndarray():
            return simgpu.asarray(arg, device)
        case Freed(size, dtype):
            freed = simgpu.asarray(np.zeros(size, dtype), device)
            device.synchronize()
            return freed.memory.ptr  # nobody keeps the array
        case Empty(size, dtype):
            return simgpu.Array.empty(size, dtype, device)
        case Table(entries):
            inner = [_argument(entry, device, kept) for entry in entries]
            kept.append(inner)
            found = [one.memory.ptr if isinstance(one, simgpu.Array) else one or 0 for one in inner]
            return simgpu.asarray(np.array(found, np.uint64), device)
        case _:
            return arg


def _first(error: BaseException) -> BaseException:
    """What went wrong first: an error's cause if that is one of ours, and the first of a group."""
    if isinstance(error, BaseExceptionGroup):
        return _first(error.exceptions[0])
    if type(error).__name__ == "UpstreamError" and error.__cause__ is not None:
        return _first(error.__cause__)
    return error


def _lines(error: BaseException, run: Callable[[], object]) -> list[int]:
    """Lines that an error names: of its site, in its message, and of the program that it came through."""
    site = getattr(error, "site", None)
    named = [site.line] if site is not None and site.line else []
    named += [int(a or b) for a, b in _LINE.findall(str(error))]
    file = inspect.unwrap(run).__code__.co_filename
    if file != __file__:
        frames = extract_tb(error.__traceback__)
        named += [frame.lineno or 0 for frame in frames if frame.filename == file]
    return list(dict.fromkeys(named))
