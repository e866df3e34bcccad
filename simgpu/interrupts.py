"""Ctrl-C, and a notebook's Stop: they wait while the machine changes its state, and end what takes long.

Python runs a signal's handler between any two of its instructions. If Ctrl-C raises in the middle of an
update of the engine, half of it is done, and every later call computes nonsense. To ignore interrupts would
be safe, but a kernel that spins may then hold up a notebook for good. So interrupts wait while the machine
changes its state (`held_back`), and are let in again around what takes long and can be thrown away, such as
interpreting a kernel (`interruptible`).

A handler of our own can't stay installed, because an event loop and a notebook's kernel have theirs, which
come and go. So SIGINT gets another one only for as long as a call takes, and the program's handler hears of
the interrupt afterwards. A server wants requests in flight to get their answers, so nothing is ended if the
handler belongs to an object with `lets_kernels_finish`. Inside of an event loop an interrupt doesn't go
through the loop, since that would end a notebook's. The kernel fails instead, with an error for whoever
awaits it.

`_signal` swaps handlers, because the public `signal` is made of it, and turns numbers into enums and back,
which takes ten times as long; a launch has a dozen swaps. Code that changes the machine outside of
`held_back` can be cut in two again.
"""

import sys
from _signal import SIGINT, default_int_handler, getsignal, raise_signal
from _signal import signal as set_handler
from collections.abc import Callable
from threading import current_thread, main_thread
from types import FrameType
from typing import ClassVar, ParamSpec, TypeVar

from simgpu.errors import given_up

P = ParamSpec("P")
R = TypeVar("R")
_Handler = Callable[[int, FrameType | None], object]


class Held:
    """What is held back in this process, whose main thread is the only one to run handlers."""

    handler: ClassVar[_Handler | int] = default_int_handler  # of the program
    arrived: ClassVar[tuple[int, FrameType | None] | None] = None
    ending: ClassVar[bool] = False  # what is interruptible should end now
    # By the program's handler, as Python's does, and trio's in a task.
    raised: ClassVar[bool] = False


def hold(number: int, frame: FrameType | None) -> None:
    """Keep an interrupt for later."""
    Held.arrived = number, frame


def held_back(act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `act` returns. The program's handler hears of interrupts when it is over."""
    before = getsignal(SIGINT)
    # An outer call holds them back already, or the program has no handler, or this thread never runs one.
    if before is hold or not callable(before) or current_thread() is not main_thread():
        return act(*args, **kwargs)
    outer, Held.handler = Held.handler, before
    try:
        set_handler(SIGINT, hold)
        return act(*args, **kwargs)
    finally:
        now, Held.handler = Held.handler, outer
        set_handler(SIGINT, now)
        if Held.arrived is not None:
            _deliver(now if callable(now) else lambda number, _: raise_signal(number))


def _deliver(handler: _Handler) -> None:
    """Hand over what has been held back, if anything: a handler may raise."""
    arrived, Held.arrived = Held.arrived, None
    if arrived is not None:
        handler(*arrived)


def let_through() -> None:
    """An interrupt has arrived, nothing is half done, and the program's handler may end what goes on."""
    if current_thread() is main_thread():
        _deliver(_tell)


def interruptible(act: Callable[[], R]) -> R:
    """What `act` returns, which Ctrl-C, and a notebook's Stop, end at once."""
    if getsignal(SIGINT) is not hold or current_thread() is not main_thread():
        return act()
    if getattr(getattr(Held.handler, "__self__", None), "lets_kernels_finish", False):
        return act()
    try:
        try:
            set_handler(SIGINT, _end)
            if Held.arrived is not None:
                _deliver(_end)
            done = act()
            if Held.ending:
                end_if_told()
            return done
        finally:
            try:
                set_handler(SIGINT, hold)
            finally:  # one that arrives right here has been raised by now, and is not to be raised again
                Held.ending = False
    except KeyboardInterrupt as interrupted:
        if Held.raised or Held.handler is default_int_handler:
            raise
        if type(interrupted) is KeyboardInterrupt:  # whoever was cancelled is told nothing of this
            for note in getattr(interrupted, "__notes__", ()):
                print(note, file=sys.stderr)  # noqa: T201
        failure = given_up(interrupted.with_traceback(None))
        raise failure from failure.__cause__


def end_if_told() -> None:
    """Raise the interrupt once more: where it fell into a finalizer, Python has dropped it."""
    if current_thread() is main_thread():
        raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    """Tell the program's handler, and end what is interruptible: once, since the next one is held back."""
    set_handler(SIGINT, hold)
    Held.ending = Held.raised = True
    _tell(number, frame)
    Held.raised = False
    raise KeyboardInterrupt


def _tell(number: int, frame: FrameType | None) -> None:
    """Call the program's handler, which may raise, or leave another one for the next interrupt."""
    try:
        if callable(Held.handler):
            Held.handler(number, frame)
        else:  # it has left SIG_DFL, say, which has its way when the machine is left
            hold(number, frame)
    finally:
        if (now := getsignal(SIGINT)) is not None and now is not hold:
            Held.handler = now
            set_handler(SIGINT, hold)
