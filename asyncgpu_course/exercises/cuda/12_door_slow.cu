// Who looks at the door is held up behind that, for long enough that another visits in the meantime.
enum Poll { PENDING, READY };
__device__ unsigned int _held_up()
{
    for (long long end = clock64() + 40000; clock64() < end;) __nanosleep(1000);
    return 0;
}
#define load(...) load(__VA_ARGS__) + _held_up()
