"""cuRAND's device functions, against numbers that NVIDIA's own header gives (CUDA 12.8's, compiled for the host)."""

import functools

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device

from .support import launch

INCLUDE = "#include <curand_kernel.h>\n"
XORWOW, PHILOX = "curandState", "curandStatePhilox4_32_10_t"

# Seed, sequence and offset; the first five numbers.
NUMBERS = {
    XORWOW: [
        ((0, 0, 0), [3179217846, 1883133293, 2220552389, 674260989, 306521119]),
        ((1234, 0, 0), [624778773, 1867875844, 3739671282, 1954919316, 3681184389]),
        ((1234, 1, 0), [3522650202, 3978931785, 2198015705, 2308946676, 3475686971]),
        ((1234, 5, 7), [3351265907, 3629609298, 415430802, 1173093345, 689711927]),
        ((81985529216486895, 1000003, 12345), [126596131, 3561575505, 599509599, 2624395292, 1925398016]),
        ((81985529216486895, 78187493520, 1099511627775), [824611621, 4190765539, 2892207822, 739529344, 1298447107]),
        ((42, 18446744073709551615, 18446744073709551615), [3219760634, 3696890910, 3886673264, 3715285876, 4097390062])],
    PHILOX: [
        ((0, 0, 0), [1713891541, 3781805453, 3159862348, 2600524760, 4175744164]),
        ((1234, 0, 0), [546353992, 3665621163, 1140953199, 3419031310, 2666454581]),
        ((1234, 1, 0), [3507855656, 1392278645, 3354607383, 253049307, 118660703]),
        ((1234, 5, 7), [1925342002, 648658203, 3633236749, 143597841, 3521664514]),
        ((81985529216486895, 1000003, 12345), [3404106038, 1534965364, 531751171, 1243954588, 3073334694]),
        ((81985529216486895, 78187493520, 1099511627775), [1476957981, 377097432, 287836808, 88242454, 1779287918]),
        ((42, 18446744073709551615, 18446744073709551615), [1600731561, 1168400816, 179870813, 1859481851, 3909526705])],
}  # fmt: skip

# With seed 42, sequence 3 and offset 5, what `KINDS` draws.
DRAWN = {
    XORWOW: [0.271452248, 0.326787353, 0.835163772, -0.476301849, 1.43296671, 0.06085428240724694, 0.99183881311381161, -0.21586888117999015, 0.39251697336830688, -0.53488692677076388, 0.553928077, -0.627489448, 2.568514591495755, 1.4257323581719139, 2.72827935, 2.45012283, 5.0266452297800619, 3.28886962, 2.43751454, 4.5110673151560841, 4.9497608068755472, -0.870799363, 1098875587, 4136706458, 48],
    PHILOX: [0.115504362, 0.662859917, 1.50521863, -0.719303191, -0.0243089814, 0.61951535055413842, 0.23844600934535265, 0.47207993070746906, -0.11901826071793789, 1.9207267561102006, -1.7977457, 0.360750645, 1.0640595832144777, 0.0040820427788962497, 3.95523429, 1.6553781, 1.4057929971526832, 0.960244775, 7.34233141, 2.1047184883022489, 4.6082958300791281, -1.47378159, 1450791832, 2387480622, 64],
}  # fmt: skip
KINDS = """
for (int j = 0; j < 2; j++) o[k++] = curand_uniform(&s);
for (int j = 0; j < 3; j++) o[k++] = curand_normal(&s);
for (int j = 0; j < 2; j++) o[k++] = curand_uniform_double(&s);
for (int j = 0; j < 3; j++) o[k++] = curand_normal_double(&s);
float2 a = curand_normal2(&s); o[k++] = a.x; o[k++] = a.y;
double2 b = curand_normal2_double(&s); o[k++] = b.x; o[k++] = b.y;
o[k++] = curand_log_normal(&s, 1.0f, 0.5f); o[k++] = curand_log_normal(&s, 2.0f, 0.25f);
o[k++] = curand_log_normal_double(&s, 1.0, 0.5);
float2 l = curand_log_normal2(&s, 1.0f, 0.5f); o[k++] = l.x; o[k++] = l.y;
double2 m = curand_log_normal2_double(&s, 1.0, 0.5); o[k++] = m.x; o[k++] = m.y;
saved[0] = s; s = saved[0];
o[k++] = curand_normal(&s);
skipahead(1000ull, &s); o[k++] = curand(&s);
skipahead_sequence(7ull, &s); o[k++] = curand(&s);
o[k++] = sizeof(s);
"""

# The same seed and sequence from offsets 0 to 3: four integers, uniform and normal numbers, two doubles, four log-normal.
FOURS = [
    [173123250, 1913948817, 3105408601, 2569034695, 0.522108018, 0.115504362, 0.662859917, 0.248691976, -0.911684871, 1.20073831, -0.793793023, -0.85047847, 0.71970489209923594, 0.36080909173854486, 5.58446455, 3.73962188, 1.07049179, 2.06248498],
    [1913948817, 3105408601, 2569034695, 2242436924, 0.115504362, 0.662859917, 0.248691976, 0.320949644, -0.0243089814, -0.466479242, 0.976011038, 0.0709790289, 0.88824079813336776, 0.28930616493730216, 5.74743891, 4.64381552, 4.11154747, 2.89906645],
    [3105408601, 2569034695, 2242436924, 496087451, 0.662859917, 0.248691976, 0.320949644, 0.896643519, -0.793793023, -0.85047847, -1.66270435, -0.320372969, 0.36080909173854486, 0.18362426629741152, 1.07049179, 2.06248498, 6.017097, 3.80705309],
    [2569034695, 2242436924, 496087451, 2846961708, 0.248691976, 0.320949644, 0.896643519, 0.508286297, 0.976011038, 0.0709790289, -0.52387017, 0.619183242, 0.28930616493730216, 0.15118414514284001, 4.11154747, 2.89906645, 1.1064173, 3.25559592],
]  # fmt: skip


def source(state: str, text: str) -> str:
    head = f"__global__ void k({state}* saved, const unsigned long long* at, double* o) {{ {state} s; int k = 0; "
    return f"{INCLUDE}{head}curand_init(at[0], at[1], at[2], &s);\n{text} }}"


def drawn(state: str, text: str, at: tuple[int, int, int], count: int) -> list[float]:
    o = np.zeros(count)
    launch(source(state, text), "k", 1, 1, np.zeros(64, np.uint8), np.array(at, np.uint64), o)
    return o.tolist()


# Integers and uniform numbers agree to the bit, others as far as sine and logarithm go.
near = functools.partial(np.testing.assert_allclose, rtol=3e-6)


@pytest.mark.parametrize("state", [XORWOW, PHILOX])
def test_every_kind_of_number_draws_as_many_as_nvidias(state: str) -> None:
    for at, integers in NUMBERS[state]:
        assert drawn(state, "for (; k < 5; k++) o[k] = curand(&s);", at, 5) == integers
    got, wanted = drawn(state, KINDS, (42, 3, 5), 25), DRAWN[state]
    near(got, wanted)
    assert got[:2] == [np.float32(v) for v in wanted[:2]]
    assert got[5:7] == wanted[5:7]
    assert got[-3:] == wanted[-3:]


def test_four_at_once() -> None:
    text = """
    uint4 u = curand4(&s); o[k++] = u.x; o[k++] = u.y; o[k++] = u.z; o[k++] = u.w;
    float4 f = curand_uniform4(&s), g = curand_normal4(&s);
    o[k++] = f.x; o[k++] = f.y; o[k++] = f.z; o[k++] = f.w; o[k++] = g.x; o[k++] = g.y; o[k++] = g.z; o[k++] = g.w;
    double2 d = curand_uniform2_double(&s); o[k++] = d.x; o[k++] = d.y;
    f = curand_log_normal4(&s, 1.0f, 0.5f); o[k++] = f.x; o[k++] = f.y; o[k++] = f.z; o[k++] = f.w;"""
    for offset, wanted in enumerate(FOURS):
        got = drawn(PHILOX, text, (42, 3, offset), 18)
        near(got, wanted)
        assert got[:4] == wanted[:4]


PI = """
#include <curand_kernel.h>
__global__ void setup(curandState* states, int seed) {
    int i = threadIdx.x + blockIdx.x * blockDim.x; curand_init(seed, i, 0, &states[i]); }
__global__ void count(curandState* states, int* hits, int turns) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, inside = 0;
    curandState s = states[i];
    for (int k = 0; k < turns; k++) {
        float x = curand_uniform(&s), y = curand_uniform(&s);
        inside += x * x + y * y <= 1.0f; }
    states[i] = s;
    hits[i] = inside; }
"""


def test_pi_by_chance_as_it_is_taught(device: Device) -> None:
    # NVIDIA's header, compiled for the host, gives these; a GPU has the same uniform numbers.
    setup, count = agt.Kernel(PI, "setup"), agt.Kernel(PI, "count")
    states = setup(agt.zeros((256, 48), dtype=np.uint8), 1234, grid=2, block=128).output().sync()
    hits: list[int] = []
    for _ in range(2):  # the states go on
        op = count(states.borrow(), agt.zeros((256,), dtype=np.int32), 20, grid=2, block=128)
        hits.append(int(op.last().to_host().sync().sum()))
    assert hits == [3988, 4001]
