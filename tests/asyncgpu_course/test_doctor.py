"""The doctor, on machines that have what a test says they have."""

import ctypes
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from asyncgpu_course import doctor
from asyncgpu_course.doctor import Cuda, DoctorFinding, ThisMachine, examine

Tell = Callable[[str], None]
H200 = Cuda((13, 0), ("NVIDIA H200",))
OLDER = Cuda((12, 4), ("NVIDIA A100",))
COURSE = {"numpy": "2.1", "matplotlib": "3.9", "ipykernel": "6.29"}


@dataclass
class Told(ThisMachine):
    packages: dict[str, str] = field(default_factory=lambda: dict(COURSE))
    driver: Cuda | None = None
    trial: tuple[bool, str] = (True, "a kernel compiled and ran")
    trials: int = 0

    def version_of(self, distribution: str) -> str | None:
        return self.packages.get(distribution)

    def cuda(self) -> Cuda | None:
        return self.driver

    def try_python(self, program: str) -> tuple[bool, str]:
        self.trials += 1
        assert "RawKernel" in program
        return self.trial


def finding(machine: ThisMachine, name: str) -> DoctorFinding:
    (found,) = (f for f in examine(machine).findings if f.name == name)
    return found


def test_a_laptop_without_a_gpu_can_run_the_course() -> None:
    machine = Told()
    report = examine(machine)
    assert report.devices == ("sim",)
    assert "The course can run here. Devices: sim." in report.as_text()
    assert {f.status for f in report.findings} == {"ok", "absent"}
    assert machine.trials == 0


@pytest.mark.parametrize("package", ["numpy", "matplotlib", "ipykernel"])
def test_a_needed_package_that_is_missing_stops_the_course(package: str, tell: Tell) -> None:
    report = examine(Told({name: COURSE[name] for name in COURSE if name != package}))
    assert f"To be repaired: {package}." in report.as_text()
    tell(report.as_text().partition("\n")[2])  # behind Python's version


def test_advice_fits_a_checkout_or_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Told(packages={})
    assert '-e ".[lab]"' in finding(machine, "ipykernel").advice
    monkeypatch.setattr(doctor, "IN_CHECKOUT", False)
    assert '"asyncgpu_tutor[lab]"' in finding(machine, "ipykernel").advice


NO_GPU = Cuda((12, 4), (), "CUDA error 100: no CUDA-capable device")
TOO_OLD = Cuda((11, 8), ("Tesla V100",))
DRIVERS = [
    (None, None), (TOO_OLD, None), (Cuda((12, 0), ("GPU",)), "cuda12"), (OLDER, "cuda12"),
    (H200, "cuda13"), (Cuda((14, 1), ("GPU",)), "cuda13"), (NO_GPU, None),
]  # fmt: skip


@pytest.mark.parametrize(("cuda", "extra"), DRIVERS)
def test_the_extra_follows_the_driver(cuda: Cuda | None, extra: str | None) -> None:
    assert doctor.cupy_extra(cuda) == extra


BY_DRIVER = COURSE | {"cupy-cuda12x": "14.0"}
NEWER_CUPY = COURSE | {"cupy-cuda13x": "14.0"}
TWO_CUPYS = BY_DRIVER | NEWER_CUPY
NO_LIBRARY = Told(BY_DRIVER, driver=OLDER, trial=(False, "libnvrtc.so.12 not found"))
TOO_NEW = Told(NEWER_CUPY, driver=OLDER, trial=(False, "driver version is insufficient"))
FOUND = [
    (Told(NEWER_CUPY, driver=H200), "NVIDIA GPU", "ok", ["NVIDIA H200; driver for CUDA 13.0"]),
    (Told(BY_DRIVER, driver=H200), "CuPy", "ok", ["a kernel compiled and ran"]),
    (Told(driver=OLDER), "CuPy", "missing", [".[cuda12]"]),
    (Told(driver=H200), "CuPy", "missing", [".[cuda13]"]),
    (TOO_NEW, "CuPy", "broken", ["uninstall -y cupy-cuda13x", ".[cuda12]"]),
    (Told(TWO_CUPYS, driver=H200), "CuPy", "broken", ["uninstall -y cupy-cuda13x cupy-cuda12x"]),
    (NO_LIBRARY, "CuPy", "broken", ["libnvrtc.so.12 not found"]),
    (Told(), "CuPy", "absent", ["not needed"]),
    (Told(driver=NO_GPU), "NVIDIA GPU", "broken", ["CUDA error 100", "CUDA_VISIBLE_DEVICES"]),
    (Told(driver=TOO_OLD), "NVIDIA GPU", "broken", ["525"]),
    (Told(), "NVIDIA GPU", "absent", ["no driver", "nvidia.com/drivers"]),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "name", "status", "words"), FOUND)
def test_each_machine_has_its_report_and_each_fault_its_cure(
    machine: Told, name: str, status: str, words: list[str], tell: Tell
) -> None:
    tell(examine(machine).as_text().partition("\n")[2])
    found = finding(machine, name)
    assert found.status == status
    assert [word for word in words if word not in f"{found.detail} {found.advice}"] == []


@pytest.mark.parametrize("system", ["emscripten", "darwin"])
def test_no_advice_that_cannot_be_followed(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.sys, "platform", system)
    report = examine(Told())
    assert not report.lacking
    assert [finding for finding in report.findings if finding.advice] == []


class FakeLibcuda:
    """The calls of libcuda that the doctor makes, on a machine with the GPUs that it is told."""

    def __init__(self, gpus: list[str], error: int = 0) -> None:
        self.gpus, self.error = gpus, error

    def cuDriverGetVersion(self, number: Any) -> None:
        number._obj.value = 13000

    def cuInit(self, _: int) -> int:
        return self.error

    def cuGetErrorString(self, code: int, text: Any) -> None:
        text._obj.value = b"no CUDA-capable device is detected" if code == self.error else None

    def cuDeviceGetCount(self, number: Any) -> None:
        number._obj.value = len(self.gpus)

    def cuDeviceGet(self, device: Any, index: int) -> None:
        device._obj.value = index

    def cuDeviceGetName(self, buffer: Any, length: int, device: Any) -> None:
        assert length == len(buffer)
        buffer.value = self.gpus[device.value].encode()


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (FakeLibcuda(["A", "B"]), (("A", "B"), "")),
        (FakeLibcuda([]), ((), "the driver lists no GPU")),
        (FakeLibcuda([], error=100), ((), "CUDA error 100: no CUDA-capable device is detected")),
    ],
)
def test_libcuda_is_asked_for_version_and_names(library: ctypes.CDLL, expected: Any) -> None:
    assert doctor.ask_libcuda(library) == Cuda((13, 0), *expected)


def test_this_machine_answers_every_question() -> None:
    machine = ThisMachine()
    assert machine.version_of("numpy") is not None
    assert machine.version_of("no-such-distribution-anywhere") is None
    assert machine.try_python("print('first'); print('last')") == (True, "last")
    assert machine.try_python("raise ValueError('why')") == (False, "ValueError: why")
    assert machine.try_python("raise SystemExit(3)") == (False, "exit code 3")


def options(*words: str) -> doctor.argparse.Namespace:
    parser = ArgumentParser()
    doctor.add_doctor_arguments(parser)
    return parser.parse_args(words)


def test_the_exit_code_says_whether_the_course_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run_doctor(options(), Told()) == 0
    assert "The course can run here" in capsys.readouterr().out
    assert doctor.run_doctor(options(), Told(packages={})) == 1
    assert "cannot run here yet" in capsys.readouterr().out
    assert "sim" in examine(Told(packages={})).devices  # all that page 00 asks, in marimo too


def test_the_makefile_gets_one_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for driver, override, word in [
        (None, None, ""), (OLDER, None, "cuda12"), (H200, None, "cuda13"), (H200, "none", ""),
        (H200, "cuda12", "cuda12"),
    ]:  # fmt: skip
        monkeypatch.setenv("CUPY_EXTRA", override or "")
        assert doctor.run_doctor(options("--cupy-extra"), Told(driver=driver)) == 0
        assert capsys.readouterr().out.strip() == word
    # Make lab ends here, before pip does nothing about it.
    monkeypatch.setenv("CUPY_EXTRA", "cuda99")
    assert doctor.run_doctor(options("--cupy-extra"), Told()) == 2
    assert "cuda12, cuda13 or none" in capsys.readouterr().err
