"""What the reverse sweep of a chunk does with arrays: which it only adds to."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.shadows import ADDED, MIXED, REFUSED, added_type, mark_shadows

TEXT = """
define internal void @g.rev.f.iteration.0(i64 %c, ptr %x, ptr %at, double %d) noinline {
  %p = getelementptr double, ptr %x, i64 %c
  BODY
  ret void
}
define void @f(ptr %x, ptr %at) {
  call void @g.rev.f.iteration.0(i64 1, ptr %x, ptr %at, double 1.0)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @use(ptr)
"""
ADD = "%old = load double, ptr %p\n  %sum = fadd double %old, %d\n  store double %sum, ptr %p"
CASES = {
    "a sum": (ADD, ADDED),
    "two terms": (ADD.replace("%old, %d", "%s0, 1.0").replace("%sum", "%s0 = fsub double %old, %d\n  %sum", 1), ADDED),
    "taken as well": (f"{ADD}\n  %t = load double, ptr %x\n  store double 0.0, ptr %x", MIXED),
    "cleared as well": (f"{ADD}\n  call void @llvm.memset.p0.i64(ptr %x, i8 0, i64 8, i1 false)", MIXED),
    "two types": (f"{ADD}\n  %o2 = load float, ptr %x\n  %s2 = fadd float %o2, 1.0\n  store float %s2, ptr %x", MIXED),
    "taken only": ("%t = load double, ptr %p\n  store double 0.0, ptr %p", "irgrad-written"),
    "handed on": (f"{ADD}\n  call void @use(ptr %x)", MIXED),
    "read": ("%t = load double, ptr %p", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_arguments_are_marked(name: str) -> None:
    body, mark = CASES[name]
    module = read(mark_shadows(TEXT.replace("BODY", body), "f"))
    argument = module.functions["g.rev.f.iteration.0"].args[1]
    assert mark in argument.attrs and bool(argument.attrs) is bool(mark), argument.attrs
    assert added_type(argument) == ("double" if mark == ADDED else "")


@pytest.mark.parametrize("defined", [False, True])
def test_the_adjoint_of_a_copy_adds_to_its_source(defined: bool) -> None:
    call = "call void @irgrad.adjoint.copy.double(ptr %at, ptr %x, i64 8, i64 8, i64 0)"
    body = "{\n  store double 0.0, ptr %t\n  ret void\n}"
    copy = "void @irgrad.adjoint.copy.double(ptr %t, ptr %s, i64 %b, i64 %p, i64 %o)"
    text = TEXT.replace("BODY", call) + (f"define internal {copy} {body}\n" if defined else f"declare {copy}\n")
    arguments = read(mark_shadows(text, "f")).functions["g.rev.f.iteration.0"].args
    assert ADDED in arguments[1].attrs and "irgrad-written" in arguments[2].attrs


def test_an_address_out_of_memory_is_nobodys() -> None:
    body = ADD.replace("ptr %p", "ptr %q").replace("%old =", "%q = load ptr, ptr %at\n  %old =", 1)
    module = read(mark_shadows(TEXT.replace("BODY", body), "f"))
    assert REFUSED in module.functions["g.rev.f.iteration.0"].args[0].attrs
