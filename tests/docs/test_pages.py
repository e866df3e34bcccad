"""Of every page and notebook: links within the checkout lead somewhere, and commands are there."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from asyncgpu_course.__main__ import EVERY_COMMAND
from tests.tools import ROOT
from tests.tools import page as text_of

PLACES = ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "asyncgpu_tutor/traces/recordings/*.md")
PLACES += ("notebooks/*.ipynb", "solutions/*.ipynb")
PAGES = sorted(path for place in PLACES for path in ROOT.glob(place))
BLOCK = re.compile(r"```\w*\n.*?```", re.DOTALL)


def prose(page: Path) -> str:
    """The text of a page, or of the Markdown cells of a notebook."""
    text = page.read_text("utf-8")
    if page.suffix == ".md":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def anchors(page: Path) -> set[str]:
    """The names that a link can have behind "#", as GitHub and JupyterLab make them of headings."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", prose(page)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in headings}


def code(page: Path) -> str:
    """Return the code of a page, from its lines and from its blocks."""
    text = prose(page)
    return "\n".join(BLOCK.findall(text) + re.findall(r"`([^`\n]+)`", BLOCK.sub("", text)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", prose(page)))
    wrong: list[str] = []
    for link in (link for link in links if not re.match(r"\w+:", link)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_each_page_of_the_docs_is_in_the_contents_of_the_site() -> None:
    contents = text_of("tools/build_site.py")  # Sphinx refuses a page that is in none
    assert [p for p in (ROOT / "docs").glob("*.md") if f'"docs/{p.stem}"' not in contents] == []


def test_commands_are_there() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", text_of("Makefile")))
    shown = "\n".join(code(page) for page in PAGES)
    made = set(re.findall(r"(?m)^\s*(?:[A-Z_]+=\S+ )*make ([a-z-]+)", shown))
    asked = set(re.findall(r"\basyncgpu-tutor ([a-z-]+)", shown))
    asked |= set(re.findall(r"\bpython -m asyncgpu_tutor ([a-z-]+)", shown))
    scripts = set(re.findall(r"\bpython ([a-z]\w*/[\w/.]+)", shown))
    modules = set(re.findall(r"\bpython -m ((?:asyncgpu_tutor|simgpu)[\w.]*)", shown))
    assert {"lab", "test"} <= made <= targets
    assert {"doctor", "mlp", "profile"} <= asked <= EVERY_COMMAND.keys()
    assert scripts
    assert [script for script in scripts if not (ROOT / script).exists()] == []
    assert modules
    assert [module for module in modules if importlib.util.find_spec(module) is None] == []
