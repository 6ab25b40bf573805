"""Which arrays chunks are going to have copies of: floats that several iterations may read, of known size."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.model import Argument, Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.plans import plan_of
from irgrad.engine.threads.work import Worth

TEXT = """
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %n) {
entry:
  %v = alloca [4 x double]
  %all = alloca [4 x double]
  store double 1.0, ptr %all
  %count = load i64, ptr %n
  %many = mul i64 %count, 8
  %memory = call ptr @malloc(i64 %many)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  READ
  %q = getelementptr inbounds double, ptr %y, i64 %i
  store double %a, ptr %q
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare ptr @malloc(i64)
declare void @llvm.lifetime.start.p0(ptr)
"""
READS = {
    "each its own": ("%p = getelementptr double, ptr %x, i64 %i\n  %a = load double, ptr %p", []),
    "all the same": ("%a = load double, ptr %x", ["x"]),
    "by an index": ("%p = getelementptr double, ptr %x, i64 %i\n  %k = load i64, ptr %p\n"
                    "  %r = getelementptr double, ptr %x, i64 %k\n  %a = load double, ptr %r", ["x"]),
    "a number": ("%k = load i64, ptr %x\n  %a = sitofp i64 %k to double", []),
    "of the function": ("%a = load double, ptr %all", ["all"]),
    "of an iteration": ("call void @llvm.lifetime.start.p0(ptr %v)\n  store double 2.0, ptr %v\n"
                        "  %a = load double, ptr %v", []),
    "reserved": ("%a = load double, ptr %memory", ["memory"]),
    "of no known size": ("%a = load double, ptr %n", []),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_what_several_iterations_may_read(name: str) -> None:
    rows, wanted = READS[name]
    module = read(TEXT.replace("READ", rows))
    fn = module.functions["f"]
    plan = plan_of(module, fn, get(Loops, fn).top[0], bytes_of=(800, 800, None), worth=Worth(1, 1))
    assert not plan.why
    assert [memory.name for memory in plan.copied if isinstance(memory, Argument | Instruction)] == wanted
    assert len(plan.copied) == len(wanted)
