"""The device code of a file as it was published: what stands around it for the host is blanked, in its place.

The file is cut into the items of its top level. Kernels and what is marked for the device stay. Types,
constants and constexpr functions stay if what stays mentions them, directly or through a macro. Everything
else (`main`, launches, host functions and variables, `using namespace std`) becomes white space: lines and
columns remain what they were, so that a message points into the file that somebody wrote. Directives stay,
since a kernel may use the macros; an `#include` stays if it brings what device code mentions. Both devices
compile this text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from simgpu.cuda_c.text.headers import header_text
from simgpu.cuda_c.text.lexer import PATTERN
from simgpu.cuda_c.text.source import Source, nesting

MARKS = {"__global__", "__device__", "__constant__", "__shared__", "__managed__"}
_TYPES = {"struct", "class", "union", "enum"}
# Words that have attributes behind them, in brackets.
ATTRIBUTES = {
    "__align__", "alignas", "__attribute__", "__launch_bounds__", "__declspec", "__maxnreg__",
    "__cluster_dims__", "__block_size__",
}  # fmt: skip
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
# A header that device code may need, and the words by which one sees that it does. NVRTC has all of these,
# if it is shown where; what it brings by itself, such as cuda_runtime.h, needs no #include.
_HEADERS = {
    "cuda_fp16.h": (
        r"half2?|__half2?|__\w*half\w*|__h[a-z]+2?|"
        r"h2?(exp|log|sqrt|sin|cos|tanh|floor|ceil|trunc|rint|rcp|rsqrt)"
    ),
    "cuda_bf16.h": r"\w*bfloat16\w*|\w*bf162?",
    "cuda_fp8.h": r"__nv_fp8\w*",
    "math_constants.h": r"CUDART_\w+",
    "cooperative_groups": r"cooperative_groups",
    "mma.h": r"nvcuda|wmma|__half2?|half2?",
    "curand": r"curand\w*",
    "cub/": r"cub",
    "cuda/": r"cuda|__mbarrier_\w+",
    "cuda_pipeline": r"__pipeline_\w+|nvcuda",
    "cuda_awbarrier": r"__mbarrier_\w+|nvcuda",
    "cuComplex.h": r"cu\w*[cC]omplex\w*|cuC\w+",
}
# Headers of the host's libraries bring these along.
_BROUGHT = ("cuda_fp16.h", "cuda_bf16.h")
_BRINGING = ("cublas", "cudnn", "cusparse", "torch/", "ATen/", "c10/")
# Headers that a compiler for CUDA finds by itself, and those of libraries that many machines have.
_STANDARD = re.compile(
    r"algorithm|any|array|atomic|barrier|bit(set)?|charconv|chrono|compare|complex|concepts|deque|exception|"
    r"condition_variable|execution|filesystem|format|(forward_)?list|fstream|functional|future|random|ranges|"
    r"initializer_list|iomanip|ios(fwd|tream)?|[io]stream|iterator|latch|limits|locale|(unordered_)?(map|set)|"
    r"memory(_resource)?|mutex|new|numbers|numeric|optional|queue|ratio|regex|semaphore|shared_mutex|span|"
    r"source_location|sstream|stack|stdexcept|string(_view)?|system_error|thread|tuple|type(_trait|id)s|"
    r"type(index|info)|utility|valarray|variant|vector|version|mma\.h|"
    r"(c?(assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|math|setjmp|signal|std\w+|string|time))"
    r"(\.h)?|c?(alloca|dirent|dlfcn|fcntl|getopt|intrin|malloc|memory|mpi|omp|poll|pthread|sched|semaphore|"
    r"strings|unistd|[wW]indows|\w*mmintrin|x86intrin|nccl|nvrtc|nvml|npp\w*|nvToolsExt\w*|"
    r"cuda(_(runtime(_api)?|fp\d+|bf16|pipeline\w*|awbarrier\w*|profiler_api|\w+_interop|\w+_types|occupancy))?|"
    r"cu(blas|dnn|fft|rand|sparse|solver|pti|Complex|file|tensor)\w*|(sm_\d+|device)_\w+|host_(config|defines)|"
    r"math_(constants|functions)|(texture|surface|vector|driver|library|builtin)_(types|functions))\.h|"
    r"(cuda|nv|cub|thrust|crt|cooperative_groups|nvtx3|sys|bits|experimental|boost|Eigen|torch|ATen|c10|"
    r"pybind11|cutlass|cute|opencv2|GL|gtest|fmt)/.*"
)
# A file that asks is written for machines that lack the header.
_ASKED = r"__has_include\s*\(\s*[<\"]"
_STAYING_NAMESPACES = {"cooperative_groups", "nvcuda"}
_EARLY = re.compile(r"\bcuda(GridDependencySynchronize|TriggerProgrammaticLaunchCompletion)\b")
_STD = re.compile(r"\bstd\s*::")
# By these words a function of a struct that says nothing else is for the host.
_HOST = re.compile(
    r"cuda(?!TextureObject_t)[A-Z]\w*|cu(blas|dnn|fft|rand|solver|sparse)[A-Z]\w*|std|malloc|calloc|free|new|"
    r"delete|exit|fprintf|cout|cerr|<<<"
)
_DIRECTIVE = re.compile(r"#[ \t]*(\w*)(?:\\\r?\n|/\*.*?\*/|//[^\n]*|[^\n])*", re.DOTALL)


@dataclass(frozen=True)
class DeviceCode:
    """The part of a file that is for the device."""

    text: str  # as long as the file, line for line
    # Functions and variables that were set aside, by name, each with where it stands.
    aside: Mapping[str, str]
    missing: tuple[str, ...]  # headers of the author's own that are not in the text
    kernels: tuple[str, ...]  # names of the `__global__` functions, in order


class _Word(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    depth: int  # how many brackets are open in front of it; behind an #else, as many as at its #if


@dataclass
class _Item:
    """One item of the top level, without what opens its template; `head` stands before its first brace."""

    words: list[_Word]
    head: list[str]
    names: set[str] = field(default_factory=set[str])


def is_known_header(name: str) -> bool:
    """Tell whether a compiler for CUDA finds a header that is not the author's."""
    return bool(_STANDARD.fullmatch(name)) or name.startswith(tuple(_HEADERS))


@lru_cache(maxsize=256)
def device_part(source: str) -> DeviceCode:
    """The device's part of a source; a source without anything else comes back as it is."""
    with nesting(Source(source)):
        return _HostCodeReader(source).read_code()


def text_for_compiler(source: str) -> str:
    """Put C's headers in front of the device's part of a source, for NVRTC; lines count from the source."""
    text = device_part(source).text
    std = header_text("namespace_std.h") if _STD.search(text) else ""
    std += header_text("dependent_launches.h") if _EARLY.search(text) else ""
    return f"{header_text('standard_names.h')}{std}#line 1\n{text}"


class _HostCodeReader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.macros: dict[str, set[str]] = {}
        self.includes: list[tuple[str, int, int]] = []
        self.directives: list[tuple[int, int]] = []
        self.words: list[_Word] = []
        self.namespaces = set(_STAYING_NAMESPACES)
        self.kept: list[_Item] = []
        self.perhaps: list[_Item] = []
        self.dropped: list[_Item] = []
        self.checks: list[_Item] = []
        self.members: list[tuple[int, int]] = []  # functions of structs that are for the host
        self.kernels: dict[str, None] = {}
        self.aside: dict[str, str] = {}

    def read_code(self) -> DeviceCode:
        self._scan()
        self.marks = self._with_macros(MARKS)
        self.launched = self._with_macros({"__global__"})
        self._items(0, len(self.words))
        mentioned = self._settle()
        blank = [(item.words[0].start, item.words[-1].end) for item in self.dropped]
        blank += self.members
        missing: list[str] = []
        for header, start, end in self.includes:
            name = header.strip('<>"')
            needs = next((words for h, words in _HEADERS.items() if name.startswith(h)), None)
            asked = rf"{_ASKED}{re.escape(name)}[>\"]"
            if not is_known_header(name) and not re.search(asked, self.source):
                missing.append(name)
            if needs is None or not any(re.fullmatch(needs, word) for word in mentioned):
                blank.append((start, end))
        text, brought = self.source, self._brought(mentioned)
        for start, end in sorted(blank, reverse=True):
            header = brought.get(start)
            room = self._blanked(start, end) if header is None else f"#include <{header}>"
            text = text[:start] + room + text[end:]
        return DeviceCode(text, self.aside, tuple(missing), tuple(self.kernels))

    def _brought(self, mentioned: set[str]) -> dict[int, str]:
        """Headers that the host's libraries bring, each by the line of a host's header, blank otherwise."""
        names = [(header.strip('<>"'), start) for header, start, _ in self.includes]
        if not any(name.startswith(_BRINGING) for name, _ in names):
            return {}
        known = dict(names)
        lacking = [header for header in _BROUGHT if header not in known]
        wanted = [h for h in lacking if any(re.fullmatch(_HEADERS[h], word) for word in mentioned)]
        free = [start for name, start in names if not name.startswith(tuple(_HEADERS))]
        return dict(zip(free, wanted, strict=False))

    def _blanked(self, start: int, end: int) -> str:
        """White space for a stretch of text; directives in it stay, since an #if may end outside of it."""
        out: list[str] = []
        for first, last in [d for d in self.directives if start <= d[0] < end] + [(end, end)]:
            out += [re.sub(r"[^\n]", " ", self.source[start:first]), self.source[first:last]]
            start = last
        return "".join(out)

    def _scan(self) -> None:
        text, pos, fresh = self.source, 0, True
        depth, at_if = 0, list[int]()
        while pos < len(text):
            match = PATTERN.match(text, pos)
            assert match is not None  # the last alternative takes any character
            kind, word = match.lastgroup or "bad", match.group()
            if word == "#" and fresh:
                what, end = self._directive(pos)
                if what.startswith("if"):
                    at_if.append(depth)
                elif what.startswith("el") and at_if:
                    depth = at_if[-1]
                elif what == "endif" and at_if:
                    at_if.pop()
                pos = end
                continue
            pos = match.end()
            if kind in ("newline", "space", "comment"):
                fresh = fresh or kind == "newline"
                continue
            fresh = False
            self.words.append(_Word(kind, word, match.start(), pos, depth))
            depth += (word in _OPEN) - (word in _CLOSE)

    def _directive(self, start: int) -> tuple[str, int]:
        """Take in a directive; returns its word, and where it ends."""
        found = _DIRECTIVE.match(self.source, start)
        assert found is not None
        line, end = found.group(), found.end()
        define = re.match(r"#\s*define\s+(\w+)", line)
        include = re.match(r'#\s*include\s*(<[^>\n]*>|"[^"\n]*")', line)
        if define is not None:
            body = self.macros.setdefault(define.group(1), set())
            body.update(re.findall(r"[A-Za-z_]\w*", line[define.end() :]))
        if include is not None:
            self.includes.append((include.group(1), start, end))
        else:
            self.directives.append((start, end))
        return found.group(1), end

    def _with_macros(self, names: set[str]) -> set[str]:
        """These names, and the macros whose text has one of them, or a macro that has."""
        while more := {macro for macro, body in self.macros.items() if body & names} - names:
            names = names | more
        return names

    def _with_their_words(self, names: set[str]) -> set[str]:
        """These names, and the words of the macros among them, and of those among these."""
        while more := {n for m in names & self.macros.keys() for n in self.macros[m]} - names:
            names = names | more
        return names

    def _items(self, first: int, last: int) -> None:
        while first < last:
            opened = self._opens(first, last)
            if self.words[first].text in (";", "}"):
                first += 1
            elif opened is not None:
                close = self._closing(opened, last)
                self._items(opened + 1, close)
                first = close + 1
            else:
                start = self._behind_template(first, last)
                end, brace = self._end(start, last)
                head = _plain([w.text for w in self.words[start:brace]])
                self._sort(_Item(self.words[first:end], head))
                first = end

    def _opens(self, first: int, last: int) -> int | None:
        """The brace of a namespace, or of extern "C" { ... }, which are looked into."""
        texts = [w.text for w in self.words[first : min(first + 9, last)]]
        if texts[0] == "extern" and texts[2:3] == ["{"]:
            return first + 2
        skip = texts[0] == "inline"
        if texts[skip : skip + 1] != ["namespace"] or "{" not in texts:
            return None
        brace = texts.index("{")
        if "=" in texts[:brace] or ";" in texts[:brace]:
            return None
        self.namespaces.update(texts[skip + 1 : brace])
        return first + brace

    def _closing(self, opened: int, last: int) -> int:
        behind, depth = range(opened + 1, last), self.words[opened].depth + 1
        closing = (k for k in behind if self.words[k].text == "}" and self.words[k].depth == depth)
        return next(closing, last)

    def _behind_template(self, first: int, last: int) -> int:
        while [w.text for w in self.words[first : first + 2]] == ["template", "<"]:
            depth = 0
            for k in range(first + 1, last):
                text = self.words[k].text
                depth += len(text) * ((set(text) == {"<"}) - (set(text) == {">"}))
                if depth <= 0:
                    break
            else:
                return last
            first = k + 1
        return first

    def _end(self, first: int, last: int) -> tuple[int, int]:
        """Find the end of an item, and its first brace, or the end again."""
        base = self.words[first].depth if first < last else 0
        brace = None
        for k in range(first, last):
            word = self.words[k]
            if word.depth == base and word.text == ";":
                return k + 1, k if brace is None else brace
            if word.depth == base and word.text == "{" and brace is None:
                brace = k
            if word.depth == base + 1 and word.text == "}" and brace is not None:
                head = _plain([w.text for w in self.words[first:brace]])
                if not (_is_type(head) or "(" not in head or "=" in head[: head.index("(")]):
                    return k + 1, brace  # a function; types and values go on, up to a semicolon
        return last, last if brace is None else brace

    def _sort(self, item: _Item) -> None:
        """Say whether an item stays, goes, or stays if it is mentioned."""
        if _is_type(item.head):
            self._set_members_aside(item)
        words, head = [w.text for w in item.words], item.head
        first = head[0] if head else ""
        place = self.perhaps
        if words[:2] == ["using", "namespace"]:
            place = self.kept if words[2] in self.namespaces else self.dropped
        elif words[0] == "template" and words[1:2] != ["<"]:
            place = self.dropped  # an instance that the host asks for
        elif first == "static_assert":
            place = self.checks
        elif set(head) & self.marks or (_is_type(head) and set(words) & self.marks):
            place = self.kept
            mark = next((k for k, word in enumerate(head) if word in self.launched), len(head))
            if "(" in head[mark:]:
                self.kernels[head[head.index("(", mark) - 1]] = None
        elif first in ("using", "namespace", "concept"):
            named = head[-1:] if first == "using" and "=" not in head else head[1:2]
            item.names = set(named) - {"std"}
        elif first == "typedef" or _is_type(head):
            item.names = _type_names(words, head)
        elif first == "extern" and "=" not in words:
            self._set_aside(item)  # its value is elsewhere
            place = self.dropped
        elif {"const", "constexpr"} & set(head) and ("constexpr" in head or not _is_function(head)):
            item.names = set(_declared(words))
            if words[0] == "template" and "=" in head:  # perhaps a variable for certain arguments
                item.names |= {w for w, after in pairwise(head[: head.index("=")]) if after == "<"}
        else:
            self._set_aside(item)
            place = self.dropped
        place.append(item)

    def _set_aside(self, item: _Item) -> None:
        """Note what a dropped item declares, for those who ask for it."""
        line = self.source.count("\n", 0, item.words[0].start) + 1
        head, words = item.head, [w.text for w in item.words]
        names = [head[head.index("(") - 1]] if _is_function(head) else _declared(words)
        self.aside.update((name, f"line {line}") for name in names if name not in self.aside)

    def _set_members_aside(self, item: _Item) -> None:
        """Take out functions of a struct that call what only the host has, and are not for the device."""
        words, kept, start = item.words, list[_Word](), 0
        inside = words[0].depth + 1
        for k, word in enumerate(words):
            label = word.text == ":" and words[k - 1].text in ("public", "private", "protected")
            closed = word.text == "}" and word.depth == inside + 1
            # Of `: x{a}, y{b} {}`; the file may end before the struct does.
            more = closed and k + 1 < len(words) and words[k + 1].text in (",", "{")
            begins = word.text == "{" and word.depth < inside
            ends = word.depth == inside and (word.text == ";" or label)
            if not (begins or ends or (closed and not more) or k + 1 == len(words)):
                continue
            texts = [w.text for w in words[start : k + 1]]
            head = texts[: texts.index("{")] if "{" in texts else texts
            theirs = not {"constexpr", *self.marks} & set(texts) and _is_function(head)
            theirs = theirs and not _is_data(_plain(head))
            if theirs and any(map(_HOST.fullmatch, texts)):
                self.members.append((words[start].start, word.end))
            else:
                kept += words[start : k + 1]
            start = k + 1
        item.words = kept

    def _settle(self) -> set[str]:
        """Keep what is mentioned by what is kept; returns all names that are mentioned."""
        mentioned: set[str] = set()
        chosen, waiting = self.kept, self.perhaps
        while chosen:
            for item in chosen:
                mentioned.update(word.text for word in item.words if word.kind == "name")
            mentioned = self._with_their_words(mentioned)
            chosen = [item for item in waiting if item.names & mentioned]
            waiting = [item for item in waiting if not item.names & mentioned]
        self.dropped += waiting
        # A check of what is only the host's goes with it.
        theirs = {name for item in self.dropped for name in item.names} | self.aside.keys()
        for item in self.checks:
            names = {word.text for word in item.words if word.kind == "name"}
            self.dropped += [item] * bool(names & theirs)
            mentioned |= set() if names & theirs else self._with_their_words(names)
        return mentioned


def _plain(texts: list[str]) -> list[str]:
    """A head without its attributes, which have brackets, too."""
    out: list[str] = []
    depth = 0
    for text, after in pairwise([*texts, ""]):
        if depth or (text == after == "[") or (text == "(" and out and out[-1] in ATTRIBUTES):
            depth += (text in _OPEN) - (text in _CLOSE)
        else:
            out.append(text)
    return [text for text in out if text not in ATTRIBUTES]


def _is_type(head: list[str]) -> bool:
    return "(" not in head and head[:1] != ["extern"] and bool(_TYPES & set(head[:3]))


def _is_function(head: list[str]) -> bool:
    return "(" in head[1:] and "=" not in head[: head.index("(")]


def _is_data(head: list[str]) -> bool:
    """Tell whether a struct's member is data, where its type or its size has brackets."""
    angles, k = 0, 0
    while k < len(head) and (angles or head[k] != "("):
        if head[k] == "operator":
            return False
        if head[k] == "[" and not angles:
            return True  # an array
        angles += len(head[k]) * ((set(head[k]) == {"<"}) - (set(head[k]) == {">"}))
        k += 1
    depth = 0
    for before, text in pairwise(head[k:]):
        depth += (before in _OPEN) - (before in _CLOSE)
        if depth == 0:
            return text in ("(", "[")  # int (*done)(...), float (&row)[...]
    return depth == 0 and k == len(head)  # std::function<void(int)> done


def _declared(texts: list[str]) -> Iterator[str]:
    """The names that a declaration gives: what stands before `=`, `[`, `,` and such."""
    depth = 0
    for before, text in pairwise(texts):
        depth += (before in _OPEN) - (before in _CLOSE)
        declares = depth == 0 and text in ("=", "[", ",", ";", "{", "(")
        if declares and before.isidentifier() and before not in _TYPES:
            yield before


def _type_names(words: list[str], head: list[str]) -> set[str]:
    """Names that a type gives: its own, those of its enumerators, and what is declared with it."""
    names = set(_declared(_plain(words)))
    if words[0] == "typedef":
        behind = len(words) - words[::-1].index("}") if "}" in words else 0
        names |= {name for star, name in pairwise(words[behind:]) if star == "*"}
    if "enum" in head:
        return names | {text for text in words if text.isidentifier()} - _TYPES
    for place, text in enumerate(head):
        if text in _TYPES:
            names.update(head[place + 1 : place + 2])
    return names
