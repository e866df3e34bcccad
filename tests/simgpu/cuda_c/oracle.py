"""The same source, compiled for the CPU by g++ and run in a process of its own.

A process of its own, since compiled code can take Python down with it: `INT_MIN / -1` does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FLAGS = ["-std=c++17", "-O0", "-w", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing"]
_TYPES = {
    "f4": "float", "f8": "double", "i4": "int", "u4": "unsigned", "i8": "long long", "u1": "unsigned char",
    "i2": "short", "u8": "unsigned long long", "i1": "signed char", "u2": "unsigned short",
}  # fmt: skip


@dataclass
class Case:
    """One launch: arrays among `args` are inputs, and hold the results afterwards."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: Sequence[Any] = field(default_factory=tuple)


def available() -> bool:
    """Tell if there is a compiler."""
    return shutil.which("g++") is not None


def run(source: str, cases: Sequence[Case], folder: Path) -> None:
    """Run the launches in turn, changing their arrays in place."""
    shim = Path(__file__).with_name("shim.h")
    (folder / "cases.cpp").write_text(_program(source, cases, shim))
    binary = folder / "cases"
    command = ["g++", *FLAGS, "-o", str(binary), str(folder / "cases.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    arrays = [a for case in cases for a in case.args if isinstance(a, np.ndarray)]
    given = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
    ran = subprocess.run([str(binary)], input=given, capture_output=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr[-1000:]
    at = 0
    for array in arrays:
        part = np.frombuffer(ran.stdout, array.dtype, array.size, at)
        array[...] = part.reshape(array.shape)
        at += array.nbytes


def _program(source: str, cases: Sequence[Case], shim: Path) -> str:
    text = re.sub(r'extern\s+"C"', "", source)
    # `extern __shared__ T name[]` refers to an array that this program defines.
    dynamic = dict(re.findall(r"extern\s+__shared__\s+([\w ]+?)\s+(\w+)\s*\[\s*\]", text))
    text = re.sub(r"extern\s+__shared__", "extern", text)
    names = sorted({(t, n) for t, n in re.findall(r"extern\s+([\w ]+?)\s+(\w+)\s*\[\s*\]", text)})
    del dynamic
    out = [f'#include "{shim}"', *(f"{t} {n}[16384];" for t, n in names), text]
    main: list[str] = []
    for k, case in enumerate(cases):
        call: list[str] = []
        for j, arg in enumerate(case.args):
            name = f"a{k}_{j}"
            if isinstance(arg, np.ndarray):
                ctype = _TYPES[arg.dtype.str[1:]]
                out.append(f"alignas(64) static {ctype} {name}[{max(arg.size, 1)}];")
                call.append(f"(decltype(parameter<{j}>({case.kernel}))){name}")
                main.append(f"    fread({name}, 1, {arg.nbytes}, stdin);")
            else:
                call.append(
                    repr(float(arg)) if isinstance(arg, (float, np.floating)) else str(int(arg))
                )
        out.append(f"static void call{k}() {{ {case.kernel}({', '.join(call)}); }}")
    for k, case in enumerate(cases):
        grid, block = (", ".join(map(str, d)) for d in (case.grid, case.block))
        main.append(f"    launch(call{k}, dim3{{{grid}}}, dim3{{{block}}});")
    for k, case in enumerate(cases):
        for j, arg in enumerate(case.args):
            if isinstance(arg, np.ndarray):
                main.append(f"    fwrite(a{k}_{j}, 1, {arg.nbytes}, stdout);")
    lookup = """#include <tuple>
template <int N, class... P> typename std::tuple_element<N, std::tuple<P...>>::type parameter(void (*)(P...));
"""
    return "\n".join([*out[:1], lookup, *out[1:], "int main() {", *main, "}"]) + "\n"
