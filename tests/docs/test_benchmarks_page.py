"""The times on the benchmarks' page are the measured ones, which are kept beside it."""

import json
import re
from typing import Any

from tests.tools import ROOT, page

TEXT = page("benchmarks/README.md")
PAGE = " ".join(TEXT.split())
FOUND: dict[str, Any] = json.loads(page("benchmarks/results/peers.json"))


def ratios(way: str, table: str = "pipeline", key: str = "dim", **only: object) -> dict[int, float]:
    """The ratios of one way, by size."""
    chosen = [row for row in FOUND[table] if row.items() >= {"way": way, **only}.items()]
    return {row[key]: row["ratio"] for row in chosen}


def test_each_row_is_described_and_no_other() -> None:
    table = TEXT.partition("| row |")[2].partition("\n\n")[0]
    cells = re.findall(r"(?m)^\| ([^|]+) \|", table)
    told = {name for cell in cells for name in cell.split(" · ")}
    sources = "".join(p.read_text("utf-8") for p in (ROOT / "benchmarks/peers").glob("*.py"))
    assert {row["way"] for row in FOUND["pipeline"]} <= told
    # These names are put together in the source, so it does not have them as one string.
    named = {name for name in told if not name.startswith("everyday CuPy")}
    assert len(told) - len(named) == 4
    assert [name for name in named if f'"{name}"' not in sources] == []


def test_operations_prepared_or_not() -> None:
    built = ratios("ours, built for each run")
    prepared = ratios("ours, prepared, four streams")
    core = ratios("cuda.core by hand, four streams")
    assert f"{built[64]:.1f} times as long at DIM 64, {built[256]:.1f} times at 256" in PAGE
    assert max(built[1024], built[2048]) < 1.02
    assert f"{prepared[64]:.2f} of the time at DIM 64" in PAGE
    copies = ratios("CuPy by hand, four streams, memcpyAsync")
    assert f"{prepared[64] / copies[64]:.2f} of what CuPy takes with the runtime's copies" in PAGE
    small, larger = (f"{1 - core[dim] / prepared[dim]:.0%}".replace("%", " %") for dim in (64, 256))
    assert f"faster by {small} at DIM 64 and by {larger} at 256" in PAGE
    alone = ", one batch alone"
    for ways in ("", alone):
        ours = ratios(f"ours, built for each run, allocating{ways}")
        everyday = ratios(f"everyday CuPy, asarray{ways or ', four streams'}")
        more = {dim: f"{ours[dim] / everyday[dim]:.2f}" for dim in (64, 256)}
        told = "batch alone %s and %s" if ways else "%s times its time at DIM 64, %s at 256"
        assert told % (more[64], more[256]) in PAGE


def test_graphs_and_what_beats_them() -> None:
    ours = ratios("ours, a graph")
    raw = ratios("CuPy, captured graph")
    theirs = ratios("PyTorch, CUDA graph")
    torch = ratios("PyTorch, four streams, its own operators")
    apart = {dim: ours[dim] / raw[dim] for dim in ours}
    assert f"at DIM 64: {apart[64]:.2f} of its time there, {apart[256]:.2f} at 256" in PAGE
    assert all(abs(apart[dim] - 1) < 0.025 for dim in apart if dim >= 512)
    us = {(row["way"], row["dim"]): row["us"] for row in FOUND["pipeline"]}
    more = us["ours, a graph", 64] - us["CuPy, captured graph", 64]
    assert f"a few microseconds of ours**, {more:.0f} of them at DIM 64" in PAGE
    assert f"At 128 it is {apart[128]:.2f}, and PyTorch's {theirs[128] / raw[128]:.2f}" in PAGE
    one = ratios("CuPy by hand, one batch alone")
    assert f"take {ours[64] / one[64]:.2f} times as long as one batch alone by hand" in PAGE
    assert {dim for dim, ratio in torch.items() if ratio < 1} == {512, 1024, 2048}


def test_serving() -> None:
    ours = ratios("ours, server.map", "serving", in_place=True)
    copied = ratios("ours, server.map", "serving", in_place=False)
    best = [r for r in FOUND["serving"] if (r["ratio"], r["in_place"], r["dim"]) == (1, True, 64)]
    (fastest,) = [1e6 / row["per_second"] for row in best if row["way"].startswith("CuPy")]
    small, larger, large, largest = (f"{ours[dim]:.2f}" for dim in sorted(ours))
    assert f"where a request takes {fastest:.0f} us, are served at {small} of its rate" in PAGE
    assert f"of 256 at {larger}, of 512 at {large} and of 1024 at {largest}" in PAGE
    first, second, third, fourth = (f"{copied[dim]:.2f}" for dim in sorted(copied))
    assert f"the four are {first}, {second}, {third} and {fourth}" in PAGE
    assert f"in {fastest / ours[64] - fastest:.1f} us of Python a request" in PAGE
    for place, one in ((False, copied), (True, ours)):
        four = ratios("CuPy by hand, eight graphs of four", "serving", in_place=place)
        assert all(four[dim] > max(1, one[dim]) for dim in (64, 256))


def test_waiting() -> None:
    def of(way: str) -> float:
        return ratios(way, "latency", "kernel_us")[10]

    assert f"for a kernel of 10 us {of('ours, await, prepared'):.2f} times" in PAGE
    assert f"{of('ours, await, built once'):.2f} where the operation was built before" in PAGE
    assert f"{of('ours, await, built each time'):.2f} where it is built each time" in PAGE
    (awaited,) = [row for row in FOUND["processor"] if row["way"] == "ours, await"]
    assert f"{awaited['core']:.1%}".replace("%", " %") + " of a core" in PAGE
    late = {r["way"]: r["us"] for r in FOUND["latency"] if r["kernel_us"] == 1000}
    ways = ("prepared", "built once", "built each time")
    by = [late[f"ours, await, {way}"] - late["CuPy, synchronize"] for way in ways]
    assert max(by) < 30
    assert "is noticed within 0.03 ms" in PAGE
