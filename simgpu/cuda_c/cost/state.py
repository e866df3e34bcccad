"""The state of the walk over a form."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simgpu.cuda_c.compile.form import Constant, IRValue, Price
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.cost.charges import Charge, SiteCost
from simgpu.cuda_c.cost.path import START, Path, When

ANYWHERE = 1 << 30  # the depth of what may change at any time, such as a load
KNOWN = -1  # the depth of what a compiler knows
# For how many clocks a warp's instruction keeps its unit busy: by the results a clock of an SM, which has
# four schedulers (CUDA C++ Programming Guide, throughput of native arithmetic instructions). In listings of
# nvcc 13.0 (`nvdisasm -hex`) instructions of one kind wait so long for each other.
FLOATS = 1.0  # 128 results a clock
INTEGERS = 2.0  # 64: also comparisons, shifts, addresses, conversions and double precision
MEMORY = 4.0  # 32 load-store units
SPECIAL = 8.0  # 16: at least one instruction of a special function is for this unit
# Of the others most are float, one in four is not: a warp that sums up `logf` of its own numbers takes 28
# clocks for each one's 27, and 37 for the 29 of `erff` (`python tools/fidelity chains record FILE`, H200,
# 2026-11-24).
FUNCTIONS = 1.25


@dataclass(slots=True)
class CostFacts:
    """The facts about one value that decide on later charges."""

    reads: frozenset[Variable] = frozenset()  # variables that it depends on
    offsets: frozenset[Variable] = frozenset()  # of these, such as only shift it by known distances
    depth: int = ANYWHERE  # how many loops deep it changes
    key: Any = None  # equal for equal values, while no variable is assigned to
    register: bool = False  # the address of something that a compiler keeps in a register
    when: When = START  # when it can be used
    part: int = 0  # in which straight code that counts: see `Path.part`


@dataclass
class Surroundings:
    """The loops around a step: all of them, and those that are not unrolled.

    `whole` and `moving` are the turns of those that are unrolled whole, and what changes in them.
    """

    nesting: int = 0
    depth: int = 0
    whole: int = 1
    moving: frozenset[Variable] = frozenset()


class DependentLoads:
    """Collects assignments and loads, and finds out at the end who waits for whom.

    A load must wait for those of an earlier turn if its address comes from a load, by variables.
    """

    def __init__(self) -> None:
        # All variables that were ever assigned to one; and how many loops deep it is given what was loaded.
        self._sources = defaultdict[Variable, set[Variable]](set)
        self._depths: dict[Variable, int] = {}
        # For each piece of code with loads, the variables on which an address or a branch depends.
        self.reads = defaultdict[Charge, set[Variable]](set)

    def assign(self, variable: Variable, reads: frozenset[Variable], depth: int | None) -> None:
        """A variable gets a value that depends on these; in a loop so `depth` if it's from memory itself."""
        self._sources[variable] |= reads
        if depth is not None:
            self._depths[variable] = max(self._depths.get(variable, 0), depth)

    def finish(self) -> None:
        """Complete the charges of all pieces with loads."""
        depths, grew = self._depths, True
        while grew:
            grew = False
            for variable, sources in self._sources.items():
                depth = max((depths[v] for v in sources if v in depths), default=-1)
                if depth > depths.get(variable, -1):
                    depths[variable], grew = depth, True
        for charge, reads in self.reads.items():
            deepest = max((depths[v] for v in reads if v in depths), default=-1)
            charge.carried = deepest >= charge.nesting > 0


class State:
    """The position of the walk, and its findings so far."""

    def __init__(self, points: int, sites: int, indexed: set[Variable], asks: bool) -> None:
        self.charges = [Charge() for _ in range(points)]
        self.sites = [SiteCost() for _ in range(sites)]
        self.charge = Charge()  # of the piece at hand; this one is for steps outside of all pieces
        self.facts: dict[IRValue, CostFacts] = {}
        self.around = Surroundings()
        self.depths: dict[Variable, int] = {}  # how many loops deep variables in registers change
        self.assigned: set[Variable] = set()  # those that get more than the value they begin with
        self.first: dict[Variable, IRValue] = {}  # the values that variables begin with
        self.at_hand: set[Any] = set()  # keys of the places whose value a compiler has
        self.control: list[frozenset[Variable]] = []  # what each branch around depends on
        self.loads = DependentLoads()
        self.path = Path()
        self.serial = False  # something in this loop keeps its turns apart
        self.loaded = 0  # words that a turn of this loop loads from global memory
        self.wraps = False  # the address of a load in this loop is made of unsigned numbers
        self.asks = asks  # the host: that trip was measured as a whole, with its fences and looks
        self.meets = 0.0  # clocks that lanes take to exchange something
        # Loads whose values the next turn is the first to use; and the pieces that they are in, each with the
        # number of pieces before.
        self.ahead: set[IRValue] = set()
        self.early: dict[Charge, int] = {}
        self.chosen: dict[IRValue, When] = {}  # by the test of a choice, when it is known
        self.rolled: list[bool] = []
        self.passed: list[Charge] = []
        # Arrays of a thread with an index that no compiler knows, which no register has.
        self.indexed = indexed
        self.words = 0  # registers of the variables in scope
        self.most_words = 0

    def of(self, node: IRValue) -> CostFacts:
        """Return the known facts about a value."""
        facts = self.facts.get(node)
        if facts is None:
            if not isinstance(node, Constant):
                return CostFacts()
            facts = self.facts[node] = CostFacts(depth=KNOWN, key=("constant", node.value))
        if facts.part != self.path.part:
            # It was computed before a barrier or a branch, and has come by now.
            facts.when = When(since=dict.fromkeys(facts.when.since, 0.0))
            facts.part = self.path.part
        return facts

    def pay(
        self,
        price: Price,
        parts: Sequence[IRValue] | None = None,
        double: bool = False,
        unit: float = INTEGERS,
        offsets: frozenset[Variable] = frozenset(),
    ) -> None:
        """Charge an operation; no instruction where its `parts` do not change in the innermost loop.

        `unit`: for how many clocks each of its instructions keeps its unit busy. `offsets`: variables that
        take no part in it, since loads and stores take a known distance to their address.
        """
        instructions = price.instructions
        if parts is not None and not self.repeated(parts):
            instructions = 0
        self.charge.instructions += instructions
        if instructions:
            # A value that is the same in all turns of an unrolled loop is computed once for all of them.
            still = parts is not None and not any(
                (self.of(part).reads - offsets) & self.around.moving for part in parts
            )
            issued = instructions if price.issued is None else price.issued
            issued /= self.around.whole if still else 1
            self.charge.issued += issued
            self.charge.busy += issued * unit
        self.charge.flops += price.flops
        self.charge.special += price.special
        if double:
            self.charge.doubles += instructions

    def repeated(self, parts: Sequence[IRValue]) -> bool:
        """Tell whether an operation has to be done in every turn of the innermost loop."""
        return self.changes(parts) >= self.around.depth

    def changes(self, parts: Sequence[IRValue]) -> int:
        """How many loops deep the first of these values changes that does."""
        return max((self.of(part).depth for part in parts), default=ANYWHERE)
