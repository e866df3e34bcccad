"""Programs of the host, and the few kernels that they share.

`bug` and `sound` decorate a Python function, or an ``async def``, for which a fresh
simulated device is current in `agt`. A function may ask for a device of `simgpu` by its parameters, and is
waited for at its end: `device`, streams `one` to `four`, arrays `x`, `y` and `z` of zeros, and `host`, a
page-locked array of ones.
"""

import asyncio
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
import asyncgpu_tutor.serving.hostcalls
import simgpu
from asyncgpu_tutor.kernels.files import include_headers
from benchmarks.hazards.case import MARK, Case, expected, headed

SIZE = 64  # elements of each array

SOURCE = Path(__file__).with_name("host.cu").read_text("utf-8")


def bug(finds: str, why: str) -> Callable[[Callable[..., object]], Case]:
    """Make a case of a Python function that has a mistake; its name is the function's."""

    def decorate(program: Callable[..., object]) -> Case:
        case = _case(program, why, finds)
        assert case.marked, f"{case.name!r} marks no line: {MARK}"
        return case

    return decorate


def sound(why: str) -> Callable[[Callable[..., object]], Case]:
    """Make a case of a Python function that is right, and looks as if it were not."""
    return lambda program: _case(program, why)


def _case(program: Callable[..., object], why: str, finds: str = "") -> Case:
    lines, first = inspect.getsourcelines(program)
    name, names = program.__name__.replace("_", " "), inspect.signature(program).parameters

    @wraps(program)
    def run() -> object:
        if not names:
            return program()
        device = simgpu.Device()
        given: dict[str, object] = {"device": device}
        for wanted in names:
            if wanted in ("one", "two", "three", "four"):
                given[wanted] = device.create_stream(non_blocking=True)
            elif wanted != "device":
                given[wanted] = pinned(device, 1.0) if wanted == "host" else array(device)
        program(*(given[wanted] for wanted in names))
        return device.synchronize()

    return Case(name, "".join(lines), run, *expected(finds), why, first)


def array(device: simgpu.Device, value: float = 0.0, dtype: str = "float32") -> Any:
    """An array that is there, with this value, before anything else happens."""
    made = simgpu.asarray(np.full(SIZE, value, dtype), device)
    device.synchronize()
    return made


def pinned(device: simgpu.Device, value: float = 0.0) -> Any:
    """A page-locked host array."""
    host = device.pinned((SIZE,), np.dtype("float32"))
    host[:] = value
    return host


def run(name: str, stream: Any, *args: object) -> None:
    """Launch a kernel of `SOURCE` with a block of a thread for each element."""
    simgpu.RawKernel(SOURCE, name)(1, SIZE, args, stream=stream)


def upload(stream: Any, y: Any, host: Any) -> None:
    """As ``cudaMemcpyAsync``, to the device."""
    y.device.copy_from_host_async(y.memory, host, stream)


def download(stream: Any, host: Any, x: Any) -> None:
    """As ``cudaMemcpyAsync``, to the host."""
    x.device.copy_to_host_async(host, x.memory, stream)


def copy(stream: Any, y: Any, x: Any) -> None:
    """As ``cudaMemcpyAsync``, on the device."""
    x.device.copy_from_device_async(y.memory, x.memory, x.nbytes, stream)


def clear(stream: Any, y: Any) -> None:
    """As ``cudaMemsetAsync`` with 0."""
    y.device.memset_async(y.memory, 0, y.nbytes, stream)


# -- the same by operations of the tutor


def op(name: str, *args: Any) -> Any:
    """An operation that launches a kernel of `SOURCE`; arrays are borrowed."""
    kernel = agt.Kernel(SOURCE, name)
    lent = [arg.borrow() if isinstance(arg, agt.DeviceArray) else arg for arg in args]
    return kernel(*lent, grid=1, block=SIZE).named(name)


def full(value: float = 0.0, name: str | None = None) -> agt.DeviceArray:
    """An array of the current device that is there, with this value."""
    return agt.full((SIZE,), value, name=name).sync()


def locked(value: float = 0.0) -> Any:
    """A page-locked array of the host."""
    return agt.pin(np.full(SIZE, value, np.float32))


def asks_once(host: Any) -> Any:
    """An operation that asks service 16 of this host."""
    source = """#include "hostcall.cuh"
__global__ void ask(unsigned long long* mail, unsigned long long* stack) {
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long got = 0;
    hostcall(host, 16, 0, 0, 0, got);
}"""
    return agt.Kernel(source)(*host.arrays, grid=1, block=1)


def asking(
    finds: str = "", *, grid: int = 2, block: int = 1, packets: int = 4
) -> Callable[[str], Case]:
    """A kernel that calls the host by hostcall.cuh; service 16 answers."""

    def make(program: str) -> Case:
        name, why, body = headed(program)
        source = f"""#include "hostcall.cuh"
__global__ void ask(unsigned long long* mail, unsigned long long* stack, unsigned long long* out) {{
    Hostcalls host = hostcalls(mail, stack);
    int me = blockIdx.x;
{body}
}}"""
        source = include_headers(source)  # lines count in what is compiled

        async def call_the_host() -> None:
            sys.modules["asyncgpu_tutor.serving.hostcalls"].TURNS = 2_000  # type: ignore[attr-defined]  # a kernel gives up after so many turns: minutes, else
            out = agt.zeros(SIZE, np.uint64, "out").sync()
            async with agt.hostcalls({16: lambda call: call.a + 1}, packets=packets) as host:
                kernel = agt.Kernel(source)
                await host.run(kernel(*host.arrays, out.borrow(), grid=grid, block=block))
            agt.d2h(out).sync()

        return Case(name, source, call_the_host, *expected(finds), why)

    return make


def by_letter(
    finds: str = "", *, mail: str = "volatile unsigned* mail", grid: int = 1, block: int = 1
) -> Callable[[str], Case]:
    """A kernel that asks the host by words that both see: a flag, a question and its answer."""

    def make(program: str) -> Case:
        name, why, body = headed(program)
        source = f"""__global__ void ask({mail}, unsigned* out) {{
{body}
}}"""

        async def call_the_host() -> None:
            letters, out = agt.pin(np.zeros(4, np.uint32)), agt.zeros(SIZE, np.uint32, "out").sync()
            given = agt.mapped(letters, "mail"), out.borrow()
            kernel = agt.Kernel(source)(*given, grid=grid, block=block)

            async def host() -> None:
                while letters[0] != 1:
                    await agt.sleep(1)
                letters[2] = 2 * letters[1]
                letters[0] = 2

            answering = asyncio.create_task(host())
            await kernel
            answering.cancel()
            assert agt.d2h(out).sync()[0] == 42, "the answer is wrong"

        return Case(name, source, call_the_host, *expected(finds), why)

    return make
