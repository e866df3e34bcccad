"""The integer expressions of `#if`."""

import operator
from collections.abc import Callable

from simgpu.cuda_c.text.lexer import Token, parse_char, parse_number
from simgpu.cuda_c.text.source import Position, Source

# For each operator, how tightly it binds, and what it computes; C rounds towards zero.
_OPERATIONS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: bool(a or b)), "&&": (2, lambda a, b: bool(a and b)),
    "|": (3, lambda a, b: a | b), "^": (4, lambda a, b: a ^ b), "&": (5, lambda a, b: a & b),
    "==": (6, operator.eq), "!=": (6, operator.ne), "<": (7, operator.lt), ">": (7, operator.gt),
    "<=": (7, operator.le), ">=": (7, operator.ge),
    "<<": (8, lambda a, b: a << b), ">>": (8, lambda a, b: a >> b),
    "+": (9, operator.add), "-": (9, operator.sub), "*": (10, operator.mul),
    "/": (10, lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    "%": (10, lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)),
}  # fmt: skip
PRECEDENCE = {op: level for op, (level, _) in _OPERATIONS.items()}
_SIGNS: dict[str, Callable[[int], int]] = {
    "!": operator.not_, "-": operator.neg, "+": operator.pos, "~": operator.invert,
}  # fmt: skip


def evaluate_condition(source: Source, at: Position, tokens: list[Token]) -> int:
    """Compute the condition of an `#if`, its macros expanded; an unknown name counts 0."""
    reader = _ConditionReader(source, at, tokens)
    value = reader.binary(1)
    if reader.rest:
        source.fail(reader.rest[0].at, f"unexpected '{reader.rest[0].text}' in this condition")
    return value


class _ConditionReader:
    def __init__(self, source: Source, at: Position, tokens: list[Token]) -> None:
        self.source, self.at, self.rest = source, at, list(tokens)
        self.idle = 0  # how many operators do without what is read

    def accept(self, *texts: str) -> str | None:
        if self.rest and self.rest[0].is_(*texts):
            return self.rest.pop(0).text
        return None

    def binary(self, level: int) -> int:
        left = self.unary()
        while self.rest and PRECEDENCE.get(self.rest[0].text, 0) >= level:
            op = self.rest.pop(0).text
            strength, compute = _OPERATIONS[op]
            known = op in ("&&", "||") and bool(left) == (op == "||")
            self.idle += known  # what does not count may divide by zero
            right = self.binary(strength + 1)
            self.idle -= known
            if op in ("/", "%") and right == 0:
                if not self.idle:
                    self.source.fail(self.at, "division by zero in this condition")
                right = 1
            if op in ("<<", ">>") and not 0 <= right < 64:
                if not self.idle:
                    self.source.fail(self.at, f"a shift by {right} in this condition")
                right = 0
            left = (int(compute(left, right)) + 2**63) % 2**64 - 2**63  # as C does, in 64 bits
        if self.rest and self.rest[0].text == "?":
            self.source.unsupported(self.rest[0].at, "'?' is not supported here: use && and ||")
        return left

    def unary(self) -> int:
        if sign := self.accept(*_SIGNS):
            return int(_SIGNS[sign](self.unary()))
        if self.accept("("):
            value = self.binary(1)
            if not self.accept(")"):
                self.source.fail(self.at, "expected ')' in this condition")
            return value
        if not self.rest:
            self.source.fail(self.at, "a condition is missing here")
        token = self.rest.pop(0)
        if token.kind == "name":
            return int(token.text == "true")
        if token.kind == "char":
            return parse_char(self.source, token)
        if token.kind != "number":
            self.source.fail(token.at, f"unexpected '{token.text}' in this condition")
        value, kind = parse_number(self.source, token)
        if kind.kind == "float":
            self.source.fail(token.at, "a condition of #if must be an integer")
        return int(value)
