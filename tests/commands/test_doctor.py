"""The doctor, on machines that have what a test says they have."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from asyncgpu_tutor.commands import doctor
from asyncgpu_tutor.commands.doctor import Cuda, Finding, ThisMachine, examine

H200 = Cuda((13, 0), ("NVIDIA H200",))
OLDER = Cuda((12, 4), ("NVIDIA A100",))
COURSE = {"numpy": "2.1", "matplotlib": "3.9", "ipykernel": "6.29", "jupyterlab": "4.2"}
COURSE_ON_GPU = COURSE | {"nvtx": "0.2", "cupti-python": "13.0"}


@dataclass
class Told(ThisMachine):
    """A machine as told."""

    packages: dict[str, str] = field(default_factory=lambda: dict(COURSE))
    driver: Cuda | None = None
    python: tuple[int, int, int] = (3, 12, 3)
    platform: tuple[str, str] = ("Linux", "x86_64")
    trial: tuple[bool, str] = (True, "a kernel compiled and ran")
    cupti: tuple[bool, str] = (True, "it takes records")
    commands: dict[str, str] = field(default_factory=dict)
    checkout: bool = True
    trials: int = 0

    def python_version(self) -> tuple[int, int, int]:
        return self.python

    def system(self) -> tuple[str, str]:
        return self.platform

    def version_of(self, distribution: str) -> str | None:
        return self.packages.get(distribution)

    def cuda(self) -> Cuda | None:
        return self.driver

    def try_python(self, program: str) -> tuple[bool, str]:
        self.trials += 1
        if "RawKernel" in program:
            return self.trial
        assert "activity_enable" in program
        return self.cupti

    def output_of(self, *command: str) -> str | None:
        return self.commands.get(command[0])

    def in_checkout(self) -> bool:
        return self.checkout


def without(package: str) -> dict[str, str]:
    return {name: version for name, version in COURSE.items() if name != package}


def finding(machine: ThisMachine, name: str) -> Finding:
    (found,) = (f for f in examine(machine).findings if f.name == name)
    return found


def test_a_laptop_without_a_gpu_can_run_the_course() -> None:
    machine = Told(packages=COURSE | {"nvtx": "0.2"})
    report = examine(machine)

    assert report.can_run
    assert report.devices == ("sim",)
    assert "The course can run here. Devices: sim." in report.as_text()
    assert {f.status for f in report.findings} == {"ok", "absent"}
    assert machine.trials == 0


@pytest.mark.parametrize("cupy", ["cupy-cuda13x", "cupy-cuda12x"])  # an older one is fine, too
def test_a_machine_with_a_gpu_runs_it_on_both_devices(cupy: str) -> None:
    machine = Told(
        packages=COURSE_ON_GPU | {cupy: "14.0"},
        driver=H200,
        commands={"nsys": "NVIDIA Nsight Systems version 2025.3", "nvidia-smi": "580.159"},
    )
    report = examine(machine)

    assert report.devices == ("sim", "cuda")
    assert {f.status for f in report.findings} == {"ok"}
    assert all(f.advice == "" for f in report.findings)
    assert finding(machine, "NVIDIA GPU").detail == "NVIDIA H200; driver 580.159 for CUDA 13.0"


@pytest.mark.parametrize("package", ["numpy", "matplotlib", "ipykernel"])
def test_a_needed_package_that_is_missing_stops_the_course(package: str) -> None:
    """Advice fits a checkout, or an installed package."""
    machine = Told(without(package))
    report = examine(machine)

    assert not report.can_run
    assert f"To be repaired: {package}." in report.as_text()
    assert "pip install" in finding(machine, package).advice
    if package == "ipykernel":
        assert '-e ".[lab]"' in finding(machine, package).advice
        assert '"asyncgpu_tutor[lab]"' in finding(replace(machine, checkout=False), package).advice


NO_GPU = Cuda((12, 4), (), "CUDA error 100: no CUDA-capable device")


@pytest.mark.parametrize(
    ("driver", "override", "extra"),
    [
        (None, "", ""), (Cuda((11, 8), ("Tesla V100",)), "", ""), (Cuda((12, 0), ("GPU",)), "", "cuda12"),
        (OLDER, "", "cuda12"), (H200, "", "cuda13"), (Cuda((14, 1), ("GPU",)), "", "cuda13"),
        (NO_GPU, "", ""), (H200, "none", ""), (H200, "cuda12", "cuda12"),
    ],
)  # fmt: skip
def test_the_makefile_gets_the_extra_that_follows_the_driver(
    driver: Cuda | None,
    override: str,
    extra: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUPY_EXTRA", override)
    assert doctor.run(options("--cupy-extra"), Told(driver=driver)) == 0
    assert capsys.readouterr().out.strip() == extra


BY_DRIVER = COURSE | {"cupy-cuda12x": "14.0"}
NEWER_CUPY = COURSE | {"cupy-cuda13x": "14.0"}
TWO_CUPYS = BY_DRIVER | NEWER_CUPY
NO_LIBRARY = Told(BY_DRIVER, driver=OLDER, trial=(False, "libnvrtc.so.12 not found"))
NO_CUDA = Told(COURSE_ON_GPU, driver=H200, cupti=(False, "no module 'cuda'"))
FOUND = [
    (Told(python=(3, 10, 13)), "Python", "broken", ["3.11 or newer"]),
    (Told(without("jupyterlab")), "jupyterlab", "missing", [".[lab]", "make lab", "editor"]),
    (Told(driver=OLDER), "CuPy", "missing", [".[cuda12]"]),
    (Told(driver=H200), "CuPy", "missing", [".[cuda13]"]),
    (Told(NEWER_CUPY, driver=OLDER), "CuPy", "broken", ["uninstall -y cupy-cuda13x", ".[cuda12]"]),
    (Told(TWO_CUPYS, driver=H200), "CuPy", "broken", ["uninstall -y cupy-cuda13x cupy-cuda12x"]),
    (NO_LIBRARY, "CuPy", "broken", ["libnvrtc.so.12 not found"]),
    (Told(driver=NO_GPU), "NVIDIA GPU", "broken", ["CUDA error 100", "CUDA_VISIBLE_DEVICES"]),
    (Told(driver=Cuda((11, 8), ("Tesla V100",))), "NVIDIA GPU", "broken", ["525"]),
    (Told(driver=H200), "CUPTI", "missing", ['pip install -e ".[trace]"']),
    (NO_CUDA, "CUPTI", "broken", ["Times come from CUDA events", 'pip install -e ".[trace]"']),
    (Told(driver=OLDER), "CUPTI", "missing", ["580"]),
    (Told(), "CUPTI", "absent", ["not needed"]),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "name", "status", "words"), FOUND)
def test_what_is_wrong_has_a_cure(machine: Told, name: str, status: str, words: list[str]) -> None:
    found = finding(machine, name)

    assert found.status == status
    assert [word for word in words if word not in f"{found.detail} {found.advice}"] == []
    assert (found.advice == "") == (status == "absent")
    assert examine(machine).can_run == (name != "Python")
    assert examine(machine).devices == ("sim",)


@pytest.mark.parametrize(
    "machine",
    [
        Told(without("jupyterlab"), platform=("Emscripten", "wasm32"), checkout=False),
        Told(platform=("Darwin", "arm64")),
    ],
    ids=["a browser", "a Mac"],
)
def test_a_machine_is_not_told_to_install_what_it_cannot_have(machine: Told) -> None:
    report = examine(machine)
    assert report.can_run
    assert [finding for finding in report.findings if finding.advice] == []


def test_the_exit_code_says_whether_the_course_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(options(), Told()) == 0
    assert "The course can run here" in capsys.readouterr().out
    assert doctor.run(options(), Told(packages={})) == 1
    assert "cannot run here yet" in capsys.readouterr().out
    assert doctor.run(options("--json"), machine := Told(driver=H200)) == 0
    loaded = json.loads(capsys.readouterr().out)
    assert (loaded["can_run"], loaded["devices"]) == (True, ["sim"])
    assert [f["name"] for f in loaded["findings"]] == [f.name for f in examine(machine).findings]
    assert {"status", "detail", "advice", "needed"} < loaded["findings"][0].keys()


def fake_libcuda(gpus: list[str], error: int = 0) -> Any:
    """The calls of libcuda that the doctor makes, on a machine with these GPUs."""

    def put(target: Any, value: object) -> None:
        getattr(target, "_obj", target).value = value

    def get_name(buffer: Any, length: int, device: Any) -> None:
        assert length == len(buffer)
        put(buffer, gpus[device.value].encode())

    def get_error(code: int, text: Any) -> None:
        assert code == error
        put(text, b"no CUDA-capable device is detected")

    return SimpleNamespace(
        cuDriverGetVersion=lambda number: put(number, 13000),
        cuInit=lambda _: error,
        cuGetErrorString=get_error,
        cuDeviceGetCount=lambda number: put(number, len(gpus)),
        cuDeviceGet=put,
        cuDeviceGetName=get_name,
    )


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (fake_libcuda(["A", "B"]), (("A", "B"), "")),
        (fake_libcuda([]), ((), "the driver lists no GPU")),
        (fake_libcuda([], error=100), ((), "CUDA error 100: no CUDA-capable device is detected")),
    ],
)
def test_libcuda_is_asked_for_version_and_names(library: Any, expected: Any) -> None:
    assert doctor.ask_libcuda(library) == Cuda((13, 0), *expected)


def test_this_machine_answers_every_question() -> None:
    machine = ThisMachine()

    assert machine.python_version() >= doctor.OLDEST_PYTHON
    assert machine.version_of("numpy") is not None
    assert machine.version_of("no-such-distribution-anywhere") is None
    assert machine.output_of("no-such-command-anywhere") is None
    assert machine.try_python("print('first'); print('last')") == (True, "last")
    assert machine.try_python("raise ValueError('why')") == (False, "ValueError: why")
    assert machine.try_python("raise SystemExit(3)") == (False, "exit code 3")


def options(*words: str) -> doctor.argparse.Namespace:
    parser = ArgumentParser()
    doctor.add_arguments(parser)
    return parser.parse_args(words)
