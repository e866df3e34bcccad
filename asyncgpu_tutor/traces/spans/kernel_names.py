"""Names of kernels for people, from mangled ones (CUPTI) and from whole types (Nsight Systems, PyTorch).

Of a mangled name only the beginning is read: a kernel is never a member of a class, so before it stand
namespaces and nothing else. The grammar is that of the Itanium C++ ABI, "External Names"
(https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
"""

import re

_FULL = 500  # characters of a full name that are kept: a trace may have a million spans

_PART = re.compile(r"L?([0-9]{1,4})|S(?:t|[0-9A-Z]*_)")  # a name after its length, or one for short
_BUILTIN = {
    "a": "signed char", "b": "bool", "c": "char", "d": "double", "f": "float", "h": "unsigned char",
    "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "s": "short",
    "t": "unsigned short", "v": "void", "x": "long long", "y": "unsigned long long",
}  # fmt: skip
_ONE_TYPE = re.compile(r"(?!(?:true|false)$)(?:\w+::)*([A-Za-z_]\w*(?: \w+)*)")


def kernel_name(full: str) -> tuple[str, dict[str, object]]:
    """Return the name of a kernel, and its span's `detail`: the ``full_name``, where that is another."""
    name = short_name(full)
    return name, {} if name == full else {"full_name": full[:_FULL]}


def short_name(full: str) -> str:
    """A kernel's name without its namespaces, types and parameters, as Nsight Systems shows it."""
    # A template's argument is kept where it has one alone, which is a type: all kernels of CUTLASS are called
    # ``Kernel2`` else. What is not understood stays.
    return (_of_mangled(full) if full.startswith("_Z") else _of_type(full)) or full


def _of_mangled(full: str) -> str:
    name, at = _last_name(full, 2)
    if not name or full[at : at + 1] != "I":
        return name
    first, at = _type(full, at + 1)
    return f"{name}<{first}>" if first and full[at : at + 1] == "E" else name


def _type(full: str, at: int) -> tuple[str, int]:
    """A builtin type, or a class without arguments, and where it ends; "" for any other type."""
    letter = full[at : at + 1]
    if letter in _BUILTIN:
        return _BUILTIN[letter], at + 1
    name, end = _last_name(full, at)
    if letter == "N":
        return (name, end + 1) if full[end : end + 1] == "E" else ("", end)
    return name, end


def _last_name(full: str, at: int) -> tuple[str, int]:
    """The last of the names that begin at `at`, one inside of the other, and where it ends."""
    nested = full.startswith("N", at)
    at += nested
    name = ""
    while (found := _PART.match(full, at)) and (nested or not name):
        at = found.end()
        if found[1]:
            end = at + int(found[1])
            name, at = full[at:end], end
            if len(full) < end or not name.isidentifier():
                return "", at
    return name, at


def _of_type(full: str) -> str:
    depth, kept, begin, arguments = 0, "", 0, ""
    for at, sign in enumerate(text := full.removeprefix("void ")):
        if sign == "<" and depth == 0:
            begin = at + 1
        depth += (sign in "<(") - (sign in ">)")
        if sign == ">" and depth == 0:
            arguments = text[begin:at]
        if sign == "(" and depth == 1 and kept and not kept.endswith("::"):
            break
        if depth == 0 and sign not in ">)":
            kept += sign
            arguments = arguments if sign.isspace() else ""  # of a name around the last one
    name = kept.rpartition("::")[2].strip()
    only = _ONE_TYPE.fullmatch(arguments)
    return f"{name}<{only[1]}>" if name and only else name
