"""Kernels from published files."""

from pathlib import Path

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

MAIN = """#include <stdio.h>
#include "parts/add.cuh"
#include "common.h"
__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = plus(x[i], x[i]) * ONE; }
int main() { twice<<<1, 32>>>(0, 0); }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "main.cu").write_text(MAIN)
    (tmp_path / "parts" / "add.cuh").write_text(
        '#pragma once\n#include "common.h"\n__device__ float plus(float a, float b) { return a + b; }\n'
    )
    (tmp_path / "elsewhere" / "common.h").write_text("#define ONE 1\n#include <vector>\n")
    return tmp_path


@pytest.mark.parametrize("as_text", [False, True])
def test_a_file_and_its_headers(folder: Path, as_text: bool, device: Device) -> None:
    path = folder / "main.cu"
    kernel = agt.Kernel(str(path) if as_text else path, include=[folder / "elsewhere"])
    assert kernel.name == "twice"
    got = kernel(agt.h2d(np.arange(4, dtype=np.float32)), 4, grid=1, block=32).output().to_host()
    np.testing.assert_array_equal(got.sync(), [0, 2, 4, 6])


def test_a_header_that_is_not_there_is_named_where_it_is_missed(folder: Path, sim: Device) -> None:
    says = r"'ONE' is not declared; it may be in \"common\.h\""
    with pytest.raises(agt.errors.KernelCompileError, match=says):
        agt.Kernel(folder / "main.cu")


def test_no_such_file_and_a_file_of_the_host_that_has_no_kernel(tmp_path: Path) -> None:
    with pytest.raises(agt.errors.UsageError, match="cannot be read as CUDA C"):
        agt.Kernel(tmp_path / "none.cu")
    with pytest.raises(agt.errors.UsageError, match=r"no kernel.*relu \(line 1\)"):
        agt.Kernel("void relu(float* x) { x[0] = 1; }\n")


def test_a_header_of_this_package_is_found_from_any_source(folder: Path, device: Device) -> None:
    text = """#include "hostcall.cuh"
    #include "hostcall.cuh"  // once is enough
    __global__ void word(int* out) { *out = HOSTCALL_PACKET; }"""
    (folder / "header.cu").write_text(text)
    for source in (text, folder / "header.cu"):
        got = agt.Kernel(source)(agt.zeros((1,), np.int32), grid=1, block=1).output().to_host()
        assert got.sync().tolist() == [8]


def test_a_string_has_headers_of_its_own_too(folder: Path) -> None:
    source = '#include "common.h"\n__global__ void one(int* out) { *out = ONE; }'
    kernel = agt.Kernel(source, include=[folder / "elsewhere"])
    got = kernel(agt.zeros((1,), np.int32), grid=1, block=1).output().to_host().sync()
    assert got.tolist() == [1]


NOT_READ = ["/etc/passwd", "../outside.cuh", "secret.txt", "/dev/zero", "a\0.h", ".", ""]
NOT_READ += ["a" * 3000 + ".h"]


@pytest.mark.parametrize("name", NOT_READ, ids=range(len(NOT_READ)))
def test_nothing_but_sources_below_the_named_folders_is_read(
    folder: Path, name: str, sim: Device
) -> None:
    for file in ("outside.cuh", "parts/secret.txt"):
        (folder / file).write_text("password = hunter2 @@@\n")
    (folder / "parts" / "main.cu").write_text(
        f'#include "{name}"\n__global__ void k(int* o) {{ *o = ONE; }}'
    )
    with pytest.raises(agt.errors.KernelCompileError, match="'ONE' is not declared") as caught:
        agt.Kernel(folder / "parts" / "main.cu")
    assert "hunter2" not in str(caught.value)
    (folder / "outside.cuh").write_text("#define ONE 1\n")
    if name == "../outside.cuh":
        assert agt.Kernel(folder / "parts" / "main.cu", include=[folder]).name == "k"


@pytest.mark.parametrize("guard", ["", "#pragma once\n", "#ifndef ADD\n#define ADD\n#endif\n"])
def test_a_file_that_includes_itself(folder: Path, guard: str, sim: Device) -> None:
    (folder / "parts" / "add.cuh").write_text(guard + '#include "more.cuh"\n')
    (folder / "parts" / "more.cuh").write_text(
        '#include "add.cuh"\n#define ONE 1\n#define plus(x, y) x\n'
    )
    if guard:
        assert agt.Kernel(folder / "main.cu").name == "twice"
        return
    with pytest.raises(
        agt.errors.UsageError, match=r"add\.cuh includes itself: write #pragma once"
    ):
        agt.Kernel(folder / "main.cu")


def test_a_byte_order_mark_is_skipped(folder: Path, device: Device) -> None:
    (folder / "parts" / "add.cuh").write_text("\ufeff#define plus(x, y) x\n#define ONE 1\n")
    text = "\ufeff" + (folder / "main.cu").read_text()
    (folder / "main.cu").write_text(text)
    for source in (folder / "main.cu", text):
        assert agt.Kernel(source, include=[folder]).name == "twice"


def test_messages_name_the_line_of_the_file(folder: Path, sim: Device) -> None:
    (folder / "elsewhere" / "common.h").write_text(
        "#define ONE 1\n__device__ int f(int* p) { return p[9]; }\n"
    )
    for file, old, new, says in (
        ("main.cu", "= plus", "= lost", r"^kernel\.cu:4:\d+: error: .*'lost'"),
        ("parts/add.cuh", "a + b", "a + lost", r"^add\.cuh:3:\d+: error: .*'lost'"),
        ("main.cu", "x[i] = plus", "x[i + 9] = plus", r"\n    line 4: __global__ void twice"),
        (
            "main.cu",
            "* ONE",
            "* f((int*)x)",
            r"\n    line 2 of common\.h, from line 4 of kernel\.cu",
        ),
    ):
        whole = (folder / file).read_text()
        (folder / file).write_text(whole.replace(old, new))
        with pytest.raises(agt.errors.AsyncGpuError, match=says):
            agt.Kernel(folder / "main.cu", include=[folder / "elsewhere"])(
                agt.h2d(np.zeros(4, np.float32)), 4, grid=1, block=4
            ).sync()
        (folder / file).write_text(whole)
