"""Floats beside the members that are accessed: seen where the caller's memory is copied, and nowhere else."""

from __future__ import annotations

import pytest
from handwritten.made import module_of

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.ir import types as ty

TYPES = """
!0 = !{!"root"}
!1 = !{!"omnipotent char", !0, i64 0}
!2 = !{!"int", !1, i64 0}
!3 = !{!"double", !1, i64 0}
!4 = !{!"float", !1, i64 0}
!5 = !{!"inner", !4, i64 0, !4, i64 4}
!6 = !{!"item", !2, i64 0, !5, i64 4, !3, i64 16, !1, i64 24}
!7 = !{!6, !2, i64 0}
!8 = !{!6, !3, i64 16}
"""
COPY = "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 32, i1 false)"


def _layout(body: str) -> tuple[tuple[int, object], ...]:
    text = ("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndefine void @f(ptr %p) {\n"
            f"  %q = getelementptr i8, ptr %p, i64 32\n  {body}\n  ret void\n}}\n{TYPES}")  # fmt: skip
    module = module_of(text, "f", prepared=False)
    facts = Facts(module, module.functions["f"], [0])
    return facts.types.access(module.functions["f"].args[0], 32)


READ, WRITTEN = "%k = load i32, ptr %p, align 8, !tbaa !7", "store i32 1, ptr %p, align 8, !tbaa !7"


@pytest.mark.parametrize("access", [READ, WRITTEN])
def test_the_floats_of_the_structure(access: str) -> None:
    floats = [(at, kind) for at, kind in _layout(f"{COPY}\n  {access}") if isinstance(kind, ty.FloatType)]
    assert floats == [(4, ty.F32), (8, ty.F32), (16, ty.F64)]


def test_from_any_member() -> None:
    access = "%at = getelementptr i8, ptr %p, i64 16\n  %v = load double, ptr %at, align 8, !tbaa !8"
    floats = [(at, kind) for at, kind in _layout(f"{COPY}\n  {access}") if isinstance(kind, ty.FloatType)]
    assert floats == [(4, ty.F32), (8, ty.F32), (16, ty.F64)]


def test_not_where_nothing_is_copied() -> None:
    assert all(not isinstance(kind, ty.FloatType) for _, kind in _layout(READ))


def test_what_is_known_of_a_place_stays() -> None:
    pointer = "%at = getelementptr i8, ptr %p, i64 16\n  %r = load ptr, ptr %at, align 8"
    assert (16, ty.PTR) in _layout(f"{COPY}\n  {pointer}\n  {READ}")
