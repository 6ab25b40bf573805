"""Floats that are moved out of memory with floats of another type. Values: `notation_programs/variants.cpp`."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reinterpret.unions import move_unions

VARIANT = """
define void @f(i1 %c, float %x, double %y, ptr %q) {
entry:
  %u = alloca { double, i32 }, align 8
  br i1 %c, label %single, label %join
single:
  store float %x, ptr %u, align 8
  %b = load double, ptr %u, align 8, !tbaa !0
  br label %join
join:
  %d = phi double [ %b, %single ], [ %y, %entry ]
  %s = select i1 %c, double %d, double 0.0
  store double %s, ptr %q, align 8
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"double", !2, i64 0}
!2 = !{!"root"}
"""


def moved(text: str) -> tuple[bool, str]:
    """Whether @f was changed, and its text."""
    module = read(text, roots=["f"])
    return move_unions(module.functions["f"]), to_text(module)


def test_a_float_that_is_only_moved_is_an_integer() -> None:
    changed, text = moved(VARIANT)
    assert changed
    assert "%b = load i64, ptr %u, align 8\n" in text
    assert "= phi i64 [ %b, %single ], [ %v0, %entry ]" in text
    assert "%v0 = bitcast double %y to i64\n  br i1 %c" in text
    assert "%s = select i1 %c, i64 %d, i64 0\n  store i64 %s, ptr %q, align 8" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%s = select i1 %c, double %d, double 0.0", "%s = fadd double %d, 1.0"),
        ("store float %x, ptr %u", "store double %y, ptr %u"),
        ("store float %x, ptr %u", "store volatile float %x, ptr %u"),
        ("store float %x, ptr %u, align 8", "%p = getelementptr i8, ptr %u, i64 8\n  store float %x, ptr %p"),
        ("load double, ptr %u, align 8, !tbaa !0", "load atomic double, ptr %u monotonic, align 8"),
    ],
)
def test_what_stays_a_float(old: str, new: str) -> None:
    """Something computed with it, memory of one type, volatile and atomic accesses, another place."""
    assert old in VARIANT
    assert not moved(VARIANT.replace(old, new))[0]
