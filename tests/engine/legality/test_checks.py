"""What is refused before a derivative is made: each check has a program that only it refuses, in their order."""

from __future__ import annotations

import pytest
from handwritten.made import asked, module_of

from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.legality.checks import CHECKS, Check
from irgrad.engine.pipeline import derivatives
from irgrad.engine.pipeline.derivatives import analysed, checked
from irgrad.engine.pipeline.stages import NORMALISE
from irgrad.rules.errors import IRGradError

UNDECIDABLE = """
  %number = load i64, ptr %k, align 8
  %p = inttoptr i64 %number to ptr
  %sq = fmul double %a, %a
  store double %sq, ptr %p, align 8
  %again = load double, ptr %p, align 8
  store double %again, ptr %o, align 8"""
UNSEEN = """
  %from = getelementptr i8, ptr %m, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %m, ptr %from, i64 64, i1 false)"""
PRINTED = """
  %text = alloca [64 x i8], align 1
  %n = call i32 (ptr, ptr, ...) @sprintf(ptr %text, ptr @form, double %a)
  %read = call double @strtod(ptr %text, ptr null)
  store double %read, ptr %o, align 8"""
PIECES = """
  %from = alloca ptr, align 8
  %to = alloca ptr, align 8
  store ptr %x, ptr %from, align 8
  %from4 = getelementptr i8, ptr %from, i64 4
  %to4 = getelementptr i8, ptr %to, i64 4
  %low = load i32, ptr %from, align 4
  %high = load i32, ptr %from4, align 4
  %masked = xor i32 %low, 0
  store i32 %masked, ptr %to, align 4
  store i32 %high, ptr %to4, align 4
  %q = load ptr, ptr %to, align 8
  %there = load double, ptr %q, align 8
  store double %there, ptr %o, align 8"""
MOVED = """
  %old = ptrtoint ptr %x to i64
  %new = ptrtoint ptr %o to i64
  %apart = sub i64 %new, %old
  %moved = getelementptr i8, ptr %x, i64 %apart
  store double %a, ptr %moved, align 8"""
BITS = """
  %square = fmul double %a, %a
  %bits = bitcast double %square to i64
  %next = add i64 %bits, 1
  %counted = sitofp i64 %next to double
  store double %counted, ptr %o, align 8"""
PUN = """
  %single = load float, ptr %x, align 8
  %wide = fpext float %single to double
  %product = fmul double %wide, %a
  store double %product, ptr %o, align 8"""
PART = """
  %d = alloca double, align 8
  %whole = fmul double %a, %a
  store double %whole, ptr %d, align 8
  %high = getelementptr i8, ptr %d, i64 4
  %n = load i32, ptr %k, align 4
  store i32 %n, ptr %high, align 4
  %changed = load double, ptr %d, align 8
  store double %changed, ptr %o, align 8"""
FINE = """
  %sine = call double @llvm.sin.f64(double %a)
  store double %sine, ptr %o, align 8"""
REQUEST = asked("f", "reverse", ["dup", "const", "dup", "dup"], buffers=["double", "", "double", ""])
# what a check refuses, in the words of its message
PROGRAMS = {
    "undecidable": (UNDECIDABLE, "pointer of unknown origin"),
    "unseen-numbers": (UNSEEN, "memory is copied of which it is not known where its numbers lie"),
    "printed-numbers": (PRINTED, "a number is read from text to which active numbers are printed"),
    "split-pointers": (PIECES, "a pointer is copied in pieces"),
    "relocations": (MOVED, "moves by the distance of two allocations"),
    "screen": (BITS, "the bits of an active float are used as a number"),
    "type-punning": (PUN, "is used as `float`"),
    "partial-stores": (PART, "a part of an active float is overwritten"),
}


def _program(*bodies: str) -> str:
    return ("declare double @llvm.sin.f64(double)\ndeclare double @strtod(ptr, ptr)\n"
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
            'declare i32 @sprintf(ptr, ptr, ...)\n@form = private constant [3 x i8] c"%g\\00"\n'
            "define void @f(ptr %x, ptr %k, ptr %o, ptr %m) {\n  %a = load double, ptr %x, align 8"
            f"{''.join(bodies)}\n  ret void\n}}\n")  # fmt: skip


def _unit(*bodies: str) -> Unit:
    """The analysed program, before anything was looked for."""
    module = module_of(_program(*bodies), "f", prepared=False)
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    return analysed(module, module.functions["f"], REQUEST)


def _refusing(unit: Unit) -> list[str]:
    """The checks that refuse it."""
    found = []
    for check in CHECKS:
        try:
            check.run(unit)
        except IRGradError:
            found.append(check.name)
    return found


def test_every_check_says_what_it_looks_for() -> None:
    assert [check.name for check in CHECKS] == list(PROGRAMS)
    assert len({check.run for check in CHECKS}) == len({check.what for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_each_refuses_what_the_others_let_through(check: Check) -> None:
    body, words = PROGRAMS[check.name]
    assert _refusing(_unit(body)) == [check.name]
    with pytest.raises(IRGradError) as caught:
        check.run(_unit(body))
    assert words in caught.value.what
    assert caught.value.because and caught.value.fix and "@f" in caught.value.where


def test_what_has_a_derivative_passes_all() -> None:
    assert _refusing(_unit(FINE)) == []


def test_they_are_run_in_this_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    noted = tuple(Check(check.name, lambda _, name=check.name: ran.append(name), check.what) for check in CHECKS)
    monkeypatch.setattr(derivatives, "CHECKS", noted)
    checked(module_of(_program(FINE), "f", prepared=False), REQUEST)
    assert ran == list(PROGRAMS)


@pytest.mark.parametrize("first", range(len(CHECKS) - 1))
def test_of_two_reasons_the_first_is_told(first: int) -> None:
    (earlier, words), (later, _) = list(PROGRAMS.values())[first : first + 2]
    unit = _unit(later, earlier)
    assert _refusing(unit) == list(PROGRAMS)[first : first + 2]
    module = module_of(_program(later, earlier), "f", prepared=False)
    with pytest.raises(IRGradError) as caught:
        checked(module, REQUEST)
    assert words in caught.value.what
