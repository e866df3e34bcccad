"""Parse what surrounds a declared name: brackets behind it, and the type that brackets in front make.

`float (*f)(int)` is a pointer to a function, `float (*row)[32]` a pointer to an array, `float (&tile)[32]` a
reference to one; without a name they are types by themselves.
"""

from __future__ import annotations

from dataclasses import replace

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.expressions import ExpressionParser
from simgpu.cuda_c.text.lexer import Token


class DeclaratorParser(ExpressionParser):
    """Reads names with their types, and parameters."""

    def at_brackets(self) -> bool:
        """Tell whether a name in brackets comes next, as in `(*f)`, or brackets without a name, `(*)`."""
        return self.at("(") and self.ahead().is_("*")

    def in_brackets(
        self, wanted: ast.TypeName
    ) -> tuple[ast.TypeName, Token | None, list[ast.ArrayExtent]]:
        """Parse from `(*` on: the whole type, the name if there is one, and the brackets behind the name."""
        self.need("(")
        outer = self.pointers(ast.TypeName(at=self.token.at, base=""))
        name, dims = None, list[ast.ArrayExtent]()
        if not self.at(")"):
            name = self.identifier()
            dims = self.dimensions()
        self.need(")")
        if self.at("("):
            self.type_names.append({})
            outer.function = ast.FunctionType(at=outer.at, returns=wanted, params=self.parameters())
            self.type_names.pop()
            own = outer.pointers.pop(0)  # a function's name is its address already
            outer.const, outer.volatile = "const" in own, "volatile" in own
        elif self.at("["):
            outer.array = ast.Declarator(at=outer.at, name="", type=wanted, dims=self.dimensions())
            outer.const = "const" in wanted.pointers[-1] if wanted.pointers else wanted.const
        else:
            pointers = wanted.pointers + outer.pointers
            outer = replace(wanted, at=outer.at, pointers=pointers, reference=outer.reference)
        return outer, name, dims

    def abstract_type(self) -> ast.TypeName:
        result = super().abstract_type()
        # `(float(*p) + 1)` begins with a cast of *p: no type has a name in it.
        if self.at_brackets() and self.ahead(2).is_(")", "*", "const", "volatile"):
            result, name, dims = self.in_brackets(result)
            if name is not None or dims:
                self.fail("a type without a name is expected here")
        return result

    def packless_type(self) -> ast.TypeName:
        """Parse the type of a parameter, of a function or a template."""
        wanted = super().abstract_type()
        if self.at("..."):
            self.unsupported("parameter packs are not supported")
        return wanted

    def dimensions(self) -> list[ast.ArrayExtent]:
        """Parse the sizes in brackets behind a name; None for an empty pair."""
        dims: list[ast.ArrayExtent] = []
        while self.accept("["):
            dims.append(None if self.at("]") else self.expression())
            self.need("]")
        return dims

    def parameters(self) -> list[ast.Param]:
        self.need("(")
        if self.at("void") and self.ahead().is_(")"):
            self.advance()
        params = self.several(self._param, ")")
        self.need(")")
        return params

    def _param(self) -> ast.Param:
        if self.at("..."):
            self.unsupported("variable arguments are not supported")
        self.harmless(self.attributes(words=False))
        wanted = self.packless_type()
        at, name, dims = self.token.at, "", list[ast.ArrayExtent]()
        reference_to_array = self.at("(") and self.ahead().is_("&")
        if reference_to_array:
            self.position += 2
            wanted.reference = True
        if self.at_brackets():
            wanted, token, dims = self.in_brackets(wanted)
            if token is not None:
                at, name = token.at, token.text
        elif not self.at(",", ")", "[", "="):
            token = self.identifier("the name of a parameter")
            at, name = token.at, token.text
        if name:
            self.name_variable(name)
        if reference_to_array:
            self.need(")")
        self.harmless(self.attributes())
        dims = dims or self.dimensions()
        self.harmless(self.attributes())
        default = self.assignment() if self.accept("=") else None
        return ast.Param(at=at, name=name, type=wanted, dims=dims, default=default)
