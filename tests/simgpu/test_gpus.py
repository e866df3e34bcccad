"""The GPUs that can be simulated."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SPECS, DeviceSpec, SimDevice, find_spec, save_spec
from asyncgpu_tutor.errors import UsageError
from tests.tools import tool

calibrate = tool("calibrate")
CONSTANTS = {f.name for f in dataclasses.fields(DeviceSpec)} - {"name", "sources"}


@pytest.mark.parametrize("name", SPECS)
def test_every_constant_has_a_source_and_what_no_datasheet_gives_is_marked(name: str) -> None:
    spec, h200 = SPECS[name], SPECS["h200"]
    sources = dict(spec.sources)
    assert set(sources) == CONSTANTS
    assert all(sources.values())
    for constant, source in sources.items() if name != "h200" else ():
        own = source.startswith(("datasheet", "CUDA", "the H200's, times"))
        assert own or source == "taken over from the H200"
        if not own:
            assert getattr(spec, constant) == getattr(h200, constant)


def test_a_spec_outlives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    save_spec(SPECS["l4"], path)
    assert find_spec(str(path)) == SPECS["l4"]
    assert SimDevice(spec=str(path)).description.startswith("simulated L4")


def test_no_such_gpu(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'gtx' is not a GPU .* h200, t4"):
        SimDevice(spec="gtx")
    (tmp_path / "half.json").write_text('{"name": "half", "constants": {}}')
    for name in ("half", "none"):
        with pytest.raises(UsageError, match="does not hold the spec"):
            find_spec(str(tmp_path / f"{name}.json"))


WRONG = [("sms", 0), ("sms", -1), ("sms", 1.5), ("dram_gb_s", 0.0), ("sync_us", math.nan),
         ("start_us", math.inf),
         ("call_malloc_us", -1), ("memory_bytes", True), ("clock_mhz", 10**400)]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_constant_that_no_gpu_has_is_refused(key: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    save_spec(SPECS["h200"], path)
    body = json.loads(path.read_text())
    body["constants"][key]["value"] = value
    path.write_text(json.dumps(body))
    with pytest.raises(UsageError, match=f"does not hold the spec of a GPU: {key} is"):
        find_spec(str(path))


@pytest.mark.parametrize(
    "text", ["", "[" * 10**5, '{"name": 1}', '"constants"', "9" * 5000, "\ufeff{}"]
)
def test_a_file_that_holds_no_spec_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match="does not hold the spec of a GPU"):
        find_spec(str(path))


def test_a_slower_gpu_takes_longer() -> None:
    def makespan(name: str) -> float:
        with agt.using(SimDevice(spec=name)), agt.record() as trace:
            n = 256
            args = (agt.ones((n, n)), agt.ones(n), agt.zeros(n).partition(n))
            agt.matvec_naive(n, n, *args).sync()
        return trace.metrics().device_makespan

    assert makespan("t4") > makespan("h200")


def test_costs_of_the_host_are_constants_of_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "RUNS", 3)
    costs = calibrate.host_costs(SimDevice(), kernel_us=36.0, start_us=6.0)
    assert set(costs) <= CONSTANTS
    assert {"call_launch_us", "sync_us", "wake_us"} <= set(costs)
