"""Each notebook is what its source in course/ gives, and sources that are wrong are refused."""

import ast
import json
import re
import sys
from pathlib import Path

import nbformat
import pytest

from tests.tools import ROOT, tool

TOOL = tool("build_notebooks")


def test_what_is_made_from_the_sources_is_what_they_say_byte_for_byte() -> None:
    built = dict(TOOL.products(ROOT))
    stored = [
        *(path for folder in TOOL.FOLDERS.values() for path in (ROOT / folder).glob("*.ipynb")),
        *(ROOT / TOOL.ANSWERS).iterdir(),
        *(ROOT / TOOL.GUESSES).iterdir(),
    ]
    assert ROOT / "notebooks/00_start_here.ipynb" in built  # where `make lab` opens the course
    assert sorted(stored) == sorted(built)
    for path, text in built.items():
        assert path.read_bytes() == text.encode(), f"{path.name}: run make notebooks-build"


@pytest.mark.parametrize("page", ["14_gallery", "14b_more_rooms"])
def test_a_reader_of_the_gallery_may_begin_with_any_room(page: str) -> None:
    assert tool("course_rooms").borrowed(ROOT / f"course/{page}.py") == []


SOURCE = '''"""For readers of the source."""

# %% [markdown] id=title
# # Title
#
# Text with `# %%` in it.

# %% id=first tags=one,two
x = await op  # a comment stays


# another

# %% [markdown] id=exercise
# Do it.
# %% id=answer starter
y = ...
# %% id=answer solution
y = 1
# %% id=answer hints
# One.
#
# Two.
# %% id=answer explanation
# Because.
'''
WRONG = '# %% id=answer cause="2 is not 1"\ny = 2\n'


def cells_of(text: str) -> list[tuple[str, str, str, list[str]]]:
    cells = nbformat.reads(text, as_version=4)["cells"]
    return [(c["id"], c["cell_type"], c["source"], c["metadata"].get("tags", [])) for c in cells]


TIMELINE = re.compile(r"(?<!axes)(?<!analysis)\.plot\(|\bcompare_timelines\(")


def _last(code: str) -> ast.stmt:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return compile(code, "cell", "exec", flags).body[-1]


def _ends_in_a_verdict(code: str) -> bool:
    """Or in a name, for what is shown as long as the exercise above is open."""
    last = _last(code)
    shown = isinstance(last, ast.Expr)
    return shown and (isinstance(last.value, ast.Name) or ".reveal(" in ast.unparse(last))


def _ends_in_a_timeline(code: str) -> bool:
    last = _last(code)
    if isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef):  # which a later cell calls
        last = last.body[-1]
    shown = ast.unparse(last)
    told = shown.startswith("reveal(")  # which has the picture
    return isinstance(last, ast.Expr | ast.Return) and (told or bool(TIMELINE.search(shown)))


# A notebook shows what its last line gives, and nothing of the lines before it. A timeline brings words for
# those who cannot see it, and a cell that draws with matplotlib gives them to `shown`.
SHOWN = {
    "a timeline": (TIMELINE, _ends_in_a_timeline),
    "the answer to a prediction": (re.compile(r"\.reveal\("), _ends_in_a_verdict),
    "a picture": (re.compile(r"\bplt\.(?!rc)|analysis\.plot\("), re.compile(r"\bshown\(").search),
}
CHAPTERS = sorted((ROOT / "course").glob("*.py"))


@pytest.mark.parametrize("what", SHOWN)
@pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)
def test_it_is_shown_and_in_words(source: Path, what: str) -> None:
    pattern, right = SHOWN[what]
    cells = [cell for cell in TOOL.chapter(source)[0] if cell.kind == "code"]
    assert [c.id for c in cells if pattern.search(c.text) and not right(c.text)] == []


def test_cells_keep_their_order_text_ids_and_tags_and_a_solution_differs_in_the_answers() -> None:
    cells = TOOL.parse(SOURCE, "s.py")
    learner, solved = (cells_of(TOOL.build(cells, who, "s.py")) for who in ("starter", "solution"))
    assert learner == [
        ("title", "markdown", "# Title\n\nText with `# %%` in it.", []),
        ("first", "code", "x = await op  # a comment stays\n\n\n# another", ["one", "two"]),
        ("exercise", "markdown", "Do it.", []),
        ("answer", "code", "y = ...", []),
    ]
    assert solved == [*learner[:-1], ("answer", "code", "y = 1", [])]


def test_a_cell_that_only_asserts_is_folded_and_no_other_is() -> None:
    source = "# %% id=shown tags=one\nx = 1\n# %% id=claims tags=asserts,one\nassert x == 1\n"
    shown, claims = json.loads(TOOL.build(TOOL.parse(source, "s.py"), "starter", "s.py"))["cells"]
    assert claims["metadata"] == {"tags": ["asserts", "one"], "jupyter": {"source_hidden": True}}
    assert shown["metadata"] == {"tags": ["one"]}


def made(source: str) -> None:
    cells, _ = TOOL.guesses_apart(TOOL.parse(source, "s.py"), "s.py")
    TOOL.build(cells, "starter", "s.py")
    TOOL.answers(cells, "s.py")


PARTLY = "# %% id=answer starter\ny = ...\n# %% id=answer hints\n# One.\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("# %% id=a told\n# T\n", "a: its `guess` comes once, and before its `told`"),
        ("# %% id=a guess\n# ?\n# %% id=a told truth=1\n# T\n", "a lacks its `reveal`"),
        (
            "# %% id=a guess\n# - `b`: c\n# %% id=a reveal\n1\n# %% id=a told truth=d\n# T\n",
            "a: its truth is one of b",
        ),
        ("# %%\nx = 1\n", "s.py, line 1: the cell has no id"),
        ("# %% id=a tag=b\n", "s.py, line 1: unknown cell option 'tag=b'"),
        ("# %% [markdown] id=a\ntext\n", "s.py, line 2: a line of Markdown begins with"),
        ("# %% id=a\n# %% id=a\n", "used for two cells of one notebook: id a"),
        ("# %% id=not.valid\n1\n", "s.py, line 1: unknown cell option 'id=not.valid'"),
        (PARTLY, r"s\.py: answer lacks its solution, explanation"),
    ],
)
def test_what_is_wrong_in_a_source_is_named(source: str, message: str) -> None:
    with pytest.raises(TOOL.SourceError, match=message):
        made(source)


def test_wrong_answers_are_read_beside_their_chapter_and_are_in_no_notebook(tmp_path: Path) -> None:
    source = tmp_path / "course/01_a.py"
    beside = tmp_path / "course/wrong_answers/01_a.py"
    beside.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    alone = dict(TOOL.products(tmp_path))
    beside.write_text(WRONG)
    cells, (wrong,) = TOOL.chapter(source)
    assert (wrong.id, wrong.cause, wrong.text) == ("answer", "2 is not 1", "y = 2")
    assert wrong.text not in [cell.text for cell in cells]
    assert dict(TOOL.products(tmp_path)) == alone
    for bad in ("# %% id=answer\ny = 2\n", '# %% id=first cause="x"\ny = 2\n'):
        beside.write_text(bad)
        with pytest.raises(TOOL.SourceError, match="a wrong answer has the name of an exercise"):
            list(TOOL.products(tmp_path))
    source.write_text(SOURCE + WRONG)
    with pytest.raises(TOOL.SourceError, match=r"01_a\.py: belongs in wrong_answers/: answer"):
        list(TOOL.products(tmp_path))


CHANGED = """\
# %% id=answer cause="a"
# - if y:
# + if not y:

# %% id=answer of=starter cause="b"
# + x = 0
#   y = ...

# %% id=answer cause="c"
for z in y:
    print()
    print(z)

# %% id=answer of=above cause="d"
#   print()
# - print(z)
# + print()
# +
# + print(y)
"""


def test_an_answer_may_be_written_as_changes_of_another_one(tmp_path: Path) -> None:
    page = "# %% id=a starter\ny = ...  # it\n# %% id=a solution\n# - y = ...  # it\n# + y = 1\n"
    assert [cell.text for cell in TOOL.parse(page, "s.py")] == ["y = ...  # it", "y = 1"]
    source = tmp_path / "course/01_a.py"
    beside = tmp_path / "course/wrong_answers/01_a.py"
    beside.parent.mkdir(parents=True)
    source.write_text(SOURCE.replace("\ny = 1\n", "\ny = 1\nif y:\n    z = 2\n"))
    beside.write_text(CHANGED)
    assert [cell.text for cell in TOOL.chapter(source)[1]] == [
        "y = 1\nif not y:\n    z = 2",
        "x = 0\ny = ...",
        "for z in y:\n    print()\n    print(z)",
        "for z in y:\n    print()\n    print()\n\n    print(y)",
    ]
    for changes, message in [
        ('of=above cause="a"\n# - y', "answer: there is no above that these could be changes of"),
        ('cause="a"\n#   if y:\n# - y = 1\n', "not so far down: 'y = 1'"),
    ]:
        beside.write_text("# %% id=answer " + changes)
        with pytest.raises(TOOL.SourceError, match=message):
            TOOL.chapter(source)


def test_a_chapter_that_is_not_there_is_no_chapter_that_is_as_it_should_be() -> None:
    with pytest.raises(TOOL.SourceError, match="no chapter's name begins with '99'"):
        TOOL.sources(ROOT, ["03", "99"])


def test_solutions_stand_where_some_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course/01_a.py").write_text(SOURCE)
    (tmp_path / "course/02_b.py").write_text("# %% id=only\n1\n")
    monkeypatch.setattr(sys, "argv", ["build_notebooks.py"])

    assert TOOL.main(tmp_path) == 0
    made = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.ipynb"))
    assert made == ["notebooks/01_a.ipynb", "notebooks/02_b.ipynb", "solutions/01_a.ipynb"]
    (answers,) = (tmp_path / TOOL.ANSWERS).iterdir()
    stored = json.loads(answers.read_text())
    assert answers.name == "01_a.json"
    told = {"hints": "One.\n\nTwo.", "explanation": "Because."}
    assert stored == {"answer": {"starter": "y = ...", "solution": "y = 1", **told}}

    monkeypatch.setattr(sys, "argv", ["build_notebooks.py", "--check"])
    assert TOOL.main(tmp_path) == 0
    stale = tmp_path / "notebooks/01_a.ipynb"
    notebook = json.loads(stale.read_text())
    notebook["cells"][0]["source"] = ["changed"]
    stale.write_text(json.dumps(notebook))
    assert TOOL.main(tmp_path) == 1


def test_chapters_can_be_made_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course/01_a.py").write_text(SOURCE)
    (tmp_path / "course/02_b.py").write_text("not a notebook, yet")
    monkeypatch.setattr(sys, "argv", ["build_notebooks.py", "02"])
    assert TOOL.main(tmp_path) == 0
    assert [p.name for p in (tmp_path / "notebooks").iterdir()] == ["02_b.ipynb"]
