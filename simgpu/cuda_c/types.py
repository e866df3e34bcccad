"""The types of CUDA C, with the sizes and alignments that a 64-bit Linux host and the GPU share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number."""

    name: str  # as C spells it
    dtype: np.dtype[Any]  # how NumPy stores it
    kind: str  # "bool", "int", "uint" or "float"
    rank: int  # place in the usual arithmetic conversions; the higher one wins

    @cached_property
    def size(self) -> int:
        """Bytes."""
        return self.dtype.itemsize

    @cached_property
    def make(self) -> Any:
        """Constructor of one NumPy scalar of this type."""
        return self.dtype.type

    @property
    def is_float(self) -> bool:
        """Tell whether it has a fraction."""
        return self.kind == "float"

    @cached_property
    def is_integer(self) -> bool:
        """Tell whether it is an integer in C's sense, which `bool` is too."""
        return self.kind != "float"

    @cached_property
    def highest(self) -> int:
        """Greatest value of an integer type."""
        return 1 if self.kind == "bool" else int(np.iinfo(self.dtype).max)

    @cached_property
    def lowest(self) -> int:
        """Least value of an integer type."""
        return 0 if self.kind == "bool" else int(np.iinfo(self.dtype).min)


@dataclass(frozen=True)
class Enumeration(Scalar):
    """A type of its own, whose values are numbers of type `base`; `key` tells two of one name apart."""

    base: Scalar
    scoped: bool  # `enum class`, which becomes no number by itself
    key: int


@dataclass(frozen=True)
class FunctionPointer(Scalar):
    """The address of a device function; `overloaded` is the name of several functions that it may be."""

    returns: CType
    params: tuple[CType, ...]
    overloaded: str = ""


@dataclass(frozen=True)
class Void:
    """No value."""


@dataclass(frozen=True)
class Field:
    """One member of a struct; `offset` in bytes."""

    name: str
    type: CType
    offset: int
    volatile: bool = False
    const: bool | None = None  # whatever the object is; None if it is as const as that


@dataclass(frozen=True, eq=False)
class Struct:
    """A struct, or one of CUDA's vector types.

    Two structs are the same type only if they are the same definition, so `key` tells them apart. A field
    without a name is a struct or union whose members count as this one's. A size of 0 says that the struct
    is declared and not defined yet: a pointer to it may be a member of its own, and is completed with it.
    """

    name: str
    fields: tuple[Field, ...]
    size: int
    align: int
    vector: bool = False
    key: int = 0
    union: bool = False

    def __hash__(self) -> int:
        return hash((self.name, self.key))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Struct) or (self.name, self.key) != (other.name, other.key):
            return False
        mine = [(f.name, f.offset, _shape(f.type)) for f in self.fields]
        return mine == [(f.name, f.offset, _shape(f.type)) for f in other.fields]

    def complete(self, fields: tuple[Field, ...], size: int, align: int) -> None:
        """Define what was declared."""
        for name, value in (("fields", fields), ("size", size), ("align", align)):
            object.__setattr__(self, name, value)
        self.__dict__.pop("leaves", None)

    @cached_property
    def leaves(self) -> list[tuple[Scalar | Pointer, int]]:
        """What `leaves` finds in it."""
        if self.union:
            return leaves(max((f.type for f in self.fields), key=size_of))
        return [(s, f.offset + o) for f in self.fields for s, o in leaves(f.type)]

    @cached_property
    def packed(self) -> bool:
        """Tell whether a member may lie where its type does not elsewhere."""
        parts = [(size_of(leaf), offset) for leaf, offset in leaves(self)]
        return any(offset % size or self.align % size for size, offset in parts)

    def member(self, name: str) -> Field | None:
        """The field of this name, if there is one."""
        inside: Field | None = None
        for one in self.fields:
            if one.name == name:
                return one
            if inside is None and not one.name and isinstance(one.type, Struct):
                inner = one.type.member(name)
                inside = inner and replace(inner, offset=one.offset + inner.offset)
        return inside

    def members(self) -> list[str]:
        """The names that `member` knows."""
        names: list[str] = []
        for one in self.fields:
            inner = None if one.name else one.type
            names += inner.members() if isinstance(inner, Struct) else [one.name]
        return names


def _shape(ctype: CType) -> object:
    """A type, but of a struct behind a pointer only its definition: that may lead back to where one began."""
    if isinstance(ctype, Pointer):
        return "*", ctype.const, ctype.volatile, _shape(ctype.target)
    return (ctype.name, ctype.key) if isinstance(ctype, Struct) else ctype


@dataclass(frozen=True)
class Pointer:
    """An address of `target`; `const` and `volatile` are those of what it points to."""

    target: CType
    const: bool = False
    volatile: bool = False
    restrict: bool = field(default=False, compare=False)  # no other pointer leads there


@dataclass(frozen=True)
class ArrayType:
    """`length` elements in a row; 0 for `extern __shared__ x[]`, whose length the launch gives."""

    element: CType
    length: int
    const: bool = False
    volatile: bool = False


CType: TypeAlias = Scalar | Void | Struct | Pointer | ArrayType

VOID = Void()


def _scalar(name: str, dtype: type[np.generic], kind: str, rank: int) -> Scalar:
    return Scalar(name, np.dtype(dtype), kind, rank)


BOOL = _scalar("bool", np.bool_, "bool", 0)
CHAR = _scalar("char", np.int8, "int", 1)
SCHAR = _scalar("signed char", np.int8, "int", 1)
UCHAR = _scalar("unsigned char", np.uint8, "uint", 2)
SHORT = _scalar("short", np.int16, "int", 3)
USHORT = _scalar("unsigned short", np.uint16, "uint", 4)
INT = _scalar("int", np.int32, "int", 5)
UINT = _scalar("unsigned int", np.uint32, "uint", 6)
LONG = _scalar("long", np.int64, "int", 7)
ULONG = _scalar("unsigned long", np.uint64, "uint", 8)
LLONG = _scalar("long long", np.int64, "int", 9)
ULLONG = _scalar("unsigned long long", np.uint64, "uint", 10)
HALF = _scalar("half", np.float16, "float", 11)
FLOAT = _scalar("float", np.float32, "float", 12)
DOUBLE = _scalar("double", np.float64, "float", 13)
NULLPTR = Pointer(VOID)

SCALARS: dict[str, Scalar] = {
    s.name: s
    for s in (BOOL, CHAR, SCHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, LLONG, ULLONG, HALF,
              FLOAT, DOUBLE)
}  # fmt: skip


def _vectors() -> dict[str, Struct]:
    # Alignments: CUDA C++ Programming Guide, table "Alignment Requirements" of built-in vectors.
    bases = {
        "char": CHAR, "uchar": UCHAR, "short": SHORT, "ushort": USHORT, "int": INT, "uint": UINT,
        "long": LONG, "ulong": ULONG, "longlong": LLONG, "ulonglong": ULLONG, "float": FLOAT,
        "double": DOUBLE,
    }  # fmt: skip
    kinds = [(f"{stem}{n}", base, n, 0) for stem, base in bases.items() for n in (1, 2, 3, 4)]
    out: dict[str, Struct] = {}
    for name, base, n, wanted in [*kinds, ("dim3", UINT, 3, 4), ("half2", HALF, 2, 4)]:
        fields = tuple(Field(c, base, i * base.size) for i, c in enumerate("xyzw"[:n]))
        align = wanted or (base.size if n in (1, 3) else min(16, n * base.size))
        out[name] = Struct(name, fields, n * base.size, align, vector=True)
    return out


VECTORS = _vectors()


def function_pointer(
    returns: CType, params: tuple[CType, ...], references: tuple[bool, ...]
) -> FunctionPointer:
    """The type `returns (*)(params)`."""
    pairs = zip(params, references, strict=True)
    words = [spelled(ctype) + ("&" if reference else "") for ctype, reference in pairs]
    name = f"{spelled(returns)} (*)({', '.join(words)})"
    return FunctionPointer(name, ULLONG.dtype, ULLONG.kind, ULLONG.rank, returns, params)


def overloaded_function(name: str) -> FunctionPointer:
    """Make the type of the address of an overloaded function, before it is known which one is meant."""
    return FunctionPointer(name, ULLONG.dtype, ULLONG.kind, ULLONG.rank, VOID, (), name)


def size_of(ctype: CType) -> int:
    """Bytes that one value takes."""
    match ctype:
        case Scalar() | Struct():
            return ctype.size
        case Pointer():
            return 8
        case ArrayType():
            return ctype.length * size_of(ctype.element)
        case Void():
            return 1  # so that arithmetic on void* counts bytes, as compilers have it


def align_of(ctype: CType) -> int:
    """Bytes that an address must be a multiple of."""
    ctype = element_of(ctype)
    return ctype.align if isinstance(ctype, Struct) else size_of(ctype)


def element_of(ctype: CType) -> Scalar | Void | Struct | Pointer:
    """The element of an array, however many dimensions it has; any other type is its own."""
    while isinstance(ctype, ArrayType):
        ctype = ctype.element
    return ctype


def leaves(ctype: CType) -> list[tuple[Scalar | Pointer, int]]:
    """The numbers and pointers in a value, each with its offset; of a union, those of its largest member."""
    match ctype:
        case Struct():
            return ctype.leaves
        case ArrayType():
            step = size_of(ctype.element)
            inner = leaves(ctype.element)
            return [(s, i * step + o) for i in range(ctype.length) for s, o in inner]
        case Scalar() | Pointer():
            return [(ctype, 0)]
        case Void():
            return []


def kinds(ctype: CType) -> set[Scalar | Pointer]:
    """The types of the numbers and pointers in a value, where their places do not matter."""
    ctype = element_of(ctype)
    if isinstance(ctype, Struct):
        return {kind for f in ctype.fields for kind in kinds(f.type)}
    return set() if isinstance(ctype, Void) else {ctype}


def numbers_in(ctype: CType, every: bool = True) -> int:
    """Count the numbers and pointers in a value, of arrays those in `every` element or in one."""
    if isinstance(ctype, ArrayType):
        return numbers_in(ctype.element, every) * (ctype.length if every else 1)
    return sum(numbers_in(f.type, every) for f in ctype.fields) if isinstance(ctype, Struct) else 1


def needs_memory(ctype: CType) -> bool:
    """Tell whether a value needs memory, as a struct does that holds an array or a union, at any depth."""
    if isinstance(ctype, Struct):
        parts = [field.type for field in ctype.fields]
        return ctype.union or any(isinstance(p, ArrayType) or needs_memory(p) for p in parts)
    return False


def spelled(ctype: CType) -> str:
    """A type as one would write it."""
    match ctype:
        case Scalar() | Struct():
            return ctype.name
        case Void():
            return "void"
        case Pointer():
            inner, words = (
                element_of(ctype.target),
                " const" * ctype.const + " volatile" * ctype.volatile,
            )
            front = (
                (spelled(inner), words)
                if isinstance(inner, Pointer)
                else (words, " ", spelled(inner))
            )
            behind = spelled(ctype.target).removeprefix(spelled(inner))
            return "".join(front).strip() + (f" (*){behind}" if behind else "*")
        case ArrayType():
            inner, dims = ctype.element, f"[{ctype.length or ''}]"
            while isinstance(inner, ArrayType):
                dims += f"[{inner.length}]"
                inner = inner.element
            return f"{spelled(inner)}{dims}"


def unqualified(ctype: CType) -> CType:
    """A type without what is const or volatile in it."""
    if isinstance(ctype, ArrayType):
        return ArrayType(unqualified(ctype.element), ctype.length)
    return Pointer(unqualified(ctype.target)) if isinstance(ctype, Pointer) else ctype


def qualifies(source: CType, target: CType) -> bool:
    """Tell whether a pointer becomes another one that only adds const or volatile.

    A level further in may add some only where those around it are const in the target, because an `int**`
    as a `const int**` could be given the address of a constant (C++20, [conv.qual]). An array is as const as
    its elements (CWG 330).
    """
    fits, still = unqualified(source) == unqualified(target), True
    while isinstance(source, Pointer) and isinstance(target, Pointer):
        (const, volatile), (stays, is_volatile) = _qualifiers(source), _qualifiers(target)
        same = (const, volatile) == (stays, is_volatile)
        fits &= (still or same) and const <= stays and volatile <= is_volatile
        still &= stays
        source, target = element_of(source.target), element_of(target.target)
    return fits


def _qualifiers(pointer: Pointer) -> tuple[bool, bool]:
    const, volatile, inner = pointer.const, pointer.volatile, pointer.target
    while isinstance(inner, ArrayType):
        const, volatile, inner = const or inner.const, volatile or inner.volatile, inner.element
    return const, volatile


def enumeration(name: str, base: Scalar, scoped: bool, key: int) -> Enumeration:
    """The type of an enumeration."""
    return Enumeration(name, base.dtype, base.kind, base.rank, base, scoped, key)


def number_type(scalar: Scalar) -> Scalar:
    """The type of a number, or of those that an enumeration is made of."""
    return scalar.base if isinstance(scalar, Enumeration) else scalar


def wants_cast(source: Scalar, target: Scalar) -> bool:
    """Tell whether a number becomes one of another type by a cast alone, as enumerations are."""
    scoped = isinstance(source, Enumeration) and source.scoped
    return source != target and (scoped or isinstance(target, Enumeration))


def promoted(scalar: Scalar) -> Scalar:
    """Integer promotion: whatever is smaller than `int` becomes `int`."""
    return max(INT, number_type(scalar), key=lambda kind: kind.rank)


def usual_type(a: Scalar, b: Scalar) -> Scalar:
    """The usual arithmetic conversions: the type in which `a op b` is computed."""
    a, b = promoted(a), promoted(b)
    high, low = (a, b) if a.rank >= b.rank else (b, a)
    if high is LLONG and low is ULONG:
        return ULLONG  # neither can hold the other: the unsigned twin of the signed one
    return high
