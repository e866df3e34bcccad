"""What a test is told stays what it is, word for word, unless somebody means it.

A test that expects an error demands a part of its message, as in `pytest.raises(..., match="out of bounds")`.
The rest, such as the index, the bound or the cure, is held here: ``told/`` has, for each file of tests and
each test, the messages of the project's errors that `pytest.raises` caught, and what the test has told the
fixture `tell` besides. `--note` writes those of the tests that run anew. A test that isn't there yet is not
held, and a full run adds it.

In the same way each page is held to what it prints and shows, as far as that is text, on the simulated
device: nobody's change of the model, of a check or of a picture's words alters a page unseen.
"""

import json
import os
import re
import sys
from collections.abc import Generator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from nbmake.nb_run import NotebookResult, NotebookRun

from asyncgpu_tutor.run.current import resolve

FOLDER = Path(__file__).with_suffix("")
OURS = ("asyncgpu_tutor.", "asyncgpu_course.", "simgpu.")
KIND = "told"  # of what a test's process hands to the one that writes
HELD = sys.platform == "linux" and sys.version_info < (3, 13)  # where the words were compared
# What each run has anew: paths, numbers of operations, addresses, seconds on the wall. And digits
# that depend on the processor.
PATHS = "|".join(map(re.escape, (sys.executable, str(FOLDER.parents[1]))))
ANEW = re.compile(rf"\S*pytest-of-\S*|{PATHS}|0x[0-9a-f]{{6,}}|(?<=#)\d+|\d+(?= s, and was)")
# What a stream or a group is numbered depends on the tests before, and a line's number on those above it.
NUMBERED = re.compile(r"(?<=stream )\d+(?= of )|(?<=group )\d+|(?<=\.py:)\d+")
FRACTION = re.compile(r"\d+\.\d{3,}(?:e[-+]?\d+)?")
# What a page measures where it runs, or counts of our own lines, is another number each time.
MEASURED = re.compile(r"your machine|this computer|real time|does the trip pay")
# Where the parser gives up depends on how deep Python's stack is by then.
DEEP = re.compile(r"(?s).*nested too deep.*")


def plain(text: str) -> str:
    """A message as it is in each run."""
    text = DEEP.sub("nested too deep", ANEW.sub("...", text))
    return FRACTION.sub(lambda found: f"{float(found[0]):.3g}", text)


def _file(test: str) -> Path:
    """Where the messages are that belong to a test's file."""
    return (FOLDER / test.partition("::")[0].removeprefix("tests/")).with_suffix(".json")


def _read(file: Path) -> dict[str, list[str]]:
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


class Told:
    """The hooks of pytest that `conftest.py` registers."""

    def __init__(self, config: pytest.Config) -> None:
        self.anew: bool = config.getoption("--note")
        self.adds = self.anew or config.getoption("--full")
        self.worker = hasattr(config, "workerinput")
        self.met: list[str] = []  # in the test that runs
        self.noted: dict[Path, dict[str, list[str]]] = {}
        self.told: dict[str, list[str]] = {}  # by test, what is to be written
        leave = pytest.RaisesExc.__exit__

        def watched(raises: Any, kind: Any, error: Any, trace: Any) -> bool:
            caught = leave(raises, kind, error, trace)
            ours = type(error).__module__.startswith(OURS)
            # That one says what this machine has; ports are others each time, and so are Dask's words.
            there = type(error).__name__ == "DeviceUnavailableError" or "127.0.0.1" in str(error)
            if caught and ours and not there:
                self.tell(str(error))
            return caught

        pytest.RaisesExc.__exit__ = watched
        execute, said = NotebookRun.execute, self._said

        def watched_page(self: NotebookRun) -> NotebookResult:
            done = execute(self)
            # Solutions are the same pages again.
            if self.filename.parent.name == "notebooks":
                said(done.nb.cells)
            return done

        NotebookRun.execute = watched_page

    def _said(self, cells: list[dict[str, Any]]) -> None:
        """Have what a page prints and shows compared, too."""
        # Of a GPU the times are its own, and without the variable guesses aren't answered.
        if "ASYNCGPU_TELL" not in os.environ or not resolve("auto").simulated:
            return
        for outs in (cell.get("outputs", ()) for cell in cells):
            # A warning between two lines cuts what is printed, so it is put together again.
            texts = ["".join(out["text"] for out in outs if out.get("name") == "stdout")]
            shown = [out.get("data", {}) for out in outs]
            texts += [data.get("text/markdown") or data.get("text/plain", "") for data in shown]
            for text in texts:
                if text and not MEASURED.search(text):
                    self.tell(text)

    def tell(self, text: str) -> None:
        """Have this compared, too, in the test that runs."""
        self.met.append(NUMBERED.sub("...", plain(text)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """After a test that passed, compare what it has met with what is noted."""
        self.met = []
        yield
        if not HELD or not self.met or hasattr(getattr(item, "obj", None), "hypothesis"):
            return  # Hypothesis has other examples in another version of it
        file, name = _file(item.nodeid), item.nodeid.partition("::")[2]
        if file not in self.noted:
            self.noted[file] = _read(file)
        noted = self.noted[file].get(name)
        if noted is None or self.anew:
            item.user_properties.append((KIND, self.met))
        elif noted != self.met:
            command = f"python -m pytest --note {item.nodeid.partition('::')[0]}"
            command = "make note" if item.path.suffix == ".ipynb" else command
            before, now = ("\n".join(texts).splitlines() for texts in (noted, self.met))
            changed = "\n".join(unified_diff(before, now, "noted", "told", lineterm=""))
            raise AssertionError(f"something else is told. If that is meant: {command}\n{changed}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            properties = dict(report.user_properties)
            if KIND in properties:
                self.told[report.nodeid] = properties[KIND]

    def pytest_sessionfinish(self) -> None:
        if self.worker or not self.adds:
            return
        for file in {_file(test) for test in self.told}:
            mine = {t.partition("::")[2]: told for t, told in self.told.items() if _file(t) == file}
            file.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({**_read(file), **mine}, indent=1, sort_keys=True, ensure_ascii=False)
            file.write_text(text + "\n", encoding="utf-8", newline="\n")


def hooks(config: pytest.Config) -> Told:
    """The one that `conftest.py` registers."""
    (found,) = [plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, Told)]
    return found
