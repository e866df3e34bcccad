"""The same program, repaired: one kernel for a step, and a look at the result every 20 steps.

python heat_repaired.py
"""

import cupy as cp
import nvtx

SIZE, MOST_STEPS, STILL, LOOK_EVERY = 256, 60, 1e-3, 20

stencil = cp.RawKernel(
    r"""
extern "C" __global__ void stencil(int n, const float* u, float* v)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1) {
        v[y * n + x] = (u[(y - 1) * n + x] + u[(y + 1) * n + x] + u[y * n + x - 1] + u[y * n + x + 1]) / 4;
    }
}
""",
    "stencil",
)


def plate() -> cp.ndarray:
    """A cold plate with one hot edge."""
    u = cp.zeros((SIZE, SIZE), cp.float32)
    u[0, :] = 100
    return u


def main() -> None:
    """Step until nothing moves."""
    with nvtx.annotate("set up"):
        u, v = plate(), plate()
        blocks = (SIZE + 15) // 16
    for step in range(1, MOST_STEPS + 1):
        with nvtx.annotate("step"):
            with nvtx.annotate("stencil"):
                stencil((blocks, blocks), (16, 16), (SIZE, u, v))
            u, v = v, u
        if step % LOOK_EVERY == 0:
            with nvtx.annotate("is it still?"):
                change = float(cp.abs(u - v).max())
            if change < STILL:
                break
    with nvtx.annotate("report"):
        print(f"last change {change:.4f}, mean {float(u.mean()):.4f}")


if __name__ == "__main__":
    main()
