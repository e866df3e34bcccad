"""`a * b + c` as one operation rounded once, as NVRTC makes it unless told `-fmad=false`.

Which of two products is fused with their sum depends on the order in which LLVM's pass "reassociate" sorts
the operands of the sum. It gives each value a rank: constants come first, then parameters, then what is
loaded, in the order of the source (of a struct, member by member, hence the fractions); an operation ranks
just behind its operands. Of two products the left one is fused, once the operands are sorted. (LLVM,
lib/Transforms/Scalar/Reassociate.cpp, BuildRankMap and getRank; tried with NVRTC 12.9 and 13.0, and on an
H200.) Only products that stand in the sum itself are fused here; NVVM also fuses those that a variable
carries from one statement to the next.
"""

from simgpu.cuda_c.compile.typed import Evaluate, Expr
from simgpu.cuda_c.lockstep.values import fused
from simgpu.cuda_c.types import Scalar


class Ranks:
    """Hands out the ranks of parameters and of what is loaded."""

    def __init__(self) -> None:
        self._parameters = 2
        self._block = 1 << 16
        self._loads = 0

    def parameter(self) -> int:
        self._parameters += 1
        return self._parameters

    def rank_of_load(self) -> int:
        """Rank of the next value from memory, or from a call."""
        self._loads += 1
        return self._block + self._loads

    def branch(self) -> None:
        """Begin another basic block, whose rank in LLVM is its number << 16.

        So whatever is loaded in it ranks behind all of the blocks before.
        """
        self._block += 1 << 16
        self._loads = 0


def contracted(op: str, x: Expr, y: Expr, kind: Scalar) -> Evaluate | None:
    """`x + y` or `x - y` with a product among them fused; None if there is none to fuse."""
    if x.constant is not None and y.constant is not None:
        return None
    if op == "+" and y.rank < x.rank:
        x, y = y, x
    factors, c = (y.product, x.run) if x.product is None else (x.product, y.run)
    if factors is None:
        return None
    fma, (a, b) = fused(kind), factors
    if op == "+":
        return lambda t, m: fma(a(t, m), b(t, m), c(t, m))
    if x.product is None:
        return lambda t, m: fma(-a(t, m), b(t, m), c(t, m))
    return lambda t, m: fma(a(t, m), b(t, m), -c(t, m))
