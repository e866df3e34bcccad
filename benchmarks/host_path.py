"""The cost of this package's own Python, on a device that does nothing, so that only that is left.

    python benchmarks/host_path.py

Prints microseconds for one batch of the MLP (build, submit, settle), and the ratio to calling the same
ten methods of the device directly. Both are measured in turns, in one process.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from in_turns import in_turns, medians

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward
from asyncgpu_tutor.devices.protocol import USUAL_LIMITS, DeviceMemory

DIM = 64
# Operations that never run: who drops one is warned, which takes longer than building it.
UNUSED: list[Any] = []


class NullEvent:
    """Passed at once."""

    done = retired = True

    def synchronize(self) -> None:
        """Nothing to wait for."""


class NullStream:
    """Takes everything and does nothing."""

    number = 0
    done = True

    def __init__(self, device: NullDevice) -> None:
        self.device = device
        self.event = NullEvent()

    def record(self) -> NullEvent:
        """An event that has passed."""
        return self.event

    def reuse(self, event: Any) -> None:
        """Nothing to keep."""

    def wait_event(self, event: Any) -> None:
        """Nothing to hold back."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


class NullFunction:
    """No kernel."""

    name = "null"


class NullDevice:
    """Every method at its cheapest."""

    name = "null:0"
    simulated = True
    description = "nothing"
    clock = "none"
    limits = USUAL_LIMITS
    log = None

    def __init__(self) -> None:
        self.default_stream = NullStream(self)
        self.function = NullFunction()
        self.host = np.empty((DIM,), np.float32)

    def create_stream(self) -> NullStream:
        return NullStream(self)

    def adopt_stream(self, foreign: Any) -> Any:
        return foreign

    def malloc(self, nbytes: int, name: str, stream: Any) -> DeviceMemory:
        return DeviceMemory(self, name, nbytes, 0)  # pyright: ignore[reportArgumentType] - this device has few verbs

    def pinned(self, shape: Any, dtype: Any) -> Any:
        return self.host

    def is_pinned(self, array: Any) -> bool:
        return True

    def get_function(
        self, source: str, name: str, reference: Any = None, contract: bool = False
    ) -> NullFunction:
        return self.function

    def nothing(self, *_: Any) -> None:
        """Enqueue nothing."""

    def activate(self) -> None:
        """It is always active."""

    memset_async = copy_from_host_async = copy_to_host_async = launch = synchronize = nothing


def median_us(run: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """Medians of both, measured in turns."""
    found = medians(in_turns({"one": run, "other": other}, 3500, warm=500))
    return found["one"], found["other"]


def main() -> None:
    """Measure and print."""
    device: Any = NullDevice()
    x = np.zeros((DIM, DIM), np.float32)
    with agt.using(device):
        w0 = agt.zeros((DIM, DIM)).sync().share()
        w1 = agt.zeros((DIM,)).sync().share()
        stream = device.create_stream()

        def ours() -> None:
            forward(x, w0, w1).sync_on(stream)

        def build() -> None:
            UNUSED.append(forward(x, w0, w1))

        def direct() -> None:
            a = device.malloc(x.nbytes, "input", stream)
            device.copy_from_host_async(a, x, stream)
            for nbytes in (x.nbytes, 4 * DIM):
                b = device.malloc(nbytes, "output", stream)
                device.memset_async(b, 0, nbytes, stream)
            for args in ((DIM, DIM, DIM, 1.0, a, b, 0.0, a), (DIM, DIM, a, b, b), (DIM, b, b)):
                function = device.get_function("", "")
                device.launch(function, (4, 4, 1), (16, 16, 1), args, 0, stream)
            device.copy_to_host_async(device.pinned((DIM,), None), b, stream)
            stream.record().synchronize()

        whole, bare = median_us(ours, direct)
        built, _ = median_us(build, direct)
        if "--profile" in sys.argv:
            import cProfile

            cProfile.runctx("for _ in range(2000): ours()", {"ours": ours}, {}, sort="tottime")
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print(f"one batch of the MLP, built and submitted: {whole:.1f} us (built alone {built:.1f} us)")
    print(f"the same calls made directly: {bare:.1f} us; ratio {whole / bare:.1f}")


if __name__ == "__main__":
    main()
