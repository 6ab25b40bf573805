"""What panics of Rust say, from the IR that rustc writes."""

from __future__ import annotations

import re

import pytest

from irgrad.interop.loaders.rust_panics import Panics, report_panics

HEAD = r"""
@alloc_file = private unnamed_addr constant [9 x i8] c"model.rs\00", align 1
@alloc_text = private unnamed_addr constant [9 x i8] c"too large", align 1
@alloc_form = private unnamed_addr constant [21 x i8] c"\0Anegative: \C0\07 here 3\00", align 1
@alloc_here = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_file, [16 x i8] c"\08\00\00\00\00\00\00\00\0C\00\00\00\05\00\00\00" }>, align 8
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64, i64, ptr) unnamed_addr #1
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr, ptr, ptr) unnamed_addr #1
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking5panic(ptr, i64, ptr) unnamed_addr #1
declare void @_RNvNtCsgEmfK2I1SDS_4core6option13unwrap_failed(ptr) unnamed_addr #1
declare void @_RNvNtNtCsgEmfK2I1SDS_4core9panicking11panic_const24panic_const_add_overflow(ptr) unnamed_addr #1
declare double @_RNvNtCsgEmfK2I1SDS_4core3abc3xyz(double) unnamed_addr #2
attributes #1 = { cold noinline noreturn nounwind }
attributes #2 = { nounwind }
"""  # noqa: E501
CORE = "_RNvNtCsgEmfK2I1SDS_4core"
SITE = "noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)"


@pytest.mark.parametrize(("call", "said"), [
    (f"9panicking18panic_bounds_check(i64 noundef 3, i64 %n, ptr {SITE} @alloc_here)", "index out of bounds"),
    (f"9panicking9panic_fmt(ptr noundef nonnull @alloc_form, ptr noundef nonnull %args, ptr {SITE} @alloc_here)",
     "negative: {} here 3"),
    (f"9panicking9panic_fmt(ptr @alloc_text, ptr noundef nonnull inttoptr (i64 19 to ptr), ptr {SITE} @alloc_here)",
     "too large"),
    (f"9panicking5panic(ptr noundef @alloc_text, i64 noundef 3, ptr {SITE} @alloc_here)", "too"),
    (f"6option13unwrap_failed(ptr {SITE} @alloc_here)", "called `Option::unwrap()` on a `None` value"),
])  # fmt: skip
def test_messages(call: str, said: str) -> None:
    text = f"{HEAD}define void @f(i64 %n, ptr %args) {{\n  call void @{CORE}{call} #3, !dbg !7\n  unreachable\n}}\n"
    made = report_panics(text)
    (number,) = re.findall(r"call void @irgrad\.panic\(ptr (@irgrad\.panic\.\d+)\) noreturn nounwind, !dbg !7", made)
    assert f'c"{said} at model.rs:12\\00"' in next(row for row in made.splitlines() if row.startswith(f"{number} ="))
    assert "panicking" not in made  # nothing is left to be resolved
    assert "4core3abc3xyz" in made


def test_overflows() -> None:
    name = "_RNvNtNtCsgEmfK2I1SDS_4core9panicking11panic_const24panic_const_add_overflow"
    made = report_panics(f"{HEAD}define void @f() {{\n  call void @{name}(ptr @alloc_here) #3\n  unreachable\n}}\n")
    assert 'c"attempt to add with overflow at model.rs:12\\00"' in made


def test_what_fails_for_its_caller_has_the_line_of_the_caller() -> None:
    text = (f"{HEAD}define internal double @_ZN4core6option6expect17h0123456789abcdefE(ptr %0) {{\n"
            f"  call void @{CORE}6option13unwrap_failed(ptr {SITE} %0) #3\n  unreachable\n}}\n"
            "define double @f() {\n  %r = call double @_ZN4core6option6expect17h0123456789abcdefE(ptr @alloc_here)\n"
            "  ret double %r\n}\n")  # fmt: skip
    made = report_panics(text)
    loaded = r"getelementptr i8, ptr %0, i64 24\n  (%\S+) = load ptr.*\n  call void @irgrad.panic\(ptr \1\)"
    assert re.search(loaded, made)
    place = next(row for row in made.splitlines() if row.startswith("@alloc_here"))
    number = re.search(r"ptr (@irgrad\.panic\.\d+) }>", place)
    assert number and f"{number[1]} = " in made and 'c"`expect` panics at model.rs:12\\00"' in made


def test_modules_without_panics_stay() -> None:
    text = "define double @f(double %x) {\n  ret double %x\n}\n"
    assert report_panics(text) == text


def test_a_message_has_one_number() -> None:
    panics = Panics()
    assert panics.name("a") == panics.name("a") != panics.name('b "quoted" \\ é')
    assert panics.text().count("private constant") == 2 and '"b \\22quoted\\22 \\5C \\C3\\A9\\00"' in panics.text()
