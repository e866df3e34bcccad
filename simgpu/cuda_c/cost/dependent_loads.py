"""Which loads must wait for others: those whose address comes, by way of variables, from a load."""

from __future__ import annotations

from dataclasses import dataclass, field

from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.cost.charges import Charge


@dataclass
class _History:
    """All that was ever assigned to a variable: other variables, and loads, so many loops deep."""

    sources: set[Variable] = field(default_factory=set[Variable])
    loaded: bool = False
    loaded_depth: int = -1


class DependentLoads:
    """Collects assignments and loads, and finds out at the end who waits for whom."""

    def __init__(self) -> None:
        self._histories: dict[Variable, _History] = {}
        self._loads: dict[Charge, list[frozenset[Variable]]] = {}

    def assign(
        self, variable: Variable, reads: frozenset[Variable], loaded: bool, nesting: int
    ) -> None:
        """A variable gets a value that depends on these; `loaded` if it comes from memory itself."""
        history = self._histories.setdefault(variable, _History())
        history.sources |= reads
        if loaded:
            history.loaded = True
            history.loaded_depth = max(history.loaded_depth, nesting)

    def load(self, charge: Charge, reads: frozenset[Variable]) -> None:
        """A load in a piece of code, whose address or branch depends on these variables."""
        self._loads.setdefault(charge, []).append(reads)

    def finish(self) -> None:
        """Complete the charges of all pieces with loads."""
        depths = self._tainted()
        for charge, loads in self._loads.items():
            reads = frozenset[Variable]().union(*loads)
            deepest = max((depths[v] for v in reads if v in depths), default=-1)
            charge.carried = deepest >= charge.nesting > 0

    def _tainted(self) -> dict[Variable, int]:
        """The variables that depend on a load, and how many loops deep they get it."""
        every = {v for loads in self._loads.values() for reads in loads for v in reads}
        todo = list(every)
        while todo:
            history = self._histories.get(todo.pop(), _History())
            todo += history.sources - every
            every |= history.sources
        tainted: dict[Variable, int] = {}
        grew = True
        while grew:
            grew = False
            for v in every:
                history = self._histories.get(v, _History())
                if not history.loaded and history.sources.isdisjoint(tainted):
                    continue
                depth = max((tainted[s] for s in history.sources if s in tainted), default=-1)
                depth = max(depth, history.loaded_depth, 0)
                if tainted.get(v, -1) < depth:
                    tainted[v] = depth
                    grew = True
        return tainted
