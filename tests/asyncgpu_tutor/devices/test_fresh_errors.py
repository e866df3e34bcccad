"""Errors of simgpu are the tutor's, and whoever keeps one keeps nothing else."""

import gc
import inspect
import weakref

import pytest

import simgpu
from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.fresh_errors import fresh, freshly
from asyncgpu_tutor.devices.protocol import Device, DeviceReplay, Event, Graph, Stream
from asyncgpu_tutor.devices.simulated import SimDevice, SimEvent, SimStream
from asyncgpu_tutor.devices.simulated.sim_device import SimGraph, SimReplay
from simgpu import errors as theirs

# What an adapter adds by itself, so that nothing of simgpu is in it; and what fails never.
OWN = {
    "activate", "restore", "adopt_stream", "adopt_array", "until_waited_for", "answering", "sleep",
    "export", "note_answers", "apart", "start_log", "stop_log", "create_stream", "is_pinned", "now",
    "may_be_asked",
    "watch",  # by itself
}  # fmt: skip


def test_an_error_of_simgpu_is_one_of_ours() -> None:
    assert errors.AsyncGpuError is theirs.SimGpuError
    assert errors.OutOfBoundsError is theirs.OutOfBoundsError


def test_a_fresh_error_has_where_it_happened_its_notes_and_its_cause() -> None:
    cause = theirs.KernelCompileError("no", line=3, column=4)
    site = theirs.FaultSite("k", 7, (0, 0, 0), (1, 0, 0), "x", 5, 9)
    fault = theirs.RaceError("two", site)
    fault.add_note("in operation 'k'")
    fault.__cause__ = cause
    own = fresh(fault)
    own.add_note("told")
    assert type(own) is errors.RaceError
    assert (str(own), own.site) == ("two", site)
    assert (own.__notes__, fault.__notes__) == (["in operation 'k'", "told"], ["in operation 'k'"])
    assert isinstance(own.__cause__, errors.KernelCompileError)
    assert own.__cause__ is not cause
    assert (own.__cause__.line, own.__cause__.column) == (3, 4)
    for other in (KeyError("x"), errors.CallRefusedError(2)):
        assert fresh(other) is other


def test_a_kept_error_keeps_nothing_else() -> None:
    class Kept:
        pass

    def fail(kept: Kept) -> None:
        raise held

    kept, held = Kept(), theirs.DeviceError("no")  # as a failed queue holds it
    gone = weakref.ref(kept)
    with pytest.raises(errors.DeviceError) as caught:
        freshly(fail)(kept)
    assert caught.value.__context__ is None
    caught.value.__traceback__ = None
    del kept, caught
    gc.collect()
    assert gone() is None


ADAPTERS = [(SimDevice, Device), (SimStream, Stream), (SimEvent, Event)]
ADAPTERS += [(SimReplay, DeviceReplay), (SimGraph, Graph)]


@pytest.mark.parametrize(("adapter", "protocol"), ADAPTERS)
def test_every_verb_of_the_protocol_raises_freshly(adapter: type, protocol: type) -> None:
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
