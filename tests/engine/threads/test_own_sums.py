"""Sums in an array go by an argument of their own, which leads to the same memory in all calls."""

from __future__ import annotations

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.own_sums import apart_from

TEXT = """
define void @f(ptr %p, i64 %i) {
  %a = getelementptr { double, double }, ptr %p, i64 %i
  %b = getelementptr i8, ptr %a, i64 8
  store double 0.0, ptr %a
  %old = load double, ptr %b
  %new = fadd double %old, 1.0
  store double %new, ptr %b
  ret void
}
define void @g(ptr %q) {
  %r = getelementptr i8, ptr %q, i64 16
  call void @f(ptr %r, i64 3)
  ret void
}
"""


def test_an_argument_more() -> None:
    module = read(TEXT, roots=["g"])
    fn = module.functions["f"]
    rows = list(fn.instructions())
    more = apart_from(module, fn.args[0], [(rows[3], 0), (rows[5], 1)])
    assert more is fn.args[2]
    own = rows[3].operands[0]
    assert own is rows[5].operands[1] and own is not rows[1]  # one copy of the address
    assert own.operands[0].operands[0] is more  # type: ignore[attr-defined]
    assert rows[2].operands[1] is rows[0] and rows[0].operands[0] is fn.args[0]
    call = next(i for i in module.functions["g"].instructions() if i.is_call)
    assert call.args[0] is call.args[2]
    read(to_text(module), roots=["g"])
