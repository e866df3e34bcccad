"""Textures: what reads of them give, on each device, and what is refused.

On a GPU the same tests hold the hardware against the formulae of the CUDA C++ Programming Guide, appendix
"Texture Fetching", as they are written here: `pytest -m gpu tests/kernels/test_textures.py`.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import (
    ArrayDTypeError,
    ArrayShapeError,
    CaptureError,
    DeviceMismatchError,
    KernelCompileError,
    KernelFault,
    StreamRaceError,
    UninitialisedReadError,
    UseAfterMoveError,
)
from simgpu.cuda_c import GlobalMemory, TextureForm, compile_source
from simgpu.gpus import find_spec

Array = np.ndarray[Any, Any]
SAMPLE = """
__global__ void sample(cudaTextureObject_t t, const float* p, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = READ;
}"""
READS = ["tex1D<float>(t, p[i])", "tex2D<float>(t, p[i], p[n + i])",
         "tex3D<float>(t, p[i], p[n + i], p[2 * n + i])"]  # fmt: skip
COPY = """
__global__ void copy(cudaTextureObject_t t, TYPE* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<TYPE>(t, i - 1);
}"""
TURN = """
__global__ void turn(cudaTextureObject_t image, float* out, int width, int height, float c, float s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float u = x + 0.5f - 0.5f * width, v = y + 0.5f - 0.5f * height;
    out[y * width + x] = tex2D<float>(image, c * u - s * v + 0.5f * width, s * u + c * v + 0.5f * height);
}"""


def along(x: float, n: int, linear: bool, address: str) -> list[tuple[int | None, float]]:
    """The texels on one axis, None outside of the border, with their weights; `x` counts texels."""
    found = [(math.floor(x), 1.0)]
    if linear:
        low = math.floor(x - 0.5)
        alpha = round((x - 0.5 - low) * 256) / 256
        found = [(low, 1 - alpha), (low + 1, alpha)]
    if address == "border":
        return [(i if 0 <= i < n else None, w) for i, w in found]
    if address == "wrap":
        return [(i % n, w) for i, w in found]
    if address == "mirror":
        return [(min(i % (2 * n), 2 * n - 1 - i % (2 * n)), w) for i, w in found]
    return [(min(max(i, 0), n - 1), w) for i, w in found]


def expected(array: Array, place: tuple[float, ...], linear: bool, address: str) -> float:
    """A read at (x, y, z)."""
    sides = [along(x, n, linear, address) for x, n in zip(place, array.shape[::-1], strict=True)]
    total = 0.0
    for corner in itertools.product(*sides):
        index = tuple(i for i, _ in reversed(corner))
        total += 0.0 if None in index else float(array[index]) * math.prod(w for _, w in corner)
    return total


def turned(image: Any, size: int, angle: float) -> Array:
    """A square image by the kernel `turn`."""
    c, s, blocks = math.cos(angle), math.sin(angle), -(-size // 8)
    out = agt.zeros((size, size))
    launch = agt.Kernel(TURN)(image, out, size, size, c, s, grid=(blocks, blocks), block=(8, 8))
    result: Array = launch.output().to_host().sync()
    return result


@pytest.mark.parametrize(
    ("filtered", "address", "place", "want"),
    [
        ("point", "mirror", -0.5, 1.0),
        ("point", "mirror", -0.25, 3.0),
        ("point", "mirror", 1.25, 4.0),
        ("point", "mirror", 1.5, 1.0),
        ("point", "mirror", -10000.25, 3.0),
        ("point", "wrap", -1e-30, 7.0),
        ("linear", "clamp", 0.125, 3.0),
        ("linear", "mirror", -0.125, 3.0),
    ],
)
def test_edges_of_texels_are_as_an_h200_has_them(
    device: Device, filtered: Any, address: Any, place: float, want: float
) -> None:
    """Where the programming guide leaves it open, or a texel without a weight is NaN."""
    array = np.float32([3, 1, 4, 7] if filtered == "point" else [3, np.nan, 4, 7])
    made = agt.texture(array, filter=filtered, address=address, normalized_coords=True)
    kernel = agt.Kernel(SAMPLE.replace("READ", READS[0]))
    p = agt.h2d(np.float32([[place]]))
    got = kernel(made, p, agt.zeros(1), 1, grid=1, block=32).output().to_host().sync()
    assert got[0] == want


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from(["point", "linear"]),
    st.sampled_from(["clamp", "border", "wrap", "mirror"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_reads_follow_the_programming_guide(
    device: Device, sizes: list[int], filtered: Any, address: Any, normalized: bool, seed: int
) -> None:
    normalized = normalized or address in ("wrap", "mirror")
    rng, n = np.random.default_rng(seed), 40
    array = rng.random(sizes, np.float32)
    # Within texels and steps of weights, far and near; not on an edge, where rounding may do as it likes.
    places = [
        rng.integers(-2 * size - 1, 3 * size, n) + (4 * rng.integers(0, 256, n) + 1) / 1024
        for size in reversed(sizes)
    ]
    scale = [size if normalized else 1 for size in reversed(sizes)]
    p = np.float32([x / s for x, s in zip(places, scale, strict=True)])
    made = agt.texture(array, filter=filtered, address=address, normalized_coords=normalized)
    kernel = agt.Kernel(SAMPLE.replace("READ", READS[len(sizes) - 1]))
    got = kernel(made, agt.h2d(p), agt.zeros(n), n, grid=2, block=32).output().to_host().sync()
    want = [
        expected(array, place, filtered == "linear", address) for place in zip(*places, strict=True)
    ]
    # Of a product of weights each factor is rounded; the guide says nothing of that. See the next test.
    rounded = 1e-6 if len(sizes) == 1 else 4 / 256
    np.testing.assert_allclose(
        got, np.float32(want), atol=rounded if filtered == "linear" else 0, rtol=0
    )


# Of the weights of all texels as an H200 gave them (driver 580), 16 bits each: every pair of fractions in two
# dimensions, and 65,536 random triples in three.
@pytest.mark.parametrize(("axes", "digest"), [(2, "2c6cfba7c8aca1d4"), (3, "b88387a427449732")])
def test_weights_are_those_of_an_h200(device: Device, axes: int, digest: str) -> None:
    if axes == 2:
        steps = np.indices((256, 256)).reshape(2, -1)
    else:
        steps = np.random.default_rng(0).integers(0, 256, (3, 65536))
    kernel, weights = agt.Kernel(SAMPLE.replace("READ", READS[axes - 1])), []
    for one in np.eye(2**axes, dtype=np.float32):
        made = agt.texture(one.reshape((2,) * axes), filter="linear")
        p = agt.h2d(np.float32(steps / 256 + 0.5))
        got = (
            kernel(made, p, agt.zeros(65536), 65536, grid=256, block=256).output().to_host().sync()
        )
        weights.append(np.uint16(got * 256))
    assert hashlib.sha256(np.array(weights, "<u2").tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("name", ["char", "uchar", "short", "ushort", "int", "uint", "float"])
def test_each_type_is_fetched_to_the_bit_and_is_zero_outside(
    device: Device, name: str, channels: Any
) -> None:
    dtype = np.dtype({"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
                      "float": "f4"}[name])  # fmt: skip
    bits = np.random.default_rng(7).integers(0, 2**32, (6, channels), np.uint32)
    array = (bits / 3e9).astype(dtype) if name == "float" else bits.astype(dtype)
    array = array if channels > 1 else array[:, 0]
    kernel = agt.Kernel(COPY.replace("TYPE", f"{name}{channels}"))
    out = agt.zeros((8, channels), dtype)
    made = agt.texture(array, channels=channels, memory="linear")
    got = kernel(made, out, 8, grid=1, block=32).output().to_host().sync()
    assert got[1:7].tobytes() == array.tobytes()
    assert not got[[0, 7]].any()


@pytest.mark.parametrize(("name", "most"), [("i1", 127), ("u1", 255), ("i2", 32767), ("u2", 65535)])
def test_integers_are_read_as_fractions(device: Device, name: str, most: int) -> None:
    limits = np.iinfo(name)
    array = np.array([limits.min, 0, 1, most // 3, most], name)
    kernel = agt.Kernel(SAMPLE.replace("READ", READS[0]))
    p = np.float32([0.5, 1.5, 2.5, 3.5, 4.5, 0.625, 3.75, 4.25])
    steps = 32767 if limits.min < 0 else 65535
    for filtered in ("point", "linear"):
        made = agt.texture(array, filter=filtered, read="normalized_float")
        got = kernel(made, agt.h2d(p), agt.zeros(8), 8, grid=1, block=32).output().to_host().sync()
        want = [expected(array / most, (x,), filtered == "linear", "clamp") for x in p.tolist()]
        if filtered == "linear":
            want = [math.floor(one * steps + 0.5) / steps for one in want]
        np.testing.assert_allclose(got, np.maximum(want, -1), atol=1e-7, rtol=0)


def test_float16_is_read_as_float(device: Device) -> None:
    array = np.array([1.5, -2, 65504], np.float16)
    kernel = agt.Kernel(COPY.replace("TYPE", "float"))
    made = agt.texture(array, memory="linear")
    got = kernel(made, agt.zeros(5), 5, grid=1, block=32).output().to_host().sync()
    assert got.tolist() == [0, 1.5, -2, 65504, 0]


def test_an_image_is_turned_by_any_angle(device: Device) -> None:
    image = np.random.default_rng(1).random((96, 96), np.float32)
    quarter = agt.texture(image, address="border").sync()
    np.testing.assert_array_equal(turned(quarter, 96, math.pi / 2), np.rot90(image))
    smooth = agt.texture(image, filter="linear", address="border").sync()
    got, c, s = turned(smooth, 96, 0.3), math.cos(0.3), math.sin(0.3)
    assert abs(got - turned(quarter, 96, 0.3)).max() > 0.1  # the same bytes, read in another way
    for x, y in [(48, 48), (20, 70), (90, 33), (0, 0)]:
        u, v = x - 47.5, y - 47.5
        want = expected(image, (c * u - s * v + 48, s * u + c * v + 48), True, "border")
        assert got[y, x] == pytest.approx(want, abs=0.01)  # float's coordinates may be a step off


def test_a_convolution_reads_vectors_through_functions_and_templates(device: Device) -> None:
    source = """
    template <typename T> __device__ T at(cudaTextureObject_t image, int x, int y) {
        return tex2D<T>(image, x + 0.5f, y + 0.5f);
    }
    __global__ void box(const cudaTextureObject_t a, cudaTextureObject_t b, float* out, int width) {
        int x = threadIdx.x, y = blockIdx.x;
        cudaTextureObject_t image = x % 2 ? b : a;
        float4 sum = make_float4(0, 0, 0, 0);
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                float4 p = at<float4>(image, x + dx, y + dy);
                sum.x += p.x; sum.y += p.y; sum.z += p.z; sum.w += p.w;
            }
        if (x < width) out[y * width + x] = sum.x + 2 * sum.y + 4 * sum.z + 8 * sum.w;
    }"""
    image = np.random.default_rng(2).integers(0, 9, (5, 7, 4)).astype(np.float32)
    a, b = (agt.texture(scale * image, channels=4) for scale in (1, 10))
    got = agt.Kernel(source)(a, b, agt.zeros((5, 7)), 7, grid=5, block=16).output().to_host().sync()
    padded = np.pad(image @ np.float32([1, 2, 4, 8]), 1, mode="edge")
    want = sum(padded[y : y + 5, x : x + 7] for y in range(3) for x in range(3))
    np.testing.assert_array_equal(got, want * np.where(np.arange(7) % 2, 10, 1))


def test_it_is_a_copy_that_lives_until_its_launches_are_done(device: Device) -> None:
    kernel = agt.Kernel(COPY.replace("TYPE", "float"))
    x = agt.h2d(np.float32([1, 2, 3])).sync()
    made = agt.texture(x.borrow(), memory="linear").sync()
    assert (made.shape, made.dtype, made.device) == ((3,), np.float32, device)
    agt.memcpy(x.borrow(), np.float32([7, 8, 9])).sync()
    stream = agt.create_stream()
    host = kernel(made, agt.zeros(5), 5, grid=1, block=32).output().to_host().async_on(stream)
    prepared = kernel(made, agt.zeros(5), 5, grid=1, block=32).output().to_host().prepare()
    del made, x
    stream.synchronize()
    assert np.asarray(host).tolist() == prepared.launch().sync().tolist() == [0, 1, 2, 3, 0]


def test_what_is_not_ordered_behind_the_copy_is_a_race_and_a_capture_holds_none(
    sim: Device,
) -> None:
    kernel = agt.Kernel(COPY.replace("TYPE", "float"))
    x = agt.h2d(np.ones(3, np.float32)).sync()
    op = agt.texture(x, memory="linear")
    made = op.async_on(agt.create_stream())
    with pytest.raises(StreamRaceError, match="h2d"):
        kernel(made, agt.zeros(5), 5, grid=1, block=32).sync_on(agt.create_stream())
    with pytest.raises(UseAfterMoveError, match="texture"):
        op.sync()
    for source in (agt.zeros(4), np.ones(4, np.float32)):
        with pytest.raises(CaptureError, match="make the texture before"):
            agt.texture(source).prepare()
    with pytest.raises(DeviceMismatchError, match="make it there"), agt.using(agt.SimDevice()):
        kernel(made, agt.zeros(5), 5, grid=1, block=32).sync()


ONES: dict[str, Any] = {"array": np.ones((4, 4), np.float32)}


@pytest.mark.parametrize(
    ("wanted", "error", "says"),
    [
        ({"address": "wrap"}, agt.UsageError, "address='wrap' needs normalized_coords=True"),
        ({"address": "repeat"}, agt.UsageError, "one of 'clamp', 'border', 'wrap', 'mirror'"),
        ({"channels": 3}, agt.UsageError, "channels is one of 1, 2, 4, and got 3"),
        ({"channels": 2}, ArrayShapeError, "the last axis of the array holds the channels"),
        ({"memory": "linear"}, ArrayShapeError, "in linear memory 1"),
        ({"array": np.ones(4), "address": "clamp"}, ArrayDTypeError, "got float64"),
        ({"array": np.ones((2, 2, 2, 4), np.int8)}, ArrayShapeError, "channels=2 or 4 one more"),
        ({"array": np.ones(4, np.uint8), "filter": "linear"}, agt.UsageError, "normalized_float"),
        ({"read": "normalized_float"}, agt.UsageError, "8 and 16 bits"),
        (
            {"array": np.float32([1]), "memory": "linear", "filter": "linear"},
            agt.UsageError,
            "tex1Dfetch",
        ),
        ({"array": np.ones(4, np.float32), "channels": 4}, ArrayShapeError, r"1 to 3 .* got \(\)"),
        ({"array": np.ones(4, ">f4")}, ArrayDTypeError, "got >f4: convert"),
        (
            {"array": np.ones((4, 2), np.float32), "channels": 2.0},
            agt.UsageError,
            "one of 1, 2, 4, and got 2.0",
        ),
        ({"normalized_coords": "no"}, agt.UsageError, "one of False, True, and got 'no'"),
    ],
)
def test_what_cuda_has_not_is_refused(sim: Device, wanted: Any, error: type, says: str) -> None:
    x = agt.h2d((ONES | wanted)["array"]).sync()
    modes = {name: value for name, value in wanted.items() if name != "array"}
    with pytest.raises(error, match=says):
        agt.texture(x, **modes)
    assert not x.moved


def test_what_is_no_array_is_refused_by_its_name(sim: Device) -> None:
    x = agt.zeros(4).sync()
    for wrong, says in (
        (None, "NoneType"),
        (agt.texture(x.borrow()).sync(), "Texture"),
        (x.partition((2,)), r"Partition: call its unpartition\(\)"),
    ):
        with pytest.raises(ArrayDTypeError, match=rf"takes an array, and got {says}"):
            agt.texture(wrong)  # pyright: ignore[reportArgumentType] - that is the point
        with pytest.raises(ArrayDTypeError, match=rf"takes an array, and got {says}"):
            agt.texture(agt.value(wrong)).sync()  # pyright: ignore[reportArgumentType]


def test_a_texture_is_a_parameter_of_its_own(sim: Device) -> None:
    made = agt.texture(np.float32([1])).sync()
    fields = "struct Scene { cudaTextureObject_t image; float scale; };"
    for head, passed in ((f"{fields} ", (made, 2.0)), ("", made)):
        ctype = "Scene" if head else "unsigned long long"
        kernel = agt.Kernel(f"{head}__global__ void k({ctype} s, float* y) {{ y[0] = 1; }}")
        with pytest.raises(ArrayDTypeError, match="parameter of its own, a cudaTextureObject_t"):
            kernel(passed, agt.zeros(1).sync(), grid=1, block=1)


def test_arguments_of_the_wrong_kind_are_refused(sim: Device) -> None:
    kernel = agt.Kernel(COPY.replace("TYPE", "float"))
    x, made = agt.zeros(4).sync(), agt.texture(np.float32([1])).sync()
    for wrong in (x, np.ones(4), 5, None):
        with pytest.raises(
            ArrayDTypeError, match=r"takes a texture as 't', and got \w+: agt.texture\(x\)"
        ):
            kernel(wrong, x, 4, grid=1, block=4)
    with pytest.raises(ArrayDTypeError, match="declare a cudaTextureObject_t"):
        kernel(made, made, 4, grid=1, block=4)


def test_texture_references_are_refused_with_what_to_write() -> None:
    for head in (
        "texture<float, 2> t;\n__global__ void k(",
        "__global__ void k(texture<float, 2> t, ",
    ):
        with pytest.raises(KernelCompileError, match="gone since CUDA 12") as caught:
            compile_source(head + "float* x) { x[0] = tex2D(t, 1, 2); }")
        assert "tex2D<float>(texture, x, y)" in str(caught.value)
        assert "cudaTextureObject_t" in str(caught.value)


@pytest.mark.parametrize("read", ["<float, 1>", "<>", "<1>", "<unknown>", ""])
def test_what_is_read_is_told_by_one_type(read: str) -> None:
    with pytest.raises(
        KernelCompileError, match=r"by one type: write tex2D<float>\(texture, x, y\)"
    ):
        compile_source(SAMPLE.replace("READ", f"tex2D{read}(t, 1, 2)"))


VECTORS: dict[str, Any] = {"array": np.ones((4, 4, 4), np.uint8), "channels": 4}


@pytest.mark.parametrize(
    ("wanted", "read", "says"),
    [
        (VECTORS, "tex1D<float>(t, i)", r"'t' with tex1D<float>, and the texture is 2D: use tex2D"),
        (ONES, "tex1D<float>(t, i)", r"is 2D: use tex2D, or agt.texture\(x, channels=4\)"),
        (ONES, "tex3D<float>(t, i, i, i)", r"is 2D: use tex2D\n"),
        (
            {"array": np.ones(4, np.uint8), "memory": "linear"},
            "tex2D<float>(t, i, i)",
            "in linear memory: use tex1Dfetch",
        ),
        (VECTORS, "tex2D<int>(t, i, i)", "tex2D<int>, and a read of it gives uchar4"),
        (VECTORS, "tex2D<uchar2>(t, i, i).x", "tex2D<uchar2>, and a read of it gives uchar4"),
        (VECTORS, "tex2D<float>(t + 1, i, i)", "did not come from agt.texture"),
        (VECTORS, "tex2D<float>(t + 4096, i, i)", "did not come from agt.texture"),
    ],
)
def test_reads_that_do_not_fit_name_what_does(
    sim: Device, wanted: Any, read: str, says: str
) -> None:
    made = agt.texture(**wanted)
    kernel = agt.Kernel(SAMPLE.replace("READ", read))
    with pytest.raises(KernelFault, match=says):
        kernel(made, agt.zeros(4), agt.zeros(4), 4, grid=1, block=4).sync()


def test_a_read_costs_one_load_from_global_memory() -> None:
    texture = TextureForm((64,), np.dtype(np.float32), filter="linear")
    counts: list[Any] = []
    for form, head, read in (
        (None, "const float* t", "t[i]"),
        (texture, "cudaTextureObject_t t", "tex1D<float>(t, i)"),
    ):
        text = f"__global__ void k({head}, float* out) {{ int i = threadIdx.x; out[i] = {read}; }}"
        t, out = GlobalMemory(256), GlobalMemory(256)
        t.texture = form
        t.mark_written()
        counts.append(compile_source(text).launch("k", (1, 1, 1), (64, 1, 1), [t, out]).counts)
    plain, sampled = counts
    assert sampled.global_load_requests == plain.global_load_requests == 2
    assert sampled.load_bytes_needed == plain.load_bytes_needed == 256
    assert sampled.chain_load_rounds == plain.chain_load_rounds == 1


def test_memory_that_nobody_uses_any_more_is_there_for_a_texture(sim: Device) -> None:
    million = 2**20
    with agt.using(agt.SimDevice(spec=replace(find_spec("h200"), memory_bytes=10 * million))):
        x, stream = agt.zeros(768 * 1024).sync(), agt.create_stream()
        agt.zeros(5 * million // 4).async_on(stream)  # 5 MiB
        stream.synchronize()  # the run is over, and nobody has looked
        assert agt.texture(x.borrow(), memory="linear").sync().shape == (768 * 1024,)


def test_a_launch_that_a_preparation_refuses_is_not_used_up(sim: Device) -> None:
    kernel = agt.Kernel(COPY.replace("TYPE", "float"))
    made = agt.texture(np.arange(3, dtype=np.float32), memory="linear").sync()
    with agt.using(agt.SimDevice()):
        op = kernel(made, agt.zeros(5).sync(), 5, grid=1, block=32).output().to_host()
        for _ in range(2):
            with pytest.raises(DeviceMismatchError):
                op.prepare()


def test_a_launch_that_waits_for_its_arguments_tells_no_shapes() -> None:
    kernel = agt.Kernel(COPY.replace("TYPE", "float"))
    made = agt.texture(np.zeros(3, np.float32), memory="linear")
    op = kernel(made, agt.zeros(5), 5, grid=1, block=32).output()
    assert "copy" in repr(op)
    op.sync()


def test_what_nothing_has_written_stays_unwritten_in_copies(sim: Device) -> None:
    half = agt.Kernel(
        "__global__ void half_of(float* y) { if (threadIdx.x < 2) y[threadIdx.x] = 1; }"
    )
    copy = agt.Kernel(
        "__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }"
    )
    empty = agt.with_context(lambda context: agt.value(context.empty((4,))))
    x = half(empty, grid=1, block=4).output().sync()
    read = agt.Kernel(COPY.replace("TYPE", "float"))
    made = agt.texture(x.borrow(), memory="linear").sync()
    _, again = agt.dup(x).sync()
    assert read(made, agt.zeros(3), 3, grid=1, block=4).output().to_host().sync().tolist() == [
        0,
        1,
        1,
    ]
    assert copy(again.borrow(), agt.zeros(2), grid=1, block=2).output().to_host().sync().all()
    with pytest.raises(UninitialisedReadError, match=r"'t'\[2\]"):
        read(made, agt.zeros(4), 4, grid=1, block=4).sync()
    with pytest.raises(UninitialisedReadError, match=r"'x'\[2\]"):
        copy(again, agt.zeros(4), grid=1, block=4).sync()


def test_a_texture_that_a_kernel_finds_in_memory_is_read_anew(sim: Device) -> None:
    tell = agt.Kernel(
        "__global__ void tell(cudaTextureObject_t t, unsigned long long* y) { *y = t; }"
    )
    sum_up = agt.Kernel("""__global__ void sum_up(const unsigned long long* which, float* y) {
        cudaTextureObject_t table = which[0];
        float sum = 0;
        for (int i = 0; i < 300; i++) sum += tex1D<float>(table, threadIdx.x + i + 0.5f);
        y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }""")
    for one in (1, 2):  # the same numbers on each device, and so the same launch by its arguments
        with agt.using(agt.SimDevice()):
            made = agt.texture(np.full(8, one, np.float32)).sync()
            which = tell(made, agt.zeros(1, np.uint64), grid=1, block=1).output().sync()
            launch = sum_up(which.borrow(), agt.zeros(4096), grid=32, block=128).output()
            assert (launch.to_host().sync() == 300 * one).all()
            del made
            with pytest.raises(KernelFault, match="or is gone"):
                sum_up(which, agt.zeros(4096), grid=32, block=128).sync()


def test_a_texture_of_its_own_has_a_number_of_its_own(sim: Device) -> None:
    tell = agt.Kernel("""__global__ void tell(cudaTextureObject_t t, unsigned long long* y) {
        float sum = 0;
        for (int i = 0; i < 300; i++) sum += tex1D<float>(t, threadIdx.x + i + 0.5f);
        if (sum > 0) y[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned long long)t;
    }""")
    kept, numbers = [], set[int]()
    for _ in range(3):
        made = agt.texture(np.ones(8, np.float32)).sync()
        kept.append(made)
        out = tell(made, agt.zeros(4096, np.uint64), grid=32, block=128).output()
        numbers.add(int(out.to_host().sync()[0]))
    assert len(numbers) == 3
