"""A plugin for pytest: each size of a spec is a test, and `gpu` is a fixture.

The wheel of simgpu registers it; elsewhere `pytest -p simgpu.pytest_plugin` loads it. Reports have the lines
of the kernel's file and of the test, and none of simgpu's own.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from simgpu.errors import SimGpuError

if TYPE_CHECKING:
    from simgpu.device import Device
    from simgpu.judging.trial import Trials


class SpecFile(pytest.File):
    """A file of specs, `mine_spec.py` beside `mine.cu`."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each size of each spec."""
        from simgpu.cuda_c import join_headers
        from simgpu.judging.kernel_spec import asked, file_beside, load_specs
        from simgpu.judging.trial import Trials

        source = file_beside(self.path)
        try:
            if source is None:
                raise self.CollectError(f"there is no .cu or .cuh file beside {self.path.name}")
            text, specs = join_headers(source), load_specs(self.path)
            more = [asked(self.path, spec.awkward_sizes) for spec in specs]
            sizes = {(k, n): s for k, s in enumerate(specs) for n in (*s.sizes, *more[k])}
        except SimGpuError as error:
            raise self.CollectError(str(error)) from None
        for (_, n), spec in sizes.items():
            item = cast(Any, SpecItem).from_parent(self, name=f"{spec.kernel}[n={n}]")
            item.n, item.trials = n, Trials(spec, text, self.path, source.name)
            yield item


class SpecItem(pytest.Item):
    """A kernel at one size."""

    n: int
    trials: Trials

    def runtest(self) -> None:
        """Launch it; a size that the spec can't have is skipped."""
        try:
            self.trials.at(self.n)
        except SimGpuError as error:
            pytest.fail(str(error), pytrace=False)
        for why in self.trials.left_out.values():
            pytest.skip(why)
        for found in self.trials.complaints:
            where = f"{found.file}:{found.line}: " if found.line else ""
            pytest.fail(f"{where}{found.kind}: {found.message}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where a report puts it."""
        return self.path, None, self.name


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files of specs; others may end so, too."""
    ours = file_path.name.endswith("_spec.py") and b"KernelSpec" in file_path.read_bytes()
    return cast(Any, SpecFile).from_parent(parent, path=file_path) if ours else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Leave simgpu's own frames out of a hazard's report."""
    if call.excinfo is not None and isinstance(call.excinfo.value, SimGpuError):
        for name, module in [*sys.modules.items()]:
            if name.partition(".")[0] == "simgpu":
                vars(module)["__tracebackhide__"] = True


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A simulated GPU of the test's own, on which `simgpu.asarray` makes arrays.

    Behind the test comes what nobody waited for: errors of launches, and arrays that something keeps alive.
    """
    from simgpu import arrays, memory

    session = cast(Any, request.session)
    before, device, failed = [*arrays._current], arrays.Device(), session.testsfailed
    arrays.use_device(device)
    try:
        yield device
        if failed == session.testsfailed:
            device.synchronize()
            gc.collect()
            left = memory.leak_report(device.heap.alive())
            if left:
                pytest.fail(left.replace("at exit", "behind the test"), pytrace=False)
    finally:
        arrays._current[:] = before
