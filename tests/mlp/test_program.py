"""The program's values and traces, on both devices."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from tests.tools import page

from .conftest import Mlp

# As the example of cuda-oxide prints them; where it elides, nothing is compared.
SEED = {0: [0.0020799995, 0.0], 1: [0.0, 0.0], 2: [0.0, 0.00108], 3: [0.00244, 0.0025]}

STAGES = ["h2d", "memset", "memset", "sgemm_naive", "matvec_naive", "relu", "d2h"]


def lanes(trace: agt.Trace) -> dict[int, list[str]]:
    """The work of each stream, in order."""
    found: dict[int, list[str]] = {}
    for span in sorted(trace.device_spans, key=lambda span: span.start):
        assert span.stream is not None
        found.setdefault(span.stream, []).append(span.name)
    return found


def test_values_and_report_are_those_of_the_seed(device: Device, mlp: Mlp) -> None:
    ran = mlp()

    assert len(ran.first_eight) == 4
    for batch, expected in SEED.items():
        # The seed prints the shortest decimals that name these float32 numbers.
        assert [float(str(np.float32(x))) for x in ran.first_eight[batch][:2]] == expected
    facts = [
        rf"Device: {device.name}, .*times are",
        r"Allocating model weights",
        r"W0: 64x64 on device \(share count 1\)",
        r"W1: 64 on device \(share count 1\)",
        r"Launched 4 batches concurrently",
        r"in flight: W0",
        *(rf"Batch {i}: 64 elements, first 8 = \[.*\] \[ReLU OK\]" for i in range(4)),
        r"when all are done: W0 1, W1 1",
        r"Timeline \(.*clock",
        r"makespan +overlap +busy at once +speed-up",
        r"one after the other +\d+\.\d us .* 1\.00\n",
        *(rf"{way} +\d+\.\d us" for way in ("one stream", "four streams", "prepared", "graph")),
        r"One column is \d+\.\d us",
        r"Four streams (take|bring)",
        r"SUCCESS",
    ]
    assert re.search(".*".join(facts), ran.out, flags=re.DOTALL), ran.out
    # A line ends between two letters of the key, and not within what one of them means.
    assert all(meaning in ran.out for meaning in ("w = host wait", "2 = so many at once"))


@pytest.mark.parametrize("dim", [1, 50, 64, 128])
def test_any_dim(device: Device, mlp: Mlp, dim: int) -> None:
    ran = mlp("--dim", dim)  # success means that all values are right

    assert f"Batch 3: {dim} elements" in ran.out
    assert all(len(first) == min(dim, 8) for first in ran.first_eight)


def test_each_batch_has_a_stream_and_an_order(device: Device, mlp: Mlp, tmp_path: Path) -> None:
    mlp("--how", "streams", "--trace", tmp_path / "trace.json")
    trace = agt.Trace.load(tmp_path / "trace.json")

    assert trace.clock in (device.clock, "CUPTI")
    assert list(lanes(trace).values()) == [STAGES] * 4  # so nothing of the warm-up is in it


@pytest.mark.slow
def test_batches_overlap_at_dim_448(sim: Device, mlp: Mlp, tmp_path: Path) -> None:
    # It is a law on this device alone: on a GPU it depends on how fast the host is.
    mlp("--dim", 448, "--how", "streams", "--trace", tmp_path / "trace.json")

    assert agt.Trace.load(tmp_path / "trace.json").metrics().max_concurrency > 1


def test_digits_are_told_apart_as_the_data_card_says(device: Device, mlp: Mlp) -> None:
    out = mlp("--input", "digits").out
    for word in ("accuracy", "balanced accuracy", "precision", "recall"):
        printed, stated = (
            re.findall(rf"(?i)\b{word} (\d\.\d+)", text)[0]
            for text in (out, page("docs/digits.md"))
        )
        assert printed == stated, word
    assert "always answering no: 0.898" in out
    assert "CC BY 4.0" in out


@pytest.mark.parametrize(
    ("batches", "streams"), [(1, 1), (1, 4), (3, 1), (4, 3), (5, 2), (6, 5), (2, 2)]
)
def test_any_number_of_batches_and_streams(
    sim: Device, mlp: Mlp, tmp_path: Path, batches: int, streams: int
) -> None:
    ran = mlp(
        *("--dim", 8, "--batches", batches, "--streams", streams, "--how", "streams"),
        *("--trace", tmp_path / "trace.json"),
    )

    assert len(ran.first_eight) == batches
    # One handle for each batch, and ours. Each 64th submission of a process lets go of two that are done.
    assert {*ran.shares("in flight")} <= {batches + 1, batches, batches - 1}
    deals = [len(range(first, batches, streams)) for first in range(min(streams, batches))]
    found = lanes(agt.Trace.load(tmp_path / "trace.json"))
    assert [found[stream] for stream in sorted(found)] == [STAGES * deal for deal in deals]
