"""Floats that are moved and masked in vectors of integers: the same bits come out, and derivatives go through."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reinterpret.packed import unpack

BYTES = ", ".join(f"i32 {i}" for i in range(8)) + ", i32 poison" * 8
GROUPED = ", ".join(f"i32 {i}" for i in (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23))
ABS, SIGN = "splat (i64 9223372036854775807)", "splat (i64 -9223372036854775808)"
PAIR = """  %v0 = insertelement <2 x double> poison, double %x, i64 0
  %v = insertelement <2 x double> %v0, double %y, i64 1
  %i = bitcast <2 x double> %v to <2 x i64>
"""
DOWN = """  %w = bitcast <2 x i64> %o to <2 x double>
  %p = extractelement <2 x double> %w, i64 0
  %q = extractelement <2 x double> %w, i64 1
  %d = fmul double %q, 3.0
  %r = fadd double %p, %d
  ret double %r
"""
MASK = """  %less = fcmp olt <2 x double> %v, <double 0.5, double 0.75>
  %m = sext <2 x i1> %less to <2 x i64>
  %n = xor <2 x i64> %m, splat (i64 -1)
"""
STRUCT = f"""  %b = bitcast double %x to <8 x i8>
  %e = shufflevector <8 x i8> %b, <8 x i8> poison, <16 x i32> <{BYTES}>
  %k = zext i1 %c to i8
  %f = insertelement <16 x i8> %e, i8 %k, i64 8
"""
CASES = {
    "a struct of a double and a bool": STRUCT + """  %w = bitcast <16 x i8> %f to <2 x double>
  %p = extractelement <2 x double> %w, i64 0
  %r = fmul double %p, %y
  ret double %r
""",
    "its copy in both arms of a branch": STRUCT + """  br i1 %c, label %then, label %end
then:
  %g = insertelement <16 x i8> %f, i8 7, i64 9
  br label %end
end:
  %at = phi <16 x i8> [ %f, %0 ], [ %g, %then ]
  %w = bitcast <16 x i8> %at to <2 x double>
  %p = extractelement <2 x double> %w, i64 0
  %r = fmul double %p, %y
  ret double %r
""",
    "one of two structs": STRUCT + f"""  %b2 = bitcast double %y to <8 x i8>
  %e2 = shufflevector <8 x i8> %b2, <8 x i8> poison, <16 x i32> <{BYTES}>
  %s = select i1 %c, <16 x i8> %f, <16 x i8> %e2
  %h = shufflevector <16 x i8> %s, <16 x i8> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %p = bitcast <8 x i8> %h to double
  %r = fmul double %p, %p
  ret double %r
""",
    "two doubles put together": STRUCT + f"""  %b2 = bitcast double %y to <8 x i8>
  %e2 = shufflevector <8 x i8> %b2, <8 x i8> poison, <16 x i32> <{BYTES}>
  %s = shufflevector <16 x i8> %f, <16 x i8> %e2, <16 x i32> <{GROUPED}>
  %o = bitcast <16 x i8> %s to <2 x i64>
""" + DOWN,
    "singles": """  %a = fptrunc double %x to float
  %b = fptrunc double %y to float
  %i = bitcast float %a to i32
  %j = bitcast float %b to i32
  %v = insertelement <2 x i32> poison, i32 %j, i64 0
  %w = insertelement <2 x i32> %v, i32 %i, i64 1
  %s = shufflevector <2 x i32> %w, <2 x i32> poison, <2 x i32> <i32 1, i32 1>
  %f = bitcast <2 x i32> %s to <2 x float>
  %p = extractelement <2 x float> %f, i64 0
  %q = fpext float %p to double
  %r = fmul double %q, %y
  ret double %r
""",
    "a lane taken out": PAIR + """  %s = shufflevector <2 x i64> %i, <2 x i64> poison, <2 x i32> <i32 1, i32 0>
  %o = extractelement <2 x i64> %s, i64 0
  %p = bitcast i64 %o to double
  %r = fmul double %p, %x
  ret double %r
""",
    "absolute values": PAIR + f"  %o = and <2 x i64> %i, {ABS}\n" + DOWN,
    "negated": PAIR + f"  %o = xor <2 x i64> %i, {SIGN}\n" + DOWN,
    "negative": PAIR + f"  %o = or <2 x i64> %i, {SIGN}\n" + DOWN,
    "one negated": PAIR + "  %o = xor <2 x i64> %i, <i64 -9223372036854775808, i64 0>\n" + DOWN,
    "one negative": PAIR + "  %o = or <2 x i64> %i, <i64 0, i64 -9223372036854775808>\n" + DOWN,
    "one absolute value": PAIR + "  %o = and <2 x i64> %i, <i64 -1, i64 9223372036854775807>\n" + DOWN,
    "one kept": PAIR + "  %o = and <2 x i64> <i64 0, i64 -1>, %i\n" + DOWN,
    "kept by a mask": PAIR + MASK + "  %o = and <2 x i64> %m, %i\n" + DOWN,
    "kept by the opposite": PAIR + MASK + "  %o = and <2 x i64> %i, %n\n" + DOWN,
    "chosen": PAIR + MASK + f"""  %t = xor <2 x i64> %i, {SIGN}
  %k = and <2 x i64> %t, %m
  %l = and <2 x i64> %n, %i
  %o = or <2 x i64> %l, %k
""" + DOWN,
    "signs of another": PAIR + f"""  %s = shufflevector <2 x i64> %i, <2 x i64> poison, <2 x i32> <i32 1, i32 0>
  %k = and <2 x i64> %i, {ABS}
  %l = and <2 x i64> {SIGN}, %s
  %o = or disjoint <2 x i64> %k, %l
""" + DOWN,
}  # fmt: skip


def _text(body: str) -> str:
    return f"define double @f(double %x, double %y, i1 %c) {{\n{body}}}\n"


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits(name: str) -> None:
    """Against LLVM's own reading of the program; and nothing is left that makes floats of integers."""
    module = read(_text(CASES[name]))
    assert unpack(module, module.functions["f"])
    text = to_text(module)
    used = {o for i in module.functions["f"].instructions() for o in i.operands}
    left = [i for i in module.functions["f"].instructions() if i.opcode == "bitcast" and i.type.is_fp and i in used]
    assert not [i for i in left if i.operands[0].type.is_vector], text
    kinds = ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_bool
    old, new = (compile_module(t, ["f"], cache=False).function("f", *kinds) for t in (_text(CASES[name]), text))
    numbers = (-2.5, -0.0, 0.0, 0.6, 3.25, math.inf, math.nan)
    for x, y, c in itertools.product(numbers, numbers, (False, True)):
        a, b = old(x, y, c), new(x, y, c)
        same = np.float64(a).tobytes() == np.float64(b).tobytes() or (math.isnan(a) and math.isnan(b))
        assert same, (x, y, c)  # which operand's sign a product that is no number has, LLVM may choose


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    kernel: Any = ig.load(_text(CASES[name]), language="ll", preopt=False).kernel("f")
    step = 1e-2 if name == "singles" else 1e-4
    for x, y, c in itertools.product((0.3, -1.25), (0.625, -0.875), (0, 1)):
        want = [
            (kernel(x + step, y, c) - kernel(x - step, y, c)) / (2 * step),
            (kernel(x, y + step, c) - kernel(x, y - step, c)) / (2 * step),
        ]
        got = ig.engine.grad(kernel, argnums=(0, 1))(x, y, c)
        assert got == pytest.approx(want, rel=2e-5 if name == "singles" else 1e-9, abs=1e-9)
        forward = [ig.engine.jvp(kernel, (x, y, c), (1.0 - i, float(i), None))[1] for i in (0, 1)]
        assert forward == pytest.approx(list(got), rel=1e-12)


HALVES = """  %b = bitcast double %x to <2 x i32>
  %s = shufflevector <2 x i32> %b, <2 x i32> poison, <2 x i32> <i32 1, i32 0>
  %p = bitcast <2 x i32> %s to double
  %r = fmul double %p, %y
  ret double %r
"""
ODD = PAIR + "  %o = and <2 x i64> %i, <i64 -1, i64 -281474976710656>\n" + DOWN
"""Four bits of a significand are an index."""


@pytest.mark.parametrize(("body", "words"), [
    (HALVES, "an active float is taken apart in a vector of integers"),
    (ODD, "a mask takes bits of an active float apart"),
])  # fmt: skip
def test_floats_that_are_taken_apart_are_refused(body: str, words: str) -> None:
    module = read(_text(body))
    before = to_text(module)
    assert not unpack(module, module.functions["f"])
    assert to_text(module) == before, "nothing is left behind by a try that fails"
    kernel = ig.load(_text(body), language="ll", preopt=False).kernel("f")
    with pytest.raises(ig.Unsupported, match=words):
        ig.engine.grad(kernel)(1.5, 2.0, 0)
    with pytest.raises(ig.Unsupported, match=words):
        ig.engine.jvp(kernel, (1.5, 2.0, 0), (1.0, 0.0, None))


def test_bytes_in_memory_carry_floats() -> None:
    """A vector of bytes that is loaded and stored moves what its memory holds."""
    text = """define void @f(ptr %x, ptr %y) {
  %l = load <16 x i8>, ptr %x, align 8
  store <16 x i8> %l, ptr %y, align 8
  ret void
}"""
    kernel = ig.load(text, language="ll", preopt=False).kernel("f", "void(f64[2] x, out f64[2] y)")
    for jacobian in (ig.engine.jacfwd, ig.engine.jacrev):
        assert jacobian(kernel)(np.array([3.0, 5.0])).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_lane_that_is_used_twice() -> None:
    """The adjoints of both uses are added, also in a vector of integers that only memory tells to be floats."""
    text = """define void @f(ptr %x, ptr %y) {
  %l = load <2 x i64>, ptr %x, align 8
  %s = shufflevector <2 x i64> %l, <2 x i64> poison, <2 x i32> <i32 1, i32 1>
  store <2 x i64> %s, ptr %y, align 8
  ret void
}"""
    kernel = ig.load(text, language="ll", preopt=False).kernel("f", "void(f64[2] x, out f64[2] y)")
    for jacobian in (ig.engine.jacfwd, ig.engine.jacrev):
        assert jacobian(kernel)(np.array([3.0, 5.0])).tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_bytes_that_are_numbers_stay() -> None:
    """A table of small integers is no array of floats."""
    text = """define void @f(ptr %x, ptr %t, ptr %y) {
  %l = load <4 x i8>, ptr %t, align 1
  %s = shufflevector <4 x i8> %l, <4 x i8> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %d = sitofp <4 x i8> %s to <4 x double>
  %a = load double, ptr %x, align 8
  %i = insertelement <4 x double> poison, double %a, i64 0
  %b = shufflevector <4 x double> %i, <4 x double> poison, <4 x i32> zeroinitializer
  %m = fmul <4 x double> %d, %b
  store <4 x double> %m, ptr %y, align 8
  store <4 x i8> %s, ptr %t, align 1
  ret void
}"""
    signature = "void(f64[1] x, inout i8[4] t, out f64[4] y)"
    kernel = ig.load(text, language="ll", preopt=False).kernel("f", signature)
    for jacobian in (ig.engine.jacfwd, ig.engine.jacrev):
        got = jacobian(kernel)(np.array([2.0]), np.arange(4, dtype=np.int8))
        assert got.tolist() == [[3.0], [2.0], [1.0], [0.0]]
