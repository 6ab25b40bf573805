"""Pointers into the block that is held in a table: what shows that, and what does not."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import asked, module_of

import irgrad
from irgrad.engine import grad, jvp
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.legality.held_pointers import HeldPointers
from irgrad.engine.pipeline.derivatives import analysed

WALKS = """define internal void @walks(ptr %p, ptr %m, i64 %n) noinline {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %entered, %loop ]
  %k = phi ptr [ %m, %entry ], [ %k.on, %loop ]
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %read.walks = load ptr, ptr %k
  %v = load double, ptr %read.walks
  store double %v, ptr %q
  %k.on = getelementptr ptr, ptr %k, i64 1
  %block = load ptr, ptr %k.on
  %entered = getelementptr double, ptr %block, i64 3
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}"""
# it goes on to the next block with a pointer into the one before
STAYS = (WALKS.replace("walks", "stays").replace("  %block = load ptr, ptr %k.on\n", "")
         .replace("ptr %block, i64 3", "ptr %read.stays, i64 3"))  # fmt: skip
PROGRAM = """
define internal void @kept(ptr %p, ptr %m) noinline {
  %read.kept = load ptr, ptr %m
  %v = load double, ptr %read.kept
  store double %v, ptr %p
  ret void
}
define internal void @one(ptr %p, ptr %m) noinline {
  %read.one = load ptr, ptr %m
  %v = load double, ptr %read.one
  store double %v, ptr %p
  ret void
}
define internal void @written(ptr %p, ptr %m, ptr %other) noinline {
  store ptr %other, ptr %m
  %read.written = load ptr, ptr %m
  %v = load double, ptr %read.written
  store double %v, ptr %p
  ret void
}
define internal void @before(ptr %p, ptr %m) noinline {
  %read.before = load ptr, ptr %m
  %v = load double, ptr %read.before
  store double %v, ptr %p
  ret void
}
define internal void @next(ptr %p, ptr %m) noinline {
  %on = getelementptr ptr, ptr %m, i64 1
  %read.next = load ptr, ptr %on
  %v = load double, ptr %read.next
  store double %v, ptr %p
  ret void
}
WALKS
STAYS
define void @f(ptr %x, ptr %rows, ptr %o, i64 %n) {
entry:
  %m = getelementptr ptr, ptr %rows, i64 %n
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %begin, label %call
begin:
  %first = load ptr, ptr %m
  %p.first = getelementptr double, ptr %first, i64 %n
  br label %call
call:
  %p = phi ptr [ null, %entry ], [ %p.first, %begin ]
  call void @kept(ptr %p, ptr %m)
  call void @one(ptr %p, ptr %m)
  call void @one(ptr %x, ptr %m)
  call void @next(ptr %p, ptr %m)
  call void @walks(ptr %p, ptr %m, i64 %n)
  call void @stays(ptr %p, ptr %m, i64 %n)
  call void @written(ptr %p, ptr %m, ptr %x)
  call void @before(ptr %p, ptr %m)
  ret void
}
""".replace("WALKS", WALKS).replace("STAYS", STAYS)
SHOWN = {
    "kept": True, "walks": True, "one": False, "written": False, "before": False, "next": False, "stays": False
}  # fmt: skip
DEQUE = """
#include <cmath>
#include <deque>
extern "C" double deque(const double *x, long n) {
  std::deque<double> d(x, x + n);
  CHANGED
  double s = 0;
  for (auto &v : d) s = 0.5 * s + std::sin(v) * v;
  return s;
}
"""
CHANGES = {
    "insert": "d.insert(d.begin() + 2, x[1] * x[2]); d.insert(d.begin() + 4, x[0]);",
    "insert several": "d.insert(d.begin() + 1, 3, x[1] * x[2]);",
    "erase": "d.erase(d.begin() + 1); d.erase(d.begin(), d.begin() + 2);",
    "assign": "std::deque<double> e(3, x[0]); e = d; d = std::deque<double>(e.begin() + 1, e.end()); d[0] *= x[0];",
    "append": "std::deque<double> e = d; d.insert(d.end(), e.begin() + 1, e.end()); d.resize(12, x[1]);",
    "copy": "std::deque<double> e(d.begin() + 1, d.end() - 1); d.push_front(e.back() * x[0]); d.push_back(e.front());",
}
X = np.array([0.5, 0.3, 1.2, 0.7, 0.9])


@pytest.mark.parametrize("name", SHOWN)
def test_blocks_in_a_table(name: str) -> None:
    module = module_of(PROGRAM, "f", prepared=False)
    request = asked("f", "reverse", ["dup", "dup", "dup", "const"], buffers=["double", "ptr", "double", ""])
    unit = analysed(module, module.functions["f"], request)
    callers: dict[Function, list[Instruction]] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            for callee in (unit.pointers.callees(instr) or ()) if instr.is_call else ():
                callers.setdefault(callee, []).append(instr)

    def unmoved(value):
        while isinstance(value, Instruction) and value.opcode == "getelementptr":
            value = value.operands[0]
        return value

    held = HeldPointers(unit.pointers, unit.root, callers, unmoved)
    fn = module.functions[name]
    read = next(instr for instr in fn.instructions() if instr.name == f"read.{name}")
    pointer = next((instr for instr in fn.instructions() if instr.name == "q"), fn.args[0])
    assert held.shown(pointer, read) is SHOWN[name]


@pytest.mark.parametrize(
    "change", ["insert", *(pytest.param(c, marks=pytest.mark.long) for c in CHANGES if c != "insert")]
)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_deques(change: str, level: str) -> None:
    source = DEQUE.replace("CHANGED", CHANGES[change])
    kernel = irgrad.load(source, language="c++", flags=[level]).kernel("deque", "f64(f64[n] x, i64 n)")
    h = 1e-6
    want = [(kernel(X + h * e) - kernel(X - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(grad(kernel)(X), want, rtol=1e-7)
    np.testing.assert_allclose(jvp(kernel, (X,), (X,))[1], np.dot(want, X), rtol=1e-7)
