"""Failures are said, and show in the exit code."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.__main__ import run_command as main
from asyncgpu_tutor.commands.mlp.ways import WAYS, MlpJob, RunMlp
from asyncgpu_tutor.errors import DeviceUnavailableError
from asyncgpu_tutor.run.current import resolve
from tests.tools import Command

pytestmark = pytest.mark.usefixtures("sim")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--device", "gpu"], "'gpu' is not a device"),
        (["--dim", "0"], "dim=0"),
        (["--dim", str(10**9)], "asyncgpu-tutor mlp: Unable to allocate"),
        (["--input", "digits", "--dim", "32"], "--dim 32 does not fit"),
    ],
)
def test_what_cannot_be_had_is_one_line(mlp: Command, options: list[str], reason: str) -> None:
    ran = mlp(*options, code=2)
    assert ran.err.startswith("asyncgpu-tutor mlp: ")
    assert reason in ran.err
    assert ran.err.count("\n") == 1
    assert "Batch" not in ran.out  # it is said before anything runs


def test_cuda_is_not_replaced_where_there_is_none(mlp: Command) -> None:
    with pytest.raises(DeviceUnavailableError) as refused:
        resolve("cuda:63")
    assert str(refused.value) in mlp("--device", "cuda:63", code=2).err


@pytest.mark.parametrize("command", ["mlp", "profile"])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--plot", "plot.nonsense"], "ends in .svg"),
        (["--plot", "no/such/folder.svg"], "there is no folder no/such"),
    ],
)
def test_what_the_parser_refuses(
    capsys: pytest.CaptureFixture[str], command: str, options: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, *options])
    assert stopped.value.code == 2
    assert reason in capsys.readouterr().err


def replace_relu(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """The pipeline's last kernel does this instead."""
    source = """
    extern "C" __global__ void broken(unsigned int n, const float* x, float* y) {
        unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { STATEMENT }
    }"""
    monkeypatch.setattr(agt, "relu", agt.Kernel(source.replace("STATEMENT", statement)))


def test_a_relu_that_did_not_run(mlp: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_relu(monkeypatch, "y[i] = x[i];")
    out = mlp(code=1).out
    assert out.count("[ReLU FAILED]") == 4
    assert "FAILED: batch 0 has values below zero" in out
    assert "SUCCESS" not in out


@pytest.mark.parametrize("value", ["1.01f * x[i]", "0.0f / 0.0f"])
def test_wrong_values(mlp: Command, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    replace_relu(monkeypatch, f"y[i] = x[i] > 0.0f ? {value} : 0.0f;")
    out = mlp(code=1).out
    assert "FAILED: batch 3 differs from the reference in" in out
    assert "the first is element 0" in out


def test_a_kernel_that_faults(mlp: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_relu(monkeypatch, "y[i + n] = x[i];")
    ran = mlp(code=1)
    assert "asyncgpu-tutor mlp: FAILED: " in ran.err
    assert "broken" in ran.err
    assert "batch 0" in ran.err
    assert "SUCCESS" not in ran.out


def test_a_way_that_is_wrong_is_named(mlp: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    right = WAYS["graph"]

    def late(job: MlpJob) -> RunMlp:
        run = right.start(job)

        async def worse() -> Sequence[Any]:
            return [output + 1 for output in await run()]

        return worse

    monkeypatch.setitem(WAYS, "graph", right._replace(start=late))
    out = mlp("--dim", 8, code=1).out
    assert re.search(r"FAILED: batch 0 differs from .* \(--how graph\)\.", out)
    assert out.count("FAILED") == 4
