"""JupyterLab as `make lab` starts it, and a browser without a window; only for `make test-lab`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asyncgpu_course.start import bring
from tests.tools import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "google-chrome", "chromium-browser", "google-chrome-stable")
SEEN = ROOT / "build/lab"
PATIENCE = 60_000  # ms that a condition may take to come true


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests to those who ask for them: they need JupyterLab and a browser."""
    if "lab" in (config.option.markexpr or ""):
        return
    ours = [item for item in items if item.get_closest_marker("lab")]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


def _cannot(why: str) -> None:
    """Skip, and say what is missing; under CI, where it was installed, that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def _browser_here() -> str:
    named = os.environ.get("BROWSER_PATH")
    found = named or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        _cannot(
            f"no browser found: none of {', '.join(BROWSERS)} is on PATH. Install Chromium (Debian and "
            "Ubuntu: apt install chromium), or give its path in BROWSER_PATH"
        )
    return str(found)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium or Chrome, without a window."""
    path = _browser_here()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _cannot("playwright is not installed: make test-lab does it")
    # Playwright starts it without a sandbox, which neither root nor Ubuntu 24.04 would give it.
    options = ["--force-color-profile=srgb"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=options)
        yield running
        running.close()


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A learner's folder: notebooks save themselves there, and exercises write progress."""
    folder = tmp_path_factory.mktemp("course")
    bring(ROOT, folder)
    return folder


@pytest.fixture(scope="session")
def lab(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a JupyterLab that knows nothing of its user's settings."""
    if find_spec("jupyterlab") is None:
        _cannot("JupyterLab is not installed: make test-lab does it")
    home = tmp_path_factory.mktemp("home")
    own = ("CONFIG", "DATA", "RUNTIME")
    env = {
        **os.environ,
        **{f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in own},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "ASYNCGPU_DEVICE": "sim",
    }
    command = [sys.executable, "-m", "asyncgpu_course", "start", str(course), "--no-browser"]
    # The last option lets a test ask the page what its cells say: those off the screen are not in the page.
    command += ["--lab=--port=0", "--lab=--LabApp.expose_app_in_browser=True"]
    server = subprocess.Popen(
        command, cwd=course, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    said: list[str] = []
    reader: threading.Thread | None = None
    try:
        address = None
        for line in server.stderr:
            said.append(line)
            if found := re.search(r"http://(?:localhost|127\.0\.0\.1):[1-9]\d*/\S*token=\w+", line):
                address = found[0]
                break
        assert address, "".join(said)
        # A thread reads on, because the server stops when the pipe is full.
        reader = threading.Thread(target=said.extend, args=(server.stderr,), daemon=True)
        reader.start()
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)
        if reader is not None:
            reader.join(timeout=30)
        server.stderr.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh window of the size of a small laptop."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def album() -> Path:
    """The folder of the screenshots, which are for people to look at; git ignores it."""
    SEEN.mkdir(parents=True, exist_ok=True)
    return SEEN
