"""The knowledge that blocks have of each other: up to when each has been told of what another did.

A block publishes by a fence, and then a write that others can look at: an atomic, or a volatile store. Such
a word carries a message, namely what its writer knew at its last fence; a block that looks at the word knows
it, too. Atomics on one word carry on what they found. (PTX ISA, "Memory Consistency Model": release and
acquire patterns, release sequences. Clocks are by block, so a barrier is taken to have told the other threads
of one; and that a fence follows the look is not asked for.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 1024  # blocks of a launch: each knows something of each


class Messages:
    """The knowledge of the blocks of one launch, and the words that carry it."""

    def __init__(self, blocks: int) -> None:
        self.counts = blocks <= MOST  # else nothing is known, and `Shadow` asks for less
        self.active = False  # whether anybody has published yet
        self._blocks = blocks
        self._words: dict[int, NDArray[np.int64]] = {}
        # What each block would write now: words that carry the same share one row, which nobody changes.
        self._rows: dict[int, NDArray[np.int64]] = {}
        # A row for each block: up to when it knows of each; and the same at its last fence.
        self._known = self._fenced = np.zeros((0, 0), np.int64)

    def fence(self, blocks: NDArray[np.int64], clock: int) -> None:
        """These blocks execute a fence."""
        if self._begun():
            self._fenced[blocks] = self._known[blocks]
            self._fenced[blocks, blocks] = clock
            for block in blocks.tolist():
                self._rows.pop(block, None)

    def meet(self, clock: int) -> None:
        """All blocks pass a barrier of the grid."""
        if self._begun():
            self._known[:] = self._fenced[:] = clock
            self._rows.clear()

    def _begun(self) -> bool:
        if self.counts and not self.active:
            self.active = True
            self._known = np.zeros((self._blocks, self._blocks), np.int64)
            self._fenced = self._known.copy()
        return self.active

    def exchange(
        self, words: Any, blocks: NDArray[np.int64], changed: Any, looks: bool = True
    ) -> None:
        """Lanes of these blocks work on words by atomics, in this order, and some have changed them."""
        if not self.active:
            return
        pairs = np.stack(np.broadcast_arrays(words, blocks, changed)).astype(np.int64)
        _, first = np.unique(pairs, axis=1, return_index=True)
        for k in sorted(first.tolist()):
            word, block, new = pairs[:, k].tolist()
            message = self._words.get(word)
            if message is not None and looks:
                np.maximum(self._known[block], message, out=self._known[block])
            if new:
                row = self._row(block)
                if message is None:
                    self._words[word] = row
                elif message is not row and (row > message).any():
                    self._words[word] = np.maximum(message, row)

    def look(self, words: Any, blocks: NDArray[np.int64]) -> None:
        """Lanes of these blocks read words that others may be writing to."""
        if self._words:
            self.exchange(words, blocks, False)

    def write(self, words: Any, blocks: NDArray[np.int64]) -> None:
        """Lanes of these blocks write to words at which others may look: what these carried is gone."""
        if self.active:
            for word, block in zip(
                *map(np.ndarray.tolist, np.broadcast_arrays(words, blocks)), strict=True
            ):
                self._words[word] = self._row(block)

    def _row(self, block: int) -> NDArray[np.int64]:
        row = self._rows.get(block)
        if row is None:
            row = self._rows[block] = self._fenced[block].copy()
        return row

    def told(self, mine: Any, theirs: Any, when: Any) -> NDArray[np.bool_]:
        """Tell whether blocks know of what others did at a time."""
        if not self.active:
            return np.zeros(len(mine), np.bool_)
        return self._known[mine, theirs] >= when
