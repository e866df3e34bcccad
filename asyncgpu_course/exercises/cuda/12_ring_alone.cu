__device__ unsigned int sent(Ring& ring, unsigned int x) { return ring.poll_send(x) == READY ? 1 + x : 0; }
__device__ unsigned int received(Ring& ring)
{
    unsigned int x = 99;
    return ring.poll(x) == READY ? 1 + x : 0;
}
extern "C" __global__ void trial(unsigned int* head, unsigned int* tail, unsigned int* values, unsigned int* out)
{
    Ring ring = {head, tail, values};
    out[0] = received(ring);
    out[1] = sent(ring, 40);
    out[2] = sent(ring, 0);     // a message may be 0
    out[3] = sent(ring, 42);
    out[4] = received(ring);
    out[5] = sent(ring, 43);
    out[6] = received(ring);
    out[7] = received(ring);
    out[8] = received(ring);
}
