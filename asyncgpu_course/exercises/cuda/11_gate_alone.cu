// With 0, block 0 is not the last, and the others end the meeting as early as they may; else it is the last.
extern "C" __global__ void trial(unsigned int begun, unsigned int* apart)
{
    if (blockIdx.x > 0) return;
    _begun = begun;
    _apart = 0;
    _gate[0] = begun > 0;
    _gate[1] = begun;
    meet(_gate);
    *apart = _apart;
}
