"""Small steps of rewriting."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.printer import instruction_to_text, to_text
from irgrad.engine.ir.rewrite import (
    copied,
    declare,
    note_choice,
    note_loops,
    personality,
    replace_uses,
    scalar_tag,
    text_constant,
)
from irgrad.engine.ir.text.reader import read

TEXT = """
define double @f(double %x) {
  %a = fadd double %x, 1.0
  %b = fmul nnan double %a, %a
  %c = fsub double %b, %a
  ret double %c
}
"""


def test_uses_follow_chains() -> None:
    module = read(TEXT)
    fn = module.functions["f"]
    a, b, c, ret = fn.instructions()
    replace_uses(fn, {a: b, b: fn.args[0]})
    assert b.operands == [fn.args[0], fn.args[0]] and c.operands == [fn.args[0], fn.args[0]] and ret.operands == [c]


def test_a_copy_has_what_the_original_has() -> None:
    fn = read(TEXT).functions["f"]
    b = list(fn.instructions())[1]
    new = copied(b, [fn.args[0], fn.args[0]])
    assert new.flags == b.flags == ("nnan",) and new.opcode == "fmul" and new.metadata is not b.metadata
    assert "fmul nnan double %x, %x" in instruction_to_text(new)


def test_declared_once() -> None:
    module = read(TEXT)
    first = declare(module, "g", ty.F64, (ty.F64,), "nounwind")
    assert first.is_declaration and declare(module, "g", ty.VOID, ()) is first
    assert declare(module, "f", ty.VOID, ()) is module.functions["f"]


def test_loops_are_noted_behind_what_is_noted_already() -> None:
    module = read("""
define void @f(i1 %c) {
entry:
  br label %one
one:
  br i1 %c, label %one, label %two
two:
  br i1 %c, label %two, label %end
end:
  ret void
}
!0 = !{!"kept"}
""")
    blocks = module.functions["f"].blocks
    note_loops(module, [[blocks[1]], [blocks[2]]], "llvm.loop.unroll.disable")
    text = to_text(module)
    assert "label %two, !llvm.loop !2" in text and "label %end, !llvm.loop !3" in text
    assert '!0 = !{!"kept"}' in text and '!1 = !{!"llvm.loop.unroll.disable"}' in text
    assert "!2 = distinct !{!2, !1}" in text and "!3 = distinct !{!3, !1}" in text
    before = to_text(module)
    note_loops(module, [], "llvm.loop.unroll.full")
    assert to_text(module) == before


def test_choices_of_the_same_weights_share_a_note() -> None:
    module = read("""
define double @f(i1 %c, double %x, double %y) {
  %a = select i1 %c, double %x, double %y
  %b = select i1 %c, double %y, double %x
  %d = select i1 %c, double %a, double %b
  ret double %d
}
!4 = !{!"kept"}
""")
    a, b, d, _ = module.functions["f"].instructions()
    note_choice(module, a, 9, 1)
    note_choice(module, b, 1, 9)
    note_choice(module, d, 9, 1)
    assert a.metadata["prof"] == d.metadata["prof"] == "!5" and b.metadata["prof"] == "!6"
    assert '!5 = !{!"branch_weights", i32 9, i32 1}' in to_text(module)


def test_constant_strings_are_there_once() -> None:
    module = read(TEXT)
    assert text_constant(module, "a.c:1") is text_constant(module, "a.c:1")
    assert text_constant(module, "a.c:2") is not text_constant(module, "a.c:1")
    assert 'c"a.c:1\\00"' in to_text(module)


def test_personalities() -> None:
    fn = read(TEXT).functions["f"]
    assert personality(fn) == ""
    fn.tail = "#0 personality ptr @__gxx_personality_v0"
    assert personality(fn) == "personality ptr @__gxx_personality_v0"


def test_types_of_numbers_are_added_behind_other_metadata() -> None:
    module = read(TEXT + '!0 = !{!"other"}\n')
    assert scalar_tag(module, "root", "long") == "!3"
    assert [module.metadata[node] for node in ("!1", "!2", "!3")] == [
        '!{!"root"}', '!{!"long", !1, i64 0}', "!{!2, !2, i64 0}"]  # fmt: skip
