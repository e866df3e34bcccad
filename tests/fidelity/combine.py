"""Make one recording out of several of the same program: the median of each number.

python -m tests.fidelity.combine FILE RECORDING...

Hosts of one kind differ by half in what Python costs there, and so do two runs on one of them. What the GPU
itself does is within a percent.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any, cast


def combined(recordings: list[Any]) -> Any:
    """Median of the numbers; all else as in the first.

    Raises
    ------
    ValueError
        If they have not the same entries.
    """
    first = recordings[0]
    if isinstance(first, dict):
        if any(set(other) != set(cast(Any, first)) for other in recordings):
            raise ValueError(
                "these recordings have different entries: record them with one version"
            )
        return {key: combined([r[key] for r in recordings]) for key in cast(Any, first)}
    if isinstance(first, float):
        return round(statistics.median(recordings), 4)
    return first


def main() -> None:
    target, *files = map(Path, sys.argv[1:])
    result = combined([json.loads(file.read_text()) for file in files])
    if "machine" in result:
        result["machine"]["unit"] = f"us, medians, of which the median over {len(files)} runs"
    target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
