"""The price of an operation for a warp, in instructions; see `Counts`."""

from __future__ import annotations

from simgpu.cuda_c.compile.form import Constant, Operation, Price
from simgpu.cuda_c.compile.issued import ISSUED
from simgpu.cuda_c.types import Scalar

_INTEGER_DIVISION = 16
_DIVISION_BY_CONSTANT = 4  # a multiplication by the reciprocal, and what corrects it
_DIVISION_BY_POWER_OF_TWO = 2  # shifts
_SLOW_FLOAT = 8

_ARITHMETIC = {"+", "-", "*", "/"}


def price_of(operation: Operation) -> Price:
    """The price of one of C's operators, where it is done at all."""
    op, kind = operation.op, operation.type
    if op == "fused":
        return Price(0, flops=1)  # its product has been paid for
    if isinstance(kind, Scalar) and kind.is_float and op in _ARITHMETIC:
        if op != "/":
            return Price(1, flops=1)
        return Price(_SLOW_FLOAT, flops=1, special=1, issued=ISSUED["/"])
    if op in ("/", "%"):
        price = _division(operation.parts[1])
        return Price(price, issued=ISSUED["%"] if price == _INTEGER_DIVISION else price)
    return Price()


def _division(divisor: object) -> int:
    if not isinstance(divisor, Constant):
        return _INTEGER_DIVISION
    number = int(divisor.value)
    power_of_two = number > 0 and not number & (number - 1)
    return _DIVISION_BY_POWER_OF_TWO if power_of_two else _DIVISION_BY_CONSTANT
