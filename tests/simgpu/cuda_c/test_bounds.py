"""Any source and any launch ends soon, in a result or in an error that says what was too much."""

import numpy as np
import pytest

from simgpu import RawKernel, errors
from simgpu.cuda_c import InterpreterLimits, compile_source

from .support import launch

pytestmark = pytest.mark.rests_on("simgpu")

K = "__global__ void k(int* o) { int i = threadIdx.x; "
DOUBLING = "".join(f"#define A{j + 1} A{j} + A{j}\n" for j in range(40))
STRUCTS = "".join(f"struct S{j + 1} {{ S{j} a, b; }};\n" for j in range(40))
LINKS = "if (1) o[i] = 0;\n" + "".join(f"else if (i == {j}) o[i] = {j};\n" for j in range(1, 5000))
SPIN = "constexpr int f(int n) { int x = 0; for (int j = 0; j < 9000; j++) x += j & n; return x; }\n"  # fmt: skip
# A source, what its error says, and the line at which it says so.
SOURCES = [
    (K + "int q[2000000000]; q[i] = 1; }", "'q' takes 8,000,000,000 bytes.* 524,288", 1),
    (K + "int q[65536][65536][65536]; }", "524,288", 1),
    (K + "".join(f"int q{j}[50000]; q{j}[i] = i; " for j in range(9)) + "}", "local arrays of more than 524,288", 1),
    ("struct S { char a[1000000]; };\n" + K + "S s; s.a[0] = 1; }", "'s' takes 1,000,000", 2),
    ("struct S { char a[99999]; };\n__global__ void k(S s) {}", "99,999 bytes, 32,764", 2),
    ("__device__ int g[1500000000];\n" + K + "}", "6,000,000,000 bytes", 1),
    ("__device__ int g[1 << 30][1 << 30][1 << 30];\n" + K + "}", "not possible", 1),
    (K + "__shared__ int s[12289]; s[i] = 0; }", "49,156 bytes of static shared memory, and 49,152", 1),
    ("__constant__ char a[40000], b[40000];\n" + K + "}", "80,000 bytes: at most 65,536", 1),
    ("__device__ int g[3000000] = {1};\n" + K + "o[i] = g[i]; }", "3,000,000 numbers", 1),
    ("struct S0 { int a; };\n" + STRUCTS + K + "S40 s; }", "more than 10,000 members", 15),
    ("#define A0 1\n" + DOUBLING + K + "o[i] = A40; }", "macros of this file make more than 200,000", 42),
    ("#define A0\n" + DOUBLING.replace("+", "") + "#if A40\n#endif\n" + K + "}", "more than 200,000", 42),
    ("#define D(x) x + x\n" + K + "o[i] = " + "D(" * 40 + "1" + ")" * 41 + "; }", "200,000", 2),
    ("#define P(a) a##a\n#define Q(a) P(a)\n" + K + "int " + "Q(" * 30 + "x" + ")" * 30 + "; }", "200,000", 3),
    ("#if 1 << 100000000000\n#endif\n" + K + "}", "a shift by 100000000000", 1),
    ("\n#if " + "(" * 5000 + "\n#endif\n" + K + "}", "nested too deep", 2),
    ("#define D(x) x\n\n" + K + "o[i] = " + "D(" * 2000 + "1" + ")" * 2000 + "; }", "nested too deep", 3),
    ("\n\n" + K + "o[i] = " + "(" * 9999 + "1" + ")" * 9999 + "; }", "nested too deep", 3),
    ("\n" + K + "o[i] = " + "i + " * 9999 + "1; }", "nested too deep", 2),
    ("namespace a { " * 3000 + "}" * 3000 + K + "}", "nested too deep", 1),
    (K + 'printf("%1000000000d", i); }', "above 999", 1),
    (K + 'printf("' + "\\\n" * 60 + "; }", "never closed", 1),
    (K + "o[i] = 0x" + "f" * 500_000 + "; }", "does not fit 64 bits", 1),
    (K + "o[i] = 0x1p9999999999; }", "too large", 1),
    (K + "o[i] = " + "z" * 100_000 + "; }", "is not declared", 1),
    (K + "o[i] = 1;" + " " * 50_000 + "@" + " " * 50_000 + "}", "unexpected character", 1),
    (SPIN + "".join(f"constexpr int z{j} = f({j});\n" for j in range(99)) + K + "int q[z98]; }", "known at compile time", 100),
]  # fmt: skip


@pytest.mark.parametrize(("source", "says", "line"), SOURCES)
def test_a_source_that_asks_for_too_much(source: str, says: str, line: int) -> None:
    with pytest.raises(errors.KernelCompileError, match=says) as caught:
        compile_source(source)
    assert caught.value.line == line
    assert len(str(caught.value)) < 1000


def test_a_chain_of_else_if_is_refused_at_its_place() -> None:
    with pytest.raises(errors.UnsupportedFeatureError, match="else-if chain") as caught:
        compile_source("\n" + K + LINKS + "}")
    assert 100 < (caught.value.line or 0) < 1000


@pytest.mark.parametrize(
    "loop",
    [
        "while (true) o[i] += 1;",
        "for (;;) { s[i]++; }",
        "do atomicAdd(o + i, 1); while (o[i] >= 0);",
        # Their counters tell that they won't end in time.
        "for (int j = 0; j < 1000000000; j++) o[i] += 1;",
        "for (unsigned j = 4000000000u; j > 0; j -= 2) o[i] += 1;",
        "for (long long j = i; j <= 1ll << 60; j += 32) o[i] += 1;",
        "for (int j = 0; j < 9; j += 0) o[i] += 1;",
        "int j = 0; do { o[i] += 1; } while (++j < 1000000 + i);",
        "for (int j = 0; j != -1; j++) o[i] += 1;",
        "for (int j = 0; j != 2 * i + 9999; j += 2) o[i] += 1;",
        "for (int j = 1; 999 != j; j += 0) o[i] += 1;",
        "for (int j = i; j != 10000000; j++) o[i] += 1;",
        "for (int j = 1; j > 0; j *= 1) o[i] += 1;",
        "for (int j = 0; j < 9; j *= 2) o[i] += 1;",
        "for (unsigned j = 1; j != 0; j *= 3) o[i] += 1;",
        "for (float x = 0; x < 1e9f; x += 0.25f) o[i] += 1;",
        "for (float x = 1; x > 0; x += 0.0f) o[i] += 1;",
        "for (int k = 0; k < 999; k++) for (int j = 0; j < 999; j++) o[i] += 1;",
        "for (int j = 0; j < 1000000000; j++) { o[i] += 1; if (o[i] < 0) break; }",
    ],
)
def test_a_loop_without_an_end_is_charged_for_its_work(loop: str) -> None:
    head, seen = K + "__shared__ int s[32]; s[i] = 0; ", list[object]()
    limits = InterpreterLimits(step_budget=5000, watcher=lambda *access: seen.append(access))
    with pytest.raises(errors.RunawayKernelError, match="does not end") as caught:
        launch(head + loop + " }", "k", 1, 32, np.zeros(32, np.int32), limits=limits)
    assert caught.value.site.line == 1
    assert len(seen) < 4000


@pytest.mark.parametrize(
    "loop",
    [
        "for (int j = 0; j < 4900; j++)",
        "for (int j = 4900 * 3; j > 0; j -= 3)",
        "for (int k = 0; k < 70; k++) for (int j = 70; j > 0; --j)",
        "for (int k = 0; k != 70; k++) for (int j = 0; j < 70; j++)",
        "for (int j = 0; j != 4900; j++)",
        "for (int j = 9800; 0 != j; j -= 2)",
        "for (unsigned j = 4294967290u, n = 4894u; j != n; j++)",
        "for (float x = 0; x < 490.0f; x += 0.1f)",
        "for (int j = 0; j < 1000000000; j += j < 4899 ? 1 : 1000000000)",
    ],
)
def test_a_loop_that_ends_in_time_is_not(loop: str) -> None:
    o = np.zeros(32, np.int32)
    limits = InterpreterLimits(step_budget=5000)
    launch(f"{K} {loop} o[i] += 1; }}", "k", 1, 32, o, limits=limits)
    assert o.tolist() == [4900] * 32


@pytest.mark.parametrize("grid", [2**31 - 1, 10**30, -1, 1.5, float("nan"), None, True])
@pytest.mark.parametrize("y", [1, 65535])
def test_a_grid_that_is_too_large_or_none(grid: object, y: int) -> None:
    with pytest.raises(errors.LaunchConfigError):
        launch(K + "}", "k", (grid, y), 32, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("shared", [10**12, -1, 1.5, float("nan"), None, "a"])
def test_shared_memory_that_no_block_has(shared: object) -> None:
    with pytest.raises(errors.LaunchConfigError, match="bytes of shared memory"):
        RawKernel(K + "}", "k")(1, 32, [None], shared_mem=shared)  # type: ignore[arg-type]


def test_local_memory_of_many_blocks_is_not_there_at_once() -> None:
    o, text = np.zeros(32, np.int32), "char q[1 << 18], r[1 << 18]; q[i] = r[i] = 1; "
    launch(K + text + "if (blockIdx.x == 0) o[i] = q[i]; }", "k", 40, 32, o)
    assert o.tolist() == [1] * 32


def test_printf_keeps_as_much_as_a_gpu_and_a_file_may_have_many_kernels() -> None:
    printed = launch(K + 'printf("' + "z" * 100_000 + '"); }', "k", 64, 32, None).printed
    assert len(printed) < 1 << 21
    assert "more calls of printf" in printed
    limits = InterpreterLimits(printed_lines=40)  # of all calls together
    text = K + 'printf("a\\n"); printf("b\\n"); printf("c\\n"); }'
    printed = launch(text, "k", 1, 32, None, limits=limits).printed
    assert printed.startswith("a\n" * 32 + "b\n" * 8 + "... and 56 more")
    program = compile_source("".join(f"__global__ void k{j}() {{}}\n" for j in range(500)))
    assert len(program.kernels) == 500
