"""`explain_rules`: where the derivative of each call comes from."""

from __future__ import annotations

from typing import Any

import irgrad
from irgrad.engine import explain, explain_rules
from irgrad.rules import Active, Activity, f32, layer, opt_out, rule

SOURCE = """
#include <math.h>
#include <stdio.h>
double outside(double a, double b, int n);
double mine(double x) { return x * x; }
double entry(double x) { printf("%g", x); return outside(sin(mine(x)), 2, 5); }
"""


def test_every_kind_of_answer(tmp_path: Any) -> None:
    source = tmp_path / "entry.c"
    source.write_text(SOURCE)
    entry = irgrad.load(source).kernel("entry")
    with layer("here"):

        @rule("outside", Active[f32], Activity, Activity)
        def _(a, b, n):  # type: ignore[no-untyped-def]
            return a, b

        @rule("mine")
        def _(a):  # type: ignore[no-untyped-def]
            return a

        lines = dict(line.split(": ", 1) for line in explain_rules(entry).splitlines())
        assert lines["printf"] == "inactive"
        assert lines["llvm.sin.f64"] == "by the tables"
        assert lines["mine"].startswith("(Active[f64]) by the rule mine(...) at test_calls.py:")
        assert lines["mine"].endswith("layer here")
        assert "by nothing: it has neither a body nor a rule" in lines["outside"]
        assert "a is Active[f64], the rule wants Active[f32]" in lines["outside"]
        opt_out("mine")
        assert "by its body" in explain_rules(entry)


INLINED = """
define double @mine(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define double @entry(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
"""


def test_a_rule_on_a_callee_that_was_inlined_before(tmp_path: Any) -> None:
    source = tmp_path / "inlined.ll"
    source.write_text(INLINED)
    with layer():

        @rule("mine")
        def _(x):  # type: ignore[no-untyped-def]
            return 100 * x

        text = explain_rules(irgrad.load(source).kernel("entry"))
        assert "mine: the rule at test_calls.py:" in text
        assert "is not used: nothing calls it" in text


def test_a_static_callee_is_not_inlined(tmp_path: Any) -> None:
    from irgrad.engine import grad

    source = tmp_path / "static.c"
    lines = ["static inline double mine(double x) { return x * x; }", "double entry(double x) { return mine(x); }"]
    source.write_text("\n".join(lines))
    entry = irgrad.load(source).kernel("entry")
    with layer():

        @rule("mine")
        def _(x):  # type: ignore[no-untyped-def]
            return 100 * x

        assert grad(entry)(2.0) == 200.0


def test_the_same_as_data(tmp_path: Any) -> None:
    source = tmp_path / "entry.c"
    source.write_text(SOURCE)
    entry = irgrad.load(source).kernel("entry")
    with layer("here"):

        @rule("outside")
        def _(a, b, n):  # type: ignore[no-untyped-def]
            return a, b

        @rule("mine")
        def _(a):  # type: ignore[no-untyped-def]
            return a

        found = explain(entry, "grad", lanes=False)
    uses = {use.callee: use for use in found.rules}
    assert uses["printf"].how == "inactive"
    mine = uses["mine"]
    assert (mine.how, mine.types, mine.layer) == ("rule", ("Active[f64]",), "here")
    assert "test_calls.py:" in mine.defined
    assert [place.line for place in mine.calls] == [6]
    assert mine.text in str(found)
    assert uses["outside"].how == "rule"
    assert uses["llvm.sin.f64"].how == "tables"


def test_a_call_that_is_only_repeated() -> None:
    text = """
    #include <math.h>
    double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += floor(x[i]) * x[i]; return s; }
    """
    found = explain(irgrad.load(text).kernel("f", "f64(f64[n] x, i64 n)"), "grad", lanes=False)
    hows = {use.callee: use.how for use in found.rules}
    assert hows["llvm.floor.f64"] in ("repeated", "inactive", "tables")
