"""Five ways to run the same batches: what each computes, and what the table says of them."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward, traced, upload
from asyncgpu_tutor.commands.mlp.report import rounding_bound, table_lines
from asyncgpu_tutor.commands.mlp.ways import WAYS, MlpJob, measured
from asyncgpu_tutor.data import MlpInputs, reference_forward, seed_inputs
from asyncgpu_tutor.devices.protocol import Device
from tests.tools import Command

from .test_mlp_command import first_eight

STAGES = ["h2d", "memset", "memset", "sgemm_naive", "matvec_naive", "relu", "d2h"]


def table(out: str) -> dict[str, tuple[float, float]]:
    """Makespan and overlap of each way, as printed."""
    found = re.findall(r"^  (\w[\w ]*\w) +([\d.]+) µs +\d+% +([\d.]+) µs +\d+%", out, re.MULTILINE)
    return {name: (float(makespan), float(overlap)) for name, makespan, overlap in found}


@pytest.mark.parametrize("how", WAYS)
async def test_values_streams_and_handles(device: Device, how: str) -> None:
    inputs = seed_inputs(20)
    weights = await upload(inputs).schedule(agt.SingleStream())
    batches = [agt.pin(batch) for batch in inputs.batches]
    outcome = await measured(MlpJob(batches, *weights), WAYS[how].start)
    expected = reference_forward(inputs.batches, inputs.w0, inputs.w1)
    np.testing.assert_allclose(outcome.outputs, expected, rtol=1e-4, atol=1e-7)
    assert [weight.share_count for weight in weights] == [1, 1]
    # A driver picks the streams of a graph's branches itself.
    if device.simulated or how != "graph":
        assert len(outcome.trace.streams) == (1 if how in ("sequential", "one-stream") else 4)


def test_each_batch_has_a_stream_and_its_stages_in_order(device: Device) -> None:
    trace = asyncio.run(traced(seed_inputs(), "streams"))
    lanes: dict[int | None, list[str]] = {}
    for span in sorted(trace.device_spans, key=lambda span: span.start):
        lanes.setdefault(span.stream, []).append(span.name)
    assert list(lanes.values()) == [STAGES] * 4  # so nothing of the warm-up is in it


@pytest.mark.slow
def test_batches_overlap_at_dim_448(sim: Device) -> None:
    # It is a law on this device alone: on a GPU it depends on how fast the host is.
    trace = asyncio.run(traced(seed_inputs(448), "streams"))
    assert trace.metrics().max_concurrency > 1


def test_the_default_run_shows_all_ways_and_overlap(sim: Device, mlp: Command) -> None:
    found = table(mlp().out)
    assert list(found) == ["one after the other", "one stream", "four streams", "prepared", "graph"]
    makespans = [makespan for makespan, _ in found.values()]
    assert makespans == sorted(makespans, reverse=True)
    assert found["graph"][1] > 0
    assert found["one after the other"][1] == found["one stream"][1] == 0


@pytest.mark.parametrize("how", WAYS)
def test_how_picks_one(device: Device, mlp: Command, how: str) -> None:
    out = mlp("--how", how).out
    assert list(table(out)) in ([WAYS[how].name], [])  # none where CUDA events see one bar
    assert WAYS[how].name in out
    assert len(first_eight(out)) == 4


def test_a_graph_that_is_one_bar_is_not_said_to_overlap_or_not() -> None:
    bar = agt.types.Span(0, "graph", "all batches", 0.0, 10.0, "cuda:0", stream=1)
    text = "\n".join(table_lines({"graph": agt.Trace([bar], "CUDA events")}))
    assert re.search(r"graph +10\.0 µs +100% +not seen +1.00$", text, re.MULTILINE)
    assert "CUDA events see a graph as one bar" in text


def test_each_way_ends_with_the_device_and_not_with_the_wait_of_some() -> None:
    work = agt.types.Span(0, "kernel", "relu", 0.0, 10.0, "sim:0", stream=1)
    wait = agt.types.Span(1, "wait", "wait", 5.0, 15.0, "sim:0")
    traces = {"sequential": agt.Trace([work, wait]), "streams": agt.Trace([work])}
    rows = table("\n".join(table_lines(traces)))
    assert rows == {"one after the other": (10.0, 0.0), "four streams": (10.0, 0.0)}


@pytest.mark.parametrize("how", ["all", "graph"])
def test_plot(sim: Device, mlp: Command, tmp_path: Path, how: str) -> None:
    picture = tmp_path / "t.svg"
    ran = mlp("--dim", 8, "--how", how, "--plot", picture)
    assert picture.read_bytes().startswith(b"<?xml")
    assert str(picture) in ran.out


def test_forward_of_matrices_that_are_not_square(device: Device) -> None:
    rng = np.random.default_rng(0)
    x, w0, w1 = (rng.random(shape, dtype=np.float32) - 0.5 for shape in ((5, 40), (40, 33), 33))
    inputs = MlpInputs(w0, w1, x[None])
    scores = upload(inputs).and_then(lambda handles: forward(agt.pin(x), *handles)).sync()
    assert (scores.shape, scores.dtype) == ((5,), np.float32)
    assert np.all(abs(scores - reference_forward(x, w0, w1)) <= rounding_bound(inputs)[0])


def in_float32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product like the kernels', with sums from left to right."""
    total = np.zeros((*a.shape[:-1], b.shape[1]), np.float32)
    for i in range(len(b)):
        total += a[..., i, None] * b[i]
    return total


@given(
    *(st.integers(1, 40), st.integers(1, 40)),
    *(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3])),
)
def test_float32_stays_within_the_rounding_bound(k: int, n: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    shapes = ((2, 3, k), (k, n), (n,))
    x, w0, w1 = (rng.normal(0, scale, shape).astype(np.float32) for shape in shapes)
    scores = np.maximum(in_float32(in_float32(x, w0), w1[:, None])[..., 0], 0)
    error = abs(scores - reference_forward(x, w0, w1))
    assert np.all(error <= rounding_bound(MlpInputs(w0, w1, x)))


@pytest.mark.parametrize("dim", [8, 64, 256])
def test_the_bound_is_tight_enough_to_miss_a_term(dim: int) -> None:
    inputs = seed_inputs(dim, 1)
    without = inputs.w1.copy()
    without[-1 if without[-1] else -2] = 0
    right, wrong = (reference_forward(inputs.batches, inputs.w0, w) for w in (inputs.w1, without))
    assert np.any(abs(wrong - right) > rounding_bound(inputs))
