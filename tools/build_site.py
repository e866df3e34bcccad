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

import readme_picture

import asyncgpu_tutor as agt
from asyncgpu_course.exercises.chapters import BOOKS

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
    "docs/installing",
    "docs/from_cupy",
    "docs/from_pytorch",
    "docs/from_pytorch_models",
    "docs/torch_mistakes",
    "docs/serving_a_model",
    "docs/kernels_in_ci",
    "docs/any_loop",
    "docs/cluster",
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
    "docs/language_model",
    "docs/found",
    "benchmarks/README",
    "benchmarks/results/peers",
)
PROJECT = (
    "docs/instructors",
    "docs/releasing",
    "notebooks/nsight/README",
    "ARCHITECTURE",
    "docs/decisions",
    "CONTRIBUTING",
    "CHANGELOG",
)

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
PICTURE = re.compile(r'<svg xmlns="http://www.w3.org/2000/svg" class="agt".*?</svg>', re.DOTALL)
EMPTY_HEAD = re.compile(r"<th( [^>]*)?>(?:<p>)?\s*(?:</p>)?</th>")
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
    # A kernel warns of TCP without encryption, and nobody listens to those that run the chapters.
    quiet = ROOT / "build/site-ipython/profile_default/ipython_kernel_config.py"
    quiet.parent.mkdir(parents=True, exist_ok=True)
    quiet.write_text("get_config().Application.log_level = 40\n", "utf-8")
    environment = {
        **os.environ,
        "ASYNCGPU_CHECKOUT": str(ROOT),
        "ASYNCGPU_DEVICE": "sim",
        "ASYNCGPU_LIVE": "page",
        "ASYNCGPU_TELL": "1",  # nobody guesses on a page of the site
        "IPYTHONDIR": str(quiet.parents[1]),
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
        polish()
        print(f"The site is in {SITE.relative_to(ROOT)}. To look at it:")
        print(
            f"  {Path(sys.executable).name} -m http.server --directory {SITE.relative_to(ROOT)} 8000"
        )
        print(
            "and open http://localhost:8000 (from a file, a browser runs neither timelines nor notebooks)"
        )
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
    (SOURCE / "index.md").write_text(
        cards((ROOT / "README.md").read_text("utf-8")) + contents(), "utf-8"
    )
    (SOURCE / "api.rst").write_text(interface(), "utf-8")
    for page in SOURCE.rglob("*.md"):
        page.write_text(outward(page.read_text("utf-8"), page), "utf-8")
    for page in (SOURCE / "notebooks").glob("*.ipynb"):
        notebook = json.loads(page.read_text("utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = outward("".join(cell["source"]), page)
            elif cell["metadata"].get("jupyter", {}).get("source_hidden"):
                # As in JupyterLab. A site has run already, so a guess's answer is folded with its cell.
                tags = cell["metadata"]["tags"]
                tags.append("hide-cell" if "reveal" in tags else "hide-input")
        notebook["cells"].insert(1, buttons(page.name))
        page.write_text(json.dumps(notebook, indent=1), "utf-8")


CHAPTER = re.compile(r"\[([^\]]+)\]\(notebooks/(\w+)\.ipynb\)")
ROW = re.compile(rf"^\| ((?:(?:, )?{CHAPTER.pattern})+) \| (.+) \|$", re.MULTILINE)


def cards(readme: str) -> str:
    """The README, its table of chapters as cards; `polish` takes their pictures from the pages."""
    readme = re.sub(r" GitHub shows\s.*?is the better place\.", "", readme, flags=re.DOTALL)
    rows = list(ROW.finditer(readme))
    parts: list[str] = []
    for title, name, learn in (each for row in rows for each in chapters(row[1], row[4])):
        if book := BOOKS.get(name[:2] if name[2] == "_" else ""):
            parts += ["</div>"] * bool(parts) + [
                f'<h3 class="book">{book}</h3>',
                '<div class="cards">',
            ]
        parts.append(
            f'<a class="card" href="notebooks/{name}.html"><img src="_static/cards/{name}.svg" alt="" '
            f'loading="lazy"><b>{title}</b><span>{learn}</span></a>'
        )
    table = readme.rindex("\n| chapter", 0, rows[0].start())
    made = "\n".join(["", "```{raw} html", *parts, "</div>", "```"])
    return readme[:table] + made + readme[rows[-1].end() :]


def chapters(cell: str, learn: str) -> list[tuple[str, str, str]]:
    """The chapters that share a row, which has their common title once, behind the last number."""
    found = CHAPTER.findall(cell)
    common = found[-1][0].partition(" ")[2]
    return [(f"{title.split()[0]} {common}", name, learn) for title, name in found]


def polish() -> None:
    """What no setting of the theme does: pictures of the cards, and what a screen reader stumbles on."""
    folder = SITE / "_static/cards"
    folder.mkdir(exist_ok=True)
    for page in SITE.rglob("*.html"):
        if page.is_relative_to(SITE / "lite") or page.is_relative_to(SITE / "deck"):
            continue
        text = page.read_text("utf-8")
        if page.parent.name == "notebooks":
            found = PICTURE.search(text)  # a page may have none: then the README's stands for it
            picture = found[0] if found else (ROOT / "docs/overlap.svg").read_text("utf-8")
            (folder / f"{page.stem}.svg").write_text(picture, "utf-8")
        text = text.replace('role="heading"><span', 'role="heading" aria-level="2"><span')
        text = text.replace(
            '<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">'
        )
        text = text.replace('<summary aria-label="Toggle hidden content">', "<summary>")
        text = EMPTY_HEAD.sub(r"<td\1></td>", text)
        page.write_text(text, "utf-8")
    readme_picture.card(SITE / "_static/card.png")


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
    failures = [name for name in agt.errors.__all__ if isinstance(getattr(agt.errors, name), type)]
    classes = [
        name for name in names if isinstance(getattr(agt, name), type) and name not in failures
    ]
    functions = [name for name in names if name not in classes and name not in failures]
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
            # Once each, by the shorter name where there are two: Sphinx takes no object twice.
            lines.append(f".. {here}:: asyncgpu_tutor{'' if name in names else module}.{name}")
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
