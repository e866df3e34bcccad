// A model that says what is written. Whoever launches it when all is said is counted, too.
extern "C" __global__ void say(const int* script, int* place, int* token, int* text, int* going)
{
    int now = *place, next = script[now];
    *place = now + (next >= 0);
    *token = next;
    text[now] = next >= 0 ? next : -1 - next;
    if (next < 0) *going = 0;
}
