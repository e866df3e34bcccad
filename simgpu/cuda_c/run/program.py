"""Compiling a source: what the file declares, then kernel by kernel."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile import signature as heads
from simgpu.cuda_c.compile import type_names, typed
from simgpu.cuda_c.compile.braces import declared_type, initialise
from simgpu.cuda_c.compile.builtins import taken_by_cuda
from simgpu.cuda_c.compile.constants import computed_early, evaluated, known_elements
from simgpu.cuda_c.compile.context import Context, File, Numbers
from simgpu.cuda_c.compile.conversions import convert
from simgpu.cuda_c.compile.cuts import NeedsCuts
from simgpu.cuda_c.compile.form import (
    BasicBlock,
    Expansion,
    Fence,
    Form,
    Instruction,
    chosen_by_data,
    instructions_below,
)
from simgpu.cuda_c.compile.function_addresses import take_addresses
from simgpu.cuda_c.compile.kernels import finish, lower, needs_cuts
from simgpu.cuda_c.compile.printed import printed
from simgpu.cuda_c.compile.rules import RULES
from simgpu.cuda_c.compile.signature import GlobalVariable, KernelSignature
from simgpu.cuda_c.compile.summing import summing
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.compile.waiting import parks
from simgpu.cuda_c.cost.charges import Costs
from simgpu.cuda_c.cost.walk import walk
from simgpu.cuda_c.lockstep.team import Extent3
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.run.kernel import CompiledKernel, Execution, KernelArgument, passed
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.names import addressed_by_reference, grown
from simgpu.cuda_c.syntax.parser import parse
from simgpu.cuda_c.text.preprocessor import Preprocessed, preprocess
from simgpu.cuda_c.text.source import Position, Source, nesting
from simgpu.cuda_c.types import Scalar, Void, leaves, size_of, spelled
from simgpu.errors import KernelCompileError, UnsupportedFeatureError, UsageError


@dataclass
class _Global:
    """A `__constant__` or `__device__` variable of the file."""

    variable: Variable
    initial: NDArray[np.uint8] | None
    readonly: bool
    known: GlobalVariable | None  # to the host
    awaited: bool = False  # has no value until the host gives it one


# Of a block: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
STATIC_SHARED = 48 * 1024
# Variables of a file, and how many bytes they may take: 64 KB of constants (the same table), and as much as a
# host has to spare. Memory for more is allocated by the program.
_ROOMS = ("variables", 1 << 30), ("__constant__ variables", 1 << 16)


class Program:
    """A compiled source.

    Kernels are compiled when the source is; instances of template kernels when first asked for. With
    `lenient` no kernel is compiled, and what cannot be understood is refused only to those who need it.
    """

    def __init__(
        self, source: Source, unit: ast.Unit, text: Preprocessed, contract: bool, lenient: bool
    ) -> None:
        self._file, self._lenient = File(source, {}, typed.Scope(), text, contract), lenient
        self._spaces: dict[str, tuple[str, ...]] = {}  # the namespace of each type and variable
        self._defined: dict[str, ast.SyntaxNode] = {}  # types and variables, by name
        self._globals: list[_Global] = []
        self._room = Counter[str]()
        self._shared: list[tuple[ast.Declarator, set[str]]] = []
        self._compiled: dict[str, CompiledKernel] = {}
        self._refused: dict[str, KernelCompileError] = {}
        self._unread = [function.refusal for function in unit.functions]
        self._unread += [n.error for n in unit.order if isinstance(n, ast.RefusedType)]
        named: list[ast.DeclRefExpr] = []
        own = {function.name for function in unit.functions}
        for node in ast.parts_of([unit.order, unit.functions]):
            if isinstance(node, ast.FunctionDecl):  # members of classes among them
                self._file.called.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.DeclRefExpr) and node.name in own:
                named.append(node)
        bodies = dict[object, ast.FunctionDecl]()
        for function in unit.functions:
            self._file.functions.setdefault(function.name, []).append(function)
            if (twin := bodies.setdefault(_head_of(function), function)) is not function:
                self._fail_twice(function, twin)
            if function.kernel and function.c_linkage and taken_by_cuda(function.name):
                why = f"CUDA has an extern \"C\" function '{function.name}' of its own"
                source.fail(function.at, f'{why}: take another name, or leave out extern "C"')
        for node in unit.order:
            try:
                self._define(node, unit.namespaces.get(id(node), ()))
            except KernelCompileError as error:
                passed = isinstance(error, UnsupportedFeatureError)
                if not lenient and not (passed and _items(node)):
                    raise
                for item in _items(node):
                    self._file.scope.names[item.name] = typed.Refused(error)
        self._known = tuple(g.known for g in self._globals if g.known is not None)
        if lenient:
            return
        self._file.referred = addressed_by_reference(self._file.called)
        take_addresses(self._context(), named)
        # Memory of the file's `__constant__` and `__device__` variables, for the host to set.
        self.variables = self._place_globals()
        for function in unit.functions:
            known = self._file.functions[function.name]
            plain = [f for f in known if f.template is None and f.body is not None]
            if function.kernel and function in plain and len(plain) == 1:
                self._compile_early(function)
        if len(self._refused) == len(self.heads) == 1:
            raise next(iter(self._refused.values()))

    def _compile_early(self, function: ast.FunctionDecl) -> None:
        """Compile a kernel; if it uses what cannot be read, or what only a GPU runs, say so on demand."""
        try:
            self.kernel(function.name)
        except KernelCompileError as error:
            if not isinstance(error, UnsupportedFeatureError) and error not in self._unread:
                raise
            self._refused[function.name] = error

    @property
    def kernels(self) -> Mapping[str, KernelSignature]:
        """The kernels that are compiled, by name; templates as far as they have been asked for."""
        return {kernel.signature.name: kernel.signature for kernel in self._compiled.values()}

    @property
    def heads(self) -> list[ast.FunctionDecl]:
        """All kernels of the file, templates among them: where they have a body, or are declared."""
        of_name = self._file.functions.values()
        kernels = [[f for f in found if f.kernel and f.template != []] for found in of_name]
        made = [([f for f in found if f.body or f.refusal], found) for found in kernels]
        return [f for bodies, found in made for f in bodies or found[:1]]

    def name_of(self, head: ast.FunctionDecl) -> str:
        """The name that means one of `heads`, with its parameters if others have the name, too."""
        if len([f for f in self.heads if f.name == head.name]) == 1 or head.template is not None:
            return head.name
        kinds = [spelled(type_names.param_type(self._context(), p)) for p in head.params]
        return f"{'::'.join([*head.namespace, head.name])}({', '.join(kinds)})"

    def twin(self) -> Program:
        """The same program with variables of its own, as a second module on a device has them."""
        other = object.__new__(Program)
        other.__dict__.update(self.__dict__)
        other.variables = self._place_globals()
        return other

    def passes(self, name: str) -> str:
        """Print the form of a kernel: a line an operation, and beside it what the passes found."""
        _, form, _ = self._lower(name)
        return _told(form, walk(form), self._file.source)

    def _context(self, cuts: bool = False) -> Context:
        """The state with which the compilation of one kernel, or of one item of the file, begins."""
        file = replace(self._file, scope=typed.Scope(self._file.scope))
        return Context(file, RULES, Numbers(slots=len(self._globals)), cuts)

    def _define(self, node: ast.SyntaxNode, around: tuple[str, ...]) -> None:
        c = self._context()
        c.file.scope = c.scope = self._file.scope
        for item in _items(node):
            if self._spaces.setdefault(item.name, around) != around:
                self._twice(item)
                return
            defines = item.name and item.at.line > 0 and _defines(node)
            if defines and (twin := self._defined.setdefault(item.name, item)) is not item:
                self._fail_twice(item, twin)
        if isinstance(node, ast.RefusedType):
            self._file.scope.names[node.name] = typed.Refused(node.error)
            return
        if isinstance(node, ast.Expression):
            c.expression(node)  # a static_assert
        if isinstance(node, ast.StructDef):
            type_names.declare_type(c, node)
        given = node.variables if isinstance(node, ast.StructDef) else node
        if not isinstance(given, ast.Declaration):
            return
        if given is not node and not given.storage & {*heads.PLACED, "typedef"}:
            return  # variables of the host, behind their struct
        for item in given.items:
            self._define_name(c, item, given.storage)

    def _fail_twice(self, node: Any, twin: Any) -> NoReturn:
        where = "{}:{}".format(*self._file.source.place(twin.at.line))
        self._file.source.fail(node.at, f"'{node.name}' is defined twice, first at {where}")

    def _twice(self, item: ast.StructDef | ast.Declarator) -> None:
        """Refuse a type or variable that two namespaces have, where it is used: they are not told apart."""
        try:
            text = f"'{item.name}' in two namespaces: give it two names"
            self._file.source.unsupported(item.at, text)
        except UnsupportedFeatureError as error:
            self._file.scope.names[item.name] = typed.Refused(error)

    def _define_name(self, c: Context, item: ast.Declarator, storage: set[str]) -> None:
        ctype = type_names.resolve_type(c, item.type)
        if "typedef" in storage:
            whole = type_names.array_type(c, ctype, item.dims)
            self._file.scope.names[item.name] = typed.TypeBinding(whole)
            return
        if "__shared__" in storage:
            self._shared.append((item, storage))
            return
        const = item.type.itself("const")
        placed = bool(storage & heads.PLACED)
        if not placed and not item.dims and isinstance(ctype, Scalar):
            if item.init is None:
                self._file.source.fail(item.at, f"'{item.name}' is const and needs a value")
            value = convert(c, evaluated(c, c.expression(item.init), item.init), ctype, item.at)
            if value.constant is None:
                self._file.source.unsupported(item.at, "a constant must be known at compile time")
            self._file.scope.names[item.name] = typed.Number(value)
            return
        whole = declared_type(c, item, ctype, const)
        # To C++ a `__constant__` variable is no const one: who writes to it is told when the kernel runs.
        of, most = _ROOMS["__constant__" in storage]
        self._room[of] += size_of(whole)
        if self._room[of] > most:
            text = f"with '{item.name}', {of} take {self._room[of]:,} bytes: at most {most:,} are there"
            self._file.source.fail(item.at, text)
        unchanging = const or not placed
        variable = Variable(item.name, whole, len(self._globals), memory=True, const=unchanging)
        variable.volatile = item.type.itself("volatile")
        initial, init = None, item.init
        if init is None and c.constructs(whole):
            init = ast.Braces(at=item.at, items=[])
        if init is not None and not self._lenient:
            values = initialise(c, init, whole)
            initial = self._initial(c, values, variable, item.at)
            variable.numbers = known_elements(variable, values)
        self._file.scope.names[item.name] = variable
        constant = "__constant__" in storage
        known = heads.variable_of(item.name, whole, constant) if placed else None
        awaited = constant and init is None
        self._globals.append(_Global(variable, initial, constant or unchanging, known, awaited))

    def _initial(
        self, c: Context, values: list[typed.Expr], variable: Variable, at: Position
    ) -> NDArray[np.uint8]:
        data = np.zeros(size_of(variable.type), np.uint8)
        called = [s.name for s in instructions_below(c.steps) if isinstance(s, Expansion)]
        for name in called:
            own = self._file.called.get(name, [])
            if own and not any(function.constexpr or function.defaulted for function in own):
                text = f"'{variable.name}' is made before any kernel runs, by '{name}'"
                c.fail(at, f"{text}: that has to be constexpr")
        computed: list[Any] | None = [value.constant for value in values]
        if called:
            computed = None if c.aims.placed else computed_early(c, values)
        computed = computed or [None] * len(values)
        pairs = zip(values, computed, strict=True)
        known = [number for value, number in pairs if not isinstance(value.type, Void)]
        for (leaf, offset), number in zip(leaves(variable.type), known, strict=True):
            if number is None or getattr(number, "region", None) is not None:
                self._file.source.unsupported(at, "an initial value must be known at compile time")
            given = (number, leaf.dtype) if isinstance(leaf, Scalar) else (0, np.uint64)  # null
            raw = np.asarray(*given).reshape(1).view(np.uint8)
            data[offset : offset + len(raw)] = raw
        return data

    def _place_globals(self) -> dict[str, GlobalMemory]:
        placed: dict[str, GlobalMemory] = {}
        for item in self._globals:
            name = item.variable.name
            memory = placed[name] = GlobalMemory(size_of(item.variable.type), name)
            if item.initial is not None:
                memory.data[:] = item.initial
            if item.awaited:
                memory.advice = f": set it first, as in kernel.constants['{name}'] = array"
            else:
                memory.mark_written()  # because variables without a value are zero
            memory.readonly = item.readonly
        return placed

    def kernel(self, name: str) -> CompiledKernel:
        """A kernel, or an instance such as `"scale<float, 16>"`, which is compiled when first asked for.

        Raises `KernelCompileError` if there is no such kernel, or the instance cannot be compiled.
        """
        kernel = self._compiled.get(name)
        if kernel is None:
            function, _, canonical = heads.instance_of(self._context(), name)
            kernel = self._compiled.get(canonical)
            if kernel is None:
                with nesting(self._file.source, function.at), _missing_named(self._file.text):
                    kernel = self._compile(function, name)
            self._compiled[name] = kernel
        return kernel

    def head(self, c: Context, name: str) -> tuple[ast.FunctionDecl, typed.Scope, KernelSignature]:
        """A kernel, the scope of its template, and its signature."""
        function, scope, canonical = heads.instance_of(c, name)
        with c.seen_from(scope):
            signature = heads.signature_of(c, function, canonical, self._known)
        return function, scope, signature

    def signature(self, name: str) -> KernelSignature:
        """The signature of a kernel that is not compiled."""
        return self.head(self._context(), name)[2]

    def calls(self, kernel: str) -> set[str]:
        """The names of all functions that a kernel calls, or the functions that it calls."""

        def called(names: set[str]) -> set[str]:
            functions = [self._file.functions.get(name, []) for name in names]
            return {item.name for item in ast.parts_of(functions) if isinstance(item, ast.CallExpr)}

        return grown({heads.instance_of(self._context(), kernel)[0].name}, called)

    def _lower(self, name: str, cuts: bool = False) -> tuple[Context, Form, KernelSignature]:
        """Write the form of a kernel; with `cuts`, again, since threads wait within its expressions."""
        c = self._context(cuts)
        function, scope, signature = self.head(c, name)
        c.trial = not cuts
        try:
            form = lower(c, function, scope, self._shared)
        except NeedsCuts:
            return self._lower(name, True)
        return (c, form, signature) if cuts or not needs_cuts(form) else self._lower(name, True)

    def _compile(self, function: ast.FunctionDecl, name: str) -> CompiledKernel:
        c, form, signature = self._lower(name)
        code = finish(c, form)
        if code.shared_bytes > STATIC_SHARED:
            self._file.source.fail(
                function.at,
                f"'{function.name}' has {code.shared_bytes:,} bytes of static shared memory, and "
                f"{STATIC_SHARED:,} are allowed: make the arrays smaller, or take extern __shared__ memory, "
                "whose size the launch says",
            )
        own = [(g.variable, c.aims.placed.get(g.variable)) for g in self._globals]
        variables = [replace(variable, origin=origin or Origin()) for variable, origin in own]
        named = [v for v, (_, origin) in zip(variables, own, strict=True) if origin is not None]
        below = instructions_below(form.steps)
        asks = any(isinstance(step, Fence) and step.scope == "system" for step in below)
        source = self._file.source

        @cache
        def costs(asks: bool) -> Costs:  # when they are asked for, since one of the two will do
            with nesting(source, function.at):
                return walk(form, asks)

        chosen = cache(partial(chosen_by_data, form.steps))
        kernel = CompiledKernel(signature, source, code, costs, asks, variables, named, chosen)
        if function.bounds is not None:
            bound = cast("ast.Expression", function.bounds.value)
            kernel.most_threads = type_names.integer_constant(c, bound, "a number of threads")
        self._compiled[signature.name] = kernel
        return kernel

    def begin(
        self, name: str, grid: Extent3, block: Extent3, args: Sequence[KernelArgument], **more: Any
    ) -> Execution:
        """Begin a launch of a kernel, or of an instance of a template; `finish` runs it to its end.

        `args` has memory for each pointer and a number for each number. Of `more`, `dynamic_shared` are bytes
        for each block, and `limits` say how far it may go; of `sample`, only the blocks with these numbers
        run and are counted; `find` says what memory of the device is at an address that is of none of the
        arguments. Raises `LaunchConfigError`, `UsageError` or `ArrayDTypeError`.
        """
        kernel = self.kernel(name)
        expected = kernel.signature.parameters
        if len(args) != len(expected):
            raise UsageError(kernel.signature.miscounted(args))
        given = [passed(parameter, arg) for parameter, arg in zip(expected, args, strict=True)]
        return kernel.begin(self.variables, grid, block, given, **more)


@contextmanager
def _missing_named(text: Preprocessed) -> Generator[None]:
    """Name the headers that were not found, below an error which has their absence as a likely cause."""
    try:
        yield
    except KernelCompileError as error:
        known = text.missing and not isinstance(error, UnsupportedFeatureError)
        if known and " not found: " not in str(error):
            error.args = (f"{error}\n    The cause may be{text.not_found}",)
        raise


def _defines(node: ast.SyntaxNode) -> bool:
    """Tell whether what an item of the top level names must not come again."""
    if isinstance(node, ast.StructDef):
        return not node.declared and node.template is None and node.specialises is None
    return isinstance(node, ast.Declaration) and not node.storage & {"typedef", "extern"}


def _head_of(function: ast.FunctionDecl) -> object:
    """Something that is equal of two functions only if one is defined twice."""
    if function.body is None or function.refusal is not None or function.at.line < 0:
        return id(function)
    # Of templates, and of what one is for certain types, the result tells one from another.
    template = None if function.template is None else [*function.template, function.returns]
    head = [[[p.type, p.dims] for p in function.params], template, function.specialises]
    parts = list(ast.parts_of(head))
    words = [[v for v in vars(n).values() if type(v) in (str, bool, int)] for n in parts]
    stars = [[*map(sorted, n.pointers)] for n in parts if isinstance(n, ast.TypeName)]
    return function.name, function.namespace, repr((words, stars))


def _items(node: ast.SyntaxNode) -> Sequence[Any]:
    """The types or variables that an item of the top level defines."""
    return [node] if isinstance(node, ast.StructDef) else getattr(node, "items", ())


def _told(form: Form, costs: Costs, source: Source) -> str:
    """Print the form of a kernel, with the findings of `waiting`, `summing` and `cost` beside it."""
    notes = defaultdict[Instruction, list[str]](list)
    for step in instructions_below(form.steps):
        number = costs.charges[step.point].instructions if isinstance(step, BasicBlock) else 0
        if number:
            notes[step].append(f"{number} instruction{'s' * (number > 1)}")
    places = parks(form.steps, form.sites, source)
    for step, span in places.spans.items():
        last = "" if len(span) == 1 else f" to {span.stop - 1}"
        notes[step].append(f"lanes may wait at place {span.start}{last}")
    for loop, spin in places.spins.items():
        if spin.often:
            notes[loop].append("may spin")
    for loop, found in summing(form.steps).items():
        names = ", ".join(total.variable.name for _, total in found.totals)
        notes[loop].append(f"sums up {names} over {found.counter.name}")
    return printed(form, {step: "; ".join(words) for step, words in notes.items()})


@lru_cache(maxsize=64)  # a large one takes 10 MB
def _compile_cached(source: str, contract: bool) -> Program:
    # Nearly all that is made here is kept, so to look for garbage meanwhile finds none, and doubles the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _read(source, contract)
    finally:
        if collects:
            gc.enable()


def compile_source(source: str, *, contract: bool = False) -> Program:
    """Compile a source of CUDA C; the same text once, and each program with variables of its own.

    With `contract`, `a * b + c` is one operation with one rounding, as NVRTC has it by default; otherwise
    each operation is rounded, as with NVRTC's `-fmad=false`. Raises `KernelCompileError` for what a CUDA
    compiler would refuse too, with line, column and a caret, and `UnsupportedFeatureError` for what only a
    GPU would run.
    """
    return _compile_cached(source, contract).twin()


@lru_cache(maxsize=256)
def parse_signature(source: str, name: str) -> KernelSignature:
    """Parameters of a kernel, from its head alone.

    Works also where the body holds what the interpreter refuses. Reading the same head twice costs nothing.

    `name` may be that of an instance of a template. Raises `KernelCompileError` if there is no such kernel,
    or its head cannot be read.
    """
    return _read(source, lenient=True, heads_only=True).signature(name)


@lru_cache(maxsize=256)
def meets_as_a_grid(source: str, name: str) -> bool:
    """Tell whether a kernel, or a function that it calls, has a barrier of the whole grid.

    A driver has to launch such a kernel in a way of its own. Raises what `parse_signature` does.
    """
    return "this_grid" in source and "this_grid" in _read(source, lenient=True).calls(name)


def _read(
    source: str, contract: bool = False, *, lenient: bool = False, heads_only: bool = False
) -> Program:
    text = Source(source)
    prepared = preprocess(text)
    with nesting(text), _missing_named(prepared):
        unit = parse(text, prepared, heads_only=heads_only)
        return Program(text, unit, prepared, contract, lenient)
