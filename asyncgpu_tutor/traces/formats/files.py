"""Files of traces: those that come with this package, and anybody's, whatever they are."""

import gzip
import stat
import zlib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.formats import own_json
from asyncgpu_tutor.traces.formats.damage import Damage
from asyncgpu_tutor.traces.formats.own_json import Parts
from asyncgpu_tutor.traces.spans.notebook_output import damage_of
from asyncgpu_tutor.traces.spans.uncollected import uncollected

FOLDER = Path(__file__).resolve().parents[1] / "recordings"


def recordings() -> list[str]:
    """Names of the recordings that come with this package, sorted."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def recording(name: str) -> Path:
    """The file of a recording; see `Trace.load_recording`."""
    return _found("recording", name, {file.stem: file for file in FOLDER.glob("*.json")})


def recorded_file(name: str) -> Path:
    """Find a file that comes with this package beside the recordings: an export, or a trace by CUDA events.

    Parameters
    ----------
    name : str
        Such as ``"07_async_mlp.sqlite"``, for `Trace.from_nsys`; a `UsageError` has all names.
    """
    return _found("recorded file", name, {path.name: path for path in FOLDER.glob("*/*.*")})


def _found(what: str, name: str, known: Mapping[str, Path]) -> Path:
    if name not in [*known]:  # so a name with a path in it cannot lead out of the folder
        near = " or ".join(map(repr, get_close_matches(str(name), known)))
        cure = f"did you mean {near}?" if near else f"all of them are in {FOLDER}"
        raise UsageError(f"there is no {what} {name!r}; {cure}")
    return known[name]


@uncollected()
def read(path: Path) -> Parts:
    """Spans, clock, device and facts; see `Trace.load`."""
    try:
        kind = path.stat().st_mode
    except (OSError, RuntimeError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not stat.S_ISREG(kind):
        raise UsageError(f"{path} is not a file, so there is no trace in it")
    with path.open("rb") as file:
        head = file.read(16)
    if head == b"SQLite format 3\0" or path.suffix in {".nsys-rep", ".qdrep", ".qdstrm"}:
        from asyncgpu_tutor.traces.formats import nsys  # a Python in a browser may have no sqlite3

        return nsys.read_nsys(path, within=None, limit=own_json.MOST_SPANS)
    if path.suffix == ".pftrace":
        raise UsageError(
            f"{path} is in Perfetto's own format, which is not read: open it in https://ui.perfetto.dev, or "
            "record it as JSON"
        )
    # Only now, because what an export of Nsight Systems is made of is what this is made of.
    from asyncgpu_tutor.traces.formats import _chrome_rows, nsys

    damage = Damage()
    text = _text(path, packed=head[:2] == b"\x1f\x8b")
    # Only Chrome's events may be slimmed: ours have details of any names.
    foreign = '"traceEvents"' in text or text[:1000].lstrip()[:1] == "["
    slim = _chrome_rows.slimming(own_json.MOST_SPANS) if foreign else None
    body = own_json.parsed(text, slim, damage)
    if "traceEvents" not in body:
        return own_json.read_own_json(own_json.parsed(text) if foreign else body)
    if "asyncgpu_tutor" in str(body.get("otherData"))[:100]:
        raise UsageError(f"{path} is for Perfetto and lacks some facts: load what `save` wrote")
    export = _chrome_rows.collect_events(
        body.pop("traceEvents"), body.get("deviceProperties"), damage
    )
    if not export.work and not export.ranges:
        raise UsageError(
            f"{path} holds neither GPU work nor ranges. PyTorch writes them with "
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
            + "".join(f". {said}" for said in damage_of(export.about)).removesuffix(".")
        )
    about = {**export.about, "file": path.name}
    return nsys.trace_of_rows(export), str(about["source"]), export.gpu or "unknown GPU", about


def _text(path: Path, *, packed: bool) -> str:
    """The text of a file; of a larger one than is read, just the beginning."""
    size = path.stat().st_size
    if size > own_json.MOST_BYTES:
        raise UsageError(
            f"{path} has {size:,} bytes, and a trace is read up to {own_json.MOST_BYTES:,}: record a "
            "shorter stretch of the program"
        )
    errors = "replace" if packed else None
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", errors=errors) as file:
            return file.read(own_json.MOST_BYTES + 1)
    except UnicodeDecodeError as error:
        raise UsageError(f"this is not a trace: {path} is not text in UTF-8 ({error})") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
