"""Loads and stores of a source, by which a running kernel reports what it does."""

from __future__ import annotations

from dataclasses import dataclass

from simgpu.cuda_c.text.source import Position


@dataclass
class Site:
    """One load or store in the source: where messages point, and under what number it is counted.

    Two `volatile` accesses do not race, since threads signal each other by them; and `relaxed` reads are not
    checked, because they are in a compare-and-swap loop. A read `polls` if it is in a loop that waits by
    it. What is `packed` is moved byte by byte. The `scope` of an atomic is 1 for its block alone, or 2 for
    the device; it `waits` if its result is needed. The two of a copy that goes on by itself are `apart` from
    their thread.
    """

    index: int
    at: Position
    write: bool = False
    volatile: bool = False
    packed: bool = False
    relaxed: bool = False
    polls: bool = False
    scope: int = 0
    waits: bool = False
    apart: bool = False
