"""The site that `make site` has built: every chapter and page is there, and no link leads nowhere."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import asyncgpu_tutor as agt
from tests.tools import ROOT

SITE = ROOT / "build/site"

pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the site has not been built: make site"
)


class Links(HTMLParser):
    """The links of a page, and the names that a link to it can use."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.named: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.named.append(value)
            elif key == "id" and value:
                self.ids.add(value)


@pytest.fixture(scope="module")
def pages() -> dict[Path, Links]:
    found = [page for page in SITE.rglob("*.html") if not page.is_relative_to(SITE / "lite")]
    return {page: Links(page) for page in found}


def test_no_link_leads_nowhere(pages: dict[Path, Links]) -> None:
    wrong: list[str] = []
    for page, links in pages.items():
        for link in links.named:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            known = pages[target].ids if target in pages else set()
            if not target.exists() or (anchor and target in pages and anchor not in known):
                wrong.append(f"{page.relative_to(SITE)}: {link}")
    assert wrong == []


def test_every_chapter_is_there_with_its_buttons(pages: dict[Path, Links]) -> None:
    places = ("colab.research.google.com", "mybinder.org", "codespaces.new", "/lite/lab/")
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        links = pages[SITE / "notebooks" / f"{notebook.stem}.html"].named
        for elsewhere in places:
            assert any(elsewhere in link for link in links)


def test_every_chapter_runs_in_the_browser_with_our_wheel() -> None:
    lite = SITE / "lite"
    assert (lite / "lab/index.html").is_file()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        found = json.loads((lite / "files/notebooks" / notebook.name).read_text("utf-8"))
        assert found["cells"][2]["source"].endswith("install --quiet asyncgpu-tutor")
    (index,) = lite.glob("pypi/all.json")
    assert agt.__version__ in json.loads(index.read_text("utf-8"))["asyncgpu-tutor"]["releases"]


def test_a_card_has_its_picture_and_a_link_to_a_page_says_what_is_there() -> None:
    index = (SITE / "index.html").read_text("utf-8")
    pictures = re.findall(r'<img src="(_static/cards/\w+\.svg)"', index)
    assert len(pictures) == len(list((ROOT / "notebooks").glob("*.ipynb")))
    assert all((SITE / picture).is_file() for picture in [*pictures, "_static/card.png"])
    for name in ("index", "notebooks/07_async_mlp", "docs/hazards", "api"):
        text = (SITE / f"{name}.html").read_text("utf-8")
        assert len(re.findall(r'<meta name="description" content="[^"]{40,}"', text)) == 1
        assert len(re.findall(r'property="og:image" content="http', text)) == 1
        assert ("agt-on-page" in text) == name.startswith("notebooks")


def test_every_doc_and_the_interface_are_there(pages: dict[Path, Links]) -> None:
    expected = {SITE / "docs" / f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")}
    assert expected <= pages.keys()
    modules = {"data", "errors", "ranges", "types"}
    names = {f"asyncgpu_tutor.{name}" for name in set(agt.__all__) - modules}
    assert names <= pages[SITE / "api.html"].ids
