"""The top level of a source: functions, structs, constants, templates."""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.syntax import ast
from asyncgpu_tutor.cuda_c.syntax.statements import StatementParser
from asyncgpu_tutor.cuda_c.text.lexer import Token
from asyncgpu_tutor.cuda_c.text.preprocessor import Preprocessed
from asyncgpu_tutor.cuda_c.text.source import Source
from asyncgpu_tutor.errors import KernelCompileError


def parse(source: Source, text: Preprocessed, *, heads_only: bool = False) -> ast.Unit:
    """Syntax tree of a source.

    Parameters
    ----------
    source : Source
        For messages.
    text : Preprocessed
        Its tokens.
    heads_only : bool
        Skip the bodies of functions, and whatever else at the top level cannot be read, so that a
        kernel's parameters are known even where its body is not supported.

    Raises
    ------
    KernelCompileError, UnsupportedFeatureError
        With line, column and caret.
    """
    return _Parser(source, text, heads_only).unit()


class _Parser(StatementParser):
    def __init__(self, source: Source, text: Preprocessed, heads_only: bool) -> None:
        super().__init__(source, text.tokens, text.headers)
        self.heads_only = heads_only
        self.linkage_blocks = 0
        self.result = ast.Unit()

    def unit(self) -> ast.Unit:
        while self.token.kind != "end":
            self._top_level()
        if self.linkage_blocks:
            self.fail("an extern \"C\" block is never closed: '}' is missing")
        return self.result

    def _top_level(self) -> None:
        if self.accept(";"):
            return
        if self.at("}") and self.linkage_blocks:
            self.advance()
            self.linkage_blocks -= 1
        elif self.at("extern") and self.ahead().kind == "string" and self.ahead(2).is_("{"):
            self.position += 3
            self.linkage_blocks += 1
        elif self.at("template"):
            self._template()
        elif self.at("static_assert"):
            self._skip_item()
        elif (
            self.at("class", "namespace", "union", "using", "asm", "__asm__") and not self._alias()
        ):
            if not self.heads_only:
                self.unsupported(f"'{self.token.text}' is not supported at the top level")
            self._skip_item()
        elif self.at("typedef", "using"):
            self.result.order.append(self.alias())
        elif self.at("enum"):
            self.result.order.append(self.enum())
        elif self.at_struct():
            self._struct(None)
        else:
            self._function_or_variable(None)

    def _alias(self) -> bool:
        return self.at("using") and self.ahead(2).is_("=")

    def _struct(self, template: ast.Template | None) -> None:
        if self.heads_only:
            start = self.position
            try:
                item = self.struct(template)
            except KernelCompileError:
                # Its members are skipped, because most heads do not use it.
                self.position = start
                self.type_names[0].add(self._name_of_struct())
                self._skip_item()
                return
        else:
            item = self.struct(template)
        self.result.order.append(item)

    def _name_of_struct(self) -> str:
        """What stands in front of the members, behind an alignment and in front of a base class."""
        here = self.tokens[self.position :]
        end = next(k for k, token in enumerate(here) if token.is_("{", ":"))
        return here[end - 1].text

    def _template(self) -> None:
        at = self.advance().at
        self.need("<")
        params: list[ast.TemplateParam] = []
        names: set[str] = set()
        self.type_names.append(names)
        while not self.at(">", ">>"):
            params.append(self._template_param(names))
            if not self.accept(","):
                break
        self.close_angle()
        if not params:
            self.unsupported("explicit specialisations are not supported", at)
        template = ast.Template(at=at, params=params)
        if self.at("struct"):
            # The name belongs to the file, not to the scope of the parameters.
            self.type_names[0].add(self.ahead().text)
            self._struct(template)
        elif self.at("class", "union", "using"):
            self.unsupported(f"a template of '{self.token.text}' is not supported")
        else:
            self._function_or_variable(template)
        self.type_names.pop()

    def _template_param(self, names: set[str]) -> ast.TemplateParam:
        at = self.token.at
        default: ast.TypeName | ast.Expression | None = None
        if self.accept("typename", "class"):
            if self.at("..."):
                self.unsupported("parameter packs are not supported")
            name = self.identifier("the name of a template parameter").text
            names.add(name)
            if self.accept("="):
                default = self.abstract_type()
            return ast.TemplateParam(at=at, name=name, type=None, default=default)
        _, base = self.specifiers()
        wanted = self.pointers(base)
        name = self.identifier("the name of a template parameter").text
        if self.accept("="):
            default = self.template_value()
        return ast.TemplateParam(at=at, name=name, type=wanted, default=default)

    def _function_or_variable(self, template: ast.Template | None) -> None:
        start = self.token
        storage, base = self.specifiers()
        wanted = self.pointers(base)
        if self.at("operator"):
            self.unsupported("operator functions are not supported")
        if self.at("(") or self.at("::"):
            self.unsupported("pointers to functions and member functions are not supported")
        name = self.identifier("the name of a function or variable")
        if self.at("("):
            self._function(storage, wanted, name, template)
            return
        if template is not None:
            self.unsupported("templates of variables are not supported", name.at)
        first = self.declarator(wanted, name)
        item = self.declaration(storage, base, start, first)
        self._check_global(storage, item, start)
        self.result.order.append(item)

    def _check_global(self, storage: set[str], item: ast.Declaration, start: Token) -> None:
        placed = storage & {"__constant__", "__device__", "__shared__", "__managed__"}
        if not placed and not all(d.type.const for d in item.items):
            self.fail(
                f"'{item.items[0].name}' is a host variable, which device code cannot use: "
                "write __device__, __constant__ or const",
                start.at,
            )

    def _function(
        self, storage: set[str], returns: ast.TypeName, name: Token, template: ast.Template | None
    ) -> None:
        kernel = "__global__" in storage
        if template is not None:
            self.function_templates.add(name.text)
        self.need("(")
        params: list[ast.Param] = []
        while not self.at(")"):
            if self.at("void") and self.ahead().is_(")"):
                self.advance()
                break
            if self.at("..."):
                self.unsupported("variable arguments are not supported")
            params.append(self._param())
            if not self.accept(","):
                break
        self.need(")")
        if kernel and (returns.base != "void" or returns.pointers):
            self.fail("a __global__ function must return void", returns.at)
        if not storage & {"__global__", "__device__", "constexpr"}:
            self.fail(
                f"'{name.text}' is a host function: write __global__ for a kernel, __device__ for "
                "what a kernel calls",
                name.at,
            )
        while self.at("noexcept", "__launch_bounds__"):
            if self.accept("noexcept"):
                continue
            self.skip_attribute()
        body = None
        if not self.accept(";"):
            if not self.at("{"):
                self.fail(f"expected '{{' or ';' before '{self.token.text}'")
            if self.heads_only:
                self._skip_braces()
            else:
                body = self.block()
        elif self.heads_only:
            return
        function = ast.Function(
            at=name.at,
            name=name.text,
            returns=returns,
            params=params,
            body=body,
            kernel=kernel,
            template=template,
        )
        self.result.functions.append(function)

    def _param(self) -> ast.Param:
        _, base = self.specifiers()
        wanted = self.pointers(base)
        if self.at("("):
            self.unsupported("pointers to arrays and to functions are not supported")
        at = self.token.at
        name = ""
        if not self.at(",", ")", "[", "="):
            token = self.identifier("the name of a parameter")
            at, name = token.at, token.text
        dims: list[ast.Expression | None] = []
        if self.at("["):
            while self.accept("["):
                dims.append(None if self.at("]") else self.expression())
                self.need("]")
        default = self.assignment() if self.accept("=") else None
        return ast.Param(at=at, name=name, type=wanted, dims=dims, default=default)

    # -- skipping what is not wanted

    def _skip_braces(self) -> None:
        start = self.need("{")
        depth = 1
        while depth:
            token = self.advance()
            if token.kind == "end":
                self.fail("this block is never closed: '}' is missing", start.at)
            depth += token.is_("{") - token.is_("}")

    def _skip_item(self) -> None:
        """Everything up to the semicolon or the closing brace of one top-level item."""
        while self.token.kind != "end":
            if self.at("{"):
                self._skip_braces()
                self.accept(";")
                return
            if self.advance().is_(";"):
                return
