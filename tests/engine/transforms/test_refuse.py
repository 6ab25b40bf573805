"""What cannot be differentiated is refused with the source line, the reason and the ways out; never a zero."""

from __future__ import annotations

import re

import pytest

from irgrad.rules.errors import IRGradError, MissingRuleError, Unsupported

from .made import make

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
