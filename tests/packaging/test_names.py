"""A name occurs once, so that searching for it leads home."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.tools import PACKAGES, ROOT

# What occurs more than once, and why it may. There are five kinds, and no sixth.
PROTOCOL = {  # what a device is, and both of its devices: the verbs and nouns of `devices/protocol.py`
    "Communicator", "Device", "Event", "Graph", "Machine", "Memory", "Replay", "Stream"
}  # fmt: skip
LIKE_CUPY = {  # the public names of simgpu are CuPy's, and so are ours
    "asarray", "current_device", "empty", "find_spec", "save_spec", "use", "zeros"
}  # fmt: skip
COMMANDS = {"COMMANDS", "add_arguments", "main", "run"}  # what each module of a command has
TABLES = {"CUDA_C", "EXERCISES", "TABLE", "reference"}  # what each module of a family has
TYPE_VARIABLES = set("ABCDEKPRSTU")
MAY = PROTOCOL | LIKE_CUPY | COMMANDS | TABLES | TYPE_VARIABLES

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


def repeated(found: dict[str, set[str]], most: int = 1) -> dict[str, list[str]]:
    """Names that more files define than may."""
    return {name: sorted(files) for name, files in found.items() if len(files) > most}


def test_no_class_has_the_name_of_another() -> None:
    found = defaultdict[str, set[str]](set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in MAY:
                found[node.name].add(path)

    assert repeated(found) == {}


def test_no_public_name_is_defined_twice() -> None:
    found = defaultdict[str, set[str]](set)
    for path, tree in trees().items():
        for node in tree.body:
            names: list[str] = []
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            for name in names:
                if not name.startswith("_") and name not in MAY:
                    found[name].add(path)

    assert repeated(found) == {}


def test_a_function_that_many_files_define_is_part_of_a_protocol() -> None:
    found = defaultdict[str, set[str]](set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name].add(path)
    special = {name for name in found if name.startswith("__")}

    assert set(repeated(found, MOST_FILES)) - special - METHODS == set()
