"""The site: chapters with their outputs, the docs, the interface, slides and a JupyterLite; `make site`.

The pages are laid out in ``build/site-source`` as they lie in the repository, so that their links hold, and
Sphinx makes ``build/site`` of them. A warning is an error, a link that leads nowhere included. What is
linked and is no page, such as a source, becomes a link to the repository, whose address is in pyproject.toml.

``--colab FOLDER`` writes the chapters with a first cell that installs the course: what the buttons for Colab
open.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import asyncgpu_tutor as agt

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build/site-source"
SITE = ROOT / "build/site"
URLS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "urls"
]
ADDRESS, PUBLISHED = URLS["Repository"], URLS["Documentation"]
COLAB_BRANCH = "colab"

# What is a page, by its place in the repository. README.md is the first page.
FOLDERS = ("notebooks", "docs")
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
OWN_PROGRAM = (
    "docs/from_cupy",
    "docs/kernels_in_ci",
    "docs/profiling",
    "docs/microscope",
    "docs/hazards",
    "docs/cuda_c",
)
ABOUT = (
    "docs/glossary",
    "docs/misconceptions",
    "docs/fidelity",
    "docs/digits",
    "benchmarks/README",
    "benchmarks/results/peers",
)
PROJECT = (
    "docs/instructors",
    "docs/readings",
    "docs/releasing",
    "notebooks/nsight/README",
    "ARCHITECTURE",
    "CONTRIBUTING",
    "CHANGELOG",
)

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
BLOCK = re.compile(r"(```.*?```)", re.DOTALL)


def main() -> int:
    """Build it; the exit status is Sphinx's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--no-run", action="store_true", help="run no notebook: pages without outputs"
    )
    parser.add_argument(
        "--colab", type=Path, metavar="FOLDER", help="write the chapters for Colab instead"
    )
    given = parser.parse_args()
    if given.colab:
        return write_for_colab(given.colab)
    lay_out()
    environment = {
        **os.environ,
        "ASYNCGPU_CHECKOUT": str(ROOT),
        "ASYNCGPU_DEVICE": "sim",
        "ASYNCGPU_LIVE": "0",
        "SITE_EXECUTION": "off" if given.no_run else "cache",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += [
        "-c",
        str(ROOT / "tools/site"),
        "-d",
        str(ROOT / "build/site-doctrees"),
        str(SOURCE),
        str(SITE),
    ]
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode == 0:
        (SITE / ".nojekyll").touch()
        for part in ("deck", "lite"):
            build = [sys.executable, ROOT / f"tools/build_{part}.py", SITE / part]
            subprocess.run(build, env=environment, check=True)
        print(f"The site is in {SITE}: open {SITE / 'index.html'}")
    return done.returncode


def lay_out() -> None:
    """Copy the pages, add the first page's contents, the interface and the buttons."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder,
            SOURCE / folder,
            ignore=shutil.ignore_patterns("progress*.json", ".*", "__pycache__"),
        )
    for page in PAGES:
        (SOURCE / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, SOURCE / page)
    shutil.copytree(ROOT / "benchmarks/results", SOURCE / "benchmarks/results")
    (SOURCE / "index.md").write_text((ROOT / "README.md").read_text("utf-8") + contents(), "utf-8")
    (SOURCE / "api.rst").write_text(interface(), "utf-8")
    for page in SOURCE.rglob("*.md"):
        page.write_text(outward(page.read_text("utf-8"), page), "utf-8")
    for page in (SOURCE / "notebooks").glob("*.ipynb"):
        notebook = json.loads(page.read_text("utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = outward("".join(cell["source"]), page)
            elif "asserts" in cell["metadata"].get("tags", ()):
                cell["metadata"]["tags"].append("hide-input")  # folded, as in JupyterLab
        notebook["cells"].insert(1, buttons(page.name))
        page.write_text(json.dumps(notebook, indent=1), "utf-8")


def outward(text: str, page: Path) -> str:
    """A link to what is in the repository and no page of the site leads to the repository."""
    here = page.relative_to(SOURCE).parent

    def lead(match: re.Match[str]) -> str:
        target = (ROOT / here / match[1]).resolve()
        inside = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else ""
        if inside == "README.md":
            return os.path.relpath(SOURCE / "index.md", page.parent) + (match[2] or "")
        if (SOURCE / inside).is_file() or not target.exists():  # Sphinx complains of the latter
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{ADDRESS}/{kind}/main/{inside}{match[2] or ''}"

    parts = BLOCK.split(text)  # code is at odd places
    return "".join(part if i % 2 else LINK.sub(lead, part) for i, part in enumerate(parts))


def contents() -> str:
    """The tables of contents, which a theme shows at the side."""
    chapters = [f"notebooks/{path.stem}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    groups = {
        "The course": chapters,
        "Your own program": [*OWN_PROGRAM, "api"],
        "To look up": ABOUT,
        "The project": PROJECT,
    }
    return "\n" + "\n".join(
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])
        for caption, pages in groups.items()
    )


def interface() -> str:
    """Everything public, from docstrings."""
    names = [name for name in agt.__all__ if name not in {"data", "errors", "ranges", "types"}]
    classes = [name for name in names if isinstance(getattr(agt, name), type)]
    functions = [name for name in names if name not in classes]
    failures = [name for name in agt.errors.__all__ if isinstance(getattr(agt.errors, name), type)]
    lines = [
        "Interface",
        "=========",
        "",
        "``import asyncgpu_tutor as agt``, and these are ``agt.`` names.",
        "",
    ]
    for title, module, kind, listed in (
        ("Functions", "", "autofunction", functions),
        ("Classes", "", "autoclass", classes),
        ("Types", ".types", "autoclass", agt.types.__all__),
        ("Errors", ".errors", "autoexception", failures),
    ):
        lines += [title, "-" * len(title), ""]
        for name in listed:
            found = getattr(getattr(agt, module[1:]) if module else agt, name)
            here = kind if isinstance(found, type) or kind == "autofunction" else "autodata"
            lines.append(f".. {here}:: asyncgpu_tutor{module}.{name}")
            if kind == "autoclass":
                lines.append("   :members:")
            lines.append("")
    return "\n".join(lines)


def buttons(name: str) -> dict[str, Any]:
    """A cell of links that open a chapter elsewhere."""
    owner = ADDRESS.removeprefix("https://github.com/")
    links = {
        "Run in this browser": f"{PUBLISHED}lite/lab/index.html?path=notebooks/{name}",
        "Open in Colab": f"https://colab.research.google.com/github/{owner}/blob/{COLAB_BRANCH}/{name}",
        "Open in Binder": f"https://mybinder.org/v2/gh/{owner}/main?urlpath=lab/tree/notebooks/{name}",
        "Open in a dev container": f"https://codespaces.new/{owner}",
    }
    text = " · ".join(f"[{label}]({link})" for label, link in links.items())
    return {"cell_type": "markdown", "id": "open-elsewhere", "metadata": {}, "source": text}


def write_for_colab(folder: Path) -> int:
    """The chapters, with a first cell that installs the course."""
    folder.mkdir(parents=True, exist_ok=True)
    install: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "install-on-colab",
        "metadata": {},
        "outputs": [],
        "source": f'%pip install --quiet "asyncgpu_tutor @ git+{ADDRESS}"',
    }
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        notebook["cells"].insert(1, install)
        (folder / path.name).write_text(json.dumps(notebook, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
