"""Pieces of 32 iterations side by side: which arrays, their steps, what goes on the stack, what is left out."""

from __future__ import annotations

import re

import pytest

from irgrad.engine.grids.pieces import lay_out, on_stack
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read

HEAD = """declare ptr @irgrad.tape.alloc(ptr, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @other(ptr)
declare void @forward(i64, ptr, ptr)
declare void @reverse(i64, ptr, ptr)
define void @f(ptr %x, ptr %arena) {
%rows = call ptr @irgrad.tape.alloc(ptr %arena, i64 80)
call void @forward(i64 9, ptr %x, ptr %rows)
call void @reverse(i64 9, ptr %x, ptr %rows)
ret void
}
"""
STORED = "%row = getelementptr ptr, ptr %rows, i64 %i\nstore ptr %record, ptr %row\nret void"
LOADED = "%row = getelementptr ptr, ptr %rows, i64 %i\n%record = load ptr, ptr %row"


def _program(forward: str, reverse: str = "ret void") -> Module:
    return read(f"{HEAD}define void @forward.one(i64 %i, ptr %x, ptr %rows, ptr %arena) {{\n{forward}\n}}\n"
                f"define void @reverse.one(i64 %i, ptr %x, ptr %rows, ptr %arena) {{\n{reverse}\n}}\n")  # fmt: skip


def _laid_out(module: Module) -> tuple[dict[str, int], str]:
    bodies = {name: module.functions[f"{name}.one"] for name in ("forward", "reverse")}
    widths: dict[Instruction, int] = lay_out(module.functions["f"], bodies)
    return {site.name or "": width for site, width in widths.items()}, to_text(module)


def _on_stack(module: Module) -> str:
    on_stack(module, module.functions["f"], {name: module.functions[f"{name}.one"] for name in ("forward", "reverse")})
    return to_text(module)


RECORD = """%record = call ptr @irgrad.tape.alloc(ptr %arena, i64 16)
%numbers = call ptr @irgrad.tape.alloc(ptr %arena, i64 240)
%n = load i64, ptr %x
%place = getelementptr double, ptr %numbers, i64 %n
store double 2.0, ptr %place, align 16
store ptr %numbers, ptr %record, align 16
%second = getelementptr i8, ptr %record, i64 8
store i64 %n, ptr %second
""" + STORED
READ = LOADED + """
%got = load ptr, ptr %record
%behind = getelementptr i8, ptr %record, i64 8
%n = load i64, ptr %behind
%place = getelementptr double, ptr %got, i64 %n
%v = load double, ptr %place
store double %v, ptr %x
ret void"""


def test_records_and_the_arrays_that_they_lead_to() -> None:
    """The steps in both sweeps are 32 times as long, those of the array of records are not."""
    widths, text = _laid_out(_program(RECORD, READ))
    assert widths == {"record": 8, "numbers": 8}
    assert text.count("mul i64 %n, 32") == 2 and text.count("getelementptr i8, ptr %record, i64 256") == 2
    assert "getelementptr ptr, ptr %rows, i64 %i" in text and "align 16" not in text


@pytest.mark.parametrize(
    "line",
    [
        "call void @other(ptr %got)",
        "%m = ptrtoint ptr %got to i64",
        "%f = load float, ptr %got",  # elements of two sizes
        "%w = load <2 x double>, ptr %got",
        "%c = icmp eq i64 %i, 0\n%m = select i1 %c, ptr %got, ptr %x\n%o = getelementptr double, ptr %m, i64 1",
        "%o = getelementptr i8, ptr %got, i64 %i\n%d = load double, ptr %o",  # between elements
        "call void @llvm.memset.p0.i64(ptr %got, i8 0, i64 %i, i1 false)",
    ],
)
def test_an_array_with_an_access_of_another_kind_lies_whole(line: str) -> None:
    widths, text = _laid_out(_program(RECORD, READ.replace("%behind", f"{line}\n%behind", 1)))
    assert widths == {"record": 8} and "mul i64 %n, 32" not in text


def test_copies_are_written_out() -> None:
    widths, text = _laid_out(_program(RECORD.replace("store ptr %numbers", """
call void @llvm.memset.p0.i64(ptr %numbers, i8 0, i64 16, i1 false)
call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %x, i64 16, i1 false)
store ptr %numbers"""), READ))  # fmt: skip
    assert widths == {"record": 8, "numbers": 8} and "call void @llvm" not in text
    assert len(re.findall(r"store i64 0, ptr", text)) == 2
    assert re.search(r"getelementptr i8, ptr %x, i64 8\b", text)
    assert re.search(r"getelementptr i8, ptr %place, i64 256\b", text)


def test_small_arrays_of_which_no_address_is_kept_are_variables() -> None:
    text = _on_stack(_program("""%a = call ptr @irgrad.tape.alloc(ptr %arena, i64 20)
%large = call ptr @irgrad.tape.alloc(ptr %arena, i64 4000)
store double 1.0, ptr %a
store double 1.0, ptr %large
%v = load double, ptr %a
%w = load double, ptr %large
%s = fadd double %v, %w
store double %s, ptr %x
ret void"""))
    assert "alloca [3 x i64]" in text and "align 16" in text and "i64 20" not in text and "i64 4000" in text


def test_what_nothing_reads_is_not_written() -> None:
    text = _on_stack(_program(RECORD, READ.replace("%got = load ptr, ptr %record\n", "").replace("ptr %got", "ptr %x")))
    assert "store double 2.0" not in text and "i64 240" not in text and "store ptr %numbers" not in text
    assert "store i64 %n" in text


SHADOW = """%record = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%shadow = call ptr @irgrad.tape.alloc(ptr %arena, i64 24)
call void @llvm.memset.p0.i64(ptr %shadow, i8 0, i64 24, i1 false)
store ptr %shadow, ptr %record
""" + STORED
ADDED = LOADED + """
%got = load ptr, ptr %record
%place = getelementptr double, ptr %got, i64 2
store double 2.0, ptr %place
%v = load double, ptr %got
store double %v, ptr %x
ret void"""


def test_memory_that_the_first_sweep_only_clears_is_the_second_ones() -> None:
    text = _on_stack(_program(SHADOW, ADDED))
    first, second = text.split("define void @reverse.one")
    assert "i64 24" not in first and "alloca [3 x i64]" in second and "store ptr %shadow" not in first
    assert re.search(r"memset.*i8 0, i64 24", second)


@pytest.mark.parametrize(
    ("forward", "reverse"),
    [
        (SHADOW.replace("store ptr %sh", "store double 1.0, ptr %shadow\nstore ptr %sh"), ADDED),  # it has a number
        (SHADOW, ADDED.replace("store double 2.0", "%more = load ptr, ptr %record\nstore double 2.0")),  # two ways
        (SHADOW, LOADED + "\nbr label %turn\nturn:" + ADDED.removeprefix(LOADED).replace(
            "ret void", "%go = fcmp olt double %v, 1.0\nbr i1 %go, label %turn, label %done\ndone:\nret void")),
    ],
)  # fmt: skip
def test_other_memory_of_both_sweeps_stays(forward: str, reverse: str) -> None:
    assert "alloca" not in _on_stack(_program(forward, reverse))


CONSTANT = """%record = call ptr @irgrad.tape.alloc(ptr %arena, i64 24)
%n = load i64, ptr %x
store i64 12, ptr %record
%second = getelementptr i8, ptr %record, i64 8
store i64 %n, ptr %second
""" + STORED
TAKEN = LOADED + """
%second = getelementptr i8, ptr %record, i64 8
%a = load i64, ptr %record
%b = load i64, ptr %second
%s = add i64 %a, %b
store i64 %s, ptr %x
ret void"""


def test_what_always_is_one_constant_is_not_kept() -> None:
    text = _on_stack(_program(CONSTANT, TAKEN))
    assert "add i64 12, %b" in text and "store i64 12" not in text


@pytest.mark.parametrize(
    "line",
    [
        "store i64 13, ptr %record",
        "%half = getelementptr i8, ptr %record, i64 4\nstore i32 1, ptr %half",
        "%p = getelementptr i64, ptr %record, i64 %i\nstore i64 1, ptr %p",
        "call void @llvm.memcpy.p0.p0.i64(ptr %record, ptr %x, i64 8, i1 false)",
        "call void @other(ptr %record)",
    ],
)
def test_a_constant_that_something_else_may_replace_is_read(line: str) -> None:
    assert "add i64 %a, %b" in _on_stack(_program(CONSTANT.replace("%second", f"{line}\n%second", 1), TAKEN))
