"""What the compiler charges for what it compiles; see `Counts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from asyncgpu_tutor.cuda_c.compile.typed import (
    CHANGING,
    Expr,
    MemoryPlace,
    Origin,
    Ranks,
    Scope,
    Variable,
)
from asyncgpu_tutor.cuda_c.cost.tally import Segment, Site
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import CType

__all__ = ["LowerCosts"]


class LowerCosts:
    """Segments and accesses of one kernel, and what is known of the loops around them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.ranks = Ranks()
        self.segments: list[Segment] = []
        self.sites: list[Site] = []
        self.segment = Segment(-1, 0)
        # Loads of each segment: the variables that their addresses depend on.
        self.loads: dict[int, list[frozenset[Variable]]] = {}
        self.control: list[frozenset[Variable]] = []
        # Loads, and what they may read from: those that atomicCAS also works on are let be.
        self.watched_sites: list[tuple[Site, Origin]] = []
        self.depth = 0  # loops around what is being compiled, without those that are unrolled
        # Loads whose value is at hand: nothing has been stored or assigned since.
        self.at_hand: set[Any] = set()
        self.nesting = 0  # loops around it, all of them
        self.outer_words = 0  # of the callers of the function that is being expanded
        self.most_words = 0  # that are live at once, as far as scopes tell
        self.overlap = 1  # turns of unrolled loops around it

    def new_site(self, at: Position, write: bool = False, volatile: bool = False) -> Site:
        site = Site(len(self.sites), at, write, volatile, segment=self.segment)
        self.sites.append(site)
        return site

    def new_segment(self, line: int) -> Segment:
        segment = Segment(len(self.segments), line, overlap=self.overlap, depth=self.nesting)
        self.segments.append(segment)
        return segment

    def live_words(self) -> int:
        """Registers that the variables take which are in scope here and in the callers."""
        total, scope = self.outer_words, self.scope
        while True:
            total += sum(b.words for b in scope.names.values() if isinstance(b, Variable))
            if scope.outer is None:
                return total
            scope = scope.outer

    def within(self, segment: Segment, lower: Callable[[], Any]) -> Any:
        """Lower something, with its costs going to `segment`."""
        before, self.segment = self.segment, segment
        try:
            return lower()
        finally:
            self.segment = before

    def unevaluated(self, at: Position, lower: Callable[[], Expr]) -> CType:
        """The type of something that is not run: its costs go to a segment that nothing passes."""
        return self.within(self.new_segment(at.line), lower).type

    def cost(
        self,
        instructions: int = 1,
        flops: int = 0,
        special: int = 0,
        *,
        of: Iterable[Expr] | None = None,
        doubles: bool = False,
    ) -> None:
        """Charge an operation; none where its operands `of` are known before the innermost loop."""
        if of is not None and not self.repeated(of):
            instructions = 0
        self.segment.instructions += instructions
        self.segment.flops += flops
        self.segment.special += special
        if doubles:
            self.segment.doubles += instructions

    def repeated(self, parts: Iterable[Expr]) -> bool:
        """Whether an operation has to be done in every turn of the innermost loop."""
        return max((part.changes for part in parts), default=CHANGING) >= self.depth

    def note_load(self, address: Expr) -> int:
        """Charge a load; returns the rounds of the loaded value."""
        address.rank = self.ranks.load()
        place = address.place
        if isinstance(place, MemoryPlace) and place.register:
            return address.rounds
        if address.key is not None:
            if address.key in self.at_hand and address.site is not None:
                address.site.free = True  # a compiler does not load it again
                return address.rounds
            self.at_hand.add(address.key)
        self.cost()
        origin = place.origin if isinstance(place, MemoryPlace) else address.origin
        if origin is not None and origin.near:
            return address.rounds
        rounds = address.rounds + 1
        self.segment.rounds = max(self.segment.rounds, rounds)
        reads = address.reads.union(*self.control) if self.control else address.reads
        self.loads.setdefault(self.segment.index, []).append(reads)
        return rounds

    def finish_costs(self) -> None:
        """Find the loads that must wait for others: those whose address comes from a load."""
        tainted: dict[Variable, int] = {}  # and how many loops deep it gets its load
        every = {v for reads in self.loads.values() for r in reads for v in r}
        todo = list(every)
        while todo:
            for source in todo.pop().sources:
                if source not in every:
                    every.add(source)
                    todo.append(source)
        grew = True
        while grew:
            grew = False
            for v in every:
                if not v.loaded and v.sources.isdisjoint(tainted):
                    continue
                depth = max((tainted[s] for s in v.sources if s in tainted), default=-1)
                depth = max(depth, v.loaded_depth, 0)
                if tainted.get(v, -1) < depth:
                    tainted[v] = depth
                    grew = True
        for site, origin in self.watched_sites:
            site.relaxed = origin.compared
        for segment in self.segments:
            if segment.rounds:
                reads = frozenset[Variable]().union(*self.loads.get(segment.index, []))
                waits = not reads.isdisjoint(tainted)
                segment.dependent = int(segment.rounds) - 1 + int(waits)
                deepest = max((tainted[v] for v in reads if v in tainted), default=-1)
                segment.carried = deepest >= segment.depth > 0
                if not segment.carried:
                    segment.rounds /= segment.overlap  # the turns of an unrolled loop go together
        for site in self.sites:
            if site.segment is not None and not site.segment.carried:
                site.overlap = site.segment.overlap
