"""Other libraries' arrays and streams, without copies; and NumPy's refusal on the simulated device."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import DeviceMismatchError, UseAfterMoveError
from tests.laws.kernels import SCALE, kernel


@pytest.fixture
def cp() -> Any:
    return pytest.importorskip("cupy")


def test_a_simulated_array_is_not_offered_as_cuda_memory(sim: Device) -> None:
    array = agt.ones((4,)).sync()
    assert not hasattr(array, "__cuda_array_interface__")
    with pytest.raises(DeviceMismatchError, match=r"on a simulated device"):
        array.__dlpack__()


def test_an_array_of_ours_is_handed_back(device: Device) -> None:
    array = agt.ones((4,)).sync()
    assert agt.asarray(array) is array
    elsewhere = pytest.raises(DeviceMismatchError, match=r"copy it there, as in x\.to")
    with agt.using("sim:1"), elsewhere:
        agt.asarray(array)
    agt.d2h(array).sync()
    with pytest.raises(UseAfterMoveError, match=r"moved into d2h"):
        agt.asarray(array)


class OfAGpu:
    """A stream, as far as another library asks for it."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


def test_other_libraries_get_the_stream_in_their_own_numbers(sim: Device) -> None:
    array = agt.ones((2, 3), name="x").sync()
    with pytest.raises(AttributeError, match=r"'x' is on sim:0, which is simulated"):
        array.__cuda_array_interface__  # noqa: B018 - reading it is the point
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(array.device), "simulated", False)
        for stream, number in ((None, None), (OfAGpu(0), 1), (OfAGpu(7), 7)):
            array._memory.stream = stream  # pyright: ignore
            told = array.__cuda_array_interface__
            assert told["stream"] == number
    layout = {"shape": (2, 3), "typestr": "<f4", "data": (array.memory.ptr, False)}
    assert told == layout | {"version": 3, "strides": None, "stream": 7}


def test_an_array_of_another_library_is_nothing_to_a_simulated_kernel(sim: Device) -> None:
    class Theirs:
        __cuda_array_interface__ = None

    with pytest.raises(DeviceMismatchError, match="Theirs is not an array on sim:0"):
        agt.relu(4, Theirs(), agt.zeros(4).sync().partition(4))


@pytest.mark.gpu
def test_cupy_arrays_in_and_out(cuda: Device, cp: Any) -> None:
    x = cp.arange(100, dtype=cp.float32)
    cp.cuda.runtime.deviceSynchronize()
    back, part = kernel(SCALE)(100, 3.0, x, agt.zeros((100,)).partition(32)).sync()
    assert back.memory.ptr == x.data.ptr
    result = part.unpartition()
    seen = cp.asarray(result)
    assert seen.data.ptr == result.memory.ptr
    assert (seen == 3 * x).all()
    also = cp.from_dlpack(result)
    assert also.data.ptr == result.memory.ptr


@pytest.mark.gpu
def test_memory_that_another_library_looks_at_is_not_given_out_again(cuda: Device, cp: Any) -> None:
    ours = agt.ones((1000,)).sync()
    theirs = cp.from_dlpack(ours)
    del ours
    others = [agt.zeros((1000,)).sync() for _ in range(3)]
    assert theirs.data.ptr not in {other.memory.ptr for other in others}
    assert (theirs == 1).all()
    block = theirs.data.ptr
    del theirs
    assert agt.zeros((1000,)).sync().memory.ptr == block


HOLD = """
__global__ void hold(float* x) {
    long long start = clock64();
    while (clock64() - start < 400000000LL) {}
    x[threadIdx.x] = 7.0f;
}"""


@pytest.mark.gpu
def test_what_another_library_does_comes_after_what_is_enqueued(cuda: Device, cp: Any) -> None:
    stream = agt.create_stream()
    x = agt.Kernel(HOLD)(agt.zeros(32).sync(), grid=1, block=32).output().async_on(stream)
    theirs = cp.from_dlpack(x)
    assert not stream.done
    assert cp.asnumpy(theirs).tolist() == [7.0] * 32


@pytest.mark.gpu
def test_writing_into_a_cupy_array(cuda: Device, cp: Any) -> None:
    y = cp.zeros(64, dtype=cp.float32)
    cp.cuda.runtime.deviceSynchronize()
    ours = agt.asarray(y, "y")
    kernel(SCALE)(64, 2.0, agt.ones((64,)), ours.partition(32)).sync()
    assert (y == 2).all()


@pytest.mark.gpu
def test_torch_tensors_in_and_out(cuda: Device) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(50, dtype=torch.float32, device="cuda")
    torch.cuda.synchronize()
    part = kernel(SCALE)(50, 2.0, x, agt.zeros((50,)).partition(32)).last().sync()
    result = part.unpartition()
    seen = torch.from_dlpack(result)
    assert seen.data_ptr() == result.memory.ptr
    assert torch.equal(seen, 2 * x)
    with pytest.raises(DeviceMismatchError, match=r"not an array on cuda:0"):
        agt.asarray(torch.ones(3))


@pytest.mark.gpu
def test_strided_arrays_are_refused(cuda: Device, cp: Any) -> None:
    with pytest.raises(DeviceMismatchError, match=r"not C-contiguous"):
        agt.asarray(cp.zeros((4, 4), dtype=cp.float32)[:, ::2])


@pytest.mark.gpu
def test_cupy_streams(cuda: Device, cp: Any) -> None:
    stream = cp.cuda.Stream(non_blocking=True)
    with agt.record() as trace:
        assert agt.ones((4,)).to_host().sync_on(stream).tolist() == [1.0] * 4
        assert agt.ones((4,)).to_host().sync_on(stream).tolist() == [1.0] * 4
    assert len(trace.streams) == 1

    class Mine(agt.SchedulingPolicy):
        """Hands out a foreign stream."""

        def next_stream(self) -> Any:
            return stream

    assert agt.ones((4,)).to_host().sync(Mine()).tolist() == [1.0] * 4
    assert cuda.adopt_stream(cp.cuda.Stream.null) is cuda.default_stream


@pytest.mark.gpu
def test_streams_of_other_libraries(cuda: Device, cp: Any) -> None:
    own = cp.cuda.Stream(non_blocking=True)
    foreign = SimpleNamespace(__cuda_stream__=lambda: (0, own.ptr))
    assert agt.ones((4,)).to_host().sync_on(foreign).tolist() == [1.0] * 4
    assert cuda.adopt_stream(foreign) is cuda.adopt_stream(own)
    assert cuda.adopt_stream(object()) is None


@pytest.mark.gpu
def test_pinned_memory_of_other_libraries_counts(cuda: Device) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.ones(1000, dtype=torch.float32, pin_memory=True).numpy()
    assert cuda.is_pinned(theirs)
    assert cuda.is_pinned(agt.pin(np.ones(3)))
    assert not cuda.is_pinned(np.ones(3))


@pytest.mark.parametrize("dtype", [">f4", ">i2", "<u8"])
def test_a_fill_keeps_the_order_of_bytes(device: Device, dtype: str) -> None:
    assert agt.full(2, 3, dtype=dtype).to_host().sync().tolist() == [3, 3]
