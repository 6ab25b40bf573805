"""Copies of functions' bodies, in the place of a call."""

from __future__ import annotations

from irgrad.engine.ir.model import Block, Value
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.parallel.copies import copied_blocks, cut_block, inline

TEXT = """
define i32 @g(i32 %a) {
entry:
  %v = alloca i32, align 4
  store i32 %a, ptr %v, align 4
  %c = icmp sgt i32 %a, 3
  br i1 %c, label %big, label %small

big:
  ret i32 7

small:
  %l = load i32, ptr %v, align 4
  ret i32 %l
}

define i32 @f(i32 %x, i1 %b) {
entry:
  br i1 %b, label %then, label %end

then:
  %r = call i32 @g(i32 %x)
  %s = add i32 %r, 1
  br label %end

end:
  %p = phi i32 [ 0, %entry ], [ %s, %then ]
  ret i32 %p
}
"""


def test_a_body_takes_the_place_of_a_call() -> None:
    module = read(TEXT)
    fn = module.functions["f"]
    inline(fn, next(i for i in fn.instructions() if i.is_call))
    again = read(to_text(module)).functions["f"]
    assert not any(i.is_call for i in again.instructions())
    assert sum(i.opcode == "ret" for i in again.instructions()) == 1
    assert [i.opcode for i in again.entry.instructions] == ["alloca", "br"]
    phis = [i for i in again.instructions() if i.opcode == "phi"]
    assert sorted(len(phi.operands) for phi in phis) == [2, 2]


def test_copies_use_each_other() -> None:
    module = read(TEXT)
    fn = module.functions["g"]
    known: dict[Value, Value] = {}
    copies = copied_blocks(fn.blocks, known)
    inside = {i for block in copies for i in block.instructions}
    assert not inside & set(fn.instructions())
    assert all(o in inside for block in copies for i in block.instructions for o in i.operands if o in known.values()
               and not isinstance(o, Block))  # fmt: skip
    assert all(b in copies for block in copies for b in block.successors)


def test_a_block_is_cut() -> None:
    fn = read(TEXT).functions["f"]
    then = fn.blocks[1]
    rest = cut_block(fn, then, 1)
    assert [i.opcode for i in then.instructions] == ["call"]
    assert [i.opcode for i in rest.instructions] == ["add", "br"]
    assert fn.blocks[3].phis[0].blocks == [fn.blocks[0], rest]
