"""How long a warp that is alone takes for straight code: the longest chain of results.

A warp issues in order, and a result can be used a few clocks later. What does not depend on it goes on
meanwhile, so that code costs its longest chain and not the sum of its latencies. Turns of an unrolled loop go
side by side but for what one turn hands to the next, such as a sum.

Latencies are in clocks, measured on an H200 (driver 580.159, 2026-11-23 and 24) in loops of turns that need
each the one before, by `python tools/fidelity chains record FILE`: docs/fidelity.md has them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from simgpu.cuda_c.compile.variables import Variable

ARITHMETIC = 4.0
ALU = 4.6  # comparisons of which the greater is taken, shifts and bits
TEST = 13.0  # from a comparison to what it decides on
SHARED = 29.0
TRIP = 300.0  # from a load of global memory to its value, about (`DeviceSpec.load_clocks`)
# What no cache of an SM answers (`tools/fidelity/contention.py`, H200, 2026-11-28):
ATOMIC = 450.0  # if its result is needed; 396 in the near half of the chip, 515 in the far one
VOLATILE = 310.0  # a read
# Of the device, 560 to 760 behind loads, stores or atomics under way, 282 behind none. Of the system,
# 1,164 to 1,321 whatever is under way on the device (`tools/fidelity/fences.py`, H200, 2026-11-30).
FENCE_CLOCKS = {"block": 0.0, "device": 600.0, "system": 1200.0}
ACQUIRED = 50.0  # of a read that acquires, what makes it longer than another
EXCHANGE = 25.5  # with other lanes of the warp
# Besides the instruction: from a condition to what depends on it, and from turn to turn.
BRANCH = 7.0
# A function that is not in the table is a piece of code in which most instructions wait for the one before.
OF_FUNCTION = 3.0
_SHORT = 3  # instructions up to which it is none
# Between two numbers at hand, of which a comparison is an operand: no TEST, but as much again.
SELECT = 4.6
BOTH = 6.0  # a comparison that takes the result of another
TO_INTEGER = 18.0  # from a float
TO_FLOAT = 6.0
TO_DOUBLE = 19.5  # and from there
VOTE = 14.0  # of `__ballot_sync` and its like
REDUCE = 42.0  # `__reduce_add_sync`
ENTRY = 25.0  # a branch in front of or behind a loop of which many turns are done at once
LATENCY = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), TEST),
    **dict.fromkeys(("&", "|", "^", "<<", ">>"), ALU),
    "/": 57.0, "sqrt": 56.0, "rsqrt": 39.0, "cbrt": 78.0, "exp": 42.0, "exp2": 28.0, "expm1": 97.0,
    "log": 85.0, "log2": 93.0, "log1p": 90.0, "sin": 108.0, "cos": 114.0, "tan": 123.0, "tanh": 63.0,
    "asin": 93.0, "acos": 99.0, "atan": 76.0, "atan2": 133.0, "sinh": 106.0, "erf": 69.0,
    "erfc": 123.0, "pow": 232.0, "hypot": 110.0, "fmod": 176.0, "__exp": 43.0,
    "__log": 44.0, "__sin": 21.0, "__fdividef": 41.0,
    "__frcp_rn": 77.0, "floor": 18.0, "fmax": ALU, "fmin": ALU, "max": ALU, "min": ALU,
    # Of integers: by a number that no turn changes, so that its reciprocal is known; by a constant, and what
    # that leaves; of 64 bits, or of 32 to 64.
    "int /": 126.0, "int / same": 59.0, "int / known": 10.0, "int % known": 20.0, "long /": 175.0,
    "long *": 17.0, "wide *": 6.0,
    "__popc": 19.0, "__clz": 19.0, "__brev": 19.0, "__ffs": 36.0, "__umul64hi": 36.0,
}  # fmt: skip
DOUBLE_ARITHMETIC = 8.2
DOUBLES = {
    "/": 125.0, "__frcp_rn": 75.0, "sqrt": 91.0, "rsqrt": 66.0, "exp": 153.0, "log": 289.0, "sin": 235.0,
    "cos": 237.0, "tanh": 288.0, "pow": 755.0, "fmax": 20.0, "fmin": 20.0,
}  # fmt: skip
_MANY = 32  # turns of a loop
AGAIN = 74.0  # the cosine of a number of which there is the sine
# Those of them with a branch for numbers that need more care. No compiler mixes turns across it.
BRANCHING = {"/", "sqrt", "sin", "cos", "tan", "fmod", "pow", "__frcp_rn"}
# What these take behind their branch.
TAIL = {"sin": 45.0, "cos": 45.0, "tan": 45.0}
# What is left of them when their branch is issued.
BEHIND = {**TAIL, "sqrt": 30.0}


class When(NamedTuple):
    """When a value is there, in clocks.

    `ready` counts from the begin of straight code; `since` from each variable that the turn before has handed
    over and that the value depends on. `loads` of global memory have come one after another, and `near` ones
    of shared memory.
    """

    ready: float = 0.0
    since: Mapping[Variable, float] = {}  # which nobody changes
    loads: int = 0
    near: int = 0

    @property
    def carried(self) -> float:
        """Clocks from what the turn before has handed over; negative if nothing of it is needed."""
        return max(self.since.values(), default=-1.0)

    def later(self, clocks: float, loads: int = 0, near: int = 0) -> When:
        """The same, so much later."""
        since = {variable: passed + clocks for variable, passed in self.since.items()}
        return When(self.ready + clocks, since, self.loads + loads, self.near + near)


def last(whens: Iterable[When]) -> When:
    """When all of these are there."""
    ready, since, loads, near = 0.0, dict[Variable, float](), 0, 0
    for when in whens:
        ready = max(ready, when.ready)
        if when.loads or when.near:
            loads, near = max(loads, when.loads), max(near, when.near)
        for variable, passed in when.since.items():
            since[variable] = max(since.get(variable, 0.0), passed)
    return When(ready, since, loads, near)


START = When()


def latency(instructions: float, name: str = "", double: bool = False) -> float:
    """Of an operation or a function that takes so many instructions; none if it is computed elsewhere."""
    known = LATENCY.get(name, LATENCY.get(name.removesuffix("f")))
    known = DOUBLES.get(name, known) if double else known
    if instructions <= _SHORT or known is not None:
        return (known or (DOUBLE_ARITHMETIC if double else ARITHMETIC)) * min(instructions, 1)
    return OF_FUNCTION * instructions


@dataclass
class Path:
    """The longest chain of the straight code that the walk is in, and of all before."""

    # What turns of the innermost loop hand to each other.
    changed: frozenset[Variable] = frozenset()
    # Those of them by which the next turn waits for this one.
    rings: set[Variable] = field(default_factory=set[Variable])
    base: When = START  # what comes now does not begin before this
    # For each variable that a turn hands on, how long after what it was given the next one has it; and
    # whether that is all, because a turn has no branch.
    handed: dict[Variable, Mapping[Variable, float]] = field(
        default_factory=dict[Variable, "Mapping[Variable, float]"]
    )
    straight: bool = True
    part: int = 0  # the number of the straight code: times of values count within it
    _known: dict[Variable, When] = field(default_factory=dict[Variable, When])
    made: When = START  # all that was computed so far
    _carried: float = 0.0
    _charged: tuple[float, float, int, int] = (0.0, 0.0, 0, 0)

    def known_of(self, variable: Variable) -> When:
        """When a variable can be used."""
        known = self._known.get(variable)
        if known is None:
            known = When(since={variable: 0.0}) if variable in self.changed else START
        return known

    def use(self, when: When) -> None:
        """A value has been made."""
        if when != START:
            self.made = last((self.made, when))

    def assign(self, variable: Variable, when: When) -> None:
        """A variable gets a value."""
        self._known[variable] = when
        if variable in self.changed:
            self.handed[variable] = when.since
        if variable in self.changed and when.since:
            self.rings.add(variable)
            self._carried = max(self._carried, when.carried)

    def sides(self) -> dict[Variable, When]:
        """When each variable can be used where a selection begins."""
        return dict(self._known)

    def other(self, before: dict[Variable, When]) -> dict[Variable, When]:
        """Go to the other side of a selection: return what this one has assigned."""
        mine = {v: when for v, when in self._known.items() if before.get(v) is not when}
        self._known = dict(before)
        return mine

    def select(self, test: When, *sides: dict[Variable, When]) -> None:
        """Each variable has the value of one side, or its own."""
        for variable in dict.fromkeys(v for side in sides for v in side):
            given = [side.get(variable) or self.known_of(variable) for side in sides]
            when = last((test.later(SELECT), *given))
            self.use(when)
            self.assign(variable, when)

    def wait(self, clocks: float) -> None:
        """All that was made is waited for, and so much longer."""
        self.made = self.made.later(clocks)

    def store(self, when: When) -> None:
        """Nothing is loaded before this has been stored, because it may be the same place."""
        self.base = last((self.base, when._replace(since={})))

    def begin(self) -> None:
        """Straight code begins: what is known has come."""
        self.straight = False
        self.part += 1
        self._known.clear()
        self._carried = 0.0
        self.made = self.base = START
        self._charged = (0.0, 0.0, 0, 0)

    def each_turn(self) -> float:
        """Clocks by which many turns take longer for one more: what circles, and not what only comes out.

        `x = f(x); sum += g(x)` waits for `f` from turn to turn, and for no `g`.
        """
        at = dict.fromkeys(self.handed, 0.0)
        half = 0.0
        for turn in range(2 * _MANY):
            half = max(at.values(), default=0.0) if turn == _MANY else half
            at = {
                variable: max((at.get(v, 0.0) + clocks for v, clocks in since.items()), default=0.0)
                for variable, since in self.handed.items()
            }
        return (max(at.values(), default=0.0) - half) / _MANY

    def passed(self) -> tuple[float, float, int, int]:
        """Return what was added since the last call: handed from turn to turn, the rest, and loads."""
        longest = self.made.ready
        now = self._carried, max(0.0, longest - self._carried), self.made.loads, self.made.near
        before, self._charged = self._charged, now
        return now[0] - before[0], now[1] - before[1], now[2] - before[2], now[3] - before[3]
