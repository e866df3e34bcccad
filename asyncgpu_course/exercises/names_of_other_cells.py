"""Find names that an answer takes from other cells of its notebook, which is often a slip."""

import builtins
import dis
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast


def strays(answer: object) -> str:
    """Say which names of Python a notebook hides from a wrong answer, and which of its data the answer uses.

    Functions, kernels and modules of other cells are no slip, and neither are constants, in capitals.
    """
    asked = ((f.__globals__, n) for f in _functions(answer) for n in _global_names(f.__code__))
    used = {name: known[name] for known, name in asked if name in known}
    own = {name for name in used if not hasattr(builtins, name)}
    taken = (name for name in used.keys() - own if used[name] is not getattr(builtins, name))
    hidden = sorted(name for name in taken if name[:2] != "__")  # a class asks for `__name__`
    fine = {n for n in own if callable(used[n]) or isinstance(used[n], ModuleType) or n.isupper()}
    data = " and ".join(f"`{name}`" for name in sorted(own - fine))
    said: list[str] = []
    if hidden:
        names = " and ".join(f"`{name}`" for name in hidden)
        said.append(
            f"In your notebook, {names} is no longer Python's own: `del {', '.join(hidden)}` brings it back."
        )
    if data:
        said.append(
            f"It uses {data} from outside. Make that inside, take it as an argument, or do without."
        )
    return " ".join(said)


def _functions(answer: object) -> Iterator[FunctionType]:
    for part in cast("tuple[Any, ...]", answer) if isinstance(answer, tuple) else (answer,):
        found: list[object] = [*vars(part).values()] if isinstance(part, type) else [part]
        yield from (f for f in found if isinstance(f, FunctionType))


def _global_names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _global_names(inner)
