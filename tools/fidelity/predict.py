"""The model's prediction for every case that was recorded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import DeviceSpec, SimDevice, find_spec
from simgpu.cuda_c import CompiledKernel, Counts, GlobalMemory, LaunchResult
from simgpu.launches import LoadedKernel
from simgpu.times import (
    copy_time,
    kernel_time,
    staging_time,
    unstaging_time,
)

from .cases import UNSEEN, KernelCase, MlpCase, kernel_cases, makespans, mlp_cases
from .counting import load
from .report import BY_CALIBRATE, HERE, NO_FIT, recording

Counted = dict[str, Counts]
RAW_CALL = 2.2  # us, of the driver's call for a pinned copy, which the recorded calls hold as well
KEPT = 128  # from this DIM on the interpreter's counts are taken from the file
# Launches with equal numbers do the same here, whatever the data.
LAUNCHED: dict[Any, LaunchResult] = {}


class Ended(NamedTuple):
    """A launch that has nothing left to do."""

    result: LaunchResult

    def finish(self) -> LaunchResult:
        return self.result

    def touched(self, memory: GlobalMemory) -> NDArray[np.uint8]:
        """All bytes, as bits."""
        return np.full(-(-memory.nbytes // 8), 0xFF, np.uint8)


@dataclass(frozen=True)
class Kept:
    """A kernel whose launches do nothing but say what an earlier, equal one did."""

    kernel: CompiledKernel
    counted: Counted

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    @property
    def code(self) -> Any:
        return dataclasses.replace(self.kernel.code, follows=False)

    def begin(self, *args: Any, **more: Any) -> Ended:
        return Ended(self._launch(*args, **more))

    def _launch(
        self, variables: Any, grid: Any, block: Any, values: Any, **more: Any
    ) -> LaunchResult:
        name = self.kernel.signature.name
        size = int(values[0]) if isinstance(values[0], np.generic) else 0
        if name in ("sgemm_naive", "matvec_naive") and size >= KEPT:
            return LaunchResult(self.counted[f"{name} {size}"], "")
        key = (name, grid, block, *(v.item() for v in values if isinstance(v, np.generic)))
        if key not in LAUNCHED:
            LAUNCHED[key] = self.kernel.begin(variables, grid, block, values, **more).finish()
        return LAUNCHED[key]


class CountedDevice(SimDevice):
    """A simulated device that knows how the MLP's large kernels count, instead of running them."""

    counted: Counted

    def get_function(
        self, source: str, name: str, reference: Any = None, contract: bool = False
    ) -> LoadedKernel:
        function = super().get_function(source, name, contract=contract)
        kept: Any = Kept(function.kernel, self.counted)
        return dataclasses.replace(function, kernel=kept, stand_in=None, remembered=None)


def kernel_times(spec: DeviceSpec, counted: Counted) -> Iterator[tuple[KernelCase, float]]:
    """Those that were measured; there are counts of more."""
    measured = recording()["kernels"]
    for case in kernel_cases():
        if case.name in measured:
            counts = counted[case.name]
            yield (case, kernel_time(spec, counts, math.prod(case.block), counts.shared_bytes).us)


def copy_times(spec: DeviceSpec, names: Iterable[str]) -> dict[str, float]:
    """Of the device for pinned copies, of the host's call for pageable ones."""
    found: dict[str, float] = {}
    for name in names:
        *pageable, kind, size = name.split()
        nbytes = int(size)
        us = copy_time(spec, kind, nbytes)
        if pageable:
            staged = RAW_CALL + staging_time(spec, nbytes)
            waited = spec.start_us + us + spec.sync_us + unstaging_time(spec, nbytes)
            us = staged if kind == "h2d" else waited
        found[name] = us
    return found


def mlp_times(
    spec: DeviceSpec, counted: Counted, keep: Callable[[str], bool] = lambda name: True
) -> Iterator[tuple[MlpCase, float]]:
    """By running them, on a simulated device with this spec."""
    for case in mlp_cases():
        if keep(case.name):
            device = CountedDevice(spec=spec)
            device.counted = counted
            with agt.using(device):
                yield case, makespans(case, 1, 1)[0]


def everything(spec: DeviceSpec) -> dict[str, dict[str, float]]:
    """By group and name."""
    counted = load()
    kernels = dict(kernel_times(spec, counted))
    own = find_spec(str(HERE / "recordings" / "h200_spec.json"))
    return {
        "mlp": {case.name: us for case, us in mlp_times(spec, counted)},
        BY_CALIBRATE: {case.name: us for case, us in mlp_times(own, counted)},
        "kernels": {case.name: us for case, us in kernels.items()},
        NO_FIT: {case.name: us for case, us in kernels.items() if case.kernel in UNSEEN},
        "copies": copy_times(spec, recording()["copies"]),
    }
