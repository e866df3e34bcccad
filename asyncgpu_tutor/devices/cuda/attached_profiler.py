"""Looking for a profiler that runs this process, because CUPTI is not ours to use then."""

from __future__ import annotations

import os
from pathlib import Path

# What a profiler leaves in the environment, and in the process, of a program that it runs. CUPTI says no to a
# second client, but not to all of them.
SIGNS = ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "NV_COMPUTE_PROFILER_PERFWORKS_DIR")
LIBRARIES = ("ToolsInjection", "/nsight-compute/", "/nsight-systems/", "libcuda-injection")


def profiler_attached() -> str:
    """Return the sign that a profiler runs this process; empty if there is none."""
    for sign in SIGNS:
        if os.environ.get(sign):
            return sign
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return ""
    for line in maps.splitlines():
        path = line[line.find("/") :]
        name = path.rpartition("/")[2]
        # CUPTI itself may come from a profiler's folder, and is then no sign of the profiler.
        if any(library in path for library in LIBRARIES) and not name.startswith("libcupti"):
            return name
    return ""
