"""A name occurs once, so that searching for it leads home."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tools import PACKAGES, ROOT

# What occurs more than once, and why it may: at most five names.
CUPY = "CuPy's own word, in the tutor's protocol and in simgpu, which people use by itself"
MAY = {"Device": CUPY, "Event": CUPY, "Graph": CUPY, "Stream": CUPY, "asarray": CUPY}

MOST_FILES = 8
# Methods of a protocol.
METHODS = {
    "enqueue": "what a device, a replay and a communicator do with work, and what a test puts in their place",
    "evaluate": "what computes a value: the interpreter's closures of the type `Evaluate`",
}


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax trees of all modules of the packages, by path."""
    files = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    return {str(Path(f).relative_to(ROOT)): ast.parse(f.read_text("utf-8")) for f in files}


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
Names = Callable[[ast.Module], Iterator[str]]


def repeated(names: Names, most: int = 1) -> dict[str, list[str]]:
    """Names that more files define than may."""
    found = defaultdict[str, set[str]](set)
    for path, tree in trees().items():
        for name in names(tree):
            found[name].add(path)
    return {name: sorted(files) for name, files in found.items() if len(files) > most}


def classes(tree: ast.Module) -> Iterator[str]:
    return (n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name not in MAY)


def functions(tree: ast.Module) -> Iterator[str]:
    found = (node.name for node in ast.walk(tree) if isinstance(node, FUNCTION))
    return (name for name in found if name[:2] != "__" and name not in METHODS)


def public(tree: ast.Module) -> Iterator[str]:
    """What a module makes, but for its variables of types, which stand for no thing."""
    for node in tree.body:
        made = (
            node.value.func
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            else None
        )
        if isinstance(made, ast.Name) and made.id in ("ParamSpec", "TypeVar"):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        names += [node.name] if isinstance(node, FUNCTION | ast.ClassDef) else []
        yield from (name for name in names if name[0] != "_" and name not in MAY)


@pytest.mark.parametrize("names", [classes, public])
def test_no_class_and_no_public_name_is_defined_twice(names: Names) -> None:
    assert len(MAY) <= 5
    assert repeated(names) == {}


def test_a_function_that_many_files_define_is_part_of_a_protocol() -> None:
    assert repeated(functions, MOST_FILES) == {}
