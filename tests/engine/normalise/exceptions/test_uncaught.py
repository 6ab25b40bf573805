"""Exceptions that nothing in a kernel catches are errors of the call, in all modes; the next call is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.exceptions.uncaught import fail_where_thrown, throws
from tests.small_chunks import small_chunks

SOURCE = """
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

struct Own : std::exception {
    const char *what() const noexcept override { return "own words"; }
};
struct Base { virtual ~Base() {} int number = 1; };
struct Second : Base, std::runtime_error { // its std::exception does not begin where it does
    Second() : std::runtime_error("a text that is longer than any short string would be") {}
};

extern "C" double choice(double x, int kind) {
    if (kind == 1) throw Own();             // line 17
    if (kind == 2) throw Second();          // line 18
    if (kind == 3) throw "no class";        // line 19
    if (kind == 4) throw std::domain_error("at " + std::to_string(kind)); // line 20
    return x * x * x;
}

extern "C" double partly(double x, int kind) {
    try {
        if (kind == 1) throw Own();         // line 26
        if (kind == 2) throw Second();      // line 27
        if (kind == 3) throw "no class";    // line 28
        if (kind == 4) throw std::domain_error("at " + std::to_string(kind)); // line 29
        if (kind == 5) throw 5;
    } catch (int caught) {
        return x * x * caught;
    }
    return x * x * x;
}

static double noisy(double x) {
    if (x < -5) throw std::domain_error("far"); // line 38
    if (x < 0) throw 3;
    return x;
}
static double quiet(double x) noexcept { return noisy(x) * x; }
extern "C" double promise(double x, int) {
    try { return quiet(x) * x; } catch (int) { return 0; }
}

extern "C" double at(const double *x, long n) {
    std::vector<double> v(x, x + 3);
    return v.at(n) * v.at(n);               // line 49
}

extern "C" double room(const double *x, long n) {
    std::vector<double> v(n < 0 ? 1L << 55 : n, x[0]);
    double s = 0;
    for (double e : v) s += e * e;
    return s;
}

extern "C" double sum(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        if (x[i] < 0) throw std::domain_error("negative"); // line 62
        s += x[i] * x[i] * x[i];
    }
    return s;
}

extern "C" void each(const double *x, double *y, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        if (x[i] < 0) throw std::domain_error("negative"); // line 71
        y[i] = std::sqrt(x[i]) * x[i];
    }
}

extern "C" void most(const double *x, double *y, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        try { y[i] = noisy(x[i]) * x[i]; } catch (int k) { y[i] = k * x[i]; }
    }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("uncaught") / "throws.cpp"
    path.write_text(SOURCE)
    return ig.load(path, flags=["-fopenmp"])


def _modes(kernel: Any) -> Iterator[Callable[..., Any]]:
    yield kernel
    yield lambda x, n: ig.grad(kernel)(x, n)
    yield lambda x, n: ig.value_and_grad(kernel)(x, n)
    yield lambda x, n: ig.jvp(kernel, (x, n), (np.ones_like(x), None))
    yield lambda x, n: ig.hvp(kernel, (x, n), np.ones_like(x))


def _fails(call: Callable[[], Any], what: str, line: int) -> None:
    with pytest.raises(ig.KernelError, match=what) as error:
        call()
    assert not line or f"throws.cpp:{line}:" in error.value.where


@pytest.mark.parametrize("name", ["choice", "partly"])
def test_each_type(library: Any, name: str) -> None:
    kernel, first = library.kernel(name, "f64(f64 x, i32 kind)"), 17 if name == "choice" else 26
    whats = ("`Own`: own words", "`Second`: a text that is longer than any short string would be", "`char const\\*`\n",
             "`std::domain_error`: at 4")  # fmt: skip
    for mode in _modes(kernel):
        for kind, what in enumerate(whats, 1):
            _fails(lambda mode=mode, kind=kind: mode(2.0, kind), f"`{name}` throws {what}", first + kind - 1)
    assert kernel(2.0, 0) == 8 and ig.grad(kernel)(2.0, 0) == 12
    assert ig.jvp(kernel, (2.0, 0), (1.0, None)) == (8, 12) and ig.hvp(kernel, (2.0, 0), 1.0) == 12
    if name == "partly":
        assert kernel(2.0, 5) == 20 and ig.grad(kernel)(2.0, 5) == 20 and ig.hvp(kernel, (2.0, 5), 1.0) == 10


def test_what_promised_not_to_throw(library: Any) -> None:
    kernel = library.kernel("promise", "f64(f64 x, i32 n)")
    for mode in _modes(kernel):
        _fails(lambda mode=mode: mode(-7.0, 0), "`std::domain_error`: far", 38)
        _fails(lambda mode=mode: mode(-1.0, 0), "throws `int`", 39)
    assert kernel(2.0, 0) == 8 and ig.grad(kernel)(2.0, 0) == 12


def test_the_library_throws(library: Any) -> None:
    x, kernel = np.array([1.0, 2.0, 3.0]), library.kernel("at", "f64(f64[3] x, i64 n)")
    for mode in _modes(kernel):
        with pytest.raises(ig.KernelError, match="`std::out_of_range`: vector") as error:
            mode(x, 5)
        assert "throws.cpp:49" in error.value.where
    np.testing.assert_array_equal(ig.grad(kernel)(x, 2), [0, 0, 6])
    kernel = library.kernel("room", "f64(f64[3] x, i64 n)")
    for mode in _modes(kernel):
        with pytest.raises(ig.KernelError, match=r"throws `std::(bad_alloc|bad_array_new_length|length_error)`"):
            mode(x, -1)
    np.testing.assert_allclose(ig.grad(kernel)(x, 4), [8, 0, 0])


def test_batches(library: Any) -> None:
    kernel = library.kernel("choice", "f64(f64 x, i32 kind)")
    xs, good, bad = np.arange(1.0, 101), np.zeros(100, np.int32), np.zeros(100, np.int32)
    bad[77] = 1
    for run in (ig.batch(kernel), ig.batch_grad(kernel), ig.batch_value_and_grad(kernel)):
        _fails(lambda run=run: run(xs, bad), "throws `Own`: own words", 17)
    np.testing.assert_allclose(ig.batch_grad(kernel)(xs, good), 3 * xs**2)
    rows, kernel = np.ones((40, 6)), library.kernel("sum", "f64(f64[n] x, i64 n)")
    rows[31, 2] = -1
    for run in (ig.batch(kernel), ig.batch_grad(kernel)):
        _fails(lambda run=run: run(rows), "throws `std::domain_error`: negative", 62)
    np.testing.assert_allclose(ig.batch_grad(kernel)(abs(rows)), np.full((40, 6), 3.0))


@pytest.mark.parametrize("name", ["each", "most"])
def test_threads(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("IRGRAD_COSTS", str(small_chunks(tmp_path)))
    kernel = library.kernel(name, "void(f64[n] x, out f64[n] y, i64 n)", threads=2)
    plain = library.kernel(name, "void(f64[n] x, out f64[n] y, i64 n)")
    x = np.linspace(1, 2, 5000)
    bad, seed = x.copy(), np.ones(5000)
    bad[4321] = -7
    for _ in range(2):
        for call in (lambda v: kernel(v), lambda v: ig.vjp(kernel, v)[1](seed), lambda v: ig.jvp(kernel, (v,), (v,))):
            _fails(lambda call=call: call(bad), "throws `std::domain_error`", 71 if name == "each" else 38)
        np.testing.assert_array_equal(kernel(x), plain(x))
        np.testing.assert_allclose(ig.vjp(kernel, x)[1](seed)[0], ig.vjp(plain, x)[1](seed)[0], rtol=1e-14)


def test_what_is_released(library: Any) -> None:
    x, kernel = np.ones(100_000), library.kernel("sum", "f64(f64[n] x, i64 n)")
    x[-1] = -1

    def used() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    sizes = []
    for _ in range(4):
        for _ in range(50):
            with pytest.raises(ig.KernelError):
                ig.grad(kernel)(x)
        sizes.append(used())
    assert sizes[-1] - sizes[0] < 10 * x.nbytes


PROGRAM = """
@_ZTISt11logic_error = external constant ptr
@.str = private constant [6 x i8] c"at %s\\00"
@_ZTIi = external constant ptr
declare void @_ZSt24__throw_out_of_range_fmtPKcz(ptr, ...) noreturn
declare void @_ZSt20__throw_length_errorPKc(ptr) noreturn
declare void @_ZSt17__throw_bad_allocv() noreturn
declare void @__cxa_throw(ptr, ptr, ptr) noreturn
define void @f(i32 %k, ptr %thing) {
  switch i32 %k, label %out [ i32 1, label %one
                              i32 2, label %two
                              i32 3, label %three
                              i32 4, label %four ]
one:
  call void (ptr, ...) @_ZSt24__throw_out_of_range_fmtPKcz(ptr @.str, ptr @.str)
  unreachable
two:
  call void @_ZSt20__throw_length_errorPKc(ptr @.str)
  unreachable
three:
  call void @_ZSt17__throw_bad_allocv()
  unreachable
four:
  call void @__cxa_throw(ptr %thing, ptr @_ZTIi, ptr null)
  unreachable
out:
  ret void
}
"""


def test_throws_become_failures() -> None:
    assert throws(PROGRAM) and not throws("declare void @g()\n")
    module = read(PROGRAM)
    fail_where_thrown(module, catches=False)
    verify_module(module)
    text = to_text(module)
    assert text.count("call void @irgrad.tape.throws(") == 3 and text.count("@irgrad.tape.throws_format(") == 2
    assert 'c"std::out_of_range\\00"' in text and 'c"std::bad_alloc\\00"' in text and 'c"int\\00"' in text
    module = read(PROGRAM)
    fail_where_thrown(module, catches=True)  # the function unwinds by itself, and says where
    text = to_text(module)
    assert text.count("call void @irgrad.tape.throwing(") == 1 and "@irgrad.tape.throws(" not in text


@pytest.mark.parametrize("name", ["each", "most"])
def test_calls_that_may_not_throw_end_by_the_convention_of_what_ends_them(library: Any, name: str) -> None:
    """LLVM gives functions another calling convention; a call that has not that of its function is none."""
    for options in ({}, {"threads": 2}):
        text = library.kernel(name, "void(f64[n] x, out f64[n] y, i64 n)", **options).primal.stage.text
        calls = re.findall(r"call ([^\n]*)@irgrad\.tape\.ends\(", text)
        assert all(call == "void " for call in calls)
        assert calls or name == "each"
