"""What the names of types mean, and what constant expressions in them amount to."""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.compile.context import Context
from asyncgpu_tutor.cuda_c.compile.typed import TypeBinding
from asyncgpu_tutor.cuda_c.syntax.ast import Expression, Name, Param, StructDef, TypeName
from asyncgpu_tutor.cuda_c.types import (
    SCALARS,
    VECTORS,
    VOID,
    Array,
    CType,
    Field,
    Pointer,
    Scalar,
    Struct,
    align_of,
    size_of,
    spelled,
)


def resolve(c: Context, name: TypeName) -> CType:
    """The type that a type name means here; a reference is that of what it refers to.

    Raises
    ------
    KernelCompileError
        An unknown name.
    """
    if name.base == "void":
        ctype: CType = VOID
    elif name.base in SCALARS:
        ctype = SCALARS[name.base]
    else:
        found = c.scope.find(name.base)
        if name.arguments is not None:
            c.unsupported(name.at, "templates of structs are not supported")
        if isinstance(found, TypeBinding):
            ctype = found.type
        elif name.base in VECTORS:
            ctype = VECTORS[name.base]
        else:
            c.fail(name.at, f"unknown type name '{name.base}'")
    const, volatile = name.const, name.volatile
    for qualifiers in name.pointers:
        ctype = Pointer(ctype, const, volatile)
        const, volatile = "const" in qualifiers, "volatile" in qualifiers
    return ctype


def top_const(name: TypeName) -> bool:
    """Whether a variable of this type is itself constant."""
    return "const" in name.pointers[-1] if name.pointers else name.const


def top_volatile(name: TypeName) -> bool:
    """Whether a variable of this type is itself volatile."""
    return "volatile" in name.pointers[-1] if name.pointers else name.volatile


def param_type(c: Context, param: Param) -> CType:
    """The type of a parameter; an array parameter is a pointer."""
    ctype = resolve(c, param.type)
    if not param.dims:
        return ctype
    inner = array_type(c, ctype, list(param.dims[1:]))
    return Pointer(inner, top_const(param.type), top_volatile(param.type))


def define_struct(c: Context, node: StructDef) -> Struct:
    """Lay out a struct as a C compiler does: each member at a multiple of its alignment."""
    fields: list[Field] = []
    offset, align = 0, 1
    for declaration in node.members:
        for item in declaration.items:
            if item.type.reference:
                c.unsupported(item.at, "references in structs are not supported")
            if item.init is not None:
                c.unsupported(item.at, "default values of members are not supported")
            ctype = array_type(c, resolve(c, item.type), item.dims)
            if any(f.name == item.name for f in fields):
                c.fail(item.at, f"'{item.name}' is declared twice in this struct")
            need = align_of(ctype)
            offset = -(-offset // need) * need
            fields.append(Field(item.name, ctype, offset))
            offset += size_of(ctype)
            align = max(align, need)
    if node.align is not None:
        wanted = integer_constant(c, node.align, "an alignment")
        if wanted < 1 or wanted & (wanted - 1):
            c.fail(node.align.at, f"an alignment of {wanted} bytes is no power of two")
        if wanted < align:
            c.unsupported(node.align.at, f"an alignment below that of the members ({align})")
        align = wanted
    size = max(1, -(-offset // align) * align)
    return Struct(node.name, tuple(fields), size, align, key=id(node))


def array_type(
    c: Context, element: CType, dims: list[Expression | None], const: bool = False
) -> CType:
    """An array with these dimensions, the outermost first; a missing one counts 0."""
    for dim in reversed(dims):
        length = 0 if dim is None else integer_constant(c, dim, "the size of an array")
        if dim is not None and length <= 0:
            c.fail(dim.at, f"an array of {length} elements is not possible")
        element = Array(element, length, const)
    return element


def integer_constant(c: Context, node: Expression, what: str) -> int:
    """Value of a constant expression.

    Raises
    ------
    KernelCompileError
        If it is not an integer known at compile time.
    """
    expr = c.expression(node)
    if expr.constant is None:
        hint = ""
        if isinstance(node, Name):
            hint = f": '{node.name}' is known only when the kernel runs"
        c.fail(node.at, f"{what} must be a constant{hint}")
    if not isinstance(expr.type, Scalar) or not expr.type.is_integer:
        c.fail(node.at, f"{what} must be an integer, not '{spelled(expr.type)}'")
    return int(expr.constant)
