"""Rooms for values: local memory of each thread, arguments, and what references are bound to."""

from dataclasses import replace
from typing import Any

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert
from simgpu.cuda_c.compile.form import Followed, ReferenceBind
from simgpu.cuda_c.compile.places import as_base
from simgpu.cuda_c.compile.storage import LOST, assigned, put, spread, use_storage
from simgpu.cuda_c.compile.typed import Alias, Evaluate, Expr, MemoryPlace
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep import Mask, Team
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.local_region import LocalRegion
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.text.source import Position

# Of a thread: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
LOCAL_BYTES = 512 * 1024


def zero_of(ctype: types.CType) -> Any:
    """A value that stands for one that nobody may look at."""
    if isinstance(ctype, types.Scalar):
        return ctype.make(0)
    if isinstance(ctype, types.Pointer):
        return access.NULL
    return [zero_of(leaf) for leaf, _ in types.leaves(ctype)]


def own_variable(
    c: Context, name: str, ctype: types.CType, memory: bool, at: Position, const: bool = False
) -> Variable:
    """A variable that each thread has of its own, in memory or in registers."""
    size = types.size_of(ctype) if memory else 0
    if size > LOCAL_BYTES:
        c.fail(at, f"'{name}' takes {size:,} bytes; a thread has {LOCAL_BYTES:,} of local memory")
    c.numbers.local_bytes += size
    if c.numbers.local_bytes > LOCAL_BYTES:
        text = f"local arrays of more than {LOCAL_BYTES:,} bytes in a kernel with all its calls"
        c.unsupported(at, text)
    variable = Variable(name, ctype, c.new_slot(), memory=memory, const=const, thread=memory)
    if memory:
        variable.origin.note("near")
    return variable


def local_memory(c: Context, variable: Variable, values: list[Expr], at: Position) -> Evaluate:
    """Make room for a variable of each thread, and fill it."""
    slot, name, ctype = variable.slot, variable.name, variable.type
    parts = types.leaves(ctype)
    unit = min((types.size_of(leaf) for leaf, _ in parts), default=1)
    site = c.new_site(at, write=True)
    rest = iter(parts)
    fill = [(None if isinstance(v.type, types.Void) else next(rest), v.run) for v in values]
    c.work(len(fill))

    def evaluate(t: Team, m: Mask) -> None:
        base: Any = t.slots[slot]
        if base is None or (not t.apart and (m.full or t.born[slot] is m)):
            base = Ptr(LocalRegion(name, ctype, unit, t), 0, unit, 0, name)
            t.slots[slot] = base
        else:
            base.region.begin(m)
        t.born[slot] = m
        for place, value in fill:
            if place is None:
                value(t, m)
            else:
                leaf, offset = place
                access.store_lanes(t, m, base.moved(offset), leaf, value(t, m), site)

    return evaluate


def parameter_entry(c: Context, variable: Variable, new: Expr) -> Evaluate:
    """Make the statement that puts an argument where its parameter is."""
    if not variable.memory:
        return put(variable.slot, new.run)
    return local_memory(c, variable, spread(c, new, variable.type), new.at)


def bind_reference(
    c: Context, name: str, target: Expr, ctype: types.CType, const: bool, at: Position,
    volatile: bool = False,
) -> tuple[Alias | Variable, Evaluate | None]:  # fmt: skip
    """A name for a place: what it means, and what fixes the place's address once."""
    if c.derives(target.type, ctype):
        target = as_base(c, target, ctype)
    place = target.place
    if (
        const
        and isinstance(target.type, types.ArrayType)
        and types.unqualified(target.type) == types.unqualified(ctype)
    ):
        target = replace(target, type=ctype)
    if place is None or target.type != ctype:
        value = isinstance(target.type, types.Scalar | types.Struct)
        if const and (value or isinstance(ctype, types.Pointer)):  # a copy, which nobody can change
            new = convert(c, use_storage(c, target), ctype, at)
            variable = own_variable(c, name, ctype, c.lives_in_memory(ctype), at, const=True)
            first_value(c, variable, new)
            return variable, parameter_entry(c, variable, new)
        if place is None and target.lost:
            c.unsupported(at, LOST)
        if place is None:
            c.fail(at, f"the reference '{name}' needs a variable, not a value")
        c.fail(at, f"a '{types.spelled(ctype)}&' cannot refer to a '{types.spelled(target.type)}'")
    if place.const and not const:
        c.fail(at, f"the reference '{name}' would let a constant be changed")
    if not isinstance(place, MemoryPlace):
        entry = place.before
        place = replace(place, const=place.const or const, before=None)
        return Alias(Expr(ctype, target.run, at, target.node, place=place)), entry
    slot, pointer = c.new_slot(), place.pointer
    address = c.note(Followed((target.node,)))
    const, volatile = place.const or const, place.volatile or volatile
    kept: Evaluate = lambda t, m: t.slots[slot]
    fixed = MemoryPlace(kept, address, place.origin, const, volatile)
    alias = Expr(ctype, target.run, at, target.node, place=fixed, origin=target.origin)
    return Alias(alias), put(slot, pointer)


def first_value(c: Context, variable: Variable, new: Expr) -> None:
    """Note what a variable is made with."""
    assigned(variable, new)
    c.steps.append(ReferenceBind(variable, new.node))
