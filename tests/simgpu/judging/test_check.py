"""`simgpu check`: what is read, and whether it does what its spec says."""

import contextlib
import gc
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from simgpu.__main__ import command_line
from simgpu.judging import limits
from simgpu.judging.checking import kernels_read
from simgpu.judging.draft import drafted
from simgpu.judging.kernel_spec import KernelSpec, Output, SpecError, load_specs
from simgpu.judging.limits import OverLimitError, within_limits

from .conftest import KERNEL, SPEC

Check = Callable[..., str]


@pytest.fixture
def check(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tell: Callable[[str], None],
) -> Check:
    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["simgpu", "check", *map(str, words)])
        with pytest.raises(SystemExit, match=f"{code}") if code else nullcontext():
            command_line()
        said = capsys.readouterr()
        if not {"--seconds", "--megabytes"} & {
            *words
        }:  # a limit is met wherever the kernel is by then
            tell(said.out or said.err)
        return said.out or said.err

    return run


def test_a_right_kernel_is_launched_at_awkward_sizes(folder: Path, check: Check) -> None:
    said = check(folder / "mine.cu").splitlines()
    assert said[0] == "mine.cu:4: block_sums: read"
    assert said[1].startswith("block_sums: launched at n = 1, 13, 255, 256, 257, 521, 1000, 1.")
    assert said[1].endswith("us at the last: all right")
    assert said[2:] == ["    left out n = 0: no thread to launch"]


WRONG = {
    "races": ("        __syncthreads();\n", "", "RaceError", 9, "writes, without a __syncthreads()"),
    "values": ("half = 128", "half = 64", "ValuesError", None, "'sums'[0] (1 of 1) is "),
    "bounds": ("i < n ?", "i <= n ?", "OutOfBoundsError", 7, "reads 'x'[1], which is out of bounds"),
    "unset reads": ("i < n ? x[i] : 0.0f", "x[i]", "OutOfBoundsError", 7, "'x'"),
    "unset shared": ("part[t] = i < n ? x[i] : 0.0f", "if (i < n) part[t] = x[i]", "UninitialisedReadError",
                     10, "reads 'part'[1], which nothing"),
    "barriers": ("        __syncthreads();\n", "        if (t < half) __syncthreads();\n", "BarrierError", 9,
                 "__syncthreads"),
    "unwritten": ("if (t == 0)", "if (t == 0 && n > 500)", "UnwrittenError", None,
                  "nothing has written 'sums'[0] (1 of 1)"),
    "inputs": ("const float* x, float* sums) {", "float* x, float* sums) { if (threadIdx.x == 0 && n) x[0] = 7;",
               "InputChangedError", None, "'x'[0] (1 of 1) changed, and is no output"),
    "no such kernel": ("block_sums", "blocksums", "KernelCompileError", None, "mine.cu has no kernel"),
    "refused": ("plus(", "minus(", "KernelCompileError", 10, "mine.cu:10:33: error"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_with_the_line_of_the_file(name: str, folder: Path, check: Check) -> None:
    old, new, kind, line, words = WRONG[name]
    assert old in KERNEL
    (folder / "mine.cu").write_text(KERNEL.replace(old, new))
    report = json.loads(check(folder / "mine.cu", "--json", code=1))
    wrong = report["trials"]["block_sums"]["complaints"][0]
    assert (wrong["kind"], wrong["line"]) == (kind, line)
    assert words in wrong["message"]
    assert wrong["file"] == ("mine.cu" if line else None)
    assert words in check(folder / "mine.cu", code=1)


def test_a_mistake_in_a_header_has_the_header_s_line(folder: Path, check: Check) -> None:
    header = folder / "parts" / "half.cuh"
    header.write_text(
        header.read_text().replace(
            "{ return a + b", "{\nint k = 1 / 0 * threadIdx.x;\nreturn a + b"
        )
    )
    report = json.loads(check(folder / "mine.cu", "--json", code=1))
    wrong = report["trials"]["block_sums"]["complaints"][0]
    assert (wrong["file"], wrong["line"]) == ("half.cuh", 3)


MIXED = """template <typename T, int B> __global__ void scale(T* x) { x[threadIdx.x] *= B; }
template <typename T> __global__ void guessed(T* x) { x[threadIdx.x] = 1; }
__global__ void unread() { asm("nop;"); }
void host() { scale<double, 32><<<1, 32>>>(0); }
"""


def test_each_kernel_has_a_line_and_what_only_a_gpu_runs_a_code(
    tmp_path: Path, check: Check
) -> None:
    (tmp_path / "mixed.cu").write_text('#include "absent.h"\n' + MIXED)
    said = check(tmp_path / "mixed.cu", code=3).splitlines()
    assert said[:2] == ["mixed.cu:2: scale<double, 32>: read", "mixed.cu:3: guessed<float>: read"]
    assert said[2].startswith(
        "mixed.cu:4: unread: unsupported: mixed.cu:4:28: error: inline assembly"
    )
    assert said[3] == "mixed.cu: not found: absent.h (-I FOLDER says where)"
    assert said[4].endswith("`simgpu check --draft mixed.cu` drafts a spec")


def test_a_template_that_host_templates_launch_is_tried_with_a_guess() -> None:
    """What a host's template passes on, its own parameter, isn't known where the kernel is read."""
    kernel = "template<typename T, int N> __global__ void k(T* x) { x[0] = N; }\n"
    host = "template<int B> void f(float* x) { k<float, B><<<1, 1>>>(x); }\n"
    known = "void g(float* x) { k<double, 5><<<1, 1>>>(x); }\n"
    for text, name in (
        (host, "k<float, 32>"),
        (host + known, "k<double, 5>"),
        (known + host, "k<double, 5>"),
    ):
        assert [(one["name"], one["state"]) for one in kernels_read(kernel + text, "mine.cu")] == [
            (name, "read")
        ]
    index = "template<typename I> __global__ void k(float* x, I i) { x[i] = 1; }"
    assert [one["name"] for one in kernels_read(index, "mine.cu")] == ["k<int>"]
    (functor,) = kernels_read("template<class F> __global__ void k(F f) { f.go(); }", "mine.cu")
    assert (functor["state"], functor["why"][:29]) == ("guessed", "no launch says which instance")
    (loads,) = kernels_read('template<class T> __global__ void k(T* x) { asm("nop;"); }', "mine.cu")
    assert loads["state"] == "unsupported"


def test_a_kernel_is_told_once_and_by_its_parameters_where_two_have_its_name(
    tmp_path: Path, check: Check
) -> None:
    (tmp_path / "several.cu").write_text(
        "__global__ void a(float*);\n__global__ void a(float* x) { x[0] = 1; }\n"
        "__global__ void a(const int* x, unsigned n) {}\nnamespace deep { __global__ void b(int*); }\n"
    )
    said = check(tmp_path / "several.cu", code=0).splitlines()
    assert said[:3] == [
        "several.cu:2: a(float*): read",
        "several.cu:3: a(const int*, unsigned int): read",
        "several.cu:4: b: declared",
    ]
    (tmp_path / "head.cu").write_text("__global__ void a(float*);\n")
    assert check(tmp_path / "head.cu", code=2).startswith("head.cu:1: a: declared\n")


def test_files_and_specs_that_cannot_be_used(folder: Path, check: Check) -> None:
    assert "No such file" in check(folder / "none.cu", code=2)
    assert "No such file" in check(folder / "without_an_ending", code=2)
    assert "is no file" in check("/dev/zero", code=2)
    (folder / "host.cu").write_text("int main() {}\n")
    assert "no __global__ function" in check(folder / "host.cu", code=2)
    for text, words in {
        "import numpy": "has no KernelSpec",
        "1 +": "SyntaxError",
        "a = 1\nb = c": "other.py:2: NameError",
        SPEC.replace("Output(", "Output(-"): "an Output of ",
        SPEC.replace("Output(", "Output(-").replace(", expected)", ")"): "an Output of ",
        SPEC.replace(", expected)", ", block=lambda n: 1 // 0)"): "ZeroDivisionError",
        SPEC.replace("return np.pad", "return None and np.pad"): "expected() returns () object for",
        SPEC.replace("return np.pad", "return {} and np.pad"): "expected() returns no arrays",
        SPEC.replace("return np.pad", "return 1j * np.pad"): "returns (4,) complex",
        **{
            SPEC.replace('"block_sums", ', f'"block_sums", {name}={given}, arguments=').replace(
                ", expected)", ")"
            ): name
            for name, given in (("sizes", "[-1]"), ("rtol", "-1"), ("atol", "float('inf')"))
        },
    }.items():
        (folder / "other.py").write_text(text)
        assert words in check(folder / "mine.cu", "--spec", folder / "other.py", code=2)


def test_a_spec_s_own_error_leaves_an_awkward_size_out_and_says_so(
    folder: Path, check: Check
) -> None:
    text = SPEC.replace("    return np", "    assert n > 20, 'too small'\n    return np")
    (folder / "mine_spec.py").write_text(text)
    said = check(folder / "mine.cu")
    assert "    left out n = 13: mine_spec.py:10: AssertionError: too small" in said
    (folder / "mine_spec.py").write_text(text.replace("> 20", "> 2000"))
    assert check(folder / "mine.cu", code=2).strip() == "mine_spec.py:10: AssertionError: too small"


def test_a_draft_runs_as_it_is(tmp_path: Path, check: Check) -> None:
    kernels = """__global__ void add(const int* a, int* sums, float* y, float by, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { atomicAdd(&sums[i], a[i]); y[i] = by; } }
    __global__ void turn(const float4* a, float4* b, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
        if (i < n && j < n) b[i * n + j] = a[j * n + i]; }
    template <typename T> __global__ void half(T* x, unsigned n) {
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += n) x[i] /= 2; }
    """
    (tmp_path / "two.cu").write_text(kernels)
    draft = check(tmp_path / "two.cu", "--draft")
    (tmp_path / "two_spec.py").write_text(draft)
    assert '"y": Output(n, np.float32)' in draft
    assert '\nhalf_float = KernelSpec("half<float>", half_float_arguments, ' in draft
    said = check(tmp_path / "two.cu")
    assert said.count("all right") == 3
    assert "turn: launched at n = 1, 13, 15, 16, 17, 37, 60" in said
    assert drafted(kernels.replace("__global__", "__device__"), "two.cu") == ""


CASES = """import numpy as np
from simgpu import KernelSpec, Output

def same(n, random):
    x = random.random(n)
    return {"n": n, "x": x, "y": x}

def tables(n, random):
    return {"n": n, "out": Output((n, 2), np.int16), "table": random.integers(0, 9, 4).astype(np.int32)}

specs = [
    KernelSpec("twice", same, lambda n, x, y: {"y": x * 2}, block=lambda n: 32, awkward=[0, 33], gpu="t4"),
    KernelSpec("rows", tables, lambda n, table: np.tile(table[:2], (n, 1)), sizes=[40], grid=lambda n: n,
               block=(2, 1), shared=lambda n: 16),
]
"""


def test_aliases_variables_shapes_and_shared_memory(tmp_path: Path, check: Check) -> None:
    (tmp_path / "cases.cu").write_text("""__constant__ int table[4];
    __global__ void twice(int n, const double* x, double* y) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i] * 2; }
    __global__ void rows(int n, short* out) {
        extern __shared__ int s[];
        s[threadIdx.x] = table[threadIdx.x];
        out[blockIdx.x * 2 + threadIdx.x] = s[threadIdx.x]; }""")
    (tmp_path / "cases_spec.py").write_text(CASES)
    said = check(tmp_path / "cases.cu")
    assert said.count("all right") == 2
    assert "twice: launched at n = 33, 1000" in said


def test_a_spec_is_refused_where_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="at least one"):
        KernelSpec("k", lambda n, r: {}, sizes=[])
    wrongs: list[dict[str, Any]] = [{"sizes": 5}, {"sizes": [1.5]}, {"awkward": [-1]}]
    for wrong in wrongs:
        with pytest.raises(SpecError, match="are whole numbers"):
            KernelSpec("k", lambda n, r: {}, **wrong)
    with pytest.raises(SpecError, match="no Python file"):
        load_specs(tmp_path / "mine.cu")


def test_numbers_of_numpy_are_numbers_of_a_spec() -> None:
    sizes: Any = np.array([100, 300], np.int16)
    wide: Any = np.int16(200), np.int8(1)
    spec = KernelSpec("k", lambda n, r: {}, sizes=sizes, awkward=sizes[:0], block=wide)
    assert (spec.sizes, spec.awkward_sizes()) == ((100, 300), [])
    assert spec.shape(100_000) == ((500, 1, 1), (200, 1, 1), 0)
    assert KernelSpec("k", lambda n, r: {}, block=sizes[1]).shape(300)[1] == (300, 1, 1)


LINE, SHARED = np.ones(5, np.float32), np.ones(4, np.float32)


@pytest.mark.parametrize(("given", "returned", "why"), [
    ("two", lambda **_: LINE, r"expected\(\) returns arrays by name"),
    ("two", lambda **_: {"n": LINE}, "'n', which is no array"),
    ("one", lambda **_: {"a": SHARED, "b": SHARED + 1}, "'a' and 'b' are one array"),
    ("parts", None, "'a' and 'b' overlap: pass one array"),
])  # fmt: skip
def test_arguments_and_references_that_contradict_themselves(
    given: str, returned: Any, why: str
) -> None:
    arrays = {"one": [SHARED] * 2, "two": [Output(4), Output(4)], "parts": [LINE[1:], LINE[:-1]]}[
        given
    ]
    spec = KernelSpec("k", lambda n, r: {"n": n, "a": arrays[0], "b": arrays[1]}, expected=returned)
    with pytest.raises(SpecError, match=why):
        spec.reference(spec.given(4, 0))


SLOW = """__global__ void slow(int n, int* o) {
    int s = 0;
    for (int k = 0; k < 400000; k++) for (int j = 0; j < 400000; ++j) s = s * 3 + k;
    if (threadIdx.x < n) o[threadIdx.x] = s; }"""


def test_it_ends_in_time_with_what_it_knows(tmp_path: Path, check: Check) -> None:
    (tmp_path / "slow.cu").write_text(SLOW)
    (tmp_path / "slow_spec.py").write_text(
        "from simgpu import *\nimport numpy as np\n"
        'spec = KernelSpec("slow", lambda n, r: {"n": n, "o": Output(n, np.int32)}, lambda n: endless())\n'
        "def endless():\n    while True: pass\n"
    )
    for words in ((), ("--json",)):
        said = check(tmp_path / "slow.cu", "--seconds", 0.5, *words, code=3)
        stopped = "slow.cu: not finished within 0.5 s (--seconds gives it more)"
        assert (f'"stopped": "{stopped}"' if words else f"\n{stopped}") in said
    assert "are no limits" in check(tmp_path / "slow.cu", "--seconds", -1, code=2)


@pytest.fixture
def nobody_is_called_by_the_collector() -> Iterator[None]:
    """An alarm that rings in such a call comes again, but pytest takes the first one for an error."""
    before = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = before


@pytest.mark.usefixtures("nobody_is_called_by_the_collector")
def test_reading_ends_in_time_and_memory_and_a_draft_is_whole_or_none(
    tmp_path: Path, check: Check
) -> None:
    file = tmp_path / "huge.cu"
    file.write_text("__global__ void k(float* x) {" + "x[0] = 1;" * 300_000 + "}")
    late, full = "huge.cu: not finished within 0.2 s", "huge.cu: not finished with 8 MB"
    for words, code in ((["--draft"], 2), ([], 3)):
        assert check(file, "--seconds", 0.2, *words, code=code).splitlines()[-1].startswith(late)
        assert check(file, "--megabytes", 8, *words, code=code).splitlines()[-1].startswith(full)
    file.write_text("__global__ void k(float* x) { x[0] = 1; }")
    assert 'KernelSpec("k"' in check(file, "--draft")  # nothing of the limits is left


def test_an_alarm_that_is_swallowed_rings_again(tmp_path: Path) -> None:
    @within_limits(tmp_path, 0.01, 4096)
    def works_on() -> NoReturn:
        with contextlib.suppress(BaseException):  # as the collector does
            while True:
                pass
        while True:
            pass

    with pytest.raises(OverLimitError, match=r"not finished within 0\.01 s"):
        works_on()


@pytest.mark.parametrize(
    ("timer", "passed", "least", "most"),
    [((0.0, 0.0), 1, 0, 0), ((500.0, 3.0), 100, 300, 400), ((500.0, 3.0), 600, 0, 3)],
)
def test_a_limit_gives_the_alarm_back_to_whom_it_belonged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    timer: tuple[float, float],
    passed: float,
    least: float,
    most: float,
) -> None:
    def mine(*_: object) -> None:
        pass

    clock = chain((0.0, 0.0), repeat(passed))
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    before = signal.signal(signal.SIGALRM, mine)
    signal.setitimer(signal.ITIMER_REAL, *timer)
    try:
        with within_limits(tmp_path, 1000, 4096):
            assert signal.getsignal(signal.SIGALRM) is not mine
        assert signal.getsignal(signal.SIGALRM) is mine
        left, again = signal.getitimer(signal.ITIMER_REAL)
        assert again == timer[1]
        assert least <= left <= most
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
