"""Bodies of the approximations: any number of lanes by vectors of the instruction's width."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.runtime.approximations import link_approximations


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 8])
@pytest.mark.parametrize("word", ["rsqrt", "rcp"])
def test_lanes_are_those_of_the_instruction(word: str, count: int) -> None:
    type_, suffix = (f"<{count} x float>", f"v{count}f32") if count else ("float", "f32")
    text = link_approximations(f"""define void @f(ptr %x, ptr %r) {{
  %v = load {type_}, ptr %x, align 4
  %y = call {type_} @irgrad.{word}.{suffix}({type_} %v)
  store {type_} %y, ptr %r, align 4
  ret void
}}
declare {type_} @irgrad.{word}.{suffix}({type_}) nounwind willreturn memory(none)
""")
    x = np.linspace(0.5, 3, 8, dtype=np.float32)
    r = np.zeros(8, np.float32)
    compile_module(text, ["f"], cache=False).function("f", None, ctypes.c_void_p, ctypes.c_void_p)(
        x.ctypes.data, r.ctypes.data)
    exact = 1 / np.sqrt(x) if word == "rsqrt" else 1 / x
    np.testing.assert_allclose(r[: max(count, 1)], exact[: max(count, 1)], 2e-3)
    assert not r[max(count, 1) :].any()


@pytest.mark.parametrize(("type_", "suffix"), [
    ("double", "f64"), ("<3 x double>", "v3f64"), ("<20 x float>", "v20f32"),
])  # fmt: skip
def test_fourteen_bits_are_an_instruction_of_avx512(type_: str, suffix: str) -> None:
    text = link_approximations(f"declare {type_} @irgrad.rcp14.{suffix}({type_}) nounwind\n")
    parse(text).close()
    assert text.startswith(f"define internal {type_} @irgrad.rcp14.{suffix}(")
    assert f"@llvm.x86.avx512.rcp14.{'pd' if 'double' in type_ else 'ps'}.512(" in text


def test_other_modules_stay_as_they_are() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert link_approximations(text) is text
