"""Lanes that move: to places that other operands say, packed together, or from and to memory.

    vpermilvar, permvar, vpermi2var    lane i is the one that index i names: in its 128 bits, in all, in two vectors
    insertps                           one lane of the second vector to one of the first, others cleared
    compress, expand                   the lanes that a mask wants, one behind the other, and back
    maskload, maskstore                `llvm.masked`, under sign bits
    gather, scatter                    `llvm.masked`, at a base and scaled indices
"""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.intrinsics import type_suffix
from irgrad.engine.ir.model import ConstInt, ConstZero, Instruction, Value
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.normalise.x86.site import Recipe, Site, bits_of, lanes_of

__all__ = ["ROWS"]


def _index(site: Site, indices: Value, lane: int, count: int, shift: int = 0) -> Value:
    """Operand `lane` of the indices, as a lane number below `count`, a power of two."""
    wide = site.b.to_i64(site.b.extractelement(indices, lane), signed=False)
    if shift:
        wide = site.b.binary("lshr", wide, ConstInt(ty.I64, shift))
    return site.b.binary("and", wide, ConstInt(ty.I64, count - 1))


def _permute_in_parts(site: Site) -> Value:
    """vpermilvar(x, indices): inside each 128 bits; of doubles bit 1 of an index counts."""
    x, indices = site.args
    width = 128 // bits_of(x)

    def lane(i: int) -> Value:
        at = _index(site, indices, i, width, shift=bits_of(x) == 64)
        return site.b.extractelement(x, site.b.add(at, ConstInt(ty.I64, i - i % width)))

    return site.lanewise(lane)


def _permute(site: Site) -> Value:
    """permvar(x, indices)."""
    x, indices = site.args
    return site.lanewise(lambda i: site.b.extractelement(x, _index(site, indices, i, lanes_of(x))))


def _permute_two(site: Site) -> Value:
    """vpermi2var(a, indices, b)."""
    a, indices, b = site.args
    count = lanes_of(a)
    both = site.shuffle(a, b, range(2 * count))
    return site.lanewise(lambda i: site.b.extractelement(both, _index(site, indices, i, 2 * count)))


def _insert(site: Site) -> Value:
    """insertps(a, b, immediate): from lane 7:6 to lane 5:4; bits 3:0 clear."""
    a, b = site.args[:2]
    word = site.number(2)
    moved = site.shuffle(a, b, [4 + (word >> 6) if lane == word >> 4 & 3 else lane for lane in range(4)])
    return site.shuffle(moved, ConstZero(a.type), [4 if word >> lane & 1 else lane for lane in range(4)])


def _compress(site: Site) -> Value:
    """mask.compress(x, old, mask)."""
    x, whole, mask = site.args
    at: Value = ConstInt(ty.I64, 0)
    for lane in range(lanes_of(x)):
        wanted = site.b.extractelement(mask, lane)
        more = site.b.insertelement(whole, site.b.extractelement(x, lane), at)
        whole = site.b.select(wanted, more, whole)
        at = site.b.add(at, site.b.cast("zext", wanted, ty.I64))
    return whole


def _expand(site: Site) -> Value:
    """mask.expand(x, old, mask)."""
    x, old, mask = site.args
    at: Value = ConstInt(ty.I64, 0)
    whole = old
    for lane in range(lanes_of(x)):
        wanted = site.b.extractelement(mask, lane)
        place = site.b.binary("and", at, ConstInt(ty.I64, lanes_of(x) - 1))
        part = site.b.select(wanted, site.b.extractelement(x, place), site.b.extractelement(old, lane))
        whole = site.b.insertelement(whole, part, lane)
        at = site.b.add(at, site.b.cast("zext", wanted, ty.I64))
    return whole


# -- memory -----------------------------------------------------------------------------------------------------------


def _masked(site: Site, kind: str, pointer: Value, mask: Value, value: Value) -> Value:
    """A call of `llvm.masked.KIND`: loads stand `value` in where the mask is off. Nothing is known of alignments."""
    spread = "v" + str(lanes_of(value)) if isinstance(pointer.type, ty.VectorType) else ""
    stores = kind in ("store", "scatter")
    args = [value, pointer, mask] if stores else [pointer, mask, value]
    returns = ty.VOID if stores else value.type
    name = f"llvm.masked.{kind}.{type_suffix(value.type)}.{spread}p0"
    return site.b.call(declare(site.module, name, returns, tuple(a.type for a in args)), args)


def _unaligned(site: Site) -> Value:
    """ldu.dq(p)."""
    return site.b.load(site.type, site.args[0], align=1)


def _mask_load(site: Site) -> Value:
    pointer, mask = site.args
    return _masked(site, "load", pointer, site.signs(mask), ConstZero(site.type))


def _mask_store(site: Site) -> None:
    pointer, mask, value = site.args
    _masked(site, "store", pointer, site.signs(mask), value)


def _addresses(site: Site, base: Value, indices: Value, count: int, scale: int) -> Value:
    """base + index * scale for the first lanes."""
    wide = ty.vector(count, ty.I64)
    few = site.b.cast("sext", site.first(indices, count), wide)
    offsets = few if scale == 1 else site.b.binary("mul", few, site.splat(wide, scale))
    return site.b.insert(Instruction("getelementptr", ty.vector(count, ty.PTR), [base, offsets], elem=ty.I8))


def _gather(site: Site) -> Value:
    """gather(old, base, indices, mask, scale); lanes without an index are zero."""
    old, base, indices, mask = site.args[:4]
    count = min(lanes_of(old), lanes_of(indices))
    bits = site.signs(mask) if not _is_mask(mask) else mask
    at = _addresses(site, base, indices, count, site.number(4))
    made = _masked(site, "gather", at, site.mask(bits, count), site.first(old, count))
    return site.first(made, lanes_of(old))


def _is_mask(value: Value) -> bool:
    return value.type.is_int or value.type.scalar is ty.I1


def _scatter(site: Site) -> None:
    """scatter(base, mask, indices, value, scale)."""
    base, mask, indices, value = site.args[:4]
    count = min(lanes_of(value), lanes_of(indices))
    at = _addresses(site, base, indices, count, site.number(4))
    _masked(site, "scatter", at, site.mask(mask, count), site.first(value, count))


ROWS: dict[str, Recipe] = {
    r"avx\.vpermilvar\.p[sd](?:\.256)?|avx512\.vpermilvar\.p[sd]\.512": _permute_in_parts,
    r"avx2\.perm(?:d|ps)|avx512\.permvar\.(?:df|di|sf|si)\.(?:256|512)": _permute,
    r"avx512\.vpermi2var\.(?:pd|ps|d|q)\.\d+": _permute_two,
    r"sse41\.insertps": _insert,
    r"avx512\.mask\.compress\.\w+": _compress,
    r"avx512\.mask\.expand\.\w+": _expand,
    r"sse3\.ldu\.dq|avx\.ldu\.dq\.256": _unaligned,
    r"avx\.maskload\.p[sd](?:\.256)?|avx2\.maskload\.[dq](?:\.256)?": _mask_load,
    r"avx\.maskstore\.p[sd](?:\.256)?|avx2\.maskstore\.[dq](?:\.256)?": _mask_store,
    r"avx2\.gather\.[dq]\.(?:pd|ps|d|q)(?:\.256)?": _gather,
    r"avx512\.(?:mask\.)?gather\w*\.\w+(?:\.512)?": _gather,
    r"avx512\.(?:mask\.)?scatter\w*\.\w+(?:\.512)?": _scatter,
}
"""Names as regular expressions -> what they do."""
