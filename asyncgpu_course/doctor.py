"""A report on this machine, and on what to do about what is missing: ``asyncgpu-tutor doctor``.

The doctor imports the standard library only, because it must be able to speak where the rest cannot run.
``python -P asyncgpu_course/doctor.py`` works before anything is installed, which is how the Makefile
asks for the CuPy that fits (``--cupy-extra``). CuPy is tried in a process of its own, because a broken CUDA
installation may end the process that touches it.
"""

import argparse
import ctypes
import importlib.metadata
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST_CUDA = (12, 0)
EXTRAS = ("cuda12", "cuda13")
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

# What the course cannot do without, the extra that has it, and why it is needed.
NEEDED = (
    ("numpy", "", "the simulated device computes with it"),
    ("matplotlib", "", "it draws the timelines"),
    ("ipykernel", "lab", "it runs the notebooks' cells"),
)
NO_CUDA = {"darwin": "macOS has no CUDA", "emscripten": "out of a browser's reach"}
IN_CHECKOUT = (Path(__file__).resolve().parents[1] / "pyproject.toml").is_file()


@dataclass(frozen=True)
class Cuda:
    """The NVIDIA driver's answers."""

    version: tuple[int, int]  # the newest CUDA that the driver runs, (major, minor)
    gpus: tuple[str, ...] = ()  # name of each GPU, in CUDA's order
    error: str = ""  # why there is no GPU although there is a driver; else empty


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the report."""

    name: str
    # "ok"; "broken"; "absent", which is no loss; or "missing", and the course is better with it.
    status: str
    detail: str
    advice: str = ""  # what to do, if there is anything to do


@dataclass(frozen=True)
class MachineReport:
    """All findings, and what follows from them."""

    findings: tuple[DoctorFinding, ...]
    devices: tuple[str, ...]

    @property
    def lacking(self) -> list[str]:
        """The packages that are not there, and without which the course cannot run. It needs no GPU."""
        needed = {name for name, _, _ in NEEDED}
        return [f.name for f in self.findings if f.name in needed and f.status != "ok"]

    def as_text(self) -> str:
        """The report for people: a line for each finding, its advice under it, the verdict last."""
        lines: list[str] = []
        for finding in self.findings:
            lines.append(f"{finding.name:<10}  {finding.status:<7}  {finding.detail}")
            lines += [f"{'':<21}{line}" for line in finding.advice.splitlines()]
        verdict = f"The course can run here. Devices: {', '.join(self.devices)}."
        if self.lacking:
            verdict = f"The course cannot run here yet. To be repaired: {', '.join(self.lacking)}."
        return "\n".join([*lines, "", verdict])


class ThisMachine:
    """The doctor's questions to the machine that this process runs on. A test answers as it likes."""

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
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    for index in range(number.value):
        library.cuDeviceGet(ctypes.byref(device), index)
        library.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    return Cuda(version, tuple(names), "" if names else "the driver lists no GPU")


def cupy_extra(cuda: Cuda | None) -> str | None:
    """The extra of this package with the CuPy for a driver: "cuda12", "cuda13", or None."""
    if cuda is None or not cuda.gpus or cuda.version < OLDEST_CUDA:
        return None
    return "cuda12" if cuda.version[0] == 12 else "cuda13"


def how_to_install(extra: str = "") -> str:
    """The pip command that installs this package with an extra."""
    brackets = f"[{extra}]" if extra else ""
    package = f'-e ".{brackets}"' if IN_CHECKOUT else f'"asyncgpu_tutor{brackets}"'
    return f"python -m pip install {package}"


def examine(machine: ThisMachine) -> MachineReport:
    """Ask a machine everything. Devices are "sim", always, and "cuda" where a kernel was run on a GPU."""
    python = ".".join(map(str, sys.version_info[:3]))
    findings = [DoctorFinding("Python", "ok", f"{python} ({sys.executable})")]
    for name, extra, why in NEEDED:
        version = machine.version_of(name)
        advice = f"{how_to_install(extra)}   ({why})"
        lacking = DoctorFinding(name, "missing", "not installed", advice)
        findings.append(DoctorFinding(name, "ok", version) if version else lacking)
    cuda = machine.cuda()
    cupy = _cupy(machine, cuda)
    findings += [_gpu(cuda), cupy]
    return MachineReport(tuple(findings), ("sim", "cuda") if cupy.status == "ok" else ("sim",))


def _gpu(cuda: Cuda | None) -> DoctorFinding:
    """Look for a driver and its GPUs, which are not needed: there is the simulated device."""
    name = "NVIDIA GPU"
    if cuda is None:
        why = NO_CUDA.get(sys.platform)
        advice = "If there is an NVIDIA GPU in this machine, install its driver: nvidia.com/drivers"
        detail = f"{why or 'no driver'}; the simulated device needs none"
        return DoctorFinding(name, "absent", detail, "" if why else advice)

    newest = f"driver for CUDA {cuda.version[0]}.{cuda.version[1]}"
    if cuda.error:
        advice = "See what nvidia-smi says. After a driver update a reboot helps.\n"
        advice += "CUDA_VISIBLE_DEVICES, where set, must name a GPU; a container needs --gpus all."
        return DoctorFinding(name, "broken", f"{newest}, but {cuda.error}", advice)

    detail = f"{', '.join(cuda.gpus)}; {newest}"
    if cuda.version < OLDEST_CUDA:
        advice = "CuPy needs a driver for CUDA 12 or newer (525 or later): nvidia.com/drivers"
        return DoctorFinding(name, "broken", detail, advice)
    return DoctorFinding(name, "ok", detail)


def _cupy(machine: ThisMachine, cuda: Cuda | None) -> DoctorFinding:
    """Look for CuPy: only one of its wheels, and able to compile and run a kernel."""
    versions = {wheel: machine.version_of(wheel) for wheel in CUPY_WHEELS}
    installed = {wheel: version for wheel, version in versions.items() if version is not None}
    described = ", ".join(f"{wheel} {version}" for wheel, version in installed.items())
    extra = cupy_extra(cuda)
    if extra is None:
        return DoctorFinding("CuPy", "absent", described or "not needed without a GPU")
    install = how_to_install(extra)
    if not installed:
        return DoctorFinding("CuPy", "missing", "not installed", install)
    advice = "Two of them overwrite each other:"
    if len(installed) == 1:
        works, last_line = machine.try_python(CUPY_TRIAL)
        described += f": {last_line}"
        if works:
            return DoctorFinding("CuPy", "ok", described)
        advice = "No kernel could be compiled and run. The extra has a CuPy and compiler that fit:"
    uninstall = f"python -m pip uninstall -y {' '.join(installed)}"
    return DoctorFinding("CuPy", "broken", described, f"{advice}\n{uninstall}\n{install}")


def add_doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor doctor``."""
    told = "print only the extra with the CuPy for this driver: cuda12, cuda13 or nothing"
    parser.add_argument("--cupy-extra", action="store_true", help=told)


def run_doctor(args: argparse.Namespace, machine: ThisMachine | None = None) -> int:
    """Print the report; 0 if the course can run, with or without a GPU, else 1."""
    machine = machine or ThisMachine()
    if args.cupy_extra:
        # CUPY_EXTRA overrides what was found; "none" means no CuPy.
        chosen = os.environ.get("CUPY_EXTRA") or cupy_extra(machine.cuda()) or ""
        print(chosen if chosen in EXTRAS else "")
        if chosen in (*EXTRAS, "none", ""):
            return 0
        print(f"CUPY_EXTRA={chosen}: it can be {', '.join(EXTRAS)} or none", file=sys.stderr)
        return 2
    report = examine(machine)
    print(report.as_text())
    return 1 if report.lacking else 0


if __name__ == "__main__":  # by itself, before anything is installed
    alone = argparse.ArgumentParser(description="Say what this machine has, and what it lacks.")
    add_doctor_arguments(alone)
    raise SystemExit(run_doctor(alone.parse_args()))
