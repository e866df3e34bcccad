"""The variables that a piece of source changes, as far as their names tell."""

from __future__ import annotations

from collections.abc import Callable

from simgpu.cuda_c.syntax import ast


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


def addressed_names(node: object) -> set[str]:
    """Names of the variables whose address is taken somewhere below a node."""
    found: set[str] = set()
    for item in ast.parts_of(node):
        if isinstance(item, ast.Unary) and item.op == "&":
            inner = item.operand
            # An index needs nothing, since an array is in memory anyway.
            while isinstance(inner, ast.Member):
                inner = inner.base
            if isinstance(inner, ast.Name):
                found.add(inner.name)
    return found


def grown(names: set[str], more: Callable[[set[str]], set[str]]) -> set[str]:
    """Add to a set of names what `more` finds from it, until that is nothing new."""
    while not (found := more(names)) <= names:
        names = names | found
    return names
