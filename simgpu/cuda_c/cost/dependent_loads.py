"""Which loads must wait for those of an earlier turn: their address comes from a load, by variables."""

from __future__ import annotations

from collections import defaultdict

from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.cost.charges import Charge


class DependentLoads:
    """Collects assignments and loads, and finds out at the end who waits for whom."""

    def __init__(self) -> None:
        # All variables that were ever assigned to one; and how many loops deep it is given what was loaded.
        self._sources = defaultdict[Variable, set[Variable]](set)
        self._depths: dict[Variable, int] = {}
        self._loads = defaultdict[Charge, set[Variable]](set)

    def assign(
        self, variable: Variable, reads: frozenset[Variable], loaded: bool, nesting: int
    ) -> None:
        """A variable gets a value that depends on these; `loaded` if it comes from memory itself."""
        self._sources[variable] |= reads
        if loaded:
            self._depths[variable] = max(self._depths.get(variable, 0), nesting)

    def load(self, charge: Charge, reads: frozenset[Variable]) -> None:
        """A load in a piece of code, whose address or branch depends on these variables."""
        self._loads[charge] |= reads

    def finish(self) -> None:
        """Complete the charges of all pieces with loads."""
        depths, grew = self._depths, True
        while grew:
            grew = False
            for variable, sources in self._sources.items():
                depth = max((depths[v] for v in sources if v in depths), default=-1)
                if depth > depths.get(variable, -1):
                    depths[variable], grew = depth, True
        for charge, reads in self._loads.items():
            deepest = max((depths[v] for v in reads if v in depths), default=-1)
            charge.carried = deepest >= charge.nesting > 0
