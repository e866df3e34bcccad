"""Compiling a source: what the file declares, then kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.compile.lower_calls import LowerCalls, addressed_names
from asyncgpu_tutor.cuda_c.compile.signature import Signature, instance_of, signature_of
from asyncgpu_tutor.cuda_c.compile.typed import (
    Constant,
    Execute,
    Expr,
    Scope,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.lockstep.team import Dim, Limits
from asyncgpu_tutor.cuda_c.memory.allocation import GlobalMemory
from asyncgpu_tutor.cuda_c.run.arguments import Argument
from asyncgpu_tutor.cuda_c.run.kernel import CompiledKernel, LaunchResult
from asyncgpu_tutor.cuda_c.syntax.ast import (
    Braces,
    Declaration,
    Declarator,
    Function,
    StructDef,
    Unit,
)
from asyncgpu_tutor.cuda_c.syntax.parser import parse
from asyncgpu_tutor.cuda_c.text.preprocessor import preprocess
from asyncgpu_tutor.cuda_c.text.source import Position, Source
from asyncgpu_tutor.cuda_c.types import Array, Pointer, Scalar, leaves, size_of

__all__ = ["Program", "compile_source"]


TEMPORARIES = 8  # registers that a kernel needs besides its variables
MOST_REGISTERS = 255  # of a thread: CUDA C++ Programming Guide, technical specifications


@dataclass
class _Global:
    """A `__constant__` or `__device__` variable of the file."""

    variable: Variable
    initial: NDArray[np.uint8] | None
    readonly: bool


class Program:
    """A compiled source.

    Kernels are compiled when the source is; instances of template kernels when first asked for.
    """

    def __init__(self, source: Source, unit: Unit, headers: frozenset[str], fmad: bool) -> None:
        self._source = source
        self._fmad = fmad
        self._headers = headers
        self._functions: dict[str, list[Function]] = {}
        self._scope = Scope()
        self._global_list: list[_Global] = []
        self._shared_list: list[tuple[Declarator, set[str]]] = []
        self._compiled: dict[str, CompiledKernel] = {}
        self._signatures: dict[str, Signature] = {}
        self._memory: dict[str, GlobalMemory] = {}
        self._define(unit)
        for functions in self._functions.values():
            for function in functions:
                if function.kernel and function.template is None and function.body is not None:
                    lowering = self._lowering()
                    self._compile(function, lowering.file_scope, function.name, lowering)

    @property
    def kernels(self) -> Mapping[str, Signature]:
        """The kernels that are compiled, by name; templates as far as they have been asked for."""
        return MappingProxyType(self._signatures)

    @property
    def variables(self) -> Mapping[str, GlobalMemory]:
        """Memory of the file's `__constant__` and `__device__` variables, for the host to set."""
        return MappingProxyType(self._memory)

    def twin(self) -> Program:
        """The same program with variables of its own, as a second module on a device has them."""
        other = object.__new__(Program)
        other.__dict__.update(self.__dict__)
        other._memory = {}
        other._place_globals()
        return other

    def instantiate(self, name: str) -> Signature:
        """Parameters of a kernel, or of an instance such as `"scale<float, 16>"`.

        Raises
        ------
        KernelCompileError
            If there is no such kernel, or the instance cannot be compiled.
        """
        return self._signatures[self._find(name).name]

    # -- compiling

    def _lowering(self) -> LowerCalls:
        scope = Scope(self._scope)
        lowering = LowerCalls(self._source, self._functions, scope, self._fmad)
        lowering.has_half = "cuda_fp16.h" in self._headers
        lowering.slots = len(self._global_list)
        for item, storage in self._shared_list:
            volatile = lowering.top_volatile(item.type)
            ctype = lowering.resolve(item.type)
            lowering.file_entry.append(lowering.shared_variable(item, ctype, storage, volatile))
        return lowering

    def _define(self, unit: Unit) -> None:
        for node in unit.order:
            lowering = self._lowering()
            if isinstance(node, StructDef):
                if node.template is not None:
                    self._source.unsupported(node.at, "templates of structs are not supported")
                self._scope.names[node.name] = TypeBinding(lowering.define_struct(node))
            elif isinstance(node, Declaration):
                self._define_names(node, lowering)
        for function in unit.functions:
            self._functions.setdefault(function.name, []).append(function)
        self._place_globals()

    def _define_names(self, node: Declaration, lowering: LowerCalls) -> None:
        for item in node.items:
            ctype = lowering.resolve(item.type)
            if "typedef" in node.storage:
                self._scope.names[item.name] = TypeBinding(ctype)
                continue
            if "__shared__" in node.storage:
                self._shared_list.append((item, node.storage))
                continue
            const = lowering.top_const(item.type)
            placed = bool(node.storage & {"__constant__", "__device__", "__managed__"})
            if not placed and not item.dims and isinstance(ctype, Scalar):
                if item.init is None:
                    self._source.fail(item.at, f"'{item.name}' is const and needs a value")
                value = lowering.convert(lowering.expression(item.init), ctype, item.at)
                if value.constant is None:
                    self._source.unsupported(item.at, "a constant must be known at compile time")
                self._scope.names[item.name] = Constant(value)
                continue
            whole = lowering.array_type(ctype, item.dims, const)
            if item.dims and item.dims[0] is None and isinstance(item.init, Braces):
                whole = Array(ctype, len(item.init.items), const)
            readonly = "__constant__" in node.storage or const or not placed
            variable = Variable(
                item.name, whole, len(self._global_list), memory=True, const=readonly
            )
            initial = None
            if item.init is not None:
                initial = self._initial(lowering.initialise(item.init, whole), variable, item.at)
            self._scope.names[item.name] = variable
            self._global_list.append(_Global(variable, initial, readonly))

    def _initial(self, values: list[Expr], variable: Variable, at: Position) -> NDArray[np.uint8]:
        data = np.zeros(size_of(variable.type), np.uint8)
        for (leaf, offset), value in zip(leaves(variable.type), values, strict=True):
            if value.constant is None or not isinstance(leaf, Scalar):
                self._source.unsupported(at, "an initial value must be known at compile time")
            raw = np.asarray(value.constant, leaf.dtype).reshape(1).view(np.uint8)
            data[offset : offset + leaf.size] = raw
        return data

    def _place_globals(self) -> None:
        for item in self._global_list:
            name = item.variable.name
            memory = GlobalMemory(size_of(item.variable.type), name)
            if item.initial is not None:
                memory.data[:] = item.initial
            memory.mark_written()  # without a value they are zero
            memory.readonly = item.readonly
            self._memory[name] = memory

    def _find(self, name: str) -> CompiledKernel:
        kernel = self._compiled.get(name)
        if kernel is None:
            lowering = self._lowering()
            function, scope, canonical = instance_of(self._source, self._functions, lowering, name)
            kernel = self._compiled.get(canonical)
            if kernel is None:
                kernel = self._compile(function, scope, canonical, lowering)
            self._compiled[name] = kernel
        return kernel

    def _compile(
        self, function: Function, scope: Scope, name: str, lowering: LowerCalls
    ) -> CompiledKernel:
        lowering.scope = names = Scope(scope)
        signature = signature_of(self._source, function, lowering, name)
        addressed = addressed_names(function.body)
        lowering.addressed = addressed
        parameters: list[Variable] = []
        entry: list[Execute] = list(lowering.file_entry)
        for param in function.params:
            if param.type.reference:
                self._source.unsupported(param.at, "references as kernel parameters")
            ctype = lowering.param_type(param)
            variable = Variable(
                param.name, ctype, lowering.new_slot(), const=lowering.top_const(param.type)
            )
            variable.rank = lowering.ranks.parameter()
            variable.parameter = True
            if isinstance(ctype, Pointer):
                variable.origin.place(near=False)
            parameters.append(variable)
            if param.name in addressed and not isinstance(ctype, Pointer):
                slot = variable.slot
                value = Expr(ctype, lambda t, m, slot=slot: t.slots[slot], param.at)
                variable = Variable(
                    param.name, ctype, lowering.new_slot(), memory=True, thread=True
                )
                variable.origin.place(near=True)
                entry.append(lowering.parameter_entry(variable, value))
            if param.name:
                if param.name in names.names:
                    self._source.fail(param.at, f"two parameters are called '{param.name}'")
                names.names[param.name] = variable
        assert function.body is not None
        body = lowering.sequence(function.body.body)
        lowering.finish_costs()
        kernel = CompiledKernel(
            name,
            parameters,
            entry,
            body,
            lowering.slots,
            lowering.exits,
            lowering.segments,
            lowering.sites,
            lowering.shared_total,
            min(TEMPORARIES + lowering.most_words, MOST_REGISTERS),
            [g.variable for g in self._global_list],
        )
        self._compiled[name] = kernel
        self._signatures[name] = signature
        return kernel

    # -- running

    def launch(
        self,
        name: str,
        grid: Dim,
        block: Dim,
        args: Sequence[Argument],
        *,
        dynamic_shared: int = 0,
        limits: Limits | None = None,
        sample: Sequence[int] | None = None,
    ) -> LaunchResult:
        """Run a kernel to its end.

        Parameters
        ----------
        name : str
            Of the kernel; of an instance of a template as `"scale<float, 16>"`.
        grid, block : tuple of int
            Blocks of the grid, threads of a block: (x, y, z).
        args : sequence
            One for each parameter: memory for a pointer, a number for a number.
        dynamic_shared : int
            Bytes of `extern __shared__` memory.
        limits : Limits, optional
            What is checked, and when to give up.
        sample : sequence of int, optional
            Numbers of the only blocks that are to run. Counts are of these.

        Raises
        ------
        LaunchConfigError
            A grid or block that no GPU takes.
        UsageError, ArrayDTypeError
            Arguments that do not fit the parameters.
        KernelFault
            One of its subclasses, if the kernel does what no kernel may do. What it wrote until
            then stays written.
        """
        return self._find(name).launch(
            self._source,
            self._memory,
            grid,
            block,
            args,
            dynamic_shared,
            limits or Limits(),
            sample,
        )


@lru_cache(maxsize=256)
def _compile_cached(
    source: str, defines: tuple[tuple[str, str], ...], filename: str, fmad: bool
) -> Program:
    text = Source(source, filename)
    prepared = preprocess(text, dict(defines))
    return Program(text, parse(text, prepared), prepared.headers, fmad)


def compile_source(
    source: str,
    *,
    defines: Mapping[str, str] | None = None,
    filename: str = "kernel.cu",
    fmad: bool = True,
) -> Program:
    """Compile a source of CUDA C.

    Parameters
    ----------
    source : str
        Its text.
    defines : mapping of str to str, optional
        Macros, as by `-DNAME=VALUE`.
    filename : str
        What messages call it.
    fmad : bool
        Fuse `a * b + c` into one operation with one rounding, as NVRTC does by default, so that a
        product of matrices comes out as on a GPU to the last bit. NVRTC's `-fmad=false` is False.

    Returns
    -------
    Program
        Compiling the same text twice costs nothing; each program has variables of its own.

    Raises
    ------
    KernelCompileError
        What a CUDA compiler would refuse too; with line, column and a caret.
    UnsupportedFeatureError
        What a GPU would run, and this interpreter does not.
    """
    given = tuple(sorted((k, str(v)) for k, v in (defines or {}).items()))
    return _compile_cached(source, given, filename, fmad).twin()
