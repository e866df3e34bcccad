"""`simgpu check`: what of a file can be read, and whether it does what its spec says."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simgpu.cuda_c import compile_source, device_part, join_headers
from simgpu.cuda_c.text.source import Source
from simgpu.errors import KernelCompileError, UnsupportedFeatureError
from simgpu.judging.kernel_spec import SPEC_ENDING, asked, load_specs
from simgpu.judging.limits import OverLimitError, within_limits
from simgpu.judging.trial import MAIN, Trials

_UNREAD = {"unsupported", "guessed"}  # and nothing is wrong with it


def check_file(
    file: Path,
    spec: Path | None,
    include: Sequence[Path],
    seconds: float = 300,
    megabytes: int = 4096,
) -> dict[str, Any]:
    """Read a file, and launch its kernels as its spec says: the one beside it, if none is named.

    The report is what `simgpu check --json` prints. Its `code`: 0 all is well, 1 something is wrong, 2 there
    is no kernel, 3 nothing is wrong, but not every kernel could be read, or not within the limits.
    """
    tried, kernels, missing = dict[str, Trials](), list[dict[str, Any]](), tuple[str, ...]()
    beside = file.with_name(file.stem + SPEC_ENDING)
    spec = spec or (beside if beside.is_file() else None)
    stopped = None
    try:
        with within_limits(file, seconds, megabytes):
            text = join_headers(file, include)
            missing, kernels = device_part(text).missing, kernels_read(text, file.name)
            for one in () if spec is None else load_specs(spec):
                trials = tried[one.kernel] = Trials(one, text, Path(str(spec)).resolve(), file.name)
                for n in [*asked(trials.file, one.awkward_sizes), *sorted(one.sizes)]:
                    trials.at(n)
                    if trials.complaints and not trials.sizes:
                        break  # it cannot be read at any size
    except OverLimitError as error:
        stopped = str(error)
    kinds = {kernel["state"] for kernel in kernels}
    kinds |= {wrong.kind for trials in tried.values() for wrong in trials.complaints}
    unread = bool(kinds & {*_UNREAD, "UnsupportedFeatureError"})
    wrong = kinds - {"read", *_UNREAD, "declared", "UnsupportedFeatureError"}
    told = {name: trials.as_dict() for name, trials in tried.items()}
    code = 1 if wrong else 3 if unread or stopped else 2 * (not kinds - {"declared"})
    return {
        "file": file.name, "code": code, "kernels": kernels, "missing": list(missing),
        "spec": spec and spec.name, "trials": told, "stopped": stopped,
    }  # fmt: skip


def check_words(report: dict[str, Any]) -> Iterator[str]:
    """The lines of a report for people."""
    file = report["file"]
    for kernel in report["kernels"]:
        why = f": {kernel['why']}" if kernel["why"] else ""
        yield f"{kernel['file']}:{kernel['line']}: {kernel['name']}: {kernel['state']}{why}"
    if not report["kernels"] and not report["stopped"]:
        yield f"{file}: there is no __global__ function in it"
    if report["missing"]:
        yield f"{file}: not found: {', '.join(report['missing'])} (-I FOLDER says where)"
    if report["spec"] is None:
        yield f"nothing was launched: `simgpu check --draft {file}` drafts a spec"
    for name, trials in report["trials"].items():
        at = ", ".join(map(str, trials["sizes"])) or "no size"
        us = f", {trials['measured']['us']:.1f} us at the last" if trials["measured"] else ""
        right = not trials["complaints"] and not report["stopped"]
        yield f"{name}: launched at n = {at}{us}" + ": all right" * right
        for n, why in trials["left_out"].items():
            yield f"    left out n = {n}: {why}"
        for wrong in trials["complaints"]:
            yield f"    {wrong['kind']} at n = {', '.join(map(str, wrong['sizes']))}: {wrong['message']}"
    if report["stopped"]:
        yield report["stopped"]


def kernels_read(text: str, name: str) -> list[dict[str, Any]]:
    """How each kernel of a text is read; `name` is what messages call its file.

    Its `state` is "read"; "unsupported", a GPU runs it and simgpu doesn't; "refused", as by a compiler; or
    "declared", its body is in another file. Of a template, the instances that the file launches are tried, or
    else a guess: if that doesn't fit, its state is "guessed".
    """

    def reading(kernel: str, line: int, error: KernelCompileError | None) -> dict[str, Any]:
        file, line = Source(text).place(line)
        state = "unsupported" if isinstance(error, UnsupportedFeatureError) else "refused"
        why = "" if error is None else str(error).replace(MAIN, name).split("\n")[0]
        state = "read" if error is None else state
        told = {"name": kernel, "file": file.replace(MAIN, name), "line": line}
        return {**told, "state": state, "why": why}

    found: list[dict[str, Any]] = []
    try:
        program = compile_source(text)
    except KernelCompileError as error:
        code = device_part(text)
        for kernel in code.kernels:
            at = re.search(rf"\b{re.escape(kernel)}\s*\(", code.text)
            line = code.text.count("\n", 0, at.start() if at else 0) + 1
            found.append(reading(kernel, line, error))
        return found
    for head in program.heads:
        if head.body is None and head.refusal is None:
            found.append({**reading(head.name, head.at.line, None), "state": "declared"})
            continue

        def tried(instance: str, at: int = head.at.line) -> dict[str, Any]:
            try:
                program.kernel(instance)
            except KernelCompileError as error:
                return reading(instance, at, error)
            return reading(instance, at, None)

        launched, guesses = list[str](), [program.name_of(head)]
        if head.template is not None:
            launched = re.findall(rf"\b{head.name}\s*<((?!<)[^;{{}}]*?)>\s*<<<", text)
            wanted = [p.type is None for p in head.template if not p.default]
            types = "float", "int", "double"
            some = [", ".join(t if is_type else "32" for is_type in wanted) for t in types]
            guesses = [f"{head.name}<{args}>" for args in some]
        told = [tried(f"{head.name}<{args}>") for args in dict.fromkeys(launched)]
        # What a host's template passes on, as in `scale<T><<<1, 32>>>(x)`, has no meaning here.
        told = [one for one in told if not one["why"].startswith("name ")]
        if not told:
            for guess in guesses:
                told.append(tried(guess))
                if told[-1]["state"] == "read":
                    break
            told = told[-1:] if told[-1]["state"] == "read" else told[:1]
            if head.template is not None and told[0]["state"] == "refused":
                why = f"no launch says which instance: {told[0]['why']}"
                told[0] |= {"state": "guessed", "why": why}  # which proves nothing
        found += told
    return found
