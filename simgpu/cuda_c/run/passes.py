"""What each pass finds in a kernel, for a person to read."""

from __future__ import annotations

from collections import defaultdict

from simgpu.cuda_c.compile.form import Form, Piece, Step, below
from simgpu.cuda_c.compile.printed import printed
from simgpu.cuda_c.compile.summing import summing
from simgpu.cuda_c.compile.waiting import parks
from simgpu.cuda_c.cost.charges import Costs
from simgpu.cuda_c.text.source import Source


def told(form: Form, costs: Costs, source: Source) -> str:
    """Print the form of a kernel, with the findings of `waiting`, `summing` and `cost` beside it."""
    notes = defaultdict[Step, list[str]](list)
    for step in below(form.steps):
        number = costs.charges[step.point].instructions if isinstance(step, Piece) else 0
        if number:
            notes[step].append(f"{number} instruction{'s' * (number > 1)}")
    places = parks(form.steps, form.sites, source)
    for step, span in places.spans.items():
        last = "" if len(span) == 1 else f" to {span.stop - 1}"
        notes[step].append(f"lanes may wait at place {span.start}{last}")
    for loop, spin in places.spins.items():
        if spin.often:
            notes[loop].append("may spin")
    for loop, found in summing(form.steps).items():
        names = ", ".join(total.variable.name for _, total in found.totals)
        notes[loop].append(f"sums up {names} over {found.counter.name}")
    return printed(form, {step: "; ".join(words) for step, words in notes.items()})
