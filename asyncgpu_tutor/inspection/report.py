"""The kernels of a run: found by name, tabulated, and beside their source."""

from __future__ import annotations

from collections.abc import Sequence

from asyncgpu_tutor.devices.simulated import DeviceSpec, Launched
from asyncgpu_tutor.devices.simulated.report import KernelReport, add_up, annotate, render
from asyncgpu_tutor.errors import UsageError


class Report:
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
        groups: dict[tuple[object, ...], list[Launched]] = {}
        for launch in self._launches:
            shape = (launch.grid, launch.block, launch.counts.shared_bytes)
            key = (launch.kernel, launch.source, *shape)
            groups.setdefault(key, []).append(launch)
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

    def table(self, *, width: int = 100) -> str:
        """All numbers as text, a column for each entry of `kernels`.

        Parameters
        ----------
        width : int
            Letters that a line may have; columns that do not fit follow below.
        """
        return render(self.spec, self.kernels, width)

    def source(self, name: str) -> str:
        """The source of a kernel, each line with what it did in all launches of that kernel together.

        Raises
        ------
        UsageError
            If no such kernel ran, or kernels of different sources have that name.
        """
        launches = [launch for launch in self._launches if launch.kernel == name]
        sources = list(dict.fromkeys(launch.source for launch in launches))
        if not launches:
            raise UsageError(f"no kernel {name!r} ran: there is {self._names()}")
        if len(sources) > 1:
            raise UsageError(
                f"{len(sources)} kernels of different sources are called {name!r}: look at each in a "
                "microscope of its own"
            )
        return annotate(name, sources[0], len(launches), add_up([x.counts for x in launches]))
