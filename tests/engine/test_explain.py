"""`explain_rules`: where the derivative of each call comes from."""

from __future__ import annotations

from typing import Any

import irgrad
from irgrad.engine import explain_rules
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
        assert lines["mine"].startswith("(Active[f64]) by the rule mine(...) at test_explain.py:")
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
        assert "mine: the rule at test_explain.py:" in text
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
