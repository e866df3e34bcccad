"""What this machine has, what it lacks, and what to do about it: ``asyncgpu-tutor doctor``.

Standard library only, and nothing of the package is imported: the doctor must be able to speak
where the rest cannot run. ``python -P asyncgpu_tutor/commands/doctor.py`` works before anything is
installed, which is how the Makefile asks for the CuPy that fits (``--cupy-extra``).

CuPy is never loaded into this process. Whether it works is found out by a process of its own,
because a broken CUDA installation may end the process that touches it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
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

# What Pyodide, the Python of a page, calls the system that it runs on.
BROWSER = "Emscripten"

Status = Literal["ok", "absent", "missing", "broken"]


@dataclass(frozen=True)
class Cuda:
    """What the NVIDIA driver says of itself."""

    version: tuple[int, int]  # the newest CUDA that the driver runs, (major, minor)
    gpus: tuple[str, ...] = ()  # name of each GPU, in CUDA's order
    error: str = ""  # why there is no GPU although there is a driver; else empty


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str  # what was looked for
    # Absent: not there, and no loss. Missing: not there, and the course is better with it.
    status: Status
    detail: str  # what was found
    advice: str = ""  # what to do, if there is anything to do
    needed: bool = False  # whether the course cannot run without it


@dataclass(frozen=True)
class Report:
    """All findings, and what follows from them."""

    findings: tuple[Finding, ...]
    devices: tuple[str, ...]

    @property
    def can_run(self) -> bool:
        """Whether the course can run. It needs no GPU."""
        return all(finding.status == "ok" for finding in self.findings if finding.needed)

    def as_json(self) -> str:
        """The report as a JSON object: can_run, devices, findings."""
        findings = [asdict(finding) for finding in self.findings]
        report = {"can_run": self.can_run, "devices": self.devices, "findings": findings}
        return json.dumps(report, indent=2)

    def as_text(self) -> str:
        """The report for people: a line for each finding, its advice under it, the verdict last."""
        width = max(len(finding.name) for finding in self.findings)
        lines: list[str] = []
        for finding in self.findings:
            lines.append(f"{finding.name:<{width}}  {finding.status:<7}  {finding.detail}")
            lines += [f"{'':<{width}}           {line}" for line in finding.advice.splitlines()]
        lines.append("")
        if self.can_run:
            lines.append(f"The course can run here. Devices: {', '.join(self.devices)}.")
        else:
            broken = [f.name for f in self.findings if f.needed and f.status != "ok"]
            lines.append(f"The course cannot run here yet. To be repaired: {', '.join(broken)}.")
        return "\n".join(lines)


class ThisMachine:
    """What the doctor asks of the machine that this process runs on. A test answers as it likes."""

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
        """What libcuda says. No CUDA context is created."""
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
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        return done.returncode == 0, lines[-1] if lines else f"exit code {done.returncode}"

    def output_of(self, *command: str) -> str | None:
        """What a command prints, or None where it is not installed or fails."""
        if shutil.which(command[0]) is None:
            return None
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def in_checkout(self) -> bool:
        """Whether the package lies in a checkout."""
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


def examine(machine: ThisMachine) -> Report:
    """Ask a machine everything. Devices are "sim", always, and "cuda" where a kernel was run on a GPU."""
    cuda = machine.cuda()
    cupy = examine_cupy(machine, cuda)
    gpu_works = bool(cuda and cuda.gpus) and cupy.status == "ok"
    findings = (
        examine_python(machine),
        examine_package(machine, "numpy", "the simulated device computes with it"),
        examine_package(machine, "matplotlib", "it draws the timelines"),
        examine_package(machine, "ipykernel", "it runs the notebooks' cells", extra="lab"),
        examine_jupyterlab(machine),
        examine_driver(machine, cuda),
        cupy,
        examine_nvtx(machine),
        examine_cupti(machine, cuda),
        examine_nsys(machine, cuda),
    )
    return Report(findings, ("sim", "cuda") if gpu_works else ("sim",))


def examine_python(machine: ThisMachine) -> Finding:
    """Python itself."""
    version = machine.python_version()
    detail = ".".join(map(str, version)) + f" ({sys.executable})"
    if version[:2] < OLDEST_PYTHON:
        advice = "The course needs Python 3.11 or newer: install one"
        advice += ", then make lab PYTHON=/path/to/it" if machine.in_checkout() else ""
        return Finding("Python", "broken", detail, advice, needed=True)
    return Finding("Python", "ok", detail, needed=True)


def examine_package(machine: ThisMachine, name: str, use: str, extra: str = "") -> Finding:
    """A package without which the course cannot run."""
    version = machine.version_of(name)
    if version is None:
        advice = f"{how_to_install(machine, extra)}   ({use})"
        return Finding(name, "missing", "not installed", advice, needed=True)
    return Finding(name, "ok", version, needed=True)


def examine_jupyterlab(machine: ThisMachine) -> Finding:
    """JupyterLab. Not needed: editors that run notebooks do as well."""
    version = machine.version_of("jupyterlab")
    if version is None and machine.system()[0] == BROWSER:
        return Finding("JupyterLab", "absent", "JupyterLite takes its place in a browser")
    if version is None:
        make = "make lab, or: " if machine.in_checkout() else ""
        advice = f"{make}{how_to_install(machine, 'lab')}   (or open the notebooks in an editor)"
        return Finding("JupyterLab", "missing", "not installed", advice)
    return Finding("JupyterLab", "ok", version)


def examine_driver(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """The NVIDIA driver and its GPUs. Not needed: there is the simulated device."""
    name = "NVIDIA GPU"
    if cuda is None:
        if machine.system()[0] == "Darwin":
            return Finding(name, "absent", "macOS has no CUDA; the simulated device needs none")
        if machine.system()[0] == BROWSER:
            return Finding(
                name, "absent", "out of a browser's reach; the simulated device needs none"
            )
        advice = "If there is an NVIDIA GPU in this machine, install its driver: nvidia.com/drivers"
        return Finding(name, "absent", "no driver; the simulated device needs none", advice)

    newest = f"CUDA {cuda.version[0]}.{cuda.version[1]}"
    if cuda.error:
        advice = "See what nvidia-smi says. After a driver update a reboot helps.\n"
        advice += "CUDA_VISIBLE_DEVICES, where set, must name a GPU; a container needs --gpus all."
        return Finding(name, "broken", f"driver for {newest}, but {cuda.error}", advice)

    query = machine.output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    driver = f"driver {query.splitlines()[0].strip()}" if query else "driver"
    detail = f"{', '.join(cuda.gpus)}; {driver} for {newest}"
    if cuda.version < OLDEST_CUDA:
        advice = "CuPy needs a driver for CUDA 12 or newer (525 or later): nvidia.com/drivers"
        return Finding(name, "broken", detail, advice)
    return Finding(name, "ok", detail)


def examine_cupy(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """CuPy: the right wheel, only one of them, and able to compile and run a kernel."""
    installed = [wheel for wheel in CUPY_WHEELS if machine.version_of(wheel) is not None]
    described = ", ".join(f"{wheel} {machine.version_of(wheel)}" for wheel in installed)
    if len(installed) > 1:
        advice = (
            f"They overwrite each other. Uninstall all, then install one:\n{uninstall(installed)}"
        )
        return Finding("CuPy", "broken", described, advice)

    extra = cupy_extra(cuda)
    if extra is None:
        return Finding(
            "CuPy", "ok" if installed else "absent", described or "not needed without a GPU"
        )
    if not installed:
        return Finding("CuPy", "missing", "not installed", how_to_install(machine, extra))

    wheel = installed[0]
    if wheel == "cupy-cuda13x" and extra == "cuda12":
        advice = f"The driver runs CUDA 12 only:\n{uninstall(installed)}\n"
        return Finding("CuPy", "broken", described, advice + how_to_install(machine, extra))

    works, last_line = machine.try_python(CUPY_TRIAL)
    if not works:
        advice = (
            "No kernel could be compiled and run. The extra brings the compiler that CuPy needs:\n"
        )
        return Finding(
            "CuPy", "broken", f"{described}: {last_line}", advice + how_to_install(machine, extra)
        )
    return Finding("CuPy", "ok", f"{described}: {last_line}")


def examine_nvtx(machine: ThisMachine) -> Finding:
    """NVTX, which names our operations in a profiler's timeline."""
    version = machine.version_of("nvtx")
    if version is not None:
        return Finding("nvtx", "ok", version)
    system, processor = machine.system()
    if (system, processor) in {("Linux", "x86_64"), ("Linux", "aarch64"), ("Windows", "AMD64")}:
        return Finding("nvtx", "missing", "not installed", how_to_install(machine))
    return Finding("nvtx", "absent", f"has no wheel for {system} on {processor}")


def examine_cupti(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """CUPTI, which measures kernels from inside the process."""
    version = machine.version_of("cupti-python")
    if version is not None and cupy_extra(cuda) is None:
        return Finding("CUPTI", "ok", f"cupti-python {version}, which needs a GPU to be tried")
    if version is not None:
        works, last_line = machine.try_python(CUPTI_TRIAL)
        if works:
            return Finding("CUPTI", "ok", f"cupti-python {version}: {last_line}")
        advice = (
            f"Times come from CUDA events instead. To repair it: {how_to_install(machine, 'trace')}"
        )
        return Finding("CUPTI", "broken", f"cupti-python {version}: {last_line}", advice)
    if cupy_extra(cuda) is None:
        return Finding("CUPTI", "absent", "not needed without a GPU")
    advice = f"Optional, for exact kernel times: {how_to_install(machine, 'trace')}"
    if cuda is not None and cuda.version < (13, 0):
        advice = "Optional, for exact kernel times; it needs a driver for CUDA 13 (580 or later)."
    return Finding("CUPTI", "missing", "not installed; times come from CUDA events", advice)


def examine_nsys(machine: ThisMachine, cuda: Cuda | None) -> Finding:
    """Nsight Systems, the profiler."""
    output = machine.output_of("nsys", "--version")
    if output is not None:
        return Finding("nsys", "ok", output.splitlines()[-1] if output else "found")
    if cupy_extra(cuda) is None:
        return Finding("nsys", "absent", "not needed without a GPU")
    advice = "Optional, to profile: developer.nvidia.com/nsight-systems"
    return Finding("nsys", "missing", "not on PATH", advice)


def how_to_install(machine: ThisMachine, extra: str = "") -> str:
    """The pip command that installs this package with an extra."""
    brackets = f"[{extra}]" if extra else ""
    if machine.in_checkout():
        return f'python -m pip install -e ".{brackets}"'
    return f'python -m pip install "asyncgpu_tutor{brackets}"'


def uninstall(distributions: Sequence[str]) -> str:
    """The pip command that removes packages."""
    return f"python -m pip uninstall -y {' '.join(distributions)}"


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


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point for running this file by itself."""
    parser = argparse.ArgumentParser(
        description="What this machine has, and what to do about the rest."
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    raise SystemExit(main())
