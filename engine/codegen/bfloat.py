"""Conversions to bfloat16 for processors that have none: LLVM calls functions which libgcc and libc do not provide.

Rounding is to nearest, ties to even. From double, the value is first rounded to odd in single precision, so that it is
rounded once and not twice.
"""

from __future__ import annotations

__all__ = ["BFLOAT_SYMBOLS", "BFLOAT_TEXT"]

BFLOAT_SYMBOLS = frozenset(("__truncsfbf2", "__truncdfbf2"))

BFLOAT_TEXT = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %up = add i32 %bits, %half
  %rounded = lshr i32 %up, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, %x
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %chosen to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

define bfloat @__truncdfbf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %bits = bitcast float %near to i32
  %last = and i32 %bits, 1
  %even = icmp eq i32 %last, 0
  %turn = and i1 %inexact, %even
  %ax = call double @llvm.fabs.f64(double %x)
  %aback = call double @llvm.fabs.f64(double %back)
  %small = fcmp olt double %aback, %ax
  %step = select i1 %small, i32 1, i32 -1
  %moved = add i32 %bits, %step
  %chosen = select i1 %turn, i32 %moved, i32 %bits
  %odd = bitcast i32 %chosen to float
  %result = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %result
}

declare double @llvm.fabs.f64(double)
"""
