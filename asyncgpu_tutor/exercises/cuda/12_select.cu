extern "C" __global__ void trial(const int* left, int* out) {
    Select<Probe, Probe> either = {{left[0], 0, 0}, {left[1], 0, 0}, -1};
    out[0] = 1;
    while (out[0] < 200 && either.poll() == PENDING) { out[0] = out[0] + 1; }
    out[1] = either.winner;
    out[2] = max(either.a.polls, either.b.polls);
}
