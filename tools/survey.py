"""What simgpu says of published kernels: the survey of docs/found.md.

    python tools/survey.py FOLDER... > survey.jsonl
    python tools/survey.py --count survey.jsonl

Each folder is a clone of a repository. A line of the answer is a kernel: whether it's read, and what was
said when it was launched. A file that another one includes is read there, and headers are looked for in the
whole repository, as a build says by -I. Of a template that only templates of the host launch, survey.json
says an instance that they come to. A kernel that isn't read is "unsupported" if simgpu refuses by design what
it needs. Where nvcc refuses the file, too, survey.json has its message.

Nobody tells us what the host code passes, so we guess: numbers are n, arrays have `ROOM` elements, whole
numbers in them go 0, 1, ... n - 1. The shape is what the host code of the file says, if that is a number,
with as many blocks as n needs on the axes that the kernel looks at. So bounds of global memory are no part of
the survey: a kernel that wants more than our arrays have got "short" ones.

What we found when we read the kernels is in benchmarks/results/survey.json, by repository, file and kernel,
with the commits that we read. `--count` counts by its first words, and names those that nobody has read.
"true": wrong as the host code launches it. "old": lanes of a warp without `__syncwarp()`, which was right
before Volta. "tail": right at the host's sizes, and wrong at others. "meant": wrong on purpose. "harmless":
a race or an unset read that changes nothing that is stored. "ours": the host code would never pass what we
did. "false": simgpu's mistake.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simgpu import KernelSpec
from simgpu.cuda_c import compile_source, device_part, join_headers
from simgpu.errors import SimGpuError, UnsupportedFeatureError
from simgpu.judging.checking import kernels_read
from simgpu.judging.limits import within_limits
from simgpu.judging.trial import Trials

JUDGED = Path(__file__).parents[1] / "benchmarks" / "results" / "survey.json"
ROOM = 1 << 18
MOST = {1: 512, 2: 64, 3: 32}  # of n, by the axes that a kernel has
# Numbers with such names are 2.
_SMALL = re.compile(r"(?i)radius|mask|filter|kernel|stride|iter|step|pad|^r$|^k$")
_PART = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+\.cu)[>"]', re.MULTILINE)
_LAUNCH = r"\b{}\s*(?:<[^<>;]*>)?\s*<<<\s*(.*?)\s*>>>"
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.LShift: operator.lshift,
}


def number(code: str, text: str, depth: int = 5) -> int | None:
    """The value of an expression of the host code, if constants and macros tell it."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        assert isinstance(node, ast.Name)
        name = node.id
        if name in ("true", "false"):
            return name == "true"
        typed = rf"\b(?:int|unsigned|auto|size_t)\s+{name}\s*=|[,;{{]\s*{name}\s*=(?!=)"
        found = re.search(rf"(?:\bdefine\s+{name}\s+|{typed})([^;,\n]+)", text)
        inner = number(found[1], text, depth - 1) if found and depth else None
        assert inner is not None
        return inner

    try:
        return value(ast.parse(code.strip(), mode="eval").body)
    except (AssertionError, SyntaxError, KeyError, ValueError, ZeroDivisionError):
        return None


def parts_of(code: str) -> list[str]:
    """The parts of a list, by its commas outside of brackets."""
    parts, depth = [""], 0
    for letter in code:
        depth += (letter in "([{") - (letter in ")]}")
        parts = [*parts, ""] if letter == "," and not depth else [*parts[:-1], parts[-1] + letter]
    return [part.strip() for part in parts]


def instance_of(kernel: str, text: str) -> str:
    """The instance of a template that the host code launches, if constants and macros tell it."""
    name = re.split(r"[<(]", kernel)[0]
    launches = re.findall(rf"\b{name}\s*<([^<>;]*)>\s*<<<", text) if "<" in kernel else ()
    if any(kernel == f"{name}<{launch}>" for launch in launches):
        return kernel
    for launch in launches:
        parts = [(part, number(part, text)) for part in parts_of(launch)]
        if all(n is not None or part in ("float", "int", "double") for part, n in parts):
            return f"{name}<{', '.join(part if n is None else str(int(n)) for part, n in parts)}>"
    return kernel


def block_of(name: str, text: str) -> tuple[int, ...] | None:
    """The block that the host code launches a kernel with, if constants and macros tell it."""
    for launch in re.finditer(_LAUNCH.format(name), text, re.DOTALL):
        block = [*parts_of(launch[1]), ""][1]
        start = rf"\bdim3\s+(?:[^;]*,\s*)?{re.escape(block)}\s*(?:=\s*dim3\s*)?"
        declared = [*re.finditer(start + r"[({]([^;]*)[)}]", text[: launch.start()])]
        dims = declared[-1] if declared else re.fullmatch(r"dim3\s*[({](.*)[)}]", block)
        found = [number(one, text) for one in parts_of(dims[1] if dims else block)]
        if all(found) and np.prod([n or 0 for n in found]) <= 1024:
            return tuple(n or 1 for n in found)
    return None


def shape_of(name: str, text: str) -> tuple[tuple[int, ...], list[bool], bool]:
    """The block, the axes that have several blocks, and whether the host code says the block."""
    head = rf"__global__[^;{{}}]*?\b{name}\s*\([^;{{}}]*\)\s*\{{"  # and no declaration
    body = re.split(r"\b__global__\b", re.split(head, text, maxsplit=1)[-1])[0]
    several = [f"blockIdx.{axis}" in body for axis in "xyz"]
    several[0] |= "this_grid" in body
    launches = re.findall(_LAUNCH.format(name), text, re.DOTALL)
    if launches and all(number(parts_of(launch)[0], text) == 1 for launch in launches):
        several = [False] * 3
    x, y, z = (f"threadIdx.{axis}" in body for axis in "xyz")
    guess = (8, 8, 4) if z else (16, 16) if y else (256,) if x or "thread_rank" in body else (1,)
    said = block_of(name, text)
    return said or guess, several, said is not None


def filled(count: Any, dtype: np.dtype[Any], n: int, random: np.random.Generator) -> np.ndarray:
    """An array of floats in [0, 1), or of whole numbers 0, 1, ... n - 1 over and over."""
    if dtype.kind in "iu":
        return (np.arange(np.prod(count)) % min(n, 100)).astype(dtype).reshape(count)
    return random.random(count).astype(dtype) if dtype.kind == "f" else np.zeros(count, dtype)


def argument(parameter: Any, n: int, random: np.random.Generator) -> Any:
    """What is passed for a parameter; None if nothing can be made up."""
    dtype, vector = parameter.dtype, re.fullmatch(r"[a-z]+([234])", parameter.ctype)
    if parameter.pointer and dtype is not None and not parameter.ctype.endswith("*"):
        return filled(ROOM * int(vector[1]) if vector else ROOM, dtype, n, random)
    if parameter.pointer or (dtype is None and parameter.record is None):
        return None
    if dtype is None or vector:
        return np.zeros((), parameter.record)[()]
    if dtype.kind in "iu":
        return 2 if _SMALL.search(parameter.name) else n
    return dtype.type(1.5).item()


def launched(kernel: str, text: str, file: Path) -> dict[str, Any]:
    """What is said when a kernel is launched."""
    compiled, bare = compile_source(text).kernel(kernel), without_comments(text)
    block, several, said = shape_of(re.split(r"[<(]", kernel)[0].split("::")[-1], bare)
    axes = max(len(block), 3 if several[2] else 2 if several[1] else 1)
    fitting = (n for n in (2 * block[0], block[0]) if 3 < n <= MOST[axes])
    n = next(fitting, MOST[axes])
    sizes = [n, n - 3]  # with a tail, too

    def arguments(n: int, random: np.random.Generator) -> dict[str, Any]:
        constants = [v for v in compiled.signature.variables if v.constant]
        set_by_host = {v.name: filled(v.shape, v.dtype, n, random) for v in constants}
        return {p.name: argument(p, n, random) for p in compiled.signature.parameters} | set_by_host

    def grid(n: int) -> tuple[int, ...]:
        return tuple(-(-n // w) if more else 1 for w, more in zip((*block, 1, 1), several))  # noqa: B905

    if any(value is None for value in arguments(1, np.random.default_rng(0)).values()):
        return {"outcome": "no arguments"}
    how: dict[str, Any] = {"sizes": sizes, "awkward": [], "block": block, "grid": grid}
    how |= {"shared": 48 << 10, "cooperative": "this_grid" in text}
    trials = Trials(KernelSpec(kernel, arguments, **how), text, file, file.name)
    told = {"outcome": "clean", "instance": kernel, "block": block, "from_host": said}
    for n in sizes:
        if not trials.at(n, [n]):
            wrong = trials.complaints[0]
            short = "null pointer" in wrong.message or f"has {ROOM} elements" in wrong.message
            what, says = "short" if short else wrong.kind, wrong.message.split("\n")[0]
            return {**told, "outcome": what, "n": n, "line": wrong.line, "says": says}
    return told


def kept(what: str) -> dict[str, dict[str, str]]:
    """A part of what we found by hand, by repository and by file, or by file and kernel."""
    return json.loads(JUDGED.read_text(encoding="utf-8")).get(what, {})


def without_comments(text: str) -> str:
    """A text of C without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def joined(file: Path, root: Path) -> str:
    """A file with its headers, from whatever folder of the repository has them, as its build says by -I."""
    include = [root]
    while True:
        text = join_headers(file, include)
        for name in (name.lstrip("./") for name in device_part(text).missing):
            near = sorted(root.rglob(name), key=lambda f: -len(os.path.commonpath([f, file])))
            if near and (folder := near[0].parents[name.count("/")]) not in include:
                include.append(folder)
                break
        else:
            return text


def programs(root: Path) -> list[Path]:
    """The files of a repository that are compiled by themselves: no other one includes them."""
    files = sorted(f for f in root.rglob("*.cu") if f.is_file())
    parts = set[Path]()
    for file in files + [f for f in root.rglob("*.*h*") if f.suffix in (".h", ".cuh", ".hpp")]:
        names = _PART.findall(file.read_text("latin-1"))
        parts |= {(file.parent / name).resolve() for name in names}
    return [file for file in files if file not in parts]


def surveyed(folder: Path, seconds: float, launch: bool = True) -> Iterator[dict[str, Any]]:
    """A line for each kernel of a repository; a header's are told once."""
    seen = set[tuple[str, int, str]]()
    instances = kept("instances").get(folder.name, {})
    for file in programs(folder):
        about = {"repository": folder.name, "file": str(file.relative_to(folder))}
        try:
            with within_limits(file, seconds, 4096):
                text = joined(file, folder)
                kernels = kernels_read(text, file.name)
        except SimGpuError as error:
            yield {**about, "kernel": None, "outcome": "unread", "says": str(error)}
            continue
        for kernel in kernels:
            place = kernel["file"], kernel["line"], kernel["name"]
            if kernel["file"] != file.name and place in seen:
                continue
            seen.add(place)
            found = {"outcome": kernel["state"], "says": kernel["why"]}
            named = f"{about['file']} {kernel['name'].partition('<')[0]}"
            try:
                if kernel["state"] == "guessed" and named in instances:
                    kernel["name"] = instances[named]
                    compile_source(text).kernel(kernel["name"])
                    kernel["state"] = found["outcome"] = "read"
                if kernel["state"] == "read" and launch:
                    with within_limits(file, seconds, 4096):
                        name = kernel["name"]
                        if name != instances.get(named):
                            name = instance_of(name, without_comments(text))
                        found = launched(name, text, file)
            except UnsupportedFeatureError as error:
                found = {"outcome": "unsupported", "says": str(error).split("\n")[0]}
            except SimGpuError as error:
                found = {"outcome": "stopped", "says": str(error)}
            except Exception as error:  # noqa: BLE001 - what a survey looks for, besides
                found = {"outcome": "traceback", "says": repr(error)}
            yield {**about, "kernel": kernel["name"], "at": f"{place[0]}:{place[1]}", **found}


def counted(lines: list[dict[str, Any]]) -> Iterator[str]:
    """How many kernels there are, by outcome, and hazards by what we found when we read them."""
    kernels = [line for line in lines if line["kernel"] and line["outcome"] != "declared"]
    files = {(line["repository"], line["file"]) for line in kernels}
    yield f"{len(kernels)} kernels, {len(files)} files, {len({r for r, _ in files})} repositories"
    outcomes = Counter(line["outcome"] for line in lines)
    yield from (f"{n:6} {what}" for what, n in outcomes.most_common())
    theirs, design, ours = Counter[str](), Counter[str](), Counter[str]()
    for line in (k for k in kernels if k["outcome"] in ("unsupported", "refused", "guessed")):
        found = design if line["outcome"] == "unsupported" else ours
        found = theirs if line["file"] in kept("refused").get(line["repository"], ()) else found
        found[re.sub(r"'[^']*'", "'...'", line["says"].split("error: ")[-1])[:72]] += 1
    rest = len(kernels) - theirs.total()
    read = rest - design.total() - ours.total()
    yield f"{read} of {len(kernels)} are read, {read / len(kernels):.1%}"
    yield f"{read} of {rest} are read, {read / (rest or 1):.1%}, without those that nvcc refuses, too"
    rest -= design.total()
    yield f"{read} of {rest} are read, {read / (rest or 1):.1%}, and without those refused by design"
    for found, why in (theirs, "nvcc, too"), (design, "by design"), (ours, "and could be read"):
        yield f"{found.total()} are refused: {why}"
        yield from (f"{n:6} {says}" for says, n in found.most_common())
    judged, words = kept("judged"), Counter[str]()
    for line in kernels:
        if line["outcome"].endswith("Error"):
            key = f"{line['file']} {line['kernel']}"
            said = judged.get(line["repository"], {}).get(key, f"not read, {key}")
            words[said.partition(":")[0]] += 1
    yield f"{words.total()} hazards"
    yield from (f"{n:6} {what}" for what, n in words.most_common())


def main() -> None:
    """Survey folders, or count what surveys found."""
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--count", action="store_true", help="the paths are surveys")
    parser.add_argument("--read", action="store_true", help="launch nothing")
    parser.add_argument("--seconds", type=float, default=60, help="for each kernel")
    asked = parser.parse_args()
    if asked.count:
        texts = [file.read_text(encoding="utf-8") for file in asked.paths]
        print("\n".join(counted([json.loads(line) for t in texts for line in t.splitlines()])))
        return
    for folder in asked.paths:
        for line in surveyed(folder.resolve(), asked.seconds, not asked.read):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
