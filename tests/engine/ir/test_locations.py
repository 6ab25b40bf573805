"""Source lines from debug metadata."""

from __future__ import annotations

from analysed import all_of, facts_of_c

from irgrad.engine.ir.locations import function_location, functions_at, locate

SOURCE = """
__attribute__((always_inline)) static inline double square(double v) {
  return v * v;
}
void f(double *x, double *c, double *out) {
  *out = square(x[0]) +
         c[1];
}
"""


def test_locations_tell_where_code_was_inlined() -> None:
    facts = facts_of_c(SOURCE, "f", {0, 2}, "-g")
    product = (all_of(facts, "fmul") + [c for c in all_of(facts, "call") if "fmuladd" in str(c.callee_name)])[0]
    where = locate(facts.module, product)
    assert "prog.c:" in where
    assert function_location(facts.module, facts.root).endswith("prog.c:5")
    assert [name for name, file in functions_at(facts.module, product) if file.endswith("prog.c")] == ["square", "f"]
    assert "(inlined at" in "".join(locate(facts.module, i) for i in facts.root.instructions())


def test_no_debug_information_no_location() -> None:
    facts = facts_of_c(SOURCE, "f", {0, 2}, "-g0")
    assert not any(list(functions_at(facts.module, i)) for i in facts.root.instructions())
    assert all(locate(facts.module, i) == "" for i in facts.root.instructions())
    assert function_location(facts.module, facts.root) == ""
