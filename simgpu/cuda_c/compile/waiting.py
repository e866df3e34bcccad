"""The pass that finds where the threads of a kernel may wait for each other.

Threads that wait are set aside and come back later (`lockstep.waiting_threads` has the whole story). For
that each statement would have to look, every time, whether its lanes are new or coming back. Most kernels
never wait, and would pay for it at every step. So this pass finds out beforehand where lanes may be set
aside, and kernels without such a place are compiled as if nobody ever waited.

A loop may spin if it looks, by an atomic or a volatile load, at memory that others can change. To be sure
that it does is impossible, so a loop that may spin is asked while it runs, each so many turns, whether a
turn has changed anything. What only counts the turns doesn't count as a change, or a loop that gives up
after a million looks would never be seen to wait. Its counter may leap instead, and for that this pass
finds its bound.

Places are numbered in the order of the source. So the places within a step are a range, and a step that is
entered again knows by two comparisons which of its parts to pass the lanes on to.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TypeAlias

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.form import Instruction, IRValue, Loop
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep import Site
from simgpu.cuda_c.lockstep.waiting_threads import ENDLESS, NOWHERE
from simgpu.cuda_c.syntax.names import grown
from simgpu.cuda_c.text.source import Source
from simgpu.cuda_c.types import Scalar

FARTHEST = 1 << 30  # turns, if nothing says where a counter stops
_SELDOM = 64  # turns of a loop that cannot wait, until it is asked again whether it spins
_TURNED = str.maketrans("<>", "><")
_BOUND = (form.RegisterWrite, form.ReferenceBind, form.Declare)
# A number, added to what is computed if there is anything.
Stop: TypeAlias = tuple[form.Evaluate | None, int]
# Values that are the same whenever they are computed, if the variables in them are.
_PURE = form.Constant | form.Read | form.Coordinate | form.Operation | form.Convert | form.Intrinsic


@dataclass(frozen=True)
class Spin:
    """A loop: where its lanes wait, and how it is found out that they do.

    `head` is the place of its test, `spot` that of lanes that look in vain, or why there is none. Each
    `often` turns it is asked, if not 0, whether the slots `watched` have changed. `patience` are those that
    only count how long it waits, and their last numbers before a turn may be another one than those before.
    Lanes that meet others wait block by block.
    """

    head: int = NOWHERE
    spot: int = ENDLESS
    often: int = 0
    watched: Sequence[int] = ()
    patience: Mapping[int, Sequence[Stop]] = field(default_factory=dict[int, Sequence[Stop]])
    meets: bool = False
    naps: bool = False  # whether it sleeps between two looks, so that time goes by
    turns: bool = False  # whether its lanes let others have a turn
    looks: bool = False  # whether it looks at memory


@dataclass
class Parks:
    """The places inside of each step, and how each loop waits.

    A step that begins with a piece of code has the first of its places itself: lanes that wait in this piece
    enter it again as a whole.
    """

    spans: dict[Instruction, range] = field(default_factory=dict[Instruction, range])
    spins: dict[Loop, Spin] = field(default_factory=dict[Loop, Spin])

    @property
    def watches(self) -> bool:
        """Tell whether a loop may spin."""
        return any(spin.often for spin in self.spins.values())

    def inside(self, steps: Sequence[Instruction]) -> range:
        spans = [self.spans[step] for step in steps if step in self.spans]
        return range(spans[0].start, spans[-1].stop) if spans else range(0)


def parks(steps: Sequence[Instruction], sites: Sequence[Site], source: Source) -> Parks:
    """Number the places of a kernel whose threads may wait for each other, or only find what may spin."""
    waits = may_wait(steps)
    found = _Pass(waits)
    found.steps(steps, waits)
    for step in form.instructions_below(steps):
        if isinstance(step, form.Meet) and step.by == "grid" and not step.waits:
            text = "a barrier of the grid within an expression: make it a statement"
            source.unsupported(step.at, text)
    spins = [loop for loop, spin in found.parks.spins.items() if spin.often]
    for loop in spins:
        inside = set(loop.below)
        for load in inside if inside.isdisjoint(spins) else ():
            if isinstance(load, form.Load) and load.site is not None:
                sites[load.site].polls = True
    return found.parks


def may_wait(steps: Sequence[Instruction]) -> bool:
    """Tell whether threads of a kernel may wait for others."""
    # At a barrier of the grid; where some of a block come to one barrier and others to another; and in a loop
    # that may spin and looks at memory by an atomic or a volatile load.
    return any(
        (isinstance(step, form.Meet) and step.by == "grid")
        or (isinstance(step, Loop) and may_wait_in(step))
        or (isinstance(step, form.Branch) and _parts_at_barriers(step))
        for step in form.instructions_below(steps)
    ) or parts_in_warps(steps)


def parts_in_warps(steps: Sequence[Instruction]) -> bool:
    """Tell whether some lanes may come to one call of a function of a warp, and others to another."""
    every = list(form.instructions_below(steps))
    sides = [side for step in every for side in _sides(step)]
    calls = {s: set[int]() for s in every if isinstance(s, form.Meet) and s.by == "warp"}
    if len(calls) < 2 or not sides:
        return False
    for k, side in enumerate(sides):
        for step in form.instructions_below(side):
            if isinstance(step, form.Meet) and step in calls:
                calls[step].add(k)
    within: dict[str, set[frozenset[int]]] = {}  # for each function, the sides its calls are in
    for call, around in calls.items():
        within.setdefault(call.what.lstrip("_"), set()).add(frozenset(around))
    # Who has made a call and leaves its side, does not come to the ones behind it.
    leaves = {k for k, side in enumerate(sides) if form.has(side, form.Leave, calls=False)}
    pairs = (pair for found in within.values() for pair in permutations(found, 2))
    return any(a - b and (b - a or (a - b) & leaves) for a, b in pairs)


def _sides(step: Instruction) -> Sequence[Sequence[Instruction]]:
    if isinstance(step, form.Branch):
        return step.then, step.otherwise or []
    if isinstance(step, form.Choice):
        return [[side] for side in step.sides]
    return step.cases if isinstance(step, form.Selection) else ()


def may_wait_in(loop: Loop) -> bool:
    """Tell whether threads may wait for others in a loop."""
    return _may_spin(loop) and _looks(loop.below)


def waits_apart(piece: form.BasicBlock) -> bool:
    """Tell whether threads may wait in a function that is called in a larger expression, which this is."""
    return any(
        isinstance(call, form.Expansion) and call.call is not piece.call and waits_within(call)
        for call in form.instructions_below(piece.steps, calls=False)
    )


def waits_within(call: form.Expansion) -> bool:
    """Tell whether threads may wait in a function that is called; it's asked for each call around it."""
    if call.waits is None:
        call.waits = any(map(_waits_for_others, form.instructions_below(call.steps, calls=False)))
    return call.waits


def _parts_at_barriers(branch: form.Branch) -> bool:
    """Tell whether some threads of a block may come to one barrier of the source, and others to another."""
    sides = [form.instructions_below(side) for side in (branch.then, branch.otherwise or [])]
    return all(any(isinstance(s, form.Meet) and s.by == "block" for s in side) for side in sides)


def _may_spin(loop: Loop) -> bool:
    """Tell whether a loop may never end, as it counts no turns, or only how long it sleeps or looks."""
    moved = {s.variable for s in loop.step.steps if isinstance(s, form.RegisterWrite)}
    counts = loop.step.run is not None and (not _looks(loop.below) or moved & _asked(loop))
    return not counts or _sleeps(loop) or _only_looks(loop)


def _only_looks(loop: Loop) -> bool:
    """Tell whether the step of a loop only counts looks at memory that may end it."""
    if form.Meet in loop.kinds or not _looks(loop.below):
        return False
    counted = form.counting(loop.step)
    # Its condition has a look itself, or a variable that a look may have changed.
    tested = form.read_by(loop.condition) if loop.condition is not None else set[Variable]()
    asks = loop.condition is not None and _looks(form.nodes_of(loop.condition))
    below = form.instructions_below(loop.body)
    asks |= any(isinstance(s, form.RegisterWrite) and s.variable in tested for s in below)
    leaves = asks or form.has(loop.body, form.Leave, calls=False)
    return leaves and counted is not None and counted[0] in _patience(loop, strict=True)


def _waits_for_others(step: Instruction) -> bool:
    """Tell whether threads wait for others at a step, or may spin there."""
    if isinstance(step, form.Expansion):
        return waits_within(step)
    return isinstance(step, form.Meet) or (isinstance(step, Loop) and _may_spin(step))


def _sleeps(loop: Loop) -> bool:
    """Tell whether a loop sleeps between looks at memory; otherwise it is a delay, and ends by itself."""
    return form.Sleep in loop.kinds and not loop.kinds.isdisjoint((form.Load, form.Exchange))


def _draws(loop: Loop) -> bool:
    """Tell whether an atomic may decide if a loop goes on, as where blocks draw their work from a queue."""
    leaves = form.has(loop.body, form.Leave, calls=False)
    return form.has([loop.test, loop.step, *(loop.body if leaves else [])], form.Exchange)


def _looks(steps: Iterable[Instruction]) -> bool:
    return any(
        isinstance(step, form.Exchange) or (isinstance(step, form.Load) and step.volatile)
        for step in steps
    )


class _Pass:
    def __init__(self, anywhere: bool) -> None:
        self.parks = Parks()
        self._anywhere = anywhere
        self._next = 0

    def steps(self, steps: Sequence[Instruction], waits: bool) -> bool:
        """Number the places of steps; tell whether threads may wait in one of them."""
        inside = [self._step(step, waits) for step in steps]
        return any(inside)

    def _step(self, step: Instruction, waits: bool) -> bool:
        first = self._next
        inside = False
        match step:
            case form.BasicBlock():
                inside = self._head(step, waits)
            case form.Scoped():
                inside = self.steps(step.steps, waits)
            case form.Branch() | form.Selection():
                head, (_, *sides) = self._head(step.head, waits), form.inner(step)
                inside = any([head, *[self.steps(side, waits) for side in sides]])
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

    def _head(self, piece: form.BasicBlock, waits: bool) -> bool:
        """Give a number to a piece, and to what is inside of a function if all of it is a call."""
        self._next += waits
        return self._piece(piece, waits)

    def _piece(self, piece: form.BasicBlock, waits: bool) -> bool:
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
        meets = form.has([*loop.body, loop.step], form.Meet)
        spins = _may_spin(loop)
        spot = head if waits else NOWHERE if self._anywhere else ENDLESS
        often = 0 if not spins else 1 if waits else _SELDOM
        watched, patience = _watched(loop) if spins else ([], {})
        place = head if waits else NOWHERE
        naps = waits and spins and form.Sleep in loop.kinds
        inside |= waits and (spins or _draws(loop))
        turns, looks = inside and not tested, waits and spins and _looks(loop.below)
        more = naps, turns, looks
        self.parks.spins[loop] = Spin(place, spot, often, watched, patience, meets, *more)
        return inside


def _watched(loop: Loop) -> tuple[list[int], dict[int, Sequence[Stop]]]:
    """Slots of the variables that decide whether a loop spins, and of those that count its patience."""
    sure = _sleeps(loop) or (loop.step.run is None and form.Exchange in loop.kinds)
    waits = sure or _looks(loop.below)
    counters = _patience(loop, strict=not sure) if waits else dict[Variable, Sequence[Stop]]()
    decide = _decisive(loop)
    if decide & set(counters):  # a turn that is counted and does anything else is no look
        decide |= set(loop.changed) - set(counters)
    watched = [v for v in loop.changed if v in decide]
    patience = {v.slot: counters[v] for v in watched if v in counters}
    return [v.slot for v in watched if v not in counters], patience


def _decisive(loop: Loop) -> set[Variable]:
    """The variables on which it depends whether a loop goes on; their values decide together with memory."""
    if form.has(loop.body, form.Leave, calls=False):
        return form.read_by(*loop.below) | set(loop.changed)
    given = [s for s in loop.below if isinstance(s, form.RegisterWrite | form.ReferenceBind)]
    reads = {step: form.read_by(step.value) for step in given}
    asked = _asked(loop)
    return grown(asked, lambda known: {v for s in given if s.variable in known for v in reads[s]})


def _asked(loop: Loop) -> set[Variable]:
    """The variables by which a loop ends; those by which a function returns that it calls, too."""
    branches = [step for step in loop.below if isinstance(step, form.Branch)]
    tests = [branch.test for branch in branches if form.has([branch], form.Leave)]
    return form.read_by(*tests, *([] if loop.condition is None else [loop.condition]))


def _patience(loop: Loop, strict: bool) -> dict[Variable, Sequence[Stop]]:
    """The integers that only count a loop's turns, up or down, and where their leaps end.

    If `strict`, only those that are compared with one number and nothing else, and count up to it.
    """
    # They are for giving up. A thread that only counts has not got on, so it waits, as one without a counter
    # would, and its counter leaps when nobody else can go on.
    steps = loop.below
    given = [step for step in steps if isinstance(step, form.RegisterWrite)]
    counted = {found[0]: found[1] for found in map(_counted, given) if found is not None}
    falling = {variable for variable, way in counted.items() if way < 0}
    used: list[IRValue] = []  # for anything else
    stops = {v: set[Stop]([(None, 1)] if v in falling else []) for v in counted}
    fixed = form.read_by(*steps) - {step.variable for step in steps if isinstance(step, _BOUND)}
    for node in form.nodes_of(*steps):
        if isinstance(node, form.Old | form.Result | form.Convert):
            continue
        op = node.op if isinstance(node, form.Operation) else ""
        equal, ordered = op in ("==", "!="), op in ("<", "<=", ">", ">=")
        only = ordered
        for k, mine in enumerate(node.parts if equal or ordered else ()):
            if (v := _variable(mine)) in stops and isinstance(node, form.Operation):
                how = op.translate(_TURNED) if k else op
                found = _stop(node, 1 - k, how, v in falling, fixed)
                only |= found is not None
                stops[v] |= {(None, FARTHEST)} if found is None else {found}
        if not only:
            # One that counts down may also be compared with 0 itself.
            down = equal or op == "!"
            used += [p for p in node.parts if not down or _variable(p) not in falling]
    writes = (form.RegisterWrite, form.ReferenceBind, form.Store)
    used += [step.value for step in steps if isinstance(step, writes)]
    other = {_variable(node) for node in used}
    stops = {v: found or {(None, FARTHEST)} for v, found in stops.items()}
    if strict:
        one = {v: next(iter(found)) for v, found in stops.items() if len(found) == 1}
        stops = {
            v: {stop}
            for v, stop in one.items()
            if stop[0] is None and stop[1] != FARTHEST and v not in falling
        }
    return {v: [*found] for v, found in stops.items() if v not in other}


def _stop(
    test: form.Operation, side: int, op: str, falling: bool, fixed: set[Variable]
) -> Stop | None:
    """The last number before a counter is on the other side of what it is compared with, if that is known."""
    node = form.bare(test.parts[side])
    # It may be compared before or after it's counted, so that it takes one more turn to get there, or two.
    short = (
        -int(op in ("<", ">=", "==", "!=")) if not falling else int(op in (">", "<=", "==", "!="))
    )
    if isinstance(node, form.Constant) and (falling or node.value > 0):
        return None, int(node.value) + short
    still = all(isinstance(part, _PURE) for part in form.nodes_of(node))
    return (test.runs[side], short) if still and form.read_by(node) <= fixed else None


def _counted(step: form.RegisterWrite) -> tuple[Variable, int] | None:
    """The integer to which a step adds 1, or from which it takes 1, and which of the two."""
    variable, op, by = form.updated(step) or (step.variable, "", None)
    one = isinstance(by, form.Constant) and by.value == 1
    whole = isinstance(variable.type, Scalar) and variable.type.is_integer
    return (variable, 1 if op == "+" else -1) if one and whole and op in ("+", "-") else None


def _variable(node: IRValue) -> Variable | None:
    """The variable whose value this is, or was before it was updated."""
    node = form.bare(node)
    node = form.bare(node.parts[0]) if isinstance(node, form.Result) else node
    return node.variable if isinstance(node, form.Read) else None
