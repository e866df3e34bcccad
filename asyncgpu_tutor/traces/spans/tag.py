"""Which submission the calls that are being made belong to.

Whoever submits an operation sets the tag; devices read it, for the spans that they write, and so does
whatever must not be called meanwhile.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from asyncgpu_tutor.errors import NestedSyncError

__all__ = ["Tag", "Tagged", "current_operation", "current_tag", "forbid_nested_wait"]


@dataclass(eq=False, slots=True)
class Tag:
    """Which submission the calls that are being made belong to; it ends up in the spans.

    Attributes
    ----------
    op : int
        Number of the submission.
    label : str
        Name of the operation.
    over : bool
        Whether the submission has ended. A task that was created in it still has its tag.
    captures : bool
        Whether the calls are written down, and not made.
    """

    op: int
    label: str
    over: bool = False
    captures: bool = False


_TAG: ContextVar[Tag | None] = ContextVar("asyncgpu_tag", default=None)


def current_tag() -> Tag | None:
    """The tag of the submission under way, if there is one."""
    tag = _TAG.get()
    return None if tag is None or tag.over else tag


def current_operation() -> tuple[int | None, str]:
    """Number and name of the submission under way, as spans have them."""
    tag = current_tag()
    return (tag.op, tag.label) if tag else (None, "")


class Tagged:
    """``with Tagged(tag):`` attributes what is enqueued in the block to `tag`.

    A class, because a generator would cost each submission a microsecond more.
    """

    __slots__ = ("_tag", "_token")

    def __init__(self, tag: Tag) -> None:
        self._tag = tag

    def __enter__(self) -> None:
        self._token = _TAG.set(self._tag)

    def __exit__(self, *_: object) -> None:
        self._tag.over = True
        _TAG.reset(self._token)


def forbid_nested_wait(what: str) -> None:
    """Raise `NestedSyncError` where a submission is under way.

    A wait there would block on work that has not been handed over yet, or block the event loop.
    """
    tag = _TAG.get()  # `current_tag` in line, because every run asks and a call would cost it time
    if tag is None or tag.over:
        return
    if tag.captures:
        raise NestedSyncError(
            f"{what} was called during the {tag.label}: nothing runs in a capture, so there is nothing to "
            "wait for. Describe work there (in a scope with scope.record(op)), launch what was captured, and "
            "wait for that."
        )
    raise NestedSyncError(
        f"{what} was called while operation {tag.label!r} is being submitted: functions given to "
        "and_then, map and with_context describe work and must not wait for any. Return an "
        "operation instead, and wait outside."
    )
