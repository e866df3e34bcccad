extern "C" __global__ void trial(const int* guests, int* out) {
    const int n = COUNT / 6, *boil = guests, *steep = boil + 2 * n, *limit = steep + 2 * n;
    out[0] = 99;  // whatever was there before
    looks_of_joins = _looks_of_teas = _out_of_turn = 0;
    _guests = 2 * n;
    for (int g = 0; g < _guests; g++) _stays[g] = 1 + min(boil[g] + steep[g], limit[g]);
    out[1] = serve(n, boil, steep, limit, out);
    out[2] = _looks_of_teas == 0 || _out_of_turn ? -1 : looks_of_joins;
}
