"""Split forward mode of a root: a first half that keeps a log, and tangents that a program asks for later."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.differentiate.forward.replay import TANGENT
from irgrad.engine.differentiate.roots import Derived
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive, link_runtime
from irgrad.rules.errors import Unsupported

ROOT = """
declare double @llvm.sin.f64(double)
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %ret) {
  %k = load i64, ptr %n
  %p = getelementptr double, ptr %x, i64 %k
  %a = load double, ptr %x
  %b = load double, ptr %p
  %s = call double @llvm.sin.f64(double %a)
  %y = fmul double %s, %b
  store double %y, ptr %ret
  ret void
}
"""
IN_PLACE = ROOT.replace("  store double %y, ptr %ret", "  store double %y, ptr %x\n  store double %y, ptr %ret")
ACTIVITY = ("dup", "const", "dup")


def _derived(text: str = ROOT, **options: object) -> tuple[Module, Derived]:
    module = read(text)
    return module, derive(module, Request("f", "split_forward", ACTIVITY, **options))  # type: ignore[arg-type]


def test_names_and_types_of_both_halves() -> None:
    module, derived = _derived()
    assert derived.name == "f.split_forward.101"
    first, second = module.functions[derived.name], module.functions[derived.name + TANGENT]
    assert str(first.ftype) == "{ ptr } (ptr, ptr, ptr, ptr, ptr, ptr)"  # x, x', n, ret, ret', the arena
    assert str(second.ftype) == "void (ptr, ptr, ptr, ptr, ptr, ptr)"  # x, x', n, ret, ret', the log
    assert derived.facts is not None and not derived.note


def test_the_first_half_runs_the_function_the_second_one_its_tangents() -> None:
    module, derived = _derived()
    called = {}
    for name in (derived.name, derived.name + TANGENT):
        called[name] = [i.callee_name for i in module.functions[name].instructions() if i.is_call]
    assert "f" in called[derived.name] and f"{derived.name}.body" not in called[derived.name]
    assert f"{derived.name}.body" in called[derived.name + TANGENT] and "f" not in called[derived.name + TANGENT]


def test_tangents_without_a_log() -> None:
    """Of a function that writes over none of its inputs: what it read is there still."""
    module, derived = _derived(kept=(0, 1), log=False)
    name = derived.name + TANGENT
    compiled = compile_module(link_runtime(to_text(module)), [name], cache=False)
    x, dx, n, ret = np.array([0.3, 0.0, 1.7]), np.array([2.0, 9.0, -1.0]), np.array([2]), np.array([5.0])
    tangent = np.zeros(1)
    frame = [ctypes.c_void_p(v.ctypes.data) for v in (x, dx, n, ret, tangent)]
    compiled.function(name, None, *[ctypes.c_void_p] * 6)(*frame, None)
    np.testing.assert_allclose(tangent, [np.cos(0.3) * 1.7 * 2.0 - np.sin(0.3)], rtol=1e-14)
    assert ret[0] == 5.0, "values are not computed again"


@pytest.mark.parametrize(("text", "kept"), [(ROOT, ()), (IN_PLACE, (0, 1))])
def test_a_log_that_is_needed_is_asked_for(text: str, kept: tuple[int, ...]) -> None:
    with pytest.raises(Unsupported, match=r"the tangent pass is given no tape, and needs one"):
        _derived(text, kept=kept, log=False)
    module, _ = _derived(text, kept=kept)
    logged = [i for i in module.functions["f"].instructions() if i.is_call and i.callee_name == "irgrad.log.put"]
    assert logged


def test_the_log_is_added_to_a_module_once() -> None:
    module = read(ROOT + ROOT.replace("@f(", "@g(").replace("declare double @llvm.sin.f64(double)\n", ""))
    for name in ("f", "g"):
        derive(module, Request(name, "split_forward", ACTIVITY))
    text = to_text(module)
    assert text.count("@irgrad.log.end = ") == 1
    assert len(re.findall(r"^(define|declare) [^@]*@irgrad\.log\.chunk\(", text, re.M)) == 1
    for name in ("f", "g"):
        assert text.count(f"@{name}.split_forward.101{TANGENT}(") == 1
