"""Numbers, characters and strings as they are written, and the types that C gives them."""

from __future__ import annotations

import re

from simgpu.cuda_c.text.lexer import Token
from simgpu.cuda_c.text.source import Source
from simgpu.cuda_c.types import DOUBLE, FLOAT, INT, LLONG, LONG, UINT, ULLONG, ULONG, Scalar

# The types of integers by their suffix, signed and unsigned in turns: the first that fits is taken.
_KINDS = {"": (INT, UINT, LONG, ULONG), "l": (LONG, ULONG), "ll": (LLONG, ULLONG)}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)", re.DOTALL)


def parse_number(source: Source, token: Token) -> tuple[int | float, Scalar]:
    """Value and type of a number token (C++17, clause lex.literal)."""
    text = token.text.replace("'", "").lower()
    prefixed = text.startswith(("0x", "0b"))
    if text.startswith("0x") and "p" in text:
        return float.fromhex(text.rstrip("fl")), FLOAT if text.endswith("f") else DOUBLE
    if not prefixed and ("." in text or "e" in text):
        if text.endswith("f"):
            return float(text[:-1]), FLOAT
        return float(text.rstrip("l")), DOUBLE
    digits = text.rstrip("ul")
    suffix = text[len(digits) :]
    kinds = _KINDS.get(suffix.replace("u", "", 1))
    if kinds is None or "lul" in suffix:
        source.fail(token.at, f"'{token.text}' has an invalid suffix")
    octal = len(digits) > 1 and digits[0] == "0" and not prefixed
    try:
        value = int(digits, 8) if octal else int(digits, 0)
    except ValueError:
        source.fail(token.at, f"'{token.text}' is not a number that C knows")
    if value >= 1 << 64:
        source.fail(token.at, f"'{token.text}' does not fit 64 bits")
    if "u" in suffix:
        kinds = kinds[1::2]
    elif not (octal or prefixed):
        kinds = kinds[::2]
    return value, next((kind for kind in kinds if value <= kind.highest), ULONG)


def parse_char(token: Token) -> int:
    """Value of a character constant."""
    return ord(_unescape(token.text[1:-1]))


def parse_string(token: Token) -> str:
    """Text of a string literal; a line that ends in a backslash goes on in the next one."""
    return _unescape(re.sub(r"\\\r?\n", "", token.text[1:-1]))


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] == "x":
            return chr(int(code[1:], 16))
        if code[0].isdigit():
            return chr(int(code, 8))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(one, text)
