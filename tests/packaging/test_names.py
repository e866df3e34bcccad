"""A name occurs once, so that searching for it leads home."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tools import PACKAGES, ROOT

# What occurs more than once, and why it may. There are five kinds, and no sixth.
# CUDA's own words, of the tutor's protocol and of simgpu, which is used by itself.
CUDA = {"Device", "Event", "Graph", "Stream"}
LIKE_CUPY = {  # the public names of simgpu are CuPy's, and so are ours
    "asarray", "current_device", "empty", "find_spec", "save_spec", "use", "zeros"
}  # fmt: skip
COMMANDS = {"COMMANDS", "add_arguments", "main", "run"}  # what each module of a command has
TABLES = {"CUDA_C", "EXERCISES", "TABLE", "reference"}  # what each module of a family has
TYPE_VARIABLES = set("ABCDEKPRSTU")
MAY = CUDA | LIKE_CUPY | COMMANDS | TABLES | TYPE_VARIABLES

MOST_FILES = 8
# Methods of a protocol, and what the interpreter's closures are called, by their type `Evaluate`.
METHODS = {
    "_enqueue", "check", "close", "enqueue", "evaluate", "launch", "load", "main", "read", "run"
}  # fmt: skip


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
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        names += [node.name] if isinstance(node, FUNCTION | ast.ClassDef) else []
        yield from (name for name in names if name[0] != "_" and name not in MAY)


@pytest.mark.parametrize("names", [classes, public])
def test_no_class_and_no_public_name_is_defined_twice(names: Names) -> None:
    assert repeated(names) == {}


def test_a_function_that_many_files_define_is_part_of_a_protocol() -> None:
    assert repeated(functions, MOST_FILES) == {}
