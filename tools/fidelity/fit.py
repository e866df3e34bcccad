"""Fit the constants that no data sheet gives to one half of the recorded cases.

python tools/fidelity fit kernels [--write]
python tools/fidelity fit mlp [--write]

Prints them; `--write` puts them into `simgpu/constants.toml`. Kernels first, since the
MLP is made of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import simgpu.spec as spec_module
from asyncgpu_tutor.devices.simulated import SPECS, DeviceSpec

from .counting import load
from .predict import kernel_times, mlp_times
from .report import HERE, calibrated, recording

SPEC = Path(spec_module.__file__).with_name("constants.toml")
KERNELS = [
    "launch_us", "request_clocks", "block_clocks", "unit_clocks", "first_load_clocks",
    "barrier_clocks", "shared_atomic_clocks",
    "overlap",
]  # fmt: skip
MLP = ["calls", "wake_us", "sync_us", "start_us", "pageable_us", "pageable_gb_s"]
CALLS = [name for name in DeviceSpec.__dataclass_fields__ if name.startswith("call_")] + [
    "submit_us"
]
ROUNDS = {"kernels": 60, "mlp": 4}

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


def recorded_calls(spec: DeviceSpec) -> DeviceSpec:
    """With the costs of calls as the recording has them: what `calls` scales."""
    host = recording()["host"]
    return dataclasses.replace(spec, **{name: host[name] for name in CALLS if name in host})


def fitted(group: str) -> DeviceSpec:
    """The H200 with the constants of a group fitted."""
    counted, measured = load(), recording()[group]
    if group == "kernels":

        def of_kernels(spec: DeviceSpec) -> float:
            return loss({c.name: us for c, us in kernel_times(spec, counted)}, measured)

        return descend(SPECS["h200"], KERNELS, of_kernels, ROUNDS[group])

    def of_mlp(spec: DeviceSpec) -> float:
        return loss({c.name: us for c, us in mlp_times(spec, counted, keep=calibrated)}, measured)

    return descend(recorded_calls(SPECS["h200"]), MLP, of_mlp, ROUNDS[group])


def write(spec: DeviceSpec, names: list[str], words: list[str]) -> None:
    """Put constants into the data; `words` name the texts there that tell the day of the recording."""
    text, day = SPEC.read_text(), recording()["machine"]["date"]
    for name in names:
        text, found = re.subn(
            rf"^{name} = \[[-+.e\d]+, ",
            f"{name} = [{getattr(spec, name):.4g}, ",
            text,
            flags=re.MULTILINE,
        )
        assert found == 1, name
    for word in words:
        (said,) = re.findall(rf"^{word} = .*$", text, re.MULTILINE)
        text = text.replace(said, re.sub(r"\d{4}-\d\d-\d\d", day, said))
    SPEC.write_text(text)


def take_over(spec: DeviceSpec) -> None:
    """The same for what the recorded spec of calibrate has taken over from the H200.

    But for `start_us`, which its `sync_us` was worked out with.
    """
    path = HERE / "recordings" / "h200_spec.json"
    told = json.loads(path.read_text())
    for name, row in told["constants"].items():
        if "the H200" in row["source"] and name != "start_us":
            value = getattr(spec, name)
            # What is counted is exact, and a spec with a part of a register is refused.
            row["value"] = value if isinstance(value, int) else float(f"{value:.4g}")
    path.write_text(json.dumps(told, indent=1) + "\n")


def main() -> None:
    """Fit the constants of one group, print them, and write them where that is asked for."""
    group = sys.argv[1]
    spec = fitted(group)
    names = KERNELS if group == "kernels" else [*CALLS, *(n for n in MLP if n != "calls")]
    for name in names:
        print(f"    {name}={getattr(spec, name):.4g},")
    if group == "mlp":
        factor = spec.call_launch_us / recording()["host"]["call_launch_us"]
        print(f"costs of calls: {factor:.2f} of what was recorded one by one")
    if "--write" in sys.argv:
        write(spec, names, ["FITTED"] if group == "kernels" else ["MLP", "CALLS"])
        take_over(spec)
