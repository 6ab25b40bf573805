"""Functions with variable arguments get memory with them. What they compute: `notation_programs/variadic.c`."""

from __future__ import annotations

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.normalise.variadic import fixed_arguments

TEXT = """
target triple = "x86_64-unknown-linux-gnu"
%list = type { i32, i32, ptr, ptr }
%large = type { double, double, double }
@table = global ptr null
define internal double @f(i32 %n, ...) {
  %l = alloca %list, align 16
  call void @llvm.va_start.p0(ptr %l)
  %p = getelementptr i8, ptr %l, i64 8
  %area = load ptr, ptr %p
  %x = load double, ptr %area
  call void @llvm.va_end.p0(ptr %l)
  ret double %x
}
define double @g(double %x, ptr %s, x86_fp80 %w) {
  %a = tail call double (i32, ...) @f(i32 1, double %x, i32 7, ptr byval(%large) align 8 %s, x86_fp80 %w)
  %b = call double (i32, ...) @f(i32 0)
  %c = fadd double %a, %b
  ret double %c
}
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
"""


def test_arguments_lie_in_memory_of_the_caller() -> None:
    text = fixed_arguments(TEXT)
    parse(text).verify()
    assert "define internal double @f(i32 %n, ptr %" in text
    assert "alloca <{ double, i32, [4 x i8], %large, [8 x i8], x86_fp80 }>, align 32" in text
    assert "call double @f(i32 1, ptr %" in text and "tail call" not in text
    assert "call double @f(i32 0, ptr null)" in text
    assert "store i32 48" in text and "store i32 176" in text and "va_start.p0(ptr %" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@table = global ptr null", "@table = global ptr @f"),
        ("  %c = fadd", "  store ptr @f, ptr %s\n  %c = fadd"),
        ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
        ("x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"),
        ("  %a = tail call", "  %a = musttail call"),
        ("  %x = load double, ptr %area", "  %x = va_arg ptr %l, double"),
    ],
)
def test_functions_that_stay_as_they_are(old: str, new: str) -> None:
    """Those that may be called through a pointer, what other systems do, the instruction that no compiler writes."""
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert fixed_arguments(text) == text
