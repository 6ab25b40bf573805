"""Floats beside pointers in one integer: the adjoint moves back, the shadow pointer stays where the reverse sweep reads
it again."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT, PTR
from irgrad.engine.differentiate.shadow.beside_pointers import add_placed, apart
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt

MOVED = r"""
#include <math.h>
#include <stdlib.h>
typedef long pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef struct { double *row; double weight; } cell;
static cell kept[2];
double f(const double *x, long n) {
    double *rows = malloc(4 * sizeof *rows);
    for (int i = 0; i < 4; i++) rows[i] = x[i] * x[i];
    kept[0].row = rows; kept[0].weight = x[0];
    kept[1].row = rows + 2; kept[1].weight = sin(x[1]);
    double s = 0;
    for (long i = 0; i < n; i++) {
        cell *from = &kept[i & 1], *to = &kept[~i & 1];
        to->row[1] *= from->row[0] * from->weight;
        pair moved = *(pair *)from;
        if (x[i] > 0) *(pair *)to = moved;
        s += to->weight * to->row[1];
    }
    free(rows);
    return s;
}
"""


@pytest.mark.parametrize("opt", [None, "O0", "O2"])
def test_a_pointer_and_a_float_that_are_copied_at_once(opt: str | None) -> None:
    f = ig.load(MOVED, opt=opt).kernel("f", "f64(f64[n] x, i64 n)")
    x, v = np.array([0.5, 0.3, -1.2, 0.7]), np.array([0.3, -0.2, 0.5, 0.4])
    steps = [8 * (f(x + h) - f(x - h)) - f(x + 2 * h) + f(x - 2 * h) for h in 1e-3 * np.eye(4)]
    gradient = ig.engine.grad(f)(x)
    np.testing.assert_allclose(gradient, np.array(steps) / 12e-3, rtol=1e-8)
    np.testing.assert_allclose(ig.engine.jvp(f, (x,), (v,))[1], gradient @ v, rtol=1e-12)


READ_AGAIN = """
@kept = internal global { ptr, double } zeroinitializer
declare ptr @malloc(i64)
define double @f(ptr %x, i64 %n) {
  %rows = call ptr @malloc(i64 16)
  %to = call ptr @malloc(i64 16)
  %x0 = load double, ptr %x
  store double %x0, ptr %rows
  store ptr %rows, ptr @kept
  %second = getelementptr i8, ptr %x, i64 8
  %x1 = load double, ptr %second
  store double %x1, ptr getelementptr (i8, ptr @kept, i64 8)
  %some = icmp sgt i64 %n, 1
  br i1 %some, label %square, label %copy
square:
  %row = load ptr, ptr @kept
  %y = load double, ptr %row
  %yy = fmul double %y, %y
  store double %yy, ptr %row
  br label %copy
copy:
  %v = load <2 x i64>, ptr @kept, align 8
  store <2 x i64> %v, ptr %to, align 8
  %place = getelementptr i8, ptr %to, i64 8
  %weight = load double, ptr %place
  %again = load ptr, ptr %to
  %z = load double, ptr %again
  %r = fmul double %z, %weight
  ret double %r
}
"""


def test_the_reverse_sweep_finds_the_pointer_beside_an_adjoint() -> None:
    f = ig.load(READ_AGAIN, language="ll", preopt=False).kernel("f", "f64(f64[n] x, i64 n)")
    assert ig.engine.grad(f)(np.array([3.0, 5.0])).tolist() == [30.0, 9.0]


def test_two_directions_at_once() -> None:
    source = MOVED.replace("double f(", "void f(").replace("long n)", "long n, double *y)")
    source = source.replace("return s;", "y[0] = s; y[1] = s * x[0];")
    f = ig.load(source).kernel("f", "void(f64[n] x, i64 n, out f64[2] y)")
    x = np.array([0.5, 0.3, -1.2, 0.7])
    np.testing.assert_allclose(ig.engine.jacrev(f)(x), ig.engine.jacfwd(f)(x), rtol=1e-12)


def test_parts_of_a_layout_that_overlap() -> None:
    assert apart(((0, PTR), (8, ty.F64)))
    assert apart(((0, INT), (4, ty.F32), (8, CONFLICT)))
    assert not apart(((0, ty.F64), (4, ty.F32)))


def test_bytes_that_are_no_float_are_those_of_the_first() -> None:
    block = Block("b")
    type_ = ty.int_(128)
    total = add_placed(Builder(block), ((0, PTR), (8, ty.F64)), 1, *(ConstInt(type_, k) for k in (1, 2)))
    ops = [instr.opcode for instr in block.instructions]
    assert ops.count("fadd") == 1
    assert total.type is type_
