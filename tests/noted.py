"""What happens in a test beside what it asserts stays what it is, unless somebody means it.

A test asserts what its name says: the numbers of a kernel, a part of a message. A change that makes the same
launch cost an instruction more, or takes the cure out of the message, passes it. So tests are watched. What
errors say, what launches compute and cost, how long work takes, when spans begin and end, what is printed,
and what checks of exercises ask, by module: each of these comes to a digest, and `noted.json` has them.

What depends on the order of threads, on what another test has left in a cache, or on the seed of hashes can't
be held. So notes are taken twice, the second time from the last test to the first, and a kind that differs in
one test of a file is left out in all of them. A test that isn't in the notes isn't held.

After a change that is meant: `python -m tests.noted tests/simgpu/test_links.py`, or whichever files fail.
"""

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from functools import wraps
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from types import FunctionType
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from .tools import PACKAGES, ROOT

FILE = Path(__file__).with_name("noted.json")
ROOMS = [f"tests/{room}" for room in ("asyncgpu_course", "asyncgpu_tutor", "laws", "simgpu")]
ROOMS += ["tests/test_bad_input.py", "tests/test_reprs.py"]
PAGES = "tests/asyncgpu_course/start/"  # what is printed there counts the pages of the course
DIRECT = "tests/simgpu/cuda_c/"  # launches there know no device that has seen others
# Whose functions are watched by name, with what they are given and return.
PARTS = (
    "asyncgpu_course.checks",
    "asyncgpu_course.exercises.chapters",
    "asyncgpu_tutor.traces.analysis",
)
FOLDER = "NOTED_IN"  # the variable that has the folder where notes are taken, and is set only then
HERE = f"{sys.platform}, Python {sys.version_info.major}.{sys.version_info.minor}"
Notes = dict[str, dict[str, str]]  # for each file, for each test: kinds with their digests

# What is another in each run, or on each machine: paths, addresses, versions, numbers of operations.
_UNLIKE = re.compile(
    rf"\S*pytest-of-\S*|\S*{re.escape(str(ROOT))}|0x[0-9a-f]{{6,}}|\d+\.\d+\.\d+\S*|(?<=\()#\d+"
)
_FRACTION = re.compile(r"\d+\.\d+(e[-+]?\d+)?")  # whose last digits depend on the processor
# Functions that have done nothing when they return.
_LATER = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_MANY, _MOST = 50, 1 << 12  # things of a list, and elements of an array, that are looked at
_found: defaultdict[str, set[str]] = defaultdict(set)  # in the test that runs


def note(kind: str, *what: object) -> None:
    """Note something in the test that runs."""
    _found[kind].add(" ".join(map(_plain, what)))


def roughly(text: str) -> str:
    """A text in which numbers have three digits, and what no other run has is left out."""
    return _FRACTION.sub(lambda found: f"{float(found[0]):.3g}", _UNLIKE.sub("...", text))


def _plain(thing: Any) -> str:
    """What is plain, the same in each run; of anything else its type."""
    match thing:
        case str():
            return roughly(thing)
        case bool() | int() | None:
            return str(thing)
        case float() | np.floating():
            return f"{thing:.6g}"
        case np.ndarray() if thing.dtype.kind == "f":
            return f"{thing.dtype}{thing.shape} {thing.flat[0] if thing.size else 0:.2g}"
        case np.ndarray() if thing.dtype != object:
            return f"{thing.dtype}{thing.shape} {crc32(thing.reshape(-1)[:_MOST].tobytes()):08x}"
        case list() | tuple():
            return f"{len(thing)}({', '.join(map(_plain, thing[:_MANY]))})"
        case set() | frozenset():
            return f"({', '.join(sorted(map(_plain, thing)))})"
        case Mapping():
            return f"({', '.join(f'{_plain(k)}: {_plain(v)}' for k, v in thing.items())})"
        case _:
            return type(thing).__name__


def _watched(function: Any, told: Callable[..., object]) -> Any:
    """A function that tells what it returned, and what it was given."""

    @wraps(function)
    def run(*args: Any, **more: Any) -> Any:
        result = function(*args, **more)
        tracer = sys.gettrace()  # of a check that counts steps, which are not to be ours
        sys.settrace(None)
        told(result, *args, **more)
        sys.settrace(tracer)
        return result

    return run


def _watch() -> None:
    """Watch what errors, launches, work, spans, prints and checks all go through."""
    from asyncgpu_course.checks import patience
    from asyncgpu_course.checks.rejection import Rejected
    from asyncgpu_tutor.traces.spans.span import Span
    from simgpu.cuda_c import Execution
    from simgpu.errors import SimGpuError
    from simgpu.launches import KernelLaunch
    from simgpu.machine import Machine
    from simgpu.queues import ResourceDemand

    def span(_: None, self: Span, *__: Any, **___: Any) -> None:
        note("spans", self.kind, self.name, self.start, self.end, self.stream, self.detail)

    def launch(result: Any, _: Execution) -> None:
        note("launches", repr(result.counts), result.printed)

    def error(_: None, self: BaseException, *said: Any, **where: Any) -> None:
        note("errors", type(self).__name__, said, where)

    def work(_: None, self: ResourceDemand, *__: Any, **___: Any) -> None:
        note("work", self.us, self.places, self.demand, self.drain, self.turn, self.load)

    def check(of: FunctionType) -> Callable[..., None]:
        room = of.__module__.rpartition(".")[2]
        return lambda *things, **more: note(room, of.__name__, things, more)

    places: list[tuple[Any, str, Callable[..., None]]] = [
        (SimGpuError, "__init__", error),
        (Rejected, "__init__", error),
        (Machine, "spend", lambda _, __, us: note("work", us)),
        (ResourceDemand, "__init__", work),
        (Span, "__init__", span),
        (KernelLaunch, "finish", lambda _, __, ___, done, *____: note("counts", repr(done.counts))),
        (Execution, "finish", launch),
        (pytest.CaptureFixture, "readouterr", lambda said, _: note("prints", *said)),
    ]
    for part in map(importlib.import_module, PARTS):
        for found in pkgutil.iter_modules(part.__path__, f"{part.__name__}."):
            importlib.import_module(found.name)
    known: dict[Any, Any] = {}
    for module in [module for name, module in sys.modules.items() if name.startswith(PACKAGES)]:
        for name, thing in [*vars(module).items()]:
            own = isinstance(thing, FunctionType) and thing.__module__.startswith(PARTS)
            own = own and thing.__module__ != patience.__name__  # which has the time of the day
            if own and not thing.__code__.co_flags & _LATER:
                known.setdefault(thing, _watched(thing, check(thing)))
                setattr(module, name, known[thing])
    for owner, name, teller in places:
        setattr(owner, name, _watched(getattr(owner, name), teller))


def forget() -> None:
    """Hold nothing of the test that runs: it does more in a full run."""
    _found.clear()


def taking() -> bool:
    """Tell whether this run is there to take notes."""
    return FOLDER in os.environ


def _digests() -> str:
    """Of each kind of what was noted, since the test began."""
    said = {kind: "\n".join(sorted(lines)) for kind, lines in sorted(_found.items())}
    sums = {kind: crc32(text.encode("utf-8", "surrogatepass")) for kind, text in said.items()}
    return " ".join(f"{kind} {number & 0xFFFF:04x}" for kind, number in sums.items())


def _of(digests: str) -> dict[str, str]:
    words = digests.split()
    return dict(zip(words[::2], words[1::2], strict=True))


class Noted:
    """The hooks of pytest that `conftest.py` registers."""

    def __init__(self) -> None:
        self.folder = os.environ.get(FOLDER)
        self.known = _notes().get(HERE, {})
        self.taken: Notes = {}

    def pytest_report_header(self) -> str:
        return "" if self.known else f"notes of tests are not held: there are none of {HERE}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.folder is not None and Path(self.folder).name == "again":
            items.reverse()

    def pytest_collection_finish(self) -> None:
        _watch()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        file, _, test = item.nodeid.partition("::")
        _found.clear()
        result = yield
        if not file.startswith(DIRECT):
            _found.pop("launches", None)
        examples = hasattr(getattr(item, "obj", None), "hypothesis")  # others in each version of it
        if examples or not file.startswith(tuple(ROOMS)) or file.startswith(PAGES):
            return result
        now = _digests()
        if self.folder is not None:
            self.taken.setdefault(file, {})[test] = now
        elif known := self.known.get(file, {}).get(test):
            found = _of(now)
            changed = [kind for kind, digest in _of(known).items() if found.get(kind) != digest]
            assert not changed, (
                f"not what was noted: {', '.join(changed)}. Is it meant? See tests/noted.py. Now it is:\n"
                + "\n".join(sorted(line for kind in changed for line in _found[kind])[:20])
            )
        return result

    def pytest_sessionfinish(self) -> None:
        if self.folder is not None and self.taken:
            text = json.dumps(self.taken)
            Path(self.folder, f"{os.getpid()}.json").write_text(text, encoding="utf-8")


def _notes() -> dict[str, Notes]:
    """By platform and version, since Python's own messages are another in each."""
    return json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}


def _take(folder: Path, args: list[str]) -> dict[tuple[str, str], dict[str, str]]:
    """Run tests, and read what was noted."""
    folder.mkdir()
    given = os.environ | {FOLDER: str(folder), "PYTHONHASHSEED": str(len(folder.name))}
    subprocess.run([sys.executable, "-m", "pytest", "-q", *args], cwd=ROOT, env=given, check=False)
    notes = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    return {
        (file, test): _of(digests)
        for taken in notes
        for file, tests in taken.items()
        for test, digests in tests.items()
    }


def main(args: list[str]) -> None:
    """Take notes twice, and keep what is the same."""
    with tempfile.TemporaryDirectory() as folder:
        first, again = (_take(Path(folder, name), args) for name in ("once", "again"))
    notes = _notes().get(HERE, {})
    alike = {key: {*kinds.items()} & {*again.get(key, {}).items()} for key, kinds in first.items()}
    wavers = {
        (file, kind)
        for (file, test), kinds in first.items()
        for kind in kinds.keys() - dict(alike[file, test]).keys()
        if not file.startswith(DIRECT)
    }
    for (file, test), kinds in alike.items():
        held = [f"{kind} {digest}" for kind, digest in sorted(kinds) if (file, kind) not in wavers]
        notes.setdefault(file, {})[test] = " ".join(held)
    kept = {
        file: {test: digests for test, digests in sorted(tests.items()) if digests}
        for file, tests in sorted(notes.items())
        if (ROOT / file).exists()
    }
    kept = {file: tests for file, tests in kept.items() if tests}
    text = json.dumps({HERE: kept}, indent=0)
    FILE.write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or ROOMS)
