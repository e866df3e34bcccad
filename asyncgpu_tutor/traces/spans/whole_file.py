"""A file that is there as a whole, or not at all."""

import os
import shutil
from pathlib import Path
from threading import get_ident


def write_whole(path: Path, text: str) -> None:
    """Write a file by way of a draft beside it, so that a full disk leaves what was there before."""
    if path.exists() and not path.is_file():  # such as /dev/stdout
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()  # behind a link
    draft = path.with_name(f".{path.name[:50]}.{os.getpid()}-{get_ident()}")
    try:
        draft.write_text(text, encoding="utf-8")
        if path.exists():
            path.open("r+b").close()  # somebody may have protected it
            shutil.copymode(path, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
