"""The leaf operations, pinned host memory, arrays of other libraries."""

from asyncgpu_tutor.memory.host import asarray, is_foreign, pin, pinned
from asyncgpu_tutor.memory.leaves import arange, d2h, dup, full, h2d, memcpy, ones, randn, zeros

__all__ = [
    "arange",
    "asarray",
    "d2h",
    "dup",
    "full",
    "h2d",
    "is_foreign",
    "memcpy",
    "ones",
    "pin",
    "pinned",
    "randn",
    "zeros",
]
