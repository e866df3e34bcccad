"""Loops over tiles, and faults in a late turn of a loop: the same with summing loops and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simgpu import errors
from simgpu.cuda_c import compile_source
from simgpu.cuda_c.compile import summing_loops
from tests.simgpu.cuda_c.support import launch

HEAD = """extern "C" __global__ void k(const float* a, const float* b, float* x, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; int t = threadIdx.x; __shared__ float q[64];
    __shared__ float p[8][9]; """

SOUND = {
    "tiles": """float s = 0; for (int y = 0; y < n; y++) { p[t / 8][t % 8] = a[y * 64 + i]; q[t] = b[y + t];
        __syncthreads(); for (int j = 0; j < 8; j++) s += p[t / 8][j] * q[j * 8 + t % 8]; __syncthreads(); }
        x[i] = s;""",
    "two buffers": """float s = 0; q[t] = a[i]; __syncthreads(); for (int y = 0; y < n; y++) {
        float* from = y % 2 ? &p[0][0] : q; float* to = y % 2 ? q : &p[0][0];
        to[t] = from[(t + 1) % 64] + 1; __syncthreads(); s += to[t]; } x[i] = s;""",
    "an index that comes back": """for (int y = 0; y < n; y++) { int j = y % 2 ? t : 63 - t; q[j] = y + t;
        __syncthreads(); x[i] += q[t]; __syncthreads(); }""",
    "other threads": """for (int y = 0; y < n; y++) { if ((t + y) % 3) q[t] = y; else p[t / 8][t % 8] = y;
        __syncthreads(); if ((t + y) % 3) x[i] += q[t]; __syncthreads(); }""",
    "set later": """int r, c; r = t / 8; if (t < 40) c = t % 8; else c = 7 - t % 8; float s = 0;
        for (int y = 0; y < n; y++) { p[r][c] = a[y + t]; __syncthreads(); s += p[r][7 - c]; __syncthreads(); }
        x[i] = s;""",
    "registers": """float s = 0; for (int y = 0; y < n; y++) { q[t] = a[y]; __syncthreads();
        for (int j = 0; j < 8; j++) { float r = q[t / 8 * 8 + j]; if (r > 0.5f) s += r * r; } __syncthreads(); }
        x[i] = s;""",
    "steps": """const float* from = a; float s = 0; for (int y = 0; y < n; y++) { q[t] = from[t]; from += 32;
        __syncthreads(); s += q[63 - t]; __syncthreads(); } x[i] = s;""",
    "warps": """float s = 0; for (int y = 0; y < n; y++) { q[t] = s + y; __syncwarp(); s += q[t ^ 1]; __syncwarp();
        q[t ^ 2] = s; __syncthreads(); s += q[63 - t]; __syncthreads(); } x[i] = s;""",
    "loads ahead": """for (int y = 0; y < n; y++) { float r = a[y * 64 + t]; if (r < 0.2f) continue; x[i] += r;
        if (t % 4 == 3 && y > 9) x[i] += b[y]; if (y == 24) break; }""",
    "loads of some": """for (int y = n - 1; y >= 0; y--) if (t < y * 3) x[i] += a[t + y * 130] + b[y * 64 + 63 - t];""",
    "from what is written": "for (int y = 1; y < n; y++) { x[i] = x[i - i % 64 + (t + y) % 1 + t] + a[y * t]; }",
    "by what changes": """int w = 1; for (int y = 0; y < n; y++) { x[i] += a[y * w + t]; if (y % 7 == 6) w++; }""",
    "nested": """for (int y = 0; y < 6; y++) { for (int j = 0; j < 7; j++) { float r = a[y * 64 + j]; x[i] += r;
        x[i] += b[y * 8 + t]; } }""",
    "a counter that jumps": """for (int y = 0; y < n; y++) { int& z = y; x[i] += a[y * 64 + t]; if (y % 8 == 5) z += 2; }""",
    "through a pointer in memory": """__shared__ int* away[64]; away[t] = o; for (int y = 0; y < 19; y++) {
        int v = o[y * 192 + i]; x[i] += v; away[t][(y + 1) * 192 + i] = v + 1; }""",
    "an index that is loaded": """for (int y = 0; y < 5; y++) { float s = 0;
        for (int j = 0; j < 16; j++) s += a[o[j + t]] * b[j * 64 + t]; x[i] += s; }""",
    "a sum by another name": """float s = 1; float& r = s; for (int j = 0; j < 16; j++) s += r * b[j];
        int u = 6; int& w = u; for (int j = 0; j < w; j++) u -= 1; x[i] = s + u;""",
    "zeros with signs": "float z = 0; for (int y = 0; y < n; y++) { o[i * 2 + (1.0f / z > 0.0f)] += 1; z = -z; }",
    "the same value": """for (int y = 0; y < n; y++) { q[t / 2] = 1; __syncthreads(); x[i] += q[0];
        __syncthreads(); }""",
}

BROKEN = {
    "out of bounds late": """for (int y = 0; y < n; y++) { q[t] = 1; __syncthreads();
        for (int j = 0; j < 4; j++) x[i] += q[t + (y == 20) * j]; __syncthreads(); }""",
    "loads out of bounds late": "for (int y = 0; y < n; y++) x[i] += a[y * 150 + t];",
    "loads of nothing late": """for (int y = 0; y < n; y++) { const float* from = y < 20 ? a : nullptr;
        x[i] += from[y + t]; }""",
    "division late": "for (int y = 0; y < n; y++) x[i] += a[t / (20 - y)];",
    "row late": "for (int y = 0; y < n; y++) { for (int j = 0; j < 8 + y / 20 * 2; j++) p[t / 8][j + t % 2] = 0; }",
    "race late": """for (int y = 0; y < n; y++) { q[t] = y; __syncthreads(); x[i] += q[63 - t];
        if (y != 20) __syncthreads(); }""",
    "race by the order": """for (int y = 0; y < n; y++) { if (y % 5 == 4) x[i] += q[63 - t]; q[t] = y;
        if (y % 5 != 4 || y < 20) __syncthreads(); if (y % 5 == 4) __syncthreads(); x[i] += q[63 - t];
        if (y < 22) __syncthreads(); }""",
    "race by the value": """for (int y = 0; y < n; y++) { q[t / 2] = y < 20 ? 1 : t; __syncthreads();
        x[i] += q[0]; __syncthreads(); }""",
    "race of two sites by the value": """for (int y = 0; y < n; y++) { q[t] = y; q[63 - t] = y < 20 ? y : t;
        __syncthreads(); x[i] += q[0]; __syncthreads(); }""",
    "race without the warp's barrier": """float s = 0; for (int y = 0; y < n; y++) { q[t] = s + y;
        if (y != 20) __syncwarp(); s += q[t ^ 1]; __syncthreads(); } x[i] = s;""",
    "unset late": """int c; for (int y = 0; y < n; y++) { int d; if (y < 20) d = t; x[i] += a[d]; }""",
}


def run(text: str, lanes: int, patch: pytest.MonkeyPatch, blocks: int = 1) -> Any:
    """Run a kernel and return all that it leaves behind; `lanes` bounds what a summing loop does at once."""
    patch.setattr(summing_loops, "LANES", lanes)
    rng = np.random.default_rng(1)
    a, b = (rng.random(4096).astype(np.float32) for _ in range(2))
    x, o = np.zeros(64 * blocks, np.float32), np.arange(4096, dtype=np.int32) % 64
    program = compile_source(HEAD + text + "}")
    try:
        done = launch(program, "k", blocks, 64, a, b, x, o, 30)
    except errors.KernelFault as fault:
        return str(fault), fault.site, x.tobytes(), o.tobytes()
    return done.counts, x.tobytes(), o.tobytes()


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", SOUND)
def test_values_and_counts(name: str, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(SOUND[name], 0, monkeypatch, blocks)
    assert len(plain) == 3, plain[0]
    assert run(SOUND[name], 16384, monkeypatch, blocks) == plain


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", BROKEN)
def test_faults(name: str, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(BROKEN[name], 0, monkeypatch, blocks)
    assert len(plain) == 4
    assert run(BROKEN[name], 16384, monkeypatch, blocks) == plain
