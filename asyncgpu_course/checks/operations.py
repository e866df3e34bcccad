"""Arrays and operations to try answers on."""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache, partial
from importlib.resources import files
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_course.checks.rejection import must
from asyncgpu_course.checks.sandbox import call
from asyncgpu_course.internals import SimDevice

LearnersArray = npt.NDArray[Any]
AnyOp = agt.DeviceOp[Any]


@cache
def cuda(name: str) -> str:
    """The CUDA C of this name, in the folder ``cuda``."""
    file = files("asyncgpu_course").joinpath("exercises", "cuda", f"{name}.cu")
    return "\n" + file.read_text(encoding="utf-8").replace("MANY_BITS", f"{MANY_BITS:#x}ull")


# Its multiples are different numbers, and need all bits of their type, be that of 32 bits or of 64.
MANY_BITS = 0x9E37_79B9_9E37_79B9


def wide(number: int, bits: int = 32) -> int:
    """Return such a multiple, as `MANY_BITS * number` is in a kernel: a narrower type shows; 0 is 0."""
    return number * MANY_BITS % 2**bits


BLOCK, WARP, JOB = 128, 32, "job"
asked_before = 0  # how often a check has asked the same of an answer


def noise(seed: int, *shape: int) -> LearnersArray:
    """Normally distributed numbers, float32; others where a check asks everything a second time."""
    random = np.random.default_rng(seed + 1_000_000 * asked_before)
    return random.standard_normal(shape, dtype=np.float32)


def exact_numbers(seed: int, *shape: int) -> LearnersArray:
    """Quarters as float32, whose products and sums are exact in any order, in float32 and nothing less."""
    random = np.random.default_rng(seed + 1_000_000 * asked_before)
    return random.integers(-16, 17, shape).astype(np.float32) / 4


def filled(size: int, number: float) -> LearnersArray:
    """One number everywhere, float32."""
    return np.full(size, number, np.float32)


def own_sizes(number: int, size: int) -> list[int]:
    """Each operation has a size of its own, so that it can be told from the others under any name."""
    return [size + i for i in range(number)]


def round_trip(size: int, number: float) -> agt.DeviceOp[LearnersArray]:
    """Copy to the device and back; what comes back is `number` everywhere."""
    return agt.h2d(agt.pin(filled(size, number))).to_host()


def busy() -> None:
    """Keep one thread of the device at work for 200 us, and no copy engine: whoever waits is seen to."""
    out = agt.zeros(1).partition(32)
    long = agt.matvec_naive(1, 3000, agt.ones((1, 3000)), agt.ones(3000), out)
    long.async_on(agt.create_stream())


def job(us: float) -> Any:
    """A function that keeps the host busy, on the device of the check's, whatever thread calls it."""
    return partial(copy_context().run, agt.work, us, JOB)


def operation(name: str, given: Any) -> Any:
    """An argument of the function of this name, which an answer has to call with an operation."""
    cause = f"`{name}` takes an operation, and your function called it with {type(given).__name__}"
    must(isinstance(given, agt.DeviceOp), cause)
    return given


def computed_result(rows: int, columns: int, number: float) -> agt.DeviceOp[LearnersArray]:
    """Run kernels and copy little back; `columns` times `number` comes out, `rows` times."""
    out = agt.zeros(rows).partition(64)
    matrix, vector = agt.full((rows, columns), number), agt.ones(columns)
    return agt.matvec_naive(rows, columns, matrix, vector, out).output().to_host()


def layer(x: LearnersArray, w: agt.DeviceArray) -> AnyOp:
    """Multiply a batch on the host by weights on a device, and bring the result back."""
    (m, k), n = x.shape, w.shape[1]
    room = agt.zip(agt.h2d(x), agt.zeros((m, n)))

    def product(arrays: Any) -> AnyOp:
        out = arrays[1].partition(16, 16)
        return agt.sgemm_naive(m, n, k, 1.0, arrays[0], w, 0.0, out).output()

    return room.and_then(product).to_host()


def out_of_bounds() -> agt.DeviceOp[LearnersArray]:
    """Fails when it runs, because its kernel writes beyond its array."""
    out = agt.zeros(32).partition(32)
    return agt.Kernel(cuda("any_beyond"))(out).output().to_host()


def step_kernel(name: str) -> agt.Kernel:
    """A kernel that computes y = a * x + b, under a name of its own, so that it can be found in a trace."""
    return agt.Kernel(cuda("any_step").replace("NAME", name))


def long_step(name: str, a: float, b: float, x: agt.DeviceArray, y: agt.DeviceArray) -> AnyOp:
    """A `step` that takes long, since only `WARP` threads do all of it: 0.058 us for an element of each.

    Overlap can be seen, because a launch takes the host 28 us only.
    """
    kernel = agt.Kernel(cuda("any_long").replace("NAME", name))
    return kernel(x.size, a, b, x.borrow(), y.borrow(), grid=1, block=WARP).named(name)


def step(name: str, a: float, b: float, x: agt.DeviceArray, y: agt.DeviceArray) -> AnyOp:
    """Launch a `step_kernel` on borrowed arrays, in blocks of `BLOCK` threads."""
    kernel = step_kernel(name)
    return kernel(x.size, a, b, x.borrow(), y.borrow().partition(BLOCK)).named(name)


@contextmanager
def beside_host(
    kernel: agt.Kernel,
    *args: Any,
    packets: int = 4,
    grid: int = 1,
    block: int = 1,
    forgiven: tuple[type[Exception], ...] = (),
    all_back: bool = True,
    at_end: Callable[[], object] = lambda: None,
    **office: Any,
) -> Generator[float]:
    """Run a kernel beside a host that answers its calls, and yield how long it took, in us.

    At the end of the block packets have to be `all_back`, unless a `forgiven` error has ended the run.
    """
    device, left = cast(SimDevice, agt.current_device()), packets
    device.machine.patience_s = 0.05  # since nobody else is at work here
    taken, count = agt.pin(np.zeros(1, np.int32)), agt.Kernel(cuda("13_left"))

    async def main() -> float:
        nonlocal left
        took = 0.0
        async with agt.hostcalls(packets=packets, **office) as host:
            start = device.now()
            with suppress(*forgiven):
                await host.run(kernel(*host.arrays, *args, grid=grid, block=block))
                took = device.now() - start
                at_end()
                await host.run(count(*host.arrays, packets, agt.mapped(taken), grid=1, block=1))
                left = int(taken[0])
        return took

    yield call(main)
    cause = f"of {packets} packets {left} can be had in the end: who still holds one? It is given back when "
    cause += "its answer was read, and left when nobody wants the answer any more"
    must(left == packets or not all_back, cause)
