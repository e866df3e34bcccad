"""Draw the pictures of docs/from_pytorch.md, by running its listings on a GPU with PyTorch.

    python tools/torch_pictures.py --out FOLDER

writes its three pictures there, which belong in docs/, and two recordings: handlers that block, and that
await. These belong in asyncgpu_tutor/traces/recordings/torch.
"""

from __future__ import annotations

import argparse
import os
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import record_course

import asyncgpu_tutor as agt

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/from_pytorch.md"


def run_page(folder: Path) -> dict[str, Any]:
    """Run the listings in a folder; what they define."""
    text = (ROOT / PAGE).read_text("utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    folder.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        listings = re.findall(r"(?ms)^```python\n(.*?)^```", text)
        for listing in (each for each in listings if "starlette" not in each):
            exec(compile(listing, PAGE, "exec"), names)
    finally:
        os.chdir(here)
    return names


def main() -> None:
    """Run, and write the files."""
    options = argparse.ArgumentParser(description="Draw the pictures of docs/from_pytorch.md.")
    options.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    folder = options.parse_args().out.resolve()
    names = run_page(folder)
    facts = {**record_course.machine_facts(), "torch": metadata.version("torch")}
    facts |= {"command": "python tools/torch_pictures.py", "kind": "recorded"}
    for name, trace in zip(("torch_blocking", "torch_awaiting"), names["traces"], strict=True):
        trace.about = {**trace.about, **facts, "run": name}
        record_course.write(trace, folder / f"{name}.json")
    print("reused", names["reused"].table(), sep="\n")
    for trace in (*names["traces"], *names["replays"]):
        print(agt.analyse(trace).table(), agt.diagnose(trace), trace.table(), sep="\n")


if __name__ == "__main__":
    main()
