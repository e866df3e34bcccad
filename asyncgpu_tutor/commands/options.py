"""Types of options that several commands have; argparse refuses what they refuse."""

from argparse import ArgumentTypeError
from pathlib import Path


def picture(text: str) -> Path:
    """A file that a picture can be written to, refused before a program runs and not after it."""
    path = Path(text)
    if path.suffix != ".svg":
        raise ArgumentTypeError(f"{path}: give a name that ends in .svg")
    if not path.absolute().parent.is_dir():
        raise ArgumentTypeError(f"{path}: there is no folder {path.parent}; make it first")
    return path
