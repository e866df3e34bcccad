"""The spec of a kernel: how it is launched, and what it has to compute.

It's a Python file beside the kernel's, `mine_spec.py` beside `mine.cu`, and not TOML: a reference in NumPy is
Python anyway, and so are shapes that follow from n. Its code is executed; a kernel is never more than data.
"""

import math
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from operator import index
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike

from simgpu.common import LaunchDim, as_element_type, as_lengths
from simgpu.cuda_c import check_byte_order, check_shape
from simgpu.cuda_c.text.joined import CUDA_FILES
from simgpu.errors import SimGpuError, UsageError
from simgpu.gpus import find_spec

SPEC_ENDING = "_spec.py"
# The kinds of NumPy's numbers that a reference may return for what a kernel writes, by the kind of that.
_HELD_AGAINST = {"b": "biuf", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}
T = TypeVar("T")
_OfSize: TypeAlias = T | Callable[[int], T]


class SpecError(UsageError):
    """A spec that cannot be used: it is wrong, and not the kernel."""


@dataclass(frozen=True)
class Output:
    """An array of this shape that a kernel fills, and that nobody has written before."""

    shape: int | tuple[int, ...]
    dtype: DTypeLike = np.float32


@dataclass(frozen=True)
class KernelSpec:
    """How a kernel is launched at any size n, and what it has to compute.

    Parameters
    ----------
    kernel : str
        Its name; an instance of a template as ``"scale<float>"``.
    arguments : callable
        ``arguments(n, random)`` returns what is passed, by name, in the order of the parameters: numbers,
        None, arrays of NumPy, and an `Output` for each array that the kernel fills. One array under two names
        is one memory. Behind these may come ``__constant__`` and ``__device__`` variables. Take all numbers
        from `random`, a `numpy.random.Generator`.
    expected : callable, optional
        The reference: ``expected(**arguments)``, without each `Output`, returns the arrays to compare, by
        name; if there is one `Output`, that array does. Other arrays must be unchanged. Without a reference
        only hazards count.
    sizes : sequence of int
        The sizes that matter. The largest one is timed.
    awkward : sequence of int, optional
        Others where mistakes show. By default 0, 1, two primes, and a block's width, one less and one more.
    block, grid, shared : int, tuple of int, or callable
        Threads of a block, blocks, and bytes of dynamic shared memory, or a function of n that returns them.
        By default the grid has a thread for each of n, in each direction of the block.
    cooperative : bool
        Whether the launch is a cooperative one, whose blocks may meet at a barrier of the grid.
    rtol, atol : float, optional
        Tolerances, as of `numpy.isclose`; by default 100 and 10 times the spacing of such floats at 1.
    gpu : str
        Whose times are modelled, as in `simgpu.SPECS`.
    """

    kernel: str
    arguments: Callable[[int, np.random.Generator], Mapping[str, Any]]
    expected: Callable[..., Any] | None = None
    sizes: Sequence[int] = (1000,)
    awkward: Sequence[int] | None = None
    block: _OfSize[int | Sequence[int]] = 256
    grid: _OfSize[int | Sequence[int]] | None = None
    shared: _OfSize[int] = 0
    cooperative: bool = False
    rtol: float | None = None
    atol: float | None = None
    gpu: str = "h200"

    def __post_init__(self) -> None:
        """Refuse what no trial can use, where it is written."""
        for name, given in (("sizes", self.sizes), ("awkward", self.awkward)):
            if given is None:
                continue
            try:
                numbers = tuple(map(index, given))
            except TypeError:
                numbers = (-1,)
            if min(numbers, default=-1 if name == "sizes" else 0) < 0:
                text = f"{name} are whole numbers, at least one and none below 0: got {given}"
                raise SpecError(text)
            object.__setattr__(self, name, numbers)  # in Python's ints, if NumPy's were given
        for name, limit in (("rtol", self.rtol), ("atol", self.atol)):
            number = isinstance(limit, float | int | np.floating | np.integer)
            if limit is not None and not (number and 0 <= limit < math.inf):
                raise SpecError(f"{name} is a number, not below 0 nor infinite: got {limit!r}")
        find_spec(self.gpu)

    def awkward_sizes(self) -> list[int]:
        """Sizes at which kernels are wrong more often, without those of `sizes`."""
        found = self.awkward
        if found is None:
            width = self.shape(max(self.sizes))[1][0]
            above = range(2 * width + 1, 5 * width)
            prime = next(k for k in above if all(k % d for d in range(2, k)))
            found = (1, 13, width - 1, width, width + 1, prime, 0)
        return [n for n in dict.fromkeys(found) if n not in self.sizes]

    def shape(self, n: int) -> tuple[LaunchDim, LaunchDim, int]:
        """Grid, block and bytes of shared memory at size n; the grid may be empty."""
        block, shared = _dim(_at(self.block, n)), _at(self.shared, n)
        tight = [-(-n // max(w, 1)) if w > 1 or not axis else 1 for axis, w in enumerate(block)]
        grid = _dim(tight if self.grid is None else _at(self.grid, n))
        if 0 not in (*grid, *block):  # nothing to launch is no mistake
            return check_shape(self.kernel, grid, block, shared)
        return grid, block, shared

    def given(self, n: int, seed: int) -> dict[str, Any]:
        """The arguments at size n, each array contiguous; an array under two names stays one."""
        found = self.arguments(n, np.random.default_rng(seed))
        for value in found.values():
            if isinstance(value, Output):
                as_lengths(value.shape, "an Output")
                as_element_type(value.dtype, "an Output")
        arrays = {id(v): v for v in found.values() if is_array(v)}
        for key, array in arrays.items():
            check_byte_order(array.dtype, "an argument")
            arrays[key] = np.ascontiguousarray(array).reshape(array.shape)
        names = {id(value): name for name, value in found.items()}
        for (one, a), (other, b) in combinations(arrays.items(), 2):
            if np.may_share_memory(a, b):
                cure = "pass one array under both names, or copies"
                raise SpecError(f"{names[one]!r} and {names[other]!r} overlap: {cure}")
        return {name: arrays.get(id(value), value) for name, value in found.items()}

    def reference(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays that the reference computes, by name. It gets copies, and gives copies."""
        if self.expected is None:
            return {}
        copies = {id(v): v.copy() for v in given.values() if is_array(v)}
        outputs = [name for name, value in given.items() if isinstance(value, Output)]
        passed = {k: copies.get(id(v), v) for k, v in given.items() if k not in outputs}
        found: Any = self.expected(**passed)
        if not isinstance(found, Mapping):
            if len(outputs) != 1:
                raise SpecError("expected() returns arrays by name, unless there is one Output")
            found = {outputs[0]: found}
        values = {str(k): np.array(v) for k, v in cast("Mapping[Any, Any]", found).items()}
        if not values:
            text = "returns no arrays, so any kernel would do: without a reference, leave it out"
            raise SpecError(f"expected() {text}")
        for name, value in values.items():
            array = cast(Any, given.get(name))
            if not (is_array(array) or type(array) is Output):
                raise SpecError(f"expected() returns {name!r}, which is no array of the arguments")
            right = np.empty(array.shape, array.dtype)
            kinds = _HELD_AGAINST.get(right.dtype.kind, value.dtype.kind)
            if right.shape != value.shape or value.dtype.kind not in kinds:
                text = f"{value.shape} {value.dtype} for {name!r} of {right.shape} {right.dtype}"
                raise SpecError(f"expected() returns {text}")
        for (one, a), (other, b) in combinations(values.items(), 2):
            if given[one] is given[other] and not np.array_equal(a, b, a.dtype.kind in "fc"):
                raise SpecError(f"{one!r} and {other!r} are one array: expected() returns two")
        return values


def is_array(value: Any) -> bool:
    """Tell whether an argument is an array of NumPy."""
    return isinstance(value, np.ndarray)


def _at(value: Any, n: int) -> Any:
    return value(n) if callable(value) else value


def _dim(size: Any) -> LaunchDim:
    several: Any = cast(Any, size) if isinstance(size, Iterable) else (size,)
    given: list[Any] = [x.item() if isinstance(x, np.generic) else x for x in several]
    return cast(LaunchDim, (*given, 1, 1, 1)[: max(3, len(given))])


def asked(file: Path, ask: Callable[..., T], *args: Any) -> T:
    """What a spec's own code answers; if it raises, `SpecError` with the line of its file."""
    try:
        return ask(*args)
    except Exception as error:
        if isinstance(error, SimGpuError):
            raise SpecError(str(error)) from error
        calls = traceback.extract_tb(error.__traceback__)
        lines = [call.lineno for call in calls if Path(call.filename) == file]
        where = f":{lines[-1]}" if lines else ""
        raise SpecError(f"{file.name}{where}: {type(error).__name__}: {error}") from error


def load_specs(path: Path) -> list[KernelSpec]:
    """The specs that a file has at its top level, by themselves or in lists; it is executed."""
    file = path.resolve()
    found = spec_from_file_location(f"simgpu_{file.stem}", file)
    if found is None or found.loader is None:
        raise SpecError(f"{path.name} is no Python file")
    module = module_from_spec(found)
    sys.path.insert(0, str(file.parent))  # as for a script
    try:
        asked(file, found.loader.exec_module, module)
    finally:
        sys.path.remove(str(file.parent))
    lists: list[list[Any]] = [v if isinstance(v, list) else [v] for v in vars(module).values()]
    specs = [item for items in lists for item in items if isinstance(item, KernelSpec)]
    if not specs:
        raise SpecError(f"{path.name} has no KernelSpec at its top level")
    return [*{id(spec): spec for spec in specs}.values()]


def file_beside(spec: Path) -> Path | None:
    """The kernel's file beside a spec: `mine.cu` beside `mine_spec.py`."""
    stem = spec.name.removesuffix(SPEC_ENDING)
    return next((f for end in CUDA_FILES if (f := spec.with_name(stem + end)).is_file()), None)
