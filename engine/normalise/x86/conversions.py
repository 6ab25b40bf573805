"""Conversions between floats of two widths, from integers, and to integers.

Lanes of the result for which there is no operand are zero. A float that no integer equals becomes the "indefinite"
integer: all bits set for unsigned ones, only the highest for others. Conversions to integers of SSE and AVX stay the
one instruction that they are: they have no derivative (`rules/table/rounding_and_minmax.py`).
"""

from __future__ import annotations

import re

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value
from irgrad.engine.normalise.x86.site import Recipe, Site, bits_of, lanes_of

__all__ = ["ROUNDED", "ROWS"]


def _to_float(site: Site, x: Value, type_: ty.Type) -> Value:
    """The lanes (or the number) in another float type."""
    scalar = type_.scalar
    target = ty.vector(lanes_of(x), scalar) if isinstance(x.type, ty.VectorType) else scalar
    if not x.type.is_fp:
        return site.b.cast("uitofp" if re.search(r"uitofp|cvtu", site.name) else "sitofp", x, target)
    assert isinstance(scalar, ty.FloatType)
    return site.b.cast("fptrunc" if bits_of(x) > scalar.bits else "fpext", x, target)


def _packed(site: Site) -> Value:
    """sse2.cvtpd2ps(x), avx512.sitofp.round(x, rounding)."""
    assert isinstance(site.type, ty.VectorType)
    return site.first(_to_float(site, site.args[0], site.type), site.type.count)


def _masked(site: Site) -> Value:
    """avx512.mask.cvtpd2ps.512(x, old, mask, rounding)."""
    x, old, mask = site.args[:3]
    made = _to_float(site, x, site.type)
    few = site.choose(mask, made, site.first(old, lanes_of(made)))
    return site.first(few, lanes_of(old))


def _low(site: Site) -> Value:
    """sse2.cvtsd2ss(a, x), avx512.cvtsi2sd64(a, number, rounding)."""
    a, x = site.args[:2]
    number = site.low(x) if isinstance(x.type, ty.VectorType) else x
    return site.with_low(a, _to_float(site, number, site.type))


def _masked_low(site: Site) -> Value:
    """avx512.mask.cvtsd2ss.round(a, x, old, mask, rounding)."""
    a, x, old, mask = site.args[:4]
    made = _to_float(site, site.low(x), site.type)
    return site.with_low(a, site.b.select(site.bit(mask), made, site.low(old)))


# -- to integers ------------------------------------------------------------------------------------------------------


def _to_integer(site: Site, x: Value, scalar: ty.Type) -> Value:
    """The lanes (or the number) as integers, truncated where the name has a second t."""
    assert isinstance(scalar, ty.IntType)
    unsigned = re.search(r"2u(?:si|dq|qq)", site.name) is not None
    whole = x if "cvtt" in site.name else site.call("llvm.rint", x)
    type_ = ty.vector(lanes_of(x), scalar) if isinstance(x.type, ty.VectorType) else scalar
    # in a float type that holds the bounds: truncation makes of -1 + e an unsigned 0
    low, high = (-1.0, 2.0**scalar.bits) if unsigned else (-(2.0 ** (scalar.bits - 1)), 2.0 ** (scalar.bits - 1))
    above = site.b.fcmp("ogt" if unsigned else "oge", whole, site.splat(x.type, low))
    inside = site.b.binary("and", above, site.b.fcmp("olt", whole, site.splat(x.type, high)))
    made = site.b.cast("fptoui" if unsigned else "fptosi", whole, type_)
    indefinite = -1 if unsigned else -(1 << (scalar.bits - 1))
    return site.b.select(inside, made, site.splat(type_, indefinite))


def _masked_integers(site: Site) -> Value:
    """avx512.mask.cvttpd2qq.512(x, old, mask[, rounding])."""
    x, old, mask = site.args[:3]
    assert isinstance(site.type, ty.VectorType)
    made = _to_integer(site, x, site.type.elem)
    count = min(lanes_of(made), lanes_of(old))
    few = site.choose(mask, site.first(made, count), site.first(old, count))
    return site.first(few, lanes_of(old))


def _integer(site: Site) -> Value:
    """sse2.cvttsd2si64(x), avx512.vcvtsd2usi32(x, rounding)."""
    return _to_integer(site, site.low(site.args[0]), site.type)


# -- halves -----------------------------------------------------------------------------------------------------------


def _halves(site: Site) -> Value | None:
    """vcvtps2ph.128(x, immediate), avx512.mask.vcvtps2ph.512(x, immediate, old, mask)."""
    x, _, *rest = site.args
    if site.number(1) & 3 and not site.number(1) & 4:
        return None  # towards one side
    narrow = site.b.cast("fptrunc", x, ty.vector(lanes_of(x), ty.float_("half")))
    made = site.integers(narrow)
    if rest:
        made = site.choose(rest[1], made, site.first(rest[0], lanes_of(made)))
    assert isinstance(site.type, ty.VectorType)
    return site.first(made, site.type.count)


def _from_halves(site: Site) -> Value:
    """avx512.mask.vcvtph2ps.512(x, old, mask, sae)."""
    x, old, mask = site.args[:3]
    halves = site.b.cast("bitcast", x, ty.vector(lanes_of(x), ty.float_("half")))
    return site.choose(mask, site.b.cast("fpext", halves, old.type), old)



ROWS: dict[str, Recipe] = {
    r"sse2\.cvtpd2ps|avx\.cvt\.pd2\.ps\.256": _packed,
    r"sse2\.cvtsd2ss": _low,
    r"avx512\.mask\.(?:cvtpd2ps|cvtu?qq2ps\.128)": _masked,
    r"avx512\.mask\.cvtt?p[sd]2u?(?:dq|qq)\.(?:128|256)": _masked_integers,
    r"vcvtps2ph\.(?:128|256)|avx512\.mask\.vcvtps2ph\.\d+": _halves,
}
"""Names as regular expressions -> what they do."""

ROUNDED: dict[str, Recipe] = {
    r"avx512\.[su]itofp\.round\.\w+\.\w+": _packed,
    r"avx512\.cvtu?si(?:64)?2s[sd](?:32|64)?": _low,
    r"avx512\.mask\.(?:cvtpd2ps|cvtps2pd)\.512": _masked,
    r"avx512\.mask\.(?:cvtsd2ss|cvtss2sd)\.round": _masked_low,
    r"avx512\.mask\.cvtt?p[sd]2u?(?:dq|qq)\.512": _masked_integers,
    r"avx512\.(?:vcvt|cvtt)s[sd]2u?si(?:32|64)?": _integer,
    r"avx512\.mask\.vcvtph2ps\.512": _from_halves,
}
"""The same for those whose last operand is a rounding."""
