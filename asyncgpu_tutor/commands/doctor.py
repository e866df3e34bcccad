"""A report on this machine, and on what to do about what is missing: ``asyncgpu-tutor doctor``.

The doctor imports the standard library only, because it must be able to speak where the rest cannot run.
``python -P asyncgpu_tutor/commands/doctor.py`` works before anything is installed, which is how the Makefile
asks for the CuPy that fits (``--cupy-extra``). CuPy is tried in a process of its own, because a broken CUDA
installation may end the process that touches it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

OLDEST_PYTHON = (3, 11)
OLDEST_CUDA = (12, 0)
CUPY_WHEELS = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")

# Compiles and runs one kernel: the wheel can be imported even where its compiler is missing.
CUPY_TRIAL = """
import cupy, numpy
kernel = cupy.RawKernel('extern "C" __global__ void f(float* x) { x[threadIdx.x] += 1.0f; }', "f")
x = cupy.zeros(32, dtype=cupy.float32)
kernel((1,), (32,), (x,))
assert (x.get() == numpy.float32(1)).all()
v = cupy.cuda.runtime.runtimeGetVersion()
print(f"a kernel compiled and ran, with CUDA runtime {v // 1000}.{v % 1000 // 10}")
"""

# Installed is not enough: cupti-python without the package cuda cannot be imported, and a driver or a
# container may forbid what it asks for.
CUPTI_TRIAL = """\
from cupti import cupti
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
cupti.activity_disable(cupti.ActivityKind.CONCURRENT_KERNEL)
print("it was imported, and takes records of kernels")
"""

BROWSER = "Emscripten"  # the name that Pyodide, the Python of a page, has for its system

Status = Literal["ok", "absent", "missing", "broken"]


@dataclass(frozen=True)
class Cuda:
    """The NVIDIA driver's answers."""

    version: tuple[int, int]  # the newest CUDA that the driver runs, (major, minor)
    gpus: tuple[str, ...] = ()  # name of each GPU, in CUDA's order
    error: str = ""  # why there is no GPU although there is a driver; else empty


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    # Absent: not there, and no loss. Missing: not there, and the course is better with it.
    status: Status
    detail: str
    advice: str = ""  # what to do, if there is anything to do
    needed: bool = False  # the course cannot run without it


@dataclass(frozen=True)
class Report:
    """All findings, and what follows from them."""

    findings: tuple[Finding, ...]
    devices: tuple[str, ...]

    @property
    def can_run(self) -> bool:
        """True if the course can run. It needs no GPU."""
        return all(finding.status == "ok" for finding in self.findings if finding.needed)

    def as_json(self) -> str:
        """The report as a JSON object: can_run, devices, findings."""
        return json.dumps({"can_run": self.can_run, **asdict(self)}, indent=2)

    def as_text(self) -> str:
        """The report for people: a line for each finding, its advice under it, the verdict last."""
        width = max(len(finding.name) for finding in self.findings)
        lines: list[str] = []
        for finding in self.findings:
            lines.append(f"{finding.name:<{width}}  {finding.status:<7}  {finding.detail}")
            lines += [f"{'':<{width}}           {line}" for line in finding.advice.splitlines()]
        verdict = f"The course can run here. Devices: {', '.join(self.devices)}."
        if not self.can_run:
            broken = [f.name for f in self.findings if f.needed and f.status != "ok"]
            verdict = f"The course cannot run here yet. To be repaired: {', '.join(broken)}."
        return "\n".join([*lines, "", verdict])


class ThisMachine:
    """The doctor's questions to the machine that this process runs on. A test answers as it likes."""

    def python_version(self) -> tuple[int, int, int]:
        """Version of the running Python."""
        return sys.version_info[:3]

    def system(self) -> tuple[str, str]:
        """Operating system and processor."""
        return platform.system(), platform.machine()

    def version_of(self, distribution: str) -> str | None:
        """Version of an installed distribution, or None."""
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def cuda(self) -> Cuda | None:
        """The answers of libcuda, or None where there is none. No CUDA context is created."""
        try:
            library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError:
            return None
        return ask_libcuda(library)

    def try_python(self, program: str) -> tuple[bool, str]:
        """Run a program in a Python of its own, for two minutes at most."""
        command = [sys.executable, "-c", program]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return False, "no answer within two minutes"
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
        return done.returncode == 0, lines[-1] if lines else f"exit code {done.returncode}"

    def output_of(self, *command: str) -> str | None:
        """The output of a command, or None where it is not installed or fails."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def in_checkout(self) -> bool:
        """True if the package lies in a checkout."""
        return (Path(__file__).resolve().parents[2] / "pyproject.toml").is_file()


def ask_libcuda(library: ctypes.CDLL) -> Cuda:
    """Version and GPUs, by the CUDA driver API (cuDriverGetVersion, cuInit, cuDeviceGetName)."""
    number = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(number))
    version = (number.value // 1000, number.value % 1000 // 10)

    error = library.cuInit(0)
    if error:
        text = ctypes.c_char_p()
        library.cuGetErrorString(error, ctypes.byref(text))
        reason = text.value.decode() if text.value else "unknown error"
        return Cuda(version, error=f"CUDA error {error}: {reason}")

    library.cuDeviceGetCount(ctypes.byref(number))
    names: list[str] = []
    for index in range(number.value):
        device = ctypes.c_int()
        library.cuDeviceGet(ctypes.byref(device), index)
        name = ctypes.create_string_buffer(256)
        library.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    return Cuda(version, tuple(names), "" if names else "the driver lists no GPU")


def cupy_extra(cuda: Cuda | None) -> str | None:
    """The extra of this package with the CuPy for a driver: "cuda12", "cuda13", or None."""
    if cuda is None or not cuda.gpus or cuda.version < OLDEST_CUDA:
        return None
    return "cuda12" if cuda.version[0] == 12 else "cuda13"


def how_to_install(machine: ThisMachine, extra: str = "") -> str:
    """The pip command that installs this package with an extra."""
    brackets = f"[{extra}]" if extra else ""
    package = f'-e ".{brackets}"' if machine.in_checkout() else f'"asyncgpu_tutor{brackets}"'
    return f"python -m pip install {package}"


def examine(machine: ThisMachine) -> Report:
    """Ask a machine everything. Devices are "sim", always, and "cuda" where a kernel was run on a GPU."""
    cuda = machine.cuda()
    cupy = _cupy(machine, cuda)
    gpu_works = bool(cuda and cuda.gpus) and cupy.status == "ok"
    system, processor = machine.system()
    in_browser = "JupyterLite takes its place in a browser" if system == BROWSER else ""
    wheels = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Windows", "AMD64")}
    no_nvtx = "" if (system, processor) in wheels else f"has no wheel for {system} on {processor}"
    findings = (
        _python(machine),
        _package(machine, "numpy", "the simulated device computes with it", needed=True),
        _package(machine, "matplotlib", "it draws the timelines", needed=True),
        _package(machine, "ipykernel", "it runs the notebooks' cells", "lab", needed=True),
        _package(
            machine,
            "jupyterlab",
            "make lab does it too, and an editor that runs notebooks will do",
            "lab",
            instead=in_browser,
        ),
        _gpu(machine, cuda),
        cupy,
        _package(machine, "nvtx", "it names operations in a profiler", instead=no_nvtx),
        _cupti(machine, cuda),
        _nsys(machine, cuda),
    )
    return Report(findings, ("sim", "cuda") if gpu_works else ("sim",))


def _python(machine: ThisMachine) -> Finding:
    version = machine.python_version()
    detail = ".".join(map(str, version)) + f" ({sys.executable})"
    if version[:2] >= OLDEST_PYTHON:
        return Finding("Python", "ok", detail, needed=True)
    advice = "The course needs Python 3.11 or newer: install one"
    advice += ", then make lab PYTHON=/path/to/it" if machine.in_checkout() else ""
    return Finding("Python", "broken", detail, advice, needed=True)


def _package(
    machine: ThisMachine,
    name: str,
    why: str,
    extra: str = "",
    *,
    needed: bool = False,
    instead: str = "",
) -> Finding:
    """Look for a package; `instead` says why it is no loss where it is not there."""
    version = machine.version_of(name)
    if version is not None:
        return Finding(name, "ok", version, needed=needed)
    if instead:
        return Finding(name, "absent", instead)
    advice = f"{how_to_install(machine, extra)}   ({why})"
    return Finding(name, "missing", "not installed", advice, needed)


def _gpu(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """Look for a driver and its GPUs, which are not needed: there is the simulated device."""
    name = "NVIDIA GPU"
    if cuda is None:
        impossible = {"Darwin": "macOS has no CUDA", BROWSER: "out of a browser's reach"}
        why = impossible.get(machine.system()[0])
        advice = "If there is an NVIDIA GPU in this machine, install its driver: nvidia.com/drivers"
        detail = f"{why or 'no driver'}; the simulated device needs none"
        return Finding(name, "absent", detail, "" if why else advice)

    newest = f"CUDA {cuda.version[0]}.{cuda.version[1]}"
    if cuda.error:
        advice = "See what nvidia-smi says. After a driver update a reboot helps.\n"
        advice += "CUDA_VISIBLE_DEVICES, where set, must name a GPU; a container needs --gpus all."
        return Finding(name, "broken", f"driver for {newest}, but {cuda.error}", advice)

    driver = machine.output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    told = f"driver {driver.split()[0]}" if driver else "driver"
    detail = f"{', '.join(cuda.gpus)}; {told} for {newest}"
    if cuda.version < OLDEST_CUDA:
        advice = "CuPy needs a driver for CUDA 12 or newer (525 or later): nvidia.com/drivers"
        return Finding(name, "broken", detail, advice)
    return Finding(name, "ok", detail)


def _cupy(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """Look for CuPy: the right wheel, only one of them, and able to compile and run a kernel."""
    versions = {wheel: machine.version_of(wheel) for wheel in CUPY_WHEELS}
    installed = [wheel for wheel, version in versions.items() if version is not None]
    described = ", ".join(f"{wheel} {versions[wheel]}" for wheel in installed)
    uninstall = f"python -m pip uninstall -y {' '.join(installed)}"
    extra = cupy_extra(cuda)
    if len(installed) > 1:
        advice = f"They overwrite each other. Uninstall all, then install one:\n{uninstall}"
        return Finding("CuPy", "broken", described, advice)
    if extra is None:
        status: Status = "ok" if installed else "absent"
        return Finding("CuPy", status, described or "not needed without a GPU")
    install = how_to_install(machine, extra)
    if not installed:
        return Finding("CuPy", "missing", "not installed", install)
    if installed == ["cupy-cuda13x"] and extra == "cuda12":
        advice = f"The driver runs CUDA 12 only:\n{uninstall}\n{install}"
        return Finding("CuPy", "broken", described, advice)
    works, last_line = machine.try_python(CUPY_TRIAL)
    cure = "No kernel could be compiled and run. The extra brings the compiler that CuPy needs:\n"
    detail = f"{described}: {last_line}"
    return (
        Finding("CuPy", "ok", detail)
        if works
        else Finding("CuPy", "broken", detail, cure + install)
    )


def _cupti(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """Look for CUPTI, which measures kernels from inside the process."""
    version = machine.version_of("cupti-python")
    install = how_to_install(machine, "trace")
    if cupy_extra(cuda) is None:
        if version is None:
            return Finding("CUPTI", "absent", "not needed without a GPU")
        return Finding("CUPTI", "ok", f"cupti-python {version}, which needs a GPU to be tried")
    if version is None:
        advice = f"Optional, for exact kernel times: {install}"
        if cuda is not None and cuda.version < (13, 0):
            advice = (
                "Optional, for exact kernel times; it needs a driver for CUDA 13 (580 or later)."
            )
        return Finding("CUPTI", "missing", "not installed; times come from CUDA events", advice)
    works, last_line = machine.try_python(CUPTI_TRIAL)
    detail = f"cupti-python {version}: {last_line}"
    if works:
        return Finding("CUPTI", "ok", detail)
    advice = f"Times come from CUDA events instead. To repair it: {install}"
    return Finding("CUPTI", "broken", detail, advice)


def _nsys(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """Look for Nsight Systems, the profiler."""
    output = machine.output_of("nsys", "--version")
    if output is not None:
        return Finding("nsys", "ok", output.splitlines()[-1] if output else "found")
    if cupy_extra(cuda) is None:
        return Finding("nsys", "absent", "not needed without a GPU")
    advice = "Optional, to profile: developer.nvidia.com/nsight-systems"
    return Finding("nsys", "missing", "not on PATH", advice)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor doctor``."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--cupy-extra",
        action="store_true",
        help="print only the extra with the CuPy for this driver: cuda12, cuda13 or nothing",
    )


def run(args: argparse.Namespace, machine: ThisMachine | None = None) -> int:
    """Print the report; 0 if the course can run, with or without a GPU, else 1."""
    machine = machine or ThisMachine()
    if args.cupy_extra:
        # CUPY_EXTRA overrides what was found; "none" means no CuPy.
        chosen = os.environ.get("CUPY_EXTRA") or cupy_extra(machine.cuda()) or ""
        print("" if chosen == "none" else chosen)
        return 0
    report = examine(machine)
    print(report.as_json() if args.json else report.as_text())
    return 0 if report.can_run else 1


if __name__ == "__main__":  # by itself, before anything is installed
    alone = argparse.ArgumentParser(description="Say what this machine has, and what it lacks.")
    add_arguments(alone)
    raise SystemExit(run(alone.parse_args()))
