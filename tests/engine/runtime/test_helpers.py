"""Linking of the runtime, and the copy helpers as machine code."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import link_runtime
from irgrad.engine.runtime import helpers

ARENA = """
declare ptr @irgrad.tape.acquire()
declare void @irgrad.tape.finish(ptr)
define void @f() {
  %t = call ptr @irgrad.tape.acquire()
  call void @irgrad.tape.finish(ptr %t)
  ret void
}
"""
P, I64 = ctypes.c_void_p, ctypes.c_int64


def test_a_module_without_tape_is_left_alone() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert link_runtime(text) == text
    assert not helpers.uses_tape(text)


def test_linking_twice_changes_nothing() -> None:
    once = link_runtime(ARENA)
    assert helpers.uses_tape(once)
    assert link_runtime(once) == once


def test_declarations_that_the_module_has_already_are_kept_once() -> None:
    text = ARENA + "declare noalias ptr @malloc(i64)\ndeclare void @free(ptr)\n"
    linked = link_runtime(text)
    declared = re.findall(r"^(?:declare|define) [^\n]*?@([\w.]+)\(", linked, re.M)
    assert len(declared) == len(set(declared))
    read(linked)


# -- adjoints of copied memory ------------------------------------------------------------------------------------


def _helper(name: str, count: int) -> Any:
    """A copy helper as a function of `count` pointers, then bytes, period, offset."""
    parameters = ", ".join(["ptr"] * count + ["i64"] * 3)
    names = ", ".join([f"ptr %p{i}" for i in range(count)] + [f"i64 %n{i}" for i in range(3)])
    text = helpers.helper_text(name)
    assert f"@{name}(" in text and parameters
    text += f"define void @entry({names}) {{\n  call void @{name}({names})\n  ret void\n}}\n"
    return compile_module(text, ["entry"], cache=False).function("entry", None, *[P] * count, *[I64] * 3)


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("float", np.float32), ("half", np.float16)])
def test_adjoint_of_a_copy(kind: str, dtype: Any) -> None:
    """The source's shadow gains what the target's had, the target's is cleared; other fields of a period stay."""
    size = np.dtype(dtype).itemsize
    target, source = np.arange(1, 9, dtype=dtype), np.full(8, 100, dtype)
    helper = _helper(f"irgrad.adjoint.copy.{kind}", 2)
    helper(target.ctypes.data, source.ctypes.data, 8 * size, 2 * size, size)  # the second of each pair
    assert target.tolist() == [1, 0, 3, 0, 5, 0, 7, 0]
    assert source.tolist() == [100, 102, 100, 104, 100, 106, 100, 108]


@pytest.mark.parametrize("shift", [3, -3, 0, 11])
def test_adjoint_of_a_copy_that_overlaps(shift: int) -> None:
    """memmove in either direction: the result is J^T of the move, with the memory as the variable."""
    n, total = 8, 32
    first, second = 12, 12 + shift
    shadow = np.random.default_rng(0).uniform(1, 2, total)
    jacobian = np.eye(total)
    jacobian[second : second + n] = np.eye(total)[first : first + n]
    want = jacobian.T @ shadow
    helper = _helper("irgrad.adjoint.copy.double", 2)
    helper(shadow[second:].ctypes.data, shadow[first:].ctypes.data, 8 * n, 8, 0)
    np.testing.assert_allclose(shadow, want, rtol=1e-15)


@pytest.mark.parametrize("shift", [2, -2])
def test_shadow_pointers_move_like_the_pointers(shift: int) -> None:
    memory = np.arange(24)
    want = memory.copy()
    want[8 + shift : 16 + shift] = memory[8:16]
    helper = _helper("irgrad.copy.pointers", 2)
    helper(memory[8 + shift :].ctypes.data, memory[8:].ctypes.data, 64, 8, 0)
    assert memory.tolist() == want.tolist()


def test_clearing_keeps_to_its_field() -> None:
    shadow = np.ones(9)
    _helper("irgrad.adjoint.clear.double", 1)(shadow.ctypes.data, 72, 24, 8)
    assert shadow.tolist() == [1, 0, 1] * 3
    pointers = np.arange(1, 7)
    _helper("irgrad.clear.pointers", 1)(pointers.ctypes.data, 48, 16, 0)
    assert pointers.tolist() == [0, 2, 0, 4, 0, 6]


def test_a_copy_shorter_than_its_field_moves_nothing() -> None:
    target, source = np.ones(2), np.ones(2)
    _helper("irgrad.adjoint.copy.double", 2)(target.ctypes.data, source.ctypes.data, 7, 8, 0)
    assert target.tolist() == source.tolist() == [1, 1]


def test_several_programs_with_an_arena_may_be_linked_together() -> None:
    text = ("declare void @irgrad.tape.finish(ptr)\n"
            "define void @f(ptr %x) {\n  call void @irgrad.tape.finish(ptr %x)\n  ret void\n}")  # fmt: skip
    assert "\ndefine void @irgrad_tape_drain()" in link_runtime(text)
    whole = link_runtime(text, whole=True)
    assert "\ndefine internal void @irgrad_tape_drain()" in whole
    assert "\ndefine internal i64 @irgrad_tape_bytes()" in whole
    assert "\ndefine internal i64 @irgrad_tape_trim()" in whole
