"""The form in print: a line an operation, and beside it what the passes found."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.form import Instruction, IRValue
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.types import CType, spelled

_WIDTH = 68  # of the column in front of the lines of the source
_SILENT = form.AccessOp | form.Constant | form.Declare | form.FixedCostOp


def printed(kernel: form.Form, notes: Mapping[Instruction, str]) -> str:
    """Print a kernel, with `notes` behind their steps; `%7` is a value, and `@7` a line of the source."""
    given = ", ".join(f"{spelled(v.type)} {v.name}" for v in kernel.parameters)
    return "\n".join([f"kernel {kernel.name}({given})", *_Printer(notes).steps(kernel.steps, "  ")])


class _Printer:
    def __init__(self, notes: Mapping[Instruction, str]) -> None:
        self._notes = notes
        self._numbers: dict[IRValue, int] = {}

    def steps(self, steps: Iterable[Instruction], margin: str) -> list[str]:
        return [line for step in steps for line in self._step(step, margin)]

    def _step(self, step: Instruction, margin: str) -> list[str]:
        if isinstance(step, _SILENT):
            return []
        if type(step) is form.Scoped:
            return self.steps(step.steps, margin)
        head = step.head if isinstance(step, form.Branch | form.Selection) else None
        parts = [part for part in form.inner(step) if part != [head]]
        out = [*self.steps([head] if head else [], margin), self._line(step, margin)]
        for k, part in enumerate(parts):
            out += [f"{margin}or"] * (k > 0)
            out += self.steps(part, f"{margin}  ")
        return out

    def _line(self, step: Instruction, margin: str) -> str:
        """The kind of a step, and what it has: values, variables, types and numbers."""
        words = self._words(vars(step).values())
        number = f"{self._word(step)} = " if isinstance(step, IRValue) else ""
        line = f"{margin}{number}{type(step).__name__.lower()} {words}".ljust(_WIDTH)
        at = f"@{step.at.line}" if isinstance(step, form.BasicBlock | form.Loop) else ""
        note = f"; {self._notes[step]}" if step in self._notes else ""
        return f"{line} {at:6} {note}".rstrip()

    def _words(self, values: Iterable[Any]) -> str:
        return ", ".join(filter(None, map(self._word, values)))

    def _word(self, value: Any) -> str:
        match value:
            case form.Constant():
                return str(value.value)
            case IRValue():
                return f"%{self._numbers.setdefault(value, len(self._numbers))}"
            case Variable():
                return value.name
            case tuple():
                return self._words(cast("tuple[Any, ...]", value))
            case str() | int():
                return str(value) if type(value) is not bool else ""
            case _:
                return spelled(value) if isinstance(value, CType) else ""
