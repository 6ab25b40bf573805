"""Tapes whose arrays lie side by side by thread: addresses, arrays that are made again and again, and refusals."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.static_tape import place_tape
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import Unsupported

HEAD = "declare ptr @irgrad.tape.alloc(ptr, i64)\ndeclare void @irgrad.tape.at(ptr, i64, ptr)\n"
SUMS = HEAD + """
define void @f(ptr %x, ptr %o, ptr %arena) {
entry:
  %a = call ptr @irgrad.tape.alloc(ptr %arena, i64 24)
  %b = call ptr @irgrad.tape.alloc(ptr %arena, i64 3)
  br label %up
up:
  %i = phi i64 [ 0, %entry ], [ %i1, %up ]
  %p = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %p, align 8
  %q = getelementptr double, ptr %a, i64 %i
  store double %v, ptr %q, align 16
  %s = fcmp olt double %v, 0.0
  %r = getelementptr i8, ptr %b, i64 %i
  %c = zext i1 %s to i8
  store i8 %c, ptr %r
  %i1 = add i64 %i, 1
  %go = icmp ult i64 %i1, 3
  br i1 %go, label %up, label %down
down:
  %j = phi i64 [ 2, %up ], [ %j1, %down ]
  %t = phi double [ 0.0, %up ], [ %t1, %down ]
  %off = shl i64 %j, 3
  %q2 = getelementptr i8, ptr %a, i64 %off
  %w = load double, ptr %q2, align 8
  %r2 = getelementptr i8, ptr %b, i64 %j
  %c2 = load i8, ptr %r2
  %neg = icmp ne i8 %c2, 0
  %m = select i1 %neg, double 2.0, double 1.0
  %u = fmul double %w, %m
  %t1 = fadd double %t, %u
  %j1 = sub i64 %j, 1
  %more = icmp sge i64 %j1, 0
  br i1 %more, label %down, label %done
done:
  store double %t1, ptr %o
  ret void
}
"""


def _placed(text: str) -> tuple[str, int]:
    module = read(text)
    size = place_tape(module, "f")
    return to_text(module), size


def _run(text: str, *arguments: Any) -> None:
    compiled = compile_module(text, ["f"], strict_fp=True)
    kinds = [ctypes.c_int64 if isinstance(a, int) else ctypes.c_void_p for a in arguments]
    compiled.function("f", None, *kinds)(*(a if isinstance(a, int) else a.ctypes.data for a in arguments))


def test_elements_of_all_threads_lie_side_by_side() -> None:
    text, size = _placed(SUMS)
    assert size == 32 + 16
    threads = 5
    tape = np.zeros(size * threads, np.uint8)
    for thread in range(threads):
        x, o = np.array([1.0, -2.0, 3.0]) * (thread + 1), np.zeros(1)
        _run(text, x, o, tape, thread, threads)
        assert o[0] == (1 - 4 + 3) * (thread + 1)
    numbers = tape[: 24 * threads].view(np.float64).reshape(3, threads)
    assert np.array_equal(numbers, np.outer([1.0, -2.0, 3.0], np.arange(1, threads + 1)))
    signs = tape[32 * threads :][: 3 * threads].reshape(3, threads)
    assert np.array_equal(signs, np.outer([0, 1, 0], np.ones(threads)))


def test_an_array_of_elements_of_several_sizes_is_kept_whole() -> None:
    text, size = _placed(HEAD + """
define void @f(ptr %x, ptr %o, ptr %arena) {
  %a = call ptr @irgrad.tape.alloc(ptr %arena, i64 12)
  %v = load double, ptr %x
  store double %v, ptr %a
  %q = getelementptr i8, ptr %a, i64 8
  store i32 7, ptr %q
  %w = load double, ptr %a
  store double %w, ptr %o
  ret void
}
""")
    assert size == 16
    tape = np.zeros(16 * 3, np.uint8)
    for thread in range(3):
        x, o = np.array([thread + 0.5]), np.zeros(1)
        _run(text, x, o, tape, thread, 3)
        assert o[0] == x[0]
    rows = tape.reshape(3, 16)
    assert np.array_equal(rows[:, :8].copy().view(np.float64)[:, 0], [0.5, 1.5, 2.5])
    assert np.array_equal(rows[:, 8:12].copy().view(np.int32)[:, 0], [7, 7, 7])


TURNS = HEAD + """
define void @f(ptr %x, ptr %o, ptr %arena) {
entry:
  br label %up
up:
  %i = phi i64 [ 0, %entry ], [ %i1, %up ]
  %bytes = shl i64 %i, 3
  %a = call ptr @irgrad.tape.alloc(ptr %arena, i64 BYTES)
  %v = load double, ptr %x
  %s = uitofp i64 %i to double
  %m = fmul double %v, %s
  store double %m, ptr %a
  %slot = getelementptr ptr, ptr %o, i64 %i
  store ptr %a, ptr %slot
  %i1 = add nuw nsw i64 %i, 1
  %go = icmp ult i64 %i1, COUNT
  br i1 %go, label %up, label %done
done:
  ret void
}
"""


@pytest.mark.parametrize(("bytes_", "size"), [("8", 16 * 4), ("%bytes", 32 * 4)])
def test_arrays_that_a_loop_makes_again_and_again(bytes_: str, size: int) -> None:
    text, found = _placed(TURNS.replace("BYTES", bytes_).replace("COUNT", "4"))
    assert found == size
    tape, pointers = np.zeros(found * 2 // 8), np.zeros((2, 4), np.uint64)
    for thread in range(2):
        _run(text, np.array([thread + 1.0]), pointers[thread], tape, thread, 2)
    assert len(set(pointers.ravel().tolist())) >= 7 - (bytes_ != "8")
    if bytes_ == "8":
        index = (pointers - np.uint64(tape.ctypes.data)).astype(np.int64) // 8
        assert np.array_equal(tape[index], np.outer([1.0, 2.0], np.arange(4.0)))


@pytest.mark.parametrize(("bytes_", "count", "why"), [
    ("8", "%n", "how often a loop runs is no constant of the call"),
    ("%n", "4", "the length of an array has no bound that is a constant of the call")])  # fmt: skip
def test_memory_of_unknown_size_is_refused(bytes_: str, count: str, why: str) -> None:
    text = TURNS.replace("BYTES", bytes_).replace("COUNT", count).replace("ptr %o,", "ptr %o, i64 %n,")
    with pytest.raises(Unsupported, match="how much memory a sample needs is not known beforehand") as caught:
        _placed(text)
    assert caught.value.because == why and "Python ints" in caught.value.fix


def test_the_line_comes_from_the_note_before_it() -> None:
    text = '@t = constant [6 x i8] c"k.c:7\\00"\n' + HEAD + """
define void @f(i64 %n, ptr %arena) {
  call void @irgrad.tape.at(ptr %arena, i64 %n, ptr @t)
  %a = call ptr @irgrad.tape.alloc(ptr %arena, i64 %n)
  store double 1.0, ptr %a
  ret void
}
"""
    with pytest.raises(Unsupported) as caught:
        _placed(text)
    assert caught.value.where == "k.c:7"


def test_a_function_that_calls_itself_with_the_arena_is_refused() -> None:
    text = HEAD + "define void @f(ptr %arena) {\n  call void @f(ptr %arena)\n  ret void\n}\n"
    with pytest.raises(Unsupported, match=re.escape("a function that calls itself has memory of its own")):
        _placed(text)


def test_the_size_may_be_a_product_of_counters() -> None:
    """As that of the inner loops of an elimination: (4 - i) (i + 2) elements of 8 bytes, at most 4 * 5 of them."""
    text = TURNS.replace("BYTES", "%bytes").replace("COUNT", "4")
    text = text.replace("%bytes = shl i64 %i, 3", """%left = sub i64 4, %i
  %right = add i64 %i, 2
  %area = mul i64 %left, %right
  %bytes = shl i64 %area, 3""")
    assert _placed(text)[1] == 4 * 4 * 5 * 8


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ("%r = srem i64 %i, 2\n  %n = sub i64 9, %r", 9),
        ("%r = urem i64 %q, 7\n  %n = mul i64 %r, 2", 14),  # (the bits of a remainder)
        ("%r = and i64 %q, 1\n  %u = xor i64 %r, -3\n  %n = add i64 %u, 20", 17),
        ("%r = and i64 %q, 1\n  %n = or i64 %r, 8", 9),
        ("%r = and i64 %q, 15\n  %n = lshr i64 %r, 1", 7),
        ("%r = and i64 %q, 15\n  %n = udiv i64 %r, 4", 3),
        ("%r = and i64 %q, 15\n  %n = call i64 @llvm.smin.i64(i64 %r, i64 6)", 6),
        ("%r = and i64 %q, 15\n  %n = call i64 @llvm.umax.i64(i64 %r, i64 20)", 20),
        ("%r = and i64 %q, 15\n  %n = select i1 %z, i64 %r, i64 17", 17),
        ("%t = trunc i64 %q to i32\n  %r = and i32 %t, 12\n  %n = zext i32 %r to i64", 12),
        ("%n = srem i64 %q, %i", None),
        ("%t = trunc i64 %q to i32\n  %n = zext i32 %t to i64", None),
        ("%n = lshr i64 %q, 3", None),
        ("%n = call i64 @llvm.umin.i64(i64 %q, i64 6)", None),
    ],
)
def test_bounds_of_sizes(rows: str, most: int | None) -> None:
    text = TURNS.replace("BYTES", "%bytes").replace("COUNT", "4").replace("ptr %o,", "ptr %o, i64 %q, i1 %z,")
    text = text.replace("%bytes = shl i64 %i, 3", f"{rows}\n  %bytes = shl i64 %n, 4")
    text += "".join(f"declare i64 @llvm.{word}.i64(i64, i64)\n" for word in ("smin", "umax", "umin"))
    if most is None:
        with pytest.raises(Unsupported, match="how much memory a sample needs is not known beforehand"):
            _placed(text)
    else:
        assert _placed(text)[1] == 4 * 16 * most
