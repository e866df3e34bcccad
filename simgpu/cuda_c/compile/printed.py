"""The form in print: a line an operation, and beside it what the passes found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simgpu.cuda_c.compile import form
from simgpu.cuda_c.compile.form import Node, Step
from simgpu.cuda_c.types import spelled

_WIDTH = 68  # of the column in front of the lines of the source


def printed(kernel: form.Form, notes: Mapping[Step, str]) -> str:
    """Print a kernel, with `notes` behind their steps; `%7` is a value, and `@7` a line of the source."""
    given = ", ".join(f"{spelled(v.type)} {v.name}" for v in kernel.parameters)
    return "\n".join([f"kernel {kernel.name}({given})", *_Printer(notes).steps(kernel.steps, 1)])


class _Printer:
    def __init__(self, notes: Mapping[Step, str]) -> None:
        self._notes = notes
        self._numbers: dict[Node, int] = {}

    def steps(self, steps: Iterable[Step], depth: int) -> list[str]:
        """Print steps, further to the right by `depth`."""
        return [line for step in steps for line in self._step(step, depth)]

    def _step(self, step: Step, depth: int) -> list[str]:
        match step:
            case form.Access() | form.Constant() | form.Declare() | form.Work():
                return []
            case form.Piece():
                head = self._line(depth, f"piece {step.point}", step, step.at.line)
                return [head, *self.steps(step.steps, depth + 1)]
            case form.Expansion():
                head = self._line(depth, f"call {step.name}", step)
                return [head, *self.steps(step.steps, depth + 1)]
            case form.Scoped():
                return self.steps(step.steps, depth)
            case form.Branch():
                out = self._step(step.head, depth)
                out.append(self._line(depth, f"if {self._value(step.test)}", step))
                out += self.steps(step.then, depth + 1)
                other = self.steps(step.otherwise or [], depth + 1)
                return out if step.otherwise is None else [*out, self._line(depth, "else"), *other]
            case form.Selection():
                out = self._step(step.head, depth)
                out.append(self._line(depth, f"switch {self._value(step.subject)}", step))
                for value, case in zip(step.values, step.cases, strict=True):
                    label = "default" if value is None else f"case {value}"
                    out += [self._line(depth, label), *self.steps(case, depth + 1)]
                return out
            case form.Loop():
                ends = "for ever" if step.condition is None else self._value(step.condition)
                test = [*self._step(step.test, depth + 1), self._line(depth + 1, f"while {ends}")]
                body = self.steps(step.body, depth + 1)
                turn = [*body, *test] if step.after else [*test, *body]
                head = self._line(depth, "loop", step, step.at.line)
                return [head, *turn, *self._step(step.step, depth + 1)]
            case form.ShortCircuit() | form.Choice():
                word = f"where {self._value(step.test)}"
                sides = form.pieces_of(step)
                return [self._line(depth, word, step), *self.steps(sides, depth + 1)]
            case form.Leave():
                piece = [] if step.piece is None else self._step(step.piece, depth)
                word = "end of the thread" if step.exit is None else f"leave {step.exit}"
                return [*piece, self._line(depth, word, step)]
            case _:
                return [self._line(depth, self._words(step), step)]

    def _line(self, depth: int, text: str, step: Step | None = None, at: int = 0) -> str:
        out = "  " * depth + text
        note = "" if step is None else self._notes.get(step, "")
        if at or note:
            out = out.ljust(_WIDTH) + (f" @{at}".ljust(6) if at else " " * 6)
        return f"{out}  ; {note}" if note else out.rstrip()

    def _number(self, node: Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def _value(self, node: Node) -> str:
        return str(node.value) if isinstance(node, form.Constant) else f"%{self._number(node)}"

    def _words(self, step: Step) -> str:
        name = "value" if type(step) is Node else type(step).__name__.lower()
        parts = step.parts if isinstance(step, Node) else ()
        given = ", ".join(map(self._value, parts))
        match step:
            case form.Read():
                name = f"get {step.variable.name}"
            case form.Address():
                name = f"address {step.variable.name}"
            case form.Coordinate():
                name = step.name if step.name == "warpSize" else f"{step.name}.{'xyz'[step.axis]}"
            case form.Operation():
                name, given = step.op, f"{given} : {spelled(step.type)}"
            case form.Convert():
                given = f"{given} : {step.target.name}"
            case form.Function():
                name, given = step.name, f"{given} : {spelled(step.type)}"
            case form.Store():
                given = f"{self._value(step.cell)}, {self._value(step.value)}"
            case form.Assign() | form.Bind():
                name = "set new" if isinstance(step, form.Bind) else "set"
                given = f"{step.variable.name}, {self._value(step.value)}"
            case form.Meet():
                given = f"the {step.by}"
            case _:
                pass
        number = f"%{self._number(step)} = " if isinstance(step, Node) else ""
        return f"{number}{name} {given}".rstrip()
