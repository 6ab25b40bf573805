"""When exceptions may leave a differentiated function, and what throws them again. Programs: thrown.cpp."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.enzyme.leaving import EndsProgram, as_written, may_leave, named, thrower_text, without_limits
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstZero, Function, GlobalVariable
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

THROWS = "  call void @__cxa_throw(ptr %e, ptr @_ZTIi, ptr null)\n"
CATCHES = "  %c = call ptr @__cxa_begin_catch(ptr %e)\n"
TERMINATES = "define linkonce_odr hidden void @__clang_call_terminate(ptr %e) {\n" + CATCHES + "}\n"


def _call(mode: str) -> Any:
    return SimpleNamespace(mode=mode)


@pytest.mark.parametrize(("program", "text", "mode", "expected"), [
    (CATCHES, THROWS, "reverse", True),
    (CATCHES, THROWS.replace("call", "invoke"), "forward", True),
    (TERMINATES + f"define void @f() {{\n{CATCHES}}}\n", THROWS, "reverse", True),
    (TERMINATES, THROWS, "reverse", False),  # noexcept: no handler of the program
    (CATCHES, "declare void @__cxa_throw(ptr, ptr, ptr)\n", "reverse", False),
    (CATCHES, THROWS, "augment", False),
    (CATCHES, THROWS, "sweep", False),
])  # fmt: skip
def test_only_where_something_throws_and_something_catches(program: str, text: str, mode: str, expected: bool) -> None:
    assert may_leave(program, text, _call(mode), "main") is expected


LENGTH = "_ZNSt3__120__throw_length_errorB9nie220108EPKc"


def _function(name: str, body: str) -> str:
    return f"define void @{name}(ptr %e) {{\n{body}  ret void\n}}\n"


@pytest.mark.parametrize(("catcher", "expected"), [
    (_function("_ZNSt3__124__put_character_sequenceEv", CATCHES), False),
    (_function("_ZNSt3__15asyncEv", CATCHES + "  call void @main(ptr %e)\n"), True),
    (_function("_ZN4mine3runEv", CATCHES), True),  # perhaps called with a pointer to what calls the derivative
])  # fmt: skip
def test_a_handler_of_the_library_counts_where_it_reaches_the_call(catcher: str, expected: bool) -> None:
    program = catcher + _function("main", "")
    assert may_leave(program, _function("f", THROWS), _call("reverse"), "main") is expected


def test_containers_without_bounds_end_the_program() -> None:
    text = _function(LENGTH, THROWS) + _function("f", f"  call void @{LENGTH}(ptr %e)\n")
    assert not may_leave(CATCHES, text, _call("reverse"), "main")
    cut = without_limits(text + "declare void @__cxa_throw(ptr, ptr, ptr)\n@_ZTIi = external constant ptr\n")
    assert "call void @_ZSt9terminatev()" in cut
    assert "call void @__cxa_throw" not in cut
    parse(cut)
    assert without_limits(text + CATCHES) == text + CATCHES


@pytest.mark.parametrize(("symbol", "name"), [
    ("_ZL4lossPKdl", "loss"), ("_ZN2ns4lossEd", "ns::loss"), ("_ZNSt3__16vectorIdE4pushEv", "vector"), ("loss", "loss"),
    ("_ZN12_GLOBAL__N_14lossEd", "loss"), ("_ZplRK1AS1_", "_ZplRK1AS1_"),
])  # fmt: skip
def test_names_are_shown_as_written(symbol: str, name: str) -> None:
    assert as_written(symbol) == name


def test_the_thrower_gives_the_runtime_its_header_back() -> None:
    module = read("@_ZTIi = external constant ptr\n", [])
    text = thrower_text(module, "irgrad.throw.1", (("_ZTIi", ""), ("_ZTI1N", "_ZN1ND1Ev")))
    assert "store [64 x i8] zeroinitializer, ptr %header" in text
    assert text.index("i64 -48\n  %number = load i64, ptr %type") < text.index("store [64 x i8]")
    assert "@__cxa_throw(ptr %thing, ptr @_ZTIi, ptr null)" in text
    assert "@__cxa_throw(ptr %thing, ptr @_ZTI1N, ptr @_ZN1ND1Ev)" in text
    made = parse(to_text(module) + text)  # all that it mentions is declared
    assert "nounwind" not in str(made.get_function("irgrad.throw.1"))


def test_types_are_known_by_their_symbols() -> None:
    info = GlobalVariable("_ZTI1N", ty.PTR, None, True)
    end = Function("_ZN1ND1Ev", ty.function(ty.VOID, (ty.PTR,)))
    assert named([(info, end), (info, ConstZero(ty.PTR))]) == (("_ZTI1N", "_ZN1ND1Ev"), ("_ZTI1N", ""))
    with pytest.raises(Unsupported, match=r"unknown type(.|\n)*not a constant"):
        named([(Argument(ty.PTR, "info", 0), end)])


def test_other_files_may_catch() -> None:
    assert may_leave("", THROWS, _call("reverse"), "main", whole=False)
    assert not may_leave("", "", _call("reverse"), "main", whole=False)
    assert not may_leave("", THROWS, _call("sweep"), "main", whole=False)


VARIADIC = """#include <cstdarg>
template <class R, class... A> R __enzyme_autodiff(void *, A...);
__attribute__((noinline)) static int pick(int n, ...) {
  if (n < 0) throw 1;
  va_list list; va_start(list, n);
  int found = va_arg(list, int);
  va_end(list);
  return found;
}
int (*volatile picks)(int, ...);
static double f(double x, int n) { picks = pick; return x * x * pick(n, 2); }
double slope(double x, int n) { return __enzyme_autodiff<double>((void *)f, x, n); }
"""


def test_an_exception_that_cannot_leave_is_told() -> None:
    text = load(VARIADIC, language="c++").text
    told = r"<string>:12:.*an exception that leaves `f` ends the program.*variable arguments"
    with pytest.warns(EndsProgram, match=told):
        lower(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower(text, whole=True)  # nobody catches anything there
