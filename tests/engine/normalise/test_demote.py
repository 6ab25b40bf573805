"""Values that leave a loop without an exit phi go through memory."""

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
def test_only_what_escapes_is_demoted(text: str, count: int) -> None:
    module = read(text)
    fn = module.functions["f"]
    assert close_loops(fn) == count
    assert not _escaping(fn)
    assert sum(i.opcode == "alloca" for i in fn.instructions()) == count


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
