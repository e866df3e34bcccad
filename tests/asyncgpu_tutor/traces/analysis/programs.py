"""Traces of the course's programs on a simulated device, each recorded once."""

from functools import cache

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.types import Finding, Span
from tests.tools import tool

trace_of = tool("course_programs").trace_of


def call(number: int, start: float, end: float) -> Span:
    """A launch."""
    return Span(number, "call", "launch k", start, end, "cuda:0")


def finding(trace: Trace, name: str) -> Finding:
    """The only finding of that name."""
    (found,) = (found for found in agt.diagnose(trace) if found.name == name)
    return found


@cache
def recorded(name: str) -> Trace:
    """On a device on which loading a kernel takes time, and which interprets no large launch whole."""
    with agt.using(SimDevice(machine=SimMachine(), load_us=500.0, stand_in_above=2**24)):
        return trace_of(name)
