"""Sphinx's settings for the site. tools/build_site.py lays out the pages and runs it: `make site`."""

from __future__ import annotations

import os
import re
import textwrap
import tomllib
from html import escape, unescape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from asyncgpu_tutor import __version__

ROOT = Path(os.environ["ASYNCGPU_CHECKOUT"])  # the pages are built in a copy
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADDRESS, PUBLISHED = PROJECT["urls"]["Repository"], PROJECT["urls"]["Documentation"]

project = "asyncgpu_tutor"
author = "asyncgpu_tutor contributors"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "index"
default_role = "code"  # a name in a docstring looks like one
myst_heading_anchors = 4  # what links within pages name
myst_enable_extensions = ["dollarmath"]

# The outputs are those of the simulated device. What has run once is kept until its cells change.
nb_execution_mode = os.environ.get("SITE_EXECUTION", "cache")
nb_execution_cache_path = str(ROOT / "build/site-cache")
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
# Several classes have a `device`, and docstrings need not say whose.
suppress_warnings = ["ref.python"]
autodoc_typehints = "none"  # docstrings say it in words
napoleon_use_ivar = True

html_theme = "furo"
html_title = "asyncgpu_tutor"
html_copy_source = False
html_show_sphinx = False
pygments_dark_style = "github-dark"  # the usual one underlines modules, as if they were links
LIVE = ROOT / "asyncgpu_tutor/traces/live"
html_static_path = ["static", str(LIVE / "live.js"), str(LIVE / "live.css")]
html_css_files = ["live.css", "site.css"]
html_js_files = [("on_page.js", {"type": "module"})]
html_favicon = str(ROOT / "tools/site/static/favicon.svg")
html_theme_options = {
    "source_repository": ADDRESS,
    "source_branch": "main",
    "top_of_page_buttons": [],
}


def tell_who_links_here(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """What a search engine and a chat show of a page: a sentence and a picture."""
    text = re.sub(
        r"<(style|script|svg|details)\b.*?</\1>", "", context.get("body", ""), flags=re.DOTALL
    )
    told = [
        re.sub(r"<[^>]+>|¶", "", found) for found in re.findall(r"<p>(.*?)</p>", text, re.DOTALL)
    ]
    first = next(
        (" ".join(unescape(p).split()) for p in told if len(p) > 60), PROJECT["description"]
    )
    title = re.sub(r"<[^>]+>", "", context.get("title", project))
    facts = {
        "og:title": unescape(title),
        "og:type": "website",
        "og:url": f"{PUBLISHED}{page}.html",
        "og:description": textwrap.shorten(first, 200, placeholder=" …"),
        "og:image": f"{PUBLISHED}_static/card.png",
        "twitter:card": "summary_large_image",
    }
    tags = [f'<meta property="{name}" content="{escape(said)}" />' for name, said in facts.items()]
    tags.append(f'<meta name="description" content="{escape(facts["og:description"])}" />')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", tell_who_links_here)
