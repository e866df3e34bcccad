"""The lower half of the parser: reading tokens, and types."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.lexer import Token
from simgpu.cuda_c.text.published import ATTRIBUTES
from simgpu.cuda_c.text.source import Position, Source
from simgpu.cuda_c.types import VECTORS

T = TypeVar("T")
_WORDS = {"void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed"}
_SIZES = {"short": ("short",), "int": (), "long": ("long",), "long long": ("long", "long")}
# The types of numbers, by their words in the order of the alphabet.
_NUMBERS: dict[tuple[str, ...], str] = {
    **{(word,): word for word in ("void", "bool", "char", "float", "double")},
    **{("char", sign): f"{sign} char" for sign in ("signed", "unsigned")},
    **{
        tuple(sorted((*sign, *size, *whole))): f"unsigned {name}" if "unsigned" in sign else name
        for name, size in _SIZES.items()
        for sign in ((), ("signed",), ("unsigned",))
        for whole in ((), ("int",))
    },
}
_ALIASES = {"size_t": "unsigned long", "ptrdiff_t": "long", "clock_t": "long"}
_HALF_NAMES = {"half", "__half", "half2", "__half2"}
_TYPE_QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict", "restrict"}
_STORAGE = {
    "static", "extern", "inline", "constexpr", "register", "typename", "__forceinline__", "__inline",
    "__noinline__", "__inline__", "__global__", "__device__", "__host__", "__shared__",
    "__constant__", "__managed__", "__grid_constant__", "explicit", "mutable",
}  # fmt: skip
# Attributes that change no value and no place in memory. Any other one is refused.
_HARMLESS = {
    "access", "always_inline", "artificial", "assume", "cold", "const", "deprecated", "fallthrough",
    "flatten", "forceinline", "format", "gnu_inline", "hot", "leaf", "likely", "malloc",
    "maxnreg", "maybe_unused", "may_alias", "noclone", "nodiscard", "noinline", "nonnull", "noreturn",
    "nothrow", "pure", "returns_nonnull", "unlikely", "unused", "used", "visibility", "warn_unused_result",
}  # fmt: skip
_STRUCTS = {"struct", "class", "union", "enum"}
_BEGIN_TYPES = {"auto", "decltype"} | _STRUCTS | _TYPE_QUALIFIERS | _STORAGE | ATTRIBUTES
# Namespaces whose names are known by themselves, and those that only a GPU has.
_OPEN_NAMESPACES = {"std", "cooperative_groups"}
_MULTIPLY = "multiply with ordinary instructions, or by wmma"
_GPU_ONLY = {
    "cub": (
        "CUB beyond BlockReduce is",
        "write the scan or sort with __shfl_up_sync() or shared memory",
    ),
    "thrust": ("Thrust is", "write the loop as a kernel"),
    "cuda": (
        "libcu++ beyond <cuda/atomic>, <cuda/barrier> and <cuda/pipeline> is",
        "include one of these, or take loads and stores, a barrier, an atomic_ref",
    ),
    "nvstd": ("nvstd::function is", "take a pointer to a function, or a template's parameter"),
    "cute": ("CuTe is", _MULTIPLY),
    "cutlass": ("CUTLASS is", _MULTIPLY),
    **dict.fromkeys(("torch", "at", "c10"), ("PyTorch's C++ is", "take pointers and lengths")),
}
# Of namespaces that a header of ours has opened, what only a GPU has.
_NOT_OPENED = re.compile(
    r"cuda::(latch|(counting|binary)_semaphore)|cub::(?!BlockReduce(Algorithm)?$|BLOCK_REDUCE_)\w+"
)
# Of these namespaces, what files call their own things, too: their headers have it as cuda_barrier.
_SHARED_NAMES = {"barrier": "cuda", "pipeline": "cuda", "BlockReduce": "cub"}
_GPU_TYPES = {
    r"__nv_fp[468]\w*": "take half or float",
    "CUtensorMap": "copy with ordinary loads and stores",
    r"curandState(Mtgp|MRG|Sobol|ScrambledSobol)\w*|curandDirectionVectors\w*": (
        "take curandState (XORWOW) or curandStatePhilox4_32_10_t"
    ),
    r"wchar_t|char(8|16|32)_t": "take char or int",
    "cluster_group": "clusters of blocks are not there; a grid_group is",
    r"cudaGraph\w*(_t|Handle)": "launch graphs from the host",
    "cuda(Stream|Event|Error)_t": "device code cannot call the CUDA runtime here",
    r"cudaTex\w*_t|CUtexObject": "pass the array as a pointer, and read its elements with ordinary loads",
    "cudaSurfaceObject_t|CUsurfObject": "pass the array, and write to it",
}
# Functions that read textures and write to surfaces.
TEXTURES = {
    r"tex([123]D|Cubemap)\w*": (
        "textures are not supported: pass the array as a pointer, and read its elements with ordinary loads"
    ),
    r"surf([123]D|Cubemap)\w*": "surfaces are not supported: pass the array, and write to it",
}
_NEEDS_HEADER = {
    r"(__)?half2?": "cuda_fp16.h> first",
    r"(__)?nv_bfloat162?": "cuda_bf16.h> first",
    r"curandState(_t|XORWOW(_t)?|Philox4_32_10(_t)?)?": "curand_kernel.h> first",
    "thread_(block|group|block_tile)|(grid|coalesced)_group": "cooperative_groups.h>, and name its namespace",
}
_START = Position(1, 1)
_KEYWORDS = ATTRIBUTES | {
    "if", "else", "for", "while", "do", "switch", "case", "default", "return", "break", "continue",
    "goto", "sizeof", "true", "false", "nullptr", "struct", "class", "union", "enum", "template",
    "typedef", "using", "namespace", "auto", "operator", "new", "delete", "this", "asm",
}  # fmt: skip


class TypeParser(ABC):
    """A cursor over tokens that can read types; `half` is one only with its header."""

    def __init__(self, source: Source, tokens: Sequence[Token], headers: frozenset[str]) -> None:
        self.source = source
        self.tokens = tokens
        self.position: int = 0
        # Tells of each name whether it is a type; a table for each scope, the innermost last.
        self.type_names: list[dict[str, bool]] = [dict.fromkeys(set(VECTORS) - {"half2"}, True)]
        if "cuda_fp16.h" in headers:
            self.type_names[0] |= dict.fromkeys(_HALF_NAMES, True)
        self.enclosing: list[str] = []  # "loop" and "switch", outermost first
        self.nested_types: dict[str, set[str]] = {}  # of each struct
        self.declared: list[ast.StructDef] = []  # known by name alone so far
        self.function_types: set[str] = set()  # a pointer to one is what it means without the star
        self.function_templates: set[str] = set()
        self.struct_templates: set[str] = set()
        # Templates that name a type or a number: structs with a member of this name.
        self.shorthands: dict[str, str] = {}
        self.functions_here: set[str] = set()  # that are no templates
        self.aliases: dict[str, str] = {}  # of namespaces
        self.namespaces = set(_OPEN_NAMESPACES)
        self.using: dict[str, str] = {}  # of each `using space::name`, the namespace
        self.opened: set[str] = set()  # by `using namespace`, and bases of structs
        self.inlined: set[str] = set()  # namespaces whose names those around them have, too
        self.around: tuple[str, ...] | None = ()  # namespaces here; None where all names are taken
        # Of names of the file, their namespaces, and whether they are types there.
        self.homes: dict[str, dict[tuple[str, ...], bool]] = {}

    @property
    def token(self) -> Token:
        """The token at hand; a namespace in front of a name is passed over."""
        tokens, spaces = self.tokens, self.namespaces
        here = tokens[self.position]
        if here.text not in spaces and here.text not in _SHARED_NAMES and here.text != "::":
            return here
        while tokens[self.position].text in spaces and tokens[self.position + 1].text == "::":
            inside = tokens[self.position + 2].text
            if _NOT_OPENED.fullmatch(f"{tokens[self.position].text}::{inside}"):
                break
            self.position += 2
            if tokens[self.position].kind != "name":
                self.source.fail(tokens[self.position].at, f"expected a name before '{inside}'")
        if tokens[self.position].text == "::":
            before = tokens[self.position - 1] if self.position else Token("end", "", _START)
            named = before.kind == "name" and before.text not in _KEYWORDS
            self.position += not named and before.text != ">"
        return self._told_apart(self.position)

    def _told_apart(self, at: int) -> Token:
        """The token at a place, by the name by which it is known if it is one of namespace cuda or cub."""
        token = self.tokens[min(at, len(self.tokens) - 1)]
        space = _SHARED_NAMES.get(token.text)
        if space is None or [t.text for t in self.tokens[at - 2 : at]] != [space, "::"]:
            return token
        return token._replace(text=f"{space}_{token.text}")

    def namespace_here(self) -> str:
        """The namespace that was passed over in front of the token at hand, or an empty string."""
        if self.position < 2 or not self.tokens[self.position - 1].is_("::"):
            return ""
        return self.tokens[self.position - 2].text

    def away(self, name: str) -> str:
        """The namespace without which a name of the file isn't known here, or an empty string."""
        homes, around = self.homes.get(name, ()), self.around
        if not homes or around is None or name in self.using or name in self.opened:
            return ""
        said = self.namespace_here()
        said = self.aliases.get(said, said)
        if said in self.inlined | _OPEN_NAMESPACES:
            return ""
        for home in homes:
            near = around[: len(home)] == home
            if said in self.namespaces:  # and no return, in front of `::name`
                near = home[-1:] == (said,)
            if near or not self.opened.isdisjoint(home[-1:]):
                return ""
        return "::".join(min(homes))

    def ahead(self, n: int = 1) -> Token:
        return self.tokens[min(self.position + n, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        if token.kind == "end":  # or who passes over tokens up to a sign would never come to an end
            self.fail("the file ends in the middle of this")
        self.position += 1
        return token

    def at(self, *texts: str) -> bool:
        token = self.token
        return token.text in texts and token.kind in ("op", "name")

    def accept(self, *texts: str) -> Token | None:
        return self.advance() if self.at(*texts) else None

    def fail(self, message: str, at: Position | None = None) -> NoReturn:
        if self.at("..."):
            self.unsupported("parameter packs are not supported")
        self.source.fail(at or self.token.at, message)

    def unsupported(self, message: str, at: Position | None = None) -> NoReturn:
        self.source.unsupported(at or self.token.at, message)

    def need(self, text: str, why: str = "") -> Token:
        if self.at(text):
            return self.advance()
        # The message points behind the last token, since that is where something is missing.
        last, at = self.tokens[self.position - 1], self.token.at
        at = Position(last.at.line, last.at.column + len(last.text)) if self.position else at
        self.fail(f"expected '{text}'{why} before '{self.token.text}'", at)

    def several(self, read: Callable[[], T], *ends: str) -> list[T]:
        """Read things with commas between them, up to a closing sign, which is left.

        Only in front of a brace may one comma more stand.
        """
        out: list[T] = []
        more = not self.at(*ends)
        while more:
            out.append(read())
            more = self.accept(",") is not None and not (self.at("}") and "}" in ends)
        return out

    def close_angle(self) -> None:
        """Take one `>`, splitting a `>>` that closes two lists."""
        if self.at(">>"):
            token = self.token
            rest = Token("op", ">", Position(token.at.line, token.at.column + 1))
            tokens = list(self.tokens)
            tokens[self.position : self.position + 1] = [rest]
            self.tokens = tokens
            return
        self.need(">")

    def identifier(self, what: str = "a name") -> Token:
        if self.token.kind != "name" or self.token.text in _KEYWORDS:
            self.fail(f"expected {what} before '{self.token.text}'")
        return self.advance()

    def is_type_name(self, text: str) -> bool:
        if text in _WORDS or text in _ALIASES:
            return True
        return next((names[text] for names in reversed(self.type_names) if text in names), False)

    def name_type(self, name: str) -> None:
        """Remember that a name is a type from here on."""
        self.type_names[-1][name] = True

    def name_variable(self, name: str) -> None:
        """Remember that a name is no type from here on."""
        if self.is_type_name(name):
            self.type_names[-1][name] = False

    def at_type(self, offset: int = 0) -> bool:
        token = self.ahead(offset) if offset else self.token
        while token.text in self.namespaces and self.ahead(offset + 1).text == "::":
            offset += 2
            token = self._told_apart(self.position + offset)
        if token.kind != "name" or self.shorthands.get(token.text) == "value":
            return False
        return self.is_type_name(token.text) or token.text in _BEGIN_TYPES

    def storage_words(self) -> set[str]:
        """Storage words in front of something that has no type, such as a constructor."""
        found: set[str] = set()
        while self.token.text in _STORAGE - {"typename"}:
            found.add(self.advance().text)
        return found

    def specifiers(self) -> tuple[set[str], ast.TypeName]:
        """Storage words and a base type, in whatever order they come."""
        storage: set[str] = set()
        start = self.token
        words: list[str] = []
        result = ast.TypeName(at=start.at, base="")
        while True:
            result.layout += self.attributes()  # such as those of `__device__ [[nodiscard]] int`
            token = self.token
            if token.kind != "name":
                break
            if token.text == "extern" and self.ahead().kind == "string":
                self.position += 2
                storage.add('extern "C"')
            elif token.text in _STORAGE:
                storage.add(self.advance().text)
            elif token.text in ("const", "volatile"):
                self.advance()
                setattr(result, token.text, True)
            elif token.text in _TYPE_QUALIFIERS:
                self.advance()
            elif token.text in _WORDS and not result.base:
                words.append(self.advance().text)
            elif words or result.base:
                break
            elif token.text in _STRUCTS and self.ahead().kind == "name":
                self._elaborated(self.advance(), self.token, result)
            elif token.text == "decltype":
                self.advance()
                self.need("(")
                result.base, doubled = token.text, self.at("(")
                result.of = self.conditional()
                # A variable within brackets of its own makes it a reference. `(a) + 1` is no such thing.
                if doubled and isinstance(result.of, ast.DeclRefExpr | ast.Member):
                    text = "decltype((x)) is a reference, and not supported: write the type"
                    self.unsupported(text)
                self.need(")")
            elif token.text == "auto" or token.text in _ALIASES or self.is_type_name(token.text):
                self._check_home(token.text)
                self.advance()
                base = _ALIASES.get(token.text, token.text)
                result.base = base.lstrip("_") if token.text in _HALF_NAMES else base
                if token.text in self.struct_templates and self.at("<"):
                    result.arguments = self.template_arguments()
                    if self.shorthands.get(token.text) == "type":
                        result.nested.append("type")
                self._nested(result, "typename" in storage)
            else:
                break
        if words:
            result.base = self._combine(words, start)
        if not result.base:
            self.no_type()
        if storage & {"constexpr"}:
            result.const = True
        return storage, result

    def _check_home(self, name: str) -> None:
        inner = any(name in names for names in self.type_names[1:])
        if not inner and (space := self.away(name)):
            self.fail(f"unknown type name '{name}': write {space}::{name}")

    def _elaborated(self, word: Token, name: Token, result: ast.TypeName) -> None:
        """Behind struct: a new name, as in `typedef struct Node_ Node;`, or one that a variable hides."""
        if not any(names.get(name.text) for names in self.type_names):
            if word.text == "enum":
                self.fail(f"unknown type name '{name.text}'", name.at)
            self.type_names[0][name.text] = True
            self.declared.append(ast.StructDef(at=name.at, name=name.text, declared=True))
        if not self.is_type_name(name.text):
            result.base = self.advance().text

    def _nested(self, result: ast.TypeName, said: bool) -> None:
        """Take `::name` behind a type where it is a type again: it is known, or `typename` says so."""
        known = self.nested_types.get(result.base, set())
        while self.at("::") and (said or self.ahead().text in known):
            self.advance()
            result.nested.append(self.identifier("the name of a type").text)

    def no_type(self) -> NoReturn:
        token = self.token
        self.refuse_gpu_only(token)
        if token.kind == "name" and token.text not in _KEYWORDS:
            hint = ": std has it for the host alone" if self.namespace_here() == "std" else ""
            self.fail(f"unknown type name '{token.text}'{hint}")
        self.fail(f"expected a type before '{token.text}'")

    def refuse_gpu_only(self, token: Token) -> None:
        """`UnsupportedFeatureError`, if this is a type or namespace of a library that only a GPU has."""
        name = token.text
        if name in ("wmma", "nvcuda") and self.ahead().is_("::"):
            self.fail(f"'{name}' is unknown here: write #include <mma.h> first", token.at)
        if name in _GPU_ONLY and self.ahead().is_("::"):
            what, instead = _GPU_ONLY[name]
            if name == "cuda" and re.match("atomic|memory_order|thread_scope", self.ahead(2).text):
                self.fail("'cuda' is unknown here: write #include <cuda/atomic> first", token.at)
            self.unsupported(f"{what} not supported: {instead}", token.at)
        if name == "texture" and self.ahead().is_("<"):
            cure = "pass the array as a pointer, and read its elements with ordinary loads"
            self.fail(f"texture references are gone since CUDA 12: {cure}", token.at)
        if self.ahead().is_("<"):
            for pattern, advice in TEXTURES.items():
                if re.fullmatch(pattern, name):
                    self.unsupported(advice, token.at)
        declares = self.ahead().kind == "name" or self.ahead().is_("*", "&", "<", ",", ")")
        for pattern, header in _NEEDS_HEADER.items():
            if self.ahead().kind == "name" and re.fullmatch(pattern, name):
                self.fail(f"'{name}' is unknown here: write #include <{header}", token.at)
        for pattern, advice in _GPU_TYPES.items():
            if declares and re.fullmatch(pattern, name):
                self.unsupported(f"'{name}' is not supported: {advice}", token.at)

    def _combine(self, words: list[str], start: Token) -> str:
        found = _NUMBERS.get(tuple(sorted(words)))
        if found is None and sorted(words) == ["double", "long"]:
            self.unsupported("'long double' is not supported", start.at)
        return found or self.fail(f"'{' '.join(words)}' is not a type", start.at)

    def attributes(self, words: bool = True) -> list[ast.Attribute]:
        """Read all attributes that come next: those that mean something. With `words`, not only `[[...]]`."""
        out: list[ast.Attribute | None] = []
        while (double := self.at("[") and self.ahead().is_("[")) or (
            words and self.token.text in ATTRIBUTES
        ):
            if not double and not self.accept("__attribute__"):
                out.append(self._attribute())
                continue
            opening, closing = "[]" if double else "()"
            self.need(opening)
            self.need(opening)
            out += self.several(self._attribute, closing)
            self.need(closing, " behind this attribute")
            self.need(closing, " behind this attribute")
        return [one for one in out if one is not None]

    def _attribute(self) -> ast.Attribute | None:
        """Read one; None if it means nothing."""
        token = self.advance()
        if self.accept("::"):  # as in gnu::aligned
            token = self.advance()
        out = ast.Attribute(at=token.at, name=token.text.strip("_"))
        if out.name in ("align", "alignas") or (out.name == "aligned" and self.at("(")):
            self.need("(")
            out.value = self.abstract_type() if self.at_type() else self.conditional()
            self.need(")")
        elif out.name == "launch_bounds":
            self.need("(")
            out.value = self.several(self.conditional, ")")[0]
            self.need(")")
        elif out.name not in ("aligned", "packed"):
            if out.name not in _HARMLESS:
                self.unsupported(f"the attribute '{token.text}' is not supported", token.at)
            if self.at("("):
                self.skip_brackets("(", ")", "this '(' is never closed")
            return None
        return out

    def harmless(self, given: Sequence[ast.Attribute]) -> None:
        """Refuse attributes that lay out memory, where there is none."""
        for one in given:
            text = f"'{one.name}' is not supported here, but for structs and variables"
            self.unsupported(text, one.at)

    def skip_brackets(self, opening: str, closing: str, unclosed: str) -> None:
        start, depth = self.need(opening), 1
        while depth:
            if self.token.kind == "end":
                self.fail(unclosed, start.at)
            token = self.advance()
            depth += token.is_(opening) - token.is_(closing)

    def pointers(self, result: ast.TypeName) -> ast.TypeName:
        """The stars, qualifiers and reference sign behind a base type; returns a type of its own."""
        out = replace(result, pointers=[], reference=False)
        if result.base in self.function_types:
            self.accept("*")
        while True:
            if self.accept("*"):
                out.pointers.append(set())
            elif self.token.kind == "name" and self.token.text in _TYPE_QUALIFIERS:
                word = self.advance().text
                if out.pointers:
                    out.pointers[-1].add(word)
                elif word in ("const", "volatile"):
                    setattr(out, word, True)
            elif self.at("&&"):
                self.unsupported("rvalue references are not supported")
            elif self.accept("&"):
                out.reference = True
                return out
            else:
                return out

    def abstract_type(self) -> ast.TypeName:
        """A type without a name, as in a cast."""
        _, base = self.specifiers()
        self.harmless(base.layout)
        return self.pointers(base)

    def template_arguments(self) -> list[ast.TemplateArgument]:
        """Parse what stands in `<...>`: types and constant expressions."""
        self.need("<")
        out = self.several(self._template_argument, ">", ">>")
        self.close_angle()
        return out

    def _template_argument(self) -> ast.TemplateArgument:
        start = self.position
        given = self.abstract_type() if self.at_type() else self.template_value()
        if self.at("::"):  # `Same<T, int>::value` begins with a type
            self.position = start
            given = self.template_value()
        if self.at("["):
            self.unsupported("an array type as an argument of a template is not supported")
        return given

    def explicit_arguments(self, function: str) -> list[ast.TemplateArgument] | None:
        """Parse the template arguments behind the name of a function, if there are some."""
        known = self.at("<") and function in self.function_templates
        return self.template_arguments() if known else None

    @abstractmethod
    def conditional(self) -> ast.Expression:
        """Anything but a comma or an assignment."""

    @abstractmethod
    def template_value(self) -> ast.Expression:
        """A number among template arguments."""
