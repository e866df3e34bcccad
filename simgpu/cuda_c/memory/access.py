"""Loading, storing and merging values of any type."""

from collections.abc import Iterator
from math import gcd
from typing import Any, cast

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.lockstep import Mask, Site, Team, varies
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.memory.holes import Holed, merged_holes, missing_in, present
from simgpu.cuda_c.memory.names import report_misaligned
from simgpu.cuda_c.memory.pointers import (
    MaskedAccess,
    Pointed,
    Ptr,
    Region,
    one_region,
    region_of,
)

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
    if site.packed or (isinstance(ctype, types.Struct) and ctype.packed):
        return _load_bytes(region, team, mask, ptr, ctype, site)
    if isinstance(ctype, types.Scalar):
        return region.load(MaskedAccess(team, mask, ptr, ctype, site, ctype.size, copied=copied))
    if isinstance(ctype, types.Pointer):
        number = region.load(MaskedAccess(team, mask, ptr, types.ULLONG, site, 8))
        return _pointed(team, mask, number, ctype, site)
    out: list[Any] = []
    lacking: Any = mask.bits
    for leaf, place, size in _pieces_of(team, mask, ptr, ctype, site):
        far = isinstance(leaf, types.Pointer)
        kind = types.ULLONG if far else leaf
        found = region.load(MaskedAccess(team, mask, place, kind, site, size, copied=True))
        missing = missing_in(found)
        lacking = False if missing is None else lacking & missing
        out.append(_pointed(team, mask, found, leaf, site) if far else found)
    # A byte may be between two members, so that memcpy copies those as well.
    if np.any(lacking) and not copied and getattr(ctype, "name", "") != "_byte":
        leaf, place, size = next(_pieces_of(team, mask, ptr, ctype, site))
        kind = types.ULLONG if isinstance(leaf, types.Pointer) else leaf
        region.load(MaskedAccess(team, mask, place, kind, site, size))  # which fails
    return out


def _pointed(team: Team, mask: Mask, number: Any, ctype: types.Pointer, site: Site) -> Ptr:
    missing = missing_in(number)
    if missing is not None:
        number = np.where(missing, np.uint64(0), np.asarray(number))
    return team.launch.addresses.pointer(team, mask, number, types.size_of(ctype.target), site.at)


def store_lanes(
    team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, value: Any, site: Site
) -> None:
    """Write a value of type `ctype` for the lanes of `mask`."""
    region = ptr.region or region_of(team, mask, ptr, site)
    if team.launch.limits.watcher is not None:
        tell(team, mask, ptr, types.size_of(ctype), site)
    if site.volatile and team.launch.messages.active:
        team.launch.messages.write(team, mask.index, words_of(team, mask, ptr))
    if site.packed or (isinstance(ctype, types.Struct) and ctype.packed):
        _store_bytes(region, team, mask, ptr, ctype, value, site)
        return
    if isinstance(ctype, types.Scalar):
        lanes: Mask | None = mask
        if type(value) is Holed:
            lanes, value = present(mask, value), np.asarray(value)
        if lanes is not None:
            region.store(MaskedAccess(team, lanes, ptr, ctype, site, ctype.size), value)
        return
    addresses = team.launch.addresses
    if isinstance(ctype, types.Pointer):
        region.store(MaskedAccess(team, mask, ptr, types.ULLONG, site, 8), addresses.number(value))
        return
    for k, (leaf, place, size) in enumerate(_pieces_of(team, mask, ptr, ctype, site)):
        far = isinstance(leaf, types.Pointer)
        if (lanes := present(mask, value[k])) is not None:
            part = MaskedAccess(team, lanes, place, types.ULLONG if far else leaf, site, size)
            region.store(part, addresses.number(value[k]) if far else np.asarray(value[k])[()])


def _load_bytes(
    region: Region, team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, site: Site
) -> Any:
    """As `load_lanes`, byte by byte, since a packed struct does not align its members."""
    out = list[Any]()
    for leaf, offset in types.leaves(ctype):
        raw = [
            region.load(MaskedAccess(team, mask, ptr.moved(offset + k), types.UCHAR, site, 1))
            for k in range(types.size_of(leaf))
        ]
        far = isinstance(leaf, types.Pointer)
        dtype = types.ULLONG.dtype if far else leaf.dtype
        found = np.stack(np.broadcast_arrays(*raw), -1).view(dtype)[..., 0][()]
        step = types.size_of(leaf.target) if far else 0
        pointer = team.launch.addresses.pointer
        out.append(pointer(team, mask, found, step, site.at) if far else found)
    return out if isinstance(ctype, types.Struct) else out[0]


def _store_bytes(
    region: Region, team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, value: Any, site: Site
) -> None:
    values = value if isinstance(ctype, types.Struct) else [value]
    for (leaf, offset), new in zip(types.leaves(ctype), values, strict=True):
        number = team.launch.addresses.number(new) if isinstance(leaf, types.Pointer) else new
        raw = np.asarray(number)[..., None].copy().view(np.uint8)
        for k in range(types.size_of(leaf)):
            byte = MaskedAccess(team, mask, ptr.moved(offset + k), types.UCHAR, site, 1)
            region.store(byte, raw[..., k])


def _pieces_of(
    team: Team, mask: Mask, ptr: Ptr, ctype: types.CType, site: Site
) -> Iterator[tuple[types.Scalar | types.Pointer, Ptr, int]]:
    """The leaves of a struct: where they are, and how many bytes a request for them moves.

    An aligned struct of up to 16 bytes is one request, that of its first leaf; else each leaf has its own.
    """
    align = types.align_of(ctype)
    if ptr.stride % align or ptr.base % align:
        where = mask.take(ptr.address())
        report_misaligned(team, mask, ptr, where, align, types.spelled(ctype), site)
    wide = isinstance(ctype, types.Struct) and align == ctype.size <= 16
    for k, (leaf, offset) in enumerate(types.leaves(ctype)):
        size = types.size_of(leaf) if not wide else 0 if k else align
        yield leaf, ptr.moved(offset), size


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
    if type(new) is Holed or type(old) is Holed:
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
