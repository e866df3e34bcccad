"""The top level of a source: functions, structs, constants, templates."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice, pairwise

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.ast import CONVERSION
from simgpu.cuda_c.syntax.structs import StructParser
from simgpu.cuda_c.text.lexer import Token
from simgpu.cuda_c.text.preprocessor import Preprocessed, prelude
from simgpu.cuda_c.text.published import ATTRIBUTES
from simgpu.cuda_c.text.source import Source, nesting
from simgpu.errors import KernelCompileError, UnsupportedFeatureError


def parse(source: Source, text: Preprocessed, *, heads_only: bool = False) -> ast.Unit:
    """Syntax tree of a source.

    With `heads_only` the bodies of functions are skipped, and whatever else at the top level cannot be
    read, so that a kernel's parameters are known even where its body is not supported. Raises
    `KernelCompileError` or `UnsupportedFeatureError`, with line, column and caret.
    """
    before = _prelude(text.chooses)
    parser = _Parser(source, text, heads_only)
    parser.type_names[0] |= before.type_names[0]
    parser.struct_templates |= before.struct_templates
    parser.shorthands |= before.shorthands
    parser.nested_types |= before.nested_types
    with nesting(source):
        unit = parser.unit()
    for call in ast.parts_of([f.body for f in unit.functions] if parser.aliases else None):
        if isinstance(call, ast.CallExpr):
            call.namespace = parser.aliases.get(call.namespace, call.namespace)
    own = {function.name for function in unit.functions if function.at.line > 0}
    types = {node.name for node in unit.order if isinstance(node, ast.StructDef)}
    unit.functions += [f for f in before.result.functions if f.name not in own]
    theirs = before.result.order
    unit.order[:0] = [n for n in theirs if not (isinstance(n, ast.StructDef) and n.name in types)]
    return unit


@cache
def _prelude(chooses: bool) -> _Parser:
    """Parse the prelude of every source; a name that the file defines as well is the one of the file."""
    parser = _Parser(Source(""), Preprocessed(prelude(chooses).tokens), heads_only=False)
    parser.unit()
    return parser


def _named(nodes: Sequence[ast.SyntaxNode], name: str) -> list[ast.StructDef]:
    return [node for node in nodes if isinstance(node, ast.StructDef) and node.name == name]


def _called_alike(declared: ast.FunctionDecl, given: ast.FunctionDecl) -> bool:
    """Tell whether two have one name; conversions are told by what they make."""
    if given.name != CONVERSION:
        return declared.name == given.name
    mine, theirs = given.returns, declared.returns
    same = (mine.base, len(mine.pointers)) == (theirs.base, len(theirs.pointers))
    return declared.name.startswith(CONVERSION) and same


class _Parser(StructParser):
    def __init__(self, source: Source, text: Preprocessed, heads_only: bool) -> None:
        super().__init__(source, text.tokens, text.headers)
        self.packs = text.packs
        self.heads_only = heads_only
        self.open_braces: list[str] = []  # of namespaces, and of extern "C", which has no name
        self.result = ast.Unit()

    def unit(self) -> ast.Unit:
        while self.token.kind != "end":
            types, done = len(self.type_names[0]), len(self.result.order)
            functions = len(self.result.functions)
            self._top_level()
            names = islice(reversed(self.type_names[0]), len(self.type_names[0]) - types)
            found = [(name, True) for name in names]
            found += [(function.name, False) for function in self.result.functions[functions:]]
            for node in self.result.order[done:]:
                whole = isinstance(node, ast.StructDef)
                found += [(node.name, True)] if whole else []
                typed = "typedef" in getattr(node, "storage", ())
                items = getattr(node.enumerators if whole else node, "items", ())
                found += [(item.name, typed) for item in items]
            for name, is_type in found:
                homes = self.homes.setdefault(name, {})
                if homes.setdefault(self.around or (), is_type) != is_type:
                    text = "is a type, and a variable or a function: give one of them another name"
                    self.unsupported(f"'{name}' {text}", self.tokens[self.position - 1].at)
        if self.open_braces:
            self.fail("a namespace or extern \"C\" block is never closed: '}' is missing")
        self.result.order[:0] = self.declared
        return self.result

    def _top_level(self) -> None:
        self.harmless(self.attributes(words=False))
        if self.accept(";"):
            return
        if self.at("}") and self.open_braces:
            self.advance()
            self.open_braces.pop()
            self.around = self._open_namespaces()
        elif self.at("extern") and self.ahead().kind == "string" and self.ahead(2).is_("{"):
            self.position += 3
            self.open_braces.append("")
        elif self.at("namespace") or (self.at("inline") and self.ahead().is_("namespace")):
            self._namespace()
        elif self.at("template") and not self.ahead().is_("<"):
            self._skip_item()  # an instance that the host asks for
        elif self.at("template"):
            start, scopes = self.position, len(self.type_names)
            try:
                template = self.template_head()
            except KernelCompileError as error:
                self._refuse(start, scopes, error)
                return
            self.specialising = True
            self._item(template)
            self.specialising = False
            del self.type_names[scopes:]
        elif self.at("static_assert"):
            self.result.order.append(self.static_assert())
        elif self.at("typedef", "using"):
            start, scopes = self.position, len(self.type_names)
            try:
                self.result.order.append(self.alias())
            except KernelCompileError as error:  # such as a type of the host's
                self._refuse(start, scopes, error)
        else:
            self._item(None)

    def _namespace(self) -> None:
        """Into a namespace; what is in it is known without its name."""
        inline = self.accept("inline")
        self.position += 1  # not `advance`, which passes over a namespace that is known already
        names: list[str] = []
        while (word := self.tokens[self.position]).kind == "name" or word.is_("::"):
            names += [word.text] if word.kind == "name" else []
            self.position += 1
        self.namespaces.update(names)
        if self.at("="):
            self.namespace_alias(names[0])
            return
        self.need("{")
        self.open_braces.append("::".join(names))
        self.inlined.update(names if inline else ())
        self.around = self._open_namespaces()

    def _open_namespaces(self, *, all_of_them: bool = False) -> tuple[str, ...]:
        words = (name for names in self.open_braces for name in names.split("::") if name)
        return tuple(name for name in words if all_of_them or name not in self.inlined)

    def _item(self, template: ast.Template | None) -> None:
        functions, nodes = len(self.result.functions), len(self.result.order)
        self._read_item(template)
        around = self._open_namespaces(all_of_them=True)
        for function in self.result.functions[functions:]:
            function.namespace = (*around, *function.namespace)
            for before in self.result.functions[:functions]:
                if before.namespace == function.namespace and function.defines(before):
                    function.take_defaults(before)
        for node in self.result.order[nodes:]:
            self.result.namespaces[id(node)] = around

    def _read_item(self, template: ast.Template | None) -> None:
        start, scopes = self.position, len(self.type_names)
        if template is not None and self.accept("using"):
            name = self.identifier("the name of a type")
            self.need("=")
            of = self.abstract_type()
            item = ast.Declarator(at=name.at, name="type", type=of, dims=self.dimensions())
            self.need(";")
            self._shorthand(template, name, "typedef", item)
            return
        if not self.at_struct_behind_words():
            try:
                self._function_or_variable(template)
            except KernelCompileError as error:  # perhaps a head that only a GPU understands
                self._refuse(start, scopes, error)
            return
        refuse = self.unsupported if self.at("static") else self.fail
        try:
            self.friends = []
            node = self.stored_struct(template)
            self.result.order.append(node)
            self.result.functions += self.friends
        except KernelCompileError as error:
            # Its members are skipped, because most of the file may do without it.
            del self.type_names[scopes:]
            self.position = start
            here = self.tokens[start:]
            end = next(k for k, token in enumerate(here) if token.is_("{", ":"))
            self._refuse_type(here[end - 1], error)
            self._skip_item()
            return
        if not node.name and node.enumerators is None:
            refuse("outside a function this needs a name, or a variable behind it", node.at)

    def _refuse_type(self, name: Token, error: KernelCompileError) -> None:
        self.type_names[0][name.text] = True
        self.result.order.append(ast.RefusedType(at=name.at, name=name.text, error=error))

    def _refuse(self, start: int, scopes: int, error: KernelCompileError) -> None:
        """Pass over an item: a function or a template, which is refused to those who use it."""
        del self.type_names[scopes:]
        self.position = start
        self._skip_item()
        here = self.tokens[start : self.position]
        if here[0].is_("typedef", "using"):
            ends = (";", "[", "__attribute__") if here[0].is_("typedef") else ("=", "[")
            named = [t for t, after in pairwise(here) if t.kind == "name" and after.is_(*ends)]
            if not named:
                raise error
            self._refuse_type(named[0], error)
            return
        for before, word, name, after in zip(here, here[1:], here[2:], here[3:], strict=False):
            if before.is_(">") and word.is_("struct", "class") and after.is_("{", ";", ":", "<"):
                self._refuse_type(name, error)
                return
        words = [t for t, after in pairwise(here[:99]) if t.kind == "name" and after.is_("(")]
        names = [t for t in words if t.text not in ATTRIBUTES]
        marks = here[: here.index(names[0])] if names else []
        kernel = any(t.is_("__global__") for t in marks)
        known = any(t.is_("__device__", "__forceinline__", "constexpr") for t in marks)
        # What nobody could name is refused at once, and so is a kernel that no GPU takes.
        gpu_takes_it = isinstance(error, UnsupportedFeatureError)
        if not names or not (gpu_takes_it or known) or (kernel and not gpu_takes_it):
            raise error
        if here[0].is_("template"):
            self.function_templates.add(names[0].text)
        at = names[0].at
        gone = ast.FunctionDecl(
            at=at, name=names[0].text, returns=ast.TypeName(at=at, base="void"), params=[],
            body=ast.Block(at=at, body=[]), kernel=kernel, refusal=error,
        )  # fmt: skip
        self.result.functions.append(gone)

    def _function_or_variable(self, template: ast.Template | None) -> None:
        start = self.token
        storage, base = self.specifiers()
        wanted = self.pointers(base)
        if self.at_brackets():
            first = self.declarator(wanted)
            self.result.order.append(self.declaration(storage, base, start, first))
            return
        if self.at("::") or (self.is_type_name(self.token.text) and self._is_owner()):
            self._method(storage, wanted, template)
            return
        # The names of a namespace that stands in front of its own are known in it.
        within = self._namespaces_here()
        outside = self.at("operator") or bool(within)
        name = self.operator_name() or self.identifier("the name of a function or variable")
        a_value = base.const and not (self.ahead().is_(")", "...") or self.at_type(1))
        if (self.at("(") and not a_value) or (
            template is not None and self.at("<") and name.text not in self.shorthands
        ):
            with self._all_names(outside):
                self._function(storage, wanted, name, template, within)
            return
        if template is not None:
            given = self.template_arguments() if self.at("<") else None
            if not self.at("="):
                text = "a template of variables is supported if they have a constant value"
                self.unsupported(text)
            self.advance()
            wanted.const, value = True, self.conditional()
            self.need(";")
            item = ast.Declarator(at=name.at, name="value", type=wanted, init=value)
            self._shorthand(template, name, "static", item, given)
            return
        first = self.declarator(wanted, name)
        self.result.order.append(self.declaration(storage, base, start, first))

    def _shorthand(
        self, template: ast.Template, name: Token, storage: str, item: ast.Declarator,
        specialises: list[ast.TemplateArgument] | None = None,
    ) -> None:  # fmt: skip
        """Make a struct template of a template that names a type or a number, which is its only member."""
        member = ast.Declaration(at=name.at, storage={storage}, items=[item])
        self.shorthands[name.text] = item.name
        self.struct_templates.add(name.text)
        self.type_names[-2][name.text] = True
        node = ast.StructDef(
            at=name.at, name=name.text, members=[member], template=template, specialises=specialises
        )
        self.result.order.append(node)

    def _namespaces_here(self) -> tuple[str, ...]:
        """The namespaces that stand in front of the name at hand, outermost first."""
        start = self.position
        while self.tokens[start - 1].is_("::") and self.tokens[start - 2].text in self.namespaces:
            start -= 2
        return tuple(token.text for token in self.tokens[start : self.position : 2])

    def _function(
        self, storage: set[str], returns: ast.TypeName, name: Token, template: ast.Template | None,
        within: tuple[str, ...],
    ) -> None:  # fmt: skip
        if template is None:
            self.functions_here.add(name.text)
        function = self.function(storage, returns, name, template)
        function.namespace = within
        function.c_linkage = 'extern "C"' in storage or "" in self.open_braces
        if function.kernel and (returns.base != "void" or returns.pointers):
            self.fail("a __global__ function must return void", returns.at)
        if function.body is not None or function.kernel or not self.heads_only:
            self.result.functions.append(function)

    def _is_owner(self) -> bool:
        """Tell whether `Type::` or `Type<...>::` comes here, in front of the name of a member function."""
        here = 1
        if self.ahead().is_("<"):
            while not self.ahead(here).is_(">", "(", ";", "{"):
                here += 1
            here += 1
        return self.ahead(here).is_("::")

    def _method(
        self, storage: set[str], returns: ast.TypeName, template: ast.Template | None
    ) -> None:
        """The body of a member function that was declared in its struct."""
        constructor = self.at("::")  # what was read as its type is its owner
        path = [returns.base, *returns.nested] if constructor else [self.advance().text]
        if self.at("<"):
            self.template_arguments()
        self.need("::")
        while self.token.kind == "name" and self.ahead().is_("::"):  # of a struct in another
            path.append(self.advance().text)
            self.advance()
        owner = path[-1]
        name = self.operator_name() or self.identifier("the name of a member function")
        if name.text == CONVERSION:
            returns = self.pointers(self.specifiers()[1])
        elif constructor and name.text != owner:
            text = (
                f"'{name.text}' is not the constructor of '{owner}': write the type that it returns"
            )
            self.fail(text, name.at)
        with self._all_names(True):
            given = self.function(storage, returns, name, None, owner)
        structs = _named(self.result.order, path[0])
        if template and structs and structs[0].template:
            ast.rename(
                given, {a.name: b.name for a, b in zip(template, structs[0].template, strict=False)}
            )
        for step in path[1:]:
            structs = _named([member for node in structs for member in node.members], step)
        count, methods = len(given.params), [m for node in structs for m in node.methods]
        methods = [m for m in methods if len(m.params) == count and _called_alike(m, given)]
        # A parameter may have another name of its type.
        for method in sorted(methods, key=given.defines, reverse=True):
            if method.body is None:
                given.take_defaults(method)
                method.params, method.body = given.params, given.body
                method.initial, method.refusal = given.initial, given.refusal
                return
        self.fail(f"'{owner}' declares no such member function '{name.text}'", name.at)

    @contextmanager
    def _all_names(self, known: bool) -> Generator[None]:
        """Take all names as they are: the head says in which namespace this is."""
        around = self.around
        self.around = None if known else around
        try:
            yield
        finally:
            self.around = around

    def _skip_item(self) -> None:
        """Everything up to the semicolon or the closing brace of one top-level item."""
        while self.token.kind != "end":
            if self.at("{"):
                self.skip_braces()
                self.accept(";")
                return
            if self.advance().is_(";"):
                return
