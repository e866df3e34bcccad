"""Change the package here and there, and see whether a test fails: how much do the tests hold?

    python tools/mutate.py [--count 60] [--seed 1] [--jobs 2] [--all]

Each change is one operator, constant, condition or statement of a random function, in a copy of the checkout.
The rooms take turns, and within a room each line is as likely as any other. Tests that fail without a change
would tell nothing, so those of each room have to pass first. Then the tests of the changed room run; with
``--all`` the whole suite follows where they pass. Prints each change with its outcome, and the share of
those that fail a test.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# For each room of the code, the tests that hold it first.
ROOMS = {
    "asyncgpu_tutor/arrays": ["asyncgpu_tutor/arrays", "laws"],
    "asyncgpu_tutor/kernels": ["asyncgpu_tutor/kernels", "laws"],
    "asyncgpu_tutor/ops": ["asyncgpu_tutor/ops", "laws", "asyncgpu_tutor/traces/spans"],
    "asyncgpu_tutor/run": ["asyncgpu_tutor/run", "laws", "asyncgpu_tutor/commands/mlp"],
    "asyncgpu_tutor/traces": ["asyncgpu_tutor/traces"],
    "asyncgpu_course": ["asyncgpu_course"],
    "asyncgpu_tutor/serving": ["asyncgpu_tutor/serving"],
    "asyncgpu_tutor/inspection": ["asyncgpu_tutor/inspection"],
    "asyncgpu_tutor/commands": ["asyncgpu_tutor/commands"],
    "asyncgpu_tutor/devices/simulated": ["asyncgpu_tutor/devices", "laws"],
    "simgpu/cuda_c": ["simgpu"],
    "simgpu": ["simgpu", "asyncgpu_tutor/devices", "laws"],
}
COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq}
COMPARED |= {ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn}
COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}


def mutate(node: ast.AST) -> bool:
    """Change one node; False if there is nothing to change in it."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            node.ops = [COMPARED[type(op)]()]
        case ast.BinOp(op=op) if type(op) in COUNTED and not isinstance(node.left, ast.Constant):
            node.op = COUNTED[type(op)]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not()):
            node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int() | float()):
            node.value += 1
        case ast.Return(value=ast.expr()):
            node.value = ast.Constant(None)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            node.__class__, node.__dict__ = ast.Pass, {"lineno": node.lineno, "col_offset": 0}
        case _:
            return False
    return True


def inside(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes within functions, but for annotations, defaults and decorators."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                if not isinstance(statement, ast.FunctionDef | ast.Raise):
                    yield from ast.walk(statement)


def change(room: str, rng: random.Random) -> tuple[Path, str, str]:
    """One change in a room: the file, its new text, and the line as it was and as it is."""
    files = [
        p
        for p in sorted((ROOT / room).rglob("*.py"))
        if room != "simgpu" or "cuda_c" not in p.parts
    ]
    sizes = [len(p.read_text().splitlines()) for p in files]
    while True:
        path = rng.choices(files, sizes)[0]
        text = path.read_text()
        tree = ast.parse(text)
        nodes = [node for node in inside(tree) if hasattr(node, "lineno")]
        node = rng.choice(nodes) if nodes else tree
        line = getattr(node, "lineno", 0)
        before = ast.unparse(tree)
        if mutate(node) and (after := ast.unparse(tree)) != before:
            old, new = next(
                pair
                for pair in zip(before.splitlines(), after.splitlines(), strict=False)
                if pair[0] != pair[1]
            )
            where = path.relative_to(ROOT)
            return where, after, f"{where}:{line}: {old.strip()[:90]}  ->  {new.strip()[:90]}"


def fails(where: Path, text: str, tests: list[str], limit_s: float) -> bool:
    """Tell whether these tests fail, or take too long, with a file changed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        left = shutil.ignore_patterns(".*", "__pycache__", "node_modules")
        shutil.copytree(ROOT, copy, ignore=left)
        (copy / where).write_text(text)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "not gpu",
            "-p",
            "no:cacheprovider",
        ]
        command += [
            "--ignore=tests/lab",
            "--ignore=tests/packaging",
            *[f"tests/{t}" for t in tests],
        ]
        surroundings = os.environ | {"PYTHONPATH": f"{copy}:{os.environ.get('PYTHONPATH', '')}"}
        try:
            done = subprocess.run(
                command,
                cwd=copy,
                env=surroundings,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def main() -> None:
    """Change, test and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--all", action="store_true", help="the whole suite where the room's tests pass"
    )
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one change")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    rooms = list(ROOMS)
    changes = [(room := rooms[i % len(rooms)], *change(room, rng)) for i in range(given.count)]

    def held(room: str, where: Path, text: str, told: str) -> bool:
        failed = fails(where, text, ROOMS[room], given.limit)
        if not failed and given.all:
            failed = fails(where, text, [""], given.limit)
        print("fails" if failed else "SURVIVES", told, flush=True)
        return failed

    with ThreadPoolExecutor(given.jobs) as pool:
        same, used = Path("README.md"), rooms[: given.count]
        text = (ROOT / same).read_text()
        broken = pool.map(lambda room: fails(same, text, ROOMS[room], given.limit), used)
        if names := [room for room, fail in zip(used, broken, strict=True) if fail]:
            parser.error(f"the tests of {', '.join(names)} fail or end too late without a change")
        outcomes = list(pool.map(lambda each: held(*each), changes))
    print(
        f"{sum(outcomes)} of {len(outcomes)} changes fail a test ({sum(outcomes) / len(outcomes):.0%})"
    )


if __name__ == "__main__":
    main()
