"""What a piece of source does to variables, as far as their names tell."""

from __future__ import annotations

from asyncgpu_tutor.cuda_c.syntax.ast import (
    Assign,
    Call,
    Expression,
    Increment,
    Index,
    Member,
    Name,
    Unary,
    parts_of,
)

__all__ = ["addressed_names", "assigned_names"]


def assigned_names(node: object) -> set[str]:
    """Variables that something below a node may change; arguments of calls are among them."""
    found: set[str] = set()
    for item in parts_of(node):
        targets: list[Expression] = []
        if isinstance(item, Assign):
            targets = [item.target]
        elif isinstance(item, Increment):
            targets = [item.operand]
        elif isinstance(item, Call):
            targets = item.arguments
        for target in targets:
            inner = target
            while isinstance(inner, (Member, Index)):
                inner = inner.base
            if isinstance(inner, Name):
                found.add(inner.name)
    return found


def addressed_names(node: object) -> set[str]:
    """Variables whose address is taken somewhere below a node.

    By name, so that a variable is put in memory too if only its namesake needs to be.
    """
    found: set[str] = set()
    for item in parts_of(node):
        if isinstance(item, Unary) and item.op == "&":
            inner = item.operand
            while isinstance(inner, Member):  # an array is in memory anyway
                inner = inner.base
            if isinstance(inner, Name):
                found.add(inner.name)
    return found
