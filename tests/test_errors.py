"""The tree of errors that `errors` draws is the one that it defines."""

import inspect
import re

from asyncgpu_tutor import errors

NODE = re.compile(r"^(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)", re.MULTILINE)
DEFINED = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception) and name != "SimGpuError"
}


def drawn() -> dict[str, str | None]:
    """Each class of the drawing, with the one that it hangs on."""
    assert errors.__doc__ is not None
    tree = errors.__doc__.partition("::")[2].partition("Catch the broadest")[0]
    parents: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for node in NODE.finditer(tree):
        depth, name = len(node["indent"]), node["name"]
        above = [(d, n) for d, n in above if d < depth]
        parents[name] = above[-1][1] if above else None
        above.append((depth, name))
    return parents


def test_each_error_hangs_where_it_is_drawn() -> None:
    first_bases = {
        name: value.__bases__[0].__name__.replace("SimGpuError", "AsyncGpuError")
        for name, value in DEFINED.items()
    }
    hung = {name: parent for name, parent in drawn().items() if parent is not None}
    assert hung == {name: base for name, base in first_bases.items() if base != "Exception"}


def test_each_error_is_public() -> None:
    assert sorted({*DEFINED, "FaultSite"}) == sorted(errors.__all__)
