"""Names of the elements of a memory for messages, as in the source: `tile[1][7]` or `p[16].w`."""

from __future__ import annotations

from simgpu.cuda_c.types import Array, CType, Pointer, Scalar, Struct, size_of


class Named:
    """A memory that knows how its variables were declared."""

    nbytes: int  # that a pointer may reach; of one block, if shared
    # The type of the variable or parameter of each name by which it is known.
    types: dict[str, CType]

    def _type(self, name: str) -> CType | None:
        """The type of what a name stands for; a pointer stands for an array of its targets."""
        ctype = self.types.get(name)
        return Array(ctype.target, 0) if isinstance(ctype, Pointer) else ctype

    def spelled(self, name: str, byte: int, size: int) -> str:
        """An element of `size` bytes; by its number alone if the type has no such element there."""
        text, ctype, at = self._follow(name, byte, 0)
        if isinstance(ctype, Scalar | Pointer) and size_of(ctype) == size and not at:
            return text
        return f"'{name}'[{byte // size}]"

    def row(self, name: str, byte: int, nbytes: int) -> str:
        """An array of `nbytes` within a variable; nothing if there is none."""
        text, ctype, at = self._follow(name, byte, nbytes)
        return "" if isinstance(ctype, Scalar) or at else text

    def _follow(self, name: str, byte: int, least: int) -> tuple[str, CType | None, int]:
        """Find the outermost part at a byte that is not larger than `least`, and the bytes before it."""
        ctype, at, text = self._type(name), byte, f"'{name}'"
        while isinstance(ctype, Array | Struct):
            if least and isinstance(ctype, Array) and size_of(ctype) == least:
                break
            if isinstance(ctype, Struct):
                field = [f for f in ctype.fields if f.offset <= at][-1]
                ctype, at, text = field.type, at - field.offset, f"{text}.{field.name}"
            else:
                number, at = divmod(at, max(1, size_of(ctype.element)))
                ctype, text = ctype.element, f"{text}[{number}]"
        return text, ctype, at

    def extent(self, name: str, size: int) -> str:
        """How far it goes: `it has 8 elements, valid are 0 to 7`."""
        ctype = self._type(name)
        if isinstance(ctype, Array) and isinstance(ctype.element, Array):
            dims = ""
            while isinstance(ctype, Array):
                dims, ctype = f"{dims}[{ctype.length or ''}]", ctype.element
            return f"it is declared {dims}"
        if isinstance(ctype, Array) and isinstance(ctype.element, Struct):
            size = ctype.element.size
        bound = self.nbytes // size
        valid = f"valid are 0 to {bound - 1}" if bound > 0 else "it is empty"
        return f"it has {bound} element{'s' if bound != 1 else ''}, {valid}"
