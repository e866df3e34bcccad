"""NVTX ranges: our names on the timeline of a profiler, such as Nsight Systems.

They are off until `enable` is called or the environment has ``ASYNCGPU_NVTX=1`` when the first
operation runs. While they are off, they cost one comparison. They need the package
``nvtx``; without a profiler attached, that package does nothing.

What does not await is wrapped by `span`, which a profiler nests by a stack that each thread has. A task that
awaits gives its thread to others, which push and pop on the same stack; so what spans an `await` needs
`across`. NVTX keeps every name forever: name the sort of work ("batch"), and do not count in names.
"""

import importlib
import os
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, TypeAlias

from asyncgpu_tutor.errors import UsageError, demand

DOMAIN = "asyncgpu_tutor"  # profilers show and filter our ranges by it

_VARIABLE = "ASYNCGPU_NVTX"


# An `nvtx.Domain`, which has no types, or a stand-in for one. These methods are called:
# get_event_attributes(message=), push_range(attributes), pop_range(), start_range(attributes) and
# end_range(number).
Domain: TypeAlias = Any

current_domain: Domain | None = None  # where ranges are marked, if they are


def enable() -> None:
    """From now on, mark ranges.

    Raises
    ------
    UsageError
        If the package ``nvtx`` is missing.
    """
    global current_domain  # noqa: PLW0603 - the switch is one for the process, as NVTX itself is
    try:
        nvtx = importlib.import_module("nvtx")
    except ImportError:
        raise UsageError(
            "NVTX ranges need the package nvtx, which is not installed: "
            "pip install 'nvtx>=0.2.12'. It has wheels for Linux and 64-bit Windows."
        ) from None
    current_domain = nvtx.get_domain(DOMAIN)


def disable() -> None:
    """From now on, mark nothing. Ranges that are open still end."""
    global current_domain  # noqa: PLW0603 - as in `enable`
    current_domain = None


def enabled() -> bool:
    """Tell whether ranges are being marked."""
    return current_domain is not None


@contextmanager
def into(domain: Domain) -> Generator[None]:
    """Mark ranges in `domain` for a while: a stand-in for a profiler, which can be asked what it saw."""
    global current_domain  # noqa: PLW0603 - as in `enable`
    before, current_domain = current_domain, domain
    try:
        yield
    finally:
        current_domain = before


def push(name: str) -> Domain | None:
    """Open a range on this thread's stack; `pop_range` of what is returned, if anything is, closes it."""
    domain = current_domain
    if domain is not None:
        domain.push_range(_attributes(domain, name))
    return domain


@contextmanager
def span(name: str) -> Generator[None]:
    """A range around code that does not await: ``with span("submit"): ...``."""
    demand(name, str, "the name of a range is a text")
    domain = push(name)
    try:
        yield
    finally:
        if domain is not None:
            domain.pop_range()


class OpenRange(AbstractContextManager[None]):
    """An open range. `end` closes it."""

    def __init__(self, domain: Domain, name: str) -> None:
        self._domain: Domain | None = domain
        self._id = domain.start_range(_attributes(domain, name))

    def end(self) -> None:
        """Close the range. A second call does nothing."""
        domain, self._domain = self._domain, None
        if domain is not None:
            domain.end_range(self._id)

    def __exit__(self, *_: object) -> None:
        self.end()


def start(name: str) -> OpenRange | None:
    """Open a range that any thread or task may `end`, and that need not nest; None while ranges are off."""
    demand(name, str, "the name of a range is a text")
    return None if current_domain is None else OpenRange(current_domain, name)


def end(token: OpenRange | None) -> None:
    """Close a range that `start` opened. None, or a range that has ended, is left as it is."""
    if token is not None:
        demand(token, OpenRange, "end takes what start returned")
        token.end()


def across(name: str) -> AbstractContextManager[None]:
    """A range around code that awaits: ``with across("batch"): await op``."""
    return start(name) or nullcontext()


@lru_cache(maxsize=1024)
def _attributes(domain: Domain, name: str) -> Any:
    """Prepared once for each name: that is most of what marking a range costs."""
    return domain.get_event_attributes(message=name)


if os.environ.get(_VARIABLE, "").strip().lower() in {"1", "true", "yes", "on"}:
    try:
        enable()
    except UsageError as error:
        # An import must not fail for want of a profiler's annotations.
        warnings.warn(f"{_VARIABLE} is set, but {error}", stacklevel=2)
