"""Functions that stop and go on: run step by step on the host, against the function as it was."""

from __future__ import annotations

import ctypes

import numpy as np

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.resume import DONE, resumable
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module

TEXT = """
declare double @stop(i64, double)
declare void @llvm.lifetime.start.p0(ptr)
define void @f(ptr %x, i64 %n) {
entry:
  %w = alloca [2 x double], align 16
  call void @llvm.lifetime.start.p0(ptr %w)
  store double 1.0, ptr %w, align 8
  %first = load double, ptr %x, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %join ]
  %sum = phi double [ 0.0, %entry ], [ %more, %join ]
  %old = phi double [ 5.0, %entry ], [ %sum, %join ]
  %odd = trunc i64 %i to i1
  br i1 %odd, label %other, label %join
other:
  %twice = fmul double %first, 2.0
  %got = call double @stop(i64 %i, double %sum)
  %both = fadd double %got, %twice
  %z = load double, ptr %w, align 8
  %z2 = fmul double %z, 3.0
  store double %z2, ptr %w, align 8
  br label %join
join:
  %part = phi double [ %both, %other ], [ %old, %loop ]
  %more = fadd double %sum, %part
  %next = add i64 %i, 1
  %go = icmp ult i64 %next, %n
  br i1 %go, label %loop, label %done
done:
  %last = call double @stop(i64 -1, double %more)
  %v = load double, ptr %w, align 8
  %r = fmul double %last, %v
  store double %r, ptr %x, align 8
  ret void
}
"""
BODY = """define double @stop(i64 %i, double %v) {
  %f = sitofp i64 %i to double
  %r = fsub double %v, %f
  ret double %r
}
"""


def _wanted(n: int) -> float:
    text = TEXT.replace("declare double @stop(i64, double)", BODY)
    function = compile_module(text, ["f"], strict_fp=True).function("f", None, ctypes.c_void_p, ctypes.c_int64)
    x = np.array([0.3])
    function(x.ctypes.data, n)
    return float(x[0])


def test_a_program_that_stops_in_a_loop() -> None:
    """Values of before the stop, phis, and arrays on the stack are there again; what is called between is given."""
    module = read(TEXT, roots=["f"])
    fn = module.functions["f"]
    state = Argument(ty.PTR, "state", 2)
    fn.args.append(state)
    fn.ftype = ty.function(ty.VOID, (*fn.ftype.params, ty.PTR))
    calls = [i for i in fn.instructions() if i.is_call and i.callee_name == "stop"]

    def finish(at, stop, call):  # type: ignore[no-untyped-def]
        # the result of the call is computed from what was given it, which is in the state
        place, kind = stop.given[1]
        value = at.load(kind, at.gep(ty.I8, state, place, flags=()), 8)
        number = at.load(ty.I64, at.gep(ty.I8, state, stop.given[0][0], flags=()), 8)
        return at.binary("fsub", value, at.cast("sitofp", number, ty.F64), ())

    made = resumable(fn, state, calls, finish, header=24)
    assert [stop.number for stop in made.stops] == [1, 2] and verify_module(module) == []
    function = compile_module(to_text(module), ["f"], strict_fp=True).function(
        "f", None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)  # fmt: skip
    for n in (1, 2, 5, 6):
        x, words = np.array([0.3]), np.zeros(made.bytes // 8 + 1, np.int64)
        words[1:4] = 77  # the header is somebody else's
        seen = []
        for _ in range(20):
            function(x.ctypes.data, n, words.ctypes.data)
            seen.append(int(words[0]))
            if seen[-1] == DONE:
                break
        assert seen == [*[1] * (n // 2), 2, DONE]
        assert list(words[1:4]) == [77] * 3 and float(x[0]) == _wanted(n)
