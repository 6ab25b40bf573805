"""The clauses of landing pads, and the code for exceptions that libstdc++ throws from functions of its own."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.exceptions.handlers import Handlers, Pad
from irgrad.engine.normalise.exceptions.unwinding import lower_exceptions
from irgrad.rules.errors import Unsupported

PROGRAM = """
@_ZTISt11logic_error = external constant ptr
@.str = private constant [3 x i8] c"no\\00"
declare void @_ZSt20__throw_length_errorPKc(ptr) noreturn
declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
declare i32 @llvm.eh.typeid.for.p0(ptr)
define void @f(ptr %x, ptr %out) personality ptr @__gxx_personality_v0 {
entry:
  %v = load double, ptr %x
  %bad = fcmp ogt double %v, 1.0
  br i1 %bad, label %throw, label %fine
throw:
  invoke void @_ZSt20__throw_length_errorPKc(ptr @.str) to label %never unwind label %pad
never:
  unreachable
pad:
  %lp = landingpad { ptr, i32 } catch ptr @_ZTISt11logic_error
  %sel = extractvalue { ptr, i32 } %lp, 1
  %want = call i32 @llvm.eh.typeid.for.p0(ptr @_ZTISt11logic_error)
  %mine = icmp eq i32 %sel, %want
  br i1 %mine, label %handle, label %on
on:
  resume { ptr, i32 } %lp
handle:
  %obj = extractvalue { ptr, i32 } %lp, 0
  %e = call ptr @__cxa_begin_catch(ptr %obj)
  call void @__cxa_end_catch()
  br label %fine
fine:
  %r = phi double [ %v, %entry ], [ 7.0, %handle ]
  store double %r, ptr %out
  ret void
}
"""


@pytest.mark.parametrize(("text", "catches", "takes_all"), [
    ("cleanup", [], True),
    ("catch ptr @_ZTIi", ["_ZTIi"], False),
    ('cleanup catch ptr @_ZTIi catch ptr @"_ZTI1A"', ["_ZTIi", "_ZTI1A"], True),
    ("catch ptr @_ZTIi catch ptr null", ["_ZTIi", None], True),
    ("filter [0 x ptr] zeroinitializer", [], True),
])  # fmt: skip
def test_clauses(text: str, catches: list[str | None], takes_all: bool) -> None:
    pad = Pad(text)
    assert pad.catches == catches
    assert pad.takes_all is takes_all


def test_what_libstdcxx_throws_is_made_in_the_program() -> None:
    module = read(PROGRAM, roots=["f"])
    root = module.functions["f"]
    handlers = Handlers(module, [root])
    assert handlers.throwers == {"_ZSt20__throw_length_errorPKc": "12length_error"}
    lower_exceptions(module, root)
    assert verify_module(module) == []
    text = to_text(module)
    assert "call void @_ZNSt12length_errorC1EPKc(" in text
    assert "call void @_ZNSt12length_errorD1Ev(" in text
    assert "define internal void @irgrad.exception.end" in text
    assert "_ZSt20__throw_length_errorPKc(ptr @" not in text


# `throw` of an int or of a pointer to one, which an optimiser has made one throw of
MERGED = """
@_ZTIi = constant ptr null
@_ZTIl = constant ptr null
declare ptr @__cxa_allocate_exception(i64)
declare void @__cxa_throw(ptr, ptr, ptr) noreturn
declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
declare i32 @llvm.eh.typeid.for.p0(ptr)
define i64 @f(i1 %long) personality ptr @__gxx_personality_v0 {
entry:
  %e = call ptr @__cxa_allocate_exception(i64 8)
  store i64 3, ptr %e
  br i1 %long, label %one, label %throw
one:
  store i64 40, ptr %e
  br label %throw
throw:
  %info = phi ptr [ @_ZTIi, %entry ], [ @_ZTIl, %one ]
  invoke void @__cxa_throw(ptr %e, ptr %info, ptr null) to label %never unwind label %pad
never:
  unreachable
pad:
  %lp = landingpad { ptr, i32 } catch ptr @_ZTIl catch ptr @_ZTIi
  %obj = extractvalue { ptr, i32 } %lp, 0
  %sel = extractvalue { ptr, i32 } %lp, 1
  %want = call i32 @llvm.eh.typeid.for.p0(ptr @_ZTIl)
  %mine = icmp eq i32 %sel, %want
  %c = call ptr @__cxa_begin_catch(ptr %obj)
  %v = load i64, ptr %c
  call void @__cxa_end_catch()
  %more = select i1 %mine, i64 2, i64 0
  %r = add i64 %v, %more
  ret i64 %r
}
"""


@pytest.mark.parametrize("text", [
    MERGED,
    MERGED.replace("%info = phi ptr [ @_ZTIi, %entry ], [ @_ZTIl, %one ]",
                   "%info = select i1 %long, ptr @_ZTIl, ptr @_ZTIi"),
])  # fmt: skip
def test_one_throw_of_several_types(text: str) -> None:
    module = read(text, roots=["f"])
    lower_exceptions(module, module.functions["f"])
    f: Any = compile_module(to_text(module), ["f"], cache=False).function("f", ctypes.c_int64, ctypes.c_bool)
    assert (f(False), f(True)) == (3, 42)


def test_a_type_that_is_not_known_is_refused() -> None:
    text = MERGED.replace("%info = phi ptr [ @_ZTIi, %entry ], [ @_ZTIl, %one ]", "%info = load ptr, ptr %e")
    module = read(text, roots=["f"])
    with pytest.raises(Unsupported, match="the type of an exception is not known"):
        lower_exceptions(module, module.functions["f"])


def test_numbers_in_the_header_are_named_so() -> None:
    """What is counted there lies beside pointers, and is none of them."""
    module = read(PROGRAM, roots=["f"])
    lower_exceptions(module, module.functions["f"])
    again = read(to_text(module))
    tbaa = Tbaa(again)
    words = [i for fn in again.functions.values() for i in fn.instructions()
             if (i.opcode == "load" and i.type is ty.I64) or (i.opcode == "store" and i.operands[0].type is ty.I64)]
    assert len(words) > 4 and all(tbaa.is_member(i.metadata["tbaa"]) for i in words)
