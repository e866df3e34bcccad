"""The answer of a check to a learner: words, and timelines where time is the point."""

from dataclasses import dataclass
from typing import Literal

import asyncgpu_tutor as agt
from asyncgpu_course.checks.rejection import Rejected, alike
from asyncgpu_course.internals import Timeline, compare

Status = Literal["not attempted", "rejected", "accepted"]


@dataclass(frozen=True, repr=False)
class OutcomeWords:
    """Markdown that also reads well as plain text, because its `text` is kept to bold, code and lists."""

    text: str

    def __repr__(self) -> str:
        return self.text

    _repr_markdown_ = __repr__


@dataclass(frozen=True)
class Outcome:
    """The outcome of a check.

    Attributes
    ----------
    status : {"not attempted", "rejected", "accepted"}
    text : str
        For the learner, as Markdown.
    cause : str
        Why it was rejected, in one line; else empty.
    got, expected : Trace or None
        The learner's timeline and the solution's, where the schedule is wrong.
    edge : tuple of Span
        Spans of `got` whose order is the first to be wrong.
    """

    status: Status
    text: str
    cause: str = ""
    got: agt.Trace | None = None
    expected: agt.Trace | None = None
    edge: tuple[agt.types.Span, ...] = ()
    # `plot` keeps the solution's timeline to itself at the first miss, and where it looks the same.
    alone: bool = False

    @property
    def accepted(self) -> bool:
        """True if the answer is right."""
        return self.status == "accepted"

    def __repr__(self) -> str:
        picture = self.plot()
        return self.text if picture is None else f"{self.text}\n\n{picture.words}"

    def _repr_markdown_(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        from IPython import display  # only IPython calls this, so it is there

        display.display(display.Markdown(self.text))  # pyright: ignore[reportUnknownMemberType] - IPython has no types
        if (picture := self.plot()) is not None:
            display.display(picture)  # pyright: ignore[reportUnknownMemberType] - as above

    def plot(self) -> Timeline | None:
        """Both timelines on one scale, with the first wrong edge marked in the first; None without them."""
        if not self.got or not self.expected:
            return None
        n = 1 if self.alone else 2
        marked = [self.edge or None, None][:n]  # the expected one keeps its colours
        return compare([self.got, self.expected][:n], ["Yours", "Expected"][:n], highlight=marked)


def rejection(title: str, rejected: Rejected, note: str = "", first: bool = False) -> Outcome:
    """The outcome of a wrong answer; a `note` stands below its cause."""
    lines, same = [f"**Not yet.** *{title}*: {rejected.cause}"], False
    if rejected.got is not None and rejected.expected is not None:
        same = alike(rejected.got, rejected.expected)
        names = ("wait" if span.kind == "wait" else span.name for span in rejected.edge)
        marked = " → ".join(dict.fromkeys(f"`{name}`" for name in names))
        if marked:
            lines.append(f"Marked in the picture is where it first goes wrong: {marked}.")
        if first and not same:
            lines.append("Miss once more, and you'll see the expected timeline below yours.")
    if note:
        lines.append(note)
    pictures = rejected.got, rejected.expected, rejected.edge
    return Outcome("rejected", "\n\n".join(lines), rejected.cause, *pictures, first or same)
