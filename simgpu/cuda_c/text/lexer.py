"""CUDA C text to tokens, and the values and types of those that are numbers, characters or strings.

Comments go; newlines stay, for the preprocessor.
"""

import re
from typing import NamedTuple

from simgpu.cuda_c.text.source import Position, Source
from simgpu.cuda_c.types import DOUBLE, FLOAT, INT, LLONG, LONG, UINT, ULLONG, ULONG, Scalar

PATTERN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v\ufeff]+|\\\r?\n)
  | (?P<newline>\n)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<number>
        0[xX][0-9a-fA-F']*+\.?[0-9a-fA-F]*+[pP][+-]?[0-9]+[fFlL]?
      | 0[xX][0-9a-fA-F']*[uUlL]*
      | 0[bB][01']+[uUlL]*
      | (?:[0-9][0-9']*\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE][+-]?[0-9]))(?:[eE][+-]?[0-9]+)?[fFlL]?
      | [0-9][0-9']*[uUlLfF]*
    )
  | (?P<string>(?:u8|[uUL])?"(?:\\\r?\n|\\.|[^"\\\n])*+")
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)")
  | (?P<char>(?:u8|[uUL])?'(?:\\(?:x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|.)|[^'\\\n])')
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<op><<=|>>=|\.\.\.|<<<|>>>|\+\+|--|->|::|<<|>>|<=|>=|==|!=|&&|\|\||\#\#
        |[-+*/%&|^]=|[-+*/%<>=!&|^~?:;,.(){}\[\]\#])
  | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)

# C++ has these spellings too ([lex.digraph] in the standard), and people who know Python use them.
_SPELLINGS = {
    "and": "&&", "or": "||", "not": "!", "not_eq": "!=", "bitand": "&", "bitor": "|", "xor": "^",
    "compl": "~", "and_eq": "&=", "or_eq": "|=", "xor_eq": "^=",
}  # fmt: skip
_UNCLOSED = {
    '"': "this string is never closed",
    "'": "this character constant is not closed, or holds more than one character",
}
# The types of integers by their suffix, signed and unsigned in turns: the first that fits is taken.
_KINDS = {"": (INT, UINT, LONG, ULONG), "l": (LONG, ULONG), "ll": (LLONG, ULLONG)}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


class Token(NamedTuple):
    """One word of the source."""

    kind: str  # "name", "number", "string", "char", "op", "newline" or "end"
    # The text as written; of an operator that is written as a word, such as ``and``, its sign.
    text: str
    at: Position  # where; for the product of a macro, where the macro was used
    spaced: bool = False  # white space came before it
    hidden: frozenset[str] = frozenset()  # macros that must not be expanded in it again

    def is_(self, *texts: str) -> bool:
        """Tell whether it is one of these operators or words; a string has its quotes, and is none."""
        return self.text in texts


def tokenise(source: Source) -> list[Token]:
    """Split a source into tokens, closed by one of kind "end"."""
    text = source.text
    tokens: list[Token] = []
    line, line_start, spaced = 1, 0, False
    for match in PATTERN.finditer(text):  # whose last alternative takes any character
        kind, word = match.lastgroup or "bad", match[0]
        if kind in ("space", "comment"):
            spaced = True
        else:
            pos = match.start()
            at = Position(line, pos - line_start + 1)
            if kind == "bad":
                source.fail(at, _UNCLOSED.get(word, f"unexpected character {word!r}"))
            if word == "/" and text.startswith("/*", pos):
                source.fail(at, "this comment is never closed: '*/' is missing")
            if kind == "raw":
                tokens.append(Token("string", _cooked(match), at, spaced))
            elif kind == "name" and word in _SPELLINGS:
                tokens.append(Token("op", _SPELLINGS[word], at, spaced))
            else:
                tokens.append(Token(kind, word, at, spaced))
            spaced = kind == "newline"
        if "\n" in word:
            line += word.count("\n")
            line_start = match.start() + word.rfind("\n") + 1
    tokens.append(Token("end", "end of file", Position(line, len(text) - line_start + 1)))
    return tokens


def _cooked(match: re.Match[str]) -> str:
    """A raw string as an ordinary one: in it nothing but its end means anything."""
    before, text = match[0].split('"', 1)
    text = text[len(match["mark"]) + 1 : -len(match["mark"]) - 2]
    for letter, escaped in ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"):
        text = text.replace(letter, escaped)
    return f'{before[:-1]}"{text}"'


def parse_number(source: Source, token: Token) -> tuple[int | float, Scalar]:
    """Value and type of a number token (C++17, clause lex.literal)."""
    text = token.text.replace("'", "").lower()
    prefixed = text.startswith(("0x", "0b"))
    if text.startswith("0x") and "p" in text:
        try:
            return float.fromhex(text.rstrip("fl")), FLOAT if text.endswith("f") else DOUBLE
        except (ValueError, OverflowError):
            source.fail(token.at, f"'{token.text}' is not a number, or too large for one")
    if not prefixed and ("." in text or "e" in text):
        return float(text.rstrip("fl")), FLOAT if text.endswith("f") else DOUBLE
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


def parse_char(source: Source, token: Token) -> int:
    """Value of a character constant, which is a signed byte."""
    found = parse_string(source, token)
    if len(found) > 1:
        source.fail(token.at, _UNCLOSED["'"])
    return ord(found) - 256 * (ord(found) > 127)


def parse_string(source: Source, token: Token) -> str:
    """The bytes of a literal, one character for each; a line that ends in a backslash goes on in the next."""
    prefix, _, text = token.text[:-1].partition(token.text[-1])
    if prefix not in ("", "u8"):
        source.unsupported(token.at, f"wide characters, with '{prefix}', are not supported")

    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "x01234567" and code != "x":
            number = int(code[1:], 16) if code[0] == "x" else int(code, 8)
            return chr(number & 255)  # as compilers do, with a warning
        if code[0] in "uU" and len(code) > 1:
            number = int(code[1:], 16)
            if number < 0xD800 or 0xE000 <= number < 0x110000:
                return chr(number).encode().decode("latin-1")
        if code[0] in "uUNx":
            source.fail(token.at, f"'\\{code}' is not followed by the number of a character")
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(one, re.sub(r"\\\r?\n", "", text).encode().decode("latin-1"))
