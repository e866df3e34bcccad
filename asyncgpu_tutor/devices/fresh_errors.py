"""Errors of `simgpu` as a program may keep them: without the frames in which they were raised.

Those frames hold device memory, and whoever keeps an error must not keep that. And `simgpu` raises the error
of a failed queue again for each who waits, so each gets a copy, to which notes can be added.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asyncgpu_tutor.errors import AsyncGpuError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
E = TypeVar("E", bound=BaseException)


def fresh(error: E) -> E:
    """A copy of an error of `simgpu`, with its notes and its cause; any other error as it is."""
    if type(error).__module__ != AsyncGpuError.__module__:
        return error
    made = type(error)(*error.args)  # by no copy: Dask has errors copied in its own way
    vars(made).update(vars(error))  # line, column and site
    if hasattr(error, "__notes__"):
        made.__notes__ = [*error.__notes__]
    if error.__cause__ is not None:
        made.__cause__ = fresh(error.__cause__)
    return made


def freshly(function: Callable[P, R]) -> Callable[P, R]:
    """The function, or method, raising fresh errors."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except AsyncGpuError as error:
            failure = fresh(error)
            if failure is error:
                raise
            error.__traceback__ = None
        try:
            raise failure
        finally:
            del failure  # or this frame and the error would hold each other

    return call


def raising_freshly(*names: str) -> Callable[[C], C]:
    """A decorator for an adapter's class: these members raise fresh errors, inherited or not."""

    def decorate(adapter: C) -> C:
        for name in names:
            member: Any = getattr(adapter, name)
            if isinstance(member, property):
                getter: Any = member.fget
                setattr(adapter, name, property(freshly(getter)))
            else:
                setattr(adapter, name, freshly(member))
        return adapter

    return decorate
