"""The warps of a block over time: held against the launch's time in a trace, and against the model's sums."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_course import solved
from asyncgpu_course.ladder import RUNGS
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.inspection.warps import BlockTimeline, Warps, WarpState
from asyncgpu_tutor.traces.pictures.scene import text_width
from simgpu.times import chain_waits, round_clocks

pytestmark = pytest.mark.usefixtures("sim")
SMS = 132
IN_TURN = """extern "C" __global__ void in_turn(int n, const float* x, float* y) {
    __shared__ float tile[256];
    int me = threadIdx.x;
    for (int t = blockIdx.x; t < n / 256; t += gridDim.x) {
        tile[me] = x[t * 256 + me];
        __syncthreads();
        y[t * 256 + me] = tile[(me + 255) % 256] + tile[me] + tile[(me + 1) % 256];
        __syncthreads();
    }
}"""
UNEVEN = """extern "C" __global__ void uneven(int n, float* x) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[me];
    if (threadIdx.x / 32 == 2) for (int i = 0; i < n; i++) v = v * 0.5f + 1.0f;
    __syncthreads();
    x[me] = v;
}"""
STORE = "__global__ void k(float* x) { x[threadIdx.x] = 1.0f; }"
NINE = np.ones(9 * SMS * 256, np.float32)
A = np.ones((256, 256), np.float32)
OF_RUNGS = {rung.name: rung for rung in RUNGS}


def launches(name: str) -> tuple[agt.Kernel, list[Any], dict[str, Any]]:
    """A kernel, its arguments and the shape of its launch, which fits on the device at once."""
    if name in OF_RUNGS:
        rung = OF_RUNGS[name]
        shape = {"grid": rung.grid(256), "block": rung.block, "shared_mem": rung.shared}
        return agt.Kernel(rung.source), [256, A, A, A.copy()], shape
    shape = {"grid": SMS, "block": 256}
    if name == "blocks":  # which begin later than they do anything
        return agt.Kernel(STORE.replace("thread", "block")), [NINE], {"grid": 2112, "block": 96}
    if name == "uneven":
        return agt.Kernel(UNEVEN), [300, np.ones(SMS * 256, np.float32)], shape
    kernel = agt.Kernel(IN_TURN) if name == "in turn" else solved("21-next-tile")
    return kernel, [NINE.size, NINE, NINE.copy()], shape


def given(arg: Any) -> Any:
    """An argument as a launch takes it."""
    return agt.h2d(arg) if isinstance(arg, np.ndarray) else arg  # pyright: ignore[reportUnknownArgumentType] - of whatever dtype


def states(seen: agt.types.Warps, warp: int = 0) -> dict[str, float]:
    """Us in each state."""
    found = {"load": 0.0, "shared": 0.0, "compute": 0.0, "barrier": 0.0}
    for state, since, end in seen.timeline.warps[warp]:
        found[state] += end - since
    return found


ALL = ["in turn", "ahead of time", "blocks", "uneven", "coalesced", "shared", "registers", "ahead"]


@pytest.mark.parametrize("name", ALL)
def test_the_last_warp_ends_when_the_trace_says_that_the_launch_does(
    name: str, tell: Callable[[str], None]
) -> None:
    kernel, args, shape = launches(name)
    seen = agt.show_warps(kernel, *args, **shape)
    with agt.record() as trace:
        kernel(*map(given, args), **shape).sync()
    (span,) = trace.find(kernel.name)
    device = agt.current_device()
    assert isinstance(device, SimDevice)
    ends = [bars[-1][2] for bars in seen.timeline.warps]
    assert max(ends) == pytest.approx(span.duration - device.spec.launch_us, abs=1e-6)
    for bars in seen.timeline.warps:
        assert all(a[2] == b[1] and a[0] != b[0] for a, b in pairwise(bars))
        assert all(since < end for _, since, end in bars)
    shown = [f"{state} {since:.2f}" for state, since, _ in seen.timeline.warps[2][:40]]
    copies = [f"{since:.2f} to {end:.2f}" for since, end in seen.timeline.flights[2][:9]]
    tell(f"{seen.words} Warp 2: {', '.join(shown)}. Copies: {', '.join(copies)}.")


@pytest.mark.parametrize(
    "name", [name for name in ALL if name not in ("blocks", "uneven", "shared")]
)
def test_each_state_takes_as_long_as_the_model_has_it(name: str) -> None:
    """But for the one that the bound is about, which takes what is left."""
    kernel, args, shape = launches(name)
    seen = states(agt.show_warps(kernel, *args, **shape))
    with agt.microscope() as scope:
        kernel(*map(given, args), **shape).sync()
    (launch,), spec = scope[kernel.name].launches, scope.spec
    counts, time = launch.counts, launch.time
    rounds = counts.chain_load_rounds
    clocks = min(rounds, 1) * spec.first_load_clocks
    clocks += max(rounds - 1, 0) * round_clocks(spec, counts)
    work = time.bounds["latency"] - chain_waits(spec, counts, 1) / spec.clock_mhz
    barriers = counts.barriers / counts.blocks * spec.barrier_clocks
    model = {"load": clocks / spec.clock_mhz, "barrier": barriers / spec.clock_mhz, "work": work}
    found = {**seen, "work": seen["compute"] + seen["shared"]}
    bounds = {k: us for k, us in time.bounds.items() if k not in ("latency", "blocks")}
    about = "load" if max(bounds, key=bounds.__getitem__) in ("memory", "sectors") else "work"
    for state, us in model.items():
        more = time.us - spec.launch_us - sum(model.values()) if state == about else 0.0
        assert found[state] == pytest.approx(us + more, abs=1e-6)


def test_a_double_buffer_waits_in_every_other_turn_with_two_copies_under_way() -> None:
    before, ahead = (
        agt.show_warps(kernel, *args, **shape)
        for kernel, args, shape in map(launches, ("in turn", "ahead of time"))
    )
    assert (len(before.waits()), len(ahead.waits())) == (9, 5)
    assert [len(flights) for flights in before.timeline.flights] == [0] * 8
    assert [len(flights) for flights in ahead.timeline.flights] == [9] * 8
    (_, first), (since, _) = ahead.timeline.flights[0][:2]
    assert since < first
    for _, end in ahead.waits():
        assert any(
            arrived == pytest.approx(end, abs=1e-2) for _, arrived in ahead.timeline.flights[0]
        )
    assert "waits for global memory 5 times" in ahead.words
    assert "waits for later: 9" in ahead.words


def test_warps_wait_at_a_barrier_for_the_last_one() -> None:
    kernel, args, shape = launches("uneven")
    seen = agt.show_warps(kernel, *args, **shape)
    waited = [states(seen, warp)["barrier"] for warp in range(8)]
    assert waited[2] < 0.02
    assert min(waited[:2] + waited[3:]) > 0.5
    met = {seen.waits(warp, "barrier")[-1][1] for warp in range(8)}
    assert max(met) - min(met) < 1e-9


def test_nothing_that_was_given_is_changed() -> None:
    y = agt.zeros(NINE.size).sync()
    agt.show_warps(agt.Kernel(IN_TURN), NINE.size, NINE, y, grid=SMS, block=256)
    assert not agt.d2h(y).sync().any()
    assert (NINE == 1).all()


def test_the_picture_says_what_it_shows_and_has_room_for_a_few_warps() -> None:
    kernel, args, shape = launches("shared")
    seen = agt.show_warps(kernel, *args, **shape, lesson="Look!")
    root = ET.fromstring(seen.svg())
    label = root.get("aria-label") or ""
    assert label.startswith("Look! A block of shared: 32 warps, 10.57 µs on the H200 (simulated")
    assert "waits for shared memory" in label
    texts = ["".join(t.itertext()) for t in root.iter() if t.tag.endswith("text")]
    assert [t for t in texts if t.startswith("warp ")] == [f"warp {n}" for n in range(0, 32, 2)]
    assert texts[-2:] == ["waits for global memory", "waits for shared memory"]
    wide = [float(r.get("x", 0)) + float(r.get("width", 0)) for r in root.iter() if r.get("x")]
    assert max(wide) <= 760
    ticks = [float(t.get("x", 0)) for t in root.iter() if t.get("class") == "agt-tick"]
    assert ticks == sorted(ticks)
    assert "<em>Look!</em>" in seen._repr_html_()
    assert len(seen.svg()) < 1_000_000


def test_a_part_of_it_is_drawn_larger() -> None:
    kernel, args, shape = launches("in turn")
    whole = agt.show_warps(kernel, *args, **shape)
    part = agt.show_warps(kernel, *args, **shape, until=0.3)
    assert part.timeline == whole.timeline
    assert "measured), of which the first 0.30 are shown. Warp 0" in part.words
    assert whole.svg().count("<rect") > 2 * part.svg().count("<rect")


def test_the_legend_has_what_is_seen_no_bar_is_all_border_and_warps_copies_are_drawn_once() -> None:
    def drawn(name: str, until: float | None = None) -> str:
        kernel, args, shape = launches(name)
        return agt.show_warps(kernel, *args, **shape, until=until).svg()

    barrier, copies = ">waits at a barrier<", ">copy under way<"
    assert barrier in drawn("in turn", until=0.3)
    whole = drawn("in turn")  # a barrier's bar would have a width of 1
    assert barrier not in whole
    assert whole.count("<rect style") == 8 * (9 + 9) + 2
    assert drawn("ahead of time").count('class="agt-reads"') == 9 + 1  # once, and in the legend
    assert copies not in drawn("ahead of time", until=0.01)


def test_a_legend_of_all_that_there_is_has_two_rows() -> None:
    states = [(state, at, at + 1.0) for at, state in enumerate(get_args(WarpState))]
    timeline = BlockTimeline(4.0, [states], [[(0.0, 2.0)]])
    svg = Warps("k", "H200", timeline, 4.0).svg()
    texts = [e for e in ET.fromstring(svg).iter() if e.get("class") == "agt-words"]
    assert len(texts) == 5
    assert len({e.get("y") for e in texts}) == 2
    assert all(float(e.get("x", 0)) + text_width(e.text or "", 11) <= 760 for e in texts)
    height = float((ET.fromstring(svg).get("viewBox") or "").split()[3])
    assert all(float(e.get("y", 0)) < height - 3 for e in texts)


LONG = "__global__ void k(float* x) { for (int i = 0; i < 99999; i++) x[threadIdx.x] = i; }"
SPIN = "__global__ void k(volatile float* x) { while (*x == 0.0f) { } }"


@pytest.mark.parametrize(
    ("source", "shape", "says"),
    [
        (STORE, {"grid": 1, "block": 1, "until": 0}, "until=0 is no time above 0"),
        (STORE.replace("threadIdx", "blockIdx"), {"grid": 9000, "block": 1}, "9,000 blocks 4,224"),
        (
            "__global__ void k(float* x) { }",
            {"grid": 1, "block": 1},
            "does nothing that takes time",
        ),
        (LONG, {"grid": 1, "block": 1024}, "draw a shorter one"),
        (SPIN, {"grid": 1, "block": 1}, "wait for what others write"),
    ],
)
def test_what_cannot_be_drawn(source: str, shape: dict[str, Any], says: str) -> None:
    with pytest.raises(agt.UsageError, match=says):
        agt.show_warps(agt.Kernel(source), np.zeros(9000, np.float32), **shape)
