"""Seeded bugs and correct programs that look dangerous: what the simulated device says of each.

    python -m benchmarks.hazards [CATEGORY ...]

Runs every program in `programs`, prints per category how many bugs were found, with a marked line and with
their cause, and how many correct programs were accused. A run of all of them writes
benchmarks/results/hazards.json.
"""

import importlib
import json
import sys
from pathlib import Path

from benchmarks.hazards.case import Case, Finding, cases_of

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "results" / "hazards.json"


def categories(kind: str) -> dict[str, list[Case]]:
    """The programs that are "bugs" or "sound", by category, which is the name of a file."""
    found: dict[str, list[Case]] = {}
    for file in sorted((FOLDER / "programs").glob("[a-z]*.py")):
        module = importlib.import_module(f"benchmarks.hazards.programs.{file.stem}")
        found[file.stem] = [c for c in cases_of(module) if bool(c.finds) == (kind == "bugs")]
    return found


def row(case: Case, finding: Finding) -> dict[str, object]:
    """What the file of results says of a program."""
    right = case.is_found(finding) if case.finds else not finding.kind
    verdict: dict[str, object] = {"found": finding.kind, "right": right}
    if case.finds:
        verdict |= {"line": case.names_line(finding), "cause": case.tells_cause(finding)}
    said = finding.message.split("\n")[0]
    return {"name": case.name, **verdict, "said": said, "seconds": round(finding.seconds, 3)}


def main(wanted: list[str]) -> None:
    """Run the categories that are wanted, or all."""
    results: dict[str, dict[str, list[dict[str, object]]]] = {}
    totals = [0] * 6
    print(f"{'':12}{'bugs':>6}{'found':>7}{'line':>6}{'cause':>7}{'sound':>7}{'false alarms':>14}")
    bugs, sound = categories("bugs"), categories("sound")
    if unknown := set(wanted) - bugs.keys():
        sys.exit(f"no category {', '.join(unknown)}: there are {', '.join(bugs)}")
    for category in wanted or bugs:
        seeded = [row(case, case.check()) for case in bugs[category]]
        fine = [row(case, case.check()) for case in sound[category]]
        results[category] = {"bugs": seeded, "sound": fine}
        found = [one for one in seeded if one["right"]]
        lines = [one for one in found if one["line"]]
        causes, alarms = (
            sum(bool(one["cause"]) for one in lines),
            sum(not one["right"] for one in fine),
        )
        counts = [len(seeded), len(found), len(lines), causes, len(fine), alarms]
        totals = [*map(sum, zip(totals, counts, strict=True))]
        _print(category, counts)
        for one in seeded + fine:
            if not (one["right"] and one.get("line", True) and one.get("cause", True)):
                print(f"    {one['name']}: {one['found'] or 'nothing'}: {one['said']}")
    _print("all", totals)
    if not wanted:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def _print(category: str, counts: list[int]) -> None:
    numbers = zip(counts, (6, 7, 6, 7, 7, 14), strict=True)
    print(f"{category:12}" + "".join(f"{count:>{width}}" for count, width in numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
