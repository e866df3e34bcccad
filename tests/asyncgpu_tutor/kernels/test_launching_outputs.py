"""`Launch.output()`: the array that a kernel writes, and nothing else; and facts that name wrong things."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from tests.laws.kernels import ADD, SCALE, kernel

N = 40
SPLIT = r"""
extern "C" __global__ void split(unsigned int n, const float* x, float* half, float* rest) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { half[i] = 0.5f * x[i]; rest[i] = x[i] - 0.5f * x[i] + 1.0f; }
}
"""
LOOK = 'extern "C" __global__ void look(const float* x, int n) { }'


def ready(number: float = 1.0) -> agt.DeviceArray:
    return agt.full((N,), number).sync()


def test_it_is_the_launch_itself(device: Device) -> None:
    launch = kernel(SCALE)(N, 3.0, ready(), ready(0).partition(32))
    assert launch.output() is launch
    assert launch.named("mine").to_host().sync().tolist() == [3.0] * N


@pytest.mark.parametrize("mode", ["owned", "borrowed", "partition", "partition of a borrowed one"])
def test_in_the_mode_in_which_it_was_given(device: Device, mode: str) -> None:
    owner = ready(0)
    given: Any = owner if mode in ("owned", "partition") else owner.borrow()
    given = given.partition(32) if "partition" in mode else given
    y = kernel(SCALE)(N, 3.0, ready(), given, grid=2, block=32).output().sync()
    assert (type(y), y.shape) == (agt.DeviceArray, (N,))
    assert y.mode == ("borrowed" if "borrowed" in mode else "owned")
    assert agt.d2h(y).sync().tolist() == [3.0] * N
    assert owner.moved == (mode in ("owned", "partition"))


INPUTS: dict[str, Callable[[], Any]] = {
    "array": lambda: ready(2), "operation": lambda: agt.full((N,), 2.0),
    "shared array": lambda: ready(2).share(), "shared operation": lambda: agt.full((N,), 2.0).shared(),
}  # fmt: skip


@pytest.mark.parametrize("target", [lambda: ready(0), lambda: agt.zeros((N,))])
@pytest.mark.parametrize("given", INPUTS)
def test_arrays_and_operations_alike(device: Device, given: str, target: Callable[[], Any]) -> None:
    for by, name in ((agt.value(5.0), None), (5.0, "y")):
        op = kernel(SCALE)(N, by, INPUTS[given](), target().partition(32)).output(name)
        assert op.to_host().sync().tolist() == [10.0] * N


def test_of_several_it_needs_a_name(device: Device) -> None:
    split = agt.Kernel(SPLIT)

    def launch() -> Any:
        return split(N, ready(4), ready(0).partition(32), ready(0).partition(32))

    assert launch().output("half").to_host().sync().tolist() == [2.0] * N
    assert launch().output("rest").to_host().sync().tolist() == [3.0] * N
    assert launch().output("x").to_host().sync().tolist() == [4.0] * N  # any of its arrays
    op = launch()
    with pytest.raises(UsageError, match=r"split\(\) writes 'half', 'rest': say which"):
        op.output()
    for name in ("n", "quarter", ""):
        with pytest.raises(UsageError, match=rf"no array '{name}': its arrays are x, half, rest"):
            op.output(name)
    assert len(op.sync()) == 3  # a wrong call has changed nothing


def test_one_that_writes_nothing_has_none(device: Device) -> None:
    with pytest.raises(UsageError, match=r"look\(\) writes no array: say which"):
        agt.Kernel(LOOK)(ready(), N, grid=1, block=1).output()
    x = agt.Kernel(LOOK)(ready(), N, grid=1, block=1).output("x").sync()
    assert agt.d2h(x).sync()[0] == 1


BEFORE: dict[str, Callable[[Any], object]] = {
    "output": lambda launch: launch.output(), "output by name": lambda launch: launch.output("x"),
    "zip": agt.zip, "map": lambda launch: launch.map(len), "run": lambda launch: launch.sync(),
    "first": lambda launch: launch.first(),
}  # fmt: skip


@pytest.mark.parametrize("before", BEFORE)
def test_it_is_called_once_and_first(device: Device, before: str) -> None:
    launch = kernel(SCALE)(N, 3.0, ready(), ready(0).partition(32))
    BEFORE[before](launch)
    for name in (None, "y"):
        with pytest.raises(UsageError, match=r"call output\(\) once, before anything"):
            launch.output(name)


def test_it_yields_no_tuple_any_more(device: Device) -> None:
    op: Any = kernel(SCALE)(N, 3.0, ready(), ready(0).partition(32)).output()
    with pytest.raises(UsageError, match="say unzip"):
        op.unzip()
    with pytest.raises(UsageError, match="not a tuple"):
        op.last().sync()
    plain = kernel(SCALE)(N, 3.0, ready(), ready(0).partition(32))
    assert len(plain.unzip()) == 2


# ---------------------------------------------------------------------- facts
@pytest.mark.parametrize(
    ("name", "shape"),
    [("z", ("n",)), ("n", ("n",)), ("x", ("m",)), ("x", ("y",)), ("y", ("n", "x"))],
)
def test_shapes_that_name_what_is_not_there_are_refused(
    device: Device, name: str, shape: tuple[str, ...]
) -> None:
    said = re.escape(f"shapes of scale() says {name!r}: {shape}, ")
    with pytest.raises(UsageError, match=said + r".*\(n, by, x, y\)"):
        agt.Kernel(SCALE.source, shapes={"x": ("n",), name: shape})


def test_shapes_of_two_sizes_are_those_of_the_array(device: Device) -> None:
    add = agt.Kernel(
        'extern "C" __global__ void f(int m, int n, const float* x, float* y) '
        "{ y[threadIdx.x] = x[threadIdx.x]; }",
        shapes={"x": ("m", "n"), "y": ("m",)},
    )
    x, y = agt.ones((2, 3)).sync(), agt.zeros((2, 1)).sync()
    op = add(2, 3, x.borrow(), y.borrow(), grid=1, block=2)
    assert op.output().to_host().sync()[0] == 1
    for m, n in ((3, 2), (6, 1), (2, 4)):
        with pytest.raises(agt.errors.ArrayShapeError, match=rf"called with m={m}, n={n}, so 'x'"):
            add(m, n, x.borrow(), y.borrow(), grid=1, block=2)
    with pytest.raises(agt.errors.ArrayShapeError, match="'x' must have shape"):
        add(2, 3, x.borrow().reshape(6), y.borrow(), grid=1, block=2)


# ---------------------------------------------------------------------- share counts
def test_share_counts_rise_with_what_is_built_and_fall_when_it_is_done(device: Device) -> None:
    x = ready().share()
    assert x.share_count == 1
    built = [kernel(ADD)(N, x, x, agt.zeros((N,)).sync().partition(32)) for _ in range(3)]
    assert x.share_count == 1 + 3 * 2
    stream = agt.create_stream()
    results = [op.async_on(stream) for op in built]
    assert x.share_count == 1 + 3 * 2 + 3  # each has given one handle back
    results.clear()
    built.clear()
    if device.simulated:  # nothing was waited for, so its clock has not moved on
        assert x.share_count == 1 + 3 * 2
    agt.synchronize()
    assert x.share_count == 1


def test_an_operation_that_is_thrown_away_shares_no_more(device: Device) -> None:
    x = ready().share()
    op = kernel(SCALE)(N, 1.0, x, agt.zeros((N,)).partition(32)).output()
    download = agt.d2h(x)
    assert x.share_count == 3
    del op, download
    assert x.share_count == 1


def test_a_host_result_that_is_kept_shares_no_more_when_its_run_is_over(device: Device) -> None:
    x = ready().share()
    host = agt.d2h(x).async_on(agt.create_stream())
    agt.synchronize()
    assert (x.share_count, host.shape) == (1, (N,))
