"""A test in which something else is noted than before fails, and says what."""

from typing import Any, cast

import pytest

from .noted import HERE, Noted, note, roughly


class _Item:
    nodeid = "tests/laws/test_it.py::test_this"


def ran(hooks: Noted, *said: object) -> None:
    """A test in which this is noted."""
    run = hooks.pytest_runtest_call(cast(Any, _Item))
    next(run)
    note("errors", *said)
    with pytest.raises(StopIteration):
        run.send(None)


def test_a_test_is_held_against_its_notes() -> None:
    hooks = Noted()
    hooks.folder, hooks.known = "here", {}
    ran(hooks, "x.py takes 1.23456 us", 7)
    hooks.folder, hooks.known = None, hooks.taken
    ran(hooks, "x.py takes 1.23457 us", 7)
    with pytest.raises(AssertionError, match=r"not what was noted: errors.*\n.*1.23 us 8"):
        ran(hooks, "x.py takes 1.23456 us", 8)
    hooks.known = {}  # a new one
    ran(hooks, "x.py takes 1.23456 us", 8)


def test_of_what_other_runs_do_not_have_nothing_is_noted() -> None:
    said = f"{__file__}: <object at 0x7f00deadbeef> of version 1.2.3 on {HERE}, 0.1234567"
    assert (
        roughly(said) == f".../tests/test_noted.py: <object at ...> of version ... on {HERE}, 0.123"
    )
