"""Doubles that may be pointers are moved as integers. Values: `tests/layouts/byte_code.c`, `value_stack.c`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.tbaa import NO_POINTER
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reinterpret.words import Moves, move_words
from irgrad.engine.pipeline import derivatives
from irgrad.rules.errors import KernelError, Unsupported

MODULE = """
define void @f(ptr %x, ptr %o) {
entry:
  %stack = alloca [4 x double], align 8
  %kept = alloca double, align 8
  %row = alloca [2 x double], align 8
  %a = load double, ptr %x
  %c = fcmp olt double %a, 1.0
  store double %a, ptr %row
  br i1 %c, label %number, label %address
number:
  store double %a, ptr %stack
  br label %join
address:
  store ptr %row, ptr %stack
  br label %join
join:
  %w = load double, ptr %stack
  %m = select i1 %c, double %w, double 2.0
  store double %m, ptr %kept
  %z = fadd double %w, 1.0
  store double %z, ptr %o
  ret void
}
"""
COMPUTED = "%m = select i1 %c, double %w, double 2.0", "%m = fmul double %w, 2.0"
NAMED = "%w = load double, ptr %stack", "%w = load double, ptr %stack, !tbaa !0"
TAGS = """
!0 = !{!1, !1, i64 0}
!1 = !{!"double", !2, i64 0}
!2 = !{!"root"}
"""
CALLERS = "  %stack = alloca [4 x double], align 8\n", "  %stack = load ptr, ptr %o\n"
PURE = "store ptr %row, ptr %stack", "store double 3.0, ptr %stack"


def moved(text: str) -> tuple[bool, str]:
    """Whether a module is changed, and its text."""
    module = read(text, roots=["f"])
    return move_words(Facts(module, module.functions["f"], [0, 1]), Moves()), to_text(module)


def test_what_is_moved_is_an_integer() -> None:
    changed, text = moved(MODULE)
    assert changed
    assert "%w = load i64, ptr %stack, !irgrad.word" in text
    assert "%m = select i1 %c, i64 %w, i64 4611686018427387904\n  store i64 %m, ptr %kept" in text
    assert "%v0 = bitcast i64 %w to double\n  %z = fadd double %v0, 1.0" in text
    assert not moved(text)[0]


def test_what_was_changed_is_undone() -> None:
    """Of memory that may be one of two objects; one object holds both."""
    other = MODULE.replace("  %row = ", "  %more = alloca double, align 8\n  %row = ")
    other = other.replace("%w = load double, ptr %stack", "%e = select i1 %c, ptr %stack, ptr %more\n"
                          "  %w = load double, ptr %e")  # fmt: skip
    for text, undone in ((other, True), (MODULE, False)):
        module = read(text, roots=["f"])
        before, moves = to_text(module), Moves()
        assert move_words(Facts(module, module.functions["f"], [0, 1]), moves)
        assert to_text(module) != before
        assert moves.undo(module) is undone
        if undone:
            rows = [row for row in to_text(module).splitlines() if "float or pointer" not in row]
            watched = f"  %w = load double, ptr %e, !{NO_POINTER} !0"
            assert [row.partition(f", !{NO_POINTER}")[0] for row in rows] == before.splitlines()
            assert watched in rows
            assert not move_words(Facts(module, module.functions["f"], [0, 1]), moves)


MOVED = """
#include <stdlib.h>
struct value { long tag; union { double number; double *row; } as; };
__attribute__((noinline)) static void fill(const double *x, double *row, struct value *v, long n) {
  for (long i = 0; i < n; i++) row[i] = x[i] * x[i];
  for (long i = 0; i < n; i++) {
    if (x[i] > 1) { v[i].tag = 1; v[i].as.number = x[i] * 3; }
    else { v[i].tag = 2; v[i].as.row = row + i; }
  }
}
__attribute__((noinline)) static void move(struct value *to, struct value *from, long n) {
  for (long i = 0; i < n; i++) { to[i].tag = from[i].tag; to[i].as.number = from[n - 1 - i].as.number; }  // here
}
__attribute__((noinline)) static double sum(struct value *v, const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += (i + 1) * (x[n - 1 - i] > 1 ? v[i].as.number * v[i].as.number : *v[i].as.row);
  return s;
}
double loss(const double *x, long n) {
  struct value *one = calloc(n, sizeof *one), *two = calloc(n, sizeof *two), *kept = calloc(n, sizeof *kept);
  struct value *v = n > 3 ? one : two;
  double *row = malloc(n * sizeof *row), other = x[0];
  fill(x, row, v, n);
  kept[n - 1].as.row = &other;
  move(kept, v, n);
  double s = sum(kept, x, n);
  free(one); free(two); free(kept); free(row);
  return s;
}
"""


@pytest.mark.parametrize("refused", [False, True])
def test_where_words_are_undone_a_pointer_that_is_moved_as_a_double_ends_the_call(
    refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its shadow would be lost: silently, or by a null pointer. Numbers are moved as before."""
    check = derivatives._check
    left = [Unsupported("words")] if refused else []

    def refusing(unit: Unit) -> None:
        if left:
            raise left.pop()
        check(unit)

    monkeypatch.setattr(derivatives, "_check", refusing)
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    kernel = ig.load(MOVED, opt="O0", flags=["-fno-strict-aliasing"]).kernel("loss", "f64(f64[n] x, i64 n)")
    gradient = ig.engine.grad(kernel)
    np.testing.assert_allclose(gradient(np.array([2.0, 3.0, 4.0])), [108, 108, 72])  # 18 x0 (n - i) and so on
    x = np.array([2.0, 0.6, 0.7, 0.3])
    if refused:
        line = 1 + next(i for i, row in enumerate(MOVED.splitlines()) if "// here" in row)
        with pytest.raises(KernelError, match=rf"a pointer of `loss` leads where no analysis has seen.*\n.*:{line}:"):
            gradient(x)
    else:
        np.testing.assert_allclose(gradient(x), [144, 3.6, 2.8, 0.6])


def test_from_there_other_loads_are() -> None:
    more = "  %k = load double, ptr %kept\n  store double %k, ptr %row\n  ret void"
    text = moved(MODULE.replace("  ret void", more))[1]
    assert "%k = load i64, ptr %kept" in moved(text)[1]


@pytest.mark.parametrize(("old", "new"), [COMPUTED, NAMED, CALLERS, PURE])
def test_what_stays_a_float(old: str, new: str) -> None:
    """Something only computed with, of the source's type `double`, in a caller's memory, where no pointer is."""
    assert old in MODULE
    assert not moved(MODULE.replace(old, new) + TAGS)[0]


def test_casts_of_words() -> None:
    text = MODULE.replace("%w = load double, ptr %stack", "%i = load i64, ptr %stack\n  %w = bitcast i64 %i to double")
    changed, text = moved(text)
    assert changed
    assert "select i1 %c, i64 %i, i64" in text
