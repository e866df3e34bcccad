"""Tasks for answers.py."""

import numpy as np

from simgpu import KernelSpec, Output


def two(n, random):
    x = random.standard_normal(n, np.float32)
    return {"n": n, "a": 1.5, "x": x, "y": random.standard_normal(n, np.float32)}


def one(n, random):
    return {"n": n, "x": random.standard_normal(n, np.float32), "out": Output(1)}


def itself(n, random):
    x = random.standard_normal(n, np.float32)
    return {"n": n, "x": x, "y": x}


def looked_up(n, random):
    return {"n": n, "y": Output(n), "table": random.standard_normal(16, np.float32)}


def holes(n, random):
    x = random.standard_normal(n, np.float32)
    x[random.random(n) < 0.3] = np.nan
    return {"n": n, "x": x, "y": Output(n)}


def square(n, random):
    return {"n": n, "a": random.random((n, n), np.float32), "b": Output((n, n))}


def counted(n, random):
    x = random.integers(0, 16, n).astype(np.int32)
    return {"n": n, "x": x, "bins": random.integers(0, 99, 16).astype(np.int32)}


def whole(n, random):
    return {"n": n, "x": random.integers(-99, 99, n).astype(np.int32), "y": Output(n, np.int32)}


def grand(n, random):
    x = random.integers(-99, 99, n).astype(np.int32)
    part, count = Output(-(-n // 64), np.int32), np.zeros(1, np.int32)
    return {"n": n, "x": x, "part": part, "count": count, "out": Output(1, np.int32)}


def grand_sum(n, x, count):
    return {"out": x.sum(keepdims=True), "count": count}


def smoothed(n, x):
    at = np.arange(n)
    around = x[np.maximum(at - 1, 0)], x, x[np.minimum(at + 1, n - 1)]
    return sum(v.astype(np.float64) for v in around) / 3 if n else x


specs = [
    KernelSpec(
        "saxpy",
        two,
        lambda n, a, x, y: {"y": np.float32(a) * x + y},
        sizes=[1000],
        block=128,
        atol=1e-5,
    ),
    KernelSpec("total", one, lambda n, x: x.sum(dtype=float).reshape(1), grid=1, atol=1e-4),
    KernelSpec("twin", itself, lambda n, x, y: {"y": x * 2}, block=64),
    KernelSpec("look", looked_up, lambda n, table: table[np.arange(n) % 16], block=64),
    KernelSpec("squares", lambda n, random: {"n": n, "y": Output(n)}, lambda n: np.arange(n) ** 2),
    KernelSpec("relu", holes, lambda n, x: np.maximum(x, 0), sizes=[500], block=64),
    KernelSpec("transpose", square, lambda n, a: a.T, sizes=[64], block=(16, 16)),
    KernelSpec(
        "histogram",
        counted,
        lambda n, x, bins: {"bins": bins + np.bincount(x, minlength=16)},
        sizes=[2000],
    ),
    KernelSpec(
        "scan",
        whole,
        lambda n, x: np.cumsum(x, dtype=np.int32),
        sizes=[256],
        awkward=[0, 1, 13, 255],
        grid=1,
    ),
    KernelSpec("grand", grand, grand_sum, block=64),
    KernelSpec("met", grand, grand_sum, block=64, cooperative=True),
    KernelSpec(
        "blur",
        lambda n, random: one(n, random) | {"out": Output(n)},
        smoothed,
        atol=1e-6,
    ),
]
