"""Large launches: some blocks by the interpreter, all values by the kernel's own reference in NumPy.

The interpreter does some two billion instructions of threads in a second, and a product of two large
matrices may need a thousand times that. A lesson about streams doesn't care how those values come about, but
they have to be right, because later kernels and the reader look at them. Skipping the computation isn't
possible, then, and neither is waiting for it.

So a kernel may bring a reference, a function of NumPy that computes the same. For a large launch the
interpreter runs a sample of the blocks, on copies. All that they wrote has to agree with the reference, or
the launch fails and names the first element that differs. Then the reference's values are taken for all
blocks. The counts of the sample are scaled up, and times are made from those.

That assumes blocks which are alike and alone. So a launch is interpreted whole if its blocks meet at an
atomic, wait for each other, print, or follow addresses, if memory is made hostile to it, and if the reference
changes what lies before the first element that the sample wrote, or behind the last one. The sample
always has the first block and the last one, where mistakes with bounds show. A mistake that shows in none
of the sampled blocks goes unseen. Integers have to be equal; sums of floats may be a little off, because
NumPy adds in another order.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu import cuda_c
from simgpu.common import LaunchDim
from simgpu.cuda_c import GlobalMemory, KernelParameter, LaunchResult
from simgpu.errors import DeadlockError, ReferenceMismatchError

Reference = Callable[..., Any]
Values = Sequence[GlobalMemory | np.generic | None]
_Outputs = Sequence[tuple[KernelParameter, GlobalMemory]]

# Work from which on the reference stands in, in instructions of single threads; each thread counts FIXED more
# for what the interpreter spends on it before its first instruction. It does some 2e9 of these in a second.
LARGE = 1 << 32
FIXED = 300
SAMPLED_BLOCKS = 64
SAMPLED_THREADS = 16384  # which the interpreter runs side by side
_WORTH = 8  # the grid has to have that many times the sample's blocks
SMALLEST = 2 * _WORTH  # blocks: a sample has two at least

# How far a value of the reference may be off, as a part of the largest that was compared, by bytes of a
# floating-point number. Sums are added up in another order. Integers have to be equal.
TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-9}


@dataclass(frozen=True)
class StandIn:
    """A kernel that has a reference."""

    # `program` and `signature`: the kernel.
    program: cuda_c.Program
    signature: cuda_c.KernelSignature
    # See `KernelSource`. It gets arrays flat, and must not change them.
    reference: Reference
    above: float = LARGE  # the work from which on it is used; see `LARGE`

    def launch_sampled(
        self, grid: LaunchDim, block: LaunchDim, values: Values, shared_mem: int
    ) -> tuple[LaunchResult, str] | None:
        """Execute one launch, if it is large and can be checked; else None, and nothing is changed.

        What comes back is its result, and for the trace in words how it was computed. Raises `KernelFault` if
        a block of the sample does what no kernel may do; `ReferenceMismatchError` if the reference fails, or
        disagrees with the sample.
        """
        parameters = self.signature.parameters
        blocks = math.prod(grid)
        count = max(2, min(SAMPLED_BLOCKS, SAMPLED_THREADS // math.prod(block)))
        if blocks < _WORTH * count:
            return None
        pairs = zip(parameters, values, strict=True)
        outputs = [(p, v) for p, v in pairs if isinstance(v, GlobalMemory) and not p.const]
        known = all(parameter.dtype is not None for parameter in parameters)
        apart = len({id(memory) for _, memory in outputs}) == len(outputs)
        if not known or not apart:
            return None
        copies = {id(memory): memory.copy() for _, memory in outputs}
        given = [copies.get(id(v), v) if isinstance(v, GlobalMemory) else v for v in values]
        launch, more = (self.signature.name, grid, block, given), {"dynamic_shared": shared_mem}
        try:
            tried = self.program.begin(*launch, **more, sample=_sample(blocks, count)).finish()
        except DeadlockError:
            return None  # because some may wait for blocks that are not in the sample
        counts = tried.counts
        work = (counts.threads * FIXED + counts.warp_instructions * 32) * blocks / counts.blocks
        # Blocks that meet in an atomic need each other; and all are to print.
        if counts.atomics or tried.printed or work <= self.above:
            return None
        found = [*zip(outputs, self._call(values, outputs), strict=True)]
        # If the sample has written nothing, nothing speaks for the reference.
        if not sum(self._compare(p, copies[id(memory)], new) for (p, memory), new in found):
            return None
        spans = [_hull(copies[id(memory)]) for _, memory in outputs]
        for ((_, memory), new), span in zip(found, spans, strict=True):
            changed = memory.data[: new.nbytes] != new.view(np.uint8)
            changed[span] = False
            # Perhaps blocks that are not in the sample write there, and perhaps nobody does.
            if (changed & (memory.shadow[: new.nbytes] > 0)).any():
                return None
        for ((_, memory), new), span in zip(found, spans, strict=True):
            memory.data[span] = new.view(np.uint8)[span]
            memory.mark_written(span.start, span.stop)
        counts = _extrapolated(counts, blocks, values, outputs)
        how = (
            f"by its NumPy reference, which agrees with the {count} of {blocks} blocks that were "
            "interpreted; counts are extrapolated from them"
        )
        return LaunchResult(counts, ""), how

    def _call(self, values: Values, outputs: _Outputs) -> list[NDArray[Any]]:
        """The reference's outputs, flat, in the types of the kernel's."""
        name = self.signature.name
        pairs = zip(values, self.signature.parameters, strict=True)
        given = [
            _view(v, p) if isinstance(v, GlobalMemory) else None if v is None else v.item()
            for v, p in pairs
        ]
        try:
            with np.errstate(all="ignore"):
                returned = self.reference(*given)
        except Exception as error:
            raise ReferenceMismatchError(
                f"the reference of kernel '{name}' failed: {type(error).__name__}: {error}. It is called "
                "with all of the kernel's arguments, arrays flat and read-only."
            ) from error
        several: Sequence[Any] = returned
        if not isinstance(returned, tuple | list):
            several = (returned,)
        if len(several) != len(outputs):
            wanted = ", ".join(parameter.name for parameter, _ in outputs)
            raise ReferenceMismatchError(
                f"the reference of kernel '{name}' returned {len(several)} arrays, and the kernel may "
                f"write to {len(outputs)} ({wanted}): return one for each, in their order"
            )
        return [self._output(*of, array) for of, array in zip(outputs, several, strict=True)]

    def _output(self, parameter: KernelParameter, memory: GlobalMemory, given: Any) -> NDArray[Any]:
        name, array = self.signature.name, np.asarray(given)
        target = _view(memory, parameter)
        if array.size != target.size or not np.can_cast(array.dtype, target.dtype, "same_kind"):
            raise ReferenceMismatchError(
                f"the reference of kernel '{name}' returned {array.size} elements of {array.dtype} for "
                f"'{parameter.name}', which holds {target.size} of {target.dtype}"
            )
        return np.ascontiguousarray(array.reshape(-1), target.dtype)

    def _compare(self, parameter: KernelParameter, tried: GlobalMemory, new: NDArray[Any]) -> int:
        """The number of elements that the sample wrote; all of them have to agree."""
        trail, size = tried.trail, new.dtype.itemsize
        assert trail is not None
        index = np.flatnonzero(trail[: new.nbytes].view(f"u{size}"))
        ours, theirs = _view(tried, parameter)[index], new[index]
        bad = ours != theirs
        allowed = 0.0
        if new.dtype.kind == "f":
            finite = np.abs(theirs[np.isfinite(theirs)])
            allowed = TOLERANCE[size] * float(finite.max(initial=0))
            with np.errstate(invalid="ignore"):
                bad &= ~(np.abs(ours - theirs) <= allowed) & ~(np.isnan(ours) & np.isnan(theirs))
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ReferenceMismatchError(
                f"kernel '{self.signature.name}' and its reference disagree: "
                f"'{parameter.name}'[{int(index[first])}] is {ours[first]} in the kernel, as the "
                f"interpreter runs it, and {theirs[first]} in the reference ({int(bad.sum()):,} of the "
                f"{len(index):,} elements compared differ by more than {allowed:.2g}). Correct one of "
                "the two."
            )
        return len(index)


def _hull(tried: GlobalMemory) -> slice:
    """The bytes from the first to the last one that the sample wrote."""
    assert tried.trail is not None
    wrote = np.flatnonzero(tried.trail)
    return slice(int(wrote[0]), int(wrote[-1]) + 1) if len(wrote) else slice(0, 0)


def _sample(blocks: int, count: int) -> list[int]:
    """Numbers of so many blocks: the first, the last, and some in between, always the same ones."""
    rng = np.random.default_rng(blocks)
    between = rng.choice(np.arange(1, blocks - 1), count - 2, replace=False)
    return sorted([0, *between.tolist(), blocks - 1])


def _view(memory: GlobalMemory, parameter: KernelParameter) -> NDArray[Any]:
    """An array of the kernel, flat and read-only."""
    assert parameter.dtype is not None, "launch() has made sure of that"
    view = memory.view(parameter.dtype)[:]
    view.flags.writeable = False
    return view


def _extrapolated(
    counts: cuda_c.Counts, blocks: int, values: Values, outputs: _Outputs
) -> cuda_c.Counts:
    """Of all blocks, when those of the sample are like the others."""
    factor = blocks / counts.blocks
    # Different bytes cannot be more than there are.
    arrays = {id(v): v.nbytes for v in values if isinstance(v, GlobalMemory)}
    most = {"load_bytes_needed": sum(arrays.values())}
    most["store_bytes_needed"] = sum(memory.nbytes for _, memory in outputs)

    def scaled(name: str, amounts: list[int]) -> int:
        amount = amounts[0] if name in cuda_c.NOT_SUMMED else round(amounts[0] * factor)
        return min(amount, most.get(name, amount))

    return cuda_c.combined([counts], scaled)
