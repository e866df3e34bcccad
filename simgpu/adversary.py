"""Legal but hostile: a device that does unordered work in an order that nobody hopes for.

Streams and events promise an order; nothing else does. A program that also counts on durations, such as
"the first batch is done first" or "after a millisecond it is surely over", works until the day when it
does not. An adversary makes that day today. (The idea is that of randomised schedulers for threads:
Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler with probabilistic guarantees of
finding bugs", ASPLOS 2010. This one gives no guarantee.)
"""

import random

from simgpu.errors import UsageError


class Adversary:
    """Whims in the order of submission, so that a program and a seed give one sequence of events.

    Every other piece of work is held back by 1 us to 0.1 s. Durations become up to a quarter, or up to 1000
    times, of what they are.
    """

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise UsageError(f"an adversary's seed is not below 0, and {seed} is")
        self.seed = seed = int(seed)
        self._random = random.Random(seed)
        self._memories = 0

    def whim(self) -> tuple[float, float]:
        """How much later the next piece of work may start, in us, and the factor of its duration."""
        draw = self._random.random
        late, how_late, stretch = draw(), draw(), draw()
        return 10 ** (5 * how_late) if late < 0.5 else 0.0, 2 ** (12 * stretch - 2)

    def memory(self) -> int | None:
        """A seed for the next launch that talks (`cuda_c.memory.hostile`); None leaves memory alone."""
        self._memories += 1
        # The upper bits tell adversaries apart, so that two of them don't treat a launch alike.
        return self.seed << 20 | self._memories
