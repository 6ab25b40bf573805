"""Float arithmetic: LLVM's opcodes, and the functions that are the same kind of operation."""

from __future__ import annotations

from irgrad.rules.expressions.functions import ldexp, rint, scalbln
from irgrad.rules.expressions.row import Family, Kink

family = Family()
row = family.define

row("fneg", "f", lambda x, y: -1.0, linear=True, opcode="fneg", libm="", work=1)
row("fadd", "ff", lambda a, b, y: (1.0, 1.0), linear=True, opcode="fadd", libm="", work=1,
    llvm="experimental.constrained.fadd")  # fmt: skip
row("fsub", "ff", lambda a, b, y: (1.0, -1.0), linear=True, opcode="fsub", libm="", work=1,
    llvm="experimental.constrained.fsub")  # fmt: skip
row("fmul", "ff", lambda a, b, y: (b, a), opcode="fmul", libm="", work=1, llvm="experimental.constrained.fmul")
# a b, and 0 wherever a is 0: products of derivative code with a zero that stands for "does not depend". It is made a
# comparison and a product when machine code is made, so that derivatives of it know that the tangent of a zero need not
# be zero. `strong_mul_both`: 0 wherever b is 0 as well, unless a is NaN.
row("strong_mul", "ff", lambda a, b, y: (b, a), libm="", work=1, llvm="irgrad.strong_mul")
row("strong_mul_both", "ff", lambda a, b, y: (b, a), libm="", work=1, llvm="irgrad.strong_mul_both")
# d(a/b)/db = -a/b^2 = -y/b, which does not form b^2 and so cannot overflow on the way
row("fdiv", "ff", lambda a, b, y: (1.0 / b, -(y / b)), opcode="fdiv", libm="", work=4,
    llvm="experimental.constrained.fdiv", domain=[(-3, 3), (0.3, 3)])  # fmt: skip
# a = n b + y with an integer n: (a - y)/b is n up to rounding, which rint removes. Truncating a/b could miss by one.
row("fmod", "ff", lambda a, b, y: (1.0, -rint((a - y) / b)), opcode="frem",
    llvm="experimental.constrained.frem", domain=[(-9, 9), (0.7, 2)],
    kinks=[Kink((6.0, 2.0), (1.0, -3.0), "on a jump, the piece that the value belongs to")])  # fmt: skip
row("remainder", "ff", lambda a, b, y: (1.0, -rint((a - y) / b)), libm="remainder drem",
    domain=[(-9, 9), (0.7, 2)])  # fmt: skip
row("fma", "fff", lambda a, b, c, y: (b, a, 1.0),
    llvm="fma fmuladd experimental.constrained.fma experimental.constrained.fmuladd")  # fmt: skip
row("ldexp", "fi", lambda x, n, y: ldexp(1.0, n), libm="ldexp scalbn", llvm="ldexp experimental.constrained.ldexp",
    linear=True, lanewise=False, domain=[(-3, 3), (-5, 5)])  # fmt: skip
row("scalbln", "fi", lambda x, n, y: scalbln(1.0, n), linear=True, domain=[(-3, 3), (-5, 5)])
row("identity", "f", lambda x, y: 1.0, linear=True, libm="", work=1, llvm="canonicalize arithmetic.fence ssa.copy")
