"""Grid and block of a launch: where they come from, and what they may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asyncgpu_tutor.arrays.handles import Partition
from asyncgpu_tutor.devices.protocol import Dim3, Limits
from asyncgpu_tutor.errors import LaunchConfigError


def as_dim3(what: str, given: int | tuple[int, ...]) -> Dim3:
    """One to three integers as (x, y, z); `LaunchConfigError` if they are none."""
    entries: tuple[Any, ...] = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(entries) <= 3 or not all(isinstance(n, int | np.integer) for n in entries):
        raise LaunchConfigError(f"{what} is one to three integers, (x, y, z), not {given!r}")
    x, y, z = (*entries, 1, 1)[:3]
    return (int(x), int(y), int(z))


def configuration(
    name: str,
    args: Sequence[Any],
    grid: int | tuple[int, ...] | None,
    block: int | tuple[int, ...] | None,
) -> tuple[Dim3, Dim3]:
    """Grid and block: as given, or from the partitions among the arguments.

    Raises `LaunchConfigError` if they cannot be known.
    """
    if grid is None or block is None:
        found: Partition | None = next((arg for arg in args if type(arg) is Partition), None)
        if found is None:
            raise LaunchConfigError(
                f"{name}() does not know how many threads to start: partition the output, as in "
                f"{name}(..., out.partition(256)), or pass both grid= and block="
            )
        grid = found.grid if grid is None else grid
        block = found.block if block is None else block
    return as_dim3("grid", grid), as_dim3("block", block)


def same_grid(name: str, one: Partition, other: Partition) -> None:
    """`LaunchConfigError` if two partitions do not agree on the number of blocks."""
    if one.grid != other.grid:
        raise LaunchConfigError(
            f"{name}() got partitions with different numbers of blocks ({one.grid}, "
            f"{other.grid}): make them agree, or pass grid= and block="
        )


def check_limits(name: str, grid: Dim3, block: Dim3, shared_mem: int, limits: Limits) -> None:
    """Hold a launch against what a device can do; `LaunchConfigError`."""
    x, y, z = block
    threads = x * y * z
    if threads > limits.threads_per_block:
        raise LaunchConfigError(
            f"{name}() asks for {threads} threads in a block {block}, and a block has at most "
            f"{limits.threads_per_block}: make the partition's blocks smaller, or pass block="
        )
    _check_dim3(name, "grid", grid, limits.grid)
    _check_dim3(name, "block", block, limits.block)
    if type(shared_mem) is not int and not isinstance(shared_mem, np.integer):
        raise LaunchConfigError(
            f"{name}() takes a whole number of bytes as shared_mem, not {shared_mem!r}"
        )
    if not 0 <= shared_mem <= limits.shared_bytes:
        raise LaunchConfigError(
            f"{name}() asks for {shared_mem} bytes of shared memory in a block, and "
            f"{limits.shared_bytes} is the limit"
        )


def _check_dim3(name: str, what: str, asked: Dim3, most: Dim3) -> None:
    # On the path of every launch, so without a loop.
    x, y, z = asked
    if x < 1 or y < 1 or z < 1:
        raise LaunchConfigError(
            f"{name}() asks for the {what} {asked}: every entry must be at least 1 (is an array empty?)"
        )
    if x > most[0] or y > most[1] or z > most[2]:
        raise LaunchConfigError(f"{name}() asks for the {what} {asked}, and {most} is the limit")
