"""Optimisation for this CPU: vector code, entries only."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.optimise import optimise
from irgrad.engine.codegen.target import HOST
from irgrad.rules.errors import LoadError

SCALE = """
define void @scale(ptr noalias %x, ptr noalias %o, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds double, ptr %x, i64 %i
  %v = load double, ptr %p, align 8
  %r = call double @helper(double %v)
  %q = getelementptr inbounds double, ptr %o, i64 %i
  store double %r, ptr %q, align 8
  %next = add nuw nsw i64 %i, 1
  %go = icmp ult i64 %next, %n
  br i1 %go, label %loop, label %done
done:
  ret void
}
define double @helper(double %x) #0 {
  %y = fmul double %x, 3.0
  ret double %y
}
attributes #0 = { "target-cpu"="i386" "target-features"="-sse2" }
"""


def test_loops_are_vectorised_and_helpers_inlined() -> None:
    text = optimise(SCALE, ["scale"])
    assert "x double>" in text
    assert "@helper" not in text
    assert "target-cpu" not in text


def test_of_a_very_large_module_nothing_is_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = optimise(SCALE, ["scale"])
    monkeypatch.setattr("irgrad.engine.codegen.large_modules.LARGE", 10)
    text = optimise(SCALE, ["scale"])
    assert "x double>" in text
    assert "@helper" not in text
    assert len(text.splitlines()) < len(usual.splitlines())


def test_of_a_very_large_module_the_hottest_functions_are_optimised_most(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = ["scale", "cold"]
    twice = SCALE + SCALE[SCALE.index("define void") : SCALE.index("define double")].replace("@scale(", "@cold(")
    monkeypatch.setattr("irgrad.engine.codegen.large_modules.LARGE", 10)
    both = optimise(twice, entries)
    assert both.count("vector.body:") == 2
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", "20")
    text = optimise(twice, entries)
    assert text.count("vector.body:") == 1
    assert text.index("@scale(") < text.index("vector.body:") < text.index("@cold(")
    assert "optnone" not in text  # its machine code is made like that of others


def test_levels() -> None:
    assert "x double>" not in optimise(SCALE, ["scale"], level=1)
    assert "@helper" in optimise(SCALE, ["scale", "helper"])


def test_an_entry_without_body_is_an_error() -> None:
    with pytest.raises(LoadError, match="`nothing` has no body"):
        optimise(SCALE, ["nothing"])


def test_the_machine_emits_position_independent_code_for_this_cpu() -> None:
    from irgrad.engine.codegen.llvm import host_cpu

    assert HOST.machine().triple
    assert host_cpu() != "generic"


BACKWARDS = """
define void @rows(ptr noalias %cells, i64 %n, i64 %m) {
entry:
  %x = load ptr, ptr %cells, align 8
  %at = getelementptr ptr, ptr %cells, i64 1
  %y = load ptr, ptr %at, align 8
  br label %outer
outer:
  %row = phi i64 [ %m, %entry ], [ %before, %next ]
  %before = add nsw i64 %row, -1
  %start = mul nsw i64 %before, %n
  %first = getelementptr double, ptr %x, i64 %start
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %i.next, %inner ]
  %p = getelementptr double, ptr %first, i64 %i
  %v = load double, ptr %p, align 8
  %q = getelementptr double, ptr %y, i64 %i
  %w = load double, ptr %q, align 8
  %s = fadd double %v, %w
  store double %s, ptr %q, align 8
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %inner, label %next
next:
  %last = icmp sle i64 %before, 0
  br i1 %last, label %done, label %outer
done:
  ret void
}
"""


def test_a_loop_around_that_runs_backwards_does_not_turn_the_vector_loop_off() -> None:
    text = optimise(BACKWARDS, ["rows"])
    assert "found.conflict" in text and "wide.load" in text
    assert "stride.check" not in text


SUM = """
define double @total(ptr noalias %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %more, %loop ]
  %p = getelementptr inbounds double, ptr %x, i64 %i
  %v = load double, ptr %p, align 8
  %square = fmul double %v, %v
  %below = fadd double %square, 1.0
  %item = fdiv double %v, %below
  %more = fadd double %s, %item
  %next = add nuw nsw i64 %i, 1
  %go = icmp ult i64 %next, %n
  br i1 %go, label %loop, label %done
done:
  ret double %more
}
"""


@pytest.mark.parametrize("n", [1, 7, 64, 1001])
def test_a_sum_in_order_is_vectorised_and_keeps_its_bits(n: int) -> None:
    assert re.search(r"fdiv <\d+ x double>", optimise(SUM, ["total"]))
    x = np.random.default_rng(n).normal(size=n) * 10.0 ** np.arange(n).clip(0, 12)
    unit = compile_module(SUM, ["total"], cache=False)
    call = unit.function("total", ctypes.c_double, ctypes.c_void_p, ctypes.c_long)
    total = 0.0
    for item in x / (x * x + 1):
        total += item
    assert call(x.ctypes.data, n) == total
