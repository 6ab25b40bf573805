"""Values that leave a loop have an exit phi, or go through memory."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.demote import close_loops

OPEN = """define i64 @f(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %square = mul i64 %i, %i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  %twice = add i64 %square, %square
  br label %join
join:
  %late = phi i64 [ %next, %out ]
  %r = add i64 %twice, %late
  ret i64 %r
}
"""
CLOSED = OPEN.replace(
    "  %twice = add i64 %square, %square",
    "  %s = phi i64 [ %square, %loop ]\n  %n.out = phi i64 [ %next, %loop ]\n  %twice = add i64 %s, %s",
).replace("[ %next, %out ]", "[ %n.out, %out ]")


def _escaping(fn: Function) -> list[str]:
    """Names of values used outside of their loop, exit phis apart."""
    cfg = Cfg(fn)
    loops = Loops(cfg, Dominators(cfg))
    found = []
    for block in cfg.rpo:
        for instr in block.instructions:
            for i, operand in enumerate(instr.operands):
                if isinstance(operand, Instruction) and operand.block is not None:
                    home = loops.of(operand.block)
                    where = instr.blocks[i] if instr.opcode == "phi" else block
                    if home is not None and not home.contains(where):
                        found.append(operand.name or "?")
    return found


@pytest.mark.parametrize(("text", "count"), [(OPEN, 2), (CLOSED, 0)])
def test_what_escapes_has_a_phi_at_the_exit(text: str, count: int) -> None:
    module = read(text)
    fn = module.functions["f"]
    assert close_loops(fn) == count
    assert not _escaping(fn) and not verify_module(module)
    assert not any(i.opcode == "alloca" for i in fn.instructions())
    assert [len(block.phis) for block in fn.blocks] == [0, 1, 2, 1]


NESTED = """define i64 @f(i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.latch ]
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %square = mul i64 %j, %i
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, %n
  br i1 %more, label %inner, label %outer.latch
outer.latch:
  %i.next = add i64 %i, 1
  %on = icmp slt i64 %i.next, %n
  br i1 %on, label %outer, label %out
out:
  %r = add i64 %square, %n
  ret i64 %r
}
"""
TWO_EXITS = """define i64 @f(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %square = mul i64 %i, %i
  %next = add i64 %i, 1
  %large = icmp sgt i64 %square, 10
  br i1 %large, label %one, label %latch
latch:
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %two
one:
  br label %out
two:
  br label %out
out:
  %r = add i64 %square, %n
  ret i64 %r
}
"""


@pytest.mark.parametrize(("text", "allocas"), [(NESTED, 0), (TWO_EXITS, 1)])
def test_several_loops_and_several_exits(text: str, allocas: int) -> None:
    module = read(text)
    fn = module.functions["f"]
    assert close_loops(fn) == 1
    assert not _escaping(fn) and not verify_module(module)
    assert sum(i.opcode == "alloca" for i in fn.instructions()) == allocas
    call, before = (
        compile_module(ir, ["f"], cache=False).function("f", ctypes.c_int64, ctypes.c_int64)
        for ir in (to_text(module), text)
    )
    assert [call(n) for n in range(1, 9)] == [before(n) for n in range(1, 9)]


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_the_function_computes_the_same(n: int) -> None:
    module = read(OPEN)
    close_loops(module.functions["f"])
    call = compile_module(to_text(module), ["f"], cache=False).function("f", ctypes.c_int64, ctypes.c_int64)
    last = max(n, 1) - 1
    assert call(n) == 2 * last * last + last + 1


def test_straight_code_is_left_alone() -> None:
    module = read("define i64 @f(i64 %n) {\n  %a = add i64 %n, 1\n  ret i64 %a\n}")
    assert close_loops(module.functions["f"]) == 0
