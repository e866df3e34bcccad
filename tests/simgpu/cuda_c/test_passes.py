"""The form of a kernel in print, with what each pass found."""

import contextlib
import gc
from pathlib import Path

import pytest

from simgpu import __main__ as command
from simgpu.cuda_c import compile_source
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.text.source import Position
from simgpu.errors import KernelCompileError

SUM = """extern "C" __global__ void rows(const float* a, float* out, int n) {
    int row = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k];
    out[row] = sum;
}"""
LOCK = """__device__ int take(int* lock) { while (atomicCAS(lock, 0, 1)) {} return 1; }
extern "C" __global__ void count(int* lock, int* total) {
    total[0] += 2 * take(lock);
    atomicExch(lock, 0);
}"""


@pytest.mark.parametrize("content", [b"// \xe9\n", b"__global__ void k( {}", None])
def test_a_file_that_cannot_be_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
) -> None:
    if content is not None:
        (tmp_path / "k.cu").write_bytes(content)
    monkeypatch.setattr("sys.argv", ["simgpu", "--passes", str(tmp_path / "k.cu")])
    with pytest.raises(SystemExit, match="2"):
        command.command_line()
    assert "k.cu cannot be read as CUDA C: " in capsys.readouterr().err


def test_the_form_is_printed_a_line_an_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.cu").write_text(SUM)
    monkeypatch.setattr("sys.argv", ["simgpu", "--passes", str(tmp_path / "k.cu")])
    command.command_line()
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "kernel rows(const float* a, float* out, int n)"
    assert {"%0 = coordinate threadIdx, 0", "referencebind row, %1"} <= set(lines)
    (start,) = [k for k, line in enumerate(lines) if line.startswith("loop k, %")]
    assert lines[start].endswith("@4 ; sums up sum over k")
    assert lines[start + 1].startswith("basicblock ")
    assert any("= load %" in line for line in lines[start:])


def test_where_threads_may_wait_is_noted_and_a_call_in_which_they_do_is_cut_out() -> None:
    lines = [" ".join(line.split()) for line in compile_source(LOCK).passes("count").splitlines()]
    (loop,) = [line for line in lines if line.startswith("loop")]
    assert all(words in loop for words in ("may wait at place", "may spin"))
    call = next(k for k, line in enumerate(lines) if line.startswith("expansion take"))
    product = next(k for k, line in enumerate(lines) if "= operation 2, %" in line)
    assert call < product  # in a piece of its own, in front of the sum that it stands in
    assert any(line.startswith("basicblock ") for line in lines[call:product])


def test_lowering_stops_where_it_is_known_that_a_call_has_to_be_cut_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, new_piece, counts = list[Position](), Context.new_piece, list[int]()
    monkeypatch.setattr(Context, "new_piece", lambda c, at: made.append(at) or new_piece(c, at))
    for text in ("total[0] += 2 * take(lock);", "int got = take(lock); total[0] += 2 * got;"):
        made.clear()
        compile_source(LOCK.replace("total[0] += 2 * take(lock);", text + "total[1] += 1;" * 50))
        counts.append(len(made))
    assert 50 < counts[0] < counts[1] + 20  # the second needs no cuts


@pytest.mark.parametrize("source", [SUM, SUM.replace("sum;", "summ;")])
def test_garbage_is_looked_for_again_once_a_source_is_compiled_or_refused(source: str) -> None:
    with contextlib.suppress(KernelCompileError):
        compile_source(source + f"// {source}")
    assert gc.isenabled()


def test_what_a_piece_is_charged_stands_beside_it() -> None:
    kernel = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 2; }'
    lines = compile_source(kernel).passes("k").splitlines()
    (piece,) = [line for line in lines if "basicblock" in line]
    assert piece.endswith("; 2 instructions")
