"""Reading textures: tex1Dfetch, tex1D, tex2D and tex3D of a `cudaTextureObject_t`.

Such a read costs what a global load costs, since both go by way of L1: a warp pays for the lines that hold
the first texel of each lane, with texels row by row. Two things are left out: neighbours that filtering takes
are free, and a GPU keeps texels that are near each other in two dimensions in one line.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from simgpu.cuda_c.compile import record, storage
from simgpu.cuda_c.compile.builtins.common import Handler, arguments
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, nodes, value
from simgpu.cuda_c.compile.type_names import resolve
from simgpu.cuda_c.compile.typed import Expr
from simgpu.cuda_c.compile.variables import Origin
from simgpu.cuda_c.lockstep.masks import Mask, split
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.values import choose, varies
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.memory.textures import TextureForm
from simgpu.cuda_c.syntax.ast import Call, TypeName
from simgpu.cuda_c.types import (
    FLOAT,
    INT,
    SCALARS,
    TEXTURE,
    VECTORS,
    CType,
    Scalar,
    Struct,
    spelled,
)
from simgpu.errors import KernelFault

# What an element is stored as, and what a read can give.
_STORED = {s.dtype: s for s in reversed(SCALARS.values()) if s.size <= 4 and s.name != "bool"}
_READ = [s for s in SCALARS.values() if s.dtype in _STORED and s.name != "half"]
_RESULTS: dict[Scalar | Struct, tuple[np.dtype[Any], int]] = {s: (s.dtype, 1) for s in _READ} | {
    v: (s.dtype, len(v.fields))
    for v, s in itertools.product(VECTORS.values(), _READ)
    if v.fields[0].type == s and len(v.fields) != 3
}


def _reader(axes: int, *, fetch: bool = False) -> Handler:
    """The handler of a function that reads textures of so many axes."""

    def handle(c: Context, node: Call, used: bool) -> Expr:
        form = f"{node.name}<float>(texture, {', '.join('xyz'[:axes])})"
        if len(node.arguments) == axes + 2:
            c.unsupported(node.at, f"this form of {node.name}() is not supported: write v = {form}")
        told = node.templates or [None]
        if len(told) > 1 or not isinstance(told[0], TypeName):
            c.fail(
                node.at,
                f"{node.name}() has to be told what it reads, by one type: write {form}, with a parameter of "
                "type cudaTextureObject_t. Texture references are gone since CUDA 12",
            )
        ctype = resolve(c, told[0])
        if ctype not in _RESULTS:
            c.fail(
                node.at,
                f"no texture is read as '{spelled(ctype)}': take float, or int, short, char and their "
                "unsigned forms, or a vector of 1, 2 or 4 of them",
            )
        texture, *given = arguments(c, node, axes + 1)
        if texture.type != TEXTURE:
            c.fail(
                texture.at,
                f"{node.name}() reads a cudaTextureObject_t, not a '{spelled(texture.type)}': declare the "
                "parameter so, and pass what agt.texture(x) makes of the array",
            )
        coordinates = [convert(c, x, INT if fetch else FLOAT, x.at) for x in given]
        which, runs, site = texture.run, [x.run for x in coordinates], c.new_site(node.at)

        def run(t: Team, m: Mask) -> Any:
            number, where = which(t, m), [x(t, m) for x in runs]
            out, rest = None, m
            while rest is not None:  # the lanes that read one texture, then those of the next
                one = number[rest.index[0]] if varies(number) else number
                here, rest = split(rest, number == one)
                assert here is not None
                ptr: Ptr = t.launch.addresses.pointer(t, here, one, 1, site.at)
                found = None
                if isinstance(ptr.region, GlobalRegion) and not ptr.address():  # where it begins
                    found = ptr.region.memory.texture
                wrong = _wrong(found, ctype, axes, fetch)
                if found is None or wrong:
                    text = (
                        f"reads '{ptr.name or one}' with {node.name}<{spelled(ctype)}>, and {wrong}"
                    )
                    t.fault(KernelFault, site.at, int(here.index[0]), text, array=ptr.name)
                read = _read(t, here, ptr, found, where, site)
                out = access.merge(here, read if isinstance(ctype, Struct) else read[0], out)
            return out

        parts = [texture, *coordinates]
        cell = c.note(record.Cell((c.note(record.Node(nodes(parts))),)))
        out = value(c, ctype, run, node.at, parts, node=cell)
        out.node = storage.load(c, out, Origin(), site.index)
        return out

    return handle


def _read(
    t: Team, m: Mask, start: Ptr, form: TextureForm, where: list[Any], site: Site
) -> list[Any]:
    """What a read of one texture gives, for each channel."""
    stored, region = _STORED[form.dtype], start.region
    assert region is not None
    step = wide = form.channels * stored.size
    sums: list[Any] = [None] * form.channels
    for index, inside, weight in form.corners(where):
        access.tell(t, m, Ptr(region, index, step, 0, start.name), step, site)
        for k in range(form.channels):
            place = Ptr(region, index, step, k * stored.size, start.name)
            found = form.number(region.load(t, m, place, stored, site, wide))
            found, wide = choose(inside, found, found.dtype.type(0)), 0
            if form.filter == "linear":
                found = choose(weight != 0, found * weight, 0.0)  # NaN counts only with a weight
                found = found if sums[k] is None else sums[k] + found
            sums[k] = found
    return [form.result(total) for total in sums]


def _wrong(form: TextureForm | None, ctype: CType, axes: int, fetch: bool) -> str:
    """Why such a call cannot read a texture; nothing if it can."""
    if form is None:
        return "that is none: it did not come from agt.texture, or is gone"
    if not fetch and form.memory == "linear":
        return "it lies in linear memory: use tex1Dfetch, or leave memory='linear' out"
    have, last = len(form.shape), form.shape[-1]
    if have != axes:
        vectors = have == axes + 1 and form.channels == 1 and last in (2, 4)
        other = f", or agt.texture(x, channels={last}) for vectors" if vectors else ""
        return f"the texture is {have}D: use tex{have}D{other}"
    if fetch and form.memory == "array":
        return "it lies in a CUDA array: use tex1D, or agt.texture(x, memory='linear')"
    wanted = np.dtype(np.float32) if form.gives_float else form.dtype, form.channels
    fits = [result for result, what in _RESULTS.items() if what == wanted]
    return "" if ctype in fits else f"a read of it gives {spelled(fits[0])}"


TABLE: dict[str, Handler] = {
    "tex1Dfetch": _reader(1, fetch=True),
    "tex1D": _reader(1),
    "tex2D": _reader(2),
    "tex3D": _reader(3),
}
