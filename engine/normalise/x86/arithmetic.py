"""Arithmetic, comparisons and choices.

    max, min         x > y ? x : y, which is what the instructions give for NaN and zeros as well
    hadd, addsub     sums of neighbours; sums and differences in turn
    vfmadd...        products and sums rounded once, masked or with an explicit rounding to the nearest
    dpps             sums of chosen products, in the order of the instruction
    round, rndscale  to integers, or to multiples of powers of two; reduce: what rounding takes away
    scalef           x 2^floor(y); getexp, getmant: the exponent as a number, and what is left
    rsqrt, rcp       the approximations of the machine: `irgrad.rsqrt`, a row of the tables
    cmp              all bits of a lane, or bits of a mask; comi: lane 0, as an integer

A scalar form (ss, sd) works on lane 0 and hands the others of its first operand on.
"""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.model import ConstInt, ConstZero, Value
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.normalise.x86.site import Recipe, Site, bits_of, lanes_of

__all__ = ["ROUNDED", "ROWS"]

_OPCODES = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_EXTREMES = {"max": "ogt", "min": "olt"}
_NEAREST = ("roundeven", "floor", "ceil", "trunc", "rint")
"""Rounding by the immediate's low bits; `rint` where it says "as the machine is set"."""


def _binary(site: Site, x: Value, y: Value) -> Value:
    """Sum, difference, product, quotient, larger or smaller, or scaled, as the name says."""
    word = next(word for word in site.name.split(".") if word in _OPCODES or word in _EXTREMES or word == "scalef")
    if word in _OPCODES:
        return site.b.binary(_OPCODES[word], x, y)
    if word == "scalef":
        return _scaled(site, x, y)
    return site.b.select(site.b.fcmp(_EXTREMES[word], x, y), x, y)


def _scaled(site: Site, x: Value, y: Value) -> Value:
    """x 2^floor(y), NaN where y is: the exponent is cut where every x has become zero or infinite."""
    low, high = site.splat(y.type, -5000.0), site.splat(y.type, 5000.0)
    below = site.b.select(site.b.fcmp("olt", y, high), y, high)
    cut = site.b.select(site.b.fcmp("ogt", below, low), below, low)
    return site.b.select(site.b.fcmp("uno", y, y), y, _times_power(site, x, site.call("llvm.floor", cut)))


def _times_power(site: Site, x: Value, power: Value) -> Value:
    numbers = ty.vector(lanes_of(x), ty.I32) if isinstance(x.type, ty.VectorType) else ty.I32
    name = f"llvm.ldexp.{type_suffix(x.type)}.{type_suffix(numbers)}"
    function = declare(site.module, name, x.type, (x.type, numbers), PURE)
    return site.b.call(function, [x, site.b.cast("fptosi", power, numbers)])


def _exponent(site: Site, x: Value) -> Value:
    """`logb`, of zero and infinity too."""
    scalar = x.type.scalar
    function = declare(site.module, "logb" if bits_of(x) == 64 else "logbf", scalar, (scalar,), PURE)
    if not isinstance(x.type, ty.VectorType):
        return site.b.call(function, [x])
    return site.lanewise(lambda i: site.b.call(function, [site.b.extractelement(x, i)]))


def _mantissa(site: Site, x: Value, immediate: int) -> Value:
    """In [1, 2), [1/2, 1) or [3/4, 3/2), by bits 1:0, with the sign of x unless bit 2 is set, NaN below zero if bit 3
    is. Zeros and infinities have a mantissa of 1."""
    size = site.call("llvm.fabs", x)
    number = site.b.binary("and", site.b.fcmp("one", size, site.splat(x.type, 0.0)),
                           site.b.fcmp("one", size, site.splat(x.type, float("inf"))))  # fmt: skip
    one, half = site.splat(x.type, 1.0), site.splat(x.type, 0.5)
    usual = site.b.select(number, x, one)
    made = site.call("llvm.fabs", _times_power(site, usual, site.b.fneg(_exponent(site, usual))))
    less = site.b.binary("fmul", made, half)
    if immediate & 3 == 2:
        made = site.b.select(number, less, made)
    elif immediate & 3 == 3:
        made = site.b.select(site.b.fcmp("oge", made, site.splat(x.type, 1.5)), less, made)
    if not immediate & 4:
        made = site.call("llvm.copysign", made, x)
    if immediate & 8:
        made = site.b.select(site.b.fcmp("olt", x, site.splat(x.type, 0.0)), site.splat(x.type, float("nan")), made)
    return site.b.select(site.b.fcmp("uno", x, x), x, made)


def _packed(site: Site) -> Value:
    return _binary(site, *site.args[:2])


def _scalar(site: Site) -> Value:
    """sse.max.ss(a, b)."""
    a, b = site.args
    return site.with_low(a, _binary(site, site.low(a), site.low(b)))


def _masked_scalar(site: Site) -> Value:
    """mask.add.sd.round(a, b, old, mask, rounding)."""
    a, b, old, mask = site.args[:4]
    made = _binary(site, site.low(a), site.low(b))
    return site.with_low(a, site.b.select(site.bit(mask), made, site.low(old)))


def _masked(site: Site) -> Value:
    """avx512.mask.scalef.pd.512(a, b, old, mask, rounding)."""
    a, b, old, mask = site.args[:4]
    return site.choose(mask, _binary(site, a, b), old)


def _horizontal(site: Site) -> Value:
    """In each 128 bits the sums of the pairs of the first operand, then of those of the second."""
    a, b = site.args
    pairs = [at + operand + i
             for at in range(0, lanes_of(a), 128 // bits_of(a))
             for operand in (0, lanes_of(a))
             for i in range(0, 128 // bits_of(a), 2)]  # fmt: skip
    opcode = "fadd" if "hadd" in site.name else "fsub"
    return site.b.binary(opcode, site.shuffle(a, b, pairs), site.shuffle(a, b, [lane + 1 for lane in pairs]))


def _in_turn(site: Site, even: Value, odd: Value) -> Value:
    count = lanes_of(even)
    return site.shuffle(even, odd, [lane + count * (lane % 2) for lane in range(count)])


def _add_and_subtract(site: Site) -> Value:
    a, b = site.args
    return _in_turn(site, site.b.binary("fsub", a, b), site.b.binary("fadd", a, b))


def _fused(site: Site) -> Value:
    return site.call("llvm.fma", *site.args[:3])


def _fused_in_turn(site: Site) -> Value:
    a, b, c = site.args[:3]
    return _in_turn(site, site.call("llvm.fma", a, b, site.b.fneg(c)), site.call("llvm.fma", a, b, c))


def _dot(site: Site) -> Value:
    """(p0 + p1) + (p2 + p3) in each 128 bits: of what the high bits of the immediate choose, to where the low ones
    say."""
    a, b = site.args[:2]
    chosen, count, width = site.number(2), lanes_of(a), 128 // bits_of(a)
    zero = ConstZero(a.type)
    products = site.shuffle(site.b.binary("fmul", a, b), zero,
                            [i if chosen >> (4 + i % width) & 1 else count for i in range(count)])  # fmt: skip
    total, step = products, 1
    while step < width:
        total = site.b.binary("fadd", total, site.shuffle(total, zero, [i ^ step for i in range(count)]))
        step *= 2
    return site.shuffle(total, zero, [i if chosen >> (i % width) & 1 else count for i in range(count)])


# -- rounding ---------------------------------------------------------------------------------------------------------


def _rounded(site: Site, x: Value, immediate: int) -> Value:
    """To the nearest multiple of 2^-m, m in the high four bits. What is so large that its product with 2^m overflows
    is a multiple."""
    word, power = _NEAREST[4 if immediate & 4 else immediate & 3], immediate >> 4
    if power == 0:
        return site.call(f"llvm.{word}", x)
    large = site.b.binary("fmul", x, site.splat(x.type, 2.0**power))
    made = site.b.binary("fmul", site.call(f"llvm.{word}", large), site.splat(x.type, 2.0**-power))
    finite = site.b.fcmp("one", site.call("llvm.fabs", large), site.splat(x.type, float("inf")))
    return site.b.select(finite, made, x)


def _function(site: Site, x: Value, immediate: int = 0) -> Value:
    """What a unary intrinsic does to a vector, or to lane 0."""
    word = next(word for word in site.name.split(".") if word in _UNARY)
    if word == "reduce":
        left = site.b.binary("fsub", x, _rounded(site, x, immediate))
        infinite = site.b.fcmp("oeq", site.call("llvm.fabs", x), site.splat(x.type, float("inf")))
        return site.b.select(infinite, site.splat(x.type, 0.0), left)
    if word in ("round", "rndscale"):
        return _rounded(site, x, immediate)
    if word in ("getexp", "getmant"):
        return _exponent(site, x) if word == "getexp" else _mantissa(site, x, immediate)
    return site.call("llvm.sqrt" if word == "sqrt" else f"irgrad.{word}", x)


_UNARY = frozenset("sqrt round rndscale reduce rsqrt rcp rsqrt14 rcp14 getexp getmant".split())


def _unary(site: Site) -> Value:
    """avx.round.pd.256(x, immediate), sse.rcp.ps(x), avx512.sqrt.pd.512(x, rounding)."""
    return _function(site, site.args[0], site.number(1) if "round" in site.name else 0)


def _unary_low(site: Site) -> Value:
    """sse.rcp.ss(x), sse41.round.sd(a, x, immediate)."""
    a, x = site.args[0], site.args[1 if len(site.args) > 1 else 0]
    return site.with_low(a, _function(site, site.low(x), site.number(2) if len(site.args) > 2 else 0))


def _unary_masked(site: Site) -> Value:
    """avx512.mask.rndscale.pd.512(x, immediate, old, mask[, sae]), avx512.rcp14.pd.512(x, old, mask)."""
    x, *rest = site.args
    immediate = isinstance(rest[0], ConstInt)
    old, mask = rest[immediate : immediate + 2]
    return site.choose(mask, _function(site, x, site.number(1) if immediate else 0), old)


def _unary_masked_low(site: Site) -> Value:
    """avx512.mask.sqrt.sd(a, x, old, mask, rounding), avx512.mask.rndscale.sd(a, x, old, mask, immediate, sae)."""
    a, x, old, mask, *rest = site.args
    made = _function(site, site.low(x), site.number(4) if len(rest) > 1 else 0)
    return site.with_low(a, site.b.select(site.bit(mask), made, site.low(old)))


def _mantissa_low(site: Site) -> Value | None:
    """avx512.mask.getmant.sd(a, x, immediate, old, mask, sae)."""
    a, x, _, old, mask = site.args[:5]
    if site.number(2) & 3 == 1:
        return None
    made = _mantissa(site, site.low(x), site.number(2))
    return site.with_low(a, site.b.select(site.bit(mask), made, site.low(old)))


def _mantissa_masked(site: Site) -> Value | None:
    """avx512.mask.getmant.pd.512(x, immediate, old, mask[, sae]); [1/2, 2) halves by a rule of its own."""
    return None if site.number(1) & 3 == 1 else _unary_masked(site)


# -- comparisons and choices ------------------------------------------------------------------------------------------

_PREDICATES = (
    "oeq olt ole uno une uge ugt ord ueq ult ule false one oge ogt true "
    "oeq olt ole uno une uge ugt ord ueq ult ule false one oge ogt true"
).split()
"""By the immediate; the second half differs only in whether a quiet NaN raises a flag."""
_COMI = {"eq": "oeq", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "neq": "une"}


def _all_bits(site: Site, flags: Value, like: ty.Type) -> Value:
    """All bits of a float where the flag is set, none elsewhere."""
    scalar = like.scalar
    assert isinstance(scalar, ty.FloatType)
    lane = ty.int_(scalar.bits)
    wide = ty.vector(like.count, lane) if isinstance(like, ty.VectorType) else lane
    return site.b.cast("bitcast", site.b.cast("sext", flags, wide), like)


def _compare(site: Site) -> Value:
    a, b = site.args[:2]
    return _all_bits(site, site.b.fcmp(_PREDICATES[site.number(2) & 31], a, b), a.type)


def _compare_low(site: Site) -> Value:
    a, b = site.args[:2]
    flag = site.b.fcmp(_PREDICATES[site.number(2) & 31], site.low(a), site.low(b))
    return site.with_low(a, _all_bits(site, flag, a.type.scalar))


def _compare_to_mask(site: Site) -> Value:
    """avx512.mask.cmp.pd.512(a, b, immediate, mask[, sae]) -> <8 x i1>, avx512.mask.cmp.sd(...) -> i8."""
    a, b, mask = site.args[0], site.args[1], site.args[3]
    predicate = _PREDICATES[site.number(2) & 31]
    if isinstance(site.type, ty.IntType):
        flag = site.b.binary("and", site.b.fcmp(predicate, site.low(a), site.low(b)), site.bit(mask))
        return site.b.cast("zext", flag, site.type)
    return site.b.binary("and", site.b.fcmp(predicate, a, b), mask)


def _compare_to_integer(site: Site) -> Value:
    """sse2.ucomilt.sd(a, b)."""
    a, b = site.args
    word = site.name.split(".")[1].removeprefix("u").removeprefix("comi")
    return site.b.cast("zext", site.b.fcmp(_COMI[word], site.low(a), site.low(b)), site.type)


def _compare_by_number(site: Site) -> Value:
    """avx512.vcomi.sd(a, b, immediate, sae)."""
    a, b = site.args[:2]
    flag = site.b.fcmp(_PREDICATES[site.number(2) & 31], site.low(a), site.low(b))
    return site.b.cast("zext", flag, site.type)


def _sign_bits(site: Site) -> Value:
    """movmsk."""
    return site.b.cast("zext", site.packed_bits(site.signs(site.args[0])), site.type)


def _test(site: Site) -> Value:
    """ptest of all bits, vtest of the sign bits: z: no bit of both; c: none of the second alone; nzc: some of each."""
    a, b = site.args
    word = site.name.split(".")[1]
    if word.startswith("vtest"):
        a, b = site.packed_bits(site.signs(a)), site.packed_bits(site.signs(b))
    else:
        whole = ty.int_(lanes_of(a) * bits_of(a))
        a, b = site.b.cast("bitcast", a, whole), site.b.cast("bitcast", b, whole)
    others = site.b.binary("xor", a, ConstInt(a.type, -1))
    zero = ConstInt(a.type, 0)
    way = "ne" if word.endswith("nzc") else "eq"
    both = site.b.icmp(way, site.b.binary("and", a, b), zero)
    second = site.b.icmp(way, site.b.binary("and", others, b), zero)
    flag = site.b.binary("and", both, second) if way == "ne" else both if word.endswith("z") else second
    return site.b.cast("zext", flag, site.type)


def _blend(site: Site) -> Value:
    a, b, mask = site.args
    return site.b.select(site.signs(mask), b, a)


ROWS: dict[str, Recipe] = {
    r"(?:sse2?|avx)\.(?:max|min)\.p[sd](?:\.256)?": _packed,
    r"sse2?\.(?:max|min)\.s[sd]": _scalar,
    r"(?:sse3|avx)\.(?:hadd|hsub)\.p[sd](?:\.256)?": _horizontal,
    r"(?:sse3|avx)\.addsub\.p[sd](?:\.256)?": _add_and_subtract,
    r"fma\.vfmaddsub\.p[sd](?:\.256)?": _fused_in_turn,
    r"sse41\.dpp[sd]|avx\.dp\.ps\.256": _dot,
    r"(?:sse41|avx)\.round\.p[sd](?:\.256)?": _unary,
    r"sse41\.round\.s[sd]": _unary_low,
    r"(?:sse|avx)\.(?:rsqrt|rcp)\.ps(?:\.256)?": _unary,
    r"sse\.(?:rsqrt|rcp)\.ss": _unary_low,
    r"avx512\.(?:rsqrt14|rcp14)\.p[sd]\.\d+": _unary_masked,
    r"avx512\.(?:rsqrt14|rcp14)\.s[sd]": _unary_masked_low,
    r"(?:sse2?|avx)\.cmp\.p[sd](?:\.256)?": _compare,
    r"sse2?\.cmp\.s[sd]": _compare_low,
    r"sse2?\.u?comi\w+\.s[sd]": _compare_to_integer,
    r"(?:sse2?|avx)\.movmsk\.p[sd](?:\.256)?": _sign_bits,
    r"(?:sse41|avx)\.ptest\w+(?:\.256)?|avx\.vtest\w+\.p[sd](?:\.256)?": _test,
    r"sse41\.blendvp[sd]|avx\.blendv\.p[sd]\.256": _blend,
    r"avx512\.mask\.(?:rndscale|reduce|getexp)\.p[sd]\.(?:128|256)": _unary_masked,
    r"avx512\.mask\.getmant\.p[sd]\.(?:128|256)": _mantissa_masked,
    r"avx512\.mask\.cmp\.p[sd]\.(?:128|256)": _compare_to_mask,
    r"avx512\.mask\.scalef\.p[sd]\.(?:128|256)": _masked,
}
"""Names as regular expressions -> what they do."""

ROUNDED: dict[str, Recipe] = {
    r"avx512\.(?:add|sub|mul|div|max|min)\.p[sd]\.512": _packed,
    r"avx512\.mask\.(?:add|sub|mul|div|max|min)\.s[sd]\.round": _masked_scalar,
    r"avx512\.mask\.scalef\.s[sd]": _masked_scalar,
    r"avx512\.mask\.scalef\.p[sd]\.512": _masked,
    r"avx512\.vfmadd\.(?:p[sd]\.512|f32|f64)": _fused,
    r"avx512\.vfmaddsub\.p[sd]\.512": _fused_in_turn,
    r"avx512\.sqrt\.p[sd]\.512": _unary,
    r"avx512\.mask\.(?:rndscale|reduce|getexp)\.p[sd]\.512": _unary_masked,
    r"avx512\.mask\.getmant\.p[sd]\.512": _mantissa_masked,
    r"avx512\.mask\.(?:sqrt|rndscale|reduce|getexp)\.s[sd]": _unary_masked_low,
    r"avx512\.mask\.getmant\.s[sd]": _mantissa_low,
    r"avx512\.mask\.cmp\.(?:p[sd]\.512|s[sd])": _compare_to_mask,
    r"avx512\.vcomi\.s[sd]": _compare_by_number,
}
"""The same for those whose last operand is a rounding."""
