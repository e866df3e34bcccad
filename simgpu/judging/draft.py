"""A first spec for a file, from the signatures of its kernels: `simgpu check --draft FILE.cu`."""

import re

from simgpu.cuda_c import KernelParameter, compile_source
from simgpu.judging.checking import kernels_read

_SHAPES = {1: "[1000], block=256", 2: "[60], block=(16, 16)", 3: "[20], block=(8, 8, 4)"}
_HEAD = '''"""How {0} is launched, and what it computes: for `simgpu check {0}`, and for pytest."""

import numpy as np

from simgpu import KernelSpec, Output
'''
_SPEC = """

def {stem}_arguments(n, random):
    return {{
{lines}    }}


# Uncomment it, and pass it as the third argument, so that values are compared:
# def {stem}_expected({inputs}):
#     return {{{outputs}}}


{stem} = KernelSpec("{kernel}", {stem}_arguments, sizes={shape})
"""


def drafted(text: str, name: str) -> str:
    """The text of a spec file for all kernels of a text that can be read; nothing if there are none."""
    read = [kernel["name"] for kernel in kernels_read(text, name) if kernel["state"] == "read"]
    return "".join([_HEAD.format(name), *(_spec(text, kernel) for kernel in read)]) if read else ""


def _spec(text: str, kernel: str) -> str:
    compiled, stem = compile_source(text).kernel(kernel), re.split(r"[<(]", kernel)[0]
    words = re.split(r"\b__global__\b", re.split(rf"\b{stem}\s*\(", text, maxsplit=1)[-1])[0]
    axes = max(k for k, axis in enumerate("xyz", 1) if axis == "x" or f"Idx.{axis}" in words)
    parameters, codes, written = compiled.signature.parameters, dict[str, str](), list[str]()
    # Who takes two lengths, such as rows and columns, has that many elements.
    lengths = [p for p in parameters if not p.pointer and getattr(p.dtype, "kind", "V") in "iu"]
    power = max(axes, min(len(lengths), 2))
    for parameter, variable in zip(parameters, compiled.code.parameters, strict=True):
        name = parameter.name
        written += [name] if parameter.pointer and variable.origin.has("written") else []
        # It only fills an array which it mentions nowhere but in its head and in `x[i] = ...`.
        fillings = re.findall(rf"\b{name}\s*\[[^;=]*\]\s*=(?!=)", words)
        fills = name in written and len(fillings) == len(re.findall(rf"\b{name}\b", words)) - 1
        codes[name] = _value(parameter, "n" if power == 1 else f"n**{power}", fills)
    lines = "".join(f'        "{name}": {code},\n' for name, code in codes.items())
    inputs = ", ".join(name for name, code in codes.items() if code[:6] != "Output")
    outputs = ", ".join(f'"{name}": ...' for name in written)
    given = {"kernel": kernel, "stem": re.sub(r"\W+", "_", kernel).strip("_"), "lines": lines}
    shape = _SHAPES[axes].replace("1000", "1000" if power == 1 else "100")
    return _SPEC.format(**given, inputs=inputs, outputs=outputs, shape=shape)


def _value(parameter: KernelParameter, count: str, fills: bool) -> str:
    dtype, vector = parameter.dtype, re.fullmatch(r"[a-z]+([234])", parameter.ctype)
    if dtype is None or parameter.ctype.endswith("*"):
        return "None" if parameter.pointer else f"np.zeros((), {parameter.record!r})[()]"
    if not parameter.pointer:
        return "n" if dtype.kind in "iu" else "1.5"
    lengths = f"({count}, {vector[1]})" if vector else count
    if fills:
        return f"Output({lengths}, np.{dtype.name})"
    drawn = f"random({lengths})" if dtype.kind == "f" else f"integers(0, 2, {lengths})"
    return f"random.{drawn}.astype(np.{dtype.name})"
