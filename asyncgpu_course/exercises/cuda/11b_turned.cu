// The block with the largest number begins first.
struct Turned { unsigned int x, y, z; };
#define blockIdx (Turned{gridDim.x - 1 - blockIdx.x, 0, 0})
