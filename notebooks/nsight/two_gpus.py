"""Training on two GPUs, each of which has a part of the data: python two_gpus.py [--even].

One process, a thread of the host, and NCCL, which adds up what both have learnt. Needs two NVIDIA GPUs.
"""

import argparse

import cupy as cp
import nvtx
from cupy.cuda import nccl
from cupyx import profiler

WIDTH, LAYERS, STEPS, RATE = 4096, 3, 6, 1e-4
FILES = (3, 1)  # files of data that each GPU got; --even deals them out again
ROWS = 512  # in a file


class Rank:
    """One GPU, with its rows of data and its copy of the network."""

    def __init__(self, number: int, rows: int) -> None:
        self.number = number
        with cp.cuda.Device(number):
            self.stream = cp.cuda.Stream(non_blocking=True)
            self.x = cp.full((rows, WIDTH), 0.01, cp.float32)
            self.layers = [cp.full((WIDTH, WIDTH), 0.01, cp.float32) for _ in range(LAYERS)]
            self.slopes = [cp.zeros_like(w) for w in self.layers]

    def learn(self) -> None:
        """Forwards through the layers, and back: a slope for each weight, from the rows of this GPU.

        The slope of `tanh` itself is left out: what the network learns matters less here than when.
        """
        with cp.cuda.Device(self.number), self.stream:
            seen = [self.x]
            for w in self.layers:
                seen.append(cp.tanh(seen[-1] @ w))
            error = seen.pop()
            for w, slope in zip(self.layers[::-1], self.slopes[::-1], strict=True):
                cp.matmul(seen.pop().T, error, out=slope)
                error = error @ w.T

    def update(self) -> None:
        """Move each weight against its slope, which is by now that of all rows."""
        with cp.cuda.Device(self.number), self.stream:
            for w, slope in zip(self.layers, self.slopes, strict=True):
                cp.subtract(w, RATE * slope, out=w)


def step(ranks: list[Rank], links: list[nccl.NcclCommunicator]) -> None:
    """One step of training; nothing in it waits for the GPUs."""
    with nvtx.annotate("step"):
        with nvtx.annotate("learn"):
            for rank in ranks:
                rank.learn()
        with nvtx.annotate("add up"):
            for layer in range(LAYERS):
                nccl.groupStart()
                for rank, link in zip(ranks, links, strict=True):
                    place = rank.slopes[layer].data.ptr
                    link.allReduce(
                        place,
                        place,
                        WIDTH * WIDTH,
                        nccl.NCCL_FLOAT32,
                        nccl.NCCL_SUM,
                        rank.stream.ptr,
                    )
                nccl.groupEnd()
        with nvtx.annotate("update"):
            for rank in ranks:
                rank.update()


def settle(ranks: list[Rank]) -> None:
    """Wait for both."""
    for rank in ranks:
        rank.stream.synchronize()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--even", action="store_true", help="as many files for each")
    files = (2, 2) if parser.parse_args().even else FILES
    both = [Rank(number, ROWS * share) for number, share in enumerate(files)]
    wires = nccl.NcclCommunicator.initAll(len(both))
    for _ in range(3):
        step(both, wires)
    settle(both)
    with profiler.profile():
        for _ in range(STEPS):
            step(both, wires)
        settle(both)
    print("weights after training:", float(both[0].layers[0][0, 0]), float(both[1].layers[0][0, 0]))
