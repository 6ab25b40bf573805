"""Which functions become parts of their callers before loops are looked at."""

from __future__ import annotations

import re

from irgrad.engine.codegen.prepare import tidy

CALLS = """
define double @f(double %x) {
  %a = call double @small(double %x)
  %b = call double @again(double %a)
  %c = call double @apart(double %b)
  %d = call double @kept(double %c)
  %e = call double @long(double %d)
  ret double %e
}
define internal double @small(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define internal double @again(double %x) {
  %y = call double @again(double %x)
  ret double %y
}
define internal double @apart(double %x) noinline {
  %y = fadd double %x, %x
  ret double %y
}
define internal double @kept(double %x) {
  %y = fsub double %x, 1.0
  ret double %y
}
define internal double @long(double %x) {
  %v0 = fadd double %x, 1.0
ROWS
  ret double %v500
}
"""


def _left(small: bool) -> set[str]:
    rows = "\n".join(f"  %v{n} = fmul double %v{n - 1}, %x" for n in range(1, 501))
    text = tidy(CALLS.replace("ROWS", rows), ["f"], lambda name: name == "kept", small=small)
    body = text[text.index("@f(") :].partition("\n}")[0]
    return set(re.findall(r"call double @(\w+)", body))


def test_small_functions_alone_and_only_where_that_is_asked_for() -> None:
    assert _left(small=True) == {"again", "apart", "kept", "long"}
    assert _left(small=False) == {"small", "again", "apart", "kept", "long"}
