"""The errors of `simgpu` as those of this package: the same names, in a tree of its own.

`except agt.errors.OutOfBoundsError` means the error of either device, so nothing of `simgpu` may reach a
program: whatever calls it is `translated`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload

from asyncgpu_tutor import errors
from simgpu.errors import FaultSite, SimGpuError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
E = TypeVar("E", bound=BaseException)

# What a message of simgpu advises, and what one does here.
_WORDS = {
    "(stream.wait_event())": "(shared(), overlap(), stream.wait_event())",
    "device.pinned(shape, dtype)": "agt.pinned(shape, dtype)",
    "that save_spec wrote": "that tools/calibrate.py wrote",
}
# A race within one run is one between arms of an `overlap`: to advise that would be no help.
_ARMS = re.compile(r"(race on .*\(#(\d+)\).*\(#\2\).* luck\. )Put both into one chain.*")


@overload
def translation(error: SimGpuError) -> errors.AsyncGpuError: ...
@overload
def translation(error: E) -> E: ...
def translation(error: BaseException) -> BaseException:
    """This package's error for one of `simgpu`, with its notes and its cause; any other error as it is."""
    if not isinstance(error, SimGpuError):
        return error
    message = str(error)
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    message = _ARMS.sub(r"\1Arms of an overlap don't wait for each other: use one arm.", message)
    kind = vars(errors).get(type(error).__name__, errors.AsyncGpuError)  # of a plain SimGpuError
    made: errors.AsyncGpuError = kind(message)
    for name, value in vars(error).items():  # line, column, site and notes
        setattr(
            made, name, errors.FaultSite(**vars(value)) if isinstance(value, FaultSite) else value
        )
    if error.__cause__ is not None:
        made.__cause__ = translation(error.__cause__)
    return made


def translated(function: Callable[P, R]) -> Callable[P, R]:
    """The function, or method, with this package's errors in place of those of `simgpu`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except SimGpuError as error:
            failure = translation(error)
            # Its frames hold device memory, and whoever keeps the failure must not keep that.
            error.__traceback__ = None
        try:
            raise failure
        finally:
            del failure  # or this frame and the error would hold each other

    return call


def translating(*names: str) -> Callable[[C], C]:
    """A decorator for an adapter's class: these methods and properties are translated, inherited or not."""

    def decorate(adapter: C) -> C:
        for name in names:
            member: Any = getattr(adapter, name)
            if isinstance(member, property):
                getter: Any = member.fget
                setattr(adapter, name, property(translated(getter)))
            else:
                setattr(adapter, name, translated(member))
        return adapter

    return decorate
