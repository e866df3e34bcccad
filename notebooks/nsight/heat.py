"""Heat flows through a plate until it hardly changes: plain CuPy, without streams and ranges.

Run it with: python heat.py

It is right, and it is slow. Profile it before you change anything.
"""

import cupy as cp

SIZE, MOST_STEPS, STILL = 256, 60, 1e-3


def plate() -> cp.ndarray:
    """A cold plate with one hot edge."""
    u = cp.zeros((SIZE, SIZE), cp.float32)
    u[0, :] = 100
    return u


def main() -> None:
    """Step until nothing moves."""
    u = plate()
    for _ in range(MOST_STEPS):
        new = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        change = float(cp.abs(new - u[1:-1, 1:-1]).max())
        u[1:-1, 1:-1] = new
        if change < STILL:
            break
    print(f"last change {change:.4f}, mean {float(u.mean()):.4f}")


if __name__ == "__main__":
    main()
