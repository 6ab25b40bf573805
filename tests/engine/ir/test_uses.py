"""Def-use chains: every use in order, none missing."""

from __future__ import annotations

from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.uses import uses_of

TEXT = """
define double @f(double %x, i1 %c) {
entry:
  %y = fmul double %x, %x
  br i1 %c, label %on, label %end
on:
  %z = fadd double %y, %x
  br label %end
end:
  %r = phi double [ %y, %entry ], [ %z, %on ]
  ret double %r
}
"""


def test_every_use_in_order() -> None:
    fn = read(TEXT).functions["f"]
    y, z, r = fn.blocks[0].instructions[0], fn.blocks[1].instructions[0], fn.blocks[2].instructions[0]
    uses = uses_of(fn.blocks)
    assert uses[fn.args[0]] == [y, y, z] and uses[y] == [z, r] and uses[z] == [r]
    assert r in uses and uses[r][0].opcode == "ret"
    assert uses_of(fn.blocks[:1]).get(y) is None
