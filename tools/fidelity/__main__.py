"""Hold the model of time against a GPU:  python tools/fidelity STEP ...

Steps: record, bars, links, counting, fit, report, refresh. The first lines of each module say what it does,
and with which arguments.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

STEPS = ("record", "chains", "bars", "links", "counting", "fit", "report", "refresh")

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in STEPS:
        raise SystemExit(__doc__)
    # In the place of this folder, whose modules import each other as a package: the folder of all tools.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    step = importlib.import_module(f"fidelity.{sys.argv.pop(1)}")
    step.main()
