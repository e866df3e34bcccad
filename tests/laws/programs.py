"""Random programs of operations, with what they ought to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import asyncgpu_tutor as agt

from .kernels import add, scale

N = 40  # not a multiple of the block


@dataclass(frozen=True)
class Program:
    """A tree of combinators. `op` builds it afresh; `expected` is what NumPy says."""

    kind: str
    number: float = 0.0
    arms: tuple[Program, ...] = ()

    def op(self) -> agt.DeviceOp[agt.DeviceArray]:
        if self.kind == "full":
            return agt.full((N,), self.number)
        if self.kind == "upload":
            return agt.h2d(agt.pin(np.full(N, self.number, np.float32)))
        first = self.arms[0].op()
        if self.kind == "scale":
            return first.and_then(lambda array: scale(array, self.number))
        if self.kind == "map":
            return first.map(lambda array: array)
        if self.kind == "context":
            return first.and_then_with_context(lambda _, array: agt.value(array))
        if self.kind == "twice":
            once = first.shared()
            return agt.zip(once, once).and_then(lambda pair: add(pair[0], pair[1], N))
        if self.kind == "kernel takes ops":
            return add(first, self.arms[1].op(), N)
        if self.kind == "unzip":
            left, right = agt.zip(first, self.arms[1].op()).unzip()
            return add(left, right, N)
        join = agt.zip if self.kind == "zip" else agt.overlap
        return join(first, self.arms[1].op()).and_then(lambda pair: add(pair[0], pair[1], N))

    def expected(self) -> npt.NDArray[Any]:
        """The result, in float32 as on a device; the numbers are small integers, so it is exact."""
        if self.kind in ("full", "upload"):
            return np.full(N, self.number, np.float32)
        first = self.arms[0].expected()
        if self.kind == "scale":
            return first * np.float32(self.number)
        if self.kind in ("map", "context"):
            return first
        return first + (first if self.kind == "twice" else self.arms[1].expected())


NUMBERS = st.integers(-3, 3).map(float)
LEAVES = st.builds(Program, st.sampled_from(["full", "upload"]), NUMBERS)


def _grow(programs: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    one, two, none = st.tuples(programs), st.tuples(programs, programs), st.just(0.0)
    of_one = st.sampled_from(["map", "context", "twice"])
    of_two = st.sampled_from(["zip", "overlap", "unzip", "kernel takes ops"])
    return st.one_of(
        st.builds(Program, st.just("scale"), NUMBERS, one),
        st.builds(Program, of_one, none, one),
        st.builds(Program, of_two, none, two),
    )


PROGRAMS = st.recursive(LEAVES, _grow, max_leaves=6)
