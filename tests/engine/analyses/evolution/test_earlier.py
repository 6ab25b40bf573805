"""What a later loop computes, known at an earlier block: where it is, its conditions, its numbers."""

from __future__ import annotations

import pytest
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import PostDominators
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.earlier import Earlier, Numbers
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Instruction, Module
from irgrad.engine.ir.text.reader import read

TEXT = """
define void @f(ptr noalias readonly %k, ptr noalias %w, ptr noalias %out, i64 %n, i64 %step) {
here:
  %half = lshr i64 %n, 1
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %between, label %join
between:
  store i64 1, ptr %w, align 8
  br label %join
join:
  %bound = add i64 %half, 3
  %large = icmp sgt i64 %n, 4
  br i1 %large, label %side, label %end
side:
  %odd = icmp eq i64 %step, 9
  br i1 %odd, label %end, label %pre
pre:
  br label %loop
loop:
  %i = phi i64 [ 2, %pre ], [ %i1, %back ]
  %d = phi i32 [ 30, %pre ], [ %d1, %back ]
  %at = getelementptr inbounds i32, ptr %k, i64 %i
  %j = load i32, ptr %at, align 4
  %jj = zext i32 %j to i64
  %sum = add i64 %jj, %i
  %again = getelementptr inbounds i32, ptr %k, i64 %jj
  %jk = load i32, ptr %again, align 4
  %mixed = add i32 %jk, %d
  %wp = getelementptr inbounds i64, ptr %w, i64 %i
  %own = load i64, ptr %wp, align 8
  %quotient = udiv i64 %jj, %step
  %rare = icmp eq i64 %i, 3
  br i1 %rare, label %inner, label %back
inner:
  %kp = getelementptr inbounds i32, ptr %k, i64 %bound
  %hidden = load i32, ptr %kp, align 4
  br label %back
back:
  %merged = phi i32 [ %j, %loop ], [ 5, %inner ]
  %i1 = add nuw nsw i64 %i, 2
  %d1 = add nsw i32 %d, -3
  %done = icmp uge i64 %i1, %bound
  br i1 %done, label %end, label %loop
end:
  ret void
}
"""
INDEX = [1, 3, 0, 2, 5, 4, 6, 2, 1, 0, 3, 3]


def _earlier(text: str, block: int = 0) -> tuple[Module, Earlier, dict[str, Instruction]]:
    module = read(text, roots=["f"])
    fn = module.functions["f"]
    cfg = Cfg(fn)
    loops = Loops(cfg)
    made = Earlier(Induction(fn, cfg, loops), PostDominators(cfg), fn.blocks[block])
    return module, made, {i.name: i for i in fn.instructions() if i.name}


def _numbers(text: str, name: str, block: int = 0, shift: int = 0, bits: int = 64) -> Numbers | None:
    _, earlier, named = _earlier(text, block)
    (loop,) = earlier.induction.loops.all
    return earlier.numbers(loop, named[name], shift, bits)


@pytest.mark.parametrize(
    ("name", "iteration", "expected"),
    [("j", 0, INDEX[2]), ("j", 2, INDEX[6]), ("sum", 1, INDEX[4] + 4), ("mixed", 2, INDEX[INDEX[6]] + 24), ("i", 3, 8)],
)
def test_numbers_of_an_iteration(name: str, iteration: int, expected: int) -> None:
    for shift, bits in ((0, 64), (-100, 64), (-100, 12)):
        module, earlier, named = _earlier(TEXT)
        (loop,) = earlier.induction.loops.all
        numbers = earlier.numbers(loop, named[name], shift, bits)
        assert numbers is not None
        fn = module.functions["f"]
        b = Builder(fn.entry, at=len(fn.entry.instructions) - 1)
        found = [earlier.number(b, numbers, ConstInt(ty.I64, iteration)), earlier.emit(b, numbers.count)]
        found.append(b.cast("zext", earlier.holds(b, numbers), ty.I64))
        for place, value in enumerate(found):
            b.store(value, b.gep(ty.I64, fn.args[2], place), align=8)
        for n, step in ((8, 1), (8, 9), (4, 1), (0, 1), (9, 7)):
            machine = Machine(module, FloatDomain())
            out = machine.array(ty.I64, [0, 0, 0])
            k, w = machine.array(ty.I32, INDEX), machine.array(ty.I64, [0] * 12)
            machine.call("f", [k, w, out, n, step])
            number, count, holds = machine.read(out, ty.I64, 3)
            assert number == (expected + shift) % (1 << bits)
            assert holds == (n > 4 and step != 9)
            if holds:
                assert count == (n // 2 + 3 - 2 + 1) // 2 - 1


@pytest.mark.parametrize("name", ["own", "quotient", "hidden", "merged"])
def test_numbers_that_are_not_known(name: str) -> None:
    """Memory that is written, division by what may be zero, what some iterations read, what depends on the way."""
    assert _numbers(TEXT, name) is None
    assert _numbers(TEXT, "jk") is not None


@pytest.mark.parametrize("words", ["noalias", "readonly"])
def test_indices_that_may_change(words: str) -> None:
    attributes = f"ptr {words} %k"
    assert _numbers(TEXT.replace("ptr noalias readonly %k", attributes), "j") is None


def test_conditions() -> None:
    """Outermost first; none that always hold, or that have been asked already."""
    numbers = _numbers(TEXT, "j")
    assert numbers is not None
    assert [(c.name, way) for c, way in numbers.conditions] == [("large", True), ("odd", False)]
    behind = _numbers(TEXT, "j", 3)
    assert behind is not None
    assert [(c.name, way) for c, way in behind.conditions] == [("odd", False)]
    loaded = "%l = load i64, ptr %w, align 8\n  %odd = icmp eq i64 %l, 9"
    assert _numbers(TEXT.replace("%odd = icmp eq i64 %step, 9", loaded), "j") is None
    switch = "switch i64 %step, label %pre [ i64 9, label %end i64 8, label %pre ]"
    assert _numbers(TEXT.replace("br i1 %odd, label %end, label %pre", switch), "j") is None
