"""Take over new recordings: put them in their place, fit the constants again, write the page.

On the GPU:       python -m tests.fidelity.record h200.json
                  python -m asyncgpu_tutor calibrate h200_spec.json
                  python -m tests.fidelity.bars tests/fidelity/recordings/bars
Anywhere, after:  python -m tests.fidelity.refresh h200.json h200_spec.json

Takes about five minutes. What is left to do by hand: the errors in `test_fidelity.py`, which may only fall;
and `python -m tests.fidelity.counting` before all that, if the interpreter counts otherwise than it did.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .report import HERE

STEPS = (("fit", "kernels", "--write"), ("fit", "mlp", "--write"), ("report",))


def main() -> None:
    recorded, spec = map(Path, sys.argv[1:])
    for given, name in ((recorded, "h200.json"), (spec, "h200_spec.json")):
        shutil.copyfile(given, HERE / "recordings" / name)
    for module, *options in STEPS:  # each reads the constants that the one before it wrote
        command = [sys.executable, "-m", f"tests.fidelity.{module}", *options]
        print("$", *command[1:], flush=True)
        subprocess.run(command, check=True, cwd=HERE.parents[1])


if __name__ == "__main__":
    main()
