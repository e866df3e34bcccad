"""The types that names stand for, and the values of constant expressions in them."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import constants, typed
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant, convert
from simgpu.cuda_c.compile.typed import Given, Number, Scope, TypeBinding
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import CType
from simgpu.errors import KernelCompileError

_MOST_MEMBERS = 10_000  # with those of its members; an array counts as one
_MOST_BYTES = 2**62  # of an array
TemplateArguments: TypeAlias = Sequence[ast.TemplateArgument]


def _is_reference(c: Context, node: ast.Expression, of: typed.Expr) -> bool:
    """Tell whether decltype of an expression is a reference to something."""
    if isinstance(node, ast.DeclRefExpr):
        return isinstance(c.scope.find(node.name), typed.Alias)
    if isinstance(node, ast.Conditional):  # one of two variables of one type
        return all(isinstance(side, ast.DeclRefExpr | ast.Member) for side in (node.yes, node.no))
    before = isinstance(node, ast.Increment) and not node.postfix
    return not isinstance(node, ast.Member) and (before or of.place is not None)


def resolve_type(c: Context, name: ast.TypeName) -> CType:
    """Resolve a type name; a reference has the type of what it refers to."""
    ctype: CType
    if name.of is not None:
        with c.recording(dropped=True):  # because nothing of this is computed
            of = c.expression(name.of)
        if _is_reference(c, name.of, of):
            c.unsupported(name.at, "decltype of a place, which is a reference: write the type")
        ctype = of.type
    elif name.function is not None:
        ctype = pointer_type(c, resolve_type(c, name.function.returns), name.function.params)
    elif name.array is not None:
        ctype = array_type(c, resolve_type(c, name.array.type), name.array.dims, name.const)
    elif name.base == "void":
        ctype = types.VOID
    elif name.base in types.SCALARS:
        ctype = types.SCALARS[name.base]
    else:
        ctype = _found(c, name)
    for nested in name.nested:
        member = names_in(c, ctype, name).names.get(nested)
        if not isinstance(member, TypeBinding):
            c.fail(name.at, f"'{types.spelled(ctype)}' has no type '{nested}'")
        ctype = member.type
    const, volatile = name.const, name.volatile
    for qualifiers in name.pointers:
        restrict = any("restrict" in word for word in qualifiers)
        ctype = types.Pointer(ctype, const, volatile, restrict)
        const, volatile = "const" in qualifiers, "volatile" in qualifiers
    return ctype


def pointer_type(c: Context, returns: CType, params: Sequence[ast.Param]) -> types.FunctionPointer:
    """The type of the address of a function."""
    kinds = tuple(param_type(c, param) for param in params)
    references = tuple(param.type.reference for param in params)
    return types.function_pointer(returns, kinds, references)


def _found(c: Context, name: ast.TypeName) -> CType:
    found = c.scope.find_type(name.base)
    if isinstance(found, typed.Refused):
        raise found.error
    if name.arguments is not None and isinstance(found, TypeBinding):
        # A template's own struct names another one of the template.
        found = c.file.scope.find(name.base)
    if isinstance(found, typed.StructTemplate):
        return _instance(c, found, name)
    if isinstance(found, TypeBinding):
        return found.type
    if name.base in types.VECTORS:
        return types.VECTORS[name.base]
    c.fail(name.at, f"unknown type name '{name.base}'")


def names_in(c: Context, ctype: CType, name: ast.TypeName) -> Scope:
    """The scope that `Type::` reaches into."""
    known = c.class_of(ctype)
    if known is not None:
        return known.scope
    if ctype in c.file.enumerators:
        return c.file.enumerators[ctype]
    c.fail(name.at, f"'{types.spelled(ctype)}' has no members that belong to the type")


def param_type(c: Context, param: ast.Param) -> CType:
    """The type of a parameter; an array parameter is a pointer."""
    ctype = resolve_type(c, param.type)
    if not param.dims:
        return ctype
    inner = array_type(c, ctype, list(param.dims[1:]))
    return types.Pointer(inner, param.type.itself("const"), param.type.itself("volatile"))


def declare_type(c: Context, node: ast.StructDef) -> None:
    """Give the name of a struct or an enumeration its meaning in the scope at hand."""
    names = c.scope.names
    if node.enumerators is not None:
        inside, scoped = Scope(), "scoped" in node.enumerators.storage
        before = names.get(node.name)
        known = before.type if isinstance(before, TypeBinding) and node.name else None
        key = known.key if isinstance(known, types.Enumeration) else id(node)
        if node.declared and known is not None:
            return
        kind = _enumerate(c, node, scoped, key, inside)
        shown = {} if scoped else inside.names
        for name in shown.keys() & names.keys():
            c.fail(node.at, f"'{name}' has already been declared in this scope")
        names.update(shown)
        c.file.enumerators[kind] = inside
        if node.name:
            names[node.name] = TypeBinding(kind)
    elif node.template is not None:
        known = names.get(node.name)
        if node.specialises is not None and isinstance(known, typed.StructTemplate):
            known.definitions.append(node)
        elif not node.declared or not isinstance(known, typed.StructTemplate):
            around = None if c.scope is c.file.scope else c.scope
            names[node.name] = typed.StructTemplate([node], around)
    elif node.declared:
        if node.name not in names:
            names[node.name] = TypeBinding(_declared(node, node.name))
    else:
        known = names.get(node.name)
        ctype = known.type if isinstance(known, TypeBinding) else None
        declared = ctype if isinstance(ctype, types.Struct) and not ctype.size else None
        if declared is None and node.base is not None and node.name:
            declared = _declared(node, node.name)  # known to its own base, as in D : Base<D>
            names[node.name] = TypeBinding(declared)
        names[node.name] = TypeBinding(define_struct(c, node, declared))


def _enumerate(c: Context, node: ast.StructDef, scoped: bool, key: int, inside: Scope) -> CType:
    """Enter the constants of an enumeration; returns its type, which has room for all of them.

    Where the enumeration does not say its type, an enumerator has that of its value up to the closing brace,
    or the first one with room for a value that only follows from the one before.
    """
    fixed = None if node.base is None else resolve_type(c, node.base)
    if fixed is not None and not (isinstance(fixed, types.Scalar) and fixed.is_integer):
        c.fail(node.at, f"an enumeration is of integers, and not of '{types.spelled(fixed)}'")
    number, own, numbers = -1, types.INT, list[int]()
    items = [] if node.enumerators is None else node.enumerators.items
    with c.seen_from(Scope(c.scope)) as inner:
        for item in items:
            if item.init is None:
                number += 1
                own = _first_with_room(own, (number,))
            else:
                number = integer_constant(c, item.init, "an enumerator")
                own = cast("types.Scalar", c.expression(item.init).type)
            if not (fixed or own).lowest <= number <= (fixed or own).highest:
                room = types.spelled(fixed or own)
                c.fail(item.at, f"'{item.name}' is {number}, for which '{room}' has no room")
            inner.names[item.name] = Number(constant(fixed or own, number, item.at))
            numbers.append(number)
    name = node.name or f"enumeration of line {node.at.line}"
    kind = types.enumeration(name, fixed or _first_with_room(types.INT, numbers), scoped, key)
    for item, number in zip(items, numbers, strict=True):
        if item.name in inside.names:
            c.fail(item.at, f"'{item.name}' has already been declared in this scope")
        inside.names[item.name] = Number(constant(kind, number, item.at))
    return kind


def _first_with_room(first: types.Scalar, numbers: Sequence[int]) -> types.Scalar:
    low, high = min(numbers, default=0), max(numbers, default=0)
    kinds = (first, types.INT, types.UINT, types.LONG, types.ULONG)
    return next((k for k in kinds if k.lowest <= low and high <= k.highest), types.ULONG)


def _declared(node: ast.StructDef, name: str) -> types.Struct:
    return types.Struct(name, (), 0, 1, key=id(node), union=node.union)


def alignment(c: Context, given: Sequence[ast.Attribute], own: int) -> int:
    """The alignment of what by itself has that of `own` bytes."""
    own = 1 if any(one.name == "packed" for one in given) else own
    most = own
    for one in given:
        wanted = 1 if one.name == "packed" else 16
        if isinstance(one.value, ast.TypeName):
            wanted = types.align_of(resolve_type(c, one.value))
        elif one.value is not None:
            wanted = integer_constant(c, one.value, "an alignment")
        if wanted & (wanted - 1) or wanted < (one.name != "alignas"):
            c.fail(one.at, f"an alignment of {wanted} bytes is not a power of two")
        if 0 < wanted < own and one.name == "alignas":
            c.unsupported(one.at, f"an alignment below that of the members ({own})")
        most = max(most, wanted)
    return most


@dataclass
class StructLayout:
    """The members of a struct so far, and where they end."""

    _c: Context
    _union: bool = False
    _packed: bool = False
    _pack: int = 0  # of `#pragma pack`
    fields: list[types.Field] = field(default_factory=list[types.Field])
    initial: dict[str, ast.Expression] = field(default_factory=dict[str, ast.Expression])
    end: int = 0
    align: int = 1
    taken: set[CType] = field(default_factory=set[CType])  # by empty bases, at 0

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return -(-max(1, self.end) // self.align) * self.align

    def place(
        self, name: str, ctype: CType, at: Position, said: ast.TypeName | None = None,
        mutable: bool = False,
    ) -> None:  # fmt: skip
        """Give a member the next place; `said` is what its declaration says of the type."""
        if name and any(f.name == name for f in self.fields):
            self._c.fail(at, f"'{name}' is declared twice in this struct")
        if isinstance(types.element_of(ctype), types.Void):
            self._c.fail(at, f"'{name}' cannot be void")
        if isinstance(ctype, types.Struct) and not ctype.size:
            text = f"'{types.spelled(ctype)}' is not complete here; a pointer to it can be a member"
            self._c.fail(at, text)
        natural = types.align_of(ctype)
        if self._packed and _plain(self._c, types.element_of(ctype)):
            natural = 1
        given = said.layout if said else []
        if self._pack and any(one.name != "packed" for one in given):
            text = "an alignment of a member within #pragma pack: compilers differ in it"
            self._c.unsupported(at, text)
        need = alignment(self._c, given, min(natural, self._pack or natural))
        offset = 0 if self._union else -(-self.end // need) * need
        if not offset and self.taken & _at_start(self._c, ctype):
            offset = need  # because no two objects of one type have one address
        const, volatile = map(said.itself, ("const", "volatile")) if said else (False, False)
        self.fields.append(
            types.Field(name, ctype, offset, volatile, False if mutable else const or None)
        )
        if sum(types.numbers_in(f.type, False) for f in self.fields) > _MOST_MEMBERS:
            self._c.unsupported(at, f"a struct of more than {_MOST_MEMBERS:,} members")
        self.end, self.align = max(self.end, offset + types.size_of(ctype)), max(self.align, need)


def define_struct(c: Context, node: ast.StructDef, out: types.Struct | None = None) -> types.Struct:
    """Lay out a struct as a C compiler does, in `out` if it was declared before."""
    packed = any(one.name == "packed" for one in node.layout)
    layout = StructLayout(c, node.union, packed, node.pack)
    out = out or _declared(node, node.name)
    inside = Scope(c.scope)
    if node.name:
        inside.names[node.name] = TypeBinding(out)
    base = None
    if node.base is not None:
        given = resolve_type(c, node.base)
        base = c.class_of(given)
        if base is None:
            text = f"'{types.spelled(given)}' is no struct of this file: nothing can be derived from it"
            refuse = c.unsupported if isinstance(given, types.Struct) else c.fail
            refuse(node.base.at, text)
        inside.names |= base.scope.names
        if packed and (base.type.fields or base.type.align > 1):
            c.unsupported(node.base.at, "a packed struct that is derived from another")
        if base.type.fields:
            layout.place("", base.type, node.base.at)
            layout.end = base.end
        else:
            layout.align, layout.taken = base.type.align, _at_start(c, base.type)
    with c.seen_from(inside):
        for member in node.members:
            if isinstance(member, ast.Expression):
                c.expression(member)  # a static_assert
            else:
                _member(c, member, layout, inside)
    if layout.taken and base is not None:
        layout.end = max(layout.end, base.type.size)
    wanted = alignment(c, node.layout, layout.align)
    if packed and 1 < wanted < layout.align:
        text = "a packed struct with a member that is aligned more: compilers differ in it"
        c.unsupported(node.at, text)
    layout.align = max(layout.align, wanted)
    out.complete(tuple(layout.fields), layout.size, layout.align)
    methods: dict[str, list[ast.FunctionDecl]] = {}
    for method in node.methods:
        methods.setdefault(method.name, []).append(method)
    for name in node.opened if base is not None else ():
        if base is not None and name != base.name and (owner := base.having(name)) is not None:
            own = methods.setdefault(name, [])
            own += [m for m in owner.methods[name] if not any(f.alike(m) for f in own)]
    plain = node.plain and base is None and not layout.initial
    plain = plain and all(_plain(c, types.element_of(field.type)) for field in layout.fields)
    end = out.size if plain else layout.end
    made = typed.Class(out, node.name, inside, methods, layout.initial, base, end, plain)
    hidden = {name for name, hidden in node.access.items() if hidden}
    if base is not None:
        inherited = {*base.type.members(), *base.methods} if node.closed else {*base.private}
        hidden |= inherited - node.access.keys() - {*node.opened}
    made.private = () if node.friends else hidden
    c.file.classes[out] = made
    made.parts = any(c.constructs(field.type) for field in layout.fields)
    return out


def _at_start(c: Context, ctype: CType) -> set[CType]:
    """The structs that lie where a value begins: itself, its base, its first members."""
    ctype = types.element_of(ctype)
    if not isinstance(ctype, types.Struct):
        return set()
    known = c.class_of(ctype)
    parts = [f.type for f in ctype.fields if not f.offset]
    parts += [known.base.type] if known and known.base else []
    return {ctype}.union(*(_at_start(c, part) for part in parts))


def _plain(c: Context, ctype: CType) -> bool:
    known = c.class_of(ctype)
    return types.spelled(ctype) not in ("half", "half2", "dim3") if known is None else known.plain


def _member(
    c: Context, member: ast.StructDef | ast.Declaration, layout: StructLayout, inside: Scope
) -> None:
    """Enter a member of a struct: data into its layout, types and constants into its names."""
    if isinstance(member, ast.StructDef):
        if not member.name and member.enumerators is None:
            layout.place("", define_struct(c, member), member.at)
            return
        declare_type(c, member)
    data = member.variables if isinstance(member, ast.StructDef) else member
    for item in data.items if data is not None else ():
        if data is not None and "static" in data.storage:
            inside.names[item.name] = _static(c, item)
            continue
        whole = array_type(c, resolve_type(c, item.type), item.dims)
        if data is not None and "typedef" in data.storage:
            inside.names[item.name] = TypeBinding(whole)
            continue
        if item.type.reference:
            c.unsupported(item.at, "references in structs are not supported: take a pointer")
        if item.init is not None:
            layout.initial[item.name] = item.init
        mutable = data is not None and "mutable" in data.storage
        layout.place(item.name, whole, item.at, item.type, mutable)


def _static(c: Context, item: ast.Declarator) -> Number:
    if item.init is None or item.dims or not item.type.const:
        c.unsupported(item.at, "static members are supported if they are constant numbers")
    value = constants.evaluated(c, c.expression(item.init), item.init)
    ctype = value.type if item.type.base == "auto" else resolve_type(c, item.type)
    value = convert(c, value, ctype, item.at)
    if value.constant is None:
        c.unsupported(item.at, "a static member must be known at compile time")
    return Number(value)


def template_argument(
    c: Context, kind: ast.TypeName | None, given: ast.TemplateArgument, at: Position, names: Scope
) -> Given:
    """Bind a parameter: to a type if `kind` is None, to a struct template, or to a number of that type.

    `names` are the parameters before it, which its type may be made of.
    """
    if kind is None:
        if not isinstance(given, ast.TypeName):
            c.fail(at, "this template wants a type here")
        return TypeBinding(resolve_type(c, given))
    if kind.base == "template":
        known = c.scope.find(given.base) if isinstance(given, ast.TypeName) else None
        if not isinstance(known, typed.StructTemplate):
            c.fail(at, "this template wants the name of a struct template here")
        return known
    if isinstance(given, ast.TypeName):
        c.fail(given.at, "this template wants a number here")
    with c.seen_from(names):
        ctype = resolve_type(c, kind)
    if isinstance(ctype, types.FunctionPointer):
        function = convert(c, c.expression(given), ctype, given.at)
        if function.constant is None:
            c.fail(given.at, "a template argument must be a function that is known here")
        return Number(function)
    if isinstance(ctype, types.Pointer) and isinstance(given, ast.Literal) and given.type is None:
        return Number(constant(types.INT, 0, at))  # of a null pointer, which choosers take
    if not isinstance(ctype, types.Scalar) or not ctype.is_integer:
        c.unsupported(given.at, "template arguments that are neither types nor integers")
    return Number(constant(ctype, integer_constant(c, given, "a template argument", ctype), at))


def give_arguments(
    c: Context, template: ast.Template, given: TemplateArguments | None, scope: Scope, at: Position
) -> None:
    """Give the first parameters of a template these values, in `scope`."""
    for param, argument in zip(template, given or (), strict=False):
        scope.names[param.name] = template_argument(c, param.type, argument, at, scope)


def with_arguments(
    c: Context, name: str, template: ast.Template, given: TemplateArguments | None, at: Position
) -> Scope:
    """A scope in which all parameters of a template have these values, or their own."""
    scope, count = Scope(c.file.scope), len(given or ())
    if count > len(template) and not (template and template[-1].name.endswith("...")):
        c.fail(at, f"'{name}' has {len(template)} template parameters, {count} given")
    give_arguments(c, template, given, scope, at)
    give_defaults(c, name, template, scope, at)
    return scope


def give_defaults(
    c: Context, name: str, template: ast.Template, scope: Scope, at: Position
) -> None:
    """Give the parameters of a template that are not in `scope` yet their default values."""
    for param in template:
        if param.name in scope.names:
            continue
        if param.default is None:
            what = f"the template parameter '{param.name}' of '{name}'"
            c.fail(at, f"{what} is not known: write {name}<...>")
        with c.seen_from(scope):
            scope.names[param.name] = template_argument(c, param.type, param.default, at, scope)


def identity(argument: Given) -> object:
    """A key that tells a template argument from another one."""
    if isinstance(argument, typed.StructTemplate):
        return id(argument)
    return argument.type if isinstance(argument, TypeBinding) else int(argument.expr.constant)


def spelled_arguments(c: Context, arguments: Sequence[Given]) -> str:
    """Template arguments as one would write them."""
    words: list[str] = []
    for argument in arguments:
        if isinstance(argument, TypeBinding):
            words.append(types.spelled(argument.type))
        elif isinstance(argument, typed.StructTemplate):
            words.append(argument.definitions[0].name)
        elif isinstance(argument.expr.type, types.FunctionPointer):
            words.append(c.file.targets[int(argument.expr.constant) - 1].function.name)
        else:
            words.append(str(int(argument.expr.constant)))
    return ", ".join(words)


def _instance(c: Context, template: typed.StructTemplate, name: ast.TypeName) -> types.Struct:
    primary = template.definitions[0]
    assert primary.template is not None
    scope = with_arguments(c, primary.name, primary.template, name.arguments, name.at)
    scope.outer = template.around or scope.outer
    arguments = [cast(Given, scope.names[p.name]) for p in primary.template]
    key = tuple(identity(argument) for argument in arguments)
    if key not in template.instances:
        chosen = primary
        for other in template.definitions[1:]:
            matched = _matched(c, other, arguments)
            if matched is not None:
                chosen, scope = other, matched
                scope.outer = template.around or scope.outer
                if not other.template:
                    break  # meant for just these
        if chosen.declared:
            c.fail(name.at, f"'{name.base}' is only declared for these arguments")
        label = f"{primary.name}<{spelled_arguments(c, arguments)}>"
        made = template.instances[key] = _declared(chosen, label)
        try:
            with c.seen_from(scope):
                define_struct(c, chosen, made)
        except (KernelCompileError, RecursionError):
            del template.instances[key]
            if chosen.at.line < 0 < name.at.line:  # of a header: it is told where the type is named
                chosen = deepcopy(chosen)
                for part in ast.parts_of(chosen):
                    part.at = name.at
                with c.seen_from(scope):
                    define_struct(c, chosen, _declared(chosen, label))
            raise
        c.file.classes[made].template, c.file.classes[made].arguments = template, arguments
    return template.instances[key]


def _matched(c: Context, node: ast.StructDef, arguments: Sequence[Given]) -> Scope | None:
    """Bind the parameters of a specialisation, if it is for these arguments."""
    assert node.template is not None
    scope = Scope(c.file.scope)
    unknown = {p.name for p in node.template}
    for pattern, argument in zip(node.specialises or [], arguments, strict=False):
        if not deduced(c, pattern, argument, unknown, scope):
            return None
    return scope if unknown <= scope.names.keys() else None


def deduced(
    c: Context, pattern: ast.TemplateArgument, argument: Given, unknown: set[str], scope: Scope
) -> bool:
    """Hold a pattern against what is given, to find what template parameters stand for; whether it fits."""
    name = pattern.name if isinstance(pattern, ast.DeclRefExpr) else getattr(pattern, "base", "")
    if not isinstance(argument, TypeBinding) or not isinstance(pattern, ast.TypeName):
        if name in unknown:
            known = cast(Given, scope.names.setdefault(name, argument))
            return isinstance(known, type(argument)) and identity(known) == identity(argument)
        if isinstance(pattern, ast.TypeName) or not isinstance(argument, Number):
            return c.scope.find(name) is argument
        return integer_constant(c, pattern, "a template argument") == identity(argument)
    ctype = argument.type
    if pattern.function is not None and not pattern.pointers:
        wanted = pattern.function
        if not isinstance(ctype, types.FunctionPointer) or len(ctype.params) != len(wanted.params):
            return False
        patterns = [wanted.returns, *[p.type for p in wanted.params]]
        given = map(TypeBinding, [ctype.returns, *ctype.params])
        pairs = zip(patterns, given, strict=True)
        return all(deduced(c, part, kind, unknown, scope) for part, kind in pairs)
    for _ in pattern.pointers:
        if isinstance(ctype, types.ArrayType):
            ctype = types.Pointer(ctype.element, ctype.const)
        if not isinstance(ctype, types.Pointer):
            return False
        ctype = ctype.target
    if pattern.array is not None:  # T (*rows)[N]
        return deduced_array(c, pattern.array.type, pattern.array.dims, ctype, unknown, scope)
    known = c.class_of(ctype)
    if pattern.arguments is not None:  # a base of what is given may be an instance of the template
        asked = scope.names.get(pattern.base) or c.scope.find(pattern.base)
        while known is not None and known.base is not None and known.template is not asked:
            known = known.base
    template = None if known is None else known.template
    if template is not None and pattern.arguments is not None and pattern.base in unknown:
        scope.names.setdefault(pattern.base, template)
    means = scope.names.get(pattern.base) or c.scope.find(pattern.base)
    if known and pattern.arguments is not None and template is means:
        pairs = zip(pattern.arguments, known.arguments, strict=False)
        return all(deduced(c, inner, given, unknown, scope) for inner, given in pairs)
    if pattern.base in unknown and pattern.arguments is None and not pattern.nested:
        bound = scope.names.setdefault(pattern.base, TypeBinding(ctype))
        return isinstance(bound, TypeBinding) and bound.type == ctype
    with c.seen_from(Scope(c.scope)) as here:
        here.names.update(scope.names)
        plain = ast.TypeName(at=pattern.at, base=pattern.base, arguments=pattern.arguments)
        return resolve_type(c, plain) == ctype


def deduced_array(
    c: Context, element: ast.TypeName, dims: Sequence[ast.ArrayExtent], ctype: CType, unknown: set[str],
    scope: Scope,
) -> bool:  # fmt: skip
    """As `deduced`, for `T[N]`."""
    for dim in dims:
        if not isinstance(ctype, types.ArrayType):
            return False
        length = Number(constant(types.INT, ctype.length, element.at))
        if dim is not None and not deduced(c, dim, length, unknown, scope):
            return False
        ctype = ctype.element
    return deduced(c, element, TypeBinding(ctype), unknown, scope)


def array_type(
    c: Context, element: CType, dims: list[ast.Expression | None], const: bool = False
) -> CType:
    """An array with these dimensions, the outermost first; a missing one counts 0."""
    for dim in reversed(dims):
        length = 0 if dim is None else integer_constant(c, dim, "the size of an array", types.INT)
        if dim is not None and not 0 < length * types.size_of(element) <= _MOST_BYTES:
            c.fail(dim.at, f"an array of {length} elements is not possible")
        element = types.ArrayType(element, length, const)
    return element


def integer_constant(
    c: Context, node: ast.Expression, what: str, wanted: types.Scalar | None = None
) -> int:
    """Compute an integer that must be known at compile time, and may have to be of a type."""
    expr = constants.evaluated(c, c.expression(node), node)
    kind = expr.type
    if wanted and isinstance(kind, types.Scalar) and types.wants_cast(kind, wanted):
        convert(c, expr, wanted, node.at)
    if expr.constant is None:
        hint = ""
        if isinstance(node, ast.DeclRefExpr):
            hint = f": '{node.name}' is known only when the kernel runs"
        c.fail(node.at, f"{what} must be a constant{hint}")
    if not isinstance(expr.type, types.Scalar) or not expr.type.is_integer:
        c.fail(node.at, f"{what} must be an integer, not '{types.spelled(expr.type)}'")
    return int(expr.constant)
