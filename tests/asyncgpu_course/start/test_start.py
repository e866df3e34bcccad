"""``asyncgpu-tutor start``: pages come into a folder, a learner's work stays, JupyterLab opens there."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

import asyncgpu_tutor as agt
from asyncgpu_course.__main__ import main
from asyncgpu_course.start import FIRST_PAGE, PARTS, bring, course, pages
from tests.tools import ROOT, Command, tool


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments that JupyterLab was started with; a stand-in takes its place."""
    calls: list[list[str]] = []

    class LabApp:
        @staticmethod
        def launch_instance(argv: list[str]) -> None:
            calls.append(argv)

    lab, labapp = ModuleType("jupyterlab"), ModuleType("jupyterlab.labapp")
    lab.__spec__ = pages.__spec__
    labapp.LabApp = LabApp  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jupyterlab", lab)
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", labapp)
    monkeypatch.delenv("JUPYTER_CONFIG_PATH", raising=False)
    return calls


def test_all_pages_come_work_stays_and_what_was_deleted_comes_again(tmp_path: Path) -> None:
    brought = bring(ROOT, tmp_path)
    mine, gone = tmp_path / FIRST_PAGE, tmp_path / "docs/glossary.md"
    assert not brought.kept
    assert mine.read_bytes() == (ROOT / FIRST_PAGE).read_bytes()
    assert {path.parts[0] for path in brought.new} == set(PARTS)
    mine.write_text("my work")
    gone.unlink()
    brought = bring(ROOT, tmp_path)
    assert mine.read_text() == "my work"
    assert brought.new == [Path("docs/glossary.md")]
    assert Path(FIRST_PAGE) in brought.kept


def test_what_a_learner_left_in_the_pages_does_not_travel(tmp_path: Path) -> None:
    source = tmp_path / "source"
    bring(ROOT, source)
    (source / "notebooks/progress.json").write_text("{}")
    (source / "notebooks/.ipynb_checkpoints").mkdir()
    brought = bring(source, tmp_path / "target")
    assert not any("progress" in path.name or "checkpoints" in str(path) for path in brought.new)


@pytest.mark.parametrize("inside", ["notebooks", "docs/mine"])
def test_the_pages_are_not_copied_into_themselves(tmp_path: Path, inside: str) -> None:
    bring(ROOT, tmp_path)
    with pytest.raises(agt.UsageError, match="own pages"):
        bring(tmp_path, tmp_path / inside)


def test_jupyterlab_opens_unless_the_pages_alone_are_wanted(
    tmp_path: Path, command: Command, opened: list[list[str]]
) -> None:
    for words in (["--copy-only"], ["--update"]):
        command("start", tmp_path, *words)
        assert not opened
    command("start", tmp_path)
    assert [f"--ServerApp.root_dir={tmp_path.resolve()}" in words for words in opened] == [True]


def test_a_file_is_no_folder_and_a_port_is_one_that_there_is(
    tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    assert "is a file" in command("start", tmp_path / "taken", "--copy-only", code=2).err
    for port in ("99999", "0", "x"):
        with pytest.raises(SystemExit):
            main(["start", f"--port={port}"])
        assert "from 1 to 65535" in capsys.readouterr().err


def test_an_update_keeps_work_aside_and_takes_what_nobody_touched(
    tmp_path: Path, command: Command
) -> None:
    newer, mine = tmp_path / "newer", tmp_path / "mine"
    bring(ROOT, mine)
    bring(ROOT, newer)
    worked, read = Path(FIRST_PAGE), Path("docs/glossary.md")
    (mine / worked).write_text("my answer")
    (mine / "notebooks/progress.json").write_text("{}")
    for page in (worked, read):
        (newer / page).write_text("new")
    brought = bring(newer, mine, update=True)
    assert brought.new == [read, worked]
    assert [path.read_text() for path in brought.aside] == ["my answer"]
    assert brought.aside[0].is_relative_to(mine / pages.MY_WORK)
    assert {(mine / page).read_text() for page in (worked, read)} == {"new"}
    assert (mine / "notebooks/progress.json").read_text() == "{}"
    (mine / worked).write_text("more")
    assert "my-work" in command("start", mine, "--update").out
    assert command("start", mine, "--update").out.endswith("0 new files.\n")


@pytest.mark.parametrize("text", ["[]", "null", "{", '{"notebooks/x.ipynb": 5}', "[" * 100_000])
def test_updates_in_one_second_lose_no_page_whatever_the_digests_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(pages.time, "strftime", lambda _: "now")
    source, mine = tmp_path / "source", tmp_path / "mine"
    (source / "notebooks").mkdir(parents=True)
    page = Path(FIRST_PAGE)
    for work in ("one", "two", "three"):
        (source / page).write_text(f"before {work}")
        bring(source, mine)
        (mine / page).write_text(work)
        (source / page).write_text(f"after {work}")
        (mine / pages.AS_BROUGHT).write_text(text)
        bring(source, mine, update=True)
    kept = [path.read_text() for path in (mine / pages.MY_WORK).rglob("*.ipynb")]
    assert sorted(kept) == ["one", "three", "two"]


def test_an_update_waits_for_another_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "locked", partial(pages.locked, wait_s=0))
    with pages.updating(tmp_path):
        with pytest.raises(TimeoutError, match="another program has been at work there"):
            bring(ROOT, tmp_path, update=True)
        assert tool("update_checkout").main(tmp_path) == 1


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_checkout_that_was_worked_in_is_updated_without_a_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(folder: Path, *words: str) -> None:
        subprocess.run(
            ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=b", *words], check=True
        )

    origin, mine, page = tmp_path / "origin", tmp_path / "mine", "notebooks/a.ipynb"
    (origin / "notebooks").mkdir(parents=True)
    git(origin, "init", "-q")
    for text in ("old", "new"):
        (origin / page).write_text(text)
        git(origin, "add", ".")
        git(origin, "commit", "-q", "-m", text)
        if text == "old":
            git(tmp_path, "clone", "-q", origin, mine)
            (mine / page).write_text("my answer")

    update = tool("update_checkout").main
    assert update(mine) == 0
    assert (mine / page).read_text() == "new"
    (kept,) = mine.glob(f"my-work/*/{page}")
    assert kept.read_text() == "my answer"
    assert str(kept) in capsys.readouterr().out
    (mine / page).write_text("more")
    shutil.rmtree(origin)
    assert update(mine) == 1
    assert "git fetch failed" in capsys.readouterr().err
    assert (mine / page).read_text() == "more"


def test_a_full_disk_leaves_no_half_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(_: Path, there: Path) -> None:
        there.write_text("half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("shutil.copyfile", cut_off)
        with pytest.raises(OSError, match="No space"):
            bring(ROOT, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not bring(ROOT, tmp_path).kept


def test_a_checkout_is_opened_where_it_is(opened: list[list[str]], command: Command) -> None:
    command("start", "--no-browser", "--port=9999", "--lab=--ip=0.0.0.0")
    ((root, first, *rest),) = opened
    assert root == f"--ServerApp.root_dir={ROOT}"
    assert first == f"--LabApp.default_url=/lab/tree/{FIRST_PAGE}"
    assert ("--allow-root" in rest) == (getattr(os, "geteuid", lambda: 1)() == 0)
    given = [word for word in rest if word != "--allow-root"]
    assert given == ["--ip=0.0.0.0", "--no-browser", "--port=9999"]


@pytest.mark.usefixtures("opened")
def test_settings_come_behind_ones_own(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/my/own")
    command("start")
    own, ours = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert own == "/my/own"
    assert (Path(ours) / "labconfig/default_setting_overrides.json").is_file()


def test_a_wheel_brings_its_pages_into_a_folder(
    opened: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    package = tmp_path / "site-packages/asyncgpu_course"
    bring(ROOT, package / "pages")
    monkeypatch.setattr(pages, "PACKAGE", package)
    monkeypatch.chdir(tmp_path)
    assert "new files" in command("start").out
    assert (tmp_path / "asyncgpu-course" / FIRST_PAGE).is_file()
    assert opened[0][0] == f"--ServerApp.root_dir={tmp_path / 'asyncgpu-course'}"
    assert "0 new files" in command("start").out
    (package.parent / "notebooks").mkdir()
    for file in ("pyproject.toml", FIRST_PAGE):  # either alone makes no checkout of where it is
        (beside := package.parent / file).touch()
        assert course() == (package / "pages", False)
        beside.unlink()


def test_a_checkout_updates_itself(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    ran, done = list[list[object]](), subprocess.CompletedProcess("", 3)
    monkeypatch.setattr(subprocess, "run", lambda words, check: ran.append(words) or done)
    command("start", "--update", code=3)
    assert ran == [[sys.executable, ROOT / "tools/update_checkout.py"]]


def test_without_jupyterlab_or_pages_the_cure_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setattr("asyncgpu_course.start.command.find_spec", lambda _: None)
    assert "[lab]" in command("start", tmp_path / "mine", code=2).err
    assert (tmp_path / "mine" / FIRST_PAGE).is_file()
    monkeypatch.setattr(pages, "PACKAGE", tmp_path / "asyncgpu_course")  # a wheel without pages
    with pytest.raises(agt.UsageError, match="has no course"):
        course()
