"""The facts about a kernel that the host needs: its parameters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from simgpu.cuda_c.compile import overloads, type_names, typed
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.expressions import ExpressionParser
from simgpu.cuda_c.text.lexer import tokenise
from simgpu.cuda_c.text.source import Position, Source
from simgpu.cuda_c.types import ArrayType, CType, Pointer, Scalar, Struct, number_type, spelled
from simgpu.errors import KernelCompileError, UnsupportedFeatureError

PLACED = {"__constant__", "__device__", "__managed__"}
_Found: TypeAlias = tuple[ast.FunctionDecl, typed.Scope, str]  # a kernel, its scope, and its name
# The namespaces and the name of a kernel, in front of template arguments and parameters.
_HEAD = re.compile(r"\s*((?:\w+\s*::\s*)*)(\w*)\s*")


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel."""

    name: str  # as in the source
    ctype: str  # of the number, or of what the pointer points to: "float", "unsigned int", "float4"
    pointer: bool  # whether it is a pointer
    # A pointer to something const, which the kernel only reads.
    const: bool
    # NumPy's type of one element; None for a struct. A vector such as float4 has that of its components.
    dtype: np.dtype[Any] | None
    record: np.dtype[Any] | None = None  # of a struct or vector that is passed by value
    restrict: bool = False  # whether it says that no other pointer leads to its memory


@dataclass(frozen=True)
class GlobalVariable:
    """A `__constant__` or `__device__` variable of a file, which the host can set and read."""

    name: str  # as in the source
    ctype: str  # as one would write it
    dtype: np.dtype[Any]  # of one element; structured for a struct
    shape: tuple[int, ...]  # its lengths; a vector such as float4 adds that of its components
    constant: bool  # whether kernels only read it


@dataclass(frozen=True)
class KernelSignature:
    """A kernel's name and parameters, and the variables of its file."""

    name: str
    parameters: tuple[KernelParameter, ...]
    variables: tuple[GlobalVariable, ...] = ()

    def miscounted(self, args: Sequence[object]) -> str:
        """For a call with too many arguments, or too few."""
        names, count = ", ".join(p.name for p in self.parameters), len(self.parameters)
        return f"{self.name}() takes {count} arguments ({names}), and got {len(args)}"


def variable_of(name: str, ctype: CType, constant: bool) -> GlobalVariable:
    """Describe a variable for the host."""
    element, shape = _components(ctype)
    return GlobalVariable(name, spelled(ctype), record_dtype(element), shape, constant)


def _components(ctype: CType) -> tuple[CType, tuple[int, ...]]:
    """What an array or a vector is made of, and its lengths."""
    shape: tuple[int, ...] = ()
    while isinstance(ctype, ArrayType):
        shape += (ctype.length,)
        ctype = ctype.element
    if isinstance(ctype, Struct) and ctype.vector:
        return ctype.fields[0].type, (*shape, len(ctype.fields))
    return ctype, shape


def record_dtype(ctype: CType) -> np.dtype[Any]:
    """NumPy's type for a number, an array or a struct, byte for byte; pointers are numbers of 8 bytes."""
    if isinstance(ctype, Scalar):
        return ctype.dtype
    if isinstance(ctype, Pointer):
        return np.dtype(np.uint64)  # an address
    if isinstance(ctype, ArrayType):
        return np.dtype((record_dtype(ctype.element), (ctype.length,)))
    assert isinstance(ctype, Struct)  # nothing that is stored is void
    formats = [record_dtype(field.type) for field in ctype.fields]
    names = [field.name or f"unnamed{k}" for k, field in enumerate(ctype.fields)]
    offsets, size = [field.offset for field in ctype.fields], ctype.size
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def signature_of(
    c: Context, function: ast.FunctionDecl, name: str, variables: tuple[GlobalVariable, ...]
) -> KernelSignature:
    """Signature of a kernel whose types mean something in the scope of `c`."""
    if function.refusal is not None:
        raise function.refusal
    parameters: list[KernelParameter] = []
    for param in function.params:
        ctype = type_names.param_type(c, param)
        pointer = isinstance(ctype, Pointer)
        target, const = (ctype.target, ctype.const) if pointer else (ctype, False)
        target = number_type(target) if isinstance(target, Scalar) else target
        record = record_dtype(target) if isinstance(target, Struct) and not pointer else None
        element, _ = _components(target)
        plain = isinstance(element, Scalar | Pointer) and not isinstance(target, ArrayType)
        dtype = record_dtype(element) if plain else None
        restrict = pointer and ctype.restrict
        parameters.append(
            KernelParameter(param.name, spelled(target), pointer, const, dtype, record, restrict)
        )
    return KernelSignature(name, tuple(parameters), variables)


def instance_of(c: Context, name: str) -> _Found:
    """Find the kernel that a name expression means, the scope of its template, and its proper name."""
    source = c.file.source
    head = _HEAD.match(name)
    assert head is not None  # it takes an empty name
    stem, rest, around = head[2], name[head.end() :], tuple(re.findall(r"\w+", head[1]))
    if rest[:1] not in ("", "<", "("):
        _no_kernel(c, name)
    kernels = [f for f in c.file.functions.get(stem, []) if f.kernel]
    kernels = [f for f in kernels if f.namespace[len(f.namespace) - len(around) :] == around]
    if not kernels:
        _no_kernel(c, "::".join((*around, stem)))
    text = Source(rest, f"name '{name}'")
    given, params = _arguments(c, text)
    plain = [f for f in kernels if f.template != []]
    fitting = [f for f in plain if (f.template is None) == (given is None)]
    if not fitting:
        first = next((f for f in kernels if f.refusal is not None), (plain or kernels)[0])
        wanted = ", ".join(p.name for p in first.template) if first.template else ""
        cure = f"is a template of {wanted}: name an instance, such as '{stem}<...>'"
        cure = cure if wanted else f"is not a template: call it '{stem}'"
        raise first.refusal or KernelCompileError(f"kernel '{stem}' {cure}")
    bound: list[_Found] = []
    for function in fitting:
        try:
            bound.append(_bound(c, text, function, given, kernels))
        except KernelCompileError:
            c.file.source = source
            if function is fitting[-1] and not bound:
                raise
    found = [b for b in bound if b[0].body is not None] or bound[:1]
    if params is None and len(found) == 1:
        return (*found[0][:2], "::".join((*around, stem)) + found[0][2])
    return _told_apart(c, found, params)


def _arguments(
    c: Context, text: Source
) -> tuple[list[ast.TemplateArgument] | None, list[ast.Param] | None]:
    """Read the arguments of the template, and the parameters, behind a kernel's name."""
    if not text.text:
        return None, None
    parser = ExpressionParser(text, tokenise(text), frozenset({"cuda_fp16.h"}))
    for word in c.file.scope.visible():
        meaning = c.file.scope.find(word)
        parser.type_names[0][word] = isinstance(meaning, typed.TypeBinding | typed.StructTemplate)
        if isinstance(meaning, typed.StructTemplate):
            parser.struct_templates.add(word)
    every = [function for found in c.file.functions.values() for function in found]
    parser.function_templates |= {f.name for f in every if f.template is not None}
    parser.namespaces.update(*[function.namespace for function in every])
    given = parser.template_arguments() if parser.at("<") else None
    return given, parser.parameters() if parser.at("(") else None


def _bound(
    c: Context, text: Source, function: ast.FunctionDecl, given: Sequence[ast.TemplateArgument] | None,
    kernels: Sequence[ast.FunctionDecl],
) -> _Found:  # fmt: skip
    """A kernel, or what it is for just these arguments of its template; its scope; and the arguments."""
    if function.template is None or given is None:
        return function, c.file.scope, ""
    source, c.file.source, at = c.file.source, text, Position(1, 1)
    scope = type_names.with_arguments(c, function.name, function.template, given, at)
    c.file.source = source
    arguments = [cast(typed.Given, scope.names[p.name]) for p in function.template]
    chosen = overloads.specialised(c, function, scope, kernels, at)
    return chosen, scope, f"<{type_names.spelled_arguments(c, arguments)}>"


def _told_apart(c: Context, found: Sequence[_Found], params: Sequence[ast.Param] | None) -> _Found:
    """The one of several kernels of a name with these parameters."""
    wanted = None if params is None else [type_names.param_type(c, p) for p in params]
    forms: dict[str, tuple[ast.FunctionDecl, typed.Scope]] = {}
    for function, scope, arguments in found:
        with c.seen_from(scope):
            kinds = [type_names.param_type(c, p) for p in function.params]
        if wanted is None or kinds == wanted:
            stem = "::".join([*function.namespace, function.name])
            forms[f"{stem}{arguments}({', '.join(map(spelled, kinds))})"] = function, scope
    if len(forms) == 1:
        name, (function, scope) = forms.popitem()
        return function, scope, name
    lines = ", ".join(str(f.at.line) for f, *_ in found)
    which = f"say which, as in '{next(iter(forms))}'" if forms else "none takes these parameters"
    several = f"several kernels '{found[0][0].name}' (lines {lines})"
    raise UnsupportedFeatureError(f"{c.file.source.filename} has {several}: {which}")


def _no_kernel(c: Context, name: str) -> NoReturn:
    functions = c.file.functions
    kernels = sorted(n for n, fs in functions.items() if any(f.kernel for f in fs))
    refused = [f.refusal for fs in functions.values() for f in fs if f.refusal is not None]
    if refused and not kernels:
        raise refused[0]
    have = ", ".join(kernels) if kernels else "none"
    near = get_close_matches(name, kernels, 1, 0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    if name in functions:
        hint += " It is a __device__ function, which only kernels can call."
    where = c.file.source.filename
    raise KernelCompileError(f"{where} has no kernel '{name}'; its kernels: {have}.{hint}")
