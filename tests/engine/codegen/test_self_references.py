"""Variables that hold their own address keep the value that the compiler gives the program."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, hvp, jvp
from irgrad.engine.codegen.self_references import hold_self_references

TEXT = """
@head = internal global ptr null, align 8
@table = internal global [4 x double] zeroinitializer
@fixed = internal constant ptr null
@elsewhere = external global ptr
@"a b" = global i64 0
@held = internal global i64 0
define void @f(ptr %p, i1 %c) {
  store ptr @head, ptr %p, align 8
  store i64 1, ptr @table
  store ptr @fixed, ptr %p
  store ptr @elsewhere, ptr %p
  call void @llvm.memset.p0.i64(ptr @table, i8 0, i64 8, i1 false)
  %v = call i64 @g(ptr noundef nonnull align 8 dereferenceable(8) @"a b", i32 3), !dbg !3
  %q = select i1 %c, ptr @held, ptr %p
  ret void
}
"""


def test_addresses_that_are_handed_on() -> None:
    line = '@llvm.compiler.used = appending global [3 x ptr] [ptr @head, ptr @"a b", ptr @held]'
    held = hold_self_references(TEXT)
    assert held == f'{TEXT}\n{line}, section "llvm.metadata"\n'
    assert hold_self_references(held) == held
    some = TEXT + '@llvm.compiler.used = appending global [1 x ptr] [ptr @head], section "x"\n'
    wanted = '[3 x ptr] [ptr @head, ptr @"a b", ptr @held], section "x"'
    assert wanted in hold_self_references(some)
    none = "define void @f(ptr %p) {\n  call void @g(ptr %p)\n  ret void\n}\n"
    assert hold_self_references(none) is none


PROGRAMS = {
    "list head": """
        struct node { struct node *next, *last; double v[2]; };
        static struct node head;
        static void reset(struct node *l) { l->next = l->last = l; }
        double f(const double *x, long n) {
          reset(&head);
          head.v[0] = x[0]; head.v[1] = x[1];
          head.next->v[0] = 3 * x[2];
          double a = head.v[0];
          head.v[1] = a * x[1];
          return head.last->v[1] * head.next->last->v[0] + a;
        }""",
    "struct": """
        struct s { struct s *own; double v[2]; };
        double f(const double *x, long n) {
          static struct s there; struct s *o = &there;
          o->own = o;
          o->v[1] = sin(x[1]);
          o->own->v[0] = o->own->v[1] + x[0];
          double s = o->own->v[0];
          struct s *t = malloc(sizeof *t); memcpy(t, o, sizeof *t);
          t->v[0] *= 0.5; *o = *t; free(t);
          o->v[1] = x[2] * s;
          o->own->v[0] = o->own->v[1] * x[1];
          return s + o->v[0] * o->own->v[1];
        }""",
}


def reference(name: str, x: np.ndarray) -> float:
    if name == "list head":
        return float(9 * x[2] ** 2 * x[1] + 3 * x[2])
    s = np.sin(x[1]) + x[0]
    return float(s + (x[2] * s * x[1]) * (x[2] * s))


@pytest.mark.parametrize("opt", [None, "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_objects_that_point_to_themselves(name: str, opt: str | None) -> None:
    head = "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n"
    kernel = irgrad.load(head + PROGRAMS[name], opt=opt).kernel("f", "f64(f64[n] x, i64 n)")
    x, v, step = np.array([0.5, 0.75, 1.25]), np.array([1.0, -0.5, 0.25]), 1e-5
    assert kernel(x) == pytest.approx(reference(name, x), rel=1e-14)

    def slope(at: np.ndarray) -> np.ndarray:
        rows = np.eye(3) * step
        return np.array([8 * (reference(name, at + e) - reference(name, at - e)) - reference(name, at + 2 * e)
                         + reference(name, at - 2 * e) for e in rows]) / (12 * step)  # fmt: skip

    value, tangent = jvp(kernel, (x,), (v,))
    assert value == pytest.approx(reference(name, x), rel=1e-14)
    assert tangent == pytest.approx(slope(x) @ v, rel=1e-8)
    np.testing.assert_allclose(grad(kernel)(x), slope(x), rtol=1e-8)
    second = (slope(x + 1e-4 * v) - slope(x - 1e-4 * v)) / 2e-4
    np.testing.assert_allclose(hvp(kernel, (x,), v), second, rtol=1e-4, atol=1e-6)
