extern "C" __global__ void trial(unsigned int* door, int* out)
{
    _fences = 0;
    out[0] = enter(door) == READY;         // it is open
    out[4] = _fences;
    out[1] = enter(door) == READY || enter(door) == READY;  // somebody is in
    out[2] = (int)*door;
    _fences = 0;
    leave(door);
    out[5] = _fences;
    out[3] = enter(door) == READY;         // open again
}
