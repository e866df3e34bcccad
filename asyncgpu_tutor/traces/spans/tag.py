"""The submission that the calls being made belong to: devices read it for the spans that they write."""

from __future__ import annotations

from contextvars import ContextVar

from asyncgpu_tutor.errors import NestedSyncError


class Name(str):
    """A label that the program gave, and that is not just what the operation does.

    The `part` is the name of that part of it which is being enqueued; empty where it has none of its own.
    """

    __slots__ = ("part",)

    def __new__(cls, label: str, part: str = "") -> Name:
        """As for a string."""
        name = super().__new__(cls, label)
        name.part = part
        return name


class Tag:
    """Number and name of a submission; they end up in the spans."""

    __slots__ = ("captures", "label", "op", "over")

    def __init__(self, op: int, label: str, captures: bool = False) -> None:
        self.op = op  # number of the submission
        self.label = label  # name of the operation
        # Whether the submission has ended. A task that was created in it still has its tag.
        self.over = False
        self.captures = captures  # whether the calls are written down, and not made


CURRENT: ContextVar[Tag | None] = ContextVar("asyncgpu_tag", default=None)


def current_tag() -> Tag | None:
    """The tag of the submission under way, if there is one."""
    tag = CURRENT.get()
    return None if tag is None or tag.over else tag


def current_operation() -> tuple[int | None, str]:
    """Number and name of the submission under way, as spans have them."""
    tag = current_tag()
    return (tag.op, tag.label) if tag else (None, "")


def forbid_nested_wait(what: str) -> None:
    """Raise `NestedSyncError` where a submission is under way.

    A wait there would block on work that has not been handed over yet, or block the event loop.
    """
    tag = CURRENT.get()
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
        "and_then, map and with_context describe work and must not wait for any, nor start any. Return an "
        "operation instead, and wait outside."
    )
