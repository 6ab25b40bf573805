"""Results of differentiated functions: which hold numbers, which come through memory."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.reader import read
from irgrad.engine.notation.results import floats_of, ones, result_of, room_of

MODULE = read("""
%struct.big = type { i64, [2 x double], float }
declare void @nothing(double)
declare double @number(double)
declare ptr @place(double)
declare i32 @count(double)
declare { double, float } @two(double)
declare void @large(ptr sret(%struct.big) align 8, double)
""", [])


def test_results() -> None:
    results = {name: result_of(MODULE.functions[name], MODULE) for name in MODULE.functions}
    assert results["nothing"].kind is None
    assert (results["number"].kind, results["number"].active) == (ty.F64, True)
    assert results["place"].pointer
    assert not results["place"].active
    assert (results["count"].kind, results["count"].active) == (ty.I32, False)
    assert results["two"].active
    assert not results["two"].memory
    assert results["large"].memory
    assert results["large"].active
    assert results["large"].kind is MODULE.types["%struct.big"]


def test_floats_of_a_value_have_offsets() -> None:
    assert list(floats_of(MODULE.types["%struct.big"])) == [(8, ty.F64), (16, ty.F64), (24, ty.F32)]
    assert list(floats_of(ty.vector(2, ty.F32))) == [(0, ty.F32), (4, ty.F32)]
    assert list(floats_of(ty.I64)) == []
    assert ones(ty.F64) == "1.0"


def test_the_room_of_a_call_for_a_stored_result() -> None:
    assert room_of("noalias sret(%struct.big) align 8", MODULE) == ty.size_of(MODULE.types["%struct.big"])
    assert room_of("noalias sret({ double, double })", MODULE) == 0
    assert room_of("noundef", MODULE) == 0
