"""Prototypes are read from IR text; contradictions and missing signatures are explained."""

from __future__ import annotations

import pytest

from irgrad.engine.signature.prototype import check_signature, draft, infer, prototype_of, quoted
from irgrad.engine.signature.signature import Signature
from irgrad.interop.loaders import load
from irgrad.rules.errors import LoadError, SignatureError

TEXT = """
%struct.S = type { double, i32 }
define dso_local double @f(ptr noundef readonly captures(none) %x, i32 noundef signext %n, ptr nocapture %o) #0 {
  %g = getelementptr inbounds float, ptr %x, i64 1
  %v = load float, ptr %g, align 4
  store double 1.0, ptr %o, align 8
  ret double 0.0
}
define noundef float @"odd name"(float noundef %0, i64 %1) { ret float %0 }
define { double, double } @pair(<2 x float> %v, ptr byval(%struct.S) align 8 %s, [2 x i64] %a) { unreachable }
define i32 @many(ptr %fmt, ...) { ret i32 0 }
define void @dbg(ptr %0, i64 %1) !dbg !4 { ret void }
!4 = distinct !DISubprogram(name: "dbg")
!5 = !DILocalVariable(name: "pos", arg: 1, scope: !4, file: !1)
!6 = !DILocalVariable(name: "count", arg: 2, scope: !4, file: !1)
"""


def test_types_and_names() -> None:
    f = prototype_of(TEXT, "f")
    assert (f.returns, f.params, f.names) == ("double", ("ptr", "i32", "ptr"), ("x", "n", "o"))
    odd = prototype_of(TEXT, "odd name")
    assert (odd.returns, odd.params, odd.names) == ("float", ("float", "i64"), (None, None))
    pair = prototype_of(TEXT, "pair")
    assert pair.returns == "{ double, double }"
    assert pair.params == ("<2 x float>", "ptr byval(%struct.S)", "[2 x i64]")
    assert prototype_of(TEXT, "many").vararg
    assert prototype_of(TEXT, "dbg").names == ("pos", "count")
    with pytest.raises(LoadError, match="there is no function `g`"):
        prototype_of(TEXT, "g")


def test_quoted_names() -> None:
    assert quoted("f.x$1") == "f.x$1"
    assert quoted("odd name") == '"odd name"'


def test_draft_knows_elements_and_directions() -> None:
    assert draft(prototype_of(TEXT, "f")) == "f64(f32[n] x, i32 n, out f64[n] o)"


def test_draft_leaves_open_what_nothing_tells() -> None:
    """An array that is only handed on."""
    text = "declare void @g(ptr)\ndefine void @f(ptr %p) {\n  call void @g(ptr %p)\n  ret void\n}\n"
    note = "  (with a number or a parameter for `n`, the element type for `?`)"
    assert draft(prototype_of(text, "f")) == f"void(?[n] p){note}"
    with pytest.raises(SignatureError, match="unexpected `\\?`") as caught:
        Signature("void(?[n] p)")
    assert "f64" in caught.value.fix


def test_draft_takes_types_from_debug_information() -> None:
    text = """define void @f(ptr %p, i32 %n, ptr %q) !dbg !1 {
  %v = load i64, ptr %q
  store double 0.0, ptr %p
  ret void
}
!1 = distinct !DISubprogram(name: "f", type: !2)
!2 = !DISubroutineType(types: !3)
!3 = !{null, !4, !6, !7}
!4 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !5, size: 64)
!5 = !DIBasicType(name: "double", size: 64, encoding: DW_ATE_float)
!6 = !DIBasicType(name: "unsigned int", size: 32, encoding: DW_ATE_unsigned)
!7 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !8, size: 64)
!8 = !DIDerivedType(tag: DW_TAG_const_type, baseType: !5)
"""
    assert draft(prototype_of(text, "f"), lambda: text) == "void(out f64[n] p, u32 n, f64[n] q)"
    fewer = text.replace(", !7}", "}")  # not the parameters of the source
    assert draft(prototype_of(text, "f"), lambda: fewer) == "void(out f64[n] p, i32 n, i64[n] q)"


def test_a_missing_signature_prints_the_draft() -> None:
    with pytest.raises(SignatureError) as caught:
        infer(prototype_of(TEXT, "f"))
    assert 'lib.kernel("f", "f64(f32[n] x, i32 n, out f64[n] o)")' in caught.value.fix


def test_scalars_need_no_signature() -> None:
    assert str(infer(prototype_of(TEXT, "odd name"))) == "f32(f32 a0, i64 n)"


@pytest.mark.parametrize(
    ("signature", "message", "reason"),
    [
        ("f64(f64[n] x, i64 n, out f64[n] o)", "parameter `i64 n` contradicts the function", "takes `i32`"),
        ("f64(f64[n] x, i32 n)", "the signature has 2 parameters, the function 3", ""),
        ("f64(f64 x, i32 n, out f64[n] o)", "parameter `f64 x` contradicts the function", "takes a pointer"),
        ("f64(f64[n] x, i32[] n, out f64[1] o)", "parameter `i32[] n` contradicts the function", "by value"),
        ("f32(f64[n] x, i32 n, out f64[n] o)", "the return type `f32` contradicts the function", "returns `double`"),
        ("void(f64[n] x, i32 n, out f64[n] o)", "the return type `void` contradicts the function", "returns `double`"),
    ],
)
def test_contradictions_name_both_sides(signature: str, message: str, reason: str) -> None:
    if "[n]" in signature and "i32[] n" in signature:
        signature = signature.replace("[n]", "[5]")
    with pytest.raises(SignatureError) as caught:
        check_signature(Signature(signature), prototype_of(TEXT, "f"))
    assert caught.value.what == message
    assert "double @f(ptr, i32, ptr)" in caught.value.where and str(Signature(signature)) in caught.value.where
    assert reason in caught.value.because and caught.value.fix


def test_values_that_have_no_signature() -> None:
    with pytest.raises(SignatureError, match="variable number of arguments"):
        check_signature(Signature("i32(u8[4] fmt)"), prototype_of(TEXT, "many"))
    with pytest.raises(SignatureError, match="passed by value"):
        check_signature(Signature("f64(f64 v, f64 s, f64 a)"), prototype_of(TEXT, "pair"))


def test_a_draft_of_what_is_handed_on() -> None:
    """An array that is not const and goes to another function may be written there."""
    lib = load("void fill(double *u, long n);\n"
               "double f(const double *a, double *u, long n) { fill(u, n); return u[0] + a[0]; }\n")  # fmt: skip
    with pytest.raises(SignatureError, match=r"f64\[n\] a, inout f64\[n\] u, i64 n"):
        lib.kernel("f")
