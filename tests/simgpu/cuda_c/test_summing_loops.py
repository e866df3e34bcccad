"""Turns of a loop that are computed side by side: as if they had been run one after the other."""

from typing import Any

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import InterpreterLimits, compile_source
from simgpu.cuda_c.compile import summing
from simgpu.cuda_c.memory.regions import ByteRegion
from tests.simgpu.cuda_c.support import launch

HEAD = """extern "C" __global__ void k(const float* a, const float* b, float* x, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; int t = threadIdx.x; """

LOOPS = {
    "product": "float s = 0; for (int j = 0; j < n; j++) s += a[i * n + j] * b[j * 64 + i]; x[i] = s;",
    "difference": "float s = 1; for (int j = n - 1; j >= 0; j--) { s -= a[j] * b[i]; } x[i] = s;",
    "no product": "float s = 0; for (int j = 0; j < n; ++j) s += a[i + j]; x[i] = s;",
    "factor": "float s = 1; for (int j = 0; j < n; j++) s *= 1.0f + b[i + j] / 64; x[i] = s;",
    "strided": "float s = 0; for (int j = t; j < n * 32; j += blockDim.x) s += a[j]; x[i] = s;",
    "uneven": "float s = 0; for (int j = 0; j < i; j++) s += a[j]; x[i] = s;",
    "guarded": "if (i % 3) { float s = 0; for (int j = 0; j < n; j++) s += a[j] * b[j + i]; x[i] = s; }",
    "double": "double s = 0; for (int j = 0; j < n; j++) s += a[j] * b[j + i]; x[i] = s;",
    "whole": "int s = 0; for (unsigned j = 0; j < n; j++) s += (int)a[j] ^ i; o[i] = s;",
    "two": "float s = 0, r = 0; for (int j = 0; j < n; j++) { s += a[j] * a[j]; r += b[i * 4 + j % 4]; } x[i] = s - r;",
    "uniform": "float s = 0; for (int j = 0; j < n; j++) s += a[j]; x[i] = s;",
    "function": "float s = 0; for (int j = 0; j < n; j++) s += expf(-fabsf(a[j])) * b[t]; x[i] = s;",
    "counter behind": "int j; float s = 0; for (j = 3; j < n; j += 2) s += a[j]; x[i] = s + j;",
    "unset": "float s; if (t < 40) s = 1; else s = 2; for (int j = 0; j < n; j++) s += a[j] * b[t]; x[i] = s;",
    "shared": """__shared__ float p[16][17]; __shared__ float q[64]; q[t] = b[i]; p[t / 16][t % 16] = a[i];
        __syncthreads(); float s = 0; for (int j = 0; j < 16; j++) s += p[t % 4][j] * q[j * 4];
        __syncthreads(); q[t] = s; for (int j = 0; j < 8; j++) s += q[t]; x[i] = s;""",
    "tiles": """__shared__ float p[16][17]; __shared__ float q[64]; float s = 0, r = 0, w = 0;
        for (int y = 0; y < 6; y++) { q[t] = b[i + y]; p[t / 4][t % 4] = a[i]; p[t / 4][t % 4 + 4] = b[i + 9 * y];
        p[t / 4][t % 4 + 8] = a[i * 3]; p[t / 4][t % 4 + 12] = -b[i + y]; __syncthreads();
        for (int j = 0; j < 16; j++) s += p[t >> 3][j] * p[(t & 7) + 8][j];
        for (int j = 15; j >= 0; j--) r -= p[j][t >> 3] * q[j * 4];
        for (int j = 0; j < 16; j++) w += q[t & 31] * p[j][t >> 3]; __syncthreads(); } x[i] = s + r / 8 + w;""",
    "shared for long": """__shared__ float q[64]; q[t] = b[i]; __syncthreads();
        float s = 0; for (int j = 0; j < 64; j++) s += q[j] * q[j ^ t]; x[i] = s;""",
    "local": """float r[8]; for (int j = 0; j < 8; j++) r[j] = a[i + j]; float* p = r;
        float s = 0; for (int j = 0; j < 8; j++) s += r[j] * p[7 - j]; x[i] = s;""",
    "vector": """const float4* v = (const float4*)a; float s = 0;
        for (int j = 0; j < 8; j++) s += v[i * 2 + j].x * v[j].w; x[i] = s;""",
    "written before": "x[i] = i; float s = 0; for (int j = 0; j < n; j++) s += x[i] * a[j]; x[i] = s;",
    "two loops": """float s = 0; for (int y = 0; y < 5; y++) { float r = 0;
        for (int j = 0; j < n; j++) r += a[y * n + j] * b[j]; s += r; } x[i] = s;""",
    "narrow counter": "float s = 0; for (unsigned char j = 0; j < 200; j++) s += a[j]; x[i] = s;",
    "an index that is loaded": "float s = 0; for (int j = 0; j < 16; j++) s += a[o[j + t % 32]] * b[j * 64 + t]; x[i] = s;",
    # These are not computed side by side: the sum has another name, and so has the bound.
    "a sum by another name": """float s = 1; float& r = s; for (int j = 0; j < 16; j++) s += r * b[j];
        int u = 6; int& w = u; for (int j = 0; j < w; j++) u -= 1; x[i] = s + u;""",
}

BROKEN = {
    "out of bounds": "float s = 0; for (int j = 0; j < 3000; j++) s += a[j * 2 + t] * b[j]; x[i] = s;",
    "never written": """__shared__ float q[64]; if (t != 9) q[t] = 0; __syncthreads();
        float s = 0; for (int j = 0; j < 64; j++) s += q[j]; x[i] = s;""",
    "race": """__shared__ float q[64]; q[t] = t;
        float s = 0; for (int j = 0; j < 64; j++) s += q[j]; x[i] = s;""",
    "race behind": """__shared__ float q[64]; q[t] = t; __syncthreads();
        float s = 0; for (int j = 0; j < 64; j++) s += q[j]; q[t] = s; x[i] = s;""",
    "overflow": "float s = 0; for (signed char j = 0; j < 1000; j++) s += a[j + 128]; x[i] = s;",
}


def run(text: str, lanes: int, patch: pytest.MonkeyPatch, contract: bool, blocks: int = 1) -> Any:
    """All that a kernel leaves behind, with so many lanes side by side."""
    patch.setattr(summing, "LANES", lanes)
    rng = np.random.default_rng(1)
    a, b = (rng.random(4096).astype(np.float32) for _ in range(2))
    x, o = np.zeros(64 * blocks, np.float32), np.arange(64 * blocks, dtype=np.int32)
    program = compile_source(HEAD + text + "}", contract=contract)
    limits = InterpreterLimits(step_budget=4000)
    try:
        done = launch(program, "k", blocks, 64, a, b, x, o, 30, limits=limits)
    except errors.KernelFault as fault:
        return str(fault), fault.site, x.tobytes(), o.tobytes()
    return done.counts, x.tobytes(), o.tobytes()


@pytest.mark.parametrize("contract", [True, False])
@pytest.mark.parametrize("name", LOOPS)
def test_values_and_counts(name: str, contract: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for blocks in (1, 2):
        one_by_one = run(LOOPS[name], 0, monkeypatch, contract, blocks)
        assert len(one_by_one) == 3, one_by_one[0]
        for lanes in (300, 1000, 16384):
            assert run(LOOPS[name], lanes, monkeypatch, contract, blocks) == one_by_one


@pytest.mark.parametrize("name", BROKEN)
def test_faults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one = run(BROKEN[name], 0, monkeypatch, True)
    assert len(one_by_one) == 4
    assert run(BROKEN[name], 16384, monkeypatch, True) == one_by_one


def test_they_are_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would compare a thing with itself."""
    seen: list[int] = []
    load = ByteRegion.load

    def watched(region: ByteRegion, access: Any) -> Any:
        seen.append(access.team.turns)
        return load(region, access)

    monkeypatch.setattr(ByteRegion, "load", watched)
    run(LOOPS["product"], 16384, monkeypatch, True)
    assert seen == [30, 30]
