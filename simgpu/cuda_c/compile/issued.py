"""How many instructions a compiler makes of what is one operation in the source.

Counted in listings (`nvdisasm -c`) of what nvcc 13.0 makes for sm_90 with `-fmad=false`: those on the way
that ordinary numbers take, in single precision. Where a function has several such ways, about half of all.
"""

from __future__ import annotations

ISSUED = {
    "/": 11, "%": 23, "fabs": 0,  # which whoever takes it does with it
    "sqrt": 10, "rsqrt": 4, "cbrt": 16, "exp": 10, "exp2": 4, "exp10": 10, "expm1": 29,
    "log": 27, "log2": 29, "log10": 28, "log1p": 32, "sin": 24, "cos": 25, "tan": 26,
    "asin": 25, "acos": 26, "atan": 19, "sinh": 25, "cosh": 16, "tanh": 17, "asinh": 44, "acosh": 46,
    "atanh": 41, "sinpi": 24, "cospi": 24, "erf": 29, "erfc": 48, "pow": 80, "atan2": 40, "hypot": 26,
    "fmod": 40, "remainder": 44, "nextafter": 20, "tgamma": 90, "lgamma": 90,
}  # fmt: skip
