"""Random kernels that are well defined: no race, no overflow of an index, no division by zero."""

import random
from pathlib import Path

THREADS = 64

HELPERS = Path(__file__).with_name("helpers.cu").read_text()

# Ways to make a value of a type from others.
_WAYS = {
    "I": [
        "(I + I)", "(I - I)", "(I * I)", "(I / ((I & 7) + 1))", "(I % ((I & 15) + 1))", "(I & I)", "(I | I)",
        "(I ^ I)", "(I << (I & 7))", "(I >> (I & 7))", "(B ? I : I)", "(-I)", "(~I)", "(!I)", "max(I, I)",
        "min(I, I)", "(int)(U)", "(int)fmaxf(-1e6f, fminf(1e6f, F))", "mix(I, I)", "__popc(U)", "__clz(I)",
        "__mulhi(I, I)", "(short)(I)", "(signed char)(I)", "(unsigned char)(I)", "pair(I, F).a", "(int)(L)",
        "geo::turn(I, I)", "(int)fmaxf(-99.0f, fminf(99.0f, Vec(F).sum()))", "pick<int>(I, I, Smaller<int>())", "power<3>(I)", "box.at(I)",
        "(I + Kind<int*>::id + HIGH + (int)Side::Right)", "(int)(Kind<int>::wide)(I)", "box.total()",
        "square.sides()", "square.n", "packs[I & 1].parts[I & 1].n", "twice([=](int c) { return (c & 255) - p; }, I)", "([&](auto c) { return c + p; })(I)",
        "a[(size_t)(I & 31)]", "local[(unsigned long long)(U & 3u)]", "(local + 3)[(size_t)0 - (U & 3u)]",
        "(I, I)", "__ffs(I)", "(int)(D > 0.5)", "as_int(F + 0.0f)", "as_int(H)", "as_int(E)", "__half2int_rz(H)", "__half2int_rn(H)",
        "fold<Smaller, int>(I, I)", "unit<int>(I)", "kept(I, F).a", "bytes(I, U)", "(vol + I)", "(Picked(I) * 10)", "in_union(F)"],
    "U": [
        "(U + U)", "(U * U)", "(U - U)", "(U / ((U & 7u) + 1u))", "(U >> (U & 15u))", "(U ^ U)", "(unsigned)(I)",
        "bits(F + 0.0f)", "(U + Vec::SIZE)",
        "(U % ((U & 15u) + 1u))", "(I + U)", "__brev(U)", "__umulhi(U, U)", "(B ? U : U)", "(unsigned short)(U)"],
    "L": ["(L + I)", "(L * 3 - I)", "(L >> (I & 15))", "((long long)I * I)", "(L ^ I)", "(B ? L : L)"],
    "F": [
        "(F + F)", "(F - F)", "(F * F * 0.25f)", "(F / (fabsf(F) + 1.0f))", "fmaxf(F, F)", "fminf(F, F)",
        "sqrtf(fabsf(F))", "(B ? F : F)", "(float)(I)", "(F + I)", "floorf(F)", "(-F)", "bend(F, I)",
        "(Vec(F, F) + Vec(F)).y", "(Vec(F) * F).x", "(-Vec(F, F)).sum()", "Vec(F, F)[I & 1]", "w(F)", "w[I & 1]",
        "area_of(square)", "Square(F, I).area()", "square.side", "([=](float c) { return c * 0.5f + r; })(F)",
        "pair(I, F).b", "truncf(F * 0.5f)", "(float)(D)", "fmaf(F, 0.5f, F)", "copysignf(F, F)", "__half2float(H)",
        "__bfloat162float(E)", "cuCrealf(C)", "cuCimagf(C)", "cuCabsf(C)", "unit<float>(F)", "kept(I, F).b"],
    "H": [
        "(H + H)", "(H - H)", "(H * H)", "(H / H)", "__float2half(F)", "__float2half_rz(F)", "(B ? H : H)", "__hmax(H, H)", "__hmin(H, H)",
        "(-H)", "__habs(H)", "__int2half_rn(I)", "hsqrt(__habs(H))", "hfloor(H)", "__hadd(H, H)", "__hmul(H, H)"],
    "C": ["cuCaddf(C, C)", "cuCsubf(C, C)", "cuCmulf(C, C)", "cuCdivf(C, C)", "cuConjf(C)", "make_cuFloatComplex(F, F)"],
    "D": ["(D + F)", "(D * 0.5)", "(D - I)", "(D / (fabs(D) + 1.0))", "((double)F)", "sqrt(fabs(D))"],
    "B": ["(B && B)", "(B || B)", "(!B)", "(Vec(F) < w)"],
}  # fmt: skip
_WAYS["E"] = [
    w.replace("H", "E").replace("half", "bfloat16") for w in _WAYS["H"] if "half_r" not in w
]
_NAMES = {"I": "int", "U": "unsigned", "F": "float", "L": "long long", "D": "double", "H": "half"}
_NAMES |= {"E": "__nv_bfloat16", "C": "cuFloatComplex"}


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.variables = {"I": ["i", "p"], "U": ["u", "q"], "F": ["f", "r"], "L": ["g"], "D": ["d"]}
        self.variables |= {"H": ["ha"], "E": ["bf"], "C": ["cz"]}
        # What a statement may assign to: never the thread's number.
        self.targets = {"I": ["p"], "U": ["q"], "F": ["r"], "L": ["g"], "D": ["d"]}
        self.targets |= {"H": ["ha"], "E": ["bf"], "C": ["cz"]}
        self.count = 0
        # One operation for a kernel: of two different ones the order would matter.
        self.atomic = rng.choice(["Add", "Max", "Min", "Xor", "And", "Or"])

    def fill(self, text: str, depth: int) -> str:
        parts: list[str] = []
        for k, c in enumerate(text):
            alone = not text[k - 1 : k].isalnum() and not text[k + 1 : k + 2].isalnum()
            single = c in "IUFLDBHEC" and alone and text[k - 1 : k] != "_"
            parts.append(self.expression(c, depth + 1) if single else c)
        return "".join(parts)

    def expression(self, kind: str, depth: int = 0) -> str:
        rng = self.rng
        if kind == "B":
            if depth < 3 and rng.random() < 0.3:
                return self.fill(rng.choice(_WAYS["B"]), depth)
            op, side = rng.choice(["<", ">", "<=", ">=", "==", "!="]), rng.choice("IIFULDHE")
            return self.fill(f"({side} {op} {side})", max(depth, 2))
        if depth > 2 or rng.random() < 0.3:
            return self.leaf(kind)
        return self.fill(rng.choice(_WAYS[kind]), depth)

    def leaf(self, kind: str) -> str:
        rng = self.rng
        known = rng.choice(self.variables[kind])
        if kind == "I":
            load = f"a[(i * {rng.randint(1, 7)} + {rng.randint(0, 9)}) % n]"
            return f"({rng.choice([known, known, str(rng.randint(-20, 20)), load, 'local[p & 3]', 'local[2]'])})"
        if kind == "U":
            return rng.choice([known, f"{rng.randint(0, 99)}u", "threadIdx.x", "blockIdx.x"])
        load = f"x[(i + {rng.randint(0, 9)}) % n]"
        if kind == "F":
            return rng.choice([known, known, f"({rng.randint(-9, 9)}.5f)", load, "v.y", "v.w"])
        other = {"L": "(long long)i", "D": "0.1", "C": f"make_cuFloatComplex({load}, 0.5f)"}
        return rng.choice([known, other.get(kind, f"{_NAMES[kind]}({load})")])

    def block(self, loop: bool, depth: int) -> str:
        saved = {k: list(v) for k, v in self.variables.items()}
        kept = {k: list(v) for k, v in self.targets.items()}
        text = " ".join(self.statement(loop, depth + 1) for _ in range(self.rng.randint(1, 3)))
        self.variables, self.targets = saved, kept
        return f"{{ {text} }}"

    def statement(self, loop: bool = False, depth: int = 0) -> str:
        rng, draw = self.rng, self.rng.random()
        self.count += 1
        own = self.count
        if depth > 4 or draw < 0.33:
            return self.assignment()
        if draw < 0.48:
            kind = rng.choice("IUFLDHEC")
            name, value = f"{kind.lower()}{own}", self.expression(kind)
            self.variables[kind].append(name)
            self.targets[kind].append(name)
            return f"{_NAMES[kind]} {name} = {value};"
        if draw < 0.66:
            tail = f" else {self.block(loop, depth)}" if rng.random() < 0.5 else ""
            return f"if ({self.expression('B')}) {self.block(loop, depth)}{tail}"
        if draw < 0.78:
            end = rng.choice(["3", "7", "(i & 7)", "(int)(threadIdx.x & 3)"])
            return f"for (int k{own} = 0; k{own} < {end}; k{own}++) {self.block(True, depth)}"
        if draw < 0.84 and loop:
            return f"if ({self.expression('B')}) {rng.choice(['break', 'continue'])};"
        if draw < 0.88:
            # No break here: it would leave the switch for g++ and for us, but a continue the loop.
            ends = ("break;", "")
            blocks = (f"case {c}: {self.block(False, depth)} {rng.choice(ends)}" for c in range(3))
            cases = " ".join(blocks)
            tail = f"default: {self.block(False, depth)}" if rng.random() < 0.6 else ""
            return f"switch ({self.expression('I', 2)} & 3) {{ {cases} {tail} }}"
        if draw < 0.92:
            return f"{{ int w{own} = {self.expression('I', 2)} & 7; do {self.block(True, depth)} while (w{own}-- > 0); }}"
        if draw < 0.93:
            way = rng.choice(["int e", "auto& e", "const int& e"])
            change = f"e ^= {self.expression('I', 2)};" if "auto" in way else "p += e;"
            return f"for ({way} : local) {{ {change} {self.assignment()} }}"
        if draw < 0.96:
            return f"{{ int w{own} = {self.expression('I', 2)} & 15; while (w{own}-- > 0) {self.block(True, depth)} }}"
        return "both(p, r);"

    def assignment(self) -> str:
        rng = self.rng
        draw = rng.random()
        if draw < 0.1:
            return f"local[{rng.choice(['1', 'p & 3', 'u & 3'])}] = {self.expression('I')};"
        if draw < 0.2:
            part, sets = rng.choice("xyzw"), rng.choice(["=", "+="])
            return f"v.{part} {sets} {self.expression('F')} * 0.125f;"
        if draw < 0.32:
            return rng.choice(
                [
                    f"w += Vec({self.expression('F')}, 0.25f);",
                    f"w[{self.expression('I', 2)} & 1] = {self.expression('F')} * 0.5f;",
                    f"box.put({self.expression('I', 2)});",
                    f"box.at({self.expression('I', 2)}) ^= {self.expression('I', 2)};",
                    f"w = Vec({self.expression('F')}) + w * 0.5f;",
                    f"square.grow({self.expression('I', 2)} & 15);",
                    f"square = Square({self.expression('F')} * 0.125f, 2);",
                    f"packs[1].named.tail ^= {self.expression('I', 3)};",
                    f"packs[0] = Pack{{{{Shape({self.leaf('F')}), {{}}}}, {{}}, (int)({self.leaf('I')})}};",
                    "packs[rest & 1] = packs[1];".replace("rest", self.expression("I", 3)),
                    "memcpy(&packs[1], &packs[0], sizeof(Pack));",
                    f"memcpy(local, a + ({self.expression('I', 3)} & 15), 3 * sizeof(int));",
                    f"memset(local + (p & 1), {self.expression('I', 2)}, 9);",
                    f"vol {rng.choice(['=', '^=', '+='])} {self.expression('I', 2)};",
                    f"each({self.expression('I', 2)} & 3, [&](int c) {{ {rng.choice(self.targets['I'])} ^= c * 5; }});",
                    f"{{ auto next = [=](int c) mutable {{ p += c; return p; }}; p ^= 1; p = next(3) * 2; p -= next({self.expression('I', 2)}); }}",
                ]
            )
        kind = rng.choice("IIUFFLDHEC")
        target = rng.choice(self.targets[kind])
        if rng.random() < 0.15 and kind in "IU":
            return rng.choice([f"{target}++;", f"--{target};"])
        operators = ["=", "=", "+=", "-="] + ([] if kind in "FDHE" else ["*=", "^=", "|="])
        operators = ["="] if kind == "C" else operators
        value = self.expression(kind)
        if kind in "FD":
            value = f"({value}) * 0.5f"  # so that numbers stay finite more often
        return f"{target} {rng.choice(operators)} {value};"

    def exchange(self) -> str:
        """Communication, at the top level, where all threads are together."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.4:
            step = rng.randint(1, THREADS - 1)
            return f"s[t] = p; __syncthreads(); p += s[(t + {step}) % {THREADS}]; __syncthreads();"
        if draw < 0.6:
            way, by = rng.choice(["up", "down", "xor"]), rng.choice([1, 2, 4, 8, 16])
            name = rng.choice(["r", "p", "ha", "bf", "d"])
            return f"{name} = __shfl_{way}_sync(0xffffffffu, {name}, {by});"
        if draw < 0.75:
            return f"q ^= __ballot_sync(0xffffffffu, {self.expression('B')});"
        if draw < 0.9:
            return f"atomic{self.atomic}(&hits[{self.expression('I', 2)} & 7], {self.expression('I', 2)});"
        return f"p += __any_sync(0xffffffffu, {self.expression('B')}) + 2 * __all_sync(0xffffffffu, p > 0);"


def kernel(name: str, seed: int) -> str:
    """Source of `name(const int* a, const float* x, int* oi, unsigned* ou, float* of, int* hits, int n)`."""
    writer = _Writer(random.Random(seed))
    lines: list[str] = []
    for _ in range(5):
        lines.append(writer.statement())
        if writer.rng.random() < 0.3:
            lines.append(writer.exchange())
    if writer.rng.random() < 0.3:
        lines.append(f"if ({writer.expression('B')}) return;")
    inner = "\n    ".join(lines)
    return f"""extern "C" __global__ void {name}(const int* a, const float* x, int* oi, unsigned* ou, float* of, int* hits, int n) {{
    __shared__ int s[{THREADS}];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    unsigned u = t * 7u, q = 3u; float f = x[i % n], r = 1.5f; int p = a[i % n];
    long long g = p * 1000003ll; double d = f * 0.5; int local[4] = {{p, 2, i}}; float4 v = make_float4(f, 1.0f, r, 2.0f);
    Vec w(f, r); Box<int, 4> box; Square square(f, p & 7); Pack packs[2] = {{{{{{Shape(r), Shape()}}, {{}}, p}}, {{}}}};
    half ha = __float2half(f); __nv_bfloat16 bf = __float2bfloat16(r); cuFloatComplex cz = make_cuFloatComplex(f, r); volatile int vol = p;
    oi[i] = -1;
    {inner}
    oi[i] = p ^ local[3] ^ (int)g ^ box.total() ^ square.n ^ sum_of(packs[1]) ^ as_int(ha) ^ as_int(bf) ^ vol;
    ou[i] = q; of[i] = r + v.x + v.z + (float)d + w.sum() + square.area() + cz.x + cz.y;
}}
"""
