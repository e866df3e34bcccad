"""The pass that finds the cost of a kernel, read from its form.

A GPU doesn't run what the source says. Its compiler computes a value once in front of a loop, unrolls the
loop, and keeps in registers what was loaded. If we counted what the interpreter does, most address arithmetic
would be paid for in each turn, and kernels that take the same time on a GPU would differ here. A compiler for
GPUs could be asked, but the simulated device has to do without one.

So the walk goes through the form (`compile.form`) once, in the order of the source, as an optimising compiler
would look at it. It charges each step to the piece of code that it is in, and keeps, for each value, what
decides on later charges:

- how many loops deep it *changes*: what changes in no turn of the innermost loop is computed in front of it,
  and is free inside; an index made of constants and of counters of unrolled loops is part of an instruction;
- a *key*, the same for expressions of the same value: a place that has been loaded is *at hand*, and is not
  loaded again, until something is stored or assigned, or warps part or meet;
- *when* it can be used, behind how many loads, and the variables that it *reads*: a load whose address comes
  out of another load, directly or by way of a variable, has to wait for it.

Whether a variable holds what was loaded is known only when all its assignments have been seen, so this
last question is answered at the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.cost import loops, path, state, values
from simgpu.cuda_c.cost.charges import Charge, Costs
from simgpu.cuda_c.cost.loops import MOST_UNROLLED, PARTLY
from simgpu.cuda_c.cost.path import When, last, latency
from simgpu.cuda_c.cost.state import FLOATS, INTEGERS, KNOWN, State, Surroundings
from simgpu.cuda_c.types import BOOL, DOUBLE, Scalar, size_of

_IN_REGISTERS = 4 * 255  # bytes; larger arrays of a thread are in local memory
# Instructions of loops that have other numbers of turns done at once.
SHORT, SHORTEST, LONG = 12, 5, 50
_OF_PATH = ("latency", "slack", "rounds", "near")
_FEW = 4  # instructions that are done on a condition, and not behind a branch
FREELY = 32  # registers
_TILE = 64  # words of sums
WINDOW = 32  # instructions that are mixed in any case
_OF_TURN = 2  # registers that a turn needs besides its variables
_KEPT = 9  # registers for an inner loop of which 16 turns are done at once, in the listing of `warp_dots`
_TEMPORARIES = 8  # registers that a kernel needs besides its variables
_MOST_REGISTERS = 255  # of a thread: CUDA C++ Programming Guide, technical specifications


def walk(kernel: form.Form, asks: bool = False) -> Costs:
    """Charge the pieces and accesses of a kernel, or of one that `asks` the host."""
    s = _walked(kernel, set(), asks)
    if s.indexed:  # as is known only now
        s = _walked(kernel, s.indexed, asks)
    s.loads.finish()
    for charge in s.charges:
        charge.latency += charge.slack + path.SHARED * charge.near / charge.room
        if not charge.carried:
            charge.rounds /= charge.overlap  # because the turns of an unrolled loop go together
    return Costs(s.charges, s.sites, min(_TEMPORARIES + s.most_words, _MOST_REGISTERS))


def _walked(kernel: form.Form, indexed: set[Variable], asks: bool) -> State:
    s = State(kernel.points, len(kernel.sites), indexed, asks)
    every = [*form.instructions_below(kernel.steps)]
    s.assigned = {step.variable for step in every if isinstance(step, form.RegisterWrite)}
    _steps(s, kernel.steps)
    return s


def _steps(s: State, steps: Sequence[form.Instruction]) -> None:
    for step in steps:
        if isinstance(step, form.IRValue):
            before = s.charge.issued
            facts = s.facts[step] = values.VALUES[type(step)](s, step)
            facts.part, facts.when = s.path.part, _when(s, step, s.charge.issued - before)
            s.path.use(facts.when)
        else:
            _EFFECTS[type(step)](s, step)


def _when(s: State, node: form.IRValue, issued: float) -> When:
    """When a value can be used that so many instructions have been issued for."""
    if isinstance(node, form.Read):
        return s.path.known_of(node.variable)
    when = last((s.path.base, *(s.of(part).when for part in node.parts)))
    if type(node) is form.IRValue:
        if node.parts and node.parts[0] in s.chosen:
            return last((when, s.chosen.pop(node.parts[0]).later(path.SELECT)))
        if len(node.parts) == 2 and all(map(_is_test, node.parts)):
            return when.later(path.BOTH)
        meets, s.meets = s.meets, 0.0
        return when.later(meets) if node.parts else when
    if isinstance(node, form.Load):
        # Loads of global memory are waited for in rounds, but for those that no cache of an SM answers.
        near = node.origin.near
        if not near and (node.site is None or node.volatile) and not s.asks:
            return when.later(path.ATOMIC if node.site is None else path.VOLATILE)
        if node in s.ahead and issued:
            s.early.setdefault(s.charge, len(s.passed))
            return when
        chase = near and when.carried >= 0  # turns wait for each other
        return when.later(path.SHARED * chase, not near, near and not chase) if issued else when
    name, double = "", isinstance(node, form.Intrinsic | form.Operation) and node.type is DOUBLE
    if isinstance(node, form.Convert):
        return when.later(_converted(node) if issued else 0.0)
    if isinstance(node, form.Intrinsic):
        name = node.name
        if name.removesuffix("f") in ("sin", "cos") and issued:
            key = "reduced", *(s.of(part).key for part in node.parts)
            if None not in key and key in s.at_hand:
                return s.path.made.later(path.AGAIN)
            s.at_hand.add(key)
    elif isinstance(node, form.Operation) and isinstance(node.type, Scalar):
        if values.is_rotation(s, node):
            return last(s.of(part).when for part in node.parts)  # with the shifts
        name = node.op if node.type.is_float else values.integer_name(s, node)
        one = node.parts[0]
        if node.type.is_float and values.is_scaling(node):
            name = "*"
        elif name == "/" and isinstance(one, form.Constant) and one.value == 1:
            name = "__frcp_rn"
    when = when.later(latency(issued, name, double))
    plain = name.removesuffix("f")
    if issued and plain in path.BRANCHING:
        # Its branch is issued when all before it has been.
        when = last((when, s.path.made.later(path.BEHIND.get(plain, 0.0))))
        s.serial = True
        s.path.store(when.later(-path.TAIL.get(plain, 0.0)))
    return when


def _converted(node: form.Convert) -> float:
    """How long a number takes to one of another kind."""
    source, target = node.source, node.target
    if DOUBLE in (source, target):
        return path.TO_DOUBLE
    if source.is_float and not target.is_float:
        return path.TO_INTEGER
    if target.is_float and not source.is_float:
        return path.TO_FLOAT
    return 0.0 if source.size == target.size else path.ARITHMETIC


def _work(s: State, step: form.FixedCostOp) -> None:
    # What has flops is a matrix product: its clocks are those of a tensor core.
    s.pay(step.price, unit=FLOATS if step.price.flops and step.price.issued else INTEGERS)
    issued = step.price.instructions if step.price.issued is None else step.price.issued
    if not s.meets:
        s.path.wait(latency(issued))


def _meet(s: State, step: form.Meet) -> None:
    """Lanes exchange something: what comes back takes longer."""
    kinds = {"shfl": path.EXCHANGE, "reduce": path.REDUCE}
    of_warp = next((clocks for kind, clocks in kinds.items() if kind in step.what), path.VOTE)
    s.meets = of_warp if step.by == "warp" else 0.0


def _store(s: State, step: form.Store) -> None:
    s.at_hand.clear()
    if not s.of(step.cell).register:
        s.pay(form.Price(), unit=state.MEMORY)
        if not step.origin.near:
            s.serial = True
            s.path.store(s.of(step.value).when)


def _assign(s: State, step: form.RegisterWrite) -> None:
    s.at_hand.clear()
    _note(s, step)


def _bind(s: State, step: form.ReferenceBind) -> None:
    given = s.of(step.value)
    known = given.depth == KNOWN and step.variable not in s.assigned
    # A parameter may be another name for a variable.
    same = known or (isinstance(step.value, form.Read) and step.variable not in s.assigned)
    s.depths[step.variable] = min(given.depth, s.around.depth) if same else s.around.depth
    s.first[step.variable] = step.value
    moves = given.depth == state.ANYWHERE or not given.reads.isdisjoint(s.around.moving)
    if moves and not (known and step.variable.type == BOOL):  # one of two, in however many turns
        s.around.moving |= {step.variable}
    _note(s, step)


def _note(s: State, step: form.RegisterWrite | form.ReferenceBind) -> None:
    value = s.of(step.value)
    if isinstance(step.value, form.Load):
        s.loaded += size_of(step.variable.type) // 4 - 1
    s.path.assign(step.variable, value.when)
    loaded = value.when.loads > 0 or not s.ahead.isdisjoint((step.value, *step.value.parts))
    s.loads.assign(step.variable, value.reads, s.around.nesting if loaded else None)


def _declare(s: State, step: form.Declare) -> None:
    variable = step.variable
    if variable is not None:
        s.depths.setdefault(variable, s.around.depth)
        s.words += 0 if variable in s.indexed else _words(variable)
    if not step.parameter:
        s.most_words = max(s.most_words, s.words)


def _access(s: State, step: form.AccessOp) -> None:
    site = s.sites[step.site]
    site.charge, site.wide = s.charge, site.wide | step.wide
    site.rolled |= s.around.depth > 0


def _fence(s: State, step: form.Fence) -> None:
    s.at_hand = set()
    if not s.asks:
        s.charge.slack += path.ACQUIRED if step.acquired else path.FENCE_CLOCKS[step.scope]
    if step.all_threads:
        s.serial = True
        _wait(s)
        s.path.begin()


def _wait(s: State) -> None:
    """Charge what makes the longest chain of results longer."""
    for name, more in zip(_OF_PATH, s.path.passed(), strict=True):
        setattr(s.charge, name, getattr(s.charge, name) + more)


def _piece(s: State, piece: form.BasicBlock) -> None:
    _wait(s)  # this piece may be part of another one
    outer, s.charge = s.charge, s.charges[piece.point]
    s.passed.append(s.charge)
    s.charge.line = max(0, piece.at.line)  # what a header asserts is in no line of the file
    s.charge.nesting, s.charge.whole = s.around.nesting, s.around.whole
    _steps(s, piece.steps)
    _wait(s)
    if piece.declares and not s.charge.instructions:
        # The value is computed in front of the loop, and the variable is another name for it, so that
        # nothing is left to be done here.
        s.charge.flops = s.charge.special = 0
    s.charge = outer


def _scoped(s: State, step: form.Scoped) -> None:
    words = s.words
    _steps(s, step.steps)
    s.words = words


def _branch(s: State, step: form.Branch) -> None:
    _piece(s, step.head)
    point = step.head.point
    s.charges[point].branch = True
    s.control.append(s.of(step.test).reads)
    before = set(s.at_hand)
    selected, since = _is_selection(step), len(s.passed)
    known = s.path.sides()
    if not selected:
        s.charges[point].slack += path.BRANCH + (0.0 if _is_test(step.test) else path.TEST)
        s.path.begin()
    _steps(s, step.then)
    yes = s.path.other(known) if selected else {}
    if step.otherwise is not None:
        s.at_hand = before
        if not selected:
            s.path.begin()
        _steps(s, step.otherwise)
    if selected:
        sides = step.then, step.otherwise or []
        s.path.select(_decided(s, step.test, sides), yes, s.path.other(known))
        outer, s.charge = s.charge, s.charges[point]
        _wait(s)
        s.charge = outer
        _move(s.passed[since:], s.charges[point])
    else:
        s.serial |= not _is_short(step)  # no compiler mixes turns across a branch
        s.path.begin()
    s.at_hand = set()
    s.control.pop()


def _is_test(node: form.IRValue) -> bool:
    """Tell whether a condition comes out of a comparison, or of several."""
    node = form.bare(node)
    compares = isinstance(node, form.Operation) and node.op in values.TESTS
    return compares or type(node) is form.IRValue


def _decided(s: State, test: form.IRValue, sides: Sequence[Sequence[form.Instruction]]) -> When:
    """When a condition has come to where it chooses: a selection of numbers at hand takes it as an operand.

    An instruction that is only done where it holds waits longer for it.
    """
    when = s.of(test).when
    when = when if _is_test(test) else when.later(path.TEST)
    work = any(isinstance(part, form.Operation) for side in sides for part in _flat(side))
    return when if work else when.later(path.SELECT - path.TEST)


def _move(sides: Sequence[Charge], to: Charge) -> None:
    """Whoever takes this side, all warps wait for the selection."""
    for name in _OF_PATH:
        setattr(to, name, getattr(to, name) + sum(getattr(side, name) for side in sides))
        for side in sides:
            setattr(side, name, 0.0)


def _is_selection(step: form.Branch) -> bool:
    """Tell whether both sides of a branch only compute few numbers and choose between them.

    For these nvcc 13.0 emits no branch, but `FSEL` or `SEL`, with the test as an operand, or a predicate.
    """
    if not _is_short(step):  # asked first, because it looks at the first few only
        return False
    found = {type(part) for side in (step.then, step.otherwise or []) for part in _flat(side)}
    return form.RegisterWrite in found and found <= _AT_HAND


def _is_short(step: form.Branch) -> bool:
    """Tell whether both sides of a branch are few instructions, each of which can be done on a condition."""
    steps = _flat([*step.then, *(step.otherwise or [])])
    work = (p for p in steps if isinstance(p, form.Operation | form.Intrinsic | form.Loop))
    return all(
        number < _FEW and isinstance(part, form.Operation) and part.op not in ("/", "%")
        for number, part in enumerate(work)
    )


def _flat(steps: Sequence[form.Instruction]) -> Iterator[form.Instruction]:
    for step in steps:
        if isinstance(step, form.Scoped | form.BasicBlock):
            yield from _flat(step.steps)
        elif isinstance(step, form.Leave):
            yield from _flat([] if step.piece is None else step.piece.steps)
        elif isinstance(step, form.Branch):
            yield from _flat([step.head, *step.then, *(step.otherwise or [])])
        else:
            yield step


def _short_circuit(s: State, step: form.ShortCircuit) -> None:
    s.control.append(s.of(step.test).reads)
    base, test = s.path.base, s.of(step.test).when
    if test.loads + test.near > base.loads + base.near:
        s.path.store(test)
    _steps(s, step.sides)
    s.path.base = base
    s.control.pop()


def _choice(s: State, step: form.Choice) -> None:
    s.control.append(s.of(step.test).reads)
    before, base = set(s.at_hand), s.path.base
    if form.has(step.sides, form.Load):
        s.path.store(s.of(step.test).when)
    for side in step.sides:
        s.at_hand = set(before)
        _piece(s, side)
        _move([s.charges[side.point]], s.charge)
    s.path.base = base
    s.chosen[step.test] = _decided(s, step.test, [side.steps for side in step.sides])
    s.at_hand = set()
    s.control.pop()


def _selection(s: State, step: form.Selection) -> None:
    _piece(s, step.head)
    s.charges[step.head.point].branch = True
    s.control.append(s.of(step.subject).reads)
    for case in step.cases:
        s.at_hand = set()
        s.path.begin()
        _steps(s, case)
    s.path.begin()
    s.at_hand = set()
    s.control.pop()


def _loop(s: State, loop: form.Loop) -> None:
    outer = s.around
    first = None if loop.counter is None else s.first.get(loop.counter)
    turns = loops.unrolled_turns(loop, values.begins(s, first), partial(values.number, s))
    partly, mark, since = False, len(s.rolled), len(s.passed)
    s.at_hand = set()
    if turns is not None:
        whole, moving = outer.whole * max(1, turns), outer.moving | set(loop.changed)
        inner = Surroundings(outer.nesting + 1, outer.depth, whole, moving)
        changed = {} if loop.counter is None or first is None else {loop.counter: s.of(first).depth}
    else:
        partly = loops.partly_unrolled(loop, partial(_is_known, s), nested=False)
        inner = Surroundings(outer.nesting + 1, outer.depth + 1)
        changed = dict.fromkeys(loop.changed, inner.depth)
    before = {variable: s.depths.get(variable, 0) for variable in changed}
    s.depths |= changed
    s.around = inner
    # A turn makes and the next one needs what changes, except counters, which are ready early.
    counted = {step.variable for step in loop.step.steps if isinstance(step, form.RegisterWrite)}
    handed, s.path.changed = s.path.changed, frozenset(loop.changed) - counted
    serial, s.serial = s.serial, False
    most_words, s.most_words = s.most_words, s.words
    loaded, s.loaded = s.loaded, 0
    wraps, s.wraps = s.wraps, False
    rings, s.path.rings = s.path.rings, set()
    early = s.early
    if turns is None:
        s.early, s.ahead = {}, s.ahead | loops.fetched_ahead(loop)
    _turn(s, loop)
    if turns is None:
        _arrive(s)
        s.early = early
    if partly and outer.depth and loop.counter is not None:
        branches = 6 if _at_once(s, loop, s.passed[since:]) == MOST_UNROLLED else 2
        s.passed[since - 1].latency += path.ENTRY * branches
    partly = _count(s, loop, turns, partly, any(s.rolled[mark:]))
    _interleave(s, s.passed[since:], PARTLY if turns is None and partly else turns or 1, s.words)
    if (turns or partly) and not s.serial:
        at_once = turns or _at_once(s, loop, s.passed[since:])
        _side_by_side(s, s.passed[since:], at_once, outer.depth > 0 and turns is None)
    s.serial |= serial
    s.wraps |= wraps
    s.loaded += loaded
    s.most_words = max(s.most_words, most_words)
    if s.path.rings.isdisjoint(handed):
        # Nothing of it is handed on to the next turn of the outer loop.
        for charge in s.passed[since:]:
            charge.latency, charge.slack = 0.0, charge.latency + charge.slack
    s.path.rings = rings | (s.path.rings & handed)
    s.path.changed = handed
    s.path.begin()
    s.around = outer
    s.depths |= before
    s.at_hand = set()


def _count(s: State, loop: form.Loop, turns: int | None, partly: bool, rolled: bool) -> bool:
    """Charge the counter of a loop, and tell whether some turns are done at once; `rolled`: loops inside."""
    test, step = s.charges[loop.test.point], s.charges[loop.step.point]
    test.branch, step.loop = not loop.endless, True
    condition = s.of(loop.condition) if loop.condition is not None else None
    early = condition is None or (
        condition.when.carried < 0 and not condition.reads.isdisjoint(loop.changed)
    )
    if early and not _leaves_early(loop.body):
        test.slack = 0.0  # a counter is ready early, but not behind a branch
    test.slack += path.BRANCH
    if turns is not None:
        test.instructions = step.instructions = 0
        test.issued = step.issued = test.alu = test.slack = test.busy = step.busy = 0
    else:
        if not rolled:
            partly = partly or loops.partly_unrolled(loop, partial(_is_known, s), nested=True)
        if partly:
            for charge in (test, step):
                charge.issued, charge.busy = charge.issued / PARTLY, charge.busy / PARTLY
            test.slack /= PARTLY
        s.rolled.append(True)
    return partly


def _turn(s: State, loop: form.Loop) -> None:
    """Walk over one turn, and find how long each waits for the one before."""
    since, handed, s.path.handed = len(s.passed), s.path.handed, {}
    s.path.begin()
    _piece(s, loop.test)
    s.path.begin()
    s.path.straight = True
    s.control.append(s.of(loop.condition).reads if loop.condition else frozenset())
    _steps(s, loop.body)
    _piece(s, loop.step)
    s.control.pop()
    if s.path.straight:  # then turns wait for each other only so long
        body, clocks = s.passed[since:], s.path.each_turn()
        waited = sum(charge.latency for charge in body)
        for charge in body:
            less = charge.latency * max(0.0, 1 - clocks / waited) if waited else 0.0
            charge.latency, charge.slack = charge.latency - less, charge.slack + less
    s.path.handed = handed


def _arrive(s: State) -> None:
    """Have a turn wait for what it fetches for the next one only as long as its other work doesn't take.

    It's all under way together, so the turn waits once, for what it asked for last.
    """
    if s.early:
        charge, at = [*s.early.items()][-1]
        meanwhile = sum(other.busy * other.whole for other in s.passed[at:])
        charge.rounds += max(0.0, 1 - meanwhile / path.TRIP)


def _leaves_early(body: Sequence[form.Instruction]) -> bool:
    """Tell whether a turn goes on behind a branch that leaves the loop."""
    while len(body) == 1 and isinstance(body[0], form.Scoped):
        body = body[0].steps
    return form.has(body[:-1], form.Leave)


def _side_by_side(s: State, body: Sequence[Charge], turns: int, inner: bool) -> None:
    """Let loads of so many turns be under way at once, or of as many as there are registers for.

    Of an inner loop bounds and addresses are kept, which are computed in front of the outer one.
    """
    kept = _KEPT if inner and turns == MOST_UNROLLED else 0
    # With a tile of sums in registers it has left that limit behind, as the listing of the ladder's
    # `registers` shows: eight loads are under way beside 64 sums.
    free = FREELY if s.most_words < _TILE else _MOST_REGISTERS
    room = 1 + (free - _TEMPORARIES - kept - s.most_words) / max(s.loaded, 1)
    window = WINDOW / max(_issued(s, body), 1.0)
    for charge in body:
        charge.room *= max(1, min(turns, int(room)))
        charge.overlap *= max(1, min(turns, int(max(room, window))))


def _interleave(s: State, body: Sequence[Charge], turns: int, outside: int) -> None:
    """Have a compiler mix so many turns of a loop, or as many as there are registers for.

    Listings of nvcc 13.0 have four turns of `lyapunov` abreast, and two of `nbody_forces` (docs/fidelity.md).
    """
    room = (FREELY - _TEMPORARIES - outside) / (s.most_words - outside + _OF_TURN)
    near = WINDOW / max(_issued(s, body), 1.0)
    abreast = 1.0 if s.serial else min(turns, max(1.0, room, near))
    for charge in body:
        charge.slack /= abreast


def _issued(s: State, body: Sequence[Charge]) -> float:
    """The instructions of one turn."""
    return sum(charge.issued * charge.whole for charge in body) / s.around.whole


def _at_once(s: State, loop: form.Loop, body: Sequence[Charge]) -> int:
    """How many turns nvcc does at once at most: more the shorter they are, and of loads most."""
    size = _issued(s, body)
    kind = loop.counter.type if loop.counter is not None else None
    signed = isinstance(kind, Scalar) and kind.kind == "int" and not s.wraps
    if signed and size <= (SHORT if any(charge.rounds for charge in body) else SHORTEST):
        return MOST_UNROLLED
    return PARTLY if size <= LONG else 2 if size <= 2 * LONG else 1


def _is_known(s: State, node: form.IRValue) -> bool:
    """The same as a depth of -1, for a value that has not been walked over yet."""
    if isinstance(node, form.Read):
        return s.depths.get(node.variable, 0) == KNOWN
    if isinstance(node, form.Operation | form.Convert):
        return all(_is_known(s, part) for part in node.parts)
    size = isinstance(node, form.Coordinate) and node.name == "warpSize"
    return size or isinstance(node, form.Constant)


def _words(variable: Variable) -> int:
    """Registers of 32 bits that a variable takes, if a compiler keeps it there."""
    own = variable.thread or not variable.memory
    nbytes = size_of(variable.type) if own and not variable.parameter else 0
    return -(-nbytes // 4) if nbytes <= _IN_REGISTERS else 0


_AT_HAND = {
    form.IRValue, form.Part, form.Old, form.Result, form.Read, form.Constant, form.Coordinate,
    form.RegisterWrite,
    form.Operation, form.Convert, form.ReferenceBind, form.Declare,
}  # fmt: skip

_EFFECTS: Mapping[type[form.Instruction], Callable[[State, Any], None]] = {
    form.FixedCostOp: _work,
    form.Store: _store,
    form.RegisterWrite: _assign,
    form.ReferenceBind: _bind,
    form.Declare: _declare,
    form.AccessOp: _access,
    form.Fence: _fence,
    form.Meet: _meet,
    form.Sleep: lambda s, step: None,
    form.BasicBlock: _piece,
    form.Scoped: _scoped,
    form.Expansion: _scoped,
    form.Branch: _branch,
    form.ShortCircuit: _short_circuit,
    form.Choice: _choice,
    form.Selection: _selection,
    form.Loop: _loop,
    form.Leave: lambda s, step: None if step.piece is None else _piece(s, step.piece),
}
