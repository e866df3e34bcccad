"""Functions, and structs with what they are made of: members, constants, functions, types."""

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.ast import CONVERSION
from simgpu.cuda_c.syntax.statements import StatementParser
from simgpu.cuda_c.text.lexer import Token
from simgpu.cuda_c.text.published import ATTRIBUTES
from simgpu.cuda_c.text.source import Position
from simgpu.errors import KernelCompileError, UnsupportedFeatureError

_WORDS = ("struct", "class", "union", "enum")
_BEHIND_HEAD = ("noexcept", "const", "override", "final", "volatile")


class StructParser(StatementParser):
    """Reads functions and structs."""

    heads_only = False  # skip the bodies of functions
    friends: list[ast.FunctionDecl]  # with a body, of the struct that was read last

    def function(
        self, storage: set[str], returns: ast.TypeName, name: Token, template: ast.Template | None,
        struct: str | None = None,
    ) -> ast.FunctionDecl:  # fmt: skip
        """A function behind its name; `struct` is what it is a member of."""
        if template is not None:
            self.function_templates.add(name.text)
        specialises = self.template_arguments() if self.at("<") else None
        self.type_names.append({})
        params = self.parameters()
        out = ast.FunctionDecl(
            at=name.at, name=name.text, returns=returns, params=params, body=None,
            kernel="__global__" in storage, template=template, specialises=specialises,
            static="static" in storage, constexpr="constexpr" in storage,
            explicit="explicit" in storage,
        )  # fmt: skip
        given = [*returns.layout, *self.attributes()]
        out.bounds = next((one for one in given if one.name == "launch_bounds"), None)
        self.harmless([one for one in given if one.name != "launch_bounds"])
        while self.at(*_BEHIND_HEAD):
            out.const |= self.advance().text == "const"
            self.harmless(self.attributes())
        if self.accept("->"):
            out.returns = self.abstract_type()
        if struct is not None and self.accept(":"):
            out.initial = self.several(self._initial)
        if self.accept("="):
            if self.advance().text == "default":
                out.body, out.defaulted = ast.Block(at=name.at, body=[]), True
            self.need(";")
        elif not self.accept(";"):
            self._body_of(out)
        self.type_names.pop()
        return out

    def closure(self) -> ast.Expression:
        start = self.need("[")
        alone = self.at("]")
        default, captures = "", list[tuple[str, ast.Expression | None]]()
        more = not alone
        while more:
            refers = self.accept("&") is not None
            if self.at("this", "*"):
                text = "lambdas that capture 'this' are not supported: copy the members first"
                self.unsupported(text)
            if self.accept("="):
                default = "="
            elif refers and self.at(",", "]"):
                default = "&"
            else:
                name = self.identifier("a variable to capture")
                value: ast.Expression | None = ast.DeclRefExpr(at=name.at, name=name.text)
                if self.accept("="):
                    value = self.assignment()
                captures.append((name.text, None if refers else value))
            more = self.accept(",") is not None
        self.need("]")
        words = self.storage_words()
        self.type_names.append({})
        params = self.parameters() if self.at("(") else []
        auto = ast.TypeName(at=start.at, base="auto")
        # Without captures it needs no object, and has an address.
        out = ast.FunctionDecl(
            at=start.at, name="operator()", returns=auto, params=params, body=None, const=True,
            static=alone,
        )  # fmt: skip
        while self.at("mutable", "noexcept", "__device__", "__host__", *words):
            out.const &= self.advance().text != "mutable"
        if self.accept("->"):
            out.returns = self.abstract_type()
        enclosing, self.enclosing = self.enclosing, []
        out.body = self.block()
        self.enclosing = enclosing
        self.type_names.pop()
        made = list[ast.TemplateParam]()
        for k, param in enumerate(params):
            if param.type.base == "auto":
                param.type.base = f"auto {k}"
                made.append(ast.TemplateParam(at=param.at, name=param.type.base, type=None))
        out.template = made or None
        return ast.Lambda(at=start.at, default=default, captures=captures, function=out)

    def _initial(self) -> tuple[str, ast.Braces]:
        name = self.identifier("the name of a member")
        if self.at("<"):  # of a base, whose arguments are known
            self.template_arguments()
        if self.at("{"):
            return name.text, self.braces()
        return name.text, ast.Braces(at=name.at, items=self.call_arguments())

    def _body_of(self, out: ast.FunctionDecl) -> None:
        if not self.at("{"):
            self.fail(f"expected '{{' or ';' before '{self.token.text}'")
        start = self.position
        if not self.heads_only:
            scopes, enclosing = len(self.type_names), len(self.enclosing)
            try:
                out.body = self.block()
                return
            except KernelCompileError as error:
                plain = out.kernel and out.template is None  # a template is read where it is used
                if plain and not isinstance(error, UnsupportedFeatureError):
                    raise
                # Kernels of the file may do without it.
                out.refusal = error
                del self.type_names[scopes:], self.enclosing[enclosing:]
                self.position = start
                if not self._closes():
                    raise
        out.body = ast.Block(at=out.at, body=[])
        self.skip_braces()

    def _closes(self) -> bool:
        """Tell whether the brace at hand is closed before the next item of the top level begins."""
        depth = 0
        for token in self.tokens[self.position :]:
            depth += token.is_("{") - token.is_("}")
            if not depth or token.is_("__global__"):
                return not depth
        return False

    def skip_braces(self) -> None:
        self.skip_brackets("{", "}", "this block is never closed: '}' is missing")

    def at_struct(self) -> bool:
        if not self.at(*_WORDS):
            return False
        here = 1 + (self.at("enum") and self.ahead().is_("class", "struct"))
        while self.ahead(here).is_(*ATTRIBUTES, "["):
            here, depth = here + (self.ahead(here).kind == "name") + 1, 1
            while depth and self.ahead(here).kind != "end":
                depth += self.ahead(here).is_("(", "[") - self.ahead(here).is_(")", "]")
                here += 1
        after, then = self.ahead(here), self.ahead(here + 1)
        named = after.kind == "name" and then.is_("{", ":", ";", "<", "final")
        return after.is_("{", ":") or (named and not (then.is_("<") and not self.specialising))

    specialising = False  # behind `template <...>`, where a name may have arguments

    def struct(self, template: ast.Template | None, typedef: bool = False) -> ast.StructDef:
        start = self.advance()
        if start.text == "enum":
            return self._enum(start, typedef)
        layout = self.attributes()
        name = self.advance().text if self.token.kind == "name" else ""
        out = ast.StructDef(
            at=start.at, name=name, layout=layout, template=template, union=start.text == "union",
            pack=self.pack_at(start.at), hidden=start.text == "class",
        )  # fmt: skip
        if name:
            self.type_names[-1 if template is None else -2][name] = True
            if template is not None:
                self.struct_templates.add(name)
        if template is not None and self.at("<"):
            out.specialises = self.template_arguments()
        if self.accept(";"):
            out.declared = True
            return out
        self.accept("final")
        if self.accept(":"):
            access = self.accept("public", "private", "protected")
            out.closed = out.hidden if access is None else access.text != "public"
            if self.at("virtual"):
                self.unsupported("virtual base classes are not supported")
            out.base = self.specifiers()[1]
            self.opened.add(out.base.base)  # which the struct knows by that name, wherever it is
            if self.at(","):
                self.unsupported("several base classes are not supported: make the others members")
        self.need("{")
        inherited = () if out.base is None else self.nested_types.get(out.base.base, ())
        self.type_names.append(dict.fromkeys(inherited, True))
        nested = self.nested_types.setdefault(name, set())
        while not self.at("}"):
            self._member(out)
            nested |= {n for n, is_type in self.type_names[-1].items() if is_type}
        self.type_names.pop()
        if self.pack_at(self.need("}").at) != out.pack:
            self.unsupported("a change of #pragma pack within a struct is not supported", start.at)
        layout += self.attributes()
        return self._ended(out, typedef)

    packs: tuple[tuple[int, int], ...] = ()

    def pack_at(self, at: Position) -> int:
        """What `#pragma pack` says at a place, or 0."""
        return next((most for line, most in reversed(self.packs) if line < at.line), 0)

    def _ended(self, out: ast.StructDef, typedef: bool) -> ast.StructDef:
        """Parse the names behind the closing brace."""
        if typedef:
            out.name = out.name or (self.token.text if self.token.kind == "name" else _unnamed(out))
            names = self.aliases_of(ast.TypeName(at=out.at, base=out.name))
            items = [item for item in names if item.name != out.name]
            if items:
                out.variables = ast.Declaration(at=out.at, storage={"typedef"}, items=items)
        elif self.token.kind == "name" or self.at("*"):
            out.name = out.name or _unnamed(out)
            self.name_type(out.name)
            base = ast.TypeName(at=out.at, base=out.name)
            out.variables = self.declaration(set(), base, self.token)
            return out
        self.need(";", " behind this struct")
        return out

    def _member(self, out: ast.StructDef) -> None:
        self.harmless(self.attributes(words=False))
        if self.accept(";"):
            return
        if access := self.accept("public", "private", "protected"):
            out.hidden = access.text != "public"
            self.need(":")
        elif self.at("static_assert"):
            out.members.append(self.static_assert())
        elif self.at("typedef", "using"):
            item = self.alias()
            if isinstance(item, ast.Declaration | ast.StructDef):
                out.members.append(item)
            else:
                out.opened.append(self.tokens[self.position - 2].text)
        elif self.at_struct():
            out.members.append(self.struct(None))
        elif self.at("template"):
            template, specialising = self.template_head(), self.specialising
            self.specialising = True
            if self.at_struct():
                out.members.append(self.struct(template))
            else:
                self._function_or_data(out, template)
            self.specialising = specialising
            self.type_names.pop()
        else:
            self._function_or_data(out, None)

    def static_assert(self) -> ast.Expression:
        at = self.token.at
        try:
            out = self.expression()
        except KernelCompileError:
            text = "this static_assert cannot be checked: let it say sizeof and constants, or leave it out"
            self.unsupported(text, at)
        self.need(";")
        return out

    def _friend(self, templated: bool) -> None:
        """Parse a `friend`: all may see private members here, and a body makes it a function of the file."""
        start = self.position
        while not self.at(";", "{"):
            self.advance()
        if self.accept(";"):
            return
        if templated:
            text = "a friend function in a struct template is not supported: write it behind the struct"
            self.unsupported(text)
        self.position = start
        storage, base = self.specifiers()
        returns = self.pointers(base)
        name = self.operator_name() or self.identifier()
        self.friends.append(self.function(storage, returns, name, None))

    def _function_or_data(self, out: ast.StructDef, template: ast.Template | None) -> None:
        token = self.token
        storage = self.storage_words()
        if self.accept("friend"):
            out.friends = True
            self._friend(out.template is not None or template is not None)
            return
        if self.at("virtual"):
            self.unsupported("virtual functions are not supported")
        if self.accept("~"):
            name = self.identifier()
            whole = Token("name", f"~{name.text}", name.at)
            gone = self.function(storage, _void(name), whole, None)
            out.plain &= self._defaulted()
            if "__device__" in storage and gone.body is not None and gone.body.body:
                self.unsupported("destructors that do something are not supported", name.at)
            return
        if self.at(out.name) and self.ahead().is_("("):
            name = self.advance()
            made = self.function(storage, _void(name), name, template, out.name)
            out.plain &= self._defaulted()
            if len(made.params) == 1 and made.params[0].type.base == out.name:
                if "__device__" in storage:
                    self._copying(made)  # values are copied anyway
            else:
                _note_access(out, name.text)
                out.methods.append(made)
            return
        conversion = self.operator_name()
        if conversion is not None:  # operator float() const
            wanted = self.pointers(self.specifiers()[1])
            conversion = conversion._replace(text=f"{CONVERSION}{out.name}.{len(out.methods)}")
            out.methods.append(self.function(storage, wanted, conversion, template, out.name))
            return
        more, base = self.specifiers()
        storage |= more
        base.const |= "constexpr" in storage
        wanted = self.pointers(base)
        self._whole()
        name = None if self.at_brackets() else self.operator_name() or self.identifier()
        if name is not None and self.at("("):
            _note_access(out, name.text)
            out.methods.append(self.function(storage, wanted, name, template, out.name))
            out.plain &= name.text != "operator=" or self._defaulted()
            return
        out.plain &= not out.hidden or bool(storage & {"static", "constexpr"})
        first = self.declarator(wanted, name)
        self._whole()
        out.members.append(data := self.declaration(storage, base, token, first))
        for item in data.items:
            _note_access(out, item.name)

    def _defaulted(self) -> bool:
        """Tell whether the function that has just been read ends in `= default;` or `= delete;`."""
        return self.tokens[self.position - 2].is_("default", "delete")

    def _whole(self) -> None:
        if self.at(":"):
            self.unsupported("bit-fields are not supported: take a whole number, shifts and masks")

    def _copying(self, made: ast.FunctionDecl) -> None:
        """Refuse a copy constructor that does anything but copy."""
        more = made.body is not None and bool(made.body.body)
        for name, given in made.initial:
            source = given.items[0] if len(given.items) == 1 else None
            more |= not isinstance(source, ast.Member) or source.name != name
        if more:
            self.unsupported("copy constructors that do more than copy are not supported", made.at)

    def template_head(self) -> ast.Template:
        """`template <...>`; its names are types until the caller takes them off the stack."""
        self.advance()
        self.need("<")
        self.type_names.append({})
        params = self.several(self._template_param, ">", ">>")
        self.close_angle()
        return params

    def _template_param(self) -> ast.TemplateParam:
        at = self.token.at
        default: ast.TypeName | ast.Expression | None = None
        kind: ast.TypeName | None = None
        if self.at("template"):  # `template <typename> class Op`: it stands for a struct template
            kind = ast.TypeName(at=at, base="template")
            self.template_head()
            self.type_names.pop()
        names_type = self.at("typename") and self.ahead(2).is_("<", "::")  # of what is a value
        if not names_type and self.accept("typename", "class"):
            pack = self.accept("...") is not None
            name = "" if self.at(",", ">", "=") else self.identifier("a template parameter").text
            if name:
                self.name_type(name)
                self.struct_templates |= {name} if kind is not None else set()
            if self.accept("="):
                default = self.abstract_type()
            if pack:  # it can be left out, and where it would be used it is refused
                name, default = f"{name}...", ast.TypeName(at=at, base="void")
            return ast.TemplateParam(at=at, name=name, type=kind, default=default)
        wanted, token = self.packless_type(), None
        if self.at_brackets():
            wanted, token, _ = self.in_brackets(wanted)
        elif not self.at(",", ">", "="):
            token = self.identifier("a template parameter")
        name = "" if token is None else token.text
        if self.accept("="):
            default = self.template_value()
        return ast.TemplateParam(at=at, name=name, type=wanted, default=default)

    def _enum(self, start: Token, typedef: bool) -> ast.StructDef:
        """An enumeration: a struct of constants. Those of a plain one are known without its name, too."""
        scoped = self.accept("class", "struct") is not None
        self.harmless(self.attributes())
        name = ""
        if self.token.kind == "name":
            name = self.identifier("the name of this enumeration").text
            self.name_type(name)
        fixed = ast.TypeName(at=start.at, base="int") if scoped else None
        if self.accept(":"):
            fixed = self.specifiers()[1]
        values = ast.Declaration(at=start.at, storage={"scoped"} if scoped else set(), items=[])
        out = ast.StructDef(at=start.at, name=name, enumerators=values, base=fixed)
        if name and fixed is not None and self.accept(";"):
            out.declared = True
            return out
        self.need("{")
        values.items = self.several(self._enumerator, "}")
        self.need("}")
        self.harmless(self.attributes())
        return self._ended(out, typedef)

    def _enumerator(self) -> ast.Declarator:
        word = self.identifier()
        self.harmless(self.attributes())
        init = self.conditional() if self.accept("=") else None
        kind = ast.TypeName(at=word.at, base="auto")
        return ast.Declarator(at=word.at, name=word.text, type=kind, init=init)


def _note_access(out: ast.StructDef, name: str) -> None:
    """Note who may use a member. Of several functions of one name, all count as public if one is."""
    out.access[name] = out.hidden and out.access.get(name, True)


def _unnamed(struct: ast.StructDef) -> str:
    return f"struct of line {struct.at.line}, column {struct.at.column}"


def _void(name: Token) -> ast.TypeName:
    return ast.TypeName(at=name.at, base="void")
