"""The function of one iteration, of that of a segment; and the loop as one iteration after the other."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.engine.normalise.one_iteration import internal, one_iteration, write_loop

STEP = """
define internal i64 @step(ptr %state, i64 %most, double %x) {
segment:
  %first = load double, ptr %state
  br label %head
head:
  %ran = phi i64 [ 0, %segment ], [ %after, %back ]
  %sum = phi double [ %first, %segment ], [ %more, %back ]
  %large = fcmp ogt double %sum, 20.0
  br i1 %large, label %out, label %work
work:
  %square = fmul double %sum, %x
  %more = fadd double %square, 1.0
  br label %back
back:
  %after = add i64 %ran, 1
  %full = icmp eq i64 %after, %most
  br i1 %full, label %pause, label %head
pause:
  store double %more, ptr %state
  br label %done
out:
  store double %sum, ptr %state
  %ends = getelementptr { double, i64 }, ptr %state, i64 0, i32 1
  store i64 1, ptr %ends
  %last = add i64 %ran, 1
  br label %done
done:
  %total = phi i64 [ %after, %pause ], [ %last, %out ]
  ret i64 %total
}
"""
STATE = ty.struct((ty.F64, ty.I64))


def _loop(single: bool, carried: bool, ends: int | None) -> str:
    module = read(STEP, roots=["step"])
    step = module.functions["step"]
    one = one_iteration(module, step, "one") if single else None
    whole = internal(module, "whole", ty.VOID, [*(arg.type for arg in step.args), *([ty.I64] if carried else [])])
    whole.head = ""
    write_loop(whole, step, one, STATE, ends, [3] if carried else [])
    text = to_text(module)
    validate(read(text, roots=["whole"]))
    return text


def _run(text: str, most: int, *carried: int) -> tuple[float, int]:
    call = compile_module(text, ["whole"], cache=False).function(
        "whole", None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, *[ctypes.c_int64] * len(carried))  # fmt: skip
    state = (ctypes.c_double * 2)(0.5, 0.0)
    call(ctypes.addressof(state), most, 1.25, *carried)
    return state[0], ctypes.cast(state, ctypes.POINTER(ctypes.c_int64))[1]


@pytest.mark.parametrize(("most", "ends"), [(1, None), (5, None), (2**63 - 1, 1)])
def test_the_loop_is_the_same(most: int, ends: int | None) -> None:
    wanted = _run(_loop(single=False, carried=False, ends=ends), most)
    assert _run(_loop(single=True, carried=False, ends=ends), most) == wanted
    for carried in (0, 8):
        assert _run(_loop(single=True, carried=True, ends=ends), most, carried) == wanted


def test_nothing_leads_back() -> None:
    module = read(STEP, roots=["step"])
    one = one_iteration(module, module.functions["step"], "one")
    assert [str(arg.type) for arg in one.args] == ["ptr", "i64", "double", "ptr"]
    seen = set[str]()
    for block in one.blocks:
        seen.add(block.name or "")
        assert not seen & {after.name or "" for after in block.terminator.blocks}
    assert len(module.functions["step"].blocks[1].phis) == 2, "the other one is as it was"


def test_both_only_where_iterations_may_read_what_others_wrote() -> None:
    assert "call i64 @step(" not in _loop(single=True, carried=False, ends=None).partition("@whole")[2]
    both = _loop(single=True, carried=True, ends=None).partition("@whole")[2]
    assert "call i64 @step(" in both and "call i64 @one(" in both
