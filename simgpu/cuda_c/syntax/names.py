"""The variables that a piece of source changes, as far as their names tell."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeAlias, TypeVar

from simgpu.cuda_c.syntax import ast

T = TypeVar("T")
Referred: TypeAlias = Set[tuple[str, int]]  # see `addressed_by_reference`


def assigned_names(node: object) -> set[str]:
    """Variables that something below a node may change; arguments of calls are among them."""
    targets: list[ast.Expression | None] = []
    for item in ast.parts_of(node):
        if isinstance(item, ast.AssignExpr):
            targets.append(item.target)
        elif isinstance(item, ast.Increment):
            targets.append(item.operand)
        elif isinstance(item, ast.CallExpr):
            targets += [*item.arguments, item.object]
    return _variables(targets, (ast.Member, ast.Index))


def addressed_names(node: object, referred: Referred) -> set[str]:
    """Names of the variables whose address is taken somewhere below a node, or in what it calls."""
    taken: list[ast.Expression] = []
    for item in ast.parts_of(node):
        if isinstance(item, ast.Unary) and item.op == "&":
            taken += _sides(item.operand)
        elif isinstance(item, ast.Declarator) and isinstance(item.init, ast.Conditional):
            taken += _sides(item.init) if item.type.reference else []
        elif isinstance(item, ast.CallExpr):
            taken += [a for k, a in enumerate(item.arguments) if (item.name, k) in referred]
    # An index needs nothing, since an array is in memory anyway.
    return _variables(taken, (ast.Member,))


def _sides(place: ast.Expression) -> list[ast.Expression]:
    """The two places of which `test ? a : b` is one, or the only one."""
    if not isinstance(place, ast.Conditional):
        return [place]
    return [*_sides(place.yes), *_sides(place.no)]


def _variables(
    places: Iterable[ast.Expression | None], within: tuple[type[ast.Member | ast.Index], ...]
) -> set[str]:
    """The names of the variables that these places are, or lie `within`."""
    found: set[str] = set()
    for place in places:
        whole = place
        while isinstance(whole, within):
            whole = whole.base
        if isinstance(whole, ast.DeclRefExpr):
            found.add(whole.name)
    return found


def addressed_by_reference(functions: Mapping[str, Sequence[ast.FunctionDecl]]) -> Referred:
    """The parameters that are references and whose address a function takes, by its name and number."""
    candidates = [
        (function, [(k, p.name) for k, p in enumerate(function.params) if p.type.reference])
        for several in functions.values()
        for function in several
    ]

    def more(known: set[tuple[str, int]]) -> set[tuple[str, int]]:
        taken = [(f.name, p, addressed_names(f.body, known)) for f, p in candidates if p]
        return {(name, k) for name, params, names in taken for k, p in params if p in names}

    return grown(set[tuple[str, int]](), more)


def grown(names: set[T], more: Callable[[set[T]], set[T]]) -> set[T]:
    """Add to a set what `more` finds from it, until that is nothing new."""
    while not (found := more(names)) <= names:
        names = names | found
    return names
