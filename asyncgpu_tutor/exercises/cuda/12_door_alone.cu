extern "C" __global__ void trial(unsigned int* door, int* out)
{
    out[0] = enter(door) == READY;         // it is open
    out[1] = enter(door) == READY || enter(door) == READY;  // somebody is in
    out[2] = (int)*door;
    leave(door);
    out[3] = enter(door) == READY;         // open again
}
