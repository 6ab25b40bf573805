"""Instructions that do several things at once are taken apart, and compute the same."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, gradient

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.desugar import desugar

D, P, I64 = ctypes.c_double, ctypes.c_void_p, ctypes.c_int64


def _taken_apart(text: str, name: str = "f") -> tuple[str, bool]:
    module = read(text)
    changed = desugar(module, module.functions[name])
    return to_text(module), changed


def _function(text: str, result: Any, *params: Any) -> Any:
    return compile_module(text, ["f"], cache=False).function("f", result, *params)


def test_what_is_simple_stays() -> None:
    text, changed = _taken_apart("define double @f(double %x) {\n  %y = fmul double %x, %x\n  ret double %y\n}")
    assert not changed
    assert "fmul double %x, %x" in text


def test_sincos() -> None:
    source = """declare void @sincos(double, ptr, ptr)
define void @f(double %x, ptr %s, ptr %c) {
  call void @sincos(double %x, ptr %s, ptr %c)
  ret void
}"""
    text, changed = _taken_apart(source)
    assert changed
    assert "call void @sincos" not in text
    out = np.zeros(2)
    _function(text, None, D, P, P)(0.7, out.ctypes.data, out[1:].ctypes.data)
    assert out.tolist() == [math.sin(0.7), math.cos(0.7)]


@pytest.mark.parametrize("x", [2.75, -2.75, 0.0, -0.0, -3.0, math.inf, -math.inf, math.nan])
def test_modf(x: float) -> None:
    source = """declare double @modf(double, ptr)
define double @f(double %x, ptr %p) {
  %r = call double @modf(double %x, ptr %p)
  ret double %r
}"""
    text, _ = _taken_apart(source)
    assert "call double @modf" not in text
    whole = np.zeros(1)
    got = _function(text, D, D, P)(x, whole.ctypes.data)
    want = math.modf(x)
    np.testing.assert_array_equal([got, whole[0]], want)
    assert math.copysign(1, got) == math.copysign(1, want[0]) or math.isnan(x)


@pytest.mark.parametrize(
    ("kind", "start", "combine"),
    [("fadd", "double 0.5, ", sum), ("fmul", "double 0.5, ", np.prod), ("fmax", "", max), ("fminimum", "", min)],
)
def test_reductions(kind: str, start: str, combine: Any) -> None:
    types = "double, <4 x double>" if start else "<4 x double>"
    source = f"""declare double @llvm.vector.reduce.{kind}.v4f64({types})
define double @f(ptr %p) {{
  %v = load <4 x double>, ptr %p, align 8
  %r = call double @llvm.vector.reduce.{kind}.v4f64({start}<4 x double> %v)
  ret double %r
}}"""
    text, _ = _taken_apart(source)
    assert "call double @llvm.vector.reduce" not in text
    x = np.array([3.0, -1.5, 0.25, 7.0])
    assert _function(text, D, P)(x.ctypes.data) == combine([*([0.5] if start else []), *x])


@pytest.mark.parametrize(
    ("operation", "after"), [("fadd", 5.0), ("fsub", 1.0), ("xchg", 2.0), ("fmax", 3.0), ("fmin", 2.0)]
)
def test_atomics_on_floats(operation: str, after: float) -> None:
    source = f"""define double @f(ptr %p, double %x) {{
  %old = atomicrmw {operation} ptr %p, double %x seq_cst, align 8
  ret double %old
}}"""
    text, _ = _taken_apart(source)
    assert "atomicrmw" not in text
    cell = np.array([3.0])
    assert _function(text, D, P, D)(cell.ctypes.data, 2.0) == 3.0
    assert cell[0] == after


def test_atomics_on_integers_stay() -> None:
    source = "define i64 @f(ptr %p) {\n  %old = atomicrmw add ptr %p, i64 1 seq_cst, align 8\n  ret i64 %old\n}"
    text, changed = _taken_apart(source)
    assert not changed
    assert "atomicrmw add" in text


def test_realloc_moves_what_fits() -> None:
    """The new memory starts with the old contents, in both directions of growth."""
    source = """declare ptr @realloc(ptr, i64)
define ptr @f(ptr %p, i64 %n) {
  %q = call ptr @realloc(ptr %p, i64 %n)
  ret ptr %q
}"""
    text, _ = _taken_apart(source)
    assert "call ptr @realloc" not in text
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = P, [ctypes.c_size_t]
    libc.free.argtypes = [P]
    call = _function(text, P, P, I64)
    start = libc.malloc(64)
    ctypes.memmove(start, bytes(range(64)), 64)
    grown = call(start, 1000)
    assert ctypes.string_at(grown, 64) == bytes(range(64))
    shrunk = call(grown, 16)
    assert ctypes.string_at(shrunk, 16) == bytes(range(16))
    libc.free(shrunk)


def test_posix_memalign_becomes_an_allocation() -> None:
    source = """declare i32 @posix_memalign(ptr, i64, i64)
define ptr @f() {
  %cell = alloca ptr
  %status = call i32 @posix_memalign(ptr %cell, i64 64, i64 256)
  %bad = icmp ne i32 %status, 0
  %p = load ptr, ptr %cell
  %r = select i1 %bad, ptr null, ptr %p
  ret ptr %r
}"""
    text, _ = _taken_apart(source)
    assert "call ptr @aligned_alloc(i64 64, i64 256)" in text
    address = _function(text, P)()
    assert address and address % 64 == 0
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [P]
    libc.free(address)


def test_arguments_by_value_are_copied_by_the_caller() -> None:
    """The callee may change its copy; the caller's struct stays, and its derivative too."""
    source = """
    typedef struct { double a, b, c, d, e; } Big;
    NOINLINE static double eat(Big g) {
        for (int i = 0; i < 3; i++) { g.a *= g.b; g.e += g.a; }
        return g.e + g.c * g.d;
    }
    void f(double *x, double *o) {
        Big g = {x[0], x[1], x[2], x[3], x[4]};
        *o = eat(g) * g.a;
    }"""
    x = np.array([1.1, 0.7, -0.4, 2.0, 0.3])
    (dx, _), made = gradient(source, "f", "dd", x, OUT)
    assert "byval" not in made.text
    a, b, c, d, e = x
    powers = a * (b + b**2 + b**3)
    value = e + powers + c * d
    want = [value + a * (b + b**2 + b**3), a * a * (1 + 2 * b + 3 * b**2), a * d, a * c, a]
    np.testing.assert_allclose(dx, want, rtol=1e-14)


def test_a_compare_exchange_of_floats_through_integers() -> None:
    """As C's `_Atomic double` does it: the derivative of the exchange is that of the store."""
    source = """define void @f(ptr %p, ptr %o) {
  %x = load double, ptr %p
  %y = fmul double %x, %x
  %bits = bitcast double %y to i64
  %old = load i64, ptr %o
  %pair = cmpxchg ptr %o, i64 %old, i64 %bits seq_cst seq_cst, align 8
  ret void
}"""
    (dx, do), _ = gradient(source, "f", "dd", np.array([3.0]), OUT)
    assert (dx[0], do[0]) == (6.0, 0.0)


TAGGED = """
define internal void @fill(ptr %x, ptr %to) noinline {
  %d = load double, ptr %x
  %y = fmul double %d, %d
  %bits = bitcast double %y to i64
  %first = insertvalue { i64, [2 x i8] } zeroinitializer, i64 %bits, 0
  store { i64, [2 x i8] } %first, ptr %to, align 8
  ret void
}
define void @f(ptr %x, ptr %o) {
  %room = alloca { i64, [2 x i8] }
  call void @fill(ptr %x, ptr %room)
  %whole = load { i64, [2 x i8] }, ptr %room, align 8
  %bits = extractvalue { i64, [2 x i8] } %whole, 0
  store i64 %bits, ptr %o
  ret void
}"""


def test_structs_with_integers_are_loaded_and_stored_part_by_part() -> None:
    text, changed = _taken_apart(TAGGED)
    assert changed
    assert "load { i64" not in text
    assert text.count(" = load i8, ptr") == 2
    assert ", align 8" in text.split("load i64", 1)[1].split("\n", 1)[0]
    (dx, do), _ = gradient(TAGGED, "f", "dd", np.array([3.0]), OUT)
    assert (dx[0], do[0]) == (6.0, 0.0)


def test_a_packed_struct_is_not_aligned() -> None:
    text, _ = _taken_apart("define <{ i8, i64 }> @f(ptr %x) {\n  %w = load <{ i8, i64 }>, ptr %x\n"
                           "  ret <{ i8, i64 }> %w\n}")  # fmt: skip
    assert ", align 1" in text.split("load i64", 1)[1].split("\n", 1)[0]


def test_lengths_of_copies_are_of_64_bits() -> None:
    text, changed = _taken_apart("""
define void @f(ptr %p, ptr %q, i32 %n) {
  call void @llvm.memcpy.p0.p0.i32(ptr align 8 %p, ptr align 4 %q, i32 40, i1 false)
  call void @llvm.memset.p0.i32(ptr align 8 %q, i8 0, i32 %n, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
""")
    assert changed and "zext i32 %n to i64" in text
    assert "call void @llvm.memcpy.p0.p0.i64(ptr align 8 %p, ptr align 4 %q, i64 40, i1 false)" in text
    assert "call void @llvm.memset.p0.i64(ptr align 8 %q, i8 0, i64 %" in text


@pytest.mark.parametrize("end", ["%end", "null"])
def test_where_a_number_in_a_text_ends_is_a_distance(end: str) -> None:
    source = f"""declare double @strtod(ptr, ptr)
define double @f(ptr %s, ptr %end) {{
  %x = call double @strtod(ptr %s, ptr {end})
  ret double %x
}}"""
    text, changed = _taken_apart(source)
    assert changed
    assert ("getelementptr inbounds i8, ptr %s" in text) is (end == "%end")
    number, found = ctypes.create_string_buffer(b"2.5e1 m"), ctypes.c_void_p(7)
    read_it = _function(text, D, P, P)
    assert read_it(number, ctypes.addressof(found)) == 25
    assert found.value == (ctypes.addressof(number) + 5 if end == "%end" else 7)
    assert read_it(number, None) == 25
