"""The IR that ends a call with an exception."""

from __future__ import annotations

import ctypes

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.kernel.normal_form import entry_text
from irgrad.engine.runtime.exceptions import catching, is_caught, link_exceptions, unpromised
from irgrad.engine.runtime.helpers import link_arena, uses_tape
from irgrad.engine.runtime.tape_memory import THROWN, out_of_tape

THROWS = """
@type = private constant [4 x i8] c"odd\\00"
@text = private constant [6 x i8] c"no %d\\00"
@where = private constant [6 x i8] c"a.c:3\\00"
declare void @irgrad.tape.throws(ptr, ptr, i64, ptr, ptr, ptr)
declare void @irgrad.tape.throws_format(ptr, ptr, ptr, ...)
define void @f(ptr %x) {
  %v = load i32, ptr %x
  %odd = trunc i32 %v to i1
  br i1 %odd, label %one, label %other
one:
  call void (ptr, ptr, ptr, ...) @irgrad.tape.throws_format(ptr @type, ptr @where, ptr @text, i32 %v)
  unreachable
other:
  call void @irgrad.tape.throws(ptr @type, ptr null, i64 -1, ptr null, ptr null, ptr null)
  unreachable
}
"""
ALLOCATES = "declare ptr @_Znwm(i64)\ndefine ptr @g() nounwind {\n  %p = call ptr @_Znwm(i64 8)\n  ret ptr %p\n}\n"


def test_records_tell_what_was_thrown() -> None:
    assert uses_tape(THROWS)
    text = link_arena(link_exceptions(THROWS)) + entry_text("f", 1, tape=True)
    unit = compile_module(text, ["irgrad.entry.f"])
    run = unit.function("irgrad.entry.f", ctypes.c_void_p, ctypes.c_void_p)
    for value, what, where in ((7, "`f` throws `odd`: no 7", "a.c:3"), (8, "`f` throws `odd`", "")):
        cell = ctypes.c_int32(value)
        frame = (ctypes.c_void_p * 1)(ctypes.addressof(cell))
        record = run(ctypes.addressof(frame))
        assert ctypes.c_int64.from_address(record + 16).value == THROWN
        error = out_of_tape("f", record)
        assert (error.what, error.where) == (what, where)


def test_nothing_is_linked_where_nothing_throws() -> None:
    assert link_exceptions("define void @f() {\n  ret void\n}\n") == "define void @f() {\n  ret void\n}\n"


def test_guards_catch_what_the_library_may_throw() -> None:
    text = catching(ALLOCATES)
    assert is_caught(text) and not is_caught(ALLOCATES) and uses_tape(text)
    assert "define ptr @g() {" in text and unpromised(ALLOCATES) in text
    whole = link_arena(link_exceptions(text)) + entry_text("g", 0, tape=True, unwinds=True)
    parse(whole).close()
    assert catching("declare void @h()\n") == "declare void @h()\n"
