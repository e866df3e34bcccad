"""``asyncgpu-tutor start``: put the course into a folder, and open JupyterLab at its first page.

Serves a checkout, whose pages are opened where they are, and an installed wheel, which has the pages in it.
"""

import argparse
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from asyncgpu_course.doctor import how_to_install
from asyncgpu_course.start.pages import FIRST_PAGE, bring, course
from asyncgpu_tutor.errors import UsageError

_FOLDER = Path("asyncgpu-course")
# JupyterLab reads defaults from `labconfig` in folders of this variable. So it asks a learner nothing about
# news, whatever environment it was installed in.
CONFIG_PATH = "JUPYTER_CONFIG_PATH"
CONFIG = Path(__file__).with_name("jupyter")


def port(text: str) -> int:
    """A port of TCP. JupyterLab would print another number, and serve on some port that it likes."""
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text}: a port is a number from 1 to 65535")
    return int(text)


def add_start_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``asyncgpu-tutor start``."""
    told = f"where you want to work: ./{_FOLDER} if not given; in a checkout, the checkout itself. "
    told += "Files that are there already stay as they are"
    parser.add_argument("folder", nargs="?", type=Path, help=told)
    told = "get the newest course; pages that you have worked in are kept in my-work, as they are"
    parser.add_argument("--update", action="store_true", help=told)
    parser.add_argument("--copy-only", action="store_true", help="copy the files, but open nothing")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    told = "the server's port, if not the first free one from 8888"
    parser.add_argument("--port", type=port, help=told)
    told = "any option of JupyterLab, as in --lab=--ip=0.0.0.0; may be given again"
    parser.add_argument("--lab", action="append", default=[], metavar="OPTION", help=told)


def run_start(args: argparse.Namespace) -> int:
    """Bring the course and open it; the exit code of JupyterLab's end, 0."""
    folder, is_checkout = course()
    aside: list[Path] = []
    if not is_checkout or args.folder is not None:
        pages, folder = folder, args.folder or _FOLDER
        new, kept, aside = bring(pages, folder, update=args.update)
        print(f"The course is in {folder.resolve()}: {len(new)} new files.")
        if kept and not args.update:
            print(f"{len(kept)} were there and stay. start --update brings newer ones.")
    elif args.update:
        update = [sys.executable, folder / "tools/update_checkout.py"]
        return subprocess.run(update, check=False).returncode
    if aside:
        print("These pages are as you left them. Take over what you like; your progress counts on:")
        print(*(f"  {page}" for page in aside), sep="\n")
    if args.copy_only or args.update:
        return 0
    if find_spec("jupyterlab") is None:
        complaint = f"JupyterLab is not installed here: {how_to_install('lab')}. Or open "
        raise UsageError(f"{complaint}{folder / FIRST_PAGE} in an editor that runs notebooks")
    paths = [os.environ.get(CONFIG_PATH, ""), str(CONFIG)]
    os.environ[CONFIG_PATH] = os.pathsep.join(filter(None, paths))
    page = f"--LabApp.default_url=/lab/tree/{FIRST_PAGE}"
    options = [f"--ServerApp.root_dir={folder.resolve()}", page]
    if getattr(os, "geteuid", lambda: 1)() == 0:
        options.append("--allow-root")  # as in most containers
    options += args.lab + ["--no-browser"] * args.no_browser
    options += [] if args.port is None else [f"--port={args.port}"]
    # Named like this, for it comes with an extra, and the type checker need not have it.
    lab: Any = import_module("jupyterlab.labapp")
    lab.LabApp.launch_instance(options)
    return 0
