"""A simulated device for each answer that is tried, which a wrong kernel cannot harm."""

import asyncio
import inspect
import re
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeVar, cast
from unittest.mock import patch

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.device import CheckDevice
from asyncgpu_course.checks.own_loop import completed
from asyncgpu_course.checks.rejection import Rejected, compared, must
from asyncgpu_course.internals import find_spec, in_containers

T = TypeVar("T")
SLOW_US = 1.0
# In a `repr`, where it's another one in each run.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+\b")


@contextmanager
def private_device(**options: Any) -> Generator[agt.types.Device]:
    """A fresh simulated device as the current one: nothing has run on it, and its clock is at zero.

    `options` are those of `SimDevice`, such as ``adversary``.
    """
    with agt.using(CheckDevice(**options)) as device:
        try:
            yield device
        finally:
            # Work that nobody waited for would keep the device and its memory until much later work ends.
            with suppress(agt.DeviceError, agt.errors.NestedSyncError):  # the second in a capture
                agt.synchronize()


@contextmanager
def slow_memory(load_us: float = SLOW_US, **options: Any) -> Generator[None]:
    """A private device on which a load takes so long that long kernels are quickly simulated."""
    spec = find_spec("h200")
    spec = replace(spec, name="H200 with slow memory", load_clocks=load_us * spec.clock_mhz)
    with private_device(spec=spec, **options):
        yield


class _EachItsOwn(agt.StreamPoolRoundRobin):
    """Streams of several devices, more than an answer needs. What names no device runs on the first."""

    def __init__(self, devices: Sequence[CheckDevice]) -> None:
        super().__init__(32, devices=devices)
        self._first = devices[0]

    @property
    def home(self) -> agt.types.Device:
        return self._first

    def next_stream(self) -> agt.types.Stream:
        return self.at(self._first).next_stream()


@contextmanager
def private_fleet(size: int, **options: Any) -> Generator[Sequence[CheckDevice]]:
    """As `private_device`, so many devices of one machine, of which the first is current."""
    first = CheckDevice(**options)
    others = [CheckDevice(n, machine=first.machine, **options) for n in range(1, size)]
    first.fleet = (first, *others)
    with agt.using(first, _EachItsOwn(first.fleet)):
        yield first.fleet


def on_fresh_device(run: Callable[..., T], *args: Any) -> T:
    """The solution's run, on a device of its own: its streams then have the numbers of the learner's."""
    with private_device():
        return run(*args)


@dataclass
class Observed:
    """The result of a piece of the learner's code, and a trace of what the device did meanwhile."""

    result: Any
    trace: agt.Trace
    returned: float = 0.0  # when it returned, in us of the trace's clock


@contextmanager
def tried(run: Callable[..., T], mine: Any, model: Any, *args: Any) -> Generator[T]:
    """Yield ``run(mine, *args)``: something `Observed`, a trace, or a tuple that begins with one.

    Whatever is rejected in the block gets the timelines of this run and of the solution's, which is run only
    then.
    """
    found = run(mine, *args)

    def expected() -> agt.Trace:
        plain = all(isinstance(arg, int | float | None) for arg in args)
        return (_of_solution if plain else _of_solution.__wrapped__)(run, model, *args)

    with compared(_trace(found), expected):
        yield found


@lru_cache(maxsize=4)  # because a learner who is wrong once is wrong again
def _of_solution(run: Callable[..., Any], model: Any, *args: Any) -> agt.Trace:
    return _trace(on_fresh_device(run, model, *args))


def _trace(found: Any) -> agt.Trace:
    first = cast(Any, found[0]) if isinstance(found, tuple) else found
    return first if isinstance(first, agt.Trace) else first.trace


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call the learner's code; whatever it raises becomes the cause of a `Rejected`.

    A coroutine is run to its end, in an event loop of its own. Lists are copies, as the caller needs its own.
    """
    if not callable(function):
        cause = f"a function is wanted here, and this is {brief(function)}: write it "
        raise Rejected(cause + "with `def`, and hand it over without calling it")
    given = [cast(Any, arg).copy() if isinstance(arg, list) else arg for arg in args]
    with told(), left_whole(*given, *(arg.spans for arg in given if isinstance(arg, agt.Trace))):
        result = function(*given)
        if inspect.iscoroutine(result):
            sleep, nap = time.sleep, partial(_nap, time.sleep, threading.get_ident())
            modules = time, sys.modules["__main__"], inspect.getmodule(function)
            with ExitStack() as renamed:  # by whatever name a cell has it
                for place in {id(m): m for m in modules if m is not None}.values():
                    for name in [name for name, known in vars(place).items() if known is sleep]:
                        renamed.enter_context(patch.object(place, name, nap))
                result = completed(result)
        return result


@contextmanager
def left_whole(*args: Any) -> Generator[None]:
    """Refuse to have a list among these arguments sorted, or things taken out, or a dictionary changed."""
    given = [(cast(Any, a), cast(Any, a).copy()) for a in args if isinstance(a, list | dict)]
    yield
    cause = "your function changes its caller's dict: look things up in it, and leave it as it is"
    must(all(isinstance(arg, list) or arg.keys() == was.keys() for arg, was in given), cause)
    cause = "your function takes things out of its caller's list: go through it with a `for` "
    must(all(len(arg) >= len(was) for arg, was in given), cause + "instead")
    cause = "your function puts its caller's list into another order: `sorted` makes a new one "
    ids = [([*map(id, arg)], [*map(id, was)]) for arg, was in given]
    must(all(now == before or {*now} != {*before} for now, before in ids), cause + "instead")


def _nap(sleep: Callable[[float], None], home: int, seconds: float) -> None:
    """Sleep, unless in a task of that thread's: the virtual clock would not notice that it blocks."""
    cause = "`time.sleep` blocks the event loop, and with it every other task"
    must(threading.get_ident() != home or asyncio.current_task() is None, cause)
    sleep(seconds)


def observe(function: Callable[..., Any], *args: Any) -> Observed:
    """Call the learner's code and record it. To be used on a `private_device`.

    Arrays of the result are copied as it returns. A recording waits for the device when it ends, and what
    fails by then counts as the learner's, too. Whatever is rejected has the trace of what was done by then.
    """
    device, trace = agt.current_device(), None
    try:
        with told(), agt.record() as trace:
            begun = device.now()
            result = held(call(function, *args))
            returned = device.now() - begun
    except Rejected as rejected:
        rejected.got = trace
        raise
    return Observed(result, trace, returned)


def held(result: Any) -> Any:
    """A result with copies of its arrays, of which a copy from the device may still be writing some."""
    return in_containers(lambda x: np.array(x) if isinstance(x, np.ndarray) else x, result)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]


# What is said of an error beside its own first line, for which `{}` stands.
_ELSEWHERE = (
    "{}. If it comes from another cell: an answer is tried on a device of its own, so make streams, policies "
    "and arrays in it"
)
_CAUSES = (
    ((MemoryError, agt.errors.OutOfMemoryError), "{}"),  # which say nothing of the answer
    (agt.errors.NotReadyError, "a result was read before the device was done with it: {}"),
    (agt.errors.DeviceMismatchError, _ELSEWHERE),
    (asyncio.CancelledError, "your code asked a cancelled task for its result"),
    (asyncio.InvalidStateError, "a task was asked for its result before it was done: `await` it"),
)
_TUPLE = "`zip` and `overlap` yield one tuple, which "
_CURES = {
    "'tuple' object has no attribute": _TUPLE + "has to be taken apart first",
    r"<lambda>\(\) missing \d+ required pos": _TUPLE + "is the only argument of your function",
    "different event loop": "somebody else's loop has used it before, so make it anew in each call",
}


@contextmanager
def told(usual: str = "{}") -> Generator[None]:
    """Make whatever is raised in the block the cause of a `Rejected`, in words that `_CAUSES` may have."""
    try:
        yield
    except (Rejected, KeyboardInterrupt):
        raise
    except BaseException as error:  # a learner's code may raise anything
        said = next((said for kind, said in _CAUSES if isinstance(error, kind)), usual)
        if said is _ELSEWHERE and len(getattr(agt.current_device(), "fleet", ())) > 1:
            said = usual  # more likely from another device of the check's
        text = one_line(error)
        cures = [f": {cure}" for slip, cure in _CURES.items() if re.search(slip, text)]
        raise Rejected("".join([said.format(text), *cures])) from error


@asynccontextmanager
async def neighbour(most: int) -> AsyncGenerator[Callable[[], int]]:
    """Another task beside those of the block: it says how many turns it has had, and ends after `most`."""
    had = 0

    async def take_turns() -> None:
        nonlocal had
        while had < most:
            had += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(take_turns())
    try:
        yield lambda: had
    finally:
        await task


@contextmanager
def no_pauses() -> Generator[None]:
    """Make each pause of asyncio a mere turn of the loop: however long it is, a device may take longer."""
    plain = asyncio.sleep

    def turn(_delay: float, result: Any = None) -> Any:
        return plain(0, result)

    with patch.object(asyncio, "sleep", turn):
        yield


def one_line(error: BaseException) -> str:
    """An exception in one line: its own first line, with its type where that says more."""
    if isinstance(error, ExceptionGroup):  # a TaskGroup wraps whatever went wrong in it
        first = cast(ExceptionGroup[Exception], error).exceptions[0]
        return f"your code raised an ExceptionGroup, in which there is this: {one_line(first)}"
    if isinstance(error, MemoryError):
        return (
            "the memory of this machine is full, so nothing was checked: drop what earlier cells have left "
            "there (`del x`), or restart the kernel, and check again"
        )
    text = _ADDRESS.sub("", str(error).partition("\n")[0])
    asked = error.obj if isinstance(error, AttributeError) else None
    if isinstance(error, AttributeError) and isinstance(asked, agt.DeviceOp | agt.DeviceFuture):
        if isinstance(asked, agt.DeviceFuture):
            return f"a future has no `{error.name}`: `await` it, and ask what comes out"
        if error.name == "output":
            return "`output` belongs to a launch: write `.output()` right behind the call of the kernel"
        return f"an operation has no `{error.name}`: run it first, or use `and_then`, and ask what comes out"
    line = getattr(getattr(error, "site", None), "line", None)
    where = f" (line {line} of the kernel)" if line is not None else ""
    if isinstance(error, agt.errors.AsyncGpuError):
        return f"{text}{where}"
    return f"your code raised {type(error).__name__}: {text}"


def brief(thing: Any) -> str:
    """A few words on something that an answer gave, with its type."""
    kind = type(thing).__name__
    if isinstance(thing, asyncio.Future):  # the state that it is in by now is the check's own doing
        return f"a {kind}: `await` it"
    if isinstance(thing, agt.types.HostArray):
        return f"a {kind}: wait for the device, and then `.numpy()` gives the array"
    text = _ADDRESS.sub("", repr(thing).partition("\n")[0])
    return f"{text if len(text) <= 50 else text[:47] + '...'} ({kind})"
