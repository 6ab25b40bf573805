"""Kernels of programs: on the host they compute what a batch does; ptxas accepts them for every architecture."""

from __future__ import annotations

import ctypes
import inspect
from typing import Any

import numpy as np
import pytest
from grids import run_grid
from shares import fast

import irgrad
from irgrad import engine
from irgrad.engine.codegen import nvptx
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.functions.gradients import Gradient
from irgrad.engine.grids import grid, static_tape
from irgrad.engine.grids.export import arranged, gradient_grid
from irgrad.engine.grids.grid import Grid, grid_of, open_grid
from irgrad.engine.grids.grid_text import GridParameter, GridSlot
from irgrad.engine.signature.extents import ConstExtent
from irgrad.engine.signature.slots import RETURN
from irgrad.rules.errors import Unsupported

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
static const double weights[4] = {0.5, 1.5, -0.25, 2.0};
double swing(const double *x, const double *p, long n) {
  double y = x[0], v = x[1];
  for (long i = 0; i < n; i++) {
    double a = -p[0] * sin(y) - p[1] * v;
    v += 0.01 * a; y += 0.01 * v;
    if (y > 1) v = -v * p[2];
  }
  return y * y + v;
}
double table(const double *x, const double *p, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += weights[i % 4] * exp(x[i % 2] * p[i % 3]);
  return s;
}
double heap(const double *x, const double *p, long n) {
  double *a = malloc(n * sizeof *a), s = 0;
  for (long i = 0; i < n; i++) a[i] = x[i % 2] * cos(p[i % 3] + i);
  for (long i = 1; i < n; i++) s += a[i] * a[i - 1];
  free(a);
  return s;
}
double stack(const double *x, const double *p, long n) {
  double a[n], s = 0;
  for (long i = 0; i < n; i++) a[i] = x[i % 2] * p[i % 3] * i;
  for (long i = 1; i < n; i++) s += a[i] * sqrt(1 + a[i - 1] * a[i - 1]);
  return s;
}
double triangle(const double *x, const double *p, long n) {
  double s = x[0];
  for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) s = sin(s * p[j % 3] + x[1]);
  return s;
}
typedef struct { double a; int b; } pair;
double uneven(const double *x, const double *p, long n) {
  long m = x[0] > 0 ? 3 : 1;
  pair *q = malloc(m * sizeof *q);
  for (long j = 0; j < m; j++) { q[j].a = x[1] * p[j % 3]; q[j].b = (int)j + 1; }
  double s = 0;
  for (long i = 0; i < n; i++) s += sin(q[i % m].a) * q[i % m].b;
  free(q);
  return s;
}
"""
NAMES = ("swing", "table", "heap", "stack", "triangle", "uneven")
SIGNATURE = "f64(f64[2] x, f64[3] p, i64 n)"
needs_library = pytest.mark.skipif(nvptx._library() is None, reason="libdevice and ptxas are not installed")


def _gradient(name: str, source: str = SOURCE) -> Gradient:
    made = engine.grad(irgrad.load(source).kernel(name, SIGNATURE), wrt=("x", "p"))
    return made.valued()


def _batch(samples: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(samples, 2)), np.abs(rng.normal(size=(samples, 3)))


def _by_the_engine(gradient: Gradient, x: Any, p: Any, n: int) -> Any:
    rows = engine.batch_value_and_grad(gradient.kernel, argnums=(0, 1), in_axes=(0, 0, None), width=1)
    return rows(x, p, n)


def _known(gradient: Gradient, samples: int, n: int, *, device: bool) -> Grid:
    """The kernel of a value and a gradient, its sizes known."""
    slots = []
    f64 = gradient.program.slots[0].dtype
    for slot in gradient.program.slots:
        p = slot.parameter
        shape = tuple(ConstExtent(size) for size in slot.shape({"n": n}))
        if slot.role == "scratch":
            slots.append(GridSlot(slot.name, slot.dtype, "zero", shape))
        elif p.name == "n":
            slots.append(GridSlot("n", slot.dtype, "bits", bits=n))
        elif p.name == RETURN and slot.steps:
            slots.append(GridSlot("seed", slot.dtype, "bits", bits=int(np.float64(1).view(np.int64))))
        elif slot.steps or p.name == RETURN:
            slots.append(GridSlot(slot.name, slot.dtype, "zero", shape, target=f"{p.name}{len(slot.steps)}"))
        else:
            slots.append(GridSlot(slot.name, slot.dtype, "in place", shape, p.name, (True,)))
    parameters = [GridParameter(name, f64) for name in ("x", "p", "x1", "p1", f"{RETURN}0")]
    return grid_of(gradient.program, "k", parameters, slots, [samples], device=device)


@pytest.mark.parametrize("threads", [1, 5, 64])
@pytest.mark.parametrize("name", NAMES)
def test_threads_compute_what_the_batch_computes(name: str, threads: int) -> None:
    gradient, samples, n = _gradient(name), 37, 11
    x, p = _batch(samples)
    value, (x1, p1) = _by_the_engine(gradient, x, p, n)
    arrays = [x.copy(), p.copy(), np.full_like(x, np.nan), np.full_like(p, np.nan), np.full(samples, np.nan)]
    run_grid(_known(gradient, samples, n, device=False), arrays, threads)
    for got, want in zip(arrays, (x, p, x1, p1, value), strict=False):
        assert np.allclose(got, want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_threads_at_once(name: str) -> None:
    """As many threads of the system as there are of the kernel."""
    gradient, samples, n, threads = _gradient(name), 200, 50, 8
    x, p = _batch(samples)
    value, (x1, p1) = _by_the_engine(gradient, x, p, n)
    arrays = [x.copy(), p.copy(), np.full_like(x, np.nan), np.full_like(p, np.nan), np.full(samples, np.nan)]
    run_grid(_known(gradient, samples, n, device=False), arrays, threads, workers=threads)
    for got, want in zip(arrays, (x, p, x1, p1, value), strict=True):
        assert np.allclose(got, want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "found", "planted"),
    [
        ("triangle", "own = at.mul(thread,", "own = at.mul(thread,"),
        ("triangle", "own = at.mul(thread,", "own = at.mul(ConstInt(ty.I64, 0),"),  # a place for all threads
        ("swing", "ConstInt(ty.I64, width or room)", "ConstInt(ty.I64, (width or room) // 2)"),  # they overlap by half
        ("triangle", "_spread(call, uses, threads, width)", "pass"),  # elements of one thread lie side by side
        ("swing", "at.mul(threads, begin, ())", "begin"),  # arrays begin where the tape of one thread has them
    ],
)
def test_threads_that_share_tape_are_caught(
    name: str, found: str, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A race planted where tapes get their places: threads that run one after the other give the right numbers with it,
    so each has to be seen to write to its own part."""
    source, space = inspect.getsource(static_tape.place_tape), dict(vars(static_tape))
    assert found in source
    exec(source.replace(found, planted), space)
    monkeypatch.setattr(grid, "place_tape", space["place_tape"])
    gradient, samples, n = _gradient(name), 5, 4
    x, p = _batch(samples)
    arrays = [x, p, np.zeros_like(x), np.zeros_like(p), np.zeros(samples)]
    made = _known(gradient, samples, n, device=False)
    assert made.tape_bytes >= 8 * n
    if found == planted:
        run_grid(made, arrays, 3)
    else:
        with pytest.raises(AssertionError, match="writes to the tape of another thread"):
            run_grid(made, arrays, 3)


@pytest.mark.parametrize("name", NAMES)
def test_open_kernels_compute_the_same(name: str) -> None:
    """The number of samples and the length come with the launch; gradients are added to what their rows hold."""
    gradient, samples, n, threads, slab = _gradient(name), 9, 7, 4, 1 << 14
    x, p = _batch(samples)
    value, (x1, p1) = _by_the_engine(gradient, x, p, n)
    compiled = compile_module(gradient_grid(gradient, "k", device=False), ["k"], strict_fp=True)
    arrays = {"x": x, "x_grad": np.ones_like(x), "p": p, "p_grad": np.zeros_like(p), "value": np.zeros(samples)}
    tape = np.zeros(threads * slab // 8 + 2)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kinds = [pointer, pointer, pointer, pointer, number, pointer, number, pointer, number, number, number]
    words = [arrays["x"], arrays["x_grad"], arrays["p"], arrays["p_grad"], n, arrays["value"], samples]
    given = [w if isinstance(w, int) else w.ctypes.data for w in words]
    for thread in range(threads):
        compiled.function("k", None, *kinds)(*given, -(-tape.ctypes.data // 16) * 16, slab, thread, threads)
    for got, want in ((arrays["value"], value), (arrays["x_grad"] - 1, x1), (arrays["p_grad"], p1)):
        assert np.allclose(got, want, rtol=1e-13, atol=1e-14)


@needs_library
@pytest.mark.parametrize("architecture", fast(1, ["sm_90", "sm_80", "sm_100", "sm_120"]))
def test_ptxas_accepts_them(architecture: str) -> None:
    for name in NAMES:
        code = nvptx.ptx(_known(_gradient(name), 1000, 100, device=True).text, ["k"], architecture)
        used = nvptx.resources(code, architecture)
        assert used["registers"] <= 255 and used["spilled"] == 0, (name, used)


REFUSED = {
    "printf": ("#include <stdio.h>\ndouble f(const double *x, const double *p, long n) { puts(\"\"); return x[0]; }",
               "a call of `p"),
    "state": ("static double s;\ndouble f(const double *x, const double *p, long n) { s += n; return x[0] * s; }",
              "`s` is a variable of the program"),
    "unbounded": ("double f(const double *x, const double *p, long n) { double s = x[0]; while (s > 0.1) s *= p[0] * s;"
                  " return s; }", "how much memory a sample needs is not known beforehand"),
    "BLAS": ("double cblas_ddot(int n, const double *x, int i, const double *y, int j);\n"
             "double f(const double *x, const double *p, long n) { return cblas_ddot(2, x, 1, p, 1); }",
             "a call of `cblas_ddot`"),
    "a pointer to a function": (
        "#include <math.h>\ntypedef double (*G)(double);\ndouble f(const double *x, const double *p, long n) {"
        " volatile G table[2] = {sin, cos}; return table[n & 1](x[0]); }", "a call through a pointer"),
    "memory of unknown length": (
        "#include <stdlib.h>\ndouble f(const double *x, const double *p, long n) { long m = (long)x[0]; double s = 0;"
        " double *t = malloc(m * 8); for (long i = 0; i < m; i++) t[i] = x[0] * i; for (long i = 0; i < m; i++)"
        " s += t[i] * t[m - 1 - i]; free(t); return s; }", "how much memory a sample needs is not known beforehand"),
    "recursion": ("__attribute__((noinline))\n"
                  "static double g(double s, long n) { return n ? s * g(s * s, n - 1) * s : s; }\n"
                  "double f(const double *x, const double *p, long n) { return g(x[0], n); }",
                  "a function that calls itself has memory of its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_refused_with_its_line(name: str) -> None:
    source, what = REFUSED[name]
    with pytest.raises(Unsupported, match=f"a GPU cannot run this: {what}") as caught:
        _known(_gradient("f", source), 10, 5, device=True)
    assert caught.value.fix and ":" in caught.value.where


def test_a_size_that_no_integer_says_is_a_parameter() -> None:
    kernel = irgrad.load("double f(const double *x) { return x[0] * x[1]; }").kernel("f", "f64(f64[m] x)")
    gradient = engine.grad(kernel, wrt="x").valued()
    parameters, slots = arranged(gradient, ())
    assert [p.name for p in parameters] == ["x", "x_grad", "value", "m"] and parameters[-1].by_value
    assert "ptr noalias %value, i64 %m, i64 %samples" in open_grid(gradient.program, "k", parameters, slots)
    with pytest.raises(Unsupported, match="the size of `x` is not known to a launch"):
        open_grid(gradient.program, "k", parameters[:-1], slots)
