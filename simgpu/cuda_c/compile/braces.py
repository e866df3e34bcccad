"""Lists in braces: values and initialisers."""

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant, convert, null, typed_value
from simgpu.cuda_c.compile.places import place_of
from simgpu.cuda_c.compile.storage import joined, spread
from simgpu.cuda_c.compile.type_names import array_type, resolve_type
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.compile.variables import Origin
from simgpu.cuda_c.syntax.ast import Braces, Declarator, Expression, Text
from simgpu.cuda_c.text.source import Position

_MOST_NUMBERS = 2**17  # in a list


def converted(c: Context, node: Expression, ctype: types.CType, at: Position) -> Expr:
    """Compile what is assigned or returned where a `ctype` is wanted; a bare list makes one."""
    if isinstance(node, Braces) and node.type is None:
        return listed_values(c, node, ctype)
    return convert(c, c.expression(node), ctype, at)


def braced(c: Context, node: Braces, used: bool) -> Expr:
    """Compile `T{a, b}`."""
    if node.type is None:
        c.unsupported(node.at, "a list in braces is supported as an initialiser only")
    return listed_values(c, node, resolve_type(c, node.type))


def listed_values(c: Context, node: Braces, ctype: types.CType) -> Expr:
    """`{a, b}` as a value of a struct or number; what is left out is zero."""
    if isinstance(ctype, types.Scalar | types.Pointer):
        if len(node.items) > 1:
            c.fail(node.at, f"too many values for one '{types.spelled(ctype)}'")
        if not node.items:
            return zero_values(ctype, node.at)[0]
        value = c.expression(node.items[0])
        cast = isinstance(ctype, types.Enumeration) or isinstance(value.type, types.Struct)
        return convert(c, value, ctype, node.at, explicit=cast)
    if not isinstance(ctype, types.Struct):
        text = f"making a '{types.spelled(ctype)}' from a list in braces is not supported"
        c.unsupported(node.at, f"{text}: declare a variable")
    known = c.class_of(ctype)
    if known is not None and known.takes_over(node):
        arguments = [place_of(c, item) for item in node.items]
        return c.rules.construct(c, known, arguments, node.at, None)
    first = node.items[0] if len(node.items) == 1 else node
    if not isinstance(first, Braces) and c.type_of(first) == ctype:
        return c.expression(first)
    parts = initialise(c, node, ctype)
    origin = Origin(*[part.origin for part in parts])
    return typed_value(c, ctype, joined(parts), node.at, parts, origin=origin)


def initialise(c: Context, node: Expression, ctype: types.CType) -> list[Expr]:
    """One expression for each leaf of `ctype`, from a braced list; C's rules for nesting."""
    if isinstance(node, Text) and isinstance(ctype, types.ArrayType):
        node = Braces(at=node.at, items=node.characters())
    if isinstance(ctype, types.ArrayType) and types.numbers_in(ctype) > _MOST_NUMBERS:
        text = f"initial values for {types.numbers_in(ctype):,} numbers, of which {_MOST_NUMBERS:,} are taken"
        c.unsupported(node.at, f"{text}: write them from the host or by a kernel")
    if isinstance(ctype, (types.Scalar, types.Pointer)):
        return [converted(c, node, ctype, node.at)]
    known = c.class_of(ctype)
    if known is not None and known.takes_over(node):
        return spread(c, converted(c, node, ctype, node.at), ctype)
    if not isinstance(node, Braces) or (node.type and resolve_type(c, node.type) != ctype):
        whole = c.expression(node)
        if isinstance(ctype, types.Struct):
            whole = convert(c, whole, ctype, node.at)
        if whole.type != ctype:
            source = types.spelled(whole.type)
            c.fail(node.at, f"no conversion from '{source}' to '{types.spelled(ctype)}'")
        return spread(c, whole, ctype)
    if node.type is not None:
        node = Braces(at=node.at, items=node.items)
    if len(node.items) == 1 and isinstance(ctype, types.Struct):
        (only,) = node.items
        if not (isinstance(only, Braces) and only.type is None) and c.type_of(only) == ctype:
            return spread(c, c.expression(only), ctype)
    items = _in_order(c, node, ctype) if node.names else list(node.items)
    out = _fill(c, items, ctype, node.at)
    if items:
        c.fail(items[0].at, f"too many values for '{types.spelled(ctype)}'")
    return out


def _in_order(c: Context, node: Braces, ctype: types.CType) -> list[Expression]:
    """The values of `{.a = 1, .c = 2}`, with what members get that are left out."""
    members = [field.name for field in ctype.fields] if isinstance(ctype, types.Struct) else []
    places = [members.index(name) if name in members else -1 for name in node.names]
    if -1 in places:
        name = node.names[places.index(-1)]
        c.fail(node.at, f"'{types.spelled(ctype)}' has no member '{name}'")
    if places != sorted(set(places)):
        c.fail(node.at, f"these names are not in the order of the members ({', '.join(members)})")
    known = c.class_of(ctype)
    preset = known.initial if known is not None else {}
    given = dict(zip(node.names, node.items, strict=True))
    nothing = Braces(at=node.at, items=[])
    return [given.get(name, preset.get(name, nothing)) for name in members]


def _fill(c: Context, items: list[Expression], ctype: types.CType, at: Position) -> list[Expr]:
    parts, struct = _parts(ctype), ctype if isinstance(ctype, types.Struct) else None
    if struct and struct.union and types.leaves(parts[0]) != types.leaves(ctype):
        text = "a union whose first member is not its largest, in braces"
        c.unsupported(at, f"{text}: assign to the member")
    known = c.class_of(ctype)
    preset = known.initial if known is not None else {}
    out: list[Expr] = []
    for k, part in enumerate(parts):
        if not items:
            if struct and struct.name == "dim3":
                return out + [constant(types.UINT, 1, at)] * (3 - k)
            names = [field.name for field in struct.fields] if struct else []
            for j, rest in enumerate(parts[k:], k):
                usual = preset.get(names[j]) if names else None
                if known is None or usual is None:
                    out += _nothing_given(c, rest, at)
                    continue
                with c.seen_from(known.scope):
                    out += initialise(c, usual, rest)
            return out
        if _is_whole(c, items[0], part):
            out += initialise(c, items.pop(0), part)
        else:
            out += _fill(c, items, part, at)  # C lets inner braces be left out
    return out


def _parts(ctype: types.CType) -> list[types.CType]:
    """The types of what a list gives values to: elements, or members; of a union, the first."""
    if isinstance(ctype, types.ArrayType):
        return [ctype.element] * ctype.length
    assert isinstance(ctype, types.Struct)  # as `_is_whole` says of all else
    return [field.type for field in (ctype.fields[:1] if ctype.union else ctype.fields)]


def _is_whole(c: Context, item: Expression, part: types.CType) -> bool:
    """Tell whether an item of a list is all that this part takes of it."""
    inner = c.class_of(part)
    return (
        isinstance(part, (types.Scalar, types.Pointer))
        or isinstance(item, Braces)
        or (isinstance(item, Text) and isinstance(part, types.ArrayType))
        or (inner is not None and bool(inner.constructors))
        or (isinstance(part, types.Struct) and c.type_of(item) == part)
    )


def declared_type(
    c: Context, item: Declarator, element: types.CType, const: bool = False
) -> types.CType:
    """The type of a name with what stands behind it; a size that is missing is that of its list."""
    if isinstance(element, types.Void):
        c.fail(item.at, f"'{item.name}' cannot be void")
    if None in item.dims[1:]:
        c.fail(item.at, f"only the first size of '{item.name}' can be left out")
    if item.dims[:1] != [None]:
        return array_type(c, element, item.dims, const)
    element = array_type(c, element, item.dims[1:], const)
    items, length = [*item.init.items] if isinstance(item.init, Braces) else [], 0
    while items:
        _pass_over(c, items, element)
        length += 1
    if not length:
        c.fail(item.at, f"the size of '{item.name}' is missing")
    return types.ArrayType(element, length, const)


def _pass_over(c: Context, items: list[Expression], part: types.CType) -> None:
    """Drop from a list what is for this part, as `_fill` does."""
    if _is_whole(c, items[0], part):
        del items[0]
        return
    for inner in _parts(part):
        if items:
            _pass_over(c, items, inner)


def _nothing_given(c: Context, ctype: types.CType, at: Position) -> list[Expr]:
    """The leaves of a member or an element for which a list has no value."""
    if not c.constructs(ctype):
        return zero_values(ctype, at)
    if isinstance(ctype, types.ArrayType):
        return [leaf for _ in range(ctype.length) for leaf in _nothing_given(c, ctype.element, at)]
    return spread(c, listed_values(c, Braces(at=at, items=[]), ctype), ctype)


def zero_values(ctype: types.CType, at: Position) -> list[Expr]:
    """Zero for each leaf."""
    return [
        null(leaf, at) if isinstance(leaf, types.Pointer) else constant(leaf, 0, at)
        for leaf, _ in types.leaves(ctype)
    ]
