"""Bodies: names before their definition, numbers, debug records, attachments."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.model import Argument, Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import IRSyntaxError

TEXT = """
define i32 @f(i32, i32 %n) !dbg !3 {
  br label %head

body:                                             ; preds = %head
  %next = add i32 %i, %2
  br label %head

head:                                             ; preds = %body, %1
  %i = phi i32 [ 0, %1 ], [ %next, %body ], !dbg !5
    #dbg_value(i32 %i, !7, !DIExpression(), !5)
  %2 = mul i32 %0, 3
  %c = icmp slt i32 %i, %n
  br i1 %c, label %body, label %4, !llvm.loop !6, !dbg !5

4:
  ret i32 %i
}
!3 = !{}
!5 = !{}
!6 = distinct !{!6}
!7 = !{}
"""


def test_forward_references_are_the_instructions_themselves() -> None:
    function = read(TEXT).functions["f"]
    entry, body, head, last = function.blocks
    phi, record, _, branch = head.instructions[0], head.instructions[1], head.instructions[2], head.instructions[3]
    add = body.instructions[0]
    assert add.operands == [phi, record]
    assert phi.operands[1] is add and phi.blocks == [entry, body]
    assert record.operands[0] is function.args[0]
    assert isinstance(record.operands[0], Argument) and isinstance(add, Instruction)
    assert last.instructions[0].operands[0] is phi
    assert branch.metadata == {"llvm.loop": "!6", "dbg": "!5"}
    assert record.debug_records == ["#dbg_value(i32 %i, !7, !DIExpression(), !5)"]
    assert function.metadata == {"dbg": "!3"}
    assert all(i.block is b for b in function.blocks for i in b.instructions)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%x = store i32 1, ptr null", "no name"),
        ("ret i32 1 }", "an instruction"),
        ("%y = add i32 1", "`,`"),
        ("%y = add i32 1, 2, dbg", "metadata"),
        ("%y add i32 1, 2", "`=`"),
    ],
)
def test_errors_in_bodies(line: str, words: str) -> None:
    with pytest.raises(IRSyntaxError) as caught:
        read(f"define i32 @f() {{\n  {line}\n  ret i32 0\n}}\n")
    assert words in caught.value.because
