"""Take over new recordings: put them in their place, fit the constants again, write the page.

On the GPU:       python tools/fidelity record h200.json
                  python tools/calibrate.py h200_spec.json
                  python tools/fidelity bars tools/fidelity/recordings/bars
Anywhere, after:  python tools/fidelity refresh h200_spec.json h200.json...

Of several recordings of one program the median of each number is taken: hosts of one kind differ by half in
what Python costs there, and so do two runs on one of them. What the GPU itself does is within a percent.

Takes about five minutes. What is left to do by hand: the errors in `test_fidelity.py`, which may only fall;
and `python tools/fidelity counting` before all that, if the interpreter counts otherwise than it did.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from .report import HERE

STEPS = (("fit", "kernels", "--write"), ("fit", "mlp", "--write"), ("report",))


def combined(recordings: list[Any]) -> Any:
    """Median of the numbers; all else as in the first."""
    first = recordings[0]
    if isinstance(first, dict):
        assert all(set(other) == set(first) for other in recordings), "of different versions"
        return {key: combined([r[key] for r in recordings]) for key in first}
    return round(statistics.median(recordings), 4) if isinstance(first, float) else first


def main() -> None:
    """Take the recordings over, then fit and report."""
    spec, *files = map(Path, sys.argv[1:])
    result, *others = [json.loads(file.read_text()) for file in files]
    if others:
        result = combined([result, *others])
        result["machine"]["unit"] = f"us, medians, of which the median over {len(files)} runs"
    (HERE / "recordings" / "h200.json").write_text(json.dumps(result, indent=1) + "\n")
    shutil.copyfile(spec, HERE / "recordings" / "h200_spec.json")
    for module, *options in STEPS:  # each reads the constants that the one before it wrote
        command = [sys.executable, str(HERE), module, *options]
        print("$", *command[1:], flush=True)
        subprocess.run(command, check=True, cwd=HERE.parents[1])
