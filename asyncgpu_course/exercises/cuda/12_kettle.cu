extern "C" __global__ void trial(const int* cups, int* out) {
    const int n = COUNT / 2;
    const int *boil = cups + 1, *steep = boil + n;
    bool begun[n] = {};
    int now = 0;
    for (int turn = 0; turn < n; turn++) {
        int k = pick(n, boil, steep, begun);
        if (k < 0 || k >= n || begun[k]) {
            out[1] = turn + 1;
            out[2] = k;
            return;
        }
        begun[k] = true;
        now += boil[k];
        out[0] = max(out[0], now + steep[k]);
    }
}
