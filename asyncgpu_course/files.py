"""Files that several programs write at once, and of which nothing may be lost: a lock, and whole files.

The course's progress is written by several notebooks, each in a Python of its own, and by a laptop that is
shut in the middle. Two dangers are held off here, each by a habit of the file system.

A file that is written in place is half a file for a moment, and on a full disk for good. So `replace_text`,
by which traces are saved as well, writes a draft beside it and puts that in its place in one step: whoever
reads gets the old file or the new one.

Two programs that read, change and write may each lose what the other wrote. So they take turns (`locked`).
A file whose mere presence is the lock would stay behind when a program is killed, and lock everybody out.
The system's own lock goes with the process, however it ends. The lock file is removed afterwards, so
another program may hold a lock on a file that is gone from the folder: hence each asks whether the file
that it has locked is still the one at that path. Where a file system has no locks, we go on without,
because refusing to save would lose work for certain.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(number: int) -> None:
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

elif sys.platform == "emscripten":  # a browser's page is alone with its files

    def _lock(number: int) -> None: ...

else:
    import fcntl

    def _lock(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path, wait_s: float = 5.0) -> Generator[None]:
    """Let one program at a time into the block; `TimeoutError` if another stays there for `wait_s`."""
    last = time.monotonic() + wait_s
    while True:
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except PermissionError:  # left by another user
            number = os.open(path, os.O_RDONLY)
        try:
            if _is_ours(number, path):
                try:
                    yield
                finally:
                    with suppress(OSError):  # Windows removes no open file
                        path.unlink()
                return
        finally:
            os.close(number)
        if time.monotonic() > last:
            said = f"another program has been at work there for {wait_s:g} s: end it, or try again"
            raise TimeoutError(f"{path.parent}: {said}")
        time.sleep(0.01)


def _is_ours(number: int, path: Path) -> bool:
    try:
        _lock(number)
        return os.path.samestat(os.fstat(number), path.stat())
    except (BlockingIOError, PermissionError, FileNotFoundError):  # another has it, or removed it
        return False
    except OSError:
        return True
