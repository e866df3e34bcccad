"""The variables that a piece of source changes, as far as their names tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from simgpu.cuda_c.syntax import ast

T = TypeVar("T")
Referred: TypeAlias = Mapping[
    str, set[int]
]  # by the name of a function: see `addressed_by_reference`


def assigned_names(node: object) -> set[str]:
    """Variables that something below a node may change; arguments of calls are among them."""
    found: set[str] = set()
    for item in ast.parts_of(node):
        targets: list[ast.Expression] = []
        if isinstance(item, ast.Assign):
            targets = [item.target]
        elif isinstance(item, ast.Increment):
            targets = [item.operand]
        elif isinstance(item, ast.Call):
            targets = [*item.arguments, *([item.object] if item.object else [])]
        for target in targets:
            inner = target
            while isinstance(inner, (ast.Member, ast.Index)):
                inner = inner.base
            if isinstance(inner, ast.Name):
                found.add(inner.name)
    return found


def addressed_names(node: object, referred: Referred) -> set[str]:
    """Names of the variables whose address is taken somewhere below a node, or in what it calls."""
    found: set[str] = set()
    for item in ast.parts_of(node):
        taken: list[ast.Expression] = []
        if isinstance(item, ast.Unary) and item.op == "&":
            taken = [item.operand]
        elif isinstance(item, ast.Call) and item.name in referred:
            taken = [a for k, a in enumerate(item.arguments) if k in referred[item.name]]
        for place in taken:
            inner = place
            # An index needs nothing, since an array is in memory anyway.
            while isinstance(inner, ast.Member):
                inner = inner.base
            if isinstance(inner, ast.Name):
                found.add(inner.name)
    return found


def addressed_by_reference(functions: Mapping[str, Sequence[ast.Function]]) -> Referred:
    """The parameters, by their numbers, that are references and whose address a function takes."""
    referred: dict[str, set[int]] = {}
    candidates = [
        function
        for several in functions.values()
        for function in several
        if any(param.type.reference for param in function.params)
    ]
    more = True
    while more:
        more = False
        for function in candidates:
            names = addressed_names(function.body, referred)
            for number, param in enumerate(function.params):
                known = referred.get(function.name, set())
                if param.type.reference and param.name in names and number not in known:
                    referred[function.name] = known | {number}
                    more = True
    return referred


def grown(names: set[T], more: Callable[[set[T]], set[T]]) -> set[T]:
    """Add to a set what `more` finds from it, until that is nothing new."""
    while not (found := more(names)) <= names:
        names = names | found
    return names
