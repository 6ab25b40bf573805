"""The report and the source lines in it."""

from __future__ import annotations

from analysed import facts_of_c

SOURCE = """
__attribute__((always_inline)) static inline double square(double v) {
  return v * v;
}
void f(double *x, double *c, double *out) {
  *out = square(x[0]) +
         c[1];
}
"""


def test_report_names_memory_functions_and_lines() -> None:
    facts = facts_of_c(SOURCE, "f", {0, 2}, "-g")
    report = facts.report()
    assert report.startswith("root @f, differentiated: %0, %2")
    assert "argument %0: [0: double]; active, shadowed" in report
    assert "argument %1: [8: double]; inactive" in report
    assert "function @f" in report
    assert "prog.c:3:" in report
