"""The threads of a launch, step by step: which elements they touch, and how that is drawn."""

import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.errors import OutOfBoundsError, RaceError, UninitialisedReadError
from asyncgpu_tutor.traces.pictures.scene import text_width

pytestmark = pytest.mark.usefixtures("sim")
TWICE = """extern "C" __global__ void twice(int n, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[n - 1 - i];
}"""
TURNED = """extern "C" __global__ void turned(int n, const float* x, float* y) {
    __shared__ float t[32];
    t[threadIdx.x] = x[threadIdx.x];
    BARRIER
    y[threadIdx.x] = t[31 - threadIdx.x];
}"""
X = np.arange(40, dtype=np.float32)


def seen(source: str, n: int, x: np.ndarray = X, **shape: Any) -> agt.types.Threads:
    return agt.show_threads(agt.Kernel(source), n, x, np.zeros_like(x), **shape)


def test_an_array_that_is_given_twice_is_one() -> None:
    """As for the kernel itself: it reads what it wrote there, and can race with itself."""
    head = "__global__ void k(float* x, float* y) { int i = threadIdx.x;"
    source, shift = (
        f"{head} {body} }}" for body in ("x[i] = 5; if (y[i] != 5) y[999] = 0;", "y[i] = x[i ^ 1];")
    )
    x = np.arange(32, dtype=np.float32)
    handle = agt.h2d(x).sync()
    for given in ((x, x), (handle, handle), (handle.borrow(), handle.borrow())):
        assert agt.show_threads(agt.Kernel(source), *given, grid=1, block=32).watched.fault is None
        found = agt.show_threads(agt.Kernel(shift), *given, grid=1, block=32)
        assert isinstance(found.watched.fault, RaceError)


def test_each_access_is_a_step_with_its_threads_and_elements() -> None:
    found = seen(TWICE, 40, grid=2, block=32)
    read, write = found.steps
    assert (read.line, read.array, read.write) == (3, "x", False)
    assert (write.line, write.array, write.write) == (3, "y", True)
    assert read.threads.tolist() == write.elements.tolist() == list(range(40))
    assert read.elements.tolist() == list(range(39, -1, -1))
    assert found.step(0).startswith("Step 1 of 2, line 3: if (i < n) y[i] =")
    assert found.step(0).splitlines()[1] == "40 threads read x, 24 idle"
    assert "24 threads that touch nothing" in repr(found)
    assert seen(TWICE, 9, X[:9], grid=3, block=4).svg(0).count('"agt-number"') == 12 + 9 + 9
    for step, css in enumerate(("agt-reads", "agt-writes")):  # its threads, and its elements
        svg = seen(TWICE, 9, X[:9], grid=3, block=4).svg(step)
        assert [path.count("M") for path in re.findall(rf'<path class="{css}" d="(.*?)"', svg)] == [
            9,
            9,
        ]
    assert "\n1 thread writes y, 31 idle" in seen(TWICE, 1, X[:1], grid=1, block=32).step(1)


def test_nothing_that_was_given_is_changed_and_no_device_is_used() -> None:
    x, y = agt.h2d(X).sync(), agt.zeros(40).sync()
    with agt.record() as trace:
        agt.show_threads(agt.Kernel(TWICE), 40, X, X, grid=2, block=32)
    agt.show_threads(agt.Kernel(TWICE), 40, x, y.borrow().partition(32))
    assert trace.device_spans == []
    assert X.tolist() == list(range(40))
    assert not agt.d2h(y).sync().any()


def test_variables_hold_what_the_program_has_set_and_the_launch_changes_none() -> None:
    kernel = agt.Kernel(
        """__constant__ int shift[2]; __constant__ int unset; __device__ int count;
        __global__ void k(float* x) { x[threadIdx.x + shift[1] + atomicAdd(&count, 1)] = 1; }
        __global__ void reads(float* x) { x[0] = unset; }""",
        "k",
    )
    kernel.constants["shift"], kernel.constants["count"] = [0, 4], 2
    found = agt.show_threads(kernel, X, grid=1, block=1)
    assert (found.watched.fault, found.steps[-1].elements.tolist()) == (None, [6])
    assert kernel.constants["count"] == 2
    assert len(agt.show_warps(kernel, X, grid=1, block=1).timeline.warps) == 1
    reads = agt.Kernel(kernel.source, "reads")
    found = agt.show_threads(reads, X, grid=1, block=1)
    assert isinstance(found.watched.fault, UninitialisedReadError)


def test_an_access_out_of_bounds_is_shown_at_the_very_thread() -> None:
    found = seen(TWICE.replace("i < n", "i <= n").replace("n - 1 - i", "i"), 40, grid=2, block=32)
    assert isinstance(found.watched.fault, OutOfBoundsError)
    assert found.watched.culprits == [40]
    svg = found.svg(len(found.steps) - 1)
    assert 'class="agt-wrong-link"' in svg
    assert "x[40] does not exist" in svg
    assert 'class="agt-wrong-link"' not in seen(TWICE, 40, grid=2, block=32).svg(0)
    unguarded = TWICE.replace("if (i < n)", "").replace("n - 1 - i", "i")
    two = seen(unguarded, 30, X[:30], grid=1, block=32)
    assert two.step(0).splitlines()[1] == "32 threads read x, 2 of them out of bounds, 0 idle"
    assert "x[30] to x[31] do not exist" in two.svg(0)
    named = re.sub(r"(?<!\.)\bx\b", "temperatures_of_yesterday", unguarded)
    words = re.search(
        r'agt-bad" x="(\d+)" y="\d+">([^<]*exist)<',
        seen(named, 30, X[:30], grid=1, block=32).svg(0),
    )
    below = seen(TWICE.replace("n - 1 - i", "i - 2"), 40, grid=2, block=32).svg(0)
    squares = re.findall(r'"agt-wrong" d="([^"]*)"', below)
    assert min(float(x) for path in squares for x in re.findall(r"M(-?[\d.]+)", path)) >= 0
    assert words is not None
    assert int(words[1]) + text_width(words[2], 13) <= 760


def test_a_race_names_both_threads() -> None:
    good = seen(TURNED.replace("BARRIER", "__syncthreads();"), 32, X[:32], grid=1, block=32)
    bad = seen(TURNED.replace("BARRIER", ""), 32, X[:32], grid=1, block=32)
    assert good.watched.fault is None
    assert [step.array for step in good.steps] == ["x", "t", "t", "y"]
    assert isinstance(bad.watched.fault, RaceError)
    first, second = bad.watched.culprits
    assert first + second == 31
    assert bad.svg(len(bad.steps) - 1).count('class="agt-wrong-link"') == 2


def test_atomics_are_seen_too() -> None:
    counting = """extern "C" __global__ void count(int n, const float* x, float* y) {
        atomicAdd(&y[threadIdx.x % 2], 1.0f);
    }"""
    (step,) = seen(counting, 40, grid=1, block=32).steps
    assert (step.array, step.write) == ("y", True)
    assert step.elements.tolist() == [0, 1] * 16


def test_stills_and_the_live_view_say_what_they_show() -> None:
    found = seen(TWICE, 40, grid=2, block=32, lesson="Look!")
    for number in range(2):
        root = ET.fromstring(found.svg(number))
        assert root.get("role") == "img"
        assert found.step(number).splitlines()[1] in (root.get("aria-label") or "")
    assert found._repr_html_().count("<svg") == 2
    view = json.loads(json.dumps(found._view()))
    assert [step["line"] for step in view["steps"]] == [3, 3]
    assert view["steps"][0]["verb"] == "reads"
    assert view["lesson"] == found.words[:5] == "Look!"
    assert "an atomic" not in view["svg"]
    assert (len(view["steps"][0]["links"]), len(view["at"])) == (40, 64)


@pytest.mark.parametrize("shape", [((2, 2), (8, 8)), (4, 1024), (1, 7), ((1, 1), (4, 4, 4))])
def test_all_cells_are_within_the_picture(shape: tuple[Any, Any]) -> None:
    x = np.zeros(4096, np.float32)
    found = agt.show_threads(agt.Kernel(TWICE), 4096, x, x, grid=shape[0], block=shape[1])
    height = float(ET.fromstring(found.svg(0)).get("viewBox", "").split()[3])
    for cells in found._places.values():
        assert (cells.at >= 0).all()
        assert (cells.at[:, 0] + cells.size <= 760).all()
        assert (cells.at[:, 1] + cells.size <= height).all()
        assert len(np.unique(cells.at, axis=0)) == len(cells.at)


@pytest.mark.parametrize(
    ("args", "shape", "says"),
    [
        ((40, X), {"grid": 1, "block": 32}, "takes 3 arguments .n, x, y., and got 2"),
        ((40, X, X), {"grid": 100, "block": 64}, "at most 4096, and this launch has 6400"),
        ((40, [1.0], X), {"grid": 1, "block": 32}, "give it a NumPy array"),
        ((40, X.astype(float), X), {"grid": 1, "block": 32}, "astype"),
        ((40, X, X), {}, "does not know how many threads"),
    ],
)
def test_what_cannot_be_shown(args: tuple[object, ...], shape: dict[str, int], says: str) -> None:
    with pytest.raises(agt.errors.AsyncGpuError, match=says):
        agt.show_threads(agt.Kernel(TWICE), *args, **shape)


def test_steps_beyond_the_most_are_counted() -> None:
    loop = TWICE.replace("if (i < n)", "for (int k = 0; k < 100; k++) if (i < n)")
    found = seen(loop, 40, grid=2, block=32)
    assert len(found.steps) == 80
    assert found.watched.left_out == 120
    assert "120 more" in found.words


def test_a_loop_is_gone_through_turn_by_turn() -> None:
    a = np.ones((8, 8), np.float32)
    given = 8, 8, 8, 1.0, a, a, 0.0, a.copy()
    found = agt.show_threads(agt.sgemm_naive, *given, grid=(1, 1), block=(8, 8))
    turns = [step for step in found.steps if step.array == "b"]
    assert len(turns) == 8
    assert [step.elements[0] for step in turns] == list(range(0, 64, 8))


def test_names_of_small_arrays_are_beside_each_other() -> None:
    head = "__global__ void copy_one(const float* the_first, const float* the_second, float* out)"
    kernel = agt.Kernel(head + "{ out[threadIdx.x] = the_first[0] + the_second[0]; }")
    one = np.ones(1, np.float32)
    svg = ET.fromstring(agt.show_threads(kernel, one, one, one, grid=1, block=1).svg(0))
    names = [(float(t.get("x", 0)), t.text or "") for t in svg.iter() if ": 1" in (t.text or "")]
    assert [name for _, name in names] == ["the_first: 1", "the_second: 1", "out: 1"]
    assert all(x + text_width(name, 11) <= y for (x, name), (y, _) in pairwise(names))
    (title,) = (t.text or "" for t in svg.iter() if "agt-title" in t.get("class", ""))
    assert title.endswith("\u2026")


BULK = r"""
#include <cuda/barrier>
extern "C" __global__ void bulk(const volatile float* w, const float* x, float* y)
{
    __shared__ __align__(16) float tile[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> full;
    if (threadIdx.x == 0) init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, x + 4, cuda::aligned_size_t<16>(256), full);
        (void)cuda::device::barrier_arrive_tx(full, 1, 256);
    }
    full.wait_parity(0);
    y[threadIdx.x] = threadIdx.x < 32 ? tile[threadIdx.x] : w[threadIdx.x];
}
"""


def test_a_bulk_copy_is_one_thread_that_goes_through_many_elements() -> None:
    x = np.ones(68, np.float32)
    found = agt.show_threads(agt.Kernel(BULK), x, x, x.copy(), grid=1, block=64)
    read, *_ = [step for step in found.steps if step.array == "x"]
    put, *_ = [step for step in found.steps if step.array == "tile" and step.write]
    assert (read.apart, read.write, read.size) == (True, False, 4)
    assert (put.apart, put.met, found.steps[-1].met) == (True, 1, 2)
    assert read.elements.tolist() == [*range(4, 68)]
    assert put.elements.tolist() == [*range(64)]
    assert {*read.threads.tolist()} == {0} == {*put.threads.tolist()}
    assert [step.array for step in found.steps if step.volatile] == ["w"]
    assert found.steps[-1].clocks.min() > put.clocks.max()


SMALL = np.ones((4, 6), np.float32)
PICTURES: dict[str, tuple[str, tuple[Any, ...], tuple[Any, Any]]] = {
    "two steps": (TWICE, (40, X, X), (2, 32)),
    "a race": (TURNED.replace("BARRIER", ""), (32, X, X), (1, 32)),
    "a grid of blocks": (TWICE, (24, SMALL, SMALL), ((2, 3), (4, 2))),
    "more steps than are shown": (
        TWICE.replace("if", "for (int k = 0; k < 99; k++) if"),
        (4, X, X),
        (1, 8),
    ),
    "no step": (TWICE, (0, X, X), (1, 4)),
    "many blocks": (TWICE, (4096, np.ones(4096, np.float32), np.ones(4096, np.float32)), (4096, 1)),
    "an atomic": (
        TWICE.replace("y[i] =", "atomicAdd(&y[i % 2],").replace("];", "]);"),
        (40, X, X),
        (2, 32),
    ),
    "out of bounds, twice": (TWICE.replace("n - 1 - i", "i - 2"), (40, X, X), (2, 32)),
    "a far element": (TWICE.replace("y[i]", "y[999 * (i > 3)]"), (9, X, SMALL), (3, 4)),
    "a large array": (TWICE, (40, np.ones((300, 70), np.float32), X), (2, 32)),
    "a step of each kind": (BULK, (np.ones(68, np.float32),) * 3, (1, 64)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_stay_as_they_were_looked_at(name: str, tell: Callable[[str], None]) -> None:
    source, given, (grid, block) = PICTURES[name]
    given = tuple(np.array(arg) if isinstance(arg, np.ndarray) else arg for arg in given)
    found = agt.show_threads(agt.Kernel(source), *given, grid=grid, block=block, lesson=name)
    parts = found._repr_html_(), json.dumps(found._view())
    drawn = [hashlib.sha256(part.encode()).hexdigest()[:8] for part in parts]
    tell(f"{found.words} {len(found._telling())} stills: {drawn[0]}. Live: {drawn[1]}")
