"""`import asyncgpu_tutor as agt` offers the names that the pages use, and no others."""

import ast
import importlib
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import asyncgpu_tutor as agt
import simgpu
from asyncgpu_tutor.devices.protocol import Device
from tests.tools import ROOT, page, python, tool

PUBLIC = sorted(agt.__all__)


def test_completion_shows_the_public_names_and_nothing_else() -> None:
    assert dir(agt) == PUBLIC
    assert 40 < len(PUBLIC) < 65, "more than anybody reads through"
    for name in PUBLIC:
        value = getattr(agt, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert inspect.getdoc(value), f"{name} is not documented"
    with pytest.raises(AttributeError, match="'asyncgpu_tutor' has no attribute 'zipp'"):
        _ = agt.zipp  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", [agt, simgpu])
def test_type_checkers_are_told_where_each_name_is_loaded_from(package: Any) -> None:
    stub = page(f"{package.__name__}/__init__.pyi")
    assert stub == tool("stub").stub(package), "python tools/stub.py writes it again"
    told = {
        alias.asname or alias.name: (f"{node.module}", alias.name)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(told) == sorted(package.__all__)
    for name, (module, attribute) in told.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), attribute)


def test_every_way_to_import_gives_the_same() -> None:
    everything: dict[str, object] = {}
    exec("from asyncgpu_tutor import *", everything)
    exec("from asyncgpu_tutor import zip as ours", everything)
    assert {name: everything[name] for name in PUBLIC} == {n: getattr(agt, n) for n in PUBLIC}
    assert everything["ours"] is agt.zip
    assert pickle.loads(pickle.dumps(agt.SingleStream)) is agt.SingleStream


def test_a_room_that_is_imported_hides_no_public_name() -> None:
    """The import system makes a room an attribute of the package, over whatever is there."""
    paths = Path(agt.__file__).parent.iterdir()
    hidden = {path.stem for path in paths if path.suffix in {"", ".py"}} & set(PUBLIC)
    assert all(inspect.ismodule(getattr(agt, name)) for name in hidden)


def test_the_pages_and_the_package_have_the_same_names() -> None:
    places = ("README.md", "CHANGELOG.md", "docs/*.md", "course/*.py")
    pages = [path for place in places for path in ROOT.glob(place)]
    text = "\n".join(path.read_text("utf-8") for path in pages)
    words = set(re.findall(r"\w+", text))

    for name in set(PUBLIC) - words:
        told = inspect.getdoc(getattr(agt, name)) or ""
        assert f"agt.{name}" in told, f"show {name} in use: in its docstring, or on a page"
    assert set(re.findall(r"\bagt\.([a-zA-Z]\w*)", text)) - set(PUBLIC) == set()
    types = set(re.findall(r"\bagt\.types\.(\w+)", text))
    assert types - set(agt.types.__all__) == set()


def things() -> dict[str, object]:
    """The objects that a program gets its hands on, by the words of the glossary."""
    x, y = agt.ones((8,)).sync(), agt.zeros((8,)).sync()
    copy = agt.memcpy(y.borrow(), x.borrow())
    return {
        "an operation": agt.value(1), "an array": x, "a partition": y.borrow().partition(8),
        "a launch of a kernel": agt.relu(8, agt.ones(8), agt.zeros(8).partition(8)),
        "a future": agt.value(1).into_future(), "a prepared pipeline": copy.prepare(),
        "a graph": copy.graph_on(agt.create_stream()),
        "a server": agt.Server(lambda slot: agt.h2d(slot).to_host(), 8),
    }  # fmt: skip


def test_completion_shows_what_stands_in_the_glossary(sim: Device) -> None:
    _, _, table = page("docs/glossary.md").partition("## What `<TAB>` shows")
    rows = dict(re.findall(r"^\| (an? [\w ]+) \| (.*) \|$", table, flags=re.MULTILINE))
    shown = {name: {n for n in dir(one) if n[0] != "_"} for name, one in things().items()}
    shown["a launch of a kernel"] -= shown["an operation"] - {"label"}
    assert {name: set(re.findall(r"`(\w+)`", rows[name])) for name in shown} == shown


OWNERS = {
    "op": agt.DeviceOp, "x": agt.DeviceArray, "stream": agt.types.Stream, "graph": agt.CudaGraph,
    "ranges": agt.ranges, "types": agt.types, "group": agt.types.Group,
}  # fmt: skip


def test_what_the_glossary_calls_ours_is_there() -> None:
    tables = page("docs/glossary.md").partition("## What others call it")[2]
    rows = [line.split("|") for line in tables.splitlines() if line.startswith("|")]
    ours = {words for row in rows for words in re.findall(r"`([^`]+)`", row[1])}
    assert {len(row) for row in rows} == {7}
    assert len(ours) > 25
    for words in ours - {"await op", "kernel(..., grid=, block=)"}:
        owner, _, name = re.findall(r"[\w.]+", words)[0].rpartition(".")
        assert hasattr(OWNERS[owner] if owner else agt, name), words


def test_types_are_classes_that_no_program_makes_by_name() -> None:
    assert agt.types.__all__ == sorted(agt.types.__all__)
    assert all(inspect.isclass(getattr(agt.types, name)) for name in agt.types.__all__)
    assert set(agt.types.__all__) & set(PUBLIC) == set()


@pytest.mark.parametrize(("argv", "kind"), [(["-m"], ""), (["x.py"], "ImportError: ")])
def test_an_older_python_is_told_so_in_a_sentence(argv: list[str], kind: str) -> None:
    """In a clone, where pip has refused nothing."""
    ast.parse(page("asyncgpu_tutor/__init__.py"), feature_version=(3, 8))
    older = f"import sys; sys.version_info, sys.argv = (3, 10, 1), {argv}; import asyncgpu_tutor"
    ran = python("-c", older, check=False)
    said = ran.stderr.splitlines()[-1]
    assert said == f"{kind}asyncgpu_tutor needs Python 3.11 or newer, and this is 3.10"
    assert ran.returncode == 1
