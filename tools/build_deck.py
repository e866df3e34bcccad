"""The slides for ninety minutes, from course/deck.md: plain pages that need no network; `make deck`.

``![](pictures/CHAPTER/CELL.svg)`` is the picture that this cell of the solved chapter shows, on the simulated
device. ``python tools/build_deck.py FOLDER`` runs those chapters and makes the slides.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

ROOT = Path(__file__).resolve().parents[1]
DECK = ROOT / "course/deck.md"
SOURCE = ROOT / "build/deck-source"
PICTURE = re.compile(r"!\[\]\((pictures/(\w+)/([\w-]+)\.svg)\)")


def main() -> int:
    """Build them; the exit status is Sphinx's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where they are to be")
    folder: Path = parser.parse_args().folder.resolve()
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    words = draw(DECK.read_text("utf-8"))
    text = PICTURE.sub(lambda found: f"![{words[found[1]]}]({found[1]})", DECK.read_text("utf-8"))
    (SOURCE / "index.md").write_text(text, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "revealjs"]
    command += ["-c", str(ROOT / "tools/deck"), str(SOURCE), str(folder)]
    code = subprocess.run(command, check=False).returncode
    shutil.rmtree(folder / ".doctrees", ignore_errors=True)
    return code


def draw(deck: str) -> dict[str, str]:
    """Draw the pictures that the deck names; what each of them shows, in words."""
    os.environ |= {"ASYNCGPU_DEVICE": "sim", "ASYNCGPU_LIVE": "0", "MPLBACKEND": "agg"}
    os.environ["ASYNCGPU_TELL"] = "1"
    asked: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path, chapter, cell in PICTURE.findall(deck):
        asked[chapter][cell] = path
    words: dict[str, str] = {}
    for chapter, cells in asked.items():
        for cell, picture in run(chapter, set(cells)):
            target = SOURCE / cells[cell]
            target.parent.mkdir(parents=True, exist_ok=True)
            picture.save(target)
            words[cells[cell]] = " ".join(picture.words.split())
    return words


def run(chapter: str, wanted: set[str]) -> Iterator[tuple[str, Any]]:
    """Run a solved chapter up to the last cell that is wanted; what each of these shows."""
    shell = InteractiveShell()
    notebook = json.loads((ROOT / f"solutions/{chapter}.ipynb").read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and wanted:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(SOURCE):
                done = shell.run_cell("".join(cell["source"]))
            done.raise_error()
            if cell["id"] in wanted:
                wanted.remove(cell["id"])
                shown = done.result  # a timeline, or what reveals a guess by one
                yield cell["id"], shown.pictures[0] if hasattr(shown, "pictures") else shown
    if wanted:
        raise ValueError(f"{DECK.name} asks for cells that {chapter} has not: {sorted(wanted)}")


if __name__ == "__main__":
    sys.exit(main())
