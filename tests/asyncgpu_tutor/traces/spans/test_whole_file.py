"""Files of traces and pictures are there as a whole, or as they were before."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from asyncgpu_tutor import Trace
from asyncgpu_tutor.traces.spans import Span

TRACE = Trace([Span(0, "kernel", "k", 0, 9, "sim:0", 1)])
WAYS = {"t.json": TRACE.save, "t.perfetto.json": TRACE.to_perfetto, "t.svg": TRACE.plot().save}


@pytest.mark.parametrize("name", WAYS)
def test_a_full_disk_leaves_what_was_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def half(path: Path, text: str, **how: Any) -> int:
        write(path, text[: len(text) // 2], **how)
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / name
    path.write_text("before")
    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="No space left"):
        WAYS[name](path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "before")]


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are POSIX's")
def test_a_link_stays_one_and_so_do_the_mode_and_what_is_no_file(tmp_path: Path) -> None:
    path, link = tmp_path / "t.json", tmp_path / "link.json"
    path.touch(0o600)
    link.symlink_to(path)
    TRACE.save(link)
    assert link.is_symlink()
    assert Trace.load(path) == TRACE
    assert path.stat().st_mode & 0o777 == 0o600
    TRACE.save(os.devnull)
    assert Path(os.devnull).is_char_device()
