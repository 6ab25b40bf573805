"""Functions get the shape that differentiation expects."""

from __future__ import annotations

import ctypes

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.unify_returns import unify_returns

RETURNS = """define double @f(i32 %k, double %x) {
entry:
  switch i32 %k, label %other [ i32 0, label %zero
                                i32 1, label %one ]
zero:
  ret double 0.5
one:
  ret double %x
other:
  %y = fmul double %x, %x
  ret double %y
}
define void @g(i1 %c, ptr %p) {
  br i1 %c, label %return, label %no
return:
  store double 1.0, ptr %p
  ret void
no:
  ret void
}
"""
D, INT = ctypes.c_double, ctypes.c_int
MESSY = """
double f(int n, double x) {
  double s = 0;
  for (int i = 0; ; i++) {
    if (i > n) return s;
    for (int j = 0; j < i; j++) { if (s > 50) goto done; s += x * j; }
    if (i == 7) { s += 1; continue; }
    if (s < -3) break;
    s = s * 0.5 + i;
  }
done:
  return s + 100;
}
"""


def test_all_returns_go_through_one_block() -> None:
    module = read(RETURNS)
    for name in ("f", "g"):
        fn = module.functions[name]
        unify_returns(fn)
        assert sum(b.terminator.opcode == "ret" for b in fn.blocks) == 1
        names = [b.name for b in fn.blocks if b.name]
        assert len(names) == len(set(names)), "the new block does not take a name that is in use"
    call = compile_module(to_text(module), ["f", "g"], cache=False).function("f", D, INT, D)
    assert [call(k, 3.0) for k in (0, 1, 2)] == [0.5, 3.0, 9.0]


def test_one_return_stays_as_it_is() -> None:
    module = read("define void @f() {\n  ret void\n}")
    unify_returns(module.functions["f"])
    assert len(module.functions["f"].blocks) == 1
