"""Live views in a notebook: one widget for all of them, on anywidget, without a network.

A view is a dictionary of JSON values; its entry ``"view"`` says which class of `live.js` draws it. A still
picture stands where no widget can be: without anywidget, on a page that was exported, in a terminal. With
``ASYNCGPU_LIVE=page`` the data stand beside the still picture, for a site whose own script draws them; with 0
nothing is live.
"""

# anywidget is an extra: where it is not installed, its types are not known.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false, reportAttributeAccessIssue=false
# pyright: reportMissingModuleSource=false

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_MOST_ON_A_PAGE = 250_000  # characters of one view's data


def show(
    view: Callable[[], Mapping[str, Any]],
    *,
    html: str,
    text: str,
    around: Callable[[Any], Any] = lambda widget: widget,
) -> dict[str, Any]:
    """Return a cell's output by MIME type: the live `view`, if there can be one, and a still picture.

    `around` puts the live view's widget into a larger one.
    """
    still = {"text/plain": text, "text/html": html}
    # A notebook's kernel has somebody at its other end; a terminal has none, and neither has a script.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    wanted = os.environ.get("ASYNCGPU_LIVE", "1")
    if wanted == "page":
        data = json.dumps(view()).replace("<", "\\u003c")
        if len(data) < _MOST_ON_A_PAGE:
            data = f'<script type="application/json">{data}</script>'
            return {**still, "text/html": f'<div class="agt-on-page">{html}{data}</div>'}
    if wanted != "1" or getattr(shell, "kernel", None) is None or (make := _widget()) is None:
        return still
    shown = around(make(view=view()))._repr_mimebundle_()
    # IPython takes data, or data and metadata.
    live: dict[str, Any] = shown[0] if isinstance(shown, tuple) else shown
    return {**(live or {}), **still}


@cache
def _widget() -> Callable[..., Any] | None:
    """The class of the widget; None without anywidget."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None
    here = Path(__file__).parent

    class View(anywidget.AnyWidget):
        _esm = (here / "live.js").read_text(encoding="utf-8")
        _css = (here / "live.css").read_text(encoding="utf-8")
        view = traitlets.Dict().tag(sync=True)

    return View
