"""Notebooks in one canonical form, so that a diff shows what a person changed and nothing else.

``python tools/notebooks.py --check`` names the notebooks that are not; without ``--check`` it
rewrites them.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "solutions")
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
CELL_METADATA = {"tags"}
CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def canonical(text: str) -> str:
    """The same notebook in canonical form.

    nbformat 4.5; keys sorted, one blank of indent; sources as lists of lines; the kernelspec
    `python3`; no outputs, no execution counts; of cell metadata only the tags. Ids are kept, for an
    id that changes is noise.
    """
    notebook: dict[str, Any] = json.loads(text)
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    notebook["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook["cells"]):
        cell.setdefault("id", f"cell-{number:02d}")
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k in CELL_METADATA}
        source = cell["source"]
        cell["source"] = (source if isinstance(source, str) else "".join(source)).splitlines(True)
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def faults(text: str) -> list[str]:
    """What keeps a notebook from being canonical, in words; empty if it is."""
    found: list[str] = []
    notebook = json.loads(text)
    ids = [cell.get("id", "") for cell in notebook["cells"]]
    found += [f"id {i!r} is used twice" for i in sorted(set(ids)) if ids.count(i) > 1]
    found += [f"id {i!r} is not a valid cell id" for i in ids if not CELL_ID.fullmatch(i)]
    if (notebook["nbformat"], notebook["nbformat_minor"]) != (4, 5):
        found.append("it is not nbformat 4.5")
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("its kernelspec is not python3")
    for cell in notebook["cells"]:
        if cell.get("outputs"):
            found.append(f"cell {cell.get('id')!r} has outputs")
        if cell.get("execution_count") is not None:
            found.append(f"cell {cell.get('id')!r} has an execution count")
    if not found and text != canonical(text):
        found.append("its keys, metadata or white space are not in canonical form")
    return found


def main() -> int:
    """Check or rewrite all notebooks; 1 if a check found faults."""
    parser = argparse.ArgumentParser(description="Notebooks in one canonical form.")
    parser.add_argument("--check", action="store_true", help="change nothing, name the faults")
    args = parser.parse_args()

    failed = False
    paths = [p for folder in FOLDERS for p in (ROOT / folder).glob("**/*.ipynb")]
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        if not args.check:
            if (tidy := canonical(text)) != text:
                path.write_text(tidy, encoding="utf-8", newline="\n")
                print(f"rewrote {path.relative_to(ROOT)}")
            continue
        for fault in faults(text):
            failed = True
            print(f"{path.relative_to(ROOT)}: {fault}")
    if failed:
        print("Repair with: make format")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
