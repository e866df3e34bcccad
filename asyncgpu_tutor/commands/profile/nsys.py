"""Finding Nsight Systems, and running a program under it."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from asyncgpu_tutor.errors import UsageError

_VARIABLE = "NSYS"
# NVIDIA's installers put nsys into one of these places; Nsight Compute brings one as well.
_PLACES = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
)
_ADVICE = (
    "Nsight Systems is not on this machine: its command nsys is neither on the PATH nor where NVIDIA's "
    f"installers put it. Get it from https://developer.nvidia.com/nsight-systems, or say where it is with "
    f"{_VARIABLE}=/path/to/nsys. Without it: agt.record('all') around your own code asks CUPTI; "
    "asyncgpu-tutor profile --from FILE.sqlite reads an export that was made elsewhere, and "
    "agt.Trace.load_recording(name) a recording that comes with this package."
)
# The course needs no more than this. With samples of the CPU the report of one second has hundreds of
# megabytes.
TRACED = (
    "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node",
    "--force-overwrite=true", "--cuda-event-trace=true",
)  # fmt: skip
TIMEOUT = 600  # seconds


def find_nsys() -> Path:
    """The command ``nsys``; a `UsageError` says what to do where it is not there."""
    if named := os.environ.get(_VARIABLE):
        if not Path(named).is_file():
            raise UsageError(f"{_VARIABLE} is {named!r}, and there is no such file")
        return Path(named)
    if on_path := shutil.which("nsys"):
        return Path(on_path)
    for pattern in _PLACES:
        if found := sorted(Path("/").glob(pattern.lstrip("/"))):
            return found[-1]
    raise UsageError(_ADVICE)


def profile(program: Sequence[str], report: Path, *, shown: bool) -> Path:
    """Run a command under the profiler, with NVTX ranges and CUDA events; returns its ``.nsys-rep``.

    Your own program is `shown`: you see its output, and there is no limit to its time.
    """
    target = report.with_suffix(".nsys-rep")
    command = [str(find_nsys()), "profile", *TRACED, f"--output={target}", *program]
    _run_nsys(command, {**os.environ, "ASYNCGPU_NVTX": "1"}, shown)
    if not target.is_file():
        raise UsageError(f"nsys ended without writing {target}")
    return target


def export(report: Path) -> Path:
    """Convert a report to the SQLite file that `Trace.from_nsys` reads, beside it."""
    target = report.with_suffix(".sqlite")
    command = [str(find_nsys()), "export", "--type=sqlite", "--force-overwrite=true"]
    _run_nsys([*command, f"--output={target}", str(report)])
    return target


def _run_nsys(
    command: list[str], variables: dict[str, str] | None = None, shown: bool = False
) -> None:
    try:
        done = subprocess.run(
            command, check=False, capture_output=not shown, text=True, errors="replace",
            env=variables, timeout=None if shown else TIMEOUT,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be run: {error}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{' '.join(command[:2])} took more than {TIMEOUT} s") from None
    if done.returncode:
        told = (done.stderr or done.stdout or "what it said is above").strip()[-1500:]
        raise UsageError(f"{' '.join(command)} failed with code {done.returncode}:\n{told}")
