"""Tests that rest on files which seldom change: they run when those files changed, and on every full run.

Holding the simulated GPU against its recordings and running all pages on a shared GPU takes minutes, and what
comes out depends on few files. The same holds for the largest tables of the interpreter's tests, and for the
second and later right answers to an exercise, which no change but one of the checks is likely to refuse. So a
plain `pytest tests` leaves such a test out as long as the digests of its files are the ones of the last full
run that passed. `pytest --full tests` runs everything, and writes the digests down. Digests are of contents,
so a fresh clone decides as the machine did that wrote them.

A test names its files by the keys of `FILES`:  @pytest.mark.rests_on("model", "course")
"""

import hashlib
import json
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_name("last_full_run.json")
MARK = "rests_on"
DAILY = sorted(RECORD.parent.glob("asyncgpu_course/daily_answers/*.json"))
FILES = {
    "model": ("asyncgpu_tutor/devices/simulated/**/*.py", "simgpu/**/*.py", "simgpu/**/*.toml"),
    "recordings": (
        "tests/test_fidelity.py", "tools/fidelity/**/*", "asyncgpu_tutor/traces/recordings/**/*.json"
    ),
    "requirements": ("pyproject.toml", "environment.yml"),
    "course": ("course/*.py", "tests/notebooks/test_shared_gpu.py"),
    "simgpu": (
        "simgpu/**/*.py", "simgpu/**/*.toml", "simgpu/**/*.h", "tests/simgpu/**/*.py",
    ),
    "checks": (
        "course/right_answers/*.py", "asyncgpu_course/checks/*", "asyncgpu_course/exercises/**/*",
        "tests/asyncgpu_course/exercises/*.py",
    ),
}  # fmt: skip


@cache
def digest(name: str, root: Path = ROOT) -> str:
    """Of the paths and the contents of these files, whichever way their lines end here."""
    found = hashlib.sha256()
    paths = {path for pattern in FILES[name] for path in root.glob(pattern) if path.is_file()}
    for path in sorted(paths, key=lambda path: path.relative_to(root).as_posix()):
        if "__pycache__" not in path.parts:
            content = path.read_bytes().replace(b"\r\n", b"\n")
            found.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return found.hexdigest()


def unchanged() -> set[str]:
    """Keys of `FILES` whose files are those of the last full run."""
    kept = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    return {name for name in FILES if kept.get(name) == digest(name)}


def everything_is_asked_for(config: pytest.Config) -> bool:
    """Tell a run of all tests from one of a folder or a file, whose tests always run."""
    asked = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    return any(path in {ROOT, RECORD.parent} for path in asked)


class FullRuns:
    """The hooks of pytest that `conftest.py` registers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.full: bool = config.getoption("--full")
        self.spared = set[str]()
        if not self.full and everything_is_asked_for(config):
            self.spared = unchanged()

    def pytest_report_header(self) -> str:
        if self.full:
            return "all tests: this is a full run"
        if not self.spared:
            return f"all tests: {', '.join(FILES)} changed, or files are named"
        return (
            f"left out: tests that rest only on {' and '.join(sorted(self.spared))}, which are "
            "as in the last full run (--full runs them)"
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what a daily run left out, and how to run it."""
        if self.full or not everything_is_asked_for(self.config):
            return
        answers = sum(len(json.loads(path.read_text("utf-8"))["spared"]) for path in DAILY)
        terminalreporter.write_line(
            f"Left out: {answers} wrong answers that are told what others are told, the solutions' "
            "notebooks, and what rests on unchanged files. `make test-full` runs everything."
        )

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        spared = [item for item in items if self.spares(item)]
        if spared:
            self.config.hook.pytest_deselected(items=spared)
            items[:] = [item for item in items if item not in set(spared)]

    def spares(self, item: pytest.Item) -> bool:
        mark = item.get_closest_marker(MARK)
        return mark is not None and self.spared >= set(mark.args)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the digests down, if all marked tests passed, in the process that others report to."""
        option = self.config.option
        narrowed = option.keyword or option.deselect or option.collectonly
        narrowed = narrowed or option.markexpr not in ("", MARK) or getattr(option, "lf", False)
        worker = hasattr(self.config, "workerinput")
        whole = self.full and everything_is_asked_for(self.config) and not narrowed
        if whole and exitstatus == pytest.ExitCode.OK and not worker:
            digests = {name: digest(name) for name in FILES}
            RECORD.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8", newline="\n")
