"""Statements and local declarations."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from simgpu.cuda_c.syntax import assembly, ast
from simgpu.cuda_c.syntax.expressions import ExpressionParser
from simgpu.cuda_c.text.lexer import Token
from simgpu.cuda_c.text.published import ATTRIBUTES

_REFUSED = {
    "goto": "'goto' is not supported",
    "try": "exceptions are not supported",
    "template": "a template inside a function is not supported",
    "case": "a case label outside its switch's own block",
    "default": "a case label outside its switch's own block",
}


class StatementParser(ExpressionParser):
    """Reads statements."""

    def block(self) -> ast.Block:
        start = self.need("{")
        body: list[ast.Statement] = []
        self.type_names.append({})
        using, opened = dict(self.using), set(self.opened)
        while not self.at("}"):
            if self.token.kind == "end":
                self.fail("this block is never closed: '}' is missing", start.at)
            body.append(self.statement())
        self.type_names.pop()
        self.using, self.opened = using, opened
        self.advance()
        return ast.Block(at=start.at, body=body)

    def statement(self) -> ast.Statement:
        self.harmless(self.attributes(words=False))
        token, start = self.token, self.position
        if self.at("__attribute__"):  # of a fallthrough, unless a declaration follows
            self.attributes()
            if not self.at(";"):
                self.position = start
        if self.at("{"):
            return self.block()
        if self.accept(";"):
            return ast.Block(at=token.at, body=[])
        if token.kind == "name":
            if token.text in _READERS:
                return _READERS[token.text](self)
            if token.text in assembly.ASSEMBLY_WORDS:
                return assembly.assembly(self)
            if token.text in ("case", "default") and "switch" not in self.enclosing:
                self.fail(f"'{token.text}' outside of a switch")
            if token.text in _REFUSED:
                self.unsupported(_REFUSED[token.text])
            if token.text == "else":
                self.fail("'else' without 'if'")
            if self.ahead().is_(":") and not self.ahead(2).is_(":"):
                self.unsupported("labels and 'goto' are not supported")
        return self._simple()

    def _simple(self) -> ast.Statement:
        token = self.token
        if self.at_struct_behind_words():
            return self.stored_struct(None)
        if self.at_type():
            start = self.position
            storage, base = self.specifiers()
            bracketed, inside = self.at("(") and self.ahead().is_("*", "&"), self.position
            if bracketed:  # unless a member follows: `atomic_ref<int>(*x).load();`
                self.skip_brackets("(", ")", "this '(' is never closed")
                bracketed, self.position = not self.at("."), inside
            if self.at("(") and self.ahead(2).is_(")") and self.ahead(3).is_("="):  # `int (a) = 1;`
                self.unsupported("a variable's name in brackets is not supported: leave them out")
            if storage & {"extern", "__device__"} and self.ahead().is_("("):
                while not self.advance().is_(";"):  # a function is declared, and known anyway
                    pass
                return ast.Block(at=token.at, body=[])
            if bracketed or not self.at("(", "{", "::"):
                return self.declaration(storage, base, token)
            self.position = start  # such as Vector(1, 2).print();
        start, expression = self.position, self.expression()
        if isinstance(expression, ast.DeclRefExpr) and self.token.kind == "name":
            self.position = start
            self.no_type()  # `Unknown v;`
        self.need(";", " behind this expression")
        return ast.ExpressionStatement(at=token.at, expression=expression)

    def declaration(
        self, words: set[str], base: ast.TypeName, token: Token, first: ast.Declarator | None = None
    ) -> ast.Declaration:
        """The names of a declaration, up to its semicolon; `first` if one was read already."""
        items = [first or self.declarator(self.pointers(base))]
        while self.accept(","):
            items.append(self.declarator(self.pointers(base)))
        self.need(";", " at the end of this declaration")
        return ast.Declaration(at=token.at, storage=words, items=items)

    def declarator(self, wanted: ast.TypeName, name: Token | None = None) -> ast.Declarator:
        """A name with its brackets and its value; `name` if it was read already."""
        dims: list[ast.ArrayExtent] = []
        if name is None and self.at_brackets():
            wanted, name, dims = self.in_brackets(wanted)
        if name is None:
            if self.at("("):
                self.unsupported("references to arrays are supported as parameters only")
            if self.at("["):
                self.unsupported("structured bindings are not supported")
            name = self.identifier()
        self.name_variable(name.text)
        layout = self.attributes()
        dims = dims or self.dimensions()
        layout += self.attributes()
        wanted = replace(wanted, layout=wanted.layout + layout) if layout else wanted
        init: ast.Expression | None = None
        if self.accept("="):
            init = self.initialiser()
        elif self.at("{"):
            init = self.braces()
        elif self.at("("):
            arguments = self.call_arguments()
            if not arguments:
                self.fail(f"'{name.text}()' declares a function here; write '{name.text}'", name.at)
            init = arguments[0]
            object_alone = isinstance(
                init, ast.DeclRefExpr | ast.Member
            )  # perhaps converted explicitly
            if len(arguments) > 1 or wanted.base not in _NUMBERS or object_alone:
                init = ast.Braces(at=name.at, items=arguments, type=wanted)
        if isinstance(init, ast.Text) and len(dims) == 1:
            init = ast.Braces(at=init.at, items=init.characters())
        return ast.Declarator(at=name.at, name=name.text, type=wanted, dims=dims, init=init)

    def alias(self) -> ast.Statement:
        """`typedef` or `using`, from that word on."""
        token = self.advance()
        if token.text == "using":
            whole = self.accept("namespace")
            name = self.token
            if whole or not self.ahead().is_("=", "[", *ATTRIBUTES):
                if not whole and self.namespace_here():
                    self.using[name.text] = self.namespace_here()
                elif whole:
                    self.opened.add(self.aliases.get(name.text, name.text))
                while not self.advance().is_(";"):
                    pass  # what is in a namespace is known without its name
                return ast.Block(at=token.at, body=[])
            name = self.identifier()
            self.harmless(self.attributes())
            self.need("=")
            items = [self._alias_of(self.abstract_type(), name, [])]
        else:
            if self.at_struct():
                return self.struct(None, typedef=True)
            _, base = self.specifiers()
            self.harmless(base.layout)
            items = self.aliases_of(base)
        self.need(";")
        return ast.Declaration(at=token.at, storage={"typedef"}, items=items)

    def aliases_of(self, base: ast.TypeName) -> list[ast.Declarator]:
        """The names that a typedef gives a type, with what each adds to it."""

        def one() -> ast.Declarator:
            target, name, dims = self.pointers(base), None, list[ast.ArrayExtent]()
            if self.at_brackets():
                target, name, dims = self.in_brackets(target)
            return self._alias_of(target, name or self.identifier("the name of this type"), dims)

        return self.several(one)

    def _alias_of(
        self, target: ast.TypeName, name: Token, dims: list[ast.ArrayExtent]
    ) -> ast.Declarator:
        if self.at("("):  # `typedef float binary(float, float);`
            self.function_types.add(name.text)
            returns, target = target, ast.TypeName(at=name.at, base="")
            params = self.parameters()
            target.function = ast.FunctionType(at=name.at, returns=returns, params=params)
        self.harmless(self.attributes())
        dims = dims or self.dimensions()
        self.harmless(self.attributes())
        if None in dims:
            self.unsupported("a name for an array of no size is not supported", name.at)
        self.name_type(name.text)
        if target.base in self.nested_types and not target.nested:
            self.nested_types[name.text] = self.nested_types[target.base]
        return ast.Declarator(at=name.at, name=name.text, type=target, dims=dims)

    def _local_alias(self) -> ast.Statement:
        """A name for a namespace, within a function."""
        token = self.advance()
        name = self.identifier("the name of a namespace")
        if not self.at("="):
            self.fail("a namespace cannot be opened in a function", token.at)
        self.namespace_alias(name.text)
        return ast.Block(at=token.at, body=[])

    def namespace_alias(self, name: str) -> None:
        """Take in `= space::inner;` behind the new name of a namespace."""
        target = ""
        self.namespaces.add(name)
        self.position += 1
        while not (word := self.tokens[self.position]).is_(";"):
            if word.kind == "end":
                self.fail("expected ';' behind the name of a namespace")
            target = word.text
            self.position += 1
        self.aliases[name] = self.aliases.get(target, target)
        self.advance()

    @abstractmethod
    def at_struct(self) -> bool:
        """Tell whether a struct, class, union or enumeration is defined here, and not just named."""

    @abstractmethod
    def struct(self, template: ast.Template | None, typedef: bool = False) -> ast.StructDef:
        """The definition of one."""

    def at_struct_behind_words(self) -> bool:
        """Tell whether one is defined behind storage words, as in `__shared__ union { ... } room;`."""
        start = self.position
        self.storage_words()
        found, self.position = self.at_struct(), start
        return found

    def stored_struct(self, template: ast.Template | None) -> ast.StructDef:
        """The definition of one behind storage words, which are those of its variables."""
        storage = self.storage_words()
        out = self.struct(template)
        if out.variables is not None:
            out.variables.storage |= storage
        return out

    def _if(self) -> ast.Statement:
        token = self.advance()
        constexpr = self.accept("constexpr") is not None
        first, test = self._tested()
        then = self.statement()
        otherwise = self.statement() if self.accept("else") else None
        self.type_names.pop()
        out = ast.If(at=token.at, test=test, then=then, otherwise=otherwise, constexpr=constexpr)
        return ast.Block(at=token.at, body=[*first, out]) if first else out

    def _tested(self) -> tuple[list[ast.Statement], ast.Expression]:
        """Parse a condition, and what stands in front of it; names end when the caller pops `type_names`."""
        at = self.need("(").at
        self.type_names.append({})
        declared = self._condition()
        first: list[ast.Statement] = [] if declared is None else [declared]
        if declared is not None and not self.tokens[self.position - 1].is_(";"):
            test: ast.Expression = ast.DeclRefExpr(at=at, name=declared.items[0].name)
        else:
            test = self.expression()
            if not first and self.accept(";"):
                first, test = [ast.ExpressionStatement(at=at, expression=test)], self.expression()
        self.need(")")
        return first, test

    def _condition(self) -> ast.Declaration | None:
        """Parse a declaration in front of a condition, or as one."""
        start, token = self.position, self.token
        if not self.at_type():
            return None
        storage, base = self.specifiers()
        if self.at("(", "{", "::"):
            self.position = start
            return None
        items = self.several(lambda: self.declarator(self.pointers(base)))
        if len(items) > 1 or not self.at(")"):
            self.need(";")
        return ast.Declaration(at=token.at, storage=storage, items=items)

    def _body(self) -> ast.Statement:
        self.enclosing.append("loop")
        body = self.statement()
        self.enclosing.pop()
        return body

    def _for(self) -> ast.Statement:
        token = self.advance()
        self.need("(")
        ranged = self._range_for(token)
        if ranged is not None:
            return ranged
        init = None if self.accept(";") else self._simple()
        test = None if self.at(";") else self.expression()
        self.need(";")
        step = None if self.at(")") else self.expression()
        self.need(")")
        out = ast.For(at=token.at, init=init, test=test, step=step, body=self._body())
        if isinstance(init, ast.Declaration) and isinstance(out.body, ast.Block):
            names = {item.name for item in init.items}
            for inner in out.body.body:
                for item in inner.items if isinstance(inner, ast.Declaration) else ():
                    if item.name in names:
                        self.fail(f"'{item.name}' is declared again: the loop has it", item.at)
        return out

    def _range_for(self, token: Token) -> ast.Statement | None:
        start = self.position
        if not self.at_type():
            return None
        wanted = self.pointers(self.specifiers()[1])
        if self.token.kind != "name" or not self.ahead().is_(":"):
            self.position = start
            return None
        name = self.identifier()
        self.advance()
        array = self.expression()
        self.need(")")
        item = ast.Declarator(at=name.at, name=name.text, type=wanted)
        return ast.RangeFor(at=token.at, item=item, array=array, body=self._body())

    def _while(self) -> ast.Statement:
        at = self.advance().at
        first, test = self._tested()
        body = self._body()
        self.type_names.pop()
        if not first:
            return ast.For(at=at, test=test, body=body)
        end = ast.Jump(at=at, word="break")
        body = ast.Block(at=at, body=[*first, ast.If(at=at, test=test, then=body, otherwise=end)])
        return ast.For(at=at, body=body)

    def _do(self) -> ast.Statement:
        token = self.advance()
        body = self._body()
        if not self.accept("while"):
            self.fail(f"expected 'while' behind the body of 'do' before '{self.token.text}'")
        test = self.in_parentheses()
        self.need(";", " behind 'do ... while'")
        return ast.For(at=token.at, test=test, body=body, after=True)

    def _switch(self) -> ast.Statement:
        token = self.advance()
        first, subject = self._tested()
        start = self.accept("{")  # without it, one statement behind its labels is the body
        self.enclosing.append("switch")
        cases: list[ast.SwitchCase] = []
        while not self.at("}") if start else not (cases and cases[-1].body):
            label = self.token
            if self.accept("case", "default"):
                value = self.conditional() if label.text == "case" else None
                if self.at("..."):
                    self.unsupported("a range of cases is not supported: write each of them")
                self.need(":")
                cases.append(ast.SwitchCase(at=label.at, value=value, body=[]))
            elif not cases:
                self._before_the_first_case()
            else:
                cases[-1].body.append(self.statement())
        self.enclosing.pop()
        if start:
            self.advance()
        self.type_names.pop()
        out = ast.Switch(at=token.at, subject=subject, cases=cases)
        return ast.Block(at=token.at, body=[*first, out]) if first else out

    def _before_the_first_case(self) -> NoReturn:
        at, first = self.token.at, self.statement() if self.at_type() else None
        if isinstance(first, ast.Declaration) and not any(item.init for item in first.items):
            self.unsupported(
                "a declaration before the first case is not supported: put it before the switch", at
            )
        self.fail("this statement is before the first case label: nothing reaches it", at)

    def _return(self) -> ast.Statement:
        token = self.advance()
        value: ast.Expression | None = None
        if not self.at(";"):
            value = self.braces() if self.at("{") else self.expression()
        self.need(";", " behind 'return'")
        return ast.Return(at=token.at, value=value)

    def _jump(self) -> ast.Statement:
        token = self.advance()
        anywhere = token.text == "break"
        if not self.enclosing or not (anywhere or "loop" in self.enclosing):
            where = "a loop or switch" if anywhere else "a loop"
            self.fail(f"'{token.text}' may only be used within {where}", token.at)
        self.need(";", f" behind '{token.text}'")
        return ast.Jump(at=token.at, word=token.text)


_NUMBERS = {"bool", "char", "short", "int", "long", "float", "double", "auto"}
_READERS: dict[str, Callable[[StatementParser], ast.Statement]] = {
    "if": StatementParser._if, "for": StatementParser._for, "while": StatementParser._while,
    "do": StatementParser._do, "switch": StatementParser._switch, "return": StatementParser._return,
    "break": StatementParser._jump, "continue": StatementParser._jump,
    "typedef": StatementParser.alias, "using": StatementParser.alias,
    "namespace": StatementParser._local_alias,
}  # fmt: skip
