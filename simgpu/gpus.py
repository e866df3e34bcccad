"""The GPUs that can be simulated: by name, from data sheets, or from a file that `save_spec` wrote."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from simgpu.errors import UsageError
from simgpu.spec import CONSTANTS, GUIDE, H200, THROUGHPUT, DeviceSpec

TAKEN_OVER = "taken over from the H200"
SCALED = "the H200's, times SMs and clock"
_COUNTED = {field.name for field in dataclasses.fields(DeviceSpec) if field.type is int}
BUS = 0.86  # of the bus's rate is what the H200 reaches: 55 of 64 GB/s


def derived(name: str, constants: dict[str, Any], sources: dict[str, str]) -> DeviceSpec:
    """A spec with some constants of its own, and the H200's for the rest.

    What the H200 needs in clocks, it is taken to need in clocks; the rate of the L2 cache goes with the
    number of SMs and their clock.
    """
    spec = dataclasses.replace(H200, name=name, **constants)
    if "l2_gb_s" not in constants:
        speed = spec.sms * spec.clock_mhz / (H200.sms * H200.clock_mhz)
        spec = dataclasses.replace(spec, l2_gb_s=round(H200.l2_gb_s * speed, 1))
        sources = {**sources, "l2_gb_s": SCALED}
    every = tuple((key, sources.get(key, TAKEN_OVER)) for key, _ in H200.sources)
    return dataclasses.replace(spec, sources=every)


def _datasheet(
    name: str, sheet: str, pages: str, bus_gb_s: float, per_sm: list[int], known: dict[str, float]
) -> DeviceSpec:
    """From a data sheet, with constants that are `known` by it; `pages` give the same numbers.

    `bus_gb_s` is for one direction; `per_sm`: threads, blocks, KiB of shared memory, and results in double
    precision of a clock.
    """
    threads, blocks, shared, doubles = per_sm
    rates = dict.fromkeys(("h2d_gb_s", "d2h_gb_s"), round(BUS * bus_gb_s, 1))
    guided = {"threads_per_sm": threads, "blocks_per_sm": blocks}
    guided |= {"shared_bytes_per_sm": shared * 1024, "registers_per_sm": 64 * 1024}
    sources = {
        **dict.fromkeys(known, f"datasheet: {sheet}; compared with {pages}"),
        **dict.fromkeys(guided, GUIDE),
        "doubles_per_clock": f"{THROUGHPUT}: {doubles} results a clock, 32 threads a warp",
        **dict.fromkeys(rates, f"datasheet: {sheet}, the bus; {BUS:.0%} of it, as on the H200"),
    }
    return derived(name, {**known, **guided, **rates, "doubles_per_clock": doubles / 32}, sources)


SPECS = {"h200": H200, **{key: _datasheet(**row) for key, row in CONSTANTS["datasheets"].items()}}


def find_spec(name: DeviceSpec | str) -> DeviceSpec:
    """By name, or from a file that ends in ``.json``, or as it is; `UsageError` if there is none."""
    if isinstance(name, DeviceSpec):
        return name
    if (known := str(name).lower()) in SPECS:
        return SPECS[known]
    if known.endswith(".json"):
        return load_spec(Path(name))
    raise UsageError(
        f"{name!r} is not a GPU that can be simulated: say one of {', '.join(SPECS)}, or name a .json file "
        "that save_spec wrote, as tools/calibrate.py does"
    )


def save_spec(spec: DeviceSpec, path: Path) -> None:
    """Write a spec as JSON: each constant with its source."""
    told = {key: {"value": getattr(spec, key), "source": source} for key, source in spec.sources}
    text = json.dumps({"name": spec.name, "constants": told}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def load_spec(path: Path) -> DeviceSpec:
    """Read what `save_spec` wrote; `UsageError` if that is not every constant of a spec."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        rows = told["constants"]
        values = {key: row["value"] for key, row in rows.items()}
        sources = tuple((key, str(rows[key]["source"])) for key, _ in H200.sources)
        for key, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{key} is not a number")
            # A time may be 0; of what is counted, or divides, there is some. The exponent has no largest.
            least = 0.0 if key.endswith(("_us", "_clocks")) else 1.0 if key in _COUNTED else 1e-6
            most = math.inf if key == "overlap" else 1e6 if key == "sms" else 1e18
            if not least <= value <= most or (key in _COUNTED and not isinstance(value, int)):
                raise ValueError(f"{key} is {value!r:.40}, which no GPU has")
        return DeviceSpec(name=str(told["name"]), sources=sources, **values)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} does not hold the spec of a GPU: {error}") from error
