"""Draw docs/mlp_256.svg: the MLP at DIM 256, simulated, by CUPTI and by Nsight Systems, on one axis.

    python tools/profiling_picture.py

The last two are the recordings that come with the package.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from course_programs import trace_of

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace

NAME = "07_async_mlp"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "mlp_256.svg"


def three() -> list[Trace]:
    """The same program, timed by a model, by CUPTI and by Nsight Systems."""
    with agt.using(agt.SimDevice()):
        simulated = trace_of(NAME)
    cupti = Trace.load_recording(NAME)
    nsys = Trace.from_nsys(Trace.recorded_file(f"{NAME}.sqlite"), within=NAME)
    # The range around a batch is left out, because it says little here.
    nsys.spans[:] = [span for span in nsys if not (span.kind == "range" and span.op is None)]
    return [simulated, cupti, nsys]


def main() -> None:
    """Write the picture."""
    argparse.ArgumentParser(description="Draw docs/mlp_256.svg.").parse_args()
    traces = [t.from_first(s for s in t if s.kind != "range") for t in three()]
    titles = ["Simulated", "CUPTI", "Nsight Systems"]
    agt.compare_timelines(traces, titles).save(PICTURE)
    print(f"wrote {PICTURE.name}")


if __name__ == "__main__":
    main()
