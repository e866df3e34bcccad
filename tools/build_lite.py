"""The course in a browser, with nothing to install: JupyterLite, as a part of the site.

``python tools/build_lite.py FOLDER`` makes a folder of static files. Python runs in the page there, as
Pyodide, which the page loads from the network, with NumPy and matplotlib. The package's wheel lies in the
folder, and the first cell of each chapter installs it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build/lite-source"

INSTALL = {
    "cell_type": "code",
    "execution_count": None,
    "id": "install-in-the-browser",
    "metadata": {},
    "outputs": [],
    "source": "%pip install --quiet asyncgpu-tutor",
}
PATIENCE = {
    "cell_type": "markdown",
    "id": "patience-in-the-browser",
    "metadata": {},
    "source": "*Python runs in this page. The first cell fetches it from cdn.jsdelivr.net, once, which takes "
    "half a minute or so. If it still shows `[*]` after two minutes, your network can't reach that address, "
    "and then no cell will ever run here: install the course, or take Colab or Binder.*",
}
KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
PAGE: dict[str, Any] = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {"appName": "asyncgpu_tutor", "defaultKernelName": "python"},
}


def main() -> int:
    """Build it; a command that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where it is to be")
    folder: Path = parser.parse_args().folder.resolve()
    lay_out()
    shutil.rmtree(folder, ignore_errors=True)
    call("build", "--wheel", "--outdir", SOURCE / "pypi", ROOT)
    call(
        *("jupyter", "lite", "build", "--lite-dir", SOURCE, "--output-dir", folder),
        *("--no-sourcemaps", "--no-unused-shared-packages"),
    )
    return 0


def lay_out() -> None:
    """The pages, as JupyterLite looks for them: what is in ``files`` is in the file browser."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for part in ("notebooks", "solutions", "docs"):
        shutil.copytree(
            ROOT / part,
            SOURCE / "files" / part,
            ignore=shutil.ignore_patterns("progress*.json", ".*", "__pycache__"),
        )
    for path in (SOURCE / "files").glob("*/*.ipynb"):
        notebook = json.loads(path.read_text("utf-8"))
        notebook["cells"][1:1] = [PATIENCE, INSTALL]
        notebook["metadata"]["kernelspec"] = KERNEL
        path.write_text(json.dumps(notebook, indent=1) + "\n", "utf-8")
    (SOURCE / "jupyter-lite.json").write_text(json.dumps(PAGE, indent=2) + "\n", "utf-8")


def call(*arguments: object) -> None:
    """Run a module of Python with these arguments; it is heard only where it fails."""
    command = [sys.executable, "-m", *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=ROOT / "build",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(command)} has failed")


if __name__ == "__main__":
    sys.exit(main())
