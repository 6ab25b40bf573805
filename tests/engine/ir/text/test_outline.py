"""What a module's text holds: symbols, attributes, opcodes; nothing that only looks like one."""

from __future__ import annotations

from irgrad.engine.ir.text.outline import Outline, outline

TEXT = r'''
@text = constant [40 x i8] c"irgrad-reverse declare void @irgrad.host.x()"
@"with space" = alias ptr, ptr @text
define internal void @"f g"(ptr %a) nounwind "irgrad-reverse" personality ptr @p {
entry:
  %y = tail call double @g(double 1.0) #1 ; invoke landingpad
  %"a b" = fadd double %y, %y
  ret void
}
declare double @g(double) #1
declare i32 @p(...)
attributes #1 = { nounwind memory(none) "irgrad-lanes" "key"="irgrad-value" }
!llvm.dbg.cu = !{!0}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, producer: "@h = ", file: !1)
'''


def test_symbols() -> None:
    found = Outline(TEXT)
    assert found.defined == {"f g"} and found.declared == {"g", "p"} and found.functions == {"f g", "g", "p"}
    assert found.variables == {"text", "with space"}
    assert found.has_prefix("f ") and not found.has_prefix("irgrad.host.", "h")


def test_a_definition_counts_beside_a_declaration() -> None:
    found = Outline("declare void @f()\ndefine void @f() {\n  ret void\n}\n")
    assert found.defined == {"f"} and not found.declared


def test_attributes_opcodes_metadata() -> None:
    found = Outline(TEXT)
    assert found.attributes >= {"irgrad-reverse", "irgrad-lanes", "key"} and "irgrad-value" not in found.attributes
    assert found.opcodes == {"call", "fadd", "ret"}
    assert found.metadata == {"llvm.dbg.cu"}


def test_the_last_few_are_kept() -> None:
    assert outline(TEXT) is outline(TEXT)
