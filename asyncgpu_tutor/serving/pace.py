"""How many requests make a launch."""

from __future__ import annotations

import math

# A launch of one request takes the host 8 us (H200, driver 580.159.04, CuPy 14.2, 2026-11-21). One that takes
# it this long anyway would gain 3 % if launches cost nothing.
LONG_US = 250.0


class Pace:
    """One request a launch, or several: whoever is late decides.

    To launch takes the host some microseconds, whatever it launches. While the host is what everything waits
    for, several requests share them. While the device is, they are launched one by one: they overlap better,
    and each is answered as soon as it can be. So they are where the host is late for another reason, such as
    a large copy.

    Parameters
    ----------
    most : int
        How many requests a launch has room for.
    lanes : int
        How many launches there may be at a time. That many in a row have to be found done before more go into
        one: those that ran beside each other end together, also on a device that is late.
    """

    __slots__ = ("_early", "_lanes", "_most", "_seen_us", "size")

    def __init__(self, most: int, lanes: int) -> None:
        self.size = 1  # of the next launch
        self._most = most
        self._lanes = lanes
        self._early = 0  # counts launches in a row that were found done
        self._seen_us = math.inf  # when the latest of them was found

    def found_done(self, now_us: float) -> None:
        """The host comes for the oldest launch, at this time of its own, and finds it done."""
        took, self._seen_us = now_us - self._seen_us, now_us
        if took > LONG_US * self.size:
            self._early, self.size = 0, max(self.size // 2, 1)
            return
        self._early += 1
        if self._early == self._lanes:
            self._early, self.size = 0, min(2 * self.size, self._most)

    def waited(self) -> None:
        """The host had nothing to do but to wait for the oldest launch."""
        # The time until the next is found was spent waiting, and says nothing of the host's work.
        self._seen_us = math.inf
        self._early, self.size = 0, max(self.size // 2, 1)
