"""Right answers to exercises of course/14_gallery.py in other forms than the solution's."""


# %% id=14-grep
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool yes = i < n && text[i] == letter;
    if (!yes) return;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
"""
