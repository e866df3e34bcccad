"""Registers and memory: reading and writing what has a place."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import conversions, form
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.typed import Evaluate, Expr, MemoryPlace, Place, RegisterPlace
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.lockstep import Mask, Site, Team
from simgpu.cuda_c.memory import access, holes
from simgpu.cuda_c.memory.pointers import HoledPtr
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CType
from simgpu.errors import UninitialisedReadError

_HOLED = {holes.Holed, HoledPtr}
# Of a value that is a copy, though a reference to one of several variables in registers is meant.
LOST = "changing one of several variables by a reference is not supported: take a pointer"


def read_variable(c: Context, variable: Variable, at: Position) -> Expr:
    """A variable as an expression with a place."""
    slot = variable.slot
    if variable.memory:
        address, origin = c.note(form.Address(variable=variable)), variable.origin
        if not variable.thread and not origin.near:  # of the file: other kernels have it, too
            origin = c.aims.placed.setdefault(variable, Origin())
            origin.note("far")
        place = MemoryPlace(lambda t, m: t.slots[slot], address, origin)
        place.const, place.volatile = variable.const, variable.volatile
        return read_memory(c, place, variable.type, at)
    return read_place(c, RegisterPlace(variable, const=variable.const), variable.type, at, True)


def read_place(c: Context, place: Place, ctype: CType, at: Position, whole: bool = False) -> Expr:
    """What is in a place; `whole` if it is all of a variable, by its own name."""
    if isinstance(place, MemoryPlace):
        return read_memory(c, place, ctype, at)
    variable, first, count = place.variable, place.first, place.count
    run = _register_reader(variable, at, first, count)
    if count is not None:
        run = in_lane_order(place.before, pick_leaves(run, ctype, first, count, at))
    node = c.note(form.Read(variable=variable, whole=whole))
    rank = variable.rank + first / 64
    return Expr(ctype, run, at, node, place=place, origin=variable.origin, rank=rank)


def in_lane_order(*parts: Evaluate | None) -> Evaluate:
    """Do several things one after the other, and give what the last one gives."""
    *first, last = [part for part in parts if part is not None]

    def evaluate(t: Team, m: Mask) -> Any:
        for part in first:
            part(t, m)
        return last(t, m)

    return evaluate if first else last


def read_memory(c: Context, place: MemoryPlace, ctype: CType, at: Position) -> Expr:
    """A place in memory as an expression. An array is not read: its value is its address."""
    pointer = place.accessed
    if isinstance(ctype, types.ArrayType):
        return Expr(ctype, place.pointer, at, place.node, place=place, origin=place.origin)
    if isinstance(ctype, types.Void):
        c.fail(at, "a void pointer must be cast before it is followed")
    site = c.new_site(at, volatile=place.volatile, packed=place.packed)
    if place.volatile:
        place.origin.note("signals")
    c.aims.watched.append((site, place.origin))

    evaluate: Evaluate = lambda t, m: access.load_lanes(t, m, pointer(t, m), ctype, site)
    node = c.note(form.Cell((place.node,)))
    c.aims.follows |= has_pointer(ctype)
    origin = place.origin.content() if isinstance(ctype, types.Pointer | types.Struct) else Origin()
    return Expr(ctype, evaluate, at, node, place=place, origin=origin, site=site)


def use_storage(c: Context, expr: Expr) -> Expr:
    """Read an expression's value, if it is in memory; until then it is only a place."""
    if isinstance(expr.place, MemoryPlace) and not isinstance(expr.type, types.ArrayType):
        expr.node = load_place(c, expr, expr.place.origin, expr.site)
    return expr


def load_place(c: Context, address: Expr, origin: Origin, site: Site | None = None) -> form.Load:
    """Write into the form that a value is fetched."""
    address.rank = c.numbers.ranks.rank_of_load()
    origin.use()
    index, volatile = (None, False) if site is None else (site.index, site.volatile)
    return c.note(form.Load((address.node,), origin=origin, site=index, volatile=volatile))


def _register_reader(
    variable: Variable, at: Position, first: int = 0, count: int | None = None
) -> Evaluate:
    slot = variable.slot
    if not variable.unset:
        return lambda t, m: t.slots[slot]

    def checked(t: Team, m: Mask) -> Any:
        if t.defined[slot] is not True:
            require_defined(t, m.bits, variable, at, first, count)
            if isinstance(variable.type, types.Struct) and count != 1:
                return with_holes(t, m, variable)
        return t.slots[slot]

    return checked


def has_pointer(ctype: CType) -> bool:
    """Tell whether a value has an address in it."""
    return any(isinstance(leaf, types.Pointer) for leaf in types.kinds(ctype))


def writable(c: Context, expr: Expr, at: Position) -> Place:
    """Return the place that an expression is assigned to, or refuse one without a place, or const."""
    place = expr.place
    if expr.lost:
        c.unsupported(at, LOST)
    if place is None:
        c.fail(at, "this cannot be assigned to: it is a value, not a variable")
    if isinstance(expr.type, types.ArrayType):
        c.fail(at, "an array cannot be assigned to as a whole")
    if place.const:
        c.fail(at, "this cannot be assigned to: it is const")
    return place


def writer(c: Context, expr: Expr, at: Position, new: Expr) -> Evaluate:
    """Make the function that computes `new`, assigns it to the place of an expression, and returns it."""
    place, ctype, evaluate = writable(c, expr, at), expr.type, new.run
    if isinstance(place, RegisterPlace):
        assigned(place.variable, new)
        c.steps.append(form.RegisterWrite(place.variable, new.node))
        return _register_writer(place, ctype, evaluate)
    place.origin.note("written")
    place.origin.use()
    if place.volatile:
        place.origin.note("signals")
    c.aims.follows |= has_pointer(ctype)
    place.origin.content().unite(new.origin)
    c.steps.append(form.Store(expr.node, new.node, place.origin))
    site = c.new_site(at, write=True, volatile=place.volatile, packed=place.packed)
    pointer = place.accessed

    def store(t: Team, m: Mask) -> Any:
        value = evaluate(t, m)  # the right side goes first, as C++17 has it
        access.store_lanes(t, m, pointer(t, m), ctype, value, site)
        return value

    return store


def assigned(variable: Variable, new: Expr) -> None:
    """Remember what a variable depends on."""
    variable.rank = new.rank
    origin = variable.origin.content() if variable.memory else variable.origin
    origin.unite(new.origin)


def begin(t: Team, m: Mask, slot: int, first: Any) -> None:
    """Give a variable its first value, in the lanes that declare it."""
    if t.apart:
        t.slots[slot] = access.merge(m, first, t.slots[slot])
        t.born[slot] = None
    else:
        t.slots[slot] = first
        t.born[slot] = m


def leave_unset(variable: Variable, zero: Any) -> Evaluate:
    """Begin a variable that has no value yet; `zero` stands for it."""
    slot, variable.unset = variable.slot, True
    nowhere = [None] * len(zero) if isinstance(variable.type, types.Struct) else None

    def evaluate(t: Team, m: Mask) -> None:
        begin(t, m, slot, zero)
        known = t.defined[slot]
        if known is True and nowhere is not None:
            known = [True] * len(nowhere)
        empty = nowhere == []  # which has nothing that one could read
        t.defined[slot] = empty or (_forget(m, known) if t.apart else nowhere)

    return evaluate


def _forget(m: Mask, defined: Any) -> Any:
    """The lanes in which a variable has a value once those of `m` have declared it anew."""
    if isinstance(defined, list):
        return [_forget(m, state) for state in cast("list[Any]", defined)]
    if defined is None:
        return None
    return ~m.bits if defined is True else defined & ~m.bits


def put(slot: int, compute: Evaluate) -> Evaluate:
    """Give a variable its first value."""
    return lambda t, m: begin(t, m, slot, compute(t, m))


def _register_writer(place: RegisterPlace, ctype: CType, evaluate: Evaluate) -> Evaluate:
    slot, first, count = place.variable.slot, place.first, place.count
    unset, called = place.variable.unset, place.before
    single = isinstance(ctype, (types.Scalar, types.Pointer))
    struct = isinstance(place.variable.type, types.Struct)

    def write(t: Team, m: Mask) -> Any:
        new = evaluate(t, m)
        if called is not None:
            called(t, m)
        if unset and t.defined[slot] is not True:
            if not struct:
                t.defined[slot] = _united(t, m, slot, t.defined[slot])
            else:
                states = list(t.defined[slot])
                for k in range(first, len(states) if count is None else first + count):
                    states[k] = _united(t, m, slot, states[k])
                t.defined[slot] = True if all(s is True for s in states) else states
        old = t.slots[slot]
        if count is not None:
            whole = list(old)
            if single:
                whole[first] = access.merge_member(m, new, whole[first])
            else:
                whole[first : first + count] = access.merge(m, new, whole[first : first + count])
            t.slots[slot] = whole
        elif m.full or t.born[slot] is m:
            t.slots[slot] = new
        else:
            t.slots[slot] = access.merge(m, new, old)
        return new

    return write


def _united(t: Team, m: Mask, slot: int, defined: Any) -> Any:
    """The lanes in which a variable has a value once those of `m` have been given one."""
    born = t.born[slot]
    if defined is True or m.full or born is m:
        return True
    union = m.bits if defined is None else defined | m.bits
    complete = born is not None and int(np.count_nonzero(union & born.bits)) == born.n
    return True if complete else union


def require_defined(
    t: Team, lanes: Any, variable: Variable, at: Position, first: int = 0, count: int | None = None
) -> None:
    """Fault if a variable, or all of a struct, has no value in one of these lanes."""
    defined: Any = t.defined[variable.slot]
    name = variable.name
    if isinstance(variable.type, types.Struct):
        states = cast("list[Any]", defined)
        if count is not None:
            states = states[first : first + count]
        if not states or any(state is True for state in states):
            return
        parts = [state for state in states if state is not None]
        defined = np.logical_or.reduce(parts) if parts else None
        if count is not None and first < len(variable.type.fields):
            name = f"{name}.{variable.type.fields[first].name}"
    missing = lanes if defined is None else lanes & ~defined
    if missing.any():
        text = f"reads '{name}', a local variable that nothing has been assigned to"
        t.fault(UninitialisedReadError, at, int(missing.argmax()), text, array=variable.name)


def passed_on(expr: Expr) -> Expr:
    """A variable as a value that is only passed on, so that lanes may lack it, or parts of it."""
    place, ctype, site = expr.place, expr.type, expr.site
    if isinstance(place, MemoryPlace) and site is not None:
        pointer = place.accessed
        load = partial(access.load_lanes, ctype=ctype, site=site, copied=True)
        run: Evaluate = lambda t, m: load(t, m, pointer(t, m))
        return replace(expr, run=run)
    if not isinstance(place, RegisterPlace) or place.before or not place.variable.unset:
        return expr
    variable, first, count = place.variable, place.first, place.count

    def evaluate(t: Team, m: Mask) -> Any:
        whole = with_holes(t, m, variable)
        if count is None:
            return whole
        return whole[first : first + count] if isinstance(ctype, types.Struct) else whole[first]

    return replace(expr, run=evaluate)


def with_holes(t: Team, m: Mask, variable: Variable) -> Any:
    """The value of a variable that is copied, and to which not all lanes have assigned all of it."""
    value, defined = t.slots[variable.slot], t.defined[variable.slot]
    if defined is True:
        return value
    what = f"'{variable.name}', a local variable that nothing has been assigned to"
    if not isinstance(value, list):
        return _with_hole(t, m, value, defined, what)
    members = zip(cast("list[Any]", value), defined, strict=True)
    return [_with_hole(t, m, one, state, f"a member of {what}") for one, state in members]


def _with_hole(t: Team, m: Mask, value: Any, state: Any, what: str) -> Any:
    missing, before = (
        m.bits if state is None else m.bits & ~np.asarray(state),
        holes.missing_in(value),
    )
    if before is not None:  # a part that was given as a copy
        missing, what = missing | before, value.what
    return holes.holed(holes.plain(value), missing, what)


def pick_leaves(whole: Evaluate, ctype: CType, first: int, count: int, at: Position) -> Evaluate:
    """The part of a struct's value, a list of its leaves, that is a member of type `ctype`."""
    if isinstance(ctype, (types.Scalar, types.Pointer)):

        def pick(t: Team, m: Mask) -> Any:
            leaf = whole(t, m)[first]
            return holes.require(t, m.bits, leaf, at) if type(leaf) in _HOLED else leaf

        return pick
    return lambda t, m: whole(t, m)[first : first + count]


def spread(c: Context, whole: Expr, ctype: CType) -> list[Expr]:
    """Take a value apart: an expression for each leaf, which run in order, and compute a struct once."""
    if isinstance(ctype, types.Scalar | types.Pointer):
        return [whole]
    evaluate, slot = whole.run, c.new_slot()

    def first(t: Team, m: Mask) -> Any:
        t.slots[slot] = evaluate(t, m)
        return t.slots[slot][0]

    def picker(k: int) -> Evaluate:
        return lambda t, m: t.slots[slot][k]

    out: list[Expr] = []
    for k, (leaf, _) in enumerate(types.leaves(ctype)):
        origin = whole.origin if isinstance(leaf, types.Pointer) else None
        run = picker(k) if k else first
        out.append(conversions.typed_value(c, leaf, run, whole.at, [whole], origin=origin))
    return out or [conversions.typed_value(c, types.VOID, evaluate, whole.at, [whole])]


def joined(parts: list[Expr]) -> Evaluate:
    """The list of the leaves of a struct whose parts are computed in turn."""
    runs = [(part.run, isinstance(part.type, types.Void)) for part in parts]
    if not any(void for _, void in runs):
        return lambda t, m: [evaluate(t, m) for evaluate, _ in runs]

    def evaluate(t: Team, m: Mask) -> Any:
        computed = [(part(t, m), void) for part, void in runs]
        return [leaf for leaf, void in computed if not void]

    return evaluate
