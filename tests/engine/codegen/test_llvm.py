"""Text that would stop or fool LLVM's parser is refused before LLVM sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from irgrad.engine.codegen.llvm import MAX_NESTING, check_text, host_cpu, host_features, parse, target_machine
from irgrad.rules.errors import IRInvalid, IRSyntaxError, LimitExceeded

GOOD = "define double @f(double %x) {\n  ret double %x\n}\n"


def _nested(depth: int) -> str:
    """A type of nested structs: `{{{...i8...}}}`."""
    return f"@g = external global {'{' * depth}i8{'}' * depth}\n"


def test_good_text_is_parsed() -> None:
    module = parse(GOOD)
    assert [function.name for function in module.functions] == ["f"]


def test_nul_is_refused() -> None:
    with pytest.raises(IRSyntaxError, match="NUL character"):
        check_text(GOOD + "\0 garbage")


@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 20_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(LimitExceeded, match="too deeply"):
        check_text(_nested(depth))
    with pytest.raises(LimitExceeded, match="too deeply"):
        check_text("@g = external global " + "{" * depth)


def test_deep_constant_expressions_are_refused() -> None:
    text = "@g = global ptr " + "getelementptr (i8, ptr " * 20_000 + "null" + ", i64 1)" * 20_000
    with pytest.raises(LimitExceeded, match="too deeply"):
        parse(text)


def test_huge_integers_are_refused() -> None:
    text = "define i8388607 @f(i8388607 %x, i8388607 %y) {\n  %z = sdiv i8388607 %x, %y\n  ret i8388607 %z\n}\n"
    with pytest.raises(LimitExceeded, match="integer type has 8388607 bits"):
        parse(text)
    parse("define i64 @i99999(i64 %i88888) {\n  ret i64 %i88888\n}\n")


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    row = "declare <4 x double> @f{}(<4 x double>, [3 x {{ i8, i8 }}], ptr)\n"
    check_text("".join(row.format(index) for index in range(5_000)))
    check_text('@s = constant [600 x i8] c"' + "(" * 600 + '"\n')
    check_text("; " + "(" * 600 + "\n" + GOOD)


def test_llvms_complaint_is_in_the_message() -> None:
    with pytest.raises(IRSyntaxError, match=r"expected value token|expected type"):
        parse("define double @f(double %x) {\n  ret double\n}\n")
    broken = "define double @f(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  %x = fadd double 1.0, 2.0\n"
    broken += "  br label %b\nb:\n  ret double %x\n}\n"
    with pytest.raises(IRInvalid, match="does not dominate"):
        parse(broken)


def test_the_host_is_known() -> None:
    assert host_cpu()
    assert "+" in host_features()
    assert target_machine(host_cpu(), host_features()).triple


CYCLES = """
import gc
import llvmlite.binding as llvm
from irgrad.engine.codegen.llvm import binding, parse
from irgrad.rules.errors import IRGradError
binding()
for k in range(40):
    try:
        module = parse("define i32 @f(i1 %c) { ret i32 7 }" if k % 2 else "define void @f() { ret i32 7 }")
        raise ValueError
    except (ValueError, IRGradError) as error:
        keep = [error, module if k % 2 else None]
        keep.append(keep)  # only the collector ends these, in an order of its own
    del keep
    module = None
    gc.collect()
print("alive")
"""


def test_the_collector_may_end_modules_in_any_order() -> None:
    """A module outlives its context where an exception keeps both: that ended the process."""
    done = subprocess.run([sys.executable, "-c", CYCLES], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "alive", done.stderr[-500:]
