"""Blocks and loops of functions as text."""

from __future__ import annotations

from irgrad.engine.ir.text.flow import blocks_of, loops_of

NEST = """  br label %outer

outer:                                            ; preds = %"a b", %0
  br label %inner

inner:                                            ; preds = %inner, %outer
  br i1 %more, label %inner, label %"a b"

"a b":                                            ; preds = %inner
  br i1 %again, label %outer, label %out

out:                                              ; preds = %"a b"
  ret void
"""


def test_blocks_have_their_labels() -> None:
    blocks = blocks_of(NEST)
    assert list(blocks) == ["", "outer", "inner", '"a b"', "out"]
    assert "".join(line for lines in blocks.values() for line in lines) == NEST
    assert list(blocks_of("entry:\n  ret void\n")) == ["entry"]


def test_loops_hold_the_loops_inside() -> None:
    assert loops_of(blocks_of(NEST)) == {"inner": {"inner"}, "outer": {"outer", "inner", '"a b"'}}


def test_straight_code_has_none() -> None:
    assert loops_of(blocks_of("  br label %on\non:\n  ret void\n")) == {}
