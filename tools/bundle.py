"""A folder with which a room without a network can take the course: `make bundle`.

It holds the wheels of everything that the course needs, for Linux, macOS and Windows, the notebooks, and a
page of instructions. What a machine needs differs between the three, and pip knows that only of the machine
that it runs on. So uv resolves the requirements for each, pip downloads just these, and uv then resolves them
once more from the folder alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUNDLE = ROOT / "build/asyncgpu_tutor-bundle"

# What uv calls them, and which wheels run there: pip takes these names in turn.
SYSTEMS = {
    "Linux": ("x86_64-manylinux_2_28", [f"manylinux_2_{n}_x86_64" for n in range(28, 4, -1)]),
    "macOS (Apple silicon)": (
        "aarch64-apple-darwin",
        [f"macosx_{n}_0_{kind}" for n in range(13, 10, -1) for kind in ("arm64", "universal2")],
    ),
    "Windows": ("x86_64-pc-windows-msvc", ["win_amd64"]),
}
OLDER = {"Linux": ["manylinux2014_x86_64", "manylinux2010_x86_64", "linux_x86_64"]}

INSTRUCTIONS = """# The course, without a network

Copy this folder to each machine, from a stick or a share. Each needs Python {python}, with pip. In this
folder:

```sh
python -m venv course
source course/bin/activate        # Windows: course\\Scripts\\activate
python -m pip install --no-index --find-links wheels "asyncgpu_tutor[lab]"
asyncgpu-tutor start my-course
```

The last line copies the pages into `my-course`, never over a file that is there, and opens JupyterLab at
the first one. To go on the next day: activate, and the same line. `asyncgpu-tutor
doctor` says what is missing where something is.

- `wheels/`: {count} packages, {size} MB, for {systems}.
- `notebooks/`: the chapters, to look at; JupyterLab shows those in `my-course`.
- `instructors.md`: plans for 90 minutes, half a day and a day. `slides/index.html`: slides for the first.

No GPU is needed. For one, CuPy has to be installed from the network: `pip install "asyncgpu_tutor[cuda12]"`.
"""


def main() -> int:
    """Make the folder and its archive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--python",
        default=f"{sys.version_info.major}.{sys.version_info.minor}",
        help="the version that the room's machines have (default: this one)",
    )
    given = parser.parse_args()
    shutil.rmtree(BUNDLE, ignore_errors=True)
    wheels = BUNDLE / "wheels"
    wheels.mkdir(parents=True)
    call("-m", "build", "--wheel", "--outdir", wheels, ROOT)
    (course,) = wheels.glob("asyncgpu_tutor-*.whl")
    for system, (name, tags) in SYSTEMS.items():
        print(f"{system} ...", flush=True)
        download(
            resolved(course, name, given.python),
            given.python,
            [*tags, *OLDER.get(system, [])],
            wheels,
        )
    for name, _ in SYSTEMS.values():  # a package that is missing is an error here, not in the room
        resolved(course, name, given.python, "--no-index", "--find-links", wheels)
    shutil.copytree(
        ROOT / "notebooks", BUNDLE / "notebooks", ignore=shutil.ignore_patterns("progress*", ".*")
    )
    shutil.copy(ROOT / "docs/instructors.md", BUNDLE)
    call(ROOT / "tools/build_deck.py", BUNDLE / "slides")
    found = list(wheels.iterdir())
    size = sum(wheel.stat().st_size for wheel in found) / 1e6
    text = INSTRUCTIONS.format(
        python=given.python, count=len(found), size=round(size), systems=", ".join(SYSTEMS)
    )
    (BUNDLE / "README.md").write_text(text, encoding="utf-8")
    archive = shutil.make_archive(str(BUNDLE), "zip", BUNDLE.parent, BUNDLE.name)
    print(f"{archive}: {round(Path(archive).stat().st_size / 1e6)} MB")
    return 0


def resolved(course: Path, system: str, python: str, *where: object) -> str:
    """The requirements of the course on this system, each with its version, without the course itself.

    `where` are options of uv that say where it looks.
    """
    asked = f"asyncgpu_tutor[lab] @ {course.as_uri()}"
    options = ["--python-platform", system, "--python-version", python]
    plain = ["--no-header", "--no-annotate", "--only-binary", ":all:", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "compile", "-", *options, *plain, *map(str, where)],
        input=asked,
        stdout=subprocess.PIPE,
        text=True,
        # The machine's certificates, as pip takes them: a network's proxy may have one of its own.
        env={"UV_SYSTEM_CERTS": "1", **os.environ},
        check=True,
    )
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith(("asyncgpu", "#", " ")))


def download(requirements: str, python: str, tags: list[str], wheels: Path) -> None:
    """Exactly these packages, as wheels for one system."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text(requirements, encoding="utf-8")
        platforms = [option for tag in tags for option in ("--platform", tag)]
        call(
            *("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"),
            *("--python-version", python, *platforms, "--dest", wheels, "--requirement", listed),
        )


def call(*arguments: object) -> None:
    """Run Python with these arguments, and stop where it fails."""
    subprocess.run([sys.executable, *map(str, arguments)], check=True)


if __name__ == "__main__":
    sys.exit(main())
