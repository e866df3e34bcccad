"""A trial: a kernel launched at one size, held against its spec, on a device of its own.

Each size gets a fresh device, so that no launch finds what another size has left. Two launches follow each
other on it, with other numbers: a counter that the first one left where it was, or results that it kept, show
in the second. Memory that a kernel is to fill holds noise that counts as unwritten, so that neither luck nor
zeros pass for a result. What is compared is a copy, and the reference has computed it before the kernel runs.
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c import GlobalMemory
from simgpu.cuda_c.text.source import Source
from simgpu.device import Device
from simgpu.errors import KernelFault, SimGpuError, UsageError
from simgpu.judging.kernel_spec import KernelSpec, Output, SpecError, asked, is_array
from simgpu.launches import Launched, LoadedKernel
from simgpu.memory import Memory
from simgpu.report.kernel_report import KernelReport

MAIN = Source("").filename  # what messages call the text that they are given
_MEASURED = (
    "us", "bound", "flops", "bytes_needed", "bytes_moved", "conflicts_per_request", "occupancy",
)  # fmt: skip
_Case = tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]  # what is passed, what must come out


@dataclass(frozen=True)
class Complaint:
    """What is wrong with a kernel, at which sizes."""

    kind: str  # the class of an error, or "ValuesError" and its like, which a spec adds
    message: str
    sizes: list[int]
    file: str | None = None  # and its line, where one is to blame
    line: int | None = None


class Trials:
    """Trials of one kernel in a text; `file` is the spec's, and `name` what messages call the kernel's."""

    def __init__(self, spec: KernelSpec, text: str, file: Path, name: str) -> None:
        self.spec, self.text, self.file, self.name = spec, text, file, name
        self.sizes: list[int] = []  # at which it was launched
        self.left_out: dict[int, str] = {}  # and where not: why
        self.complaints: list[Complaint] = []
        self.last: Launched | None = None

    def at(self, n: int, seeds: Sequence[int] = (1, 2)) -> bool:
        """Launch at size n, once for each seed; False if something is wrong.

        Where the spec raises, a size that is none of its own is left out.
        """
        try:
            shape = asked(self.file, self.spec.shape, n)
            given = [asked(self.file, self.spec.given, n, seed) for seed in seeds]
            cases = [(g, asked(self.file, self.spec.reference, g)) for g in given]
        except SpecError as error:
            if n in self.spec.sizes:
                raise
            self.left_out[n] = str(error)
            return True
        if 0 in (*shape[0], *shape[1]):
            self.left_out[n] = "no thread to launch"
            return True
        try:
            with redirect_stdout(io.StringIO()):  # what a kernel prints is no answer
                talks, found = self._launch(n, cases, shape, None)
                if talks and found is None:  # once more, in memory that is as late as CUDA allows
                    found = self._launch(n, cases[:1], shape, seeds[0] % 2**32)[1]
        except SimGpuError as error:
            found = self._blamed(error)
        if found is not None:
            self._complain(replace(found, sizes=[n]))
        return found is None

    def as_dict(self) -> dict[str, Any]:
        """The outcome, for JSON."""
        found = [asdict(complaint) for complaint in self.complaints]
        told = {"sizes": self.sizes, "left_out": self.left_out, "complaints": found}
        return {**told, "measured": self.measured()}

    def measured(self) -> dict[str, Any]:
        """The modelled time of the last launch in us, and some of what it did."""
        if self.last is None:
            return {}
        report = KernelReport(Device(spec=self.spec.gpu).spec, (self.last,))
        return {name: getattr(report, name) for name in _MEASURED}

    def _launch(
        self, n: int, cases: Sequence[_Case], shape: Any, adversary: int | None
    ) -> tuple[bool, Complaint | None]:
        """Launch one case after the other on one device; tell whether threads talk to each other."""
        device, seen = Device(spec=self.spec.gpu, adversary=adversary), list[Launched]()
        device.observers.append(seen.append)
        kernel = device.get_function(self.text, self.spec.kernel)
        if not self.spec.cooperative:
            kernel.kernel.check_cooperative("that is for the spec to say, by cooperative=True")
        talks, found = kernel.kernel.code.talks, _twins(kernel, [*cases[0][0].values()])
        if adversary is None:
            self.sizes.append(n)
        (grid, block, shared), count = shape, len(kernel.kernel.signature.parameters)
        for case in cases:
            places, given = _placed(device, case[0]), case[0]
            args = [places.get(id(value), value) for value in given.values()]
            cells = {key: memory.cells for key, memory in places.items()}
            for name in [*given][count:]:
                cells[id(given[name])] = _set_variable(kernel, name, given[name])
            device.launch(kernel, grid, block, args[:count], shared, device.default_stream)
            device.synchronize()
            found = found or _difference(self.spec, case, cells)
        self.last = seen[-1] if adversary is None else self.last
        return talks, found

    def _complain(self, new: Complaint) -> None:
        """Note what is wrong; the same thing at another size is not told twice."""
        for old in self.complaints:
            if (old.kind, old.file, old.line) == (new.kind, new.file, new.line):
                old.sizes.extend(new.sizes)
                return
        self.complaints.append(new)

    def _blamed(self, error: SimGpuError) -> Complaint:
        line = error.site.line if isinstance(error, KernelFault) else getattr(error, "line", None)
        file, line = (None, None) if line is None else Source(self.text).place(line)
        kind, text = type(error).__name__, str(error).replace(MAIN, self.name)
        return Complaint(kind, text, [], file and file.replace(MAIN, self.name), line)


def _twins(kernel: LoadedKernel, given: Sequence[Any]) -> Complaint | None:
    """An array under two names, which changes, though a pointer says that no other leads to it."""
    said, compiled = kernel.kernel.signature.parameters, kernel.kernel.code.parameters
    passed = [*zip(said, compiled, given)]  # noqa: B905 - a launch tells who takes another number
    for (one, a, x), (other, b, y) in permutations(passed, 2):
        memory = x is y and (is_array(x) or isinstance(x, Output))
        restrict = one.restrict or a.origin.has("restrict")
        if memory and restrict and (a.origin.has("written") or b.origin.has("written")):
            text = (
                f"'{one.name}' is __restrict__, and '{other.name}' is the same array, which changes"
            )
            return Complaint("RestrictError", text, [])
    return None


def _placed(device: Device, given: Mapping[str, Any]) -> dict[int, Memory]:
    """Memory for each array, by its `id`: filled, or with noise that nobody has written."""
    places: dict[int, Memory] = {}
    for name, value in given.items():
        if id(value) in places or not (is_array(value) or isinstance(value, Output)):
            continue
        nbytes = np.empty(value.shape, value.dtype).nbytes
        memory = places[id(value)] = device.malloc(nbytes, name, device.default_stream)
        if isinstance(value, Output):
            memory.cells.data[:] = np.random.default_rng(1).integers(0, 256, nbytes, np.uint8)
        else:
            memory.cells.data[:] = _bytes(value)
            memory.cells.mark_written()
    return places


def _bytes(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(np.asarray(value).tobytes(), np.uint8)


def _set_variable(kernel: LoadedKernel, name: str, value: Any) -> GlobalMemory:
    cells, data = kernel.program.variables.get(name), _bytes(value)
    if cells is None or len(data) > cells.nbytes:
        what = f"parameter and no variable for {len(data)} bytes of {name!r}"
        raise UsageError(f"{kernel.name}() has no {what}")
    cells.data[: len(data)] = data
    cells.mark_written(0, len(data))
    return cells


def _difference(
    spec: KernelSpec, case: _Case, places: Mapping[int, GlobalMemory]
) -> Complaint | None:
    """What a launch has left otherwise than it should have."""
    given, expected = case
    outputs = {id(given[name]) for name in expected}
    for name, value in given.items() if spec.expected is not None else ():
        if is_array(value) and id(value) not in outputs:
            changed = places[id(value)].data[: value.nbytes] != _bytes(value)
            if changed.any():
                where = _first(name, changed.reshape(-1, value.itemsize).any(axis=1), value.shape)
                return Complaint("InputChangedError", f"{where} changed, and is no output", [])
    for name, right in expected.items():
        cells, wanted = places[id(given[name])], np.empty(right.shape, given[name].dtype)
        got = cells.data[: wanted.nbytes].copy().view(wanted.dtype).reshape(right.shape)
        if not cells.fully_initialised:
            unset = (cells.shadow[: wanted.nbytes].reshape(-1, got.itemsize) == 0).any(axis=1)
            if unset.any():
                where = _first(name, unset, right.shape)
                return Complaint("UnwrittenError", f"nothing has written {where}", [])
        wrong = ~_agree(spec, got, right)
        if wrong.any():
            k = int(wrong.argmax())
            text = f"is {got.flat[k]}, and should be {right.flat[k]}"
            return Complaint("ValuesError", f"{_first(name, wrong, right.shape)} {text}", [])
    return None


def _agree(spec: KernelSpec, got: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Where both are equal, or close; NaN is equal to NaN and to nothing else."""
    if got.dtype.kind not in "fc":
        return np.asarray(got == right)
    spacing, wide = float(np.finfo(got.dtype).eps), np.result_type(got.dtype, np.float64)
    rtol = min(100 * spacing, 0.01) if spec.rtol is None else spec.rtol
    atol = min(10 * spacing, 0.001) if spec.atol is None else spec.atol
    with np.errstate(all="ignore"):
        right = right.astype(got.dtype).astype(wide)
        return np.asarray(np.isclose(got.astype(wide), right, rtol, atol, equal_nan=True))


def _first(name: str, found: NDArray[np.bool_], shape: tuple[int, ...]) -> str:
    """The name of the first element that is found, and how many there are."""
    index = ", ".join(map(str, np.unravel_index(int(found.argmax()), shape))) if shape else ""
    return f"'{name}'[{index}] ({np.count_nonzero(found):,} of {found.size:,})"
