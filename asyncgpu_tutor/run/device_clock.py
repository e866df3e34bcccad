"""A simulated host's clock as trio's own, so that deadlines are in the device's time."""

import math
from typing import TYPE_CHECKING, Any

from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.run.current import current_device, resolve

if TYPE_CHECKING:
    from trio.abc import Clock
else:
    Clock = object  # trio asks for the methods only, and this package doesn't need trio


class DeviceClock(Clock):
    """Trio's time is that of a simulated device: ``trio.run(main, clock=agt.DeviceClock())``.

    Then `trio.sleep`, `trio.move_on_after` and `trio.fail_after` are in virtual time, exact to a nanosecond,
    and an hour of sleep is over at once. What isn't simulated, such as a socket or another process, takes no
    time of this clock, so a deadline around it passes as soon as no task can run. Only threads of
    `trio.to_thread` are waited for.

    Parameters
    ----------
    device : Device or str, optional
        A simulated one; by default the current device.

    Raises
    ------
    UsageError
        If it is a GPU.
    """

    def __init__(self, device: Device | str | None = None) -> None:
        found: Any = current_device() if device is None else resolve(device)
        if not found.simulated:
            raise UsageError(
                f"{found.name} is a GPU, and its time is the real one: leave `clock` out, or choose a "
                "simulated device with agt.using('sim')"
            )
        self.machine = found.machine

    def start_clock(self) -> None:
        """Nothing is to be done: the machine's clock is what it is."""

    def current_time(self) -> float:
        """The host's time in seconds."""
        return self.machine.host * 1e-6

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Trio asks where no task can run, how long to wait: so let time pass, and say that there is none."""
        from trio.to_thread import current_default_thread_limiter

        from asyncgpu_tutor.devices import trio_run

        machine, left = self.machine, deadline - self.current_time()
        run = trio_run.current()
        if left <= 0 or run is None or any(host is not machine for host in run._hosts):
            return left
        if math.isinf(left) and not machine.waits(run):
            return left
        if machine.patient or current_default_thread_limiter().borrowed_tokens:
            return machine.LOOK_AGAIN_S
        if math.isinf(left):
            machine.advance()
        else:
            machine.advance_at_most(max(left * 1e6, 1e-6))
        return 0.0
