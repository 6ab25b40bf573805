"""Results of differentiated functions: which hold numbers, which come through memory."""

from __future__ import annotations

import pytest
from analysed import facts_of

from irgrad.engine.enzyme.results import Result, floats_of, numbers_in, ones, result_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.reader import read

MODULE = read("""
%struct.big = type { i64, [2 x double], float }
declare void @nothing(double)
declare double @number(double)
declare ptr @place(double)
declare i32 @count(double)
declare { double, float } @two(double)
declare { i64, i8 } @tagged(double)
declare { ptr, ptr } @places(double)
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
    assert results["tagged"].packed
    assert results["places"].pointer
    assert not any(results[name].packed for name in ("nothing", "number", "place", "two", "places"))
    registers = {name: [str(r) for r in result.registers] for name, result in results.items()}
    assert registers["number"] == ["double"]
    assert registers["two"] == ["double", "float"]
    assert registers["large"] == []
    assert registers["nothing"] == []


PACKED = """
define void @f(ptr noalias %x, ptr noalias %ret) {
  %a = load float, ptr %x
  %bits = bitcast float %a to i32
  %low = zext i32 %bits to i64
  %joined = or disjoint i64 %low, 21474836480
  store i64 %joined, ptr %ret
  %at = getelementptr i8, ptr %ret, i64 8
  store double 1.0, ptr %at
  ret void
}
"""


def test_numbers_that_integers_carry() -> None:
    facts = facts_of(PACKED, "f", {0, 1})
    kind = ty.struct((ty.I64, ty.F64))
    found = numbers_in(facts, Result(kind, active=True, memory=False), facts.root.args[1])
    assert found.numbers == ((0, ty.F32), (8, ty.F64))
    assert found.problem is None


@pytest.mark.parametrize(("computed", "problem"), [("", True), ("  %odd = mul i64 %v, 3\n", False)])
def test_an_integer_of_which_nothing_is_known_is_a_problem(computed: str, problem: bool) -> None:
    text = ("define void @f(ptr noalias %x, ptr noalias %ret) {\n  %v = load i64, ptr %x\n" + computed
            + "  store i64 %v, ptr %ret\n  ret void\n}")  # fmt: skip
    facts = facts_of(text, "f", {0, 1})
    found = numbers_in(facts, Result(ty.I64, active=False, memory=False), facts.root.args[1])
    assert found.numbers == ()
    assert (found.problem is not None) is problem


def test_floats_of_a_value_have_offsets() -> None:
    assert list(floats_of(MODULE.types["%struct.big"])) == [(8, ty.F64), (16, ty.F64), (24, ty.F32)]
    assert list(floats_of(ty.vector(2, ty.F32))) == [(0, ty.F32), (4, ty.F32)]
    assert list(floats_of(ty.I64)) == []
    assert ones(ty.F64) == "1.0"
