"""Reading: roots, laziness, errors, work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from counting_work import growth, peak_bytes

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import materialise, read
from irgrad.rules.errors import IRSyntaxError, LimitExceeded, LoadError

CHAIN = """
@table = constant [1 x ptr] [ptr @c]
define double @a(double %x) {
  %y = call double @b(double %x)
  ret double %y
}
define double @b(double %x) {
  %f = load ptr, ptr @table
  %y = call double %f(double %x)
  ret double %y
}
define double @c(double %x) {
  ret double %x
}
define double @unrelated(double %x) {
  ret double %x
}
"""


def test_only_what_the_roots_reach_is_read() -> None:
    module = read(CHAIN, roots=["a"])
    assert [name for name, f in module.functions.items() if f.lazy is None] == ["a", "b", "c"]
    lazy = module.functions["unrelated"]
    assert not lazy.blocks and not lazy.is_declaration
    assert "@unrelated(double %x) {\n  ret double %x\n}" in to_text(module)
    materialise(lazy, module)
    assert lazy.lazy is None and lazy.entry.terminator.opcode == "ret"


def test_all_but_the_roots_may_stay_text() -> None:
    module = read(CHAIN, roots=["b"], reach=False)
    assert [name for name, f in module.functions.items() if f.lazy is None] == ["b"]
    assert to_text(read(to_text(module))) == to_text(read(CHAIN))


def test_a_missing_root_names_the_nearest() -> None:
    with pytest.raises(LoadError, match="did you mean `unrelated`"):
        read(CHAIN, roots=["unrelatd"])


BAD = {
    "no instruction": ("define void @f() {\n  foo i32 1\n}\n", "line 2", "an instruction"),
    "unknown type": ("define void @f(%nope %x) {\n  ret void\n}\n", "line 1", "a type that is defined"),
    "unknown symbol": (
        "define void @f() {\n  call void @g()\n  ret void\n}\n",
        "line 2",
        "a symbol that this module defines",
    ),
    "undefined value": ("define i32 @f() {\n  ret i32 %x\n}\n", "line 2", "it is not defined"),
    "undefined label": ("define void @f() {\n  br label %x\n}\n", "line 2", "a label"),
    "wrong type": ("define i32 @f(i64 %x) {\n  ret i32 %x\n}\n", "line 2", "a value of type `i32` instead of `i64`"),
    "twice": ("define void @f(i32 %x) {\n  %x = add i32 1, 2\n  ret void\n}\n", "line 2", "defined already"),
    "two functions": ("declare void @f()\ndeclare void @f()\n", "line 2", "defined already"),
    "scalable": ("define void @f(<vscale x 2 x double> %x) {\n  ret void\n}\n", "line 1", "a vector of fixed length"),
    "top level": ("hello world\n", "line 1", "a top-level entity"),
    "open body": ("define void @f() {\n  ret void\n", "line 1", "`}`"),
    "open bracket": ("@x = global [2 x i8\n", "line 1", "`]`"),
    "too few elements": ("@x = global [2 x i8] [i8 1]\n", "line 1", "2 elements instead of 1"),
    "float literal": ("@x = global float 0.1\n", "line 1", "a literal of type `float`"),
    "open string": ('source_filename = "abc\n', "line 1", "a string"),
    "nothing": ("define void @f() {\n}\n", "line 1", "a block"),
}


@pytest.mark.parametrize("case", BAD)
def test_syntax_errors_name_line_and_expectation(case: str) -> None:
    text, line, expected = BAD[case]
    with pytest.raises(IRSyntaxError) as caught:
        read(text)
    message = str(caught.value)
    assert caught.value.where == line, message
    assert expected in message


def test_text_behind_a_nul_byte_is_not_ignored() -> None:
    with pytest.raises(IRSyntaxError, match="NUL byte"):
        read("declare void @f()\n\0 garbage")


def test_deep_nesting_is_a_limit_not_a_crash() -> None:
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        read("@x = global ptr " + "getelementptr (i8, ptr " * 20000 + "null" + ", i64 1)" * 20000)
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        read("@x = external global " + "[1 x " * 20000 + "i8" + "]" * 20000)


def chain(count: int) -> str:
    """A function of `count` instructions, in blocks of a hundred."""
    lines = ["define double @f(double %x, ptr %p) {", "entry:"]
    last = "%x"
    for i in range(count // 3):
        if i and i % 33 == 0:
            lines += [f"  br label %b{i}", f"b{i}:"]
        lines += [
            f"  %a{i} = getelementptr inbounds double, ptr %p, i64 {i}",
            f"  %l{i} = load double, ptr %a{i}, align 8, !tbaa !0",
            f"  %m{i} = fmul fast double %l{i}, {last}",
        ]
        last = f"%m{i}"
    return "\n".join([*lines, f"  ret double {last}", "}", "!0 = !{!0}", ""])


def test_work_and_memory_are_linear() -> None:
    def reading(count: int) -> Callable[[], object]:
        text = chain(count)
        return lambda: read(text)

    assert growth(reading, 1_000, 8_000) < 1.2
    assert peak_bytes(reading(8_000)) < 1.2 * 8 * peak_bytes(reading(1_000))


def test_hand_written_layout() -> None:
    text = (
        "define i32 @f(i32) { %2 = add i32 %0, 1 ret i32 %2 }\ndefine void @g()\n{\n ; a comment with }\n ret void\n}\n"
    )
    module = read(text)
    assert [i.opcode for i in module.functions["f"].instructions()] == ["add", "ret"]
    assert [i.opcode for i in module.functions["g"].instructions()] == ["ret"]
