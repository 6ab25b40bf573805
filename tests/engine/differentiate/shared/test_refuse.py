"""What cannot be differentiated is refused with the source line, the reason and the ways out; never a zero."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from handwritten.made import make

import irgrad
from irgrad.rules.errors import IRGradError, MissingRuleError, Unsupported

UNKNOWN = """
double mystery(double);
void f(double *x, double *o) {
    double s = 0;
    for (int i = 0; i < 3; i++)
        s += mystery(x[i]);   /* line 10 */
    *o = s;
}
"""
BITS = """
void f(double *x, double *o) {
    long bits;
    double y = *x * 3;
    memcpy(&bits, &y, 8);
    bits = bits * 3 + 1;
    memcpy(&y, &bits, 8);
    *o = y;
}
"""


def _message(source: str, mode: str, kind: type[IRGradError], *flags: str) -> str:
    with pytest.raises(kind) as caught:
        make(source, "f", mode, ["dup", "dup"], *flags)
    return str(caught.value)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_call_without_body_or_rule(mode: str) -> None:
    message = _message(UNKNOWN, mode, MissingRuleError, "-g")
    lines = message.splitlines()
    assert lines[0] == "no derivative is known for this call"
    assert re.match(r"  in +@f \(.*prog\.c:10:\d+\), block %", lines[1]), message
    assert re.match(r"  which +.*call double @mystery\(", lines[2]), message
    assert "`mystery` has neither a body nor a rule" in message
    assert '@rule("mystery")' in message and 'inactive("mystery")' in message and "link=" in message


def test_without_debug_info_the_place_is_the_block() -> None:
    message = _message(UNKNOWN, "reverse", MissingRuleError, "-g0")
    assert re.search(r"in +@f, block %", message), message


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_integer_arithmetic_on_the_bits_of_a_float(mode: str) -> None:
    message = _message(BITS, mode, Unsupported, "-g")
    assert re.search(r"in +@f \(.*prog\.c:\d+:\d+\)", message), message
    for part in ("which", "because", "to fix"):
        assert re.search(rf"^  {part} +\S", message, re.M), message


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_an_inactive_call_needs_no_rule(mode: str) -> None:
    source = """
    double mystery(double);
    void f(double *x, double *o, double *k) { *o = x[0] * x[0] * mystery(k[0]); }
    """
    made = make(source, "f", mode, ["dup", "dup", "const"])
    assert made.calls("mystery")


def test_a_pointer_to_code_from_outside() -> None:
    source = """
    void f(double *x, double *o) {
        double (*g)(double);
        memcpy(&g, x + 4, sizeof g);
        *o = g(x[0]);
    }
    """
    message = _message(source, "reverse", IRGradError)
    assert re.search(r"^  to fix +\S", message, re.M), message


def test_an_external_global_with_active_values() -> None:
    source = """
    extern double state[64];
    void f(double *x, double *o) {
        for (int i = 1; i < 64; i++) state[i] = state[i - 1] * x[0];
        *o = state[63];
    }
    """
    message = _message(source, "forward", Unsupported)
    assert "external global `state`" in message
    assert "link=" in message


def test_a_missing_rule_says_what_fits_almost_and_what_to_write(tmp_path: Path) -> None:
    from irgrad.engine import grad
    from irgrad.rules import Active, Activity, f32, layer, rule

    source = tmp_path / "entry.c"
    lines = ["double outside(double a, double b, int n);", "double entry(double x) { return outside(x, 2, 5); }", ""]
    source.write_text("\n".join(lines))
    entry = irgrad.load(source).kernel("entry")
    with layer():

        @rule("outside", Active[f32], Activity, Activity)
        def _(a, b, n):  # type: ignore[no-untyped-def]
            return a, b

        with pytest.raises(irgrad.MissingRuleError) as caught:
            grad(entry)(1.0)
    text = caught.value.render()
    assert "double outside(double, double, int);" in text
    assert "entry.c:2:" in text
    assert "argument 0: Active[f64]" in text
    assert "argument 1: Const[f64]" in text
    assert "argument 2: Const[i32]" in text
    assert "the nearest rule is outside(a: Active[f32], b: Activity, n: Activity) at test_refuse.py:" in text
    assert "a is Active[f64], the rule wants Active[f32]" in text
    assert '@rule("outside")\n          def _(a0, a1, a2): return ..., ...' in text


def test_memory_that_is_handed_on_is_named() -> None:
    """A call whose result is a handle says which of its arguments are active memory."""
    source = """void *open_(int n, const double *t, const double *r);
double at(const void *c, double t);
double f(const double *t, const double *r, int n) { return at(open_(n, t, r), 2.0); }
"""
    kernel = irgrad.load(source).kernel("f", "f64(f64[n] t, f64[n] r, i32 n)")
    with pytest.raises(irgrad.MissingRuleError, match=r"because arguments 1, 2 point to active memory, and `open_`"):
        irgrad.grad(kernel, wrt=("t", "r"))(np.ones(3), np.ones(3))
