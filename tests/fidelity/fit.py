"""Fit the constants that no data sheet gives to one half of the recorded cases.

python -m tests.fidelity.fit kernels
python -m tests.fidelity.fit mlp

Prints them; whoever likes them writes them into `asyncgpu_tutor/sim/spec.py`.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable

from asyncgpu_tutor.sim import SPECS, DeviceSpec

from .counting import load
from .predict import kernel_times, mlp_times
from .report import calibrated, recording

KERNELS = [
    "launch_us",
    "request_clocks",
    "block_clocks",
    "l2_gb_s",
    "step_clocks",
    "first_load_clocks",
    "load_clocks",
    "hit_clocks",
    "shared_clocks",
    "barrier_clocks",
    "atomic_clocks",
    "wave_overlap",
]
MLP = ["calls", "wake_us", "sync_us", "pageable_us", "pageable_gb_s"]
CALLS = [name for name in DeviceSpec.__dataclass_fields__ if name.startswith("call_")] + [
    "submit_us"
]


# The course is about these: an error in them is worth that many elsewhere.
WEIGHTS = {"sgemm_naive": 8, "matvec_naive": 4}


def loss(predicted: dict[str, float], measured: dict[str, float]) -> float:
    """Mean error of the calibrated half, as a factor; large ones count more."""
    total = weights = 0.0
    for name, us in predicted.items():
        if calibrated(name):
            off, weight = abs(math.log(us / measured[name])), WEIGHTS.get(name.split()[0], 1)
            total += weight * (off + off * off / 2)
            weights += weight
    return total / weights


def scaled(spec: DeviceSpec, name: str, factor: float) -> DeviceSpec:
    """With one constant, or all the costs of calls together, times `factor`."""
    names = CALLS if name == "calls" else [name]
    return dataclasses.replace(spec, **{n: getattr(spec, n) * factor for n in names})


def descend(
    spec: DeviceSpec, names: list[str], error: Callable[[DeviceSpec], float], rounds: int
) -> DeviceSpec:
    """Change one constant at a time for as long as it helps."""
    best, step = error(spec), dict.fromkeys(names, 0.2)
    for _ in range(rounds):
        for name in names:
            for factor in (1 + step[name], 1 / (1 + step[name])):
                candidate = scaled(spec, name, factor)
                found = error(candidate)
                if found < best:
                    best, spec = found, candidate
                    break
            else:
                step[name] /= 2
        print(f"{best:.4f}", flush=True)
    return spec


def main() -> None:
    group = sys.argv[1]
    counted, measured = load(), recording()[group]

    def error(spec: DeviceSpec) -> float:
        if group == "kernels":
            return loss(
                {c.name: us for c, us in kernel_times(spec, counted) if c.name in measured},
                measured,
            )
        return loss({c.name: us for c, us in mlp_times(spec, counted, keep=calibrated)}, measured)

    names = KERNELS if group == "kernels" else MLP
    spec = descend(SPECS["h200"], names, error, 30 if group == "kernels" else 3)
    for name in [n for n in names if n != "calls"] + (CALLS if group == "mlp" else []):
        print(f"    {name}={getattr(spec, name):.4g},")


if __name__ == "__main__":
    main()
