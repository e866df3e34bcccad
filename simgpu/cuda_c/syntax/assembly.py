"""Inline assembly: the few forms by which people write asynchronous copies, barriers and their fences.

This is no assembler. Whoever writes PTX in a kernel mostly does so for copies and barriers that CUDA C had no
names for, and takes the instruction from a published page, often word for word. So there is a list of such
texts, without regard to white space, each with the calls that stand for it. Any other text is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
_B64 = ".shared(::cta)?.b64"
_TEST = f"mbarrier.(try|test)_wait(.acquire)?(.cta)?{_B64} P,[A],B(,C)?;"
_PARITY = _TEST.replace("_wait", "_wait.parity")
_SELECTED = "selp.(b32|u32|s32) O,1,0,P;}"
_AGAIN = "@P bra(.uni)? E;bra(.uni)? L;E:}"  # a loop around a wait
# Texts as they are without white space that means nothing, each with the calls that stand for it. In a text,
# A to D are operands, O is what is written to, and any other capital letter by itself is a name; what is in
# brackets with a question mark may be missing. In a call, `&A` is the pointer to a byte of shared memory that
# the address A is, and `*A` that to a barrier. What is missing is left out; `until` loops around a test.
_FORMS = {
    "cp.async.(ca|cg).shared(::cta)?.global(.L2::(64B|128B|256B))?[A],[B],C(,D)?": (
        "__pipeline_memcpy_async &A B C C-D"
    ),
    "cp.async.commit_group": "__pipeline_commit",
    "cp.async.wait_group A": "__pipeline_wait_prior A",
    "cp.async.wait_all": "__pipeline_commit; __pipeline_wait_prior 0",
    f"mbarrier.init{_B64}[A],B": "__mbarrier_init *A B",
    f"mbarrier.inval{_B64}[A]": "",
    f"mbarrier.arrive(.release)?(.cta)?{_B64} O,[A](,B)?": "O = __mbarrier_arrive *A B",
    f"mbarrier.arrive.expect_tx(.release)?(.cta)?{_B64} O,[A],B": "O = __mbarrier_arrive *A 1 B",
    f"mbarrier.expect_tx(.relaxed)?(.cta)?{_B64}[A],B": "__mbarrier_expect_tx *A B",
    f"{{.reg .pred P;{_TEST}{_SELECTED}": "O = __mbarrier_test_wait *A B",
    f"{{.reg .pred P;{_PARITY}{_SELECTED}": "O = __mbarrier_test_wait_parity *A B",
    f"{{.reg .pred P;L:{_TEST}{_AGAIN}": "until __mbarrier_over *A B",
    f"{{.reg .pred P;L:{_PARITY}{_AGAIN}": "until __mbarrier_over_parity *A B",
    "cp.async.bulk.shared::(cluster|cta).global.mbarrier::complete_tx::bytes[A],[B],C,[D]": (
        "__bulk_copy &A B C *D"
    ),
    "cp.async.bulk.global.shared::cta.bulk_group[A],[B],C": "__bulk_store A &B C",
    "cp.async.bulk.commit_group": "__bulk_commit",
    "cp.async.bulk.wait_group A": "__bulk_wait A 0",
    "cp.async.bulk.wait_group.read A": "__bulk_wait A 1",
    "fence.proxy.async(.shared::cta|.global)?": "__proxy_fence",
    "fence.mbarrier_init.release.cluster|griddepcontrol.(wait|launch_dependents)": "",
    "{.reg .u64 T;cvta.to.shared.u64 T,A;cvt.u32.u64 O,T;}": "O = __cvta_generic_to_shared A",
}
_POINTERS = {"&": "__shared_byte_at", "*": "__shared_word_at"}


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


_KNOWN = [(_compiled(form), calls) for form, calls in _FORMS.items()]


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
    for known, calls in _KNOWN:
        found = known.fullmatch(text)
        if found is not None:
            given = _by_letter(p, found, operands, start.at)
            made = [_statement(start.at, call.split(), given) for call in calls.split("; ") if call]
            return ast.Block(at=start.at, body=made)
    p.unsupported(_REFUSAL, start.at)


def _statement(at: Position, words: list[str], given: dict[str, ast.Expression]) -> ast.Statement:
    """A call as `_FORMS` has it, with its operands."""
    if words[0] == "until":
        again = ast.Unary(at=at, op="!", operand=_called(at, words[1:], given))
        return ast.For(at=at, test=again, body=ast.Block(at=at, body=[]))
    call = _called(at, words[2:] if "=" in words else words, given)
    if "=" in words and "O" in given:
        return ast.assigning(given["O"], call, at)
    return ast.ExpressionStatement(at=at, expression=call)


def _called(at: Position, words: list[str], given: dict[str, ast.Expression]) -> ast.Expression:
    arguments: list[ast.Expression] = []
    for word in words[1:]:
        first, _, second = word.partition("-")
        if word.isdigit():
            arguments.append(ast.Literal(at=at, value=int(word), type=INT))
        elif word[0] in _POINTERS:
            arguments.append(_called(at, [_POINTERS[word[0]], word[1:]], given))
        elif second in given:
            arguments.append(ast.Binary(at=at, op="-", left=given[first], right=given[second]))
        elif word in given:
            arguments.append(given[word])
    return ast.CallExpr(at=at, name=f"{FROM_ASSEMBLY}{words[0]}", arguments=arguments)


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
) -> dict[str, ast.Expression]:
    out: dict[str, ast.Expression] = {}
    for letter in "ABCDO":
        written = found.groupdict().get(letter)
        if written is None or written == "_":
            continue
        number = int(written.removeprefix("%"))
        if not written.startswith("%"):
            out[letter] = ast.Literal(at=at, value=number, type=INT)
        elif number < len(operands):
            out[letter] = operands[number]
        else:
            p.fail(f"this assembly has no operand {written}", at)
    return out
