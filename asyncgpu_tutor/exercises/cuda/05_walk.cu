extern "C" __global__ void NAME(unsigned int steps, const unsigned int* next, unsigned int* place)
{
    unsigned int here = place[threadIdx.x];
    for (unsigned int s = 0; s < steps; s++) {
        here = next[here];
    }
    place[threadIdx.x] = here;
}
