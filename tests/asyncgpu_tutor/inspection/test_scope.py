"""The microscope, against numbers that can be worked out by hand."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import DeviceError, HostBufferError, NestedSyncError, UsageError
from asyncgpu_tutor.inspection import KernelReport, MicroscopeReport

pytestmark = pytest.mark.usefixtures("sim")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


HALF = """extern "C" __global__ void half_warp(const float* x, float* y) {
    int i = threadIdx.x;
    if (i % 32 < 16) y[i] = x[i] + 1.0f;
}"""

TURNED = """extern "C" __global__ void turned(int n, const float* x, float* y, int* seen) {
    __shared__ float tile[32][32];
    int t = threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y) tile[k][t] = x[k * n + t];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += blockDim.y) y[k * n + t] = 2.0f * tile[t][k];
    if (t % 3 == 0) atomicAdd(&seen[t / 3 % 2], 1);
}

"""


def looked_at(op: agt.DeviceOp[object]) -> MicroscopeReport:
    with agt.microscope() as report:
        op.sync()
    return report


def matvec(m: int, n: int, block: int = 32) -> agt.DeviceOp[object]:
    out = agt.zeros(m).partition(block)
    return agt.matvec_naive(m, n, agt.ones((m, n)), agt.ones(n), out)


def test_matrix_vector_by_hand() -> None:
    """64 x 64 in two warps: each load of the matrix is 32 rows apart, each of the vector one number."""
    k = looked_at(matvec(64, 64))["matvec_naive"]
    assert len(k.launches) == 1
    assert (k.grid, k.block, k.threads) == ((2, 1, 1), (32, 1, 1), 32)
    assert k.flops == 2 * 64 * 64
    assert k.bytes_needed == 4 * (64 * 64 + 64) + 4 * 64
    # 2 warps x 64 columns x (32 sectors of the matrix, 1 of the vector), 4 for each warp's results.
    assert k.bytes_moved == 32 * (2 * 64 * 33 + 2 * 4)
    assert k.load_sectors_per_request == 33 / 2
    assert k.store_sectors_per_request == 4.0
    assert k.intensity == 8192 / 16896
    assert k.intensity_moved == 8192 / k.bytes_moved
    assert k.divergence == 0.0
    assert k.conflicts_per_request == 0.0


def test_launches_add_up_and_shapes_are_kept_apart() -> None:
    with agt.microscope() as scope:
        for _ in range(3):
            matvec(64, 64).sync()
        matvec(64, 64, block=64).sync()
    first, second = (k for k in scope.kernels if k.name == "matvec_naive")
    assert (len(first.launches), first.grid) == (3, (2, 1, 1))
    assert (len(second.launches), second.grid) == (1, (1, 1, 1))
    assert first.flops == 3 * second.flops == 3 * 8192
    assert first.counts.longest_chain == first.launches[0].counts.longest_chain
    with pytest.raises(UsageError, match=r"2 shapes .*pick one of report\.kernels"):
        scope["matvec_naive"]
    assert "4 launches" in scope.source("matvec_naive")


def test_occupancy_and_what_limits_it() -> None:
    idle = 'extern "C" __global__ void idle(float* x) { extern __shared__ float s[]; }'
    for threads, shared, blocks, occupancy, limits in (
        (256, 0, 8, 1.0, ("threads",)),
        (32, 0, 32, 0.5, ("blocks",)),
        (64, 0, 32, 1.0, ("threads", "blocks")),
        (33, 0, 32, 1.0, ("threads", "blocks")),  # two warps, one of them with one thread
        (768, 0, 2, 0.75, ("threads",)),
        (128, 48 * 1024, 4, 0.25, ("shared memory",)),  # 228 KiB of an SM
    ):
        op = agt.Kernel(idle)(agt.zeros(1), grid=1, block=threads, shared_mem=shared)
        k = looked_at(op).kernels[-1]
        assert (k.threads, k.shared_bytes, k.blocks_per_sm) == (threads, shared, blocks)
        assert (k.occupancy, k.occupancy_limits) == (occupancy, limits)
        assert k.waves == 1 / (132 * blocks)


def test_divergence() -> None:
    report = looked_at(agt.Kernel(HALF)(agt.ones(64), agt.zeros(64), grid=1, block=64))
    k = report["half_warp"]
    assert k.divergence == 1.0
    assert k.flops == 32
    assert k.load_sectors_per_request == 2.0
    (line,) = [x for x in report.source("half_warp").split("\n") if "% 32" in x]
    assert line.split("|")[0].split()[1:] == ["32", "4", "2.00", "2", "3"]


def test_roofline_by_hand() -> None:
    """132 SMs x 4 instructions x 32 lanes x 2 x 1.98 GHz; memory 4.8 TB/s."""
    spec = SimDevice(machine=SimMachine()).spec
    k = looked_at(matvec(64, 64))["matvec_naive"]
    assert k.roof == pytest.approx(8192 / 16896 * spec.l2_gb_s)
    small = KernelReport(replace(spec, l2_bytes=16895), k.launches)
    assert small.roof == pytest.approx(8192 / 16896 * spec.dram_gb_s)
    assert k.gflops == pytest.approx(8192 / k.us / 1e3)
    assert k.under_roof == pytest.approx(k.gflops / k.roof)
    assert 0 < k.under_roof < 1
    assert k.bounds[k.bound] == max(k.bounds.values())
    assert k.us >= k.bounds[k.bound]
    n, square = 64, agt.ones((64, 64)).sync().share()
    op = agt.sgemm_naive(n, n, n, 1.0, square, square, 0.0, agt.zeros((n, n)).partition(16, 16))
    product = looked_at(op)["sgemm_naive"]
    assert product.flops == 2 * n**3 + 3 * n**2
    peak = spec.sms * spec.issue_per_clock * 32 * 2 * spec.clock_mhz / 1e3
    assert product.roof == min(peak, product.intensity * spec.l2_gb_s)


def test_looking_changes_neither_results_nor_times() -> None:
    def run(look: bool) -> tuple[object, float]:
        with agt.using(SimDevice(machine=SimMachine())) as device:
            with agt.microscope() if look else nullcontext():
                result = matvec(48, 48).last().unpartition().to_host().sync()
            return result.tolist(), device.now()

    assert run(True) == run(False)


def test_what_is_in_flight_at_the_end_is_in_the_report_and_what_comes_later_is_not() -> None:
    stream = agt.create_stream()
    with agt.microscope() as outer:
        matvec(8, 8).sync()
        with agt.microscope() as inner:
            matvec(8, 8).async_on(stream)
        matvec(8, 8).sync()
    matvec(8, 8).sync()
    assert len(inner["matvec_naive"].launches) == 1
    assert len(outer["matvec_naive"].launches) == 3


def test_it_is_put_away_after_a_failure() -> None:
    device = agt.current_device()
    assert isinstance(device, SimDevice)
    bad = agt.Kernel('extern "C" __global__ void bad(float* x) { x[threadIdx.x + 1] = 1; }')
    with pytest.raises(DeviceError):
        looked_at(bad(agt.zeros(4), grid=1, block=4))
    assert device.observers == []
    host = agt.pin(np.ones(100_000, np.float32))

    def change_it_under_a_copy() -> None:
        with agt.microscope():
            agt.h2d(host).async_on(agt.create_stream())
            host[0] = 2  # which is seen at the end

    with pytest.raises(HostBufferError):
        change_it_under_a_copy()
    assert device.observers == []


class TestText:
    def test_each_row_of_kernels_of_all_sorts(self, tell: Callable[[str], None]) -> None:
        device, n = SimDevice(machine=SimMachine(), stand_in_above=0), 1 << 20
        with agt.using(device), agt.microscope() as scope:
            for _ in range(2):
                arrays = agt.ones((32, 32)), agt.zeros((32, 32)), agt.zeros(2, np.int32)
                agt.Kernel(TURNED)(32, *arrays, grid=(2, 1, 3), block=(32, 8)).sync()
            matvec(64, 512).sync()
            agt.relu(n, agt.ones(n), agt.zeros(n).partition(256)).sync()
        turned = scope["turned"]
        reads = 6 * 32  # of a column, of which all 32 words are in one bank
        assert turned.counts.bank_conflicts == 2 * reads * 31
        assert turned.conflicts_per_request == 31 / 2  # to write a row takes one pass
        assert turned.counts.atomics == 2 * 6 * 8 * 11
        for said in (scope.table(), *map(scope.source, ("turned", "relu")), repr(scope)):
            tell(said)

    def test_columns_that_do_not_fit_follow_below(self) -> None:
        with agt.microscope() as scope:
            for block in range(16, 128, 16):
                matvec(128, 8, block).sync()
        lines = scope.table().split("\n")
        assert max(len(line) for line in lines[3:]) <= 100
        assert sum(line.count("matvec_naive") for line in lines) == 7
        assert not any("shared memory" in line for line in lines)

    def test_nothing_ran(self) -> None:
        report = looked_at(agt.value(3))
        assert report.kernels == ()
        assert "No kernel ran" in report.table()
        for ask in (report.__getitem__, report.source):
            with pytest.raises(UsageError, match="no kernel 'relu' ran: there is none"):
                ask("relu")

    def test_two_sources_of_one_name(self) -> None:
        with agt.microscope() as scope:
            for text in ("x[0] = 1;", "x[0] = 2;"):
                kernel = agt.Kernel('extern "C" __global__ void k(float* x) { %s }' % text)  # noqa: UP031
                kernel(agt.zeros(1), grid=1, block=1).sync()
        assert len(scope.kernels) == 2
        with pytest.raises(UsageError, match="2 kernels with different sources"):
            scope.source("k")


def test_not_where_work_is_being_described() -> None:
    def look(x: agt.DeviceArray) -> agt.DeviceOp[object]:
        looked_at(agt.d2h(x))
        return agt.value(None)

    with pytest.raises(NestedSyncError, match="the microscope"):
        agt.ones(4).and_then(look).sync()


def test_a_device_that_is_not_simulated_is_refused() -> None:
    real, ran = SimpleNamespace(name="cuda:0", simulated=False, create_stream=object), list[int]()
    refused = pytest.raises(UsageError, match=r'cuda:0, where nobody .*agt\.using\("sim"\)')
    with agt.using(real), refused:
        looked_at(agt.value(1).map(ran.append))
    assert ran == []
