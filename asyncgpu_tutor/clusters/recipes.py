"""Recipes that travel: what they take along, and what cannot leave this process.

An operation is a description, so it can be sent to where the data are, which moves a few hundred bytes
instead of the arrays. But a description refers to things, and some of them mean nothing elsewhere: a device
array is an address on one GPU. Pickle would find out too late and too deep, and say that some inner object
can't be pickled. It would also copy a large host array with every call, and say nothing.

So before a recipe goes, we walk through all that it holds: closures, defaults, globals of a notebook's
cell, objects. An array of a device is refused, with the name of the array and what to do instead. A host
array may go, and a warning says how many bytes that costs each time. Only then cloudpickle packs it,
because plain pickle sends a function by its name, and a function of a notebook has none elsewhere. If that
fails, we pack part by part until we have found the innermost one that can't be packed (`_culprit`), and
name the way to it.

Code travels, so both ends need the same version of Python and of this package. And whoever may talk to a
worker may run code there.
"""

import dis
import functools
import pickle
from collections import deque
from collections.abc import Iterator
from importlib import import_module
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import HostArray
from asyncgpu_tutor.clusters.remote import Fetch, StaysHere
from asyncgpu_tutor.errors import ByValueWarning, CannotTravelError
from asyncgpu_tutor.kernels.kernel import Kernel
from asyncgpu_tutor.ops.collectives import Group
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, warn_at
from asyncgpu_tutor.traces.spans.vocabulary import count

# What nothing is looked for in: it travels as it is, or says itself how.
_AS_IT_IS = (str, bytes, int, float, complex, type, ModuleType, np.dtype, np.generic)
_CLOSED = (*_AS_IT_IS, Group, Kernel, Fetch)
# How deep we look for what can't travel. What lies deeper is left to pickle, whose message is worse.
_DEEPEST = 12


def parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Parts of a thing, as far as a recipe may hold something in there: names and things."""
    if isinstance(thing, FunctionType):
        names = thing.__code__.co_freevars
        for name, cell in zip(names, thing.__closure__ or (), strict=True):
            try:
                yield f"its variable {name!r}", cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        for value in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()):
            yield "a default of it", value
        # A function of a module travels by its name, and one of a notebook with the globals that it uses.
        loads = (
            i.argval
            for code in _codes(thing.__code__)
            for i in dis.get_instructions(code)
            if i.opname == "LOAD_GLOBAL"
        )
        for name in dict.fromkeys(loads):  # such as what a notebook's cell has defined
            if thing.__module__ == "__main__" and name in thing.__globals__:
                yield f"the global {name!r}", thing.__globals__[name]
    elif isinstance(thing, MethodType):
        yield "its object", thing.__self__
    elif isinstance(thing, functools.partial):
        partial = cast("functools.partial[Any]", thing)
        yield "its function", partial.func
        yield from (("an argument", value) for value in (*partial.args, *partial.keywords.values()))
    elif isinstance(thing, dict | MappingProxyType):
        items = cast("dict[Any, Any]", thing).items()
        yield from (("a key", key) for key, _ in items)
        yield from ((f"entry {key!r}", value) for key, value in items)
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from (("an entry", value) for value in cast("list[Any]", thing))
    else:
        slots = [s for kind in type(thing).__mro__ for s in getattr(kind, "__slots__", ())]
        held = dict(getattr(thing, "__dict__", {}))
        held.update(
            (s, getattr(thing, s)) for s in slots if s != "__weakref__" and hasattr(thing, s)
        )
        for name, value in held.items():
            yield f"its {name.lstrip('_')}", value


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those that are defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _walk(thing: Any, seen: set[int], depth: int = 0) -> Iterator[Any]:
    if id(thing) in seen or depth > _DEEPEST or isinstance(thing, _CLOSED) or thing is None:
        return
    seen.add(id(thing))
    yield thing
    if not isinstance(thing, np.ndarray | DeviceArray | Partition | HostArray | StaysHere):
        for _, part in parts(thing):
            yield from _walk(part, seen, depth + 1)


def host_arrays_of(thing: Any) -> list[np.ndarray[Any, Any]]:
    """The host arrays that something holds, a recipe or a result: they travel with it, by value."""
    return [part for part in _walk(thing, set()) if isinstance(part, np.ndarray)]


def ready_to_travel(op: Any, where: str) -> DeviceOp[Any]:
    """An operation that is about to go to another worker: it takes no device array along.

    Host arrays go with it, by value, and a `ByValueWarning` says so.
    """
    recipe = as_op(op)
    recipe._used = True  # that it was sent is enough: here nobody will run it
    for thing in _walk(recipe, set()):
        if isinstance(thing, StaysHere):
            raise CannotTravelError(f"recipe {recipe.label!r} holds {thing!r}: {thing.instead}")
        if hasattr(thing, "cache_info") and thing.__module__ == "__main__":
            raise CannotTravelError(
                f"recipe {recipe.label!r} calls {thing.__qualname__!r}, of which only the name would travel, "
                "since functools caches it. Leave the cache away, or put it into a module of its own"
            )
        if isinstance(thing, DeviceArray | Partition):
            array = thing.array if isinstance(thing, Partition) else thing
            raise CannotTravelError(
                f"recipe {recipe.label!r} holds array {array.name!r}, which is on {array.device.name} of "
                f"this process and does not travel to {where}. Put the data there, as in x = await "
                "gpu.put(host), and use x.op(); or make the array in the recipe"
            )
    if data := host_arrays_of(recipe):
        sizes = ", ".join(f"{array.shape} {array.dtype}" for array in data[:3])
        total = sum(array.nbytes for array in data)
        words = (
            f"recipe {recipe.label!r} takes {total:,} bytes along to {where}, in "
            f"{count(len(data), 'host array')} ({sizes}), each time you send it. Put the data there once, "
            "as in x = await gpu.put(host), and use x.op()"
        )
        warn_at(*recipe._origin(), words, ByValueWarning)
    return recipe


def packed(op: DeviceOp[Any]) -> bytes:
    """A recipe as bytes; `CannotTravelError` names what cannot be pickled."""
    try:
        return _dumps(op)
    except Exception as error:
        raise CannotTravelError(
            f"recipe {op.label!r} cannot be pickled, so it cannot go to another process: {_culprit(op)} "
            f"({type(error).__name__}: {error}). Make it where the recipe runs, in a function of and_then "
            "or with_context"
        ) from error


def _dumps(thing: Any) -> bytes:
    cloudpickle: Any = import_module("cloudpickle")  # Dask brings it
    payload: bytes = cloudpickle.dumps(thing)
    return payload


def unpacked(payload: bytes) -> DeviceOp[Any]:
    """The recipe again."""
    return pickle.loads(payload)  # whoever may talk to a worker may run code there anyway


def _culprit(thing: Any, path: str = "") -> str:
    """Say what the innermost part is that cannot be pickled, and where it is held."""
    for name, part in parts(thing):
        if isinstance(part, _CLOSED) or part is None:
            continue
        try:
            _dumps(part)
        except Exception:  # noqa: BLE001 - whatever it is, this is the part
            holder = f" of {_told(thing)}" if isinstance(thing, FunctionType) else ""
            return _culprit(part, f"{name}{holder}")
    return f"{path or 'it'} is {_told(thing)}"


def _told(thing: Any) -> str:
    if isinstance(thing, FunctionType):
        code = thing.__code__
        return f"function {thing.__qualname__!r} ({code.co_filename}:{code.co_firstlineno})"
    return f"a {type(thing).__module__}.{type(thing).__qualname__}"
