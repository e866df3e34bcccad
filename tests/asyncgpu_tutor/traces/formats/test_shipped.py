"""The recordings that come with the package: how they were made, and that programs still do what they did.

`simulated_times.json` has digests of when the simulated device does all that. After a change of the model
that is meant: `python -m tests.asyncgpu_tutor.traces.formats.test_shipped`.
"""

import hashlib
import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats.files import FOLDER
from tests.tools import tool

_programs = tool("course_programs")
RUNS, trace_of, same_work = _programs.RUNS, _programs.trace_of, _programs.same_work

COURSE = Path(__file__).parents[4] / "course"
TIMES = Path(__file__).with_name("simulated_times.json")
REPLAYED = sorted({*RUNS} - {"11_newton_by_graph"})  # one bar there


def test_an_export_that_cannot_be_cleaned_does_not_come_into_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports, (home, given) = tool("nsight_exports"), (tmp_path / "home", tmp_path / "given")
    home.mkdir()
    given.mkdir()
    shutil.copy(Trace.recorded_file("07_async_mlp.sqlite"), given)
    with closing(sqlite3.connect(given / "other.sqlite")) as other:
        other.execute("CREATE TABLE PROCESSES (environment TEXT)")
    monkeypatch.setattr(exports, "HOME", home)
    monkeypatch.setattr(sys, "argv", ["nsight_exports", str(given)])
    with pytest.raises(sqlite3.OperationalError, match="META_DATA_EXPORT"):
        exports.main()
    assert [path.name for path in home.iterdir()] == ["07_async_mlp.sqlite"]
    assert len(Trace.load(home / "07_async_mlp.sqlite"))


def test_there_is_one_of_each_program_and_of_each_chapter_and_all_together_are_small() -> None:
    assert Trace.recordings() == sorted(RUNS)
    chapters = {path.stem[:2] for path in COURSE.glob("[0-9]*.py")}
    # Learners' own code runs in 10; 15 and 16 are of several GPUs; 17 trains on the reader's own text, 19 and
    # 20 have the numbers of a benchmark, and 21 has few of its own.
    chapters -= {"10", "15", "16", "17", "19", "20", "21"}
    assert chapters == {name[:2] for name in Trace.recordings()}
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 8 * 2**20


@pytest.mark.parametrize("name", RUNS)
def test_it_says_how_it_was_made(name: str) -> None:
    trace = Trace.load_recording(name)
    assert trace.clock == "CUPTI"
    about = {key: str(value) for key, value in trace.about.items()}
    assert about["gpu"].startswith("NVIDIA ")
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", about["driver"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", about["date"])
    assert "record" in about["command"]
    assert about["run"] == name
    assert about["shows"] == RUNS[name].about
    assert {"python", "package", "cupti", "cupy-cuda13x", "alignment"} <= about.keys()
    assert "without_record" not in about
    assert all(span.duration > 0 for span in trace.device_spans)


# Bytes that an upload has more than when it was recorded: the office of hostcalls got two more stacks.
GREW = {"13_hostcalls": 16}


def simulated(name: str) -> Trace:
    with agt.using(SimDevice(machine=SimMachine(), stand_in_above=2**24)):
        return trace_of(name)


def times(trace: Trace) -> str:
    rows = [(s.kind, s.name, s.stream, f"{s.start:.3f} {s.end:.3f}", s.after) for s in trace]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:8]


@pytest.mark.parametrize("name", REPLAYED)
def test_the_program_still_does_what_was_recorded(name: str) -> None:
    """The same operations, with the same work, in the same order, waiting for the same, at the same time."""
    trace = simulated(name)
    assert times(trace) == json.loads(TIMES.read_text())[name], (
        "if it is meant, see the top of this file"
    )
    recording = Trace.load_recording(name)
    pairs, missing, same_order = same_work(trace, recording)
    assert missing == [[], []]
    assert same_order
    for ours, theirs in pairs:
        for fact in ("grid", "block", "pageable", "graph", "node"):
            assert ours.detail.get(fact) == theirs.detail.get(fact)
    sizes = [(ours.detail.get("bytes", 0), theirs.detail.get("bytes", 0)) for ours, theirs in pairs]
    assert sum(ours - theirs for ours, theirs in sizes) == GREW.get(name, 0)
    assert [ours for ours, theirs in sizes if ours != theirs] == [2616] * (name in GREW)
    assert edges(trace) == edges(recording)
    assert streams(trace) == streams(recording)


def edges(trace: Trace) -> list[list[int]]:
    """For each device span, which device spans it had to wait for; by their places."""
    place = {span.id: index for index, span in enumerate(trace.device_spans)}
    return [sorted(place[i] for i in span.after if i in place) for span in trace.device_spans]


def streams(trace: Trace) -> list[int | None]:
    """For each device span its stream, numbered by first use; 0 is the null stream."""
    numbers: dict[int | None, int | None] = {0: 0}
    return [numbers.setdefault(span.stream, len(numbers)) for span in trace.device_spans]


@pytest.mark.parametrize("name", ["09_cuda_graphs", "09_cuda_graphs_branches"])
def test_a_node_costs_the_host_one_to_three_us_where_cupti_looks(name: str) -> None:
    """What docs/profiling.md says of it."""
    trace = Trace.load_recording(name)
    launches = [span for span in trace if span.name.startswith("launch graph")]
    for launch in launches:
        nodes = [span for span in trace.device_spans if launch.id in span.after]
        assert 1 < launch.duration / len(nodes) < 3


@pytest.mark.parametrize("name", RUNS)
def test_the_detective_says_the_same_of_the_recording(name: str) -> None:
    found = agt.diagnose(Trace.load_recording(name))
    assert ("host-bound" in {finding.name for finding in found}) == (name in HOST_BOUND)
    if name.startswith(("08_", "09_")):  # each defect has a program; nothing is wrong with a graph
        defect = name.startswith("08_") and not name.endswith("_repaired")
        expected = [name[3:].replace("_", " ")] if defect else []
        assert [finding.name for finding in found if not finding.limit] == expected


HOST_BOUND = {
    "06_await", "07_async_mlp", "07_async_mlp_one_stream", "08_allocation_in_the_loop",
    "08_allocation_in_the_loop_repaired", "08_one_big_kernel_repaired", "09_cuda_graphs_by_calls",
    "11_newton_by_host", "11b_queue_by_launches", "13_six_launches", "14_galaxies_by_calls", "14_grep",
    "14_ranks_by_host", "18_token_by_python",
}  # fmt: skip


def test_an_unknown_name_is_refused_and_a_path_is_one() -> None:
    for name, load, message in (
        ("07_async_mpl", Trace.load_recording, "did you mean '07_async_mlp' or"),
        ("../recordings/07", Trace.load_recording, "'../rec.*'; all of them are in .*recordings$"),
        ("../07_async_mlp.json", Trace.recorded_file, "there is no recorded file"),
    ):
        with pytest.raises(UsageError, match=message):
            load(name)


# What a path, a variable of an environment, a masked word and a foreign process look like in a file's bytes.
PRIVATE = re.compile(
    rb"/(?:tmp|opt|home|root|usr|etc|var|proc|mnt|work|app)/|(?:PATH|HOME|PWD|LANG|TERM|SHELL|USER|CERTS?|PROXY)="
    rb"|x{4,}|kworker|LD_PRELOAD|ASYNCGPU_"
)


RAW = b"\x00\x07HOME=/root\x00/tmp/nvidia/x\x01kworker/1:0\x02PIP_CERT=xxxxx"


@pytest.mark.parametrize("file", sorted((FOLDER / "nsys").iterdir()), ids=lambda path: path.name)
def test_reports_tell_nothing_of_the_machine_but_its_gpu(file: Path) -> None:
    assert PRIVATE.findall(RAW) == [b"HOME=", b"/tmp/", b"kworker", b"CERT=", b"xxxxx"]
    assert PRIVATE.findall(file.read_bytes()) == []
    assert file.suffix in (".sqlite", ".txt"), "a report can't be cleaned: ship its export"
    if file.suffix == ".sqlite":
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            strings = [str(row[0]) for row in database.execute("SELECT value FROM StringIds")]
        assert [text for text in strings if "=" in text or "\0" in text] == []


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["02_streams_and_events", "07_async_mlp", "09_cuda_graphs", "09_cuda_graphs_branches"]
)
def test_a_live_run_does_what_was_recorded(name: str) -> None:
    from tests.conftest import open_or_skip

    with agt.using(open_or_skip("cuda")):
        live = trace_of(name)
    recording = Trace.load_recording(name)
    _, missing, same_order = same_work(live, recording)
    assert missing == [[], []]
    assert same_order
    assert edges(live) == edges(recording)


if __name__ == "__main__":
    found = {name: times(simulated(name)) for name in REPLAYED}
    TIMES.write_text(json.dumps(found, indent=1) + "\n")
