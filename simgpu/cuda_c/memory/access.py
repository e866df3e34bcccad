"""Loading, storing and merging values of any type."""

from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import Any, cast

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.lockstep import Mask, Site, Team, varies
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.memory.holes import Holed, holed, merged_holes, missing_in, plain, present
from simgpu.cuda_c.memory.names import report_misaligned
from simgpu.cuda_c.memory.pointers import (
    MaskedAccess,
    Pointed,
    Ptr,
    Region,
    one_region,
    region_of,
)
from simgpu.cuda_c.text.source import Position

NULL = Ptr(None, 0, 1, 0, "nullptr")


def words_of(team: Team, mask: Mask, ptr: Ptr) -> Any:
    """The addresses of words as numbers (`messages`). Of shared memory, each block has its own."""
    words = np.asarray(mask.take(team.launch.addresses.number(ptr))).view(np.int64)
    for bits, region, _ in ptr.choices(mask):  # in lanes that wait, for example, it may be null
        if getattr(region, "shared", False):
            own = 1 + team.layout.numbers[team.layout.block[mask.index]] << 42
            words = np.where(bits[mask.index], words ^ own, words)
    return words


def tell(team: Team, mask: Mask, ptr: Ptr, size: int, site: Site) -> None:
    """Tell whoever watches of an access that is about to be made."""
    watcher = team.launch.limits.watcher
    if watcher is not None:
        watcher(team, mask, ptr, size, site)


def load_lanes(
    team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, site: Site, copied: bool = False
) -> Any:
    """The value of type `ctype` at an address: one array, or a list of them for a struct.

    Members of a struct that nobody wrote are `Holed`, and so is a number that is only `copied`.
    """
    region = ptr.region or region_of(team, mask, ptr, site)
    if team.launch.limits.watcher is not None:
        tell(team, mask, ptr, types.size_of(ctype), site)
    if site.volatile and team.launch.watches and team.launch.messages.active and not team.turns:
        team.launch.messages.look(team, mask.index, words_of(team, mask, ptr))
    struct, packed = isinstance(ctype, types.Struct), _packed(ctype, site)
    if isinstance(ctype, types.Scalar) and not packed:
        return region.load(MaskedAccess(team, mask, ptr, ctype, site, ctype.size, copied))
    load = _load_bytes if packed else type(region).load
    out: list[Any] = []
    lacking: Any = mask.bits
    for leaf, one in _pieces_of(team, mask, ptr, ctype, site):
        one.copied = struct or copied
        out.append(pointed(team, mask, load(region, one), leaf, site.at))
        missing = missing_in(out[-1])
        lacking = False if missing is None else lacking & missing
    # A byte may be between two members, so that memcpy copies those as well.
    if np.any(lacking) and not copied and getattr(ctype, "name", "") != "_byte":
        load(region, next(_pieces_of(team, mask, ptr, ctype, site))[1])  # which fails
    return out if struct else out[0]


def _packed(ctype: types.CType, site: Site) -> bool:
    """Tell whether a value is moved byte by byte, since a packed struct does not align its members."""
    return site.packed or (isinstance(ctype, types.Struct) and ctype.packed)


def pointed(team: Team, mask: Mask, number: Any, ctype: types.CType, at: Position) -> Any:
    """A number from memory as what it is there; a pointer keeps its holes."""
    if not isinstance(ctype, types.Pointer):
        return number
    missing, pointer = missing_in(number), team.launch.addresses.pointer
    whole = number if missing is None else np.where(missing, 0, plain(number))
    out = pointer(team, mask, whole, types.size_of(ctype.target), at)
    return out if missing is None else out.holed(missing, number.what)


def store_lanes(
    team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, value: Any, site: Site
) -> None:
    """Write a value of type `ctype` for the lanes of `mask`."""
    region = ptr.region or region_of(team, mask, ptr, site)
    if team.launch.limits.watcher is not None:
        tell(team, mask, ptr, types.size_of(ctype), site)
    if site.volatile and team.launch.messages.active:
        team.launch.messages.write(team, mask.index, words_of(team, mask, ptr))
    packed = _packed(ctype, site)
    if isinstance(ctype, types.Scalar) and not packed and type(value) is not Holed:
        region.store(MaskedAccess(team, mask, ptr, ctype, site, ctype.size), value)
        return
    store = _store_bytes if packed else type(region).store
    values = value if isinstance(ctype, types.Struct) else [value]
    for (leaf, one), new in zip(_pieces_of(team, mask, ptr, ctype, site), values, strict=True):
        one.mask = present(mask, new)
        if one.mask is not None:
            far = isinstance(leaf, types.Pointer)
            store(region, one, team.launch.addresses.number(new) if far else np.asarray(new)[()])


def _bytes_of(a: MaskedAccess) -> list[MaskedAccess]:
    return [replace(a, ptr=a.ptr.moved(k), scalar=types.UCHAR, wide=1) for k in range(a.size)]


def _load_bytes(region: Region, a: MaskedAccess) -> Any:
    raw = [region.load(byte) for byte in _bytes_of(a)]
    out = np.stack(np.broadcast_arrays(*map(plain, raw)), -1).view(a.scalar.dtype)[..., 0][()]
    lacking: list[Any] = [byte for byte in raw if type(byte) is Holed]
    missing = np.any([byte.missing for byte in lacking], 0)
    return holed(out, missing, lacking[0].what) if lacking else out


def _store_bytes(region: Region, a: MaskedAccess, value: Any) -> None:
    raw = np.asarray(value)[..., None].copy().view(np.uint8)
    for k, byte in enumerate(_bytes_of(a)):
        region.store(byte, raw[..., k][()])


def _pieces_of(
    team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, site: Site
) -> Iterator[tuple[types.Scalar | types.Pointer, MaskedAccess]]:
    """The leaves of a value, and the access to each, with how many bytes a request for it moves.

    An aligned struct of up to 16 bytes is one request, that of its first leaf; else each leaf has its own.
    """
    struct, align = isinstance(ctype, types.Struct), types.align_of(ctype)
    if struct and not _packed(ctype, site) and (ptr.stride % align or ptr.base % align):
        where = mask.take(ptr.address())
        report_misaligned(team, mask, ptr, where, align, types.spelled(ctype), site)
    wide = struct and align == types.size_of(ctype) <= 16
    for k, (leaf, offset) in enumerate(types.leaves(ctype)):
        size = types.size_of(leaf) if not wide else 0 if k else align
        kind = types.ULLONG if isinstance(leaf, types.Pointer) else leaf
        yield leaf, MaskedAccess(team, mask, ptr.moved(offset), kind, site, size)


def merge(mask: Mask, new: Any, old: Any) -> Any:
    """`new` for the lanes of `mask`, `old` for the others."""
    if old is None:
        return [*cast("list[Any]", new)] if isinstance(new, list) else new
    if isinstance(new, list):
        return [merge_member(mask, *pair) for pair in zip(cast("list[Any]", new), old, strict=True)]
    if isinstance(new, Ptr):
        return _merge_pointers(mask, new, old)
    uniform = not varies(new) and not varies(old)
    if uniform and new.tobytes() == old.tobytes():  # by bytes, because -0.0 == 0.0
        return new
    return select_lanes(mask.bits, new, old)


def merge_member(mask: Mask, new: Any, old: Any) -> Any:
    """As `merge`, of a member of a struct, which lanes may lack."""
    out = merge(mask, new, old)
    if missing_in(new) is not None or missing_in(old) is not None:
        return merged_holes(mask, new, old, out)
    return out


def _merge_pointers(mask: Mask, new: Ptr, old: Ptr) -> Ptr:
    if new is old:
        return new
    bits = mask.bits
    if new.region is old.region and new.stride == old.stride and new.base == old.base:
        uniform = not varies(new.offset) and not varies(old.offset)
        if uniform and new.offset == old.offset:
            return new
        offset = select_lanes(bits, new.offset, old.offset)
        return Ptr(new.region, offset, new.stride, new.base, new.name)
    unit = gcd(new.stride, old.stride, new.base, old.base) or 1
    offset = select_lanes(bits, new.address(), old.address()) // unit
    if new.region is old.region:
        return Ptr(new.region, offset, unit, 0, new.name)
    choices: dict[tuple[int, str], Pointed] = {}
    for chosen, ptr in ((bits, new), (~bits, old)):
        for theirs, region, name in ptr.choices(mask):
            both, key = chosen if not ptr.mixed else theirs & chosen, (id(region), name)
            if key in choices:
                both = both | choices[key][0]
            if both.any():
                choices[key] = both, region, name
    region = one_region([*choices.values()])
    name = new.name if len(choices) > 1 else next(iter(choices))[1]
    return Ptr(region, offset, unit, 0, name)
