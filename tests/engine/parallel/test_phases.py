"""Functions cut at barriers."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.model import Instruction
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.parallel.phases import END, NONE, REST, Phases, forward_arguments, split

TEXT = """
declare void @wait()
declare void @last()
declare void @use(ptr)
define void @f(i32 %me, ptr %a) {
entry:
  %me.addr = alloca i32, align 4
  %i = alloca i32, align 4
  %t = alloca double, align 8
  %u = alloca double, align 8
  %own = alloca [4 x double], align 8
  store i32 %me, ptr %me.addr, align 4
  store i32 0, ptr %i, align 4
  %x = load double, ptr %a, align 8
  br label %loop

loop:
  %n = load i32, ptr %i, align 4
  %more = icmp slt i32 %n, 3
  br i1 %more, label %body, label %end

body:
  %m = load i32, ptr %me.addr, align 4
  store double %x, ptr %t, align 8
  call void @wait()
  %v = load double, ptr %t, align 8
  store double %v, ptr %u, align 8
  %w = load double, ptr %u, align 8
  %p = getelementptr double, ptr %a, i32 %m
  store double %w, ptr %p, align 8
  %k = add i32 %n, 1
  store i32 %k, ptr %i, align 4
  br label %loop

end:
  call void @use(ptr %own)
  ret void
}
"""


def _barrier(call: Instruction) -> int:
    return {"wait": REST, "last": END}.get(call.callee_name or "", NONE)


def _split(text: str) -> tuple[str, Phases]:
    module = read(text)
    found = split(module.functions["f"], _barrier, lambda _: False)
    assert isinstance(found, Phases)
    del module.functions["f"]
    for phase in found.phases:
        module.functions[phase.function.name or ""] = phase.function
    made = to_text(module)
    read(made)
    return made, found


def test_phases_of_a_loop() -> None:
    made, found = _split(TEXT)
    assert [phase.after for phase in found.phases] == [(0, 1), (0, 1)]
    kinds = sorted(str(variable.elem) for variable in found.variables)
    # the counter's value, what is read first, `t`, and the array whose address goes elsewhere; not `u`, not the counter
    assert kinds == ["[4 x double]", "double", "double", "i32"]
    assert "@wait()" not in made.replace("declare void @wait()", "")
    assert made.count("ret i32") == 4


def test_what_ends_with_a_barrier_stays() -> None:
    made, found = _split("declare void @last()\ndefine void @f() {\n  call void @last()\n  ret void\n}\n")
    assert [phase.after for phase in found.phases] == [(1,), (0,)]
    assert made.count("call void @last()") == 1
    assert not found.variables


def test_without_a_barrier_there_is_one_phase() -> None:
    _, found = _split("define void @f(i32 %n) {\n  %v = alloca i32, i32 %n\n  ret void\n}\n")
    assert [phase.after for phase in found.phases] == [(0,)]


@pytest.mark.parametrize("line", ["%v = alloca i32, i32 %n", "%v = call ptr @llvm.stacksave.p0()"])
def test_memory_of_a_length_that_is_not_constant(line: str) -> None:
    text = f"declare void @wait()\ndeclare ptr @llvm.stacksave.p0()\ndefine void @f(i32 %n) {{\n  {line}\n  call void @wait()\n  ret void\n}}\n"  # noqa: E501
    assert "length" in str(split(read(text).functions["f"], _barrier, lambda _: False))


def test_results_of_calls_that_may_throw() -> None:
    text = """
declare void @wait()
declare i32 @g()
define void @f(ptr %a) personality ptr @g {
entry:
  %v = invoke i32 @g() to label %well unwind label %pad

well:
  %c = phi i32 [ %v, %entry ]
  call void @wait()
  store i32 %v, ptr %a, align 4
  ret void

pad:
  %l = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %l
}
"""
    made, found = _split(text)
    assert [str(variable.elem) for variable in found.variables] == ["i32"]
    assert made.count("invoke i32 @g()") == 1


def test_arguments_in_memory() -> None:
    fn = read(TEXT).functions["f"]
    forward_arguments(fn)
    assert not any(i.name == "me.addr" for i in fn.instructions())
    assert any(i.name == "i" for i in fn.instructions())
