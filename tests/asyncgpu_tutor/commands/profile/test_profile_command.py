"""``asyncgpu-tutor profile``, with a stand-in for nsys that knows one export; and recorded programs."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asyncgpu_tutor import Trace
from asyncgpu_tutor.__main__ import run_command as main
from asyncgpu_tutor.commands.profile import nsys
from asyncgpu_tutor.errors import UsageError
from tests.tools import Command, tool

EXPORT = Trace.recorded_file("07_async_mlp.sqlite")
WITHIN = ("--within", "07_async_mlp")
RECORD = tool("record_course")
posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")

STAND_IN = """#!/bin/sh
echo "$ASYNCGPU_NVTX: $*" >>"$LOG"
for word; do case "$word" in --output=*) target="${word#--output=}" ;; esac; done
case "$1" in
profile) echo report >"$target"; echo "the program speaks" ;;
export) cp "$EXPORT" "$target" ;;
esac
[ -z "$FAIL" ] || { echo "the $FAIL broke" >&2; exit 3; }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setattr(nsys, "_PLACES", ())


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes down how it was called."""
    script = tmp_path / "bin" / "nsys"
    script.parent.mkdir()
    script.write_text(STAND_IN)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("EXPORT", str(EXPORT))
    monkeypatch.setenv("FAIL", "")
    return tmp_path / "log"


@pytest.mark.usefixtures("nowhere")
def test_without_nsys_it_says_what_to_do(command: Command, monkeypatch: Any) -> None:
    said = command("profile", code=2).err
    assert "Nsight Systems is not on this machine" in said
    assert "https://developer.nvidia.com/nsight-systems" in said
    assert "load_recording" in said
    monkeypatch.setenv("NSYS", "/nowhere/nsys")
    with pytest.raises(UsageError, match="there is no such file"):
        nsys.find_nsys()


@posix
@pytest.mark.usefixtures("nowhere")
def test_the_newest_nsys_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("2024.6", "2025.3", "2025.1"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "nsys").touch()
    monkeypatch.setattr(nsys, "_PLACES", ("/nowhere/*/nsys", f"{tmp_path}/*/nsys"))
    assert nsys.find_nsys() == tmp_path / "2025.3" / "nsys"
    with pytest.raises(UsageError, match=r"nsys cannot be run: .*Permission denied"):
        nsys.export(EXPORT)


@posix
@pytest.mark.usefixtures("stand_in")
def test_one_that_takes_too_long_or_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsys, "TIMEOUT", 0)
    with pytest.raises(UsageError, match="export took more than 0 s"):
        nsys.export(tmp_path / "report.nsys-rep")
    monkeypatch.undo()
    monkeypatch.setenv("NSYS", "/bin/true")
    with pytest.raises(UsageError, match=r"nsys ended without writing .*report.nsys-rep"):
        nsys.profile(["python"], tmp_path / "report", shown=False)


@posix
def test_the_round_trip_runs_and_draws(stand_in: Path, tmp_path: Path, command: Command) -> None:
    out, picture = tmp_path / "out", tmp_path / "p.svg"
    said = command("profile", *WITHIN, "--out", out, "--plot", picture).out
    first, second = stand_in.read_text().splitlines()
    assert first.startswith("1: profile --trace=cuda,nvtx --sample=none --cpuctxsw=none")
    assert first.endswith("-m asyncgpu_tutor mlp --how streams --dim 256 --device cuda")
    assert second.split()[1] == "export"
    assert "Why the device stood still" in said
    assert sorted(path.name for path in out.iterdir()) == [
        "report.nsys-rep", "report.sqlite", "trace.json", "trace.perfetto.json"
    ]  # fmt: skip
    assert len(Trace.load(out / "trace.json").device_spans) == 28
    assert picture.read_text("utf-8").startswith("<?xml")


@posix
@pytest.mark.usefixtures("stand_in")
def test_what_nsys_says_when_it_fails_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setenv("FAIL", "profiler")
    said = command("profile", "--out", tmp_path / "out", code=2).err
    assert "failed with code 3" in said
    assert "the profiler broke" in said


@pytest.mark.usefixtures("nowhere")
def test_an_export_or_a_trace_needs_no_nsys(tmp_path: Path, command: Command) -> None:
    one = command("profile", "--from", EXPORT, *WITHIN, "--out", tmp_path).out
    assert command("profile", "--from", tmp_path / "trace.json", "--out", tmp_path).out == one


@posix
def test_any_command_can_be_profiled_and_what_it_says_is_seen(
    stand_in: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["profile", "--out", str(out), "--", "python", "my.py", "--fast"]) == 0
    assert "the program speaks" in capfd.readouterr().out
    assert stand_in.read_text().splitlines()[0].endswith(" python my.py --fast")
    # What agt.record() marked: four rounds.
    assert len(Trace.load(out / "trace.json").device_spans) == 4 * 28


def test_a_file_of_others_is_read_and_nothing_is_written(folder: Path, command: Command) -> None:
    (folder / "t.json").write_text(
        '[{"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": 2, "pid": 0, "tid": 7}]'
    )
    assert "device    busy 2.0" in command("profile", "--from", "t.json").out
    for wrong, told in (
        (("no.json", "--out", "out"), "no file no.json"),
        ((EXPORT, "--within", ""), "no NVTX range ''"),
        (("t.json", "--window", "9:20"), "nothing is there; the trace ends at 2.0 us"),
    ):
        assert told in command("profile", "--from", *wrong, code=2).err
    assert [path.name for path in folder.iterdir()] == ["t.json"]


def test_a_window_of_time(command: Command) -> None:
    first = command("profile", "--from", EXPORT, *WITHIN, "--window", "300:600").out
    trace = Trace.from_nsys(EXPORT, within="07_async_mlp").between(300, 600)
    assert f"busy {trace.metrics().device_active:.1f}" in first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--within", "a", "--whole"], "choose one"),
        (["--from", "x.sqlite", "--", "python"], "choose one"),
        (["--from", "nowhere.sqlite"], "there is no file nowhere.sqlite"),
        (
            ["--from", "foreign.json", "--within", "a"],
            "exports (.sqlite), and foreign.json is none",
        ),
        (["--from", "bad.sqlite"], "is not SQLite"),
        (["--from", "foreign.json"], "neither 'traceEvents', as traces of PyTorch and Chrome have"),
        (["--from", str(EXPORT), "--within", "nothing"], "there is no NVTX range 'nothing'"),
    ],
)
def test_what_cannot_work(folder: Path, words: list[str], says: str, command: Command) -> None:
    (folder / "bad.sqlite").write_text("cut off")
    (folder / "foreign.json").write_text('{"a": 1}')
    assert says in command("profile", *words, code=2).err


@pytest.mark.parametrize("window", ["9:3", "soon"])
def test_a_window_that_is_none(window: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["profile", "--window", window])
    assert "such as 100:250" in capsys.readouterr().err


@posix
def test_a_reader_may_stop_reading() -> None:
    command = [sys.executable, "-m", "asyncgpu_tutor", "mlp", "--dim", "8", "--how", "streams"]
    done = subprocess.run(
        f"{shlex.join(command)} | true; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 141}
    assert done.stderr == ""


def test_recorded_files_say_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = ["--device", "sim", "--only", "01_sync_kernels"]
    assert RECORD.main([*what, "--out", str(tmp_path)]) == 0
    assert "01_sync_kernels.json: 9 spans" in capsys.readouterr().out
    trace = Trace.load(tmp_path / "01_sync_kernels.json")
    assert trace.about["gpu"] == "simulated H200"
    assert trace.about["run"] == "01_sync_kernels"
    assert [span.name for span in trace.device_spans] == ["sgemm_naive", "matvec_naive", "relu"]
    with pytest.raises(UsageError, match=r"Did you mean '07_async_mlp'\?"):
        RECORD.main(["--device", "sim", "--only", "07_async_mpl"])
