"""What only the rare side of a choice needs stands behind a branch, and values stay."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.schedule.rare_choices import branch_rarely, rare_choices

LARGEST = """
define i64 @f(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %m = phi double [ 0.0, %entry ], [ %m2, %loop ]
  %w = phi i64 [ -1, %entry ], [ %w2, %loop ]
  %at = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %at
  %keeps = fcmp olt double %v, %m
  %top = call double @llvm.maxnum.f64(double %m, double %v)
  %other = fcmp ugt double %top, %m
  %place = select i1 %other, i64 %i, i64 %w
  %m2 = select i1 %keeps, double %m, double %top, !prof !0
  %next = add i64 %i, 1
  %w2 = select i1 %keeps, i64 %w, i64 %place, !prof !0
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop
exit:
  ret i64 %w2
}
declare double @llvm.maxnum.f64(double, double)
!0 = !{!"branch_weights", i32 WEIGHTS}
"""
NUMBERS = [[1, 3, 2, 3, 5, 4], [np.nan, -1, 2, np.nan, 2], [-3, -2], [0.0, -0.0, 1e300, np.inf, np.inf]]


def places(text: str) -> list[int]:
    code = compile_module(text, entries=["f"])
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code.address("f"))
    rows = [np.array(row, dtype=float) for row in NUMBERS]
    return [call(row.ctypes.data, len(row)) for row in rows]


def test_both_choices_become_one_branch_with_what_only_the_rare_side_needs() -> None:
    text = LARGEST.replace("WEIGHTS", "1048576, i32 1")
    module = read(text)
    assert rare_choices(module) == 1
    loop, rare, rest = module.functions["f"].blocks[1:4]
    assert [i.opcode for i in rare.instructions] == ["call", "fcmp", "select", "br"]
    assert [i.opcode for i in rest.instructions] == ["phi", "phi", "icmp", "br"]
    assert loop.terminator.blocks == [rest, rare] and loop.terminator.metadata["prof"] == "!0"
    assert all(phi.blocks[1] is rest for phi in loop.phis)
    assert rare_choices(module) == 0, "nothing is left"
    assert places(to_text(module)) == places(text) == [4, 2, -1, 3]


def test_the_rare_side_may_be_the_first() -> None:
    text = LARGEST.replace("WEIGHTS", "1, i32 1048576")
    swapped = text.replace("double %m, double %top, !prof", "double %top, double %m, !prof").replace("olt", "uge")
    swapped = swapped.replace("i64 %w, i64 %place", "i64 %place, i64 %w")
    module = read(swapped)
    assert rare_choices(module) == 1
    loop, rare, rest = module.functions["f"].blocks[1:4]
    assert loop.terminator.blocks == [rare, rest]
    assert places(to_text(module)) == places(text)


def test_what_others_need_stays_in_front() -> None:
    module = read(
        LARGEST.replace("%next = ", "store double %top, ptr %at\n  %next = ").replace("WEIGHTS", "1048576, i32 1")
    )
    assert rare_choices(module) == 1
    loop, rare = module.functions["f"].blocks[1:3]
    assert [i.opcode for i in rare.instructions] == ["fcmp", "select", "br"]
    assert [i.opcode for i in loop.instructions[-3:]] == ["store", "add", "br"]


def test_a_rare_choice_of_ready_values_is_a_branch_too() -> None:
    module = read(LARGEST.replace("double %m, double %top", "double %m, double %v").replace("i64 %place", "i64 %i")
                  .replace("WEIGHTS", "1048576, i32 1"))  # fmt: skip
    assert rare_choices(module) == 1
    assert [i.opcode for i in module.functions["f"].blocks[2].instructions] == ["br"]


@pytest.mark.parametrize("weights, metadata", [("2000, i32 1", "!prof !0"), ("1, i32 1", "!prof !0"), ("1, i32 9", "")])
def test_other_choices_stay(weights: str, metadata: str) -> None:
    text = LARGEST.replace("WEIGHTS", weights)
    assert rare_choices(read(text if metadata else text.replace(", !prof !0", ""))) == 0


def test_a_module_without_such_choices_is_returned_as_it_is() -> None:
    text = LARGEST.replace("WEIGHTS", "10, i32 1")
    assert branch_rarely(text) is text
    assert "br i1 %keeps" in branch_rarely(LARGEST.replace("WEIGHTS", "1048576, i32 1"))


def test_functions_without_such_choices_stay_text() -> None:
    """They may call what is linked later."""
    guard = "define ptr @guard(ptr %g) {\n  %came = call i32 @linked_later(ptr %g)\n  ret ptr null\n}\n"
    found = branch_rarely(guard + LARGEST.replace("WEIGHTS", "1048576, i32 1"))
    assert "br i1 %keeps" in found
    assert guard.strip() in found


def test_derivatives_through_the_place_of_a_maximum(tmp_path: Path) -> None:
    path = tmp_path / "top.c"
    path.write_text(
        "#include <math.h>\ndouble top(const double *x, long n) { double t = x[0];"
        " for (long i = 1; i < n; i++) t = fmax(t, x[i]); return t * t; }"
    )
    top = irgrad.load(path).kernel("top", "f64(f64[n] x, i64 n)")
    x = np.array([1.0, 4.0, -2.0, 4.0, 3.0])
    assert np.array_equal(irgrad.grad(top)(x), [0, 8, 0, 0, 0])
    assert np.array_equal(irgrad.hvp(top, (x,), np.ones(5)), [0, 2, 0, 0, 0])
