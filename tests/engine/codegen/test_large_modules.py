"""In large modules, functions stay apart whose only caller would become very long; small ones are as they were."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen import large_modules
from irgrad.engine.codegen.large_modules import LARGE, apart, is_large, keep_apart
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.text.outline import function_bodies, outline


def _module(calls: dict[str, list[str]], lines: dict[str, int]) -> str:
    """A module of functions that call one another, with so many lines each."""
    parts = []
    for name, called in calls.items():
        filler = [f"  %x{i} = add i32 %a, {i}" for i in range(lines[name] - len(called) - 1)]
        rows = [*(f"  call void @{one}(i32 %a)" for one in called), *filler, "  ret void"]
        parts.append(f"define internal void @{name}(i32 %a) {{\n" + "\n".join(rows) + "\n}\n")
    return "\n".join(parts)


def _apart(calls: dict[str, list[str]], lines: dict[str, int], most: int) -> frozenset[str]:
    text = _module(calls, lines)
    return apart(function_bodies(text), text, most)


def test_the_longest_stays_out_of_line_until_the_rest_is_short_enough() -> None:
    calls = {"root": ["a", "b", "c"], "a": [], "b": [], "c": []}
    lines = {"root": 10, "a": 40, "b": 60, "c": 50}
    assert _apart(calls, lines, 200) == frozenset()
    assert _apart(calls, lines, 120) == {"b"}
    assert _apart(calls, lines, 60) == {"b", "c"}
    assert _apart(calls, lines, 5) == {"a", "b", "c"}


def test_what_a_function_takes_in_counts_in_its_caller() -> None:
    calls = {"root": ["a"], "a": ["b"], "b": ["c"], "c": []}
    lines = dict.fromkeys(calls, 40)
    assert _apart(calls, lines, 130) == {"a"}  # b takes c in, a takes b in: 120 lines
    assert _apart(calls, lines, 90) == {"b"}  # b takes c in, root takes a in
    assert _apart(calls, lines, 50) == {"a", "b", "c"}


def test_what_has_several_callers_or_calls_itself_is_left_to_llvm() -> None:
    calls = {"root": ["a", "b"], "a": ["shared"], "b": ["shared"], "shared": [], "again": ["again"]}
    lines = {"root": 10, "a": 10, "b": 10, "shared": 100, "again": 100}
    assert _apart(calls, lines, 50) == frozenset()


SOURCE = """#include <math.h>
static double sine(double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += sin(x[i]) * x[i]; return s; }
static double power(double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i];
    for (long i = 1; i < n; i++) s += x[i] * x[i - 1];
    return s;
}
double f(double *x, long n) { return sine(x, n) * power(x, n); }"""


def test_prepare_keeps_them_in_large_modules_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ig.load(SOURCE).text
    assert "power" not in outline(prepare(text, ["f"])).defined
    monkeypatch.setattr(large_modules, "MOST", 30)
    assert "power" not in outline(prepare(text, ["f"])).defined
    monkeypatch.setattr(large_modules, "LARGE", 20)
    assert "power" in outline(prepare(text, ["f"])).defined


def test_what_is_always_inlined_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _module({"root": ["a", "b"], "a": [], "b": []}, {"root": 10, "a": 40, "b": 60})
    text = text.replace("@b(i32 %a) {", "@b(i32 %a) alwaysinline {")
    monkeypatch.setattr(large_modules, "MOST", 5)
    module = parse(text)
    keep_apart(module, text)
    assert "noinline" not in str(module)
    monkeypatch.setattr(large_modules, "LARGE", 20)
    keep_apart(module, text)
    module.verify()
    said = {function.name: b" ".join(function.attributes) for function in module.functions}
    assert b"noinline" in said["a"] and b"noinline" not in said["b"]


def test_a_gradient_of_functions_that_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    monkeypatch.setattr(large_modules, "MOST", 30)
    monkeypatch.setattr(large_modules, "LARGE", 20)
    kernel = ig.load(SOURCE).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([0.3, -0.7, 1.1])
    sine, power = (np.sin(x) * x).sum(), (x**3).sum() + (x[1:] * x[:-1]).sum()
    slope = 3 * x**2 + np.array([x[1], x[0] + x[2], x[1]])
    wanted = (np.cos(x) * x + np.sin(x)) * power + sine * slope
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), wanted, rtol=1e-13)


def test_large_is_a_number_of_lines() -> None:
    assert not is_large("\n" * LARGE)
    assert is_large("\n" * (LARGE + 1))
