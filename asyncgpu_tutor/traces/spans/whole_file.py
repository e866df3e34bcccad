"""A file that is there as a whole, or not at all."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from threading import get_ident


def replace_text(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file by way of a draft beside it, so that a full disk leaves what was there before."""
    draft = path.with_name(f".{path.name[:50]}.{os.getpid()}-{get_ident()}")
    try:
        draft.write_text(text, encoding="utf-8")
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)
    except BaseException:
        # After Ctrl-C as well, or drafts would pile up in somebody's folder.
        with suppress(OSError):  # nothing can be removed from a read-only file system, either
            draft.unlink()
        raise


def write_whole(path: Path, text: str) -> None:
    """Write to a path of somebody's choice: links, modes, protected files and devices stay as they are."""
    if path.exists() and not path.is_file():  # such as /dev/stdout
        path.write_text(text, encoding="utf-8")
        return
    path, mode = path.resolve(), None
    if path.exists():
        path.open("r+b").close()  # somebody may have protected it
        mode = stat.S_IMODE(path.stat().st_mode)
    replace_text(path, text, mode)
