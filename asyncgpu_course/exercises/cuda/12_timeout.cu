extern "C" __global__ void trial(const int* guests, int* out) {
    const int n = COUNT / 6, *boil = guests, *steep = boil + 2 * n, *limit = steep + 2 * n;
    out[0] = 99;  // whatever was there before
    looks_of_joins = 0;
    out[1] = serve(n, boil, steep, limit, out);
    out[2] = looks_of_joins;
}
