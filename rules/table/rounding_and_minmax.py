"""Absolute value, sign, minimum and maximum, rounding, and functions whose derivative is zero."""

from __future__ import annotations

from irgrad.rules.expressions.expr import ZERO, Expr
from irgrad.rules.expressions.functions import copysign, eq, where
from irgrad.rules.expressions.row import Family, Kink

family = Family()
row = family.define

row("fabs", "f", lambda x, y: where(eq(x, 0.0), 0.0, copysign(1.0, x)), llvm="fabs",
    kinks=[Kink((0.0,), (0.0,), "the smallest subgradient; the mean of both sides"),
           Kink((-0.0,), (0.0,), "the sign of zero does not matter")])  # fmt: skip


def _copysign(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    """|a| with the sign of b: as fabs in a, locally constant in b."""
    return where(eq(a, 0.0), 0.0, copysign(1.0, a) * copysign(1.0, b)), ZERO


row("copysign", "ff", _copysign, llvm="copysign", domain=(-3, 3),
    kinks=[Kink((0.0, 1.0), (0.0, 0.0), "as fabs")])  # fmt: skip


def _chosen(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    """The argument that the result equals has derivative 1; a tie goes to the first. One comparison serves both, and
    a NaN argument that the function passes over is not chosen, since NaN equals nothing. The result does not depend on
    the other argument at all: its zero is structural, and sqrt(fmax(v, 0)) has the slope 0 for v < 0."""
    first = eq(y, a)
    return where(first, 1.0, ZERO), where(first, ZERO, 1.0)


_TIE = [Kink((1.0, 1.0), (1.0, 0.0), "a tie goes to the first argument, as in `a >= b ? a : b`")]
row("fmax", "ff", _chosen, kinks=_TIE, llvm="maxnum maximumnum experimental.constrained.maxnum",
    libm="fmax fmaximum_num")  # fmt: skip
row("fmin", "ff", _chosen, kinks=_TIE, llvm="minnum minimumnum experimental.constrained.minnum",
    libm="fmin fminimum_num")  # fmt: skip
row("maximum", "ff", _chosen, kinks=_TIE, libm="fmaximum", llvm="maximum experimental.constrained.maximum")
row("minimum", "ff", _chosen, kinks=_TIE, libm="fminimum", llvm="minimum experimental.constrained.minimum")


def _fdim(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    above = a > b
    return where(above, 1.0, ZERO), where(above, -1.0, ZERO)


row("fdim", "ff", _fdim, kinks=[Kink((1.0, 1.0), (0.0, 0.0), "the smallest subgradient")])

# Piecewise constant: zero everywhere, on the jumps too.
for _name in ("floor", "ceil", "trunc", "round", "roundeven", "rint", "nearbyint"):
    row(_name, "f", lambda x, y: ZERO, work=2, llvm=f"{_name} experimental.constrained.{_name}")
row("logb", "f", lambda x, y: ZERO, domain=(0.3, 9))
row("significand", "f", lambda x, y: where(eq(x, 0.0), 1.0, y / x), domain=(0.3, 9))
# The neighbour of x moves with x.
row("nextafter", "ff", lambda a, b, y: (1.0, ZERO), libm="nextafter nexttoward")

# Floats in, integer or nothing out: no float result, so no partials.
row("to_integer", "f", lambda x: None, outputs=(), libm="lround llround lrint llrint ilogb llogb",
    llvm="lround llround lrint llrint fptosi.sat fptoui.sat is.fpclass "
         + " ".join(f"x86.{sse}.cvt{t}{s}2si{bits}" for sse, s in (("sse", "ss"), ("sse2", "sd")) for t in ("", "t")
                    for bits in ("", "64"))
         + " x86.sse2.cvtps2dq x86.sse2.cvttps2dq x86.sse2.cvtpd2dq x86.sse2.cvttpd2dq x86.avx.cvt.ps2dq.256 "
         "x86.avx.cvtt.ps2dq.256 x86.avx.cvt.pd2dq.256 x86.avx.cvtt.pd2dq.256 x86.avx512.mask.fpclass.ss "
         "x86.avx512.mask.fpclass.sd "
         + " ".join(f"x86.avx512.fpclass.p{s}.{bits}" for s in "sd" for bits in (128, 256, 512)))  # fmt: skip
row("classify", "f", lambda x: None, outputs=(), libm="",
    exact=[(f"{name}{suffix}", dtype)
           for name in ("__isnan", "__isinf", "__finite", "__signbit", "__fpclassify", "__issignaling", "isnan",
                        "isinf", "finite")
           for suffix, dtype in (("", "f64"), ("f", "f32"), ("l", "f80"))])  # fmt: skip
