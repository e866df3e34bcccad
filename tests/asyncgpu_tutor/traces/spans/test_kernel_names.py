"""A kernel is called the same, whoever recorded it, and no name is too odd to be kept."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.traces.spans.kernel_names import kernel_name, short_name
from asyncgpu_tutor.traces.trace import Trace

CUTLASS = "cutlass_80_simt_sgemm_256x128_8x4_nn_align1"
CUB = "CUB_300102_SM_750_800_860_890_900_1000_1200"

CUB_MANGLED = (
    f"_ZN3cub43{CUB}6detail6reduce18DeviceReduceKernelINS2_10policy_hubIfjN4cuda3std3__44plusIvEEE10"
    "Policy1000EPfjS9_fNS7_8identityEEEvT0_PT3_T1_NS0_13GridEvenShareISH_EET2_T4_"
)
CUB_TYPE = (
    f"void cub::{CUB}::detail::reduce::DeviceReduceKernel<cub::{CUB}::detail::reduce::policy_hub<float, "
    "unsigned int>::Policy1000, float *>(T2, T4 *)"
)


@pytest.mark.parametrize(
    ("full", "name"),
    [
        (f"_ZN7cutlass7Kernel2I43{CUTLASS}EEvNT_6ParamsE", f"Kernel2<{CUTLASS}>"),
        (f"void cutlass::Kernel2<{CUTLASS}>(T1::Params)", f"Kernel2<{CUTLASS}>"),
        (CUB_MANGLED, "DeviceReduceKernel"), (CUB_TYPE, "DeviceReduceKernel"),
        ("_ZN2at6native12_GLOBAL__N_17softmaxIN3c104HalfEEEvPT_", "softmax<Half>"),
        ("void at::native::(anonymous namespace)::softmax<c10::Half>(c10::Half*)", "softmax<Half>"),
        ("at::native::<unnamed>::kernel(float*)", "kernel"), ("_ZL6staticPf", "static"),
        ("void at::Tensor<float>::fill<c10::Half>(int)", "fill<Half>"), ("_Z5scaleIjLi16EEvPKT_", "scale"),
        ("_Z5scaleIfEvPKT_", "scale<float>"), ("_ZN3abc4copyIyEEvPT_", "copy<unsigned long long>"),
        ("void at::native::scale<true>(float*)", "scale"),
        *((name, name) for name in ("cupy_tanh__float32", "_ZTV6vtable", "_ZN99too_shortE", "_Z", "")),
    ],
)  # fmt: skip
def test_what_is_left_of_a_name(full: str, name: str) -> None:
    assert short_name(full) == name


@given(st.text() | st.text(alphabet="_ZNIELS0123456789abc<>(): ").map("_ZN".__add__))
def test_no_name_is_lost(full: str) -> None:
    name, detail = kernel_name(full)
    assert name or not full
    assert detail == ({} if name == full else {"full_name": full[:500]})


def test_it_agrees_with_the_names_in_a_report_of_nsight_systems() -> None:
    """CuPy's kernels and CUB's, as the profiler of an H200 gives them in three forms."""
    query = "SELECT DISTINCT s.value, d.value, m.value FROM CUPTI_ACTIVITY_KIND_KERNEL"
    for letter, column in (("s", "shortName"), ("d", "demangledName"), ("m", "mangledName")):
        query += f" JOIN StringIds {letter} ON {letter}.id = {column}"
    with closing(sqlite3.connect(Trace.recorded_file("heat.sqlite"))) as database:
        names = database.execute(query).fetchall()
    assert any(full.startswith("_ZN3cub") for _, _, full in names)
    assert [(short_name(d), short_name(m)) for _, d, m in names] == [(s, s) for s, _, _ in names]
