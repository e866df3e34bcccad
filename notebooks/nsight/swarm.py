"""A chain of particles on springs, for the large report of chapter 08: python swarm.py.

It is right, and it gets slower as it runs. The chapter asks you why, so read the report before you read this.
"""

import cupy as cp
import nvtx
from cupyx import profiler

PARTICLES, STEPS, SAVE_EVERY, CENTRE_EVERY, DT = 100_000, 160, 40, 100, 0.01


def chain() -> tuple[cp.ndarray, cp.ndarray]:
    """Places and speeds of the particles: a wave, at rest."""
    x = cp.sin(cp.arange(PARTICLES, dtype=cp.float32) / 100)
    return x, cp.zeros_like(x)


def run(steps: int) -> float:
    """Let the springs pull; returns the mean energy of all steps."""
    x, v = chain()
    energies: list[cp.ndarray] = []
    mean = cp.zeros((), cp.float32)
    for step in range(1, steps + 1):
        with nvtx.annotate("step"):
            with nvtx.annotate("forces"):
                pull = cp.roll(x, 1) + cp.roll(x, -1) - 2 * x
            with nvtx.annotate("move"):
                v += DT * pull
                x += DT * v
            with nvtx.annotate("watch"):
                energies.append((v * v).sum())
                mean = sum(energies) / len(energies)
            if step % CENTRE_EVERY == 0:
                with nvtx.annotate("centre"):
                    x -= x.mean()
            if step % SAVE_EVERY == 0:
                with nvtx.annotate("save"):
                    x.get()
    return float(mean)


if __name__ == "__main__":
    run(3)  # loads the kernels
    with profiler.profile():
        print(f"mean energy {run(STEPS):.3f}")
