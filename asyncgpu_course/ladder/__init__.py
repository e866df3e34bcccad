"""The rungs of chapter 21: kernels that compute one matrix product, each by one idea more than the last.

Each is a file of CUDA C of its own, so that a page can show it whole and a benchmark can measure the same
text. They take square matrices, row after row, whose side is a multiple of `Rung.side`: edges would double
their lines, and teach nothing new.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FILES = Path(__file__).parent


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder, and how it's launched.

    Attributes
    ----------
    name : str
        Of the kernel, and of its file.
    tile : tuple of int
        Rows and columns of the result that a block computes.
    block : tuple of int
        Threads in a block, as x and y.
    shared : int
        Bytes of shared memory that the launch asks for, beside what the kernel declares.
    turned : bool
        Whether x of the grid counts rows, and not columns.
    """

    name: str
    tile: tuple[int, int]
    block: tuple[int, int]
    shared: int = 0
    turned: bool = False

    @property
    def source(self) -> str:
        """The kernel's CUDA C."""
        return (_FILES / f"{self.name}.cu").read_text(encoding="utf-8")

    @property
    def lines(self) -> int:
        """How many lines that is."""
        return len(self.source.splitlines())

    @property
    def side(self) -> int:
        """What a matrix's side must be a multiple of."""
        return max(*self.tile, 32)

    def grid(self, n: int) -> tuple[int, int]:
        """Blocks for a product of two matrices of n times n, as x and y."""
        down, across = n // self.tile[0], n // self.tile[1]
        return (down, across) if self.turned else (across, down)


RUNGS = (
    Rung("naive", (32, 8), (32, 8), turned=True),
    Rung("coalesced", (8, 32), (32, 8)),
    Rung("shared", (32, 32), (32, 32)),
    Rung("registers", (128, 128), (256, 1)),
    Rung("wide", (128, 128), (256, 1)),
    Rung("warps", (128, 128), (256, 1)),
    Rung("ahead", (128, 128), (256, 1)),
    Rung("larger", (128, 128), (128, 1)),
    Rung("copies", (128, 128), (128, 1)),
    Rung("top", (128, 256), (256, 1), shared=49_664),
    Rung("tensor", (128, 256), (256, 1), shared=3 * 2 * (128 * 40 + 32 * 264)),
)


def attention_source(head: int) -> str:
    """The kernel of attention for heads of 64 or 128 numbers."""
    return f"#define HEAD {head}\n" + (_FILES / "attention.cu").read_text(encoding="utf-8")


def attention_launch(head: int) -> tuple[int, int, int]:
    """Queries of a block, its threads, and the bytes of shared memory that it asks for."""
    queries, keys = head, head // 2
    room = (queries + keys) * (head + 4) + keys * head + queries * (keys + 4)
    return queries, head * head // 64, 4 * room
