"""Functions get the shape that differentiation expects."""

from __future__ import annotations

import ctypes

import pytest
from analysed import ir_of

from irgrad.engine.analyses.cfg import Cfg
from irgrad.engine.analyses.loops import Loops
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.reader import read
from irgrad.engine.transforms.canonical import canonicalise_function, canonicalise_module, unify_returns

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


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_loops_have_preheader_latch_and_exits_of_their_own(level: str) -> None:
    text = ir_of(MESSY, (level, "-Xclang", "-disable-O0-optnone"))
    want = compile_module(text, ["f"], cache=False).function("f", D, INT, D)
    module = read(text, roots=["f"])
    fn = module.functions["f"]
    canonicalise_function(module, fn)
    loops = Loops(Cfg(fn))
    assert len(loops.all) == 2
    for loop in loops.all:
        assert loop.preheader is not None
        assert len(loop.latches) == 1
        for block in loop.exits:
            assert all(loop.contains(p) for p in loops.cfg.preds(block)), "the exit belongs to this loop alone"
    assert sum(b.terminator.opcode == "ret" for b in fn.blocks) == 1
    got = compile_module(to_text(module), ["f"], cache=False).function("f", D, INT, D)
    for n in (-1, 0, 1, 5, 7, 8, 40):
        for x in (-2.0, 0.25, 3.0):
            assert got(n, x) == want(n, x)


def test_every_function_of_the_module_is_done() -> None:
    module = read(RETURNS)
    canonicalise_module(module, module.functions["f"])
    for name in ("f", "g"):
        assert sum(b.terminator.opcode == "ret" for b in module.functions[name].blocks) == 1
