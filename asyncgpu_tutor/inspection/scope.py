"""Looking at a simulated device while something runs on it: its kernels by name, and beside their source."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from asyncgpu_tutor.devices.simulated import DeviceSpec, Launched, SimDevice
from asyncgpu_tutor.devices.simulated.report import KernelReport, add_up, annotate, render_columns
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.traces.spans.notebook_output import PAGE
from asyncgpu_tutor.traces.spans.span import grouped
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait


class MicroscopeReport:
    """The work of the kernels of a run. Made by `microscope`.

    Attributes
    ----------
    spec : DeviceSpec
        The GPU that they ran on.
    """

    def __init__(self, spec: DeviceSpec, launches: Sequence[Launched]) -> None:
        self.spec = spec
        self._launches = launches

    def __repr__(self) -> str:
        return f"<Report of {len(self._launches)} launches; kernels: {self._names()}>"

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        """One entry for each kernel, grid, block and shared memory, in the order of first launches."""
        groups = grouped(
            self._launches,
            lambda one: (one.kernel, one.source, one.grid, one.block, one.counts.shared_bytes),
        )
        return tuple(KernelReport(self.spec, tuple(group)) for group in groups.values())

    def __getitem__(self, name: str) -> KernelReport:
        """The entry of a kernel; `UsageError` unless there is exactly one."""
        found = [kernel for kernel in self.kernels if kernel.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            shapes = ", ".join(f"{kernel.grid} x {kernel.block}" for kernel in found)
            raise UsageError(
                f"{name!r} was launched in {len(found)} shapes ({shapes}): pick one of report.kernels"
            )
        raise UsageError(f"no kernel {name!r} ran: there is {self._names()}")

    def _names(self) -> str:
        names = dict.fromkeys(launch.kernel for launch in self._launches)
        return ", ".join(repr(name) for name in names) or "none"

    def table(self) -> str:
        """All numbers as text, a column for each entry of `kernels`; those that do not fit follow below."""
        return render_columns(self.spec, self.kernels, PAGE)

    def source(self, name: str) -> str:
        """The source of a kernel, each line with what it did in all launches of that kernel together.

        Raises
        ------
        UsageError
            If no such kernel ran, or kernels of different sources have that name.
        """
        launches = [launch for launch in self._launches if launch.kernel == name]
        sources = list(dict.fromkeys(launch.source for launch in launches))
        if len(sources) > 1:
            raise UsageError(
                f"{len(sources)} kernels with different sources are called {name!r}: look at each in its "
                "own microscope"
            )
        if not launches:
            raise UsageError(f"no kernel {name!r} ran: there is {self._names()}")
        return annotate(name, sources[0], len(launches), add_up([x.counts for x in launches]))


@contextmanager
def microscope() -> Generator[MicroscopeReport]:
    """Count what the kernels do that run on the current device while a block is executed.

    Leaving the block waits for the device. What it ran before the block is not in the report, except
    for work that was still in flight; what other tasks run on the device meanwhile is. Looking changes
    neither results nor times.

    Yields
    ------
    Report
        It grows as kernels run.

    Raises
    ------
    UsageError
        If the current device is not simulated: a GPU does not say what its threads did.
    NestedSyncError
        If called while an operation is being submitted.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.using("sim"), agt.microscope() as scope:
    ...     _ = agt.relu(64, agt.ones(64), agt.zeros(64).partition(32)).sync()
    >>> scope["relu"].load_sectors_per_request
    4.0
    """
    forbid_nested_wait("the microscope")
    device = current_device()
    if not isinstance(device, SimDevice):
        raise UsageError(
            f"the microscope needs a simulated device, and the current one is {device.name}, where nobody "
            'can count what a thread does. Look at the operation with agt.using("sim"), or profile the GPU '
            "itself with Nsight Compute."
        )
    seen: list[Launched] = []
    device.observers.append(seen.append)
    try:
        yield MicroscopeReport(device.spec, seen)
    finally:
        try:
            device.settle_log()
        finally:
            device.observers.remove(seen.append)
