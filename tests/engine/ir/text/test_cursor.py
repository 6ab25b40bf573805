"""Types, constants and attributes read from text."""

from __future__ import annotations

import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstData,
    ConstExpr,
    ConstInt,
    ConstUndef,
    ConstZero,
    Module,
)
from irgrad.engine.ir.printer import constant_text
from irgrad.engine.ir.text.cursor import Cursor
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import IRSyntaxError

TYPES = [
    "i1",
    "i37",
    "double",
    "x86_fp80",
    "ptr",
    "ptr addrspace(3)",
    "<4 x float>",
    "[3 x [2 x i8]]",
    "{ i32, double }",
    "{}",
    "<{ i8, double }>",
    "{ { ptr, i32 }, [0 x i8] }",
    "<2 x ptr>",
]


@pytest.mark.parametrize("text", TYPES)
def test_types_are_interned_and_print_as_they_were(text: str) -> None:
    first, second = Cursor(Module(), text).type_(), Cursor(Module(), text).type_()
    assert first is second
    assert str(first) == text


@pytest.mark.parametrize(
    "text", ["<0 x i8>", "<2 x [2 x i8]>", "i0", "i99999999", "[x i8]", "<vscale x 2 x i8>", "foo", "", "{ i8"]
)
def test_wrong_types(text: str) -> None:
    with pytest.raises(IRSyntaxError):
        Cursor(Module(), text).type_()


CONSTANTS: list[tuple[str, type[Constant]]] = [
    ("i32 -7", ConstInt),
    ("i1 true", ConstInt),
    ("ptr null", ConstZero),
    ("[2 x i8] zeroinitializer", ConstZero),
    ("<4 x i32> splat (i32 7)", ConstAggregate),
    ("<2 x i32> <i32 1, i32 2>", ConstAggregate),
    ("{ i8, double } { i8 1, double 2.000000e+00 }", ConstAggregate),
    ("<{ i8, i16 }> <{ i8 1, i16 2 }>", ConstAggregate),
    ('[3 x i8] c"a\\00\\22"', ConstData),
    ("double poison", ConstUndef),
    ("i8 undef", ConstUndef),
    ("ptr getelementptr inbounds nuw (i8, ptr null, i64 8)", ConstExpr),
    ("ptr getelementptr inbounds inrange(-16, 16) ({ ptr, [4 x ptr] }, ptr null, i32 0, i32 1, i32 2)", ConstExpr),
    ("i64 ptrtoint (ptr null to i64)", ConstExpr),
    ("i64 sub nuw (i64 ptrtoint (ptr null to i64), i64 3)", ConstExpr),
]


@pytest.mark.parametrize(("text", "kind"), CONSTANTS)
def test_constants_print_as_they_were(text: str, kind: type[Constant]) -> None:
    value = Cursor(Module(), text).typed_value()
    assert isinstance(value, kind)
    assert f"{value.type} {constant_text(value)}" == text


def test_integers_are_signed_and_wrap() -> None:
    values = [Cursor(Module(), f"i8 {t}").typed_value() for t in ("255", "-1", "u0xFF", "s0xF", "300")]
    assert [v.value for v in values if isinstance(v, ConstInt)] == [-1, -1, -1, -1, 44]


def test_attributes_stay_text() -> None:
    first, second = "noalias captures(none) byval({ i32, [2 x i8] }) align 8", 'range(i32 0, 10) "k"="v"'
    text = f"declare noundef nonnull ptr @f(ptr {first}, i32 {second})"
    function = read(text + "\n").functions["f"]
    assert function.ret_attrs == "noundef nonnull"
    assert [a.attrs for a in function.args] == [first, second]
    assert function.args[0].type is ty.PTR
