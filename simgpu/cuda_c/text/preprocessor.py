"""Macros and conditional text: `#define`, `#if` and their like."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from simgpu.cuda_c.text.condition import evaluate_condition
from simgpu.cuda_c.text.headers import header_text
from simgpu.cuda_c.text.lexer import Token, parse_string, tokenise
from simgpu.cuda_c.text.published import device_part, is_known_header
from simgpu.cuda_c.text.source import Position, Source, nesting

# Headers of NVIDIA's, by the word by which an #include asks for each, and the file that stands for it.
_HEADERS = {
    name: f"{name.replace('/', '_')}.h"
    for name in (
        "cooperative_groups", "cooperative_groups/memcpy_async", "cub", "cuComplex", "cuda/atomic",
        "cuda/barrier", "cuda/pipeline", "cuda/ptx", "cuda_awbarrier_primitives", "cuda_bf16", "cuda_fp16",
        "curand_kernel", "math_constants", "mma",
    )
}  # fmt: skip
# Headers that a header includes.
_BRING = {
    "cooperative_groups/memcpy_async": ("cooperative_groups",),
    "cuda/barrier": ("cuda/atomic",),
    "mma": ("cuda_fp16", "cuda_bf16"),
    "cuda/ptx": ("cuda/atomic", "cuda/barrier"),
    "cuda/pipeline": ("cuda/atomic", "cuda/barrier"),
}
# A source that means namespace std by these names. In any other they may be functions of its own.
_CHOOSES = re.compile(
    r"\bstd\s*::\s*(enable_if|conditional|remove_\w+?|make_\w*signed|decay|aligned_storage)(_t)?\b|"
    r"\busing\s+namespace\s+std\b"
)
_WITHOUT = "ASYNCGPU_NO_CHOICE_OF_TYPES"
_HAS_INCLUDE = "__has_include"
_MOST_WORDS = 200_000  # that macros make of each other, until all are expanded
_PACK = re.compile(r"pack\((push|pop)?,?(1|2|4|8|16)?\)")
# Pragmas that change neither a value nor a place in memory, of compilers for a GPU and for the host's code.
_HARMLESS = re.compile(
    r"((no)?unroll|once|nv_diag(nostic)?_\w+|diag_\w+|nv_exec_check_disable|hd_warning_disable|message|warning|"
    r"(end)?region|mark|omp|acc|comment|(GCC|clang) (diagnostic|unroll|ivdep|loop|system_header))\b"
)


@dataclass(frozen=True)
class _Macro:
    body: list[Token]
    parameters: list[str] | None = None  # None: used without parentheses


@dataclass(frozen=True)
class Preprocessed:
    """The tokens that the parser sees, the headers that were asked for, and what else the file had.

    `aside` are the host's functions and variables, with their places; `missing`, headers (`published`).
    `chooses` says whether it may mean what the standard has to choose and change types; `packs`, behind which
    lines `#pragma pack` says what, where 0 is nothing.
    """

    tokens: list[Token] = field(default_factory=list[Token])
    headers: frozenset[str] = frozenset()
    aside: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()
    chooses: bool = False
    packs: tuple[tuple[int, int], ...] = ()

    @property
    def not_found(self) -> str:
        """Say which headers of the author's are missing, and what to do about it."""
        headers = ", ".join(f'"{header}"' for header in self.missing)
        return f" in {headers}, not found: say where, as in Kernel(path, include=[...])"


def preprocess(source: Source) -> Preprocessed:
    """Take the device code of a file, expand macros, and drop what conditions exclude."""
    code = device_part(source.text)
    chooses = _CHOOSES.search(source.text) is not None
    reader = _Preprocessor(source, dict(prelude(chooses).macros))
    with nesting(source):
        tokens = reader.run(code.text)
    headers = frozenset(re.findall(r'#\s*include\s*[<"]([^>"]+)', code.text))
    if "mma.h" in headers:
        headers |= {"cuda_fp16.h"}  # it comes along
    return Preprocessed(tokens, headers, code.aside, code.missing, chooses, tuple(reader.packs))


class _Prelude(NamedTuple):
    tokens: list[Token]
    macros: dict[str, _Macro]


@cache
def prelude(chooses: bool) -> _Prelude:
    """Read what stands in front of every source; see `Preprocessed.chooses`."""
    text = "".join(map(header_text, ("standard_names.h", "namespace_std.h", "c_functions.h")))
    known = _read("prelude", text if chooses else f"#define {_WITHOUT} 1\n{text}")
    known.macros.pop(_WITHOUT, None)
    return known


@cache
def _of_header(name: str) -> _Prelude:
    tokens, macros = _read(name, header_text(_HEADERS[name]))
    return _Prelude(tokens[:-1], macros)


def _read(name: str, text: str) -> _Prelude:
    """Read a text that stands in front of a file; lines below 0 are none of the file's."""
    reader = _Preprocessor(Source(text, name), {})
    tokens = [t._replace(at=Position(-t.at.line, t.at.column)) for t in reader.run(text)]
    return _Prelude(tokens, reader.macros)


class _Preprocessor:
    def __init__(self, source: Source, macros: dict[str, _Macro]) -> None:
        self.source = source
        self.macros = macros
        self.words = 0  # that macros have made
        self.joined: set[str] = set()  # headers that have been included
        self.packs: list[tuple[int, int]] = []  # see `Preprocessed`
        self.pushed: list[int] = []  # by `#pragma pack(push)`
        # For each open #if: is its text taken, and was one of its branches taken already?
        self.conditions: list[tuple[bool, bool, Token]] = []

    @property
    def live(self) -> bool:
        return all(taken for taken, _, _ in self.conditions)

    def run(self, text: str) -> list[Token]:
        tokens = tokenise(Source(text, self.source.filename))
        out: list[Token] = []
        pending: list[Token] = []  # since the last directive: a macro call may span lines
        rest = iter(tokens[:-1])
        at_line_start = True
        for token in rest:
            if token.is_("#") and at_line_start:
                out += self.expand(pending)
                pending = []
                line = takewhile(lambda t: t.kind != "newline", rest)
                out += self._directive(token, list(line))
                continue
            at_line_start = token.kind == "newline"
            if not at_line_start and self.live:
                pending.append(token)
        out += self.expand(pending)
        if self.conditions:
            self.source.fail(self.conditions[-1][2].at, "this #if has no #endif")
        out.append(tokens[-1])
        return out

    def _directive(self, sharp: Token, line: list[Token]) -> list[Token]:
        """Obey a directive; what stands in its place."""
        if not line:
            return []
        name, rest = line[0].text, line[1:]
        if name in ("if", "ifdef", "ifndef"):
            taken = self.live and self._condition(name, line[0], rest)
            self.conditions.append((taken, taken, sharp))
        elif name in ("elif", "else", "endif"):
            self._continue_condition(name, line[0], rest)
        elif name in ("elifdef", "elifndef"):
            self.source.unsupported(sharp.at, f"#{name} is not supported: write #elif defined()")
        elif not self.live:
            return []
        elif name == "define":
            self._define(line[0], rest)
        elif name == "undef":
            self.macros.pop(self._macro_name(line[0], rest), None)
        elif name == "include":
            return self._include(rest)
        elif name == "error":
            self.source.fail(sharp.at, "#error " + " ".join(t.text for t in rest))
        elif name == "pragma":
            self._pragma(sharp, rest)
        elif name == "line":
            self.source.unsupported(sharp.at, "#line is not supported: lines are the file's")
        elif name != "warning":
            self.source.fail(line[0].at, f"unknown directive #{name}")
        return []

    def _pragma(self, sharp: Token, rest: list[Token]) -> None:
        """Obey a pragma that lays out memory, pass over one that means nothing, and refuse any other."""
        text, now = " ".join(t.text for t in rest), self.packs[-1][1] if self.packs else 0
        found = _PACK.fullmatch("".join(t.text for t in self.expand(rest)))
        if found is None or (found[1] == "pop" and not self.pushed):
            if text and not _HARMLESS.match(text):
                self.source.unsupported(sharp.at, f"#pragma {text} is not supported")
            return
        if found[1] == "push":
            self.pushed.append(now)
        else:
            now = self.pushed.pop() if found[1] else 0
        self.packs.append((sharp.at.line, int(found[2] or now)))

    def _condition(self, name: str, at: Token, rest: list[Token]) -> bool:
        if name not in ("if", "elif"):
            return self._defined(self._macro_name(at, rest)) == (name == "ifdef")
        return evaluate_condition(self.source, at.at, self._resolve_defined(rest)) != 0

    def _resolve_defined(self, tokens: list[Token]) -> list[Token]:
        out: list[Token] = []
        rest = iter(tokens)
        for token in rest:
            if token.is_("defined"):
                name = next(rest, None)
                if bracketed := name is not None and name.is_("("):
                    name = next(rest, None)
                if name is None or name.kind != "name":
                    self.source.fail(token.at, "defined() needs the name of a macro")
                if bracketed:
                    next(rest, None)
                out.append(Token("number", str(int(self._defined(name.text))), token.at))
            elif token.is_(_HAS_INCLUDE):
                inside = "".join(t.text for t in takewhile(lambda t: not t.is_(")"), rest))
                known = is_known_header(inside.strip('(<>"'))
                out.append(Token("number", str(int(known)), token.at))
            else:
                out.append(token)
        return self.expand(out)

    def _continue_condition(self, name: str, at: Token, rest: list[Token]) -> None:
        if not self.conditions:
            self.source.fail(at.at, f"#{name} without #if")
        _, before, sharp = self.conditions.pop()
        if name == "endif":
            return
        taken = not before and self.live and (name == "else" or self._condition(name, at, rest))
        self.conditions.append((taken, before or taken, sharp))

    def _defined(self, name: str) -> bool:
        return name in self.macros or name == _HAS_INCLUDE

    def _macro_name(self, at: Token, rest: list[Token]) -> str:
        if not rest or rest[0].kind != "name":
            self.source.fail(at.at, f"#{at.text} needs the name of a macro")
        return rest[0].text

    def _define(self, at: Token, rest: list[Token]) -> None:
        name = self._macro_name(at, rest)
        if any(t.text == "__VA_OPT__" for t in rest):
            self.source.unsupported(at.at, "__VA_OPT__ is not supported: write two macros")
        if len(rest) < 2 or not rest[1].is_("(") or rest[1].spaced:
            self.macros[name] = _Macro(rest[1:])
            return
        parameters: list[str] = []
        for i, token in enumerate(rest[2:]):
            comma = i % 2 == 1
            if token.is_(")") and (comma or not parameters):
                self.macros[name] = _Macro(rest[i + 3 :], parameters)
                return
            if token.is_("...") and comma:
                self.source.unsupported(token.at, "a name for '...' is not supported")
            if not (token.is_(",") if comma else token.kind == "name" or token.is_("...")):
                wanted = "a comma" if comma else "a parameter name"
                self.source.fail(token.at, f"expected {wanted} in macro '{name}'")
            if not comma:
                parameters.append("__VA_ARGS__" if token.is_("...") else token.text)
        self.source.fail(rest[0].at, f"the parameters of macro '{name}' are never closed")

    def _include(self, rest: list[Token]) -> list[Token]:
        header = "".join(t.text for t in rest)
        named = (name for name in _HEADERS if re.search(rf"(?<!\w){name}", header))
        asked = max(named, key=len, default="")
        out: list[Token] = []
        for name in (*_BRING.get(asked, ()), *[asked] * bool(asked)):
            if name not in self.joined:
                self.joined.add(name)
                self.macros |= _of_header(name).macros
                out += _of_header(name).tokens
        return out

    def expand(self, tokens: list[Token]) -> list[Token]:
        out: list[Token] = []
        todo = list(reversed(tokens))  # a stack, because what a macro yields is read again
        while todo:
            token = todo.pop()
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if token.text == "__LINE__":
                out.append(Token("number", str(token.at.line), token.at))
                continue
            if token.text == "_Pragma" and len(todo) > 2 and todo[-2].kind == "string":
                self._pragma(token, tokenise(Source(parse_string(self.source, todo[-2])))[:-1])
                del todo[-3:]
                continue
            if macro is None or token.text in token.hidden:
                out.append(token)
                continue
            if macro.parameters is not None and not (todo and todo[-1].is_("(")):
                out.append(token)
                continue
            arguments = [] if macro.parameters is None else self._arguments(token, macro, todo)
            new = self._call(token, macro, arguments)
            self.words += 1 + sum(1 + len(t.text) // 16 for t in new)  # long ones count for more
            if self.words > _MOST_WORDS:
                text = f"the macros of this file make more than {_MOST_WORDS:,} words"
                self.source.fail(token.at, f"{text}; '{token.text}' is the one at hand")
            todo += reversed(new)
        return out

    def _arguments(self, name: Token, macro: _Macro, todo: list[Token]) -> list[list[Token]]:
        todo.pop()  # the opening parenthesis
        arguments: list[list[Token]] = [[]]
        depth = 1
        expected = macro.parameters or []
        variadic = expected[-1:] == ["__VA_ARGS__"]
        while depth:
            if not todo:
                self.source.fail(name.at, f"the call of macro '{name.text}' is never closed")
            token = todo.pop()
            if token.is_("("):  # the others hold no commas together
                depth += 1
            elif token.is_(")"):
                depth -= 1
                if not depth:
                    break
            in_rest = variadic and len(arguments) >= len(expected)
            if token.is_(",") and depth == 1 and not in_rest:
                arguments.append([])
            else:
                arguments[-1].append(token)
        if not expected and arguments == [[]]:
            arguments = []
        if variadic and len(arguments) == len(expected) - 1:
            arguments.append([])
        if len(arguments) != len(expected):
            text = f"macro '{name.text}' takes {len(expected)} arguments, {len(arguments)} given"
            self.source.fail(name.at, text)
        return arguments

    def _call(self, name: Token, macro: _Macro, arguments: list[list[Token]]) -> list[Token]:
        given = dict(zip(macro.parameters or [], arguments, strict=True))
        body: list[Token] = []
        around = [None, *macro.body, None]
        for before, token, after in zip(around, macro.body, around[2:], strict=False):
            if token.is_("#") and after is not None and after.text in given:
                continue
            if token.text not in given or token.kind != "name":
                body.append(token)
            elif before is not None and before.is_("#"):
                parts = [" " * t.spaced + t.text for t in given[token.text]]
                text = "".join(parts).strip(" ").replace("\\", "\\\\")
                body.append(Token("string", '"' + text.replace('"', '\\"') + '"', token.at))
            elif token.text == "__VA_ARGS__" and [t.text for t in body[-2:]] == [",", "##"]:
                rest = given[token.text]
                del body[-1 if rest else -2 :]  # GNU's: without the rest the comma goes, too
                body += rest
            elif (before and before.is_("##")) or (after and after.is_("##")):
                body += given[token.text]  # pasted words are not expanded first
            else:
                body += _spaced(self.expand(given[token.text]), token)
        hidden = name.hidden | {name.text}
        words = [t._replace(at=name.at, hidden=t.hidden | hidden) for t in self._paste(body)]
        return _spaced(words, name)

    def _paste(self, body: list[Token]) -> list[Token]:
        out: list[Token] = []
        rest = iter(body)
        for token in rest:
            right = next(rest, None) if token.is_("##") and out else None
            if right is None:
                out.append(token)
            else:
                left = out.pop()
                glued = tokenise(Source(left.text + right.text))[:-1]
                out += [t._replace(at=left.at, hidden=left.hidden) for t in glued]
        return out


def _spaced(words: list[Token], like: Token) -> list[Token]:
    """Words that stand in the place of another: there is a space before them if there was one before it."""
    return [t._replace(spaced=like.spaced) for t in words[:1]] + words[1:]
