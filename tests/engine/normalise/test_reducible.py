"""Irreducible control flow becomes reducible and computes the same; loops get preheader, one latch, own exits."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterable

import pytest
from clang_ir import clang_ir

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reducible import canonicalise, make_reducible
from irgrad.rules.errors import Unsupported

DUFF = """
double f(int n, double x) {
  double s = 0; int k = (n + 3) / 4, i = 0;
  if (n <= 0) return 0;
  switch (n % 4) {
  case 0: do { s = s * x + i++;
  case 3:      s = s * x - i++;
  case 2:      s = s + x * i++;
  case 1:      s = s / 2 + i++;
          } while (--k > 0);
  }
  return s;
}
"""
INTO_NEST = """
double f(int n, double x) {
  double s = 1, t = x; int i = 0, j = 0;
  if (n & 1) goto inner;
  if (n & 2) goto tail;
  for (i = 0; i < n; i++) {
    s += t;
    for (j = 0; j < i; j++) {
      t = t * 0.5 + s * 0.25;
inner:
      s = s * 0.75 + j;
      if (s > 100) goto tail;
    }
tail:
    t += i;
    if (t > 1000) break;
  }
  return s + 10 * t + i;
}
"""
SWAPPED = """
double f(int n, double x) {
  double a = x, b = 1 - x, t; int i = 0;
  if (n % 3 == 0) goto second;
first:
  t = a; a = b; b = t + i * 0.5; i++;
  if (i > n) return a - b;
second:
  t = b; b = a * 0.5; a = t; i++;
  if (i > n) return a + 2 * b;
  goto first;
}
"""


def random_gotos(seed: int) -> str:
    """A function of labelled statements with jumps anywhere, kept finite by a fuel counter."""
    rng = random.Random(seed)
    n = rng.randrange(4, 12)
    lines = ["double f(int n, double x) {", "  double s = x, t = 1 - x; int fuel = 60, h = n;"]
    for i in range(n):
        statement = rng.choice(
            ["s = s * 0.5 + t;", "t = t - s * 0.25;", "{ double u = s; s = t; t = u; }", "s += fuel;", "t = x + h % 7;"]
        )
        lines.append(f"L{i}: {statement} h = h * 5 + {rng.randrange(1, 99)}; if (--fuel < 0) return s + 3 * t;")
        kind = rng.random()
        if kind < 0.5:
            lines.append(f"  if ((h >> {rng.randrange(2, 9)}) & 1) goto L{rng.randrange(n)};")
        elif kind < 0.7:
            lines.append(f"  goto L{rng.randrange(n)};")
        else:
            targets = [rng.randrange(n) for _ in range(3)]
            cases = " ".join(f"case {k}: goto L{t};" for k, t in enumerate(targets))
            lines.append(f"  switch ((h >> 3) & 3) {{ {cases} }}")
    return "\n".join([*lines, "  return s - t;", "}"])


def compiled(text: str) -> Callable[[int, float], float]:
    unit = compile_module(text, ["f"])
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.c_double)(unit.address("f"))
    call.unit = unit  # type: ignore[attr-defined]  # machine code lives as long as its unit
    return call


def same(before: str, after: str, ns: Iterable[int]) -> None:
    old, new = compiled(before), compiled(after)
    for n in ns:
        for x in (0.3, -1.25):
            assert repr(old(n, x)) == repr(new(n, x)), (n, x)


def canonical(fn: Function) -> None:
    loops = Loops(Cfg(fn))
    for loop in loops.all:
        assert loop.preheader is not None and loop.latch is not None
        for target in loop.exits:
            assert all(loop.contains(p) for p in loops.cfg.preds(target))


def rewritten(module: Module) -> bool:
    fn = module.functions["f"]
    changed = make_reducible(fn)
    assert not Loops(Cfg(fn)).irreducible
    canonicalise(fn)
    canonical(fn)
    assert not canonicalise(fn)
    return changed


@pytest.mark.parametrize("level", ["-O1", "-O2"])
@pytest.mark.parametrize("source", [DUFF, INTO_NEST, SWAPPED], ids=["duff", "into_nest", "swapped"])
def test_jumps_into_loops(source: str, level: str) -> None:
    text = clang_ir(source, level)
    module = read(text)
    assert Loops(Cfg(module.functions["f"])).irreducible
    assert rewritten(module)
    same(text, to_text(module), range(-2, 40))


@pytest.mark.parametrize("seed", range(12))
def test_random_gotos(seed: int) -> None:
    text = clang_ir(random_gotos(seed), "-O1")
    module = read(text)
    rewritten(module)
    same(text, to_text(module), range(25))


def test_some_random_gotos_are_irreducible() -> None:
    """So that the test above tests something."""
    texts = [clang_ir(random_gotos(seed), "-O1") for seed in range(12)]
    assert sum(Loops(Cfg(read(t).functions["f"])).irreducible for t in texts) >= 5


def test_reducible_functions_stay_as_they_are() -> None:
    text = clang_ir("double f(int n, double x) { for (int i = 0; i < n; i++) x *= x; return x; }", "-O2")
    module = read(text)
    before = to_text(module)
    assert not make_reducible(module.functions["f"])
    assert to_text(module) == before


def test_shared_exits_and_latches_are_split() -> None:
    text = """
define double @f(i32 %n, double %x) {
entry:
  %z = icmp slt i32 %n, 0
  br i1 %z, label %out, label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i1, %inner ], [ %i2, %side ]
  %s = phi double [ %x, %entry ], [ %t, %inner ], [ %u, %side ]
  %done = icmp sgt i32 %i, %n
  br i1 %done, label %out, label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j1, %again ]
  %t0 = phi double [ %s, %outer ], [ %t, %again ]
  %t = fadd double %t0, 1.5
  %j1 = add i32 %j, 1
  %i1 = add i32 %i, 1
  %odd = and i32 %j1, 3
  switch i32 %odd, label %again [ i32 3, label %outer
                                  i32 2, label %side ]
again:
  %far = icmp sgt i32 %j, 50
  br i1 %far, label %out, label %inner
side:
  %u = fmul double %t, 0.5
  %i2 = add i32 %i, 2
  %huge = fcmp ogt double %u, 1.0e6
  br i1 %huge, label %out, label %outer
out:
  %r = phi double [ 0.0, %entry ], [ %s, %outer ], [ %t, %again ], [ %u, %side ]
  ret double %r
}
"""
    module = read(text)
    assert canonicalise(module.functions["f"])
    canonical(module.functions["f"])
    same(text, to_text(module), range(-2, 12))


def test_invoke_into_an_irreducible_cycle() -> None:
    text = """
declare i32 @__gxx_personality_v0(...)
define double @g(double %x) noinline {
  %y = fmul double %x, 0.5
  ret double %y
}
define double @f(i32 %n, double %x) personality ptr @__gxx_personality_v0 {
entry:
  %odd = and i32 %n, 1
  %c = icmp eq i32 %odd, 0
  %v = invoke double @g(double %x) to label %fork unwind label %pad
fork:
  br i1 %c, label %a, label %b
a:
  %pa = phi double [ %v, %fork ], [ %y, %b ]
  %ia = phi i32 [ 0, %fork ], [ %ib1, %b ]
  %w = invoke double @g(double %pa) to label %b unwind label %pad
b:
  %pb = phi double [ %x, %fork ], [ %w, %a ]
  %ib = phi i32 [ 1, %fork ], [ %ia, %a ]
  %y = fadd double %pb, 1.0
  %ib1 = add i32 %ib, 1
  %stop = icmp sgt i32 %ib, %n
  br i1 %stop, label %out, label %a
out:
  ret double %y
pad:
  %l = landingpad { ptr, i32 } cleanup
  ret double 0.0
}
"""
    module = read(text)
    fn = module.functions["f"]
    assert make_reducible(fn) and not Loops(Cfg(fn)).irreducible
    canonicalise(fn)  # the landing pad stays a shared exit: an unwind edge cannot be redirected
    same(text, to_text(module), range(-2, 12))


def test_what_cannot_be_redirected_is_refused() -> None:
    text = """
define void @f(ptr %to) {
entry:
  indirectbr ptr %to, [label %a, label %b]
a:
  br label %b
b:
  indirectbr ptr %to, [label %a, label %b]
}
"""
    with pytest.raises(Unsupported) as caught:
        make_reducible(read(text).functions["f"])
    message = str(caught.value)
    assert "irreducible control flow" in message and "@f" in message and "indirectbr" in message and "to fix" in message
