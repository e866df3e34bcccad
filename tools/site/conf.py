"""Sphinx's settings for the site. tools/build_site.py lays out the pages and runs it: `make site`."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from asyncgpu_tutor import __version__

ROOT = Path(os.environ["ASYNCGPU_CHECKOUT"])  # the pages are built in a copy
ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"][
    "Repository"
]

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
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_repository": ADDRESS,
    "source_branch": "main",
    "top_of_page_buttons": [],
}
