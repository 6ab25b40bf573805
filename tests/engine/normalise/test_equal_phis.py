"""Phis of equal computations become one computation, and nothing else does."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.equal_phis import merge_alike

CONTINUE = """define i64 @f(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %back ]
  %sum = phi i64 [ 0, %entry ], [ %total, %back ]
  %odd = trunc i64 %i to i1
  br i1 %odd, label %skip, label %work
skip:
  %next.skip = add nuw nsw i64 %i, 1
  %end.skip = icmp sge i64 %next.skip, %n
  br i1 %end.skip, label %out, label %back
work:
  %more = add i64 %sum, %i
  %next.work = add nsw i64 %i, 1
  %end.work = icmp sge i64 %next.work, %n
  br i1 %end.work, label %out, label %back
back:
  %next = phi i64 [ %next.skip, %skip ], [ %next.work, %work ]
  %total = phi i64 [ %sum, %skip ], [ %more, %work ]
  br label %loop
out:
  %r = phi i64 [ %sum, %skip ], [ %more, %work ]
  ret i64 %r
}
"""


def test_the_increment_of_a_loop_with_continue_is_one_again() -> None:
    """Its phi is an induction variable afterwards; the addition keeps the flags that both copies had."""
    fn = read(CONTINUE).functions["f"]
    header = next(i for i in fn.instructions() if i.name == "i")
    assert Induction(fn).recurrence(header) is None
    assert merge_alike(fn) == 1
    assert merge_alike(fn) == 0
    found = Induction(fn).recurrence(header)
    assert found is not None and found[1].const == 1
    merged = header.operands[1]
    assert (merged.opcode, merged.flags) == ("add", ("nsw",))  # type: ignore[attr-defined]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 10])
def test_the_function_computes_the_same(n: int) -> None:
    module = read(CONTINUE)
    merge_alike(module.functions["f"])
    call = compile_module(to_text(module), ["f"], cache=False).function("f", ctypes.c_int64, ctypes.c_int64)
    assert call(n) == sum(range(0, max(n, 1), 2))


DIFFERENT = {
    "another constant": CONTINUE.replace("%next.work = add nsw i64 %i, 1", "%next.work = add nsw i64 %i, 2"),
    "another operand": CONTINUE.replace("%next.work = add nsw i64 %i, 1", "%next.work = add nsw i64 %n, 1"),
    "another operation": CONTINUE.replace("%next.work = add nsw i64 %i, 1", "%next.work = sub nsw i64 %i, 1"),
}


@pytest.mark.parametrize("name", list(DIFFERENT))
def test_different_computations_stay_a_phi(name: str) -> None:
    assert merge_alike(read(DIFFERENT[name]).functions["f"]) == 0


def test_a_value_that_left_its_loop_is_not_read_again() -> None:
    """The exit's phi of two equal additions over the loop's counter stays: it is what closes the loop."""
    text = CONTINUE.replace(
        "%r = phi i64 [ %sum, %skip ], [ %more, %work ]", "%r = phi i64 [ %next.skip, %skip ], [ %next.work, %work ]"
    )
    fn = read(text).functions["f"]
    assert merge_alike(fn) == 1
    assert [i.opcode for i in fn.blocks[-1].instructions] == ["phi", "ret"]


AHEAD = """define i64 @f(i64 %n) {{
entry:
  br label %loop
loop:
  %more = phi i64 [ {first}, %entry ], [ %next, %loop ]
  %i = phi i64 [ 0, %entry ], [ {before}, %loop ]
  %next = add nuw nsw i64 %more, 1
  %end = icmp sge i64 %next, %n
  br i1 %end, label %out, label %loop
out:
  ret i64 %i
}}
"""


@pytest.mark.parametrize(("first", "before", "merged"), [("1", "%more", 1), ("2", "%more", 0), ("1", "%next", 0),
                                                         ("-9223372036854775807", "%more", 0)])  # fmt: skip
def test_a_counter_that_is_a_step_ahead(first: str, before: str, merged: int) -> None:
    """`for (i = 0; i + 1 < n; i++)`: one counter and a sum, where it is a step ahead from the first iteration on."""
    text = AHEAD.format(first=first, before=before)
    module = read(text)
    fn = module.functions["f"]
    counter = next(i for i in fn.instructions() if i.name == "i")
    assert merge_alike(fn) == merged
    assert (Induction(fn).recurrence(counter) is not None) == bool(merged)
    texts = [one.replace("-9223372036854775807", "3") for one in (text, to_text(module))]  # that would run for ever
    old, new = (compile_module(one, ["f"], cache=False).function("f", ctypes.c_int64, ctypes.c_int64) for one in texts)
    assert [old(n) for n in (0, 1, 2, 7)] == [new(n) for n in (0, 1, 2, 7)]


MEMBERS = """define double @f(ptr %n) {
entry:
  %first = getelementptr inbounds i8, ptr %n, i64 64
  br label %loop
loop:
  %at = phi ptr [ %first, %entry ], [ %after, %loop ]
  %byte = phi i64 [ 64, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %x = load double, ptr %at
  %more = fadd double %sum, %x
  %next = add nuw nsw i64 %byte, 8
  %after = getelementptr inbounds nuw i8, ptr %n, i64 %next
  %end = icmp eq i64 %next, 128
  br i1 %end, label %out, label %loop
out:
  ret double %more
}
"""


@pytest.mark.parametrize(("text", "merged"), [
    (MEMBERS, 1),
    (MEMBERS.replace("ptr [ %first,", "ptr [ %n,").replace("i64 [ 64,", "i64 [ 0,"), 1),
    (MEMBERS.replace("i64 [ 64,", "i64 [ 56,"), 0),
    (MEMBERS.replace("ptr [ %first,", "ptr [ %n,"), 0),
])  # fmt: skip
def test_the_address_of_a_counter(text: str, merged: int) -> None:
    """Its phi is that address: what bounds the counter bounds it."""
    fn = read(text).functions["f"]
    assert merge_alike(fn) == merged
    load = next(i for i in fn.instructions() if i.opcode == "load")
    counter = next(i for i in fn.instructions() if i.name == "byte")
    address = load.operands[0]
    assert (address.opcode == "getelementptr") == bool(merged)  # type: ignore[attr-defined]
    if merged:
        assert address.operands == [fn.args[0], counter]  # type: ignore[attr-defined]


FURTHER = """define i64 @f(ptr %x, i64 %n) {{
entry:
  br label %loop
loop:
  %far = phi i64 [ {first}, %entry ], [ %next.far, %loop ]
  %i = phi i64 [ 2, %entry ], [ %next, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %total, %loop ]
  %total = add i64 %sum, %far
  %next = add nuw nsw i64 %i, {step}
  %next.far = add nuw i64 %i, 5
  %end = icmp sge i64 %next, %n
  br i1 %end, label %out, label %loop
out:
  ret i64 %total
}}
"""


@pytest.mark.parametrize(("first", "step", "merged"), [(6, 1, 1), (5, 2, 1), (5, 1, 0), (6, 2, 0), (2, 5, 0)])
def test_a_counter_that_runs_ahead_by_constants_of_both(first: int, step: int, merged: int) -> None:
    """u[i + 4] of a stencil: the next i + 4 is i + 5, the next i is i + 1."""
    text = FURTHER.format(first=first, step=step)
    module = read(text)
    fn = module.functions["f"]
    assert merge_alike(fn) == merged
    if merged:
        made = next(i for i in fn.instructions() if i.name == "far")
        assert (made.opcode, made.operands[1].value, made.flags) == ("add", 5 - step, ("nuw",))  # type: ignore[attr-defined]
    for n in (3, 9, 20):
        want, far, i = 0, first, 2
        while True:
            want, far, i = want + far, i + 5, i + step
            if i >= n:
                break
        unit = compile_module(to_text(module), ["f"], cache=False)
        assert unit.function("f", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(None, n) == want
