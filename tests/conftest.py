"""Fixtures and hooks that all tests share."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial, wraps
from inspect import iscoroutinefunction, unwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import trio
from hypothesis import HealthCheck, settings

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import DeviceUnavailableError
from asyncgpu_tutor.run.current import resolve

from .full_runs import MARK, FullRuns
from .in_a_browser import by_the_course, forbid
from .told import Told, hooks
from .tools import Command

forbid(by_the_course)

mpl.use("Agg")
# No example has a deadline, because a slow machine is no counterexample. Examples are the same each time, so
# that one which was found comes back.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("project")
os.environ.pop("ASYNCGPU_DEVICE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="run also what rests only on files that did not change"
    )
    parser.addoption(
        "--note", action="store_true", help="write down what tests and wrong answers are told"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(*files): see tests/full_runs.py")
    config.pluginmanager.register(FullRuns(config))
    config.pluginmanager.register(Told(config))


def pytest_collection_finish() -> None:
    """Look for garbage in what is loaded by now never again, and seldom in the kernels that are kept."""
    gc.freeze()
    gc.set_threshold(700, 10, 50)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor in what a file of tests has left: some tests collect for each example, and walk all there is."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def handlers() -> Iterator[None]:
    """No file of tests leaves a handler of Ctrl-C behind, which the simulated device would tell of one."""
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert after in (before, signal.default_int_handler)  # some start where it is ignored


LOOPS: dict[str, Callable[[Callable[[], Any]], object]] = {
    "asyncio": lambda main: asyncio.run(main()),
    "uvloop": lambda main: pytest.importorskip("uvloop", reason="no wheel").run(main()),
    "trio": trio.run,
    "trio, device clock": lambda main: trio.run(main, clock=agt.DeviceClock()),
}


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    """Each event loop in turn, for a test that is a coroutine; others run in asyncio's."""
    return request.param


def _in_a_loop(test: Callable[..., Any], loop: str) -> Callable[..., None]:
    def run(*args: Any, **kwargs: Any) -> None:
        if loop.endswith("clock") and not agt.current_device().simulated:
            pytest.skip("a GPU's clock is nobody's to move")
        LOOPS[loop](partial(test, *args, **kwargs))

    return wraps(test)(run)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run a test, or an example of Hypothesis, that is a coroutine in an event loop of its own."""
    given = getattr(pyfuncitem.obj, "hypothesis", None)
    which = pyfuncitem.funcargs.get("loop", "asyncio")
    if iscoroutinefunction(pyfuncitem.obj):
        pyfuncitem.obj = _in_a_loop(pyfuncitem.obj, which)
    elif given is not None and iscoroutinefunction(inner := unwrap(given.inner_test)):
        given.inner_test = _in_a_loop(inner, which)


DEVICES = ["sim", pytest.param("cuda", marks=pytest.mark.gpu)]


def open_or_skip(name: str) -> Device:
    """The device; a test that needs a GPU is skipped where there is none, and for no other reason."""
    try:
        return resolve(name)
    except DeviceUnavailableError as error:
        if not name.startswith("cuda"):
            raise
        pytest.skip(str(error))


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Each kind of device in turn, as the current one."""
    with agt.using(open_or_skip(request.param)) as chosen:
        yield chosen
        chosen.synchronize()


@pytest.fixture
def sim() -> Iterator[Device]:
    """A simulated device of its own: a fresh machine whose clock is at zero."""
    from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine

    with agt.using(SimDevice(machine=SimMachine())) as chosen:
        yield chosen


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tell: Callable[[str], None]) -> Command:
    """Run `asyncgpu-tutor` in this process, on the current device unless the words name one."""
    from asyncgpu_course.__main__ import main

    def run(*words: object, code: int = 0) -> Any:
        capsys.readouterr()
        actual = main([str(word) for word in words])
        said = capsys.readouterr()
        assert actual == code, f"{said.out}\n{said.err}"
        if words[0] == "profile":  # the others say how long they took, or what is installed
            tell(said.out or said.err)
        return said

    return run


@pytest.fixture
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Take a line that has to be the same in each run: see told.py."""
    return hooks(pytestconfig).tell


@pytest.fixture
def cuda() -> Iterator[Device]:
    """The GPU, as the current device."""
    with agt.using(open_or_skip("cuda")) as chosen:
        yield chosen


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An IPython of its own."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    interactive.clear_instance()
    yield interactive.instance()
    interactive.clear_instance()
