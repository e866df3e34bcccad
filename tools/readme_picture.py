"""The picture in README.md: its own first program, and the same with `zip` in place of `overlap`.

``python tools/readme_picture.py`` writes docs/overlap.png, on the simulated device: the same everywhere,
but for the fonts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from pathlib import Path
from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_tutor.traces.trace import Trace

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/overlap.png"


def traces(readme: str) -> tuple[Trace, Trace]:
    """The traces of the program with `zip`, and as it is."""
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```", readme)
    zipped = program.replace("agt.overlap(", "agt.zip(")
    assert zipped != program
    return _recorded(zipped), _recorded(program)


def _recorded(program: str) -> Trace:
    names: dict[str, Any] = {}
    with agt.using("sim"), contextlib.redirect_stdout(io.StringIO()):
        exec(program, names)
    return names["trace"]


def main() -> int:
    """Write the picture, and say in words what it shows."""
    argparse.ArgumentParser(description="Draw docs/overlap.png.").parse_args()
    import matplotlib as mpl

    mpl.use("Agg")
    from asyncgpu_tutor.traces.pictures import alt_text, compare_timelines

    both = traces((ROOT / "README.md").read_text(encoding="utf-8"))
    picture = compare_timelines(list(both), ["zip: one stream", "overlap: four streams"], width=9)
    picture.save(PICTURE, dpi=110, metadata={"Software": None})
    for trace in both:
        print(alt_text(trace))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
