"""The facts that the walk finds about each value, and the charge for computing it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.builtins.mathematics import ISSUED
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.cost import state
from simgpu.cuda_c.cost.charges import WIDE
from simgpu.cuda_c.cost.state import ANYWHERE, INTEGERS, KNOWN, CostFacts, State
from simgpu.cuda_c.types import DOUBLE, Scalar

TESTS = {"<", "<=", ">", ">=", "==", "!="}
_ALU = TESTS | {"&", "|", "^", "<<", ">>"}
_BITS = {"__popc", "__clz", "__ffs", "__brev"}  # which the unit for special functions does
_INTEGER_DIVISION = 16
_DIVISION_BY_CONSTANT = 4  # a multiplication by the reciprocal, and what corrects it
_DIVISION_BY_POWER_OF_TWO = 2  # shifts
# The instructions of a division by a number that varies, or of operations on numbers of 64 bits; else 2.
_DIVISIONS = {"int /": 23, "int / same": 11, "long /": 70, "long *": 3, "wide *": 1}
_SLOW_FLOAT = 8
_ARITHMETIC = {"+", "-", "*", "/"}
# Operators whose results are the same if their operands are.
_KEYED = {"+", "-", "*", "&", "|", "^"}


def _made(s: State, node: form.IRValue) -> CostFacts:
    """Facts of a value that is made of its parts in some way."""
    out = CostFacts(depth=s.changes(node.parts))
    for part in node.parts:
        facts = s.of(part)
        out.reads |= facts.reads
        out.register = facts.register
    return out


def _read(s: State, node: form.Read) -> CostFacts:
    variable = node.variable
    key = ("variable", id(variable)) if node.whole else None
    depth, bound = s.depths.get(variable, 0), s.first.get(variable)
    kept = bound is not None and variable not in s.assigned and s.of(bound).register
    return CostFacts(frozenset((variable,)), depth=depth, key=key, register=kept)


def _coordinate(s: State, node: form.Coordinate) -> CostFacts:
    known = node.name == "warpSize"
    return CostFacts(depth=KNOWN) if known else CostFacts(depth=0, key=(node.name, node.axis))


def _address(s: State, node: form.Address) -> CostFacts:
    variable, reads = node.variable, frozenset((node.variable,))
    key = None if variable.volatile else ("memory", id(variable))
    return CostFacts(reads, depth=KNOWN, key=key, register=variable.thread)


def _element(s: State, node: form.Element) -> CostFacts:
    base, index = (s.of(part) for part in node.parts)
    # A known index costs no instruction, because loads and stores take an offset to their address. And of
    # addresses that differ by no more than that only one is computed.
    offsets = _offsets(s, node)
    if index.depth > KNOWN:
        s.indexed |= {variable for variable in base.reads if base.register and variable.thread}
        s.pay(form.Price(), node.parts, offsets=offsets)
        unsigned = _is_unsigned(node)  # may wrap: an unrolled loop computes it in each turn
        s.wraps |= unsigned and index.depth >= s.around.depth > 0
        if unsigned and not index.reads.isdisjoint(s.around.moving):
            s.charge.issued += 2
            s.charge.busy += 2 * INTEGERS
    out = _made(s, node)
    out.offsets = offsets
    if not node.volatile and base.key is not None and index.key is not None:
        out.key = ("element", base.key, index.key)
    # A thread's own array is in registers where a compiler knows the indices, since registers have none.
    out.register = base.register and index.depth == KNOWN and not _was_loaded(node.parts[0])
    return out


def _offsets(s: State, node: form.IRValue) -> frozenset[Variable]:
    """The variables that a sum or an address depends on by nothing but a known distance."""
    parts = [s.of(part) for part in node.parts]
    moved = [part.reads - part.offsets for part in parts if part.depth > KNOWN]
    return frozenset[Variable]().union(*(part.reads for part in parts)).difference(*moved)


def _is_unsigned(node: form.Element) -> bool:
    index = form.bare(node.parts[1])
    kind = index.type if isinstance(index, form.Operation) and not node.array else None
    return isinstance(kind, Scalar) and kind.kind == "uint"


def _followed(s: State, node: form.Followed) -> CostFacts:
    out = _made(s, node)
    out.depth = ANYWHERE
    out.register = all(s.of(part).register and not _was_loaded(part) for part in node.parts)
    return out


def _was_loaded(node: form.IRValue) -> bool:
    """Tell whether an address comes out of memory: what's at it need not be where the address was."""
    return isinstance(form.bare(node), form.Load)


def _cell(s: State, node: form.Cell) -> CostFacts:
    at = s.of(node.parts[0])
    return CostFacts(at.reads, depth=ANYWHERE, key=at.key, register=at.register)


def _load(s: State, node: form.Load) -> CostFacts:
    at = s.of(node.parts[0])
    if node.site is not None:
        s.sites[node.site].base = _base(node)
    issued, busy = s.charge.issued, s.charge.busy
    _charge_load(s, at, node.origin, node.site)
    if _is_wide(s, node):
        if node.site is not None:
            s.sites[node.site].wide = True
        s.charge.issued = issued + (s.charge.issued - issued) / WIDE
        s.charge.busy = busy + (s.charge.busy - busy) / WIDE
    return CostFacts(at.reads, depth=at.depth, key=at.key, register=at.register)


def _is_wide(s: State, load: form.Load) -> bool:
    """Tell whether a compiler loads neighbours with it: from shared memory, along an unrolled loop."""
    (cell,) = load.parts
    element = cell.parts[0] if cell.parts else cell
    if not isinstance(element, form.Element) or not load.origin.near:
        return False
    index = element.parts[1]
    if not isinstance(index, form.Constant) and s.of(index).depth == KNOWN:
        return True
    # Or a place that's known to be a multiple of four, and a known distance.
    moved = isinstance(index, form.Operation) and bool(s.of(index).offsets)
    return moved and _in_fours(s, index.parts[0])


def _in_fours(s: State, node: form.IRValue) -> bool:
    """Tell whether a compiler knows that a number is a multiple of four."""
    node = form.bare(node)
    if isinstance(node, form.Read) and node.variable not in s.assigned and node.variable in s.first:
        return _in_fours(s, s.first[node.variable])
    if isinstance(node, form.Operation) and node.op in ("+", "*"):
        return (all if node.op == "+" else any)(_in_fours(s, part) for part in node.parts)
    return isinstance(node, form.Constant) and node.value % WIDE == 0


def _base(node: form.IRValue) -> Variable | None:
    """The pointer that a load goes by: what its first parts lead to."""
    while node.parts and not isinstance(node, form.Read):
        node = node.parts[0]
    return node.variable if isinstance(node, form.Read) else None


def _charge_load(s: State, at: CostFacts, origin: Origin, site: int | None) -> None:
    if at.register:
        return
    if at.key is not None:
        if at.key in s.at_hand and site is not None:
            s.sites[site].free = True
            return
        s.at_hand.add(at.key)
    s.pay(form.Price(), unit=state.MEMORY)
    if not origin.near:
        s.loads.reads[s.charge] |= at.reads.union(*s.control)
        s.loaded += 1


def _operation(s: State, node: form.Operation) -> CostFacts:
    kind, parts = node.type, node.parts
    whole = isinstance(kind, Scalar) and kind.is_integer
    out = _made(s, node)
    if not isinstance(kind, Scalar):  # an address, to which a known distance is added for nothing
        out.offsets = _offsets(s, node)
        known = s.of(parts[1]).depth == KNOWN
        out.register = known and s.of(parts[0]).register and not _was_loaded(parts[0])
        if not known:
            s.pay(form.Price(), parts, offsets=out.offsets)
        return out
    out.register = False
    if node.op == "fused":
        s.pay(price_of(node))
        s.charge.fused += s.repeated(parts) and kind is not DOUBLE
    elif not (whole and node.op == "+" and any(_is_product(s, p) for p in parts)):
        before = s.charge.issued
        price = price_of(node)
        if price.issued == ISSUED["%"] or kind.size == 8 > price.instructions:
            known = _DIVISIONS.get(integer_name(s, node), 2) if whole else price.issued
            price = price._replace(issued=known)
        plain = kind.is_float and kind is not DOUBLE and node.op not in _ALU
        plain &= not price.special or is_scaling(node)
        unit = state.FLOATS if plain else unit_of(price)
        s.pay(price, parts, kind is DOUBLE and node.op != "negate", unit)
        if is_rotation(s, node):  # one instruction for all three; none that exchanges two registers
            each = s.charge.issued - before
            free = number(s, form.bare(parts[0]).parts[1]) == 32 < kind.size * 8
            s.charge.issued -= each * (2 + free)
            s.charge.busy -= each * (2 + free) * INTEGERS
            s.charge.alu -= each * (1 + free)
        elif node.op in _ALU:
            s.charge.alu += s.charge.issued - before
    if node.op in ("+", "-") and kind.kind == "int":  # unsigned sums may wrap
        out.offsets = _offsets(s, node)
    if whole and node.op in _KEYED:
        x, y = (s.of(part).key for part in parts)
        if x is not None and y is not None:
            out.key = (node.op, x, y)
    return out


def is_rotation(s: State, node: form.Operation) -> bool:
    """Tell whether it is the last operation of `x << n | x >> 32 - n`."""
    parts = [form.bare(part) for part in node.parts]
    if node.op not in ("|", "^", "+") or not all(isinstance(p, form.Operation) for p in parts):
        return False
    shifts = sorted((p for p in parts if isinstance(p, form.Operation)), key=lambda p: p.op)
    if [shift.op for shift in shifts] != ["<<", ">>"]:
        return False
    keys = {s.of(shift.parts[0]).key for shift in shifts}
    amounts = [number(s, shift.parts[1]) for shift in shifts]
    known = None not in amounts and sum(amount or 0 for amount in amounts) in (32, 64)
    left, right = (shift.parts[1] for shift in shifts)
    varies = _is_rest(s, left, right) or _is_rest(s, right, left)
    return len(keys) == 1 and None not in keys and (known or varies)


def _is_rest(s: State, rest: form.IRValue, of: form.IRValue) -> bool:
    """Tell whether it is `32 - of`, or `-of & 31`, which is the same to a shift."""
    rest, key = form.bare(rest), s.of(form.bare(of)).key
    if not isinstance(rest, form.Operation) or key is None:
        return False
    if rest.op == "&":
        turned = form.bare(rest.parts[0])
        return isinstance(turned, form.Operation) and s.of(form.bare(turned.parts[0])).key == key
    less = rest.op == "-" and number(s, rest.parts[0]) in (32, 64)
    return less and s.of(form.bare(rest.parts[1])).key == key


def number(s: State, node: form.IRValue) -> float | None:
    """The value of what a compiler knows: a constant, a variable that stays as it is, a difference."""
    node = form.bare(node)
    if isinstance(node, form.Constant):
        return float(node.value)
    if isinstance(node, form.Read) and node.variable not in s.assigned:
        first = s.first.get(node.variable)
        return None if first is None else number(s, first)
    if isinstance(node, form.Operation) and node.op == "-":
        one, other = (number(s, part) for part in node.parts)
        return None if one is None or other is None else one - other
    return None


def begins(s: State, node: form.IRValue | None) -> Sequence[int]:
    """The least and the greatest value of what a loop begins with, as a compiler knows them."""
    node = None if node is None else form.bare(node)
    if isinstance(node, form.Read) and node.variable not in s.assigned:
        return begins(s, s.first.get(node.variable))
    if isinstance(node, form.Operation) and node.op == "%":
        rest = number(s, node.parts[1])
        place = isinstance(form.bare(node.parts[0]), form.Coordinate)
        return (0, int(rest) - 1) if rest and place else ()
    if not isinstance(node, form.Constant) or node.value != int(node.value):
        return ()
    return (int(node.value),)


def integer_name(s: State, node: form.Operation) -> str:
    """The name by which the latency of an operation on integers is known."""
    assert isinstance(node.type, Scalar)
    long = node.type.size == 8
    if node.op not in ("/", "%"):
        if not long or node.op != "*":
            return node.op
        return "wide *" if all(map(_is_widened, node.parts)) else "long *"
    price = _division(node.parts[1])
    if price < _INTEGER_DIVISION:
        return f"int {node.op} known" if price == _DIVISION_BY_CONSTANT else ">>"
    if long:
        return "long /"
    return "int /" if s.repeated(node.parts[1:]) or not s.around.depth else "int / same"


def _is_widened(node: form.IRValue) -> bool:
    """Tell whether a factor of 64 bits has 32, as hardware can multiply them."""
    narrow = isinstance(node, form.Convert) and node.source.size <= 4
    return narrow or (isinstance(node, form.Constant) and abs(node.value) < 1 << 31)


def _is_product(s: State, node: form.IRValue) -> bool:
    """Tell whether an addition costs nothing more than this product, since the hardware does both in one."""
    return isinstance(node, form.Operation) and node.op == "*" and s.repeated([node])


def _convert(s: State, node: form.Convert) -> CostFacts:
    source, target = node.source, node.target
    (given,) = (s.of(part) for part in node.parts)
    part = form.bare(node.parts[0])
    halved = source.is_integer and source.size == 8 > target.size == 4 and target.is_integer
    if halved and isinstance(part, form.Operation) and s.repeated(part.parts):
        s.charge.issued -= 1  # the other half is never computed
        s.charge.busy -= INTEGERS
        return CostFacts(given.reads, depth=given.depth)
    if not node.free:
        s.pay(form.Price(), node.parts, DOUBLE in (source, target))
    key = None if isinstance(node.parts[0], form.Constant) else given.key
    if key is not None and source.dtype != target.dtype:
        key = (target, key)
    return CostFacts(given.reads, given.offsets, given.depth, key)


def _function(s: State, node: form.Intrinsic) -> CostFacts:
    unit = state.SPECIAL if node.name in _BITS else unit_of(node.price)
    s.pay(node.price, node.parts, node.type is DOUBLE, unit)
    return _made(s, node)


def unit_of(price: form.Price) -> float:
    """For how many clocks each instruction of a function keeps its unit busy."""
    issued = price.instructions if price.issued is None else price.issued
    return max(state.FUNCTIONS, state.SPECIAL / issued) if price.special and issued else INTEGERS


def price_of(operation: form.Operation) -> form.Price:
    """The price of one of C's operators, where it is done at all."""
    op, kind = operation.op, operation.type
    if op == "fused":
        return form.Price(0, flops=1)  # its product has been paid for
    if op == "negate" and isinstance(kind, Scalar) and kind.is_float:
        return form.Price(issued=0)  # whoever takes it takes it with the other sign
    if isinstance(kind, Scalar) and kind.is_float and op in _ARITHMETIC:
        if op != "/":
            return form.Price(1, flops=1)
        issued = 1 if is_scaling(operation) else ISSUED["/"]
        return form.Price(_SLOW_FLOAT, flops=1, special=1, issued=issued)
    if op in ("/", "%"):
        price = _division(operation.parts[1])
        return form.Price(price, issued=ISSUED["%"] if price == _INTEGER_DIVISION else price)
    return form.Price()


def is_scaling(operation: form.Operation) -> bool:
    """Tell whether it divides by a power of two: a compiler multiplies by the reciprocal, which is exact."""
    divisor = form.bare(operation.parts[-1])
    if operation.op != "/" or not isinstance(divisor, form.Constant):
        return False
    return abs(math.frexp(divisor.value)[0]) == 0.5


def _division(divisor: object) -> int:
    if not isinstance(divisor, form.Constant):
        return _INTEGER_DIVISION
    power_of_two = int(divisor.value).bit_count() == 1 and divisor.value > 0
    return _DIVISION_BY_POWER_OF_TWO if power_of_two else _DIVISION_BY_CONSTANT


VALUES: Mapping[type[form.IRValue], Callable[[State, Any], CostFacts]] = {
    form.IRValue: _made,
    form.Read: _read,
    form.Coordinate: _coordinate,
    form.Address: _address,
    form.Element: _element,
    form.Followed: _followed,
    form.Part: _made,
    form.Old: _made,
    form.Result: _made,
    form.Cell: _cell,
    form.Load: _load,
    form.Exchange: _made,
    form.Operation: _operation,
    form.Convert: _convert,
    form.Intrinsic: _function,
}
