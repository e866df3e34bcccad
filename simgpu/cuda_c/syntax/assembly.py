"""Inline assembly: the few forms by which people write asynchronous copies, barriers and their fences.

This is no assembler. Whoever writes PTX in a kernel mostly does so for copies and barriers that CUDA C had no
names for, and takes the instruction from a published page, often word for word. So there is a list of such
texts, without regard to white space, each with the calls that stand for it. Any other text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.lexer import parse_string
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import INT

if TYPE_CHECKING:
    from simgpu.cuda_c.syntax.statements import StatementParser

FROM_ASSEMBLY = "ptx:"  # in front of the name of a function that stands for an instruction
ASSEMBLY_WORDS = ("asm", "__asm__", "__asm")
_REFUSAL = (
    "inline assembly (PTX) is supported only for asynchronous copies, mbarrier and their fences, as "
    "docs/cuda_c.md has it: write what it does in CUDA C, such as __shfl_sync(), __ldg() or __syncwarp()"
)
# The operands of a form, by letter, and what is written to (`O`).
_Operands: TypeAlias = dict[str, ast.Expression]
_Maker: TypeAlias = Callable[[Position, _Operands], list[ast.Expression]]


def _called(at: Position, name: str, *arguments: ast.Expression) -> ast.CallExpr:
    return ast.CallExpr(at=at, name=f"{FROM_ASSEMBLY}{name}", arguments=[*arguments])


def _number(at: Position, value: int) -> ast.Expression:
    return ast.Literal(at=at, value=value, type=INT)


def _shared(at: Position, where: ast.Expression, barrier: bool = False) -> ast.Expression:
    """The pointer that an address in the window of shared memory is."""
    return _called(at, "__shared_word_at" if barrier else "__shared_byte_at", where)


def _given(at: Position, o: _Operands, value: ast.Expression) -> list[ast.Expression]:
    return [ast.AssignExpr(at=at, op="", target=o["O"], value=value) if "O" in o else value]


def _copy(at: Position, o: _Operands) -> list[ast.Expression]:
    read = [ast.Binary(at=at, op="-", left=o["C"], right=o["D"])] if "D" in o else []
    return [_called(at, "__pipeline_memcpy_async", _shared(at, o["A"]), o["B"], o["C"], *read)]


def _plain(name: str, *more: int) -> _Maker:
    """A call with the operands A and B as they are, and these numbers."""

    def make(at: Position, o: _Operands) -> list[ast.Expression]:
        given = [o[letter] for letter in "AB" if letter in o]
        return [_called(at, name, *given, *[_number(at, number) for number in more])]

    return make


def _on_barrier(name: str, *more: int, last: str = "B") -> _Maker:
    """A call with the barrier A, these numbers, and an operand."""

    def make(at: Position, o: _Operands) -> list[ast.Expression]:
        rest = [*[_number(at, number) for number in more], *[o[x] for x in last if x in o]]
        return _given(at, o, _called(at, name, _shared(at, o["A"], True), *rest))

    return make


def _wait_for_all(at: Position, o: _Operands) -> list[ast.Expression]:
    return [_called(at, "__pipeline_commit"), _called(at, "__pipeline_wait_prior", _number(at, 0))]


def _bulk_copy(at: Position, o: _Operands) -> list[ast.Expression]:
    return [
        _called(at, "__bulk_copy", _shared(at, o["A"]), o["B"], o["C"], _shared(at, o["D"], True))
    ]


def _bulk_store(at: Position, o: _Operands) -> list[ast.Expression]:
    return [_called(at, "__bulk_store", o["A"], _shared(at, o["B"]), o["C"])]


def _address(at: Position, o: _Operands) -> list[ast.Expression]:
    return _given(at, o, _called(at, "__cvta_generic_to_shared", o["A"]))


def _nothing(at: Position, o: _Operands) -> list[ast.Expression]:
    return []


_B64 = ".shared(::cta)?.b64"
_TEST = f"mbarrier.(try|test)_wait(.acquire)?(.cta)?{_B64} P,[A],B(,C)?;"
_PARITY = _TEST.replace("_wait", "_wait.parity")
# As they are without white space that means nothing. A to D are operands, O is what is written to, and any
# other capital letter by itself is a name; what is in brackets with a question mark may be missing.
_FORMS: list[tuple[str, _Maker]] = [
    ("cp.async.(ca|cg).shared(::cta)?.global(.L2::(64B|128B|256B))?[A],[B],C(,D)?", _copy),
    ("cp.async.commit_group", _plain("__pipeline_commit")),
    ("cp.async.wait_group A", _plain("__pipeline_wait_prior")),
    ("cp.async.wait_all", _wait_for_all),
    (f"mbarrier.init{_B64}[A],B", _on_barrier("__mbarrier_init")),
    (f"mbarrier.inval{_B64}[A]", _nothing),
    (f"mbarrier.arrive(.release)?(.cta)?{_B64} O,[A](,B)?", _on_barrier("__mbarrier_arrive")),
    (f"mbarrier.arrive.expect_tx(.release)?(.cta)?{_B64} O,[A],B", _on_barrier("__mbarrier_arrive", 1)),
    (f"mbarrier.expect_tx(.relaxed)?(.cta)?{_B64}[A],B", _on_barrier("__mbarrier_expect_tx")),
    (f"{{.reg .pred P;{_TEST}selp.(b32|u32|s32) O,1,0,P;}}", _on_barrier("__mbarrier_test_wait")),
    (f"{{.reg .pred P;{_PARITY}selp.(b32|u32|s32) O,1,0,P;}}", _on_barrier("__mbarrier_test_wait_parity")),
    ("cp.async.bulk.shared::(cluster|cta).global.mbarrier::complete_tx::bytes[A],[B],C,[D]", _bulk_copy),
    ("cp.async.bulk.global.shared::cta.bulk_group[A],[B],C", _bulk_store),
    ("cp.async.bulk.commit_group", _plain("__bulk_commit")),
    ("cp.async.bulk.wait_group A", _plain("__bulk_wait", 0)),
    ("cp.async.bulk.wait_group.read A", _plain("__bulk_wait", 1)),
    ("fence.proxy.async(.shared::cta|.global)?", _plain("__proxy_fence")),
    ("fence.mbarrier_init.release.cluster|griddepcontrol.(wait|launch_dependents)", _nothing),
    ("{.reg .u64 T;cvta.to.shared.u64 T,A;cvt.u32.u64 O,T;}", _address),
]  # fmt: skip
# A loop around a wait, by a token or by a parity.
_LOOP = f"{{.reg .pred P;L:{_TEST}@P bra(.uni)? E;bra(.uni)? L;E:}}"
_LOOPS = [
    (_LOOP, "__mbarrier_over"),
    (_LOOP.replace("_wait", "_wait.parity"), "__mbarrier_over_parity"),
]


def _compiled(form: str) -> re.Pattern[str]:
    names: set[str] = set()

    def group(found: re.Match[str]) -> str:
        letter = found[0]
        if letter in "ABCDO":
            return rf"(?P<{letter}>%\d+|{'_' if letter == 'O' else '-?[0-9]+'})"
        if letter in names:
            return f"(?P={letter})"
        names.add(letter)
        return rf"(?P<{letter}>[\w%=$]+)"

    return re.compile(re.sub(r"(?<!\w)[A-Z](?!\w)", group, re.sub(r"[.\[\]{}]", r"\\\g<0>", form)))


_KNOWN = [(_compiled(form), make) for form, make in _FORMS]
_WAITS = [(_compiled(form), name) for form, name in _LOOPS]


def assembly(p: StatementParser) -> ast.Statement:
    """Read `asm volatile("..." : outputs : inputs : clobbers);` as the calls that stand for it."""
    start = p.advance()
    while p.accept("volatile", "__volatile__"):
        pass
    p.need("(")
    text = _strings(p)
    operands: list[ast.Expression] = []
    for _ in range(3):
        if _accept(p, "::", ":"):  # the two colons of no outputs, or of no inputs, are one word
            _operands(p, operands)
    p.need(")", " at the end of this assembly")
    p.need(";", " behind this assembly")
    text = re.sub(r" ?([,;\[\]{}@]) ?", r"\1", re.sub(r"\s+", " ", text))
    text = text.strip(" ;").replace(": ", ":")
    for known, name in _WAITS:
        found = known.fullmatch(text)
        if found is not None:
            (asked,) = _on_barrier(name)(start.at, _by_letter(p, found, operands, start.at))
            again = ast.Unary(at=start.at, op="!", operand=asked)
            return ast.For(at=start.at, test=again, body=ast.Block(at=start.at, body=[]))
    for known, make in _KNOWN:
        found = known.fullmatch(text)
        if found is not None:
            made = make(start.at, _by_letter(p, found, operands, start.at))
            return ast.Block(
                at=start.at, body=[ast.ExpressionStatement(at=start.at, expression=e) for e in made]
            )
    p.unsupported(_REFUSAL, start.at)


def _accept(p: StatementParser, *texts: str) -> bool:
    """Take a word as it stands: for the parser, `::` in front of a name means nothing."""
    found = p.tokens[p.position].is_(*texts)
    p.position += found
    return found


def _strings(p: StatementParser) -> str:
    out = ""
    while (token := p.tokens[p.position]).kind == "string":
        out += parse_string(p.source, token)
        p.position += 1
    return out


def _operands(p: StatementParser, out: list[ast.Expression]) -> None:
    while p.tokens[p.position].kind == "string":
        _strings(p)
        if _accept(p, "("):  # else it is what is overwritten, such as "memory"
            out.append(p.expression())
            p.need(")", " behind this operand")
        if not _accept(p, ","):
            return


def _by_letter(
    p: StatementParser, found: re.Match[str], operands: list[ast.Expression], at: Position
) -> _Operands:
    out: _Operands = {}
    for letter in "ABCDO":
        written = found.groupdict().get(letter)
        if written is None or written == "_":
            continue
        number = int(written.removeprefix("%"))
        if not written.startswith("%"):
            out[letter] = _number(at, number)
        elif number < len(operands):
            out[letter] = operands[number]
        else:
            p.fail(f"this assembly has no operand {written}", at)
    return out
