"""Which functions become parts of their callers before loops are looked at."""

from __future__ import annotations

import re

from irgrad import load
from irgrad.engine.codegen.early_inlining import inline_handed_locals
from irgrad.engine.codegen.passes import Code, Settings
from irgrad.engine.codegen.prepare import prepare, tidy

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


HANDED = """
define double @f(double %x, i1 %c) {
  %v = alloca { ptr, double }
  %at = getelementptr inbounds i8, ptr %v, i64 8
  store double %x, ptr %at
  br i1 %c, label %grow, label %on, !prof !0
grow:
  call void @grow(ptr %v)
  call void @kept(ptr %v)
  call void @again(ptr %at)
  call void @long(ptr %v)
  br label %on
on:
  %y = load double, ptr %at
  %z = call double @apart(double %y)
  ret double %z
}
define internal void @grow(ptr %v) cold {
  %at = getelementptr inbounds i8, ptr %v, i64 8
  %y = load double, ptr %at
  %z = fmul double %y, 2.0
  store double %z, ptr %at
  ret void
}
define internal void @kept(ptr %v) {
  ret void
}
define internal void @again(ptr %v) {
  call void @again(ptr %v)
  ret void
}
define internal double @apart(double %x) cold {
  ret double %x
}
define internal void @long(ptr %v) {
  %v0 = load double, ptr %v
ROWS
  store double %v200, ptr %v
  ret void
}
!0 = !{!"branch_weights", i32 1, i32 2000}
"""


def test_what_is_handed_a_variable_of_its_caller() -> None:
    rows = "\n".join(f"  %v{n} = fmul double %v{n - 1}, 2.0" for n in range(1, 201))
    code = Code(HANDED.replace("ROWS", rows))
    settings = Settings(("f",), lambda name: name == "kept")
    assert inline_handed_locals(code, settings)
    marked = {f.name for f in code.llvm.functions if b"alwaysinline" in b" ".join(f.attributes)}
    code.close()
    assert marked == {"grow"}
    assert not inline_handed_locals(Code(CALLS.replace("ROWS", "")), settings)  # no variables


GROWS = """#include <vector>
extern "C" double f(const double *x, long n) {
  std::vector<double> v;
  for (long i = 0; i < n; i++) { v.push_back(x[i] * x[i]); v.push_back(x[i] + 1); }
  double s = 0; for (double y : v) s += y * y; return s; }
"""


def test_a_vector_that_grows_is_no_memory_of_its_own() -> None:
    text = prepare(load(GROWS, language="c++").text, ["f"])
    assert " alloca " not in text[text.index("@f(") :].partition("\n}")[0]
