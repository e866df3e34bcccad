"""Expressions, by precedence climbing over C's operators, and what surrounds a declared name.

`float (*f)(int)` is a pointer to a function, `float (*row)[32]` a pointer to an array, `float (&tile)[32]` a
reference to one; without a name they are types by themselves.
"""

from dataclasses import replace
from typing import Any

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.ast import CONVERSION
from simgpu.cuda_c.syntax.tokens_and_types import TypeParser
from simgpu.cuda_c.text.condition import PRECEDENCE
from simgpu.cuda_c.text.lexer import Token, parse_char, parse_number, parse_string
from simgpu.cuda_c.types import BOOL, CHAR

# Modules that people who know Python reach for, and what a message tells them to write instead.
PYTHON = dict.fromkeys(
    ("np", "numpy"),
    "a kernel is written for one element, with C's operators, fmaxf(), sqrtf() and such",
) | {"math": "its functions are there without a prefix, as in sqrtf(x)"}

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
_CONSTANTS = {"true": (1, BOOL), "false": (0, BOOL), "nullptr": (0, None), "NULL": (0, None)}
_CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
_REFUSED = {
    "new": "'new' is not supported: allocate from the host",
    "delete": "'delete' is not supported",
    "dynamic_cast": "'dynamic_cast' is not supported",
    "throw": "exceptions are not supported",
}


class ExpressionParser(TypeParser):
    """Reads expressions, names with their types, and parameters."""

    def expression(self) -> ast.Expression:
        """Anything, commas included."""
        left = self.assignment()
        while self.at(","):
            at = self.advance().at
            left = ast.Comma(at=at, first=left, second=self.assignment())
        return left

    def assignment(self) -> ast.Expression:
        """Anything but a comma."""
        left = self.conditional()
        if self.token.kind == "op" and self.token.text in _ASSIGNMENTS:
            token = self.advance()
            value = self.initialiser()
            return ast.AssignExpr(at=token.at, op=token.text[:-1], target=left, value=value)
        return left

    def conditional(self) -> ast.Expression:
        """Anything but a comma or an assignment."""
        test = self.binary(1)
        if not self.at("?"):
            return test
        at = self.advance().at
        yes = self.expression()
        self.need(":")
        return ast.Conditional(at=at, test=test, yes=yes, no=self.assignment())

    def template_value(self) -> ast.Expression:
        return self.binary(PRECEDENCE["<<"])  # not a comparison, because a '>' closes the list

    def binary(self, level: int) -> ast.Expression:
        left = self.unary()
        while self.token.kind == "op" and PRECEDENCE.get(self.token.text, 0) >= level:
            token = self.advance()
            right = self.binary(PRECEDENCE[token.text] + 1)
            left = ast.Binary(at=token.at, op=token.text, left=left, right=right)
        if self.at("<<<"):
            self.unsupported("a kernel that launches kernels is not supported")
        return left

    def unary(self) -> ast.Expression:
        token = self.token
        if token.kind == "op" and token.text in ("-", "+", "!", "~", "*", "&"):
            self.advance()
            return ast.Unary(at=token.at, op=token.text, operand=self.unary())
        if self.at("++", "--"):
            self.advance()
            return ast.Increment(at=token.at, op=token.text[0], operand=self.unary(), postfix=False)
        if self.at("sizeof", "alignof"):
            return self._sizeof()
        wanted = self._cast() if self.at("(") and self.at_type(1) else None
        if wanted is not None:
            return ast.Cast(at=token.at, type=wanted, operand=self.unary())
        return self.postfix()

    def _cast(self) -> ast.TypeName | None:
        """The type of a cast; None if an expression in brackets begins with a type, as in (int(a) << 2)."""
        start = self.position
        self.advance()
        wanted = self.abstract_type()
        if not self.accept(")"):
            self.position = start
            return None
        if self.at("{"):
            self.unsupported("compound literals are not supported")
        return wanted

    def _sizeof(self) -> ast.Expression:
        word = self.advance()
        if self.at("(") and self.at_type(1):
            self.advance()
            operand: ast.TypeName | ast.Expression = self.abstract_type()
            if self.at("["):
                self.unsupported(f"{word.text} of an array type is not supported: use a typedef")
            self.need(")")
        else:
            operand = self.unary()
        align = word.text == "alignof"
        if align and not isinstance(operand, ast.TypeName):
            self.unsupported("alignof takes a type here, not a value", word.at)
        return ast.SizeOf(at=word.at, operand=operand, align=align)

    def postfix(self) -> ast.Expression:
        left = self.primary()
        while True:
            token = self.token
            if self.accept("["):
                index = self.expression()
                self.need("]")
                left = ast.Index(at=token.at, base=left, index=index)
            elif self.at(".", "->"):
                self.advance()
                self.accept("template")
                owner = None
                if self.is_type_name(self.token.text) and self.ahead().is_("::"):  # d.Base::f()
                    owner = self.specifiers()[1]
                    self.need("::")
                name = self.operator_name() or self.identifier("the name of a member")
                base = left if token.text == "." else ast.Unary(at=token.at, op="*", operand=left)
                if self.at("(") and isinstance(left, ast.DeclRefExpr) and left.name in PYTHON:
                    self.fail(f"there is no '{left.name}' in CUDA C: {PYTHON[left.name]}", left.at)
                templates = self.explicit_arguments(name.text)
                if self.at("("):
                    left = self._call(name, templates, object=base, owner=owner)
                else:
                    left = ast.Member(at=name.at, base=base, name=name.text, owner=owner)
            elif self.at("("):
                given = self.call_arguments()
                left = ast.CallExpr(at=token.at, name="operator()", arguments=given, object=left)
            elif self.at("++", "--"):
                self.advance()
                left = ast.Increment(at=token.at, op=token.text[0], operand=left, postfix=True)
            else:
                return left

    def primary(self) -> ast.Expression:
        token = self.token
        if token.kind == "number":
            value, kind = parse_number(self.source, self.advance())
            return ast.Literal(at=token.at, value=value, type=kind)
        if token.kind == "char":
            value = parse_char(self.source, self.advance())
            return ast.Literal(at=token.at, value=value, type=CHAR)
        if token.kind == "string":
            text = ""
            while self.token.kind == "string":
                text += parse_string(self.source, self.advance())
            return ast.Text(at=token.at, value=text)
        if self.at("("):
            return self.in_parentheses()
        if self.at("["):
            return self.closure()
        if token.kind == "name":
            return self._named(token)
        self.fail(f"expected an expression before '{token.text}'")

    def closure(self) -> ast.Expression:
        """A lambda, where there may be statements."""
        self.fail("expected an expression before '['")

    def _named(self, token: Token) -> ast.Expression:
        name = token.text
        if name in _REFUSED:
            self.unsupported(_REFUSED[name])
        if name in _CONSTANTS:
            self.advance()
            value, kind = _CONSTANTS[name]
            return ast.Literal(at=token.at, value=value, type=kind)
        if name == "this":
            self.advance()
            return ast.DeclRefExpr(at=token.at, name=name)
        if name in _CASTS:
            self.advance()
            self.need("<")
            wanted = self.abstract_type()
            self.close_angle()
            operand = self.in_parentheses()
            return ast.Cast(at=token.at, type=wanted, operand=operand, style=name)
        # `hash(x)` is no `std::hash`, where a function of the file has that name.
        called = (
            name in self.functions_here and name in self.struct_templates and self.ahead().is_("(")
        )
        if (self.at_type() and not called) or self.shorthands.get(name) == "value":
            return self._construct(token)
        self.refuse_gpu_only(token)
        namespace, away = self.namespace_here() or self.using.get(name, ""), self.away(name)
        word = self.operator_name() or self.identifier("an expression")
        name = word.text
        if self.at("::"):
            self.fail(f"'{name}' is neither a type nor a namespace of this file", token.at)
        templates = self.explicit_arguments(name)
        # `max<int>(...)` and `min<int>(...)` take a type in brackets.
        if templates is None and self.at("<") and name in ("max", "min") and self.at_type(1):
            templates = self.template_arguments()
        if self.at("("):
            return self._call(word, templates, namespace=namespace, away=away)
        return ast.DeclRefExpr(at=token.at, name=name, templates=templates, away=away)

    def _call(
        self, name: Token, templates: list[ast.TemplateArgument] | None, **of: Any
    ) -> ast.CallExpr:
        given = self.call_arguments()
        return ast.CallExpr(at=name.at, name=name.text, arguments=given, templates=templates, **of)

    def _construct(self, token: Token) -> ast.Expression:
        _, wanted = self.specifiers()
        if self.shorthands.get(token.text) == "value" and wanted.arguments is not None:
            return ast.Qualified(at=token.at, owner=wanted, name="value")
        if self.accept("::"):
            name = self.identifier("the name of a member")
            templates = self.explicit_arguments(name.text)
            if not self.at("("):
                return ast.Qualified(at=name.at, owner=wanted, name=name.text)
            return self._call(name, templates, owner=wanted)
        if self.at("("):
            arguments = self.call_arguments()
            if len(arguments) == 1:
                return ast.Cast(at=token.at, type=wanted, operand=arguments[0])
            return ast.Braces(at=token.at, items=arguments, type=wanted)
        if self.at("{"):
            braces = self.braces()
            braces.type = wanted
            return braces
        self.fail(f"expected an expression before the type '{token.text}'", token.at)

    def operator_name(self) -> Token | None:
        """`operator+` and its like, as one word; `CONVERSION` in front of a type."""
        start = self.accept("operator")
        if start is None:
            return None
        if self.at_type():
            return Token("name", CONVERSION, start.at)
        sign = self.advance().text
        if sign in ("(", "["):
            sign += self.advance().text
        return Token("name", f"operator{sign}", start.at)

    def in_parentheses(self) -> ast.Expression:
        self.need("(")
        inner = self.expression()
        self.need(")")
        return inner

    def call_arguments(self) -> list[ast.Expression]:
        self.need("(")
        arguments = self.several(self.initialiser, ")")
        self.need(")")
        return arguments

    def braces(self) -> ast.Braces:
        at = self.need("{").at
        names: list[str] = []

        def item() -> ast.Expression:
            if self.accept("."):
                names.append(self.identifier("the name of a member").text)
                self.need("=")
            return self.initialiser()

        items = self.several(item, "}")
        self.need("}")
        if names and len(names) < len(items):
            self.fail("a list in braces has names for all of its values, or for none", at)
        return ast.Braces(at=at, items=items, names=names)

    def initialiser(self) -> ast.Expression:
        """A value, or a list of them in braces."""
        return self.braces() if self.at("{") else self.assignment()

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
        while self.at("[") and not self.ahead().is_("["):  # which opens an attribute
            self.advance()
            dims.append(None if self.at("]") else self.expression())
            self.need("]")
        return dims

    def parameters(self) -> list[ast.Param]:
        self.need("(")
        if self.at("void") and self.ahead().is_(")"):
            self.advance()
        params = self.several(self._param, ")")
        for k, param in enumerate(params):
            if param.name and any(other.name == param.name for other in params[:k]):
                self.fail(f"two parameters are called '{param.name}'", param.at)
        self.need(")")
        return params

    def _param(self) -> ast.Param:
        if self.at("..."):
            self.unsupported("variable arguments are not supported")
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
