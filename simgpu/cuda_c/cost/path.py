"""How long a warp that is alone takes for straight code: the longest chain of results.

A warp issues in order, and a result can be used a few clocks later. What does not depend on it goes on
meanwhile, so that code costs its longest chain and not the sum of its latencies. Turns of an unrolled loop go
side by side but for what one turn hands to the next, such as a sum.

Latencies are in clocks. Arithmetic: Jia et al., "Dissecting the NVIDIA Volta GPU architecture via
microbenchmarking", 2018. Shared memory: Luo et al., "Benchmarking and dissecting the NVIDIA Hopper GPU
architecture via microbenchmarking", 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simgpu.cuda_c.compile.variables import Variable

ARITHMETIC = 4.0
SHARED = 29.0
BRANCH = 12.0  # from a condition to what depends on it; as `collatz` shows in docs/fidelity.md
# A function is a piece of code of its own, in which most instructions wait for the one before.
OF_FUNCTION = 3.0
SHORT = 3  # instructions up to which it is none


@dataclass(frozen=True, slots=True)
class When:
    """When a value is there, in clocks.

    `ready` counts from the begin of straight code; `carried` from what the turn before has handed over, and
    is negative if the value does not depend on that.
    """

    ready: float = 0.0
    carried: float = -1.0

    def later(self, clocks: float) -> When:
        """The same, so much later."""
        return When(self.ready + clocks, self.carried + clocks if self.carried >= 0 else -1.0)


START = When()
HANDED = When(0.0, 0.0)


def latency(instructions: float) -> float:
    """Of an operation that takes so many instructions; none if it is computed elsewhere."""
    if instructions <= SHORT:
        return ARITHMETIC * min(instructions, 1)
    return OF_FUNCTION * instructions


@dataclass
class Path:
    """The longest chain of the straight code that the walk is in, and of all before."""

    changed: frozenset[Variable] = (
        frozenset()
    )  # what turns of the innermost loop hand to each other
    # Those of them by which the next turn waits for this one.
    rings: set[Variable] = field(default_factory=set[Variable])
    # The condition of the branch that the walk is in, if a compiler makes a selection of it.
    test: When | None = None
    _known: dict[Variable, When] = field(default_factory=dict[Variable, When])
    _longest: float = 0.0
    _carried: float = 0.0
    _charged: tuple[float, float] = (0.0, 0.0)

    def read(self, variable: Variable) -> When:
        """When a variable can be used."""
        return self._known.get(variable, HANDED if variable in self.changed else START)

    def use(self, when: When) -> None:
        """A value has been made."""
        self._longest = max(self._longest, when.ready)

    def assign(self, variable: Variable, when: When) -> None:
        """A variable gets a value, or keeps its own, if that depends on a test."""
        if self.test is not None:
            given = (self.test, when, self.read(variable))
            ready, carried = max(w.ready for w in given), max(w.carried for w in given)
            when = When(ready, carried).later(ARITHMETIC)
            self.use(when)
        self._known[variable] = when
        if variable in self.changed and when.carried >= 0:
            self.rings.add(variable)
            self._carried = max(self._carried, when.carried)

    def wait(self, clocks: float) -> None:
        """All that has been made is waited for, and so much longer, as a branch does."""
        self._longest += clocks

    def begin(self) -> None:
        """Straight code begins: what is known has come."""
        self._known.clear()
        self._longest = self._carried = 0.0
        self._charged = (0.0, 0.0)

    def passed(self) -> tuple[float, float]:
        """Return what was added since the last call: the part handed from turn to turn, and the rest."""
        now = self._carried, max(0.0, self._longest - self._carried)
        before, self._charged = self._charged, now
        return now[0] - before[0], now[1] - before[1]
