"""The pass that finds where the threads of a kernel may wait for each other.

Where a kernel has a loop that may spin, or threads that meet at several barriers, each of its steps inside
of which lanes may be set aside has a number, its place, and so has the test of each such loop. Places are
numbered in the order of the source, hence those within a step are a range, and a step that is entered again
for lanes which wait inside knows where to pass them on. `lockstep.waiting_threads` has the whole story.
Kernels without such a loop pay nothing for any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simgpu.cuda_c.compile import form, spinning
from simgpu.cuda_c.compile.form import Loop, Step
from simgpu.cuda_c.lockstep.waiting_threads import ENDLESS, NOWHERE
from simgpu.cuda_c.text.source import Source
from simgpu.cuda_c.types import Scalar

_SELDOM = 64  # turns of a loop that cannot wait, until it is asked again whether it spins


@dataclass(frozen=True)
class Spin:
    """A loop: where its lanes wait, and how it is found out that they do.

    `head` is the place of its test, `spot` that of lanes that look in vain, or why there is none. Each
    `often` turns it is asked, if not 0, whether the slots `watched` have changed. `patience` are those that
    only count how long it waits. Lanes that meet others inside wait block by block.
    """

    head: int = NOWHERE
    spot: int = ENDLESS
    often: int = 0
    watched: Sequence[int] = ()
    patience: Sequence[int] = ()
    meets: bool = False


@dataclass
class Parks:
    """The places inside of each step, and how each loop waits.

    A step that begins with a piece of code has the first of its places itself: lanes that wait in this piece
    enter it again as a whole.
    """

    spans: dict[Step, range] = field(default_factory=dict[Step, range])
    spins: dict[Loop, Spin] = field(default_factory=dict[Loop, Spin])

    @property
    def watches(self) -> bool:
        """Tell whether a loop may spin."""
        return any(spin.often for spin in self.spins.values())

    def inside(self, steps: Sequence[Step]) -> range:
        """The places inside of some steps."""
        spans = [self.spans[step] for step in steps if step in self.spans]
        return range(spans[0].start, spans[-1].stop) if spans else range(0)


def parks(steps: Sequence[Step], waits: bool, source: Source) -> Parks:
    """Number the places of a kernel whose threads may wait for each other, or only find what may spin.

    A barrier of the grid is refused where no thread can be set aside.
    """
    found = _Pass(waits)
    found.steps(steps, waits)
    for step in form.below(steps):
        if isinstance(step, form.Meet) and step.by == "grid" and not step.waits:
            text = "a barrier of the grid within an expression: make it a statement"
            source.unsupported(step.at, text)
    return found.parks


class _Pass:
    def __init__(self, anywhere: bool) -> None:
        self.parks = Parks()
        self._anywhere = anywhere
        self._next = 0

    def steps(self, steps: Sequence[Step], waits: bool) -> bool:
        """Number the places of steps; tell whether threads may wait in one of them."""
        inside = [self._step(step, waits) for step in steps]
        return any(inside)

    def _step(self, step: Step, waits: bool) -> bool:
        first = self._next
        inside = False
        match step:
            case form.Piece():
                inside = self._head(step, waits)
            case form.Scoped():
                inside = self.steps(step.steps, waits)
            case form.Branch():
                head = self._head(step.head, waits)
                sides = [self.steps(side, waits) for side in (step.then, step.otherwise or [])]
                inside = head or any(sides)
            case form.Selection():
                head = self._head(step.head, waits)
                cases = [self.steps(case, waits) for case in step.cases]
                inside = head or any(cases)
            case form.Leave():
                inside = step.piece is not None and self._head(step.piece, waits)
            case form.Loop():
                inside = self._loop(step, waits)
            case _:
                pass
        if inside:
            self.parks.spans[step] = range(first, self._next)
        else:
            self._next = first  # since nobody waits in here
        return inside

    def _head(self, piece: form.Piece, waits: bool) -> bool:
        """Give a number to a piece, and to what is inside of a function if all of it is a call."""
        self._next += waits
        return self._piece(piece, waits)

    def _piece(self, piece: form.Piece, waits: bool) -> bool:
        inside = False
        for step in piece.steps:
            if isinstance(step, form.Expansion):
                alone = waits and step.call is not None and step.call is piece.call
                inside |= self.steps(step.steps, alone)
            elif isinstance(step, form.Meet):
                step.waits = waits
                inside |= waits
            else:
                for part in form.pieces_of(step):
                    inside |= self._piece(part, waits)
        return inside

    def _loop(self, loop: Loop, waits: bool) -> bool:
        tested = self._piece(loop.test, waits)
        head = self._next
        self._next += waits
        inside = self.steps(loop.body, waits) or tested
        self._piece(loop.step, False)  # because nobody can go on in the middle of it
        meets = any(isinstance(s, form.Meet) for s in form.below([*loop.body, loop.step]))
        spins = spinning.counts_none(loop.source)
        spot = head if waits else NOWHERE if self._anywhere else ENDLESS
        often = 0 if not spins else 1 if waits else _SELDOM
        watched, patience = _watched(loop) if spins else ([], [])
        place = head if waits else NOWHERE
        self.parks.spins[loop] = Spin(place, spot, often, watched, patience, meets)
        return inside or (waits and spins)


def _watched(loop: Loop) -> tuple[list[int], list[int]]:
    """Slots of the variables that decide whether a loop spins, and of those that count its patience."""
    decide = spinning.decisive_names(loop.source)
    counters = spinning.patience_names(loop.source)
    watched: list[int] = []
    patience: list[int] = []
    for name, v in loop.changed.items():
        if not v.memory and name in decide:
            counting = isinstance(v.type, Scalar) and v.type.is_integer and v.name in counters
            (patience if counting else watched).append(v.slot)
    return watched, patience
