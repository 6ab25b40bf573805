"""Vectors of floats with pointers and integers in them: read lane by lane, or left alone."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.ir.model import Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.reinterpret.mixed import lanes_read, load_members, split_mixed_vectors

STRUCT = """
define double @f(double %x, ptr %p, i64 %n) {
  %a = alloca <4 x double>, align 32
  store double %x, ptr %a, align 32
  %b = getelementptr i8, ptr %a, i64 8
  store i64 %n, ptr %b, align 8
  %c = getelementptr i8, ptr %a, i64 16
  store ptr %p, ptr %c, align 16
  %v = load <4 x double>, ptr %a, align 32
  %s = shufflevector <4 x double> %v, <4 x double> poison, <4 x i32> zeroinitializer
  %bits = bitcast <4 x double> %v to <4 x i64>
  %i = extractelement <4 x i64> %bits, i64 2
  %k = extractelement <4 x i64> %bits, i64 1
  %q = inttoptr i64 %i to ptr
  %at = getelementptr double, ptr %q, i64 %k
  %w = load <4 x double>, ptr %at, align 8
  %m = fmul <4 x double> %s, %w
  %e = extractelement <4 x double> %m, i64 0
  %o = extractelement <4 x double> %m, i64 3
  %z = fadd double %e, %o
  ret double %z
}
"""


def loads(text: str) -> list[str]:
    """Types of the loads of @f after splitting."""
    fn = read(text, roots=["f"]).functions["f"]
    split_mixed_vectors(fn)
    return [str(i.type) for i in fn.instructions() if i.opcode == "load"]


def test_each_lane_has_the_type_of_its_use() -> None:
    assert loads(STRUCT) == ["double", "i64", "i64", "<4 x double>"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%s = shufflevector <4 x double> %v, <4 x double> poison", "%s = fadd <4 x double> %v, %v ;"),
        ("<4 x i64> %bits, i64 1", "<4 x i64> %bits, i64 %n"),
        ("<4 x i64> %bits, i64 2", "<4 x i64> %bits, i64 0"),
        ("load <4 x double>, ptr %a", "load volatile <4 x double>, ptr %a"),
        ("inttoptr i64 %i to ptr", "getelementptr i8, ptr %p, i64 %i"),
    ],
)
def test_vectors_that_stay_whole(old: str, new: str) -> None:
    """Arithmetic on it, a lane that is not known, a lane that is both, a volatile access, no pointer in it."""
    text = STRUCT.replace(old, new)
    assert text != STRUCT
    if ";" in new:
        text = text.replace(", <4 x i32> zeroinitializer", "")
    assert loads(text) == ["<4 x double>", "<4 x double>"]


def test_lanes_that_are_read() -> None:
    fn = read(STRUCT, roots=["f"]).functions["f"]
    users = uses_of(fn.blocks)
    named: dict[str | None, Instruction] = {i.name: i for i in fn.instructions()}
    assert lanes_read(named["v"], users) == {0, 1, 2}
    assert lanes_read(named["m"], users) == {0, 3}
    assert lanes_read(named["w"], users) is None


def test_the_gradient_reaches_the_float_and_the_memory_behind_the_pointer() -> None:
    kernel = irgrad.load(STRUCT, language="ll").kernel("f", "f64(f64 x, f64[8] p, i64 n)")
    p = np.linspace(1.0, 2.0, 8)
    dx, dp = engine.grad(kernel, argnums=(0, 1))(0.5, p, 2)
    assert dx == p[2] + p[5]
    np.testing.assert_array_equal(dp, [0, 0, 0.5, 0, 0, 0.5, 0, 0])
    assert engine.check(kernel, 0.5, p, 2)


WORDS = """
define double @f(ptr %p, ptr %q, i64 %n) {
  %v = load <2 x i64>, ptr %p, align 8
  store <2 x i64> %v, ptr %q, align 8
  %row = extractelement <2 x i64> %v, i64 0
  %at = inttoptr i64 %row to ptr
  %bits = extractelement <2 x i64> %v, i64 1
  %x = bitcast i64 %bits to double
  %floats = bitcast <2 x i64> %v to <4 x float>
  %last = extractelement <4 x float> %floats, i64 3
  %y = load double, ptr %at, align 8
  %wide = fpext float %last to double
  %s = fadd double %x, %y
  %z = fadd double %s, %wide
  ret double %z
}
"""


def members(text: str) -> list[str]:
    """Types of the loads of @f after its members are loaded."""
    fn = read(text, roots=["f"]).functions["f"]
    load_members(fn)
    return [str(i.type) for i in fn.instructions() if i.opcode == "load"]


def test_a_member_of_a_copied_struct_is_loaded_from_its_own_place() -> None:
    assert members(WORDS) == ["<2 x i64>", "i64", "i64", "double", "float", "double"]


@pytest.mark.parametrize("old", ["i64> %v, i64 0", "i64> %v, i64 1"])
def test_a_member_that_is_chosen_when_the_program_runs_is_not(old: str) -> None:
    kept = members(WORDS.replace(old, "i64> %v, i64 %n"))
    assert len(kept) < 6
    assert kept[0] == "<2 x i64>"


def test_memory_that_others_may_change_is_read_once() -> None:
    assert members(WORDS.replace("load <2", "load volatile <2")) == ["<2 x i64>", "double"]
