"""The warning about copies that are asynchronous in name only."""

from __future__ import annotations

import inspect
import os
import warnings
from pathlib import Path

from asyncgpu_tutor.errors import PageableCopyWarning

PACKAGE = f"{Path(__file__).resolve().parents[1]}{os.sep}"


def warn_pageable(name: str, nbytes: int) -> None:
    """Warn that the host array behind `name` is pageable, at the caller's line."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"host array {name!r} ({nbytes:,} bytes) is pageable: the host is held up while its copy is "
        "staged. Make it with agt.pinned(shape, dtype), or copy it once with agt.pin(array).",
        PageableCopyWarning,
        stacklevel=level,
    )
