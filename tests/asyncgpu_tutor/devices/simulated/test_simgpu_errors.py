"""Each error of simgpu becomes its namesake in the tutor."""

from __future__ import annotations

import gc
import inspect
import weakref

import pytest

import simgpu
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.protocol import Device, Event, Graph, Replay, Stream
from asyncgpu_tutor.devices.simgpu_errors import translated, translation
from asyncgpu_tutor.devices.simulated import SimDevice, SimEvent, SimStream, find_spec
from asyncgpu_tutor.devices.simulated.sim_device import SimGraph, SimReplay
from simgpu import errors as theirs

NAMES = sorted(
    name
    for name, kind in vars(theirs).items()
    if isinstance(kind, type) and issubclass(kind, theirs.SimGpuError)
)
# What an adapter adds by itself, so that nothing of simgpu is in it; and what fails never.
OWN = {
    "activate", "restore", "adopt_stream", "adopt_array", "until_waited_for", "answering", "sleep",
    "export", "note_answers", "apart", "start_log", "stop_log", "create_stream", "is_pinned", "now", "reuse",
    "watch",  # translates by itself
}  # fmt: skip


def bases(kind: type) -> list[str]:
    return [b.__name__.replace("SimGpuError", "AsyncGpuError") for b in kind.__mro__[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_both_trees_agree(name: str) -> None:
    own, other = vars(errors)[name.replace("SimGpu", "AsyncGpu")], vars(theirs)[name]

    assert bases(own) == bases(other)
    assert inspect.signature(own.__init__) == inspect.signature(other.__init__)
    assert set(vars(own("no"))) == set(vars(other("no")))


def test_sites_agree() -> None:
    assert inspect.signature(errors.FaultSite) == inspect.signature(theirs.FaultSite)


def test_an_error_keeps_where_it_happened_its_notes_and_its_cause() -> None:
    cause = theirs.KernelCompileError("no", line=3, column=4)
    fault = theirs.RaceError("two", theirs.FaultSite("k", 7, (0, 0, 0), (1, 0, 0), "x", 5, 9))
    fault.add_note("in operation 'k'")
    fault.__cause__ = cause

    own = translation(fault)

    assert type(own) is errors.RaceError
    assert str(own) == "two"
    assert own.site == errors.FaultSite("k", 7, (0, 0, 0), (1, 0, 0), "x", 5, 9)
    assert own.__notes__ == ["in operation 'k'"]
    assert type(own.__cause__) is errors.KernelCompileError
    assert (own.__cause__.line, own.__cause__.column) == (3, 4)
    other = KeyError("x")
    assert translation(other) is other


def test_advice_is_in_this_package_s_words() -> None:
    said = str(translation(theirs.StreamRaceError("let one wait (stream.wait_event()), or")))

    assert "(shared(), overlap(), stream.wait_event())" in said
    with pytest.raises(errors.UsageError, match=r"that tools/calibrate\.py wrote"):
        find_spec("no such GPU")


def test_a_kept_error_keeps_nothing_else() -> None:
    class Kept:
        pass

    def fail(kept: Kept) -> None:
        raise theirs.DeviceError("no")

    kept = Kept()
    gone = weakref.ref(kept)
    with pytest.raises(errors.DeviceError) as caught:
        translated(fail)(kept)
    assert caught.value.__context__ is None
    caught.value.__traceback__ = None
    del kept, caught
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("adapter", "protocol"),
    [
        (SimDevice, Device),
        (SimStream, Stream),
        (SimEvent, Event),
        (SimReplay, Replay),
        (SimGraph, Graph),
    ],
)
def test_every_verb_of_the_protocol_is_translated(adapter: type, protocol: type) -> None:
    named = [named for part in protocol.__mro__ for named in vars(part).items()]
    verbs = {name for name, value in named if inspect.isfunction(value)}
    bare = {
        name
        for name in verbs - OWN
        if not name.startswith("_")
        if not hasattr(getattr(adapter, name), "__wrapped__")
        or vars(getattr(simgpu, adapter.__name__.removeprefix("Sim"))).get(name)
        is getattr(adapter, name)
    }

    assert bare == set()
