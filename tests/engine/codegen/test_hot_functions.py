"""How often functions run, as loops and calls tell, and which of a large module are cold."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.hot_functions import TRIPS, cold_functions, frequencies, optimised_lines
from irgrad.engine.ir.text.outline import function_bodies


def _function(name: str, before: str = "", inside: str = "") -> str:
    """A function with one loop."""
    return f"""define void @{name}(ptr %p, i64 %n) {{
entry:
  {before or "fence acquire"}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  {inside or "fence acquire"}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def _call(name: str) -> str:
    return f"call void @{name}(ptr %p, i64 %n)"


def _often(*functions: str, roots: tuple[str, ...] = ()) -> dict[str, int]:
    text = "\n".join(functions)
    return frequencies(text, function_bodies(text), roots)


def test_a_loop_counts_for_what_it_calls() -> None:
    root = _function("root", _call("once"), _call("often"))
    found = _often(_function("often"), root, _function("once"))
    assert found == {"root": TRIPS, "once": TRIPS, "often": TRIPS**2}


def test_what_the_roots_do_not_reach_never_runs() -> None:
    found = _often(_function("root", _call("once")), _function("once"), _function("dead"), roots=("root",))
    assert found == {"root": TRIPS, "once": TRIPS, "dead": 0}


def test_functions_that_call_themselves_are_entered_as_often_as_others_enter_them() -> None:
    first, second = _function("even", inside=_call("odd")), _function("odd", inside=_call("even"))
    found = _often(first, second, _function("root", inside=_call("even")))
    assert found == {"root": TRIPS, "even": TRIPS**2, "odd": TRIPS**2}


def test_a_call_through_a_pointer_may_be_one_of_those_whose_address_is_taken() -> None:
    through = "call void %f(ptr %p, i64 %n)"
    table = "@table = internal constant [1 x ptr] [ptr @tabled]\n"
    given = "call void @takes(ptr @given)"
    functions = [_function(name) for name in ("tabled", "given", "direct")]
    found = _often(table, _function("root", given, through), "declare void @takes(ptr)\n", *functions, roots=("root",))
    assert found == {"root": TRIPS, "tabled": TRIPS**2, "given": TRIPS**2, "direct": 0}


def test_the_hottest_are_optimised_as_far_as_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join([_function("root", _call("once"), _call("often")), _function("once"), _function("often")])
    each = function_bodies(text)["once"].count("\n")
    assert cold_functions(text, ["root"]) == frozenset()
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", str(3 * each))
    assert cold_functions(text, ["root"]) == frozenset()
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", str(2 * each))
    assert cold_functions(text, ["root"]) == {"once"}
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", "1")
    assert cold_functions(text, ["root"]) == {"root", "once", "often"}


def test_only_large_modules_are_treated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irgrad.engine.codegen.large_modules.LARGE", 10)
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", "15")
    assert optimised_lines("\n" * 10) is None
    assert optimised_lines("\n" * 15) is None
    assert optimised_lines("\n" * 16) == (16, 15)
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", "inf")
    assert optimised_lines("\n" * 16) is None


SOURCE = """#include <math.h>
#include <stdlib.h>
typedef double (*step)(double *, long);
static double sine(double *y, long n) { double s = 0; for (long i = 0; i < n; i++) s += sin(y[i]) * y[i]; return s; }
static double power(double *y, long n) { double s = 1; for (long i = 1; i < n; i++) s += s * y[i]; return s; }
static const step steps[] = {sine, power};
double f(double *x, long n) {
    double s = 0, *y = malloc(n * sizeof(double));
    for (long k = 0; k < 4; k++) {
        for (long i = 0; i < n; i++) y[i] = x[i] * (1 + k * s);
        s += steps[k % 2](y, n);
    }
    free(y);
    return s;
}"""


@pytest.mark.parametrize("most", ["1", "60", "1e9"])
def test_the_gradient_is_the_same_however_much_is_optimised(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    x = np.array([0.3, -0.7, 1.1, 0.2])
    wanted = ig.engine.grad(ig.load(SOURCE).kernel("f", "f64(f64[n] x, i64 n)"))(x)
    monkeypatch.setattr("irgrad.engine.codegen.large_modules.LARGE", 50)
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", most)
    kernel = ig.load(SOURCE).kernel("f", "f64(f64[n] x, i64 n)")
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), wanted, rtol=1e-12)
