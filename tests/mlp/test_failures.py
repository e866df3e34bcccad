"""Failures are said, and show in the exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp.measuring import Outcome
from asyncgpu_tutor.commands.mlp.pipeline import Network
from asyncgpu_tutor.commands.mlp.verification import reference, verify
from asyncgpu_tutor.commands.mlp.ways import WAYS, Job, Look, Run
from asyncgpu_tutor.data import seed_inputs
from asyncgpu_tutor.errors import DeviceUnavailableError
from asyncgpu_tutor.run import resolve

from .conftest import Mlp

pytestmark = pytest.mark.usefixtures("sim")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--device", "gpu"], "'gpu' is not a device"),
        (["--dim", "0"], "dim=0"),
        (["--batches", "0"], "batches=0"),
        (["--streams", "0"], "at least one stream, and 0"),
        (["--streams", "129"], "at most 128"),
        (["--input", "digits", "--dim", "32"], "--dim 32 was asked for"),
        (["--input", "digits", "--batches", "5"], "--batches 5 was asked for"),
        (["--input", "digits", "--layers", "2"], "--layers 2 was asked for"),
        (["--input", "digits", "--softmax"], "--softmax was asked for"),
        (["--layers", "0"], "--layers 0 was asked for"),
        (["--dim", "8", "--plot", "no/such/folder.png"], "no/such/folder.png"),
        (["--dim", "8", "--trace", "no/such/folder.json"], "no/such/folder.json"),
        (["--plot", "plot.nonsense"], "ends in .png or .svg or .pdf"),
        (["--trace", "trace.txt"], "ends in .json"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_code_2(
    mlp: Mlp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)

    ran = mlp(*options, code=2)

    assert ran.err.startswith("asyncgpu-tutor mlp: ")
    assert reason in ran.err
    assert ran.err.count("\n") == 1
    assert "Batch" not in ran.out  # it is said before anything runs
    assert list(tmp_path.iterdir()) == []


def test_cuda_is_not_replaced_where_there_is_none(mlp: Mlp) -> None:
    with pytest.raises(DeviceUnavailableError) as refused:
        resolve("cuda:63")

    assert str(refused.value) in mlp("--device", "cuda:63", code=2).err


@pytest.mark.parametrize("option", ["--dim=eight", "--policy=best", "--speed=9", "--how=well"])
def test_what_the_parser_refuses(mlp: Mlp, option: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        mlp(option)

    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("y[i] = x[i];", ["[ReLU FAILED]", "FAILED: batch 0 has values below zero"]),
        *((f"y[i] = x[i] > 0.0f ? {value} : 0.0f;",
           ["FAILED: batch 3 differs from the reference in", "the first is element 0"])
          for value in ("1.01f * x[i]", "0.0f / 0.0f")),
        ("y[i + n] = x[i];", ["asyncgpu-tutor mlp: FAILED: ", "broken", "batch 0"]),
    ],
)  # fmt: skip
def test_wrong_values_and_a_kernel_that_faults(
    mlp: Mlp, monkeypatch: pytest.MonkeyPatch, statement: str, said: list[str]
) -> None:
    """The pipeline's last kernel does this instead."""
    source = f"""
    extern "C" __global__ void broken(unsigned int n, const float* x, float* y) {{
        unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {{ {statement} }}
    }}"""
    monkeypatch.setattr(agt, "relu", agt.Kernel(source))

    ran = mlp(code=1)

    assert [words for words in said if words not in ran.out + ran.err] == []
    assert ran.out.count("[ReLU FAILED]") in (0, 4)  # in no batch, or in each
    assert "SUCCESS" not in ran.out


def test_what_one_way_gets_wrong_has_its_name(mlp: Mlp, monkeypatch: pytest.MonkeyPatch) -> None:
    right = WAYS["graph"]

    def late(job: Job) -> Run:
        run = right.start(job)

        async def worse(look: Look) -> Sequence[Any]:
            return [output + 1 for output in await run(look)]

        return worse

    monkeypatch.setitem(WAYS, "graph", right._replace(start=late))

    out = mlp("--dim", 8, code=1).out

    assert re.search(r"FAILED: batch 0 differs from .* \(--how graph\)\.", out)
    assert out.count("FAILED") == 4


def test_a_handle_that_is_kept_for_ever() -> None:
    network = Network(seed_inputs(8, 1))
    right = reference(network).astype(np.float32)
    trace = agt.Trace([], "simulated", "")
    fine = Outcome(right, {"W0": 2, "W1": 1}, {"W0": 1, "W1": 1}, trace)
    kept = Outcome(right, {"W0": 3, "W1": 2}, {"W0": 2, "W1": 1}, trace)

    assert verify(network, fine) == []
    assert verify(network, kept) == [
        "W0 had 3 handles in flight, where 2 are the most",
        "W0 has 2 handles after the last batch, and should have 1",
    ]
