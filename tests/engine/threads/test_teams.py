"""Kernels on a team of threads: the same bits on any number of them, and the derivatives of the same function."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from fuzz.team_cases import CASES, SOURCE

import irgrad
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.rules.errors import OneThread


@pytest.fixture(scope="module")
def lib() -> Any:
    return irgrad.load(SOURCE, flags=["-fopenmp"])


def _results(f: Any, args: tuple[Any, ...]) -> list[Any]:
    """Values, gradients for cotangents, tangents."""
    floats = [n for n, a in enumerate(args) if np.asarray(a).dtype.kind == "f"]
    given = f(*args)
    outs = given if isinstance(given, tuple) else (given,)
    bars = [np.cos(np.arange(np.size(o))).reshape(np.shape(o)).astype(np.asarray(o).dtype) for o in outs]
    _, pullback = irgrad.vjp(f, *args)
    gradients = pullback(tuple(bars) if len(bars) > 1 else bars[0])
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    tangents = {n: np.full_like(args[n], 0.5) for n in floats}
    _, pushed = irgrad.jvp(f, tuple(args), [tangents[n] if n in floats else None for n in range(len(args))])
    pushed = pushed if isinstance(pushed, tuple) else (pushed,)
    kept = [np.asarray(g) for g in gradients if g is not None]
    dot = sum(float(np.vdot(b, p)) for b, p in zip(bars, pushed, strict=True))
    dual = sum(float(np.vdot(g, tangents[n])) for g, n in zip(kept, floats, strict=True))
    assert dot == pytest.approx(dual, rel=2e-5 if kept[0].dtype == np.float32 else 1e-10)
    return [*map(np.asarray, outs), *kept, *map(np.asarray, pushed)]


@pytest.mark.parametrize("name", CASES)
def test_same_bits_on_any_number_of_threads(lib: Any, name: str) -> None:
    signature, args, _ = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = {t: _results(lib.kernel(name, signature, threads=t), tuple(args)) for t in (1, 2, 3, 16, "auto")}
    plain = _results(lib.kernel(name, signature), tuple(args))
    for found in results.values():
        for a, b, c in zip(found, results[1], plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=2e-5 if a.dtype == np.float32 else 1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_loops_that_are_shared(lib: Any, name: str) -> None:
    signature, _, count = CASES[name]
    program = lib.kernel(name, signature, threads=2).primal
    active = [n for n, slot in enumerate(program.slots) if slot.differentiable]
    text = program.vjp(active).ir
    assert text.count("\ndefine internal ptr @irgrad.team.") - text.count(".fold(ptr %context, i64 %p)") >= count
    assert shared_loops(program).shared


def test_a_reverse_sweep_on_one_thread_is_told() -> None:
    lib = irgrad.load("""
    void f(double *u, const long *p, const long *q, long n, long m) {
        #pragma omp parallel for
        for (long i = 0; i < n; i++)
            for (long j = 1; j < m; j++) u[p[i] * m + j] = 0.5 * u[p[i] * m + j - 1] * u[q[i] * m + j];
    }""", flags=["-fopenmp"])  # fmt: skip
    signature = "void(inout f64[n,m] u, i64[n] p, i64[n] q, i64 n, i64 m)"
    report = irgrad.explain(lib.kernel("f", signature, threads=2), lanes=False)
    assert "threads: shared by a team: <string>:" in str(report) and "uses other places in another way" in str(report)


def test_a_warning_where_no_loop_is_shared() -> None:
    body = "double s = 1; for (long i = 0; i < n; i++) s = s * x[i] + 1; return s;"
    lib = irgrad.load(f"double f(const double *x, long n) {{ {body} }}")
    f = lib.kernel("f", "f64(f64[n] x, i64 n)", threads=2)
    with pytest.warns(OneThread, match=r"`f` runs on one thread, whatever `threads` says: <string>:1:\d+: each iter"):
        f(np.ones(3))


def test_sums_of_vectors(lib: Any) -> None:
    """Tangents of several directions at once: a sum has a vector of them, which chunks add up too."""
    signature, args, _ = CASES["single"]
    found: dict[int, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for threads in (0, 1, 2, 16):
            kernel = lib.kernel("single", signature, **({"threads": threads} if threads else {}))
            program = kernel.primal.jvp([n for n, slot in enumerate(kernel.primal.slots) if slot.name == "w"], 8)
            assert not threads or "\ndefine internal ptr @irgrad.team." in program.ir
            found[threads] = jax.jit(jax.jacfwd(lambda w, kernel=kernel: kernel(args[0], w)))(args[1])
    for made in found.values():
        np.testing.assert_allclose(made, found[0], rtol=2e-5)
        assert made is found[0] or np.array_equal(made, found[1])


def test_many_callers_at_once(lib: Any) -> None:
    """One has the team, the others run their chunks by themselves."""
    signature, args, _ = CASES["gather"]
    f = lib.kernel("gather", signature, threads=4)
    wanted, wrong = f(*args), []

    def call() -> None:
        for _ in range(50):
            if not np.array_equal(f(*args), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


LONG = r"""
#include <math.h>
double f(const double *x, long n, long m, long steps) {
    double s = 0, last = 0;
    for (long t = 0; t < steps; t++) {
        #pragma omp parallel for reduction(+:s)
        for (long i = 0; i < n; i++) {
            double a = x[i] + 1e-9 * last;
            for (long j = 0; j < m; j++) a = sin(a) + 0.1 * a * a;
            s += a;
        }
        last = s;
    }
    return s;
}
"""
NO_MEMORY = """
import resource, sys
import numpy as np
import irgrad
f = irgrad.load(sys.stdin.read(), flags=["-fopenmp"]).kernel("f", "f64(f64[n] x, i64 n, i64 m, i64 steps)", threads=4)
gradient, x = irgrad.grad(f), np.linspace(0, 1, 64)
wanted = gradient(x, 1000, 1)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
try:
    gradient(x, 40_000_000, 1)
except irgrad.TapeMemoryError as error:
    assert "160,000,000 iterations of the loop at <string>:7:" in str(error), error
    print(np.array_equal(gradient(x, 1000, 1), wanted))
"""
STOPPED = """
import os, signal, sys, threading
import numpy as np
import irgrad
f = irgrad.load(sys.stdin.read(), flags=["-fopenmp"]).kernel("f", "f64(f64[n] x, i64 n, i64 m, i64 steps)", threads=3)
x = np.linspace(0, 1, 64)
wanted = f(x, 10, 2)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    f(x, 1000, 1_000_000)
except KeyboardInterrupt:
    print(f(x, 10, 2) == wanted)
"""


@pytest.mark.parametrize("program", [NO_MEMORY, STOPPED], ids=["no memory", "stopped"])
def test_a_call_that_ends_early(program: str) -> None:
    """A thread of the team that finds no memory for its chunk's tape, and a signal: the next call is right."""
    done = subprocess.run([sys.executable, "-c", program], input=LONG, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def test_under_jax(lib: Any) -> None:
    signature, args, _ = CASES["gather"]
    f, plain = (lib.kernel("gather", signature, threads=t) for t in (2, None))
    x, at = args

    def loss(kernel: Any) -> Any:
        return jax.jit(jax.grad(lambda v: (kernel(v, at) ** 2).sum()))

    with jax.enable_x64(True):
        np.testing.assert_allclose(loss(f)(x), loss(plain)(x), rtol=1e-12)
        batch = np.stack([x, x + 0.1, x - 0.1])
        np.testing.assert_allclose(jax.vmap(loss(f))(batch), jax.vmap(loss(plain))(batch), rtol=1e-12)


def test_each_number_of_threads_has_a_handler_of_xla(lib: Any) -> None:
    from irgrad.interop.jax.handler import TARGETS, register

    signature = CASES["gather"][0]
    names = [register(lib.kernel("gather", signature, threads=t).primal) for t in (3, 1, "auto", 3)]
    assert [TARGETS[name].threads for name in names] == [3, 1, 0, 3]


def test_what_takes_the_place_of_a_value_is_no_sum() -> None:
    lib = irgrad.load(r"""
    #include <math.h>
    double f(const double *x, long n) {
        double s = 0.5, last = 0.3, q[3] = {1, 2, 3};
        #pragma omp parallel sections lastprivate(last)
        {
            #pragma omp section
            { q[0] = x[0] * x[1]; last = q[0]; }
            #pragma omp section
            { q[1] = sin(x[1]); last = q[1]; }
            #pragma omp section
            { q[2] = x[2] * x[2]; last = 0.5 * q[2]; }
        }
        #pragma omp parallel for reduction(+ : s)
        for (long i = 0; i < n; i++) s += x[i] * last;
        return s + q[0] * q[1] + q[2];
    }""", flags=["-fopenmp"])
    signature, x = "f64(f64[n] x, i64 n)", np.linspace(0.2, 0.9, 40)
    shared = lib.kernel("f", signature, threads=2)
    value = 0.5 + x.sum() * 0.5 * x[2] ** 2 + x[0] * x[1] * np.sin(x[1]) + x[2] ** 2
    assert shared(x) == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(irgrad.grad(shared)(x), irgrad.grad(lib.kernel("f", signature))(x), rtol=1e-12)


BATCH_FIRST = """
import numpy as np, irgrad as ig
kernel = ig.load('''
#include <math.h>
double f(const double *x, long n) {
  double s = 0;
  #pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++) s += sin(x[i]);
  return s;
}''', flags=["-fopenmp"]).kernel("f", "f64(f64[n] x, i64 n)", threads=2)
x = np.linspace(0.0, 1.0, 90).reshape(3, 30)
np.testing.assert_allclose(ig.batch(kernel)(x), np.sin(x).sum(1), rtol=1e-12)
"""


def test_the_first_call_may_be_a_batch() -> None:
    subprocess.run([sys.executable, "-c", BATCH_FIRST], check=True)


def test_copies_are_zeros_again_behind_a_loop() -> None:
    """Whatever loop had them before, and where most pages of a copy are nobody's; the bits are those of fresh ones."""
    text = """#include <math.h>
void f(const double *x, const float *s, double *y, long n) {
    #pragma omp parallel for
    for (long i = 0; i < n; i++) y[i] = sin(x[i]) * x[i ? i - 1 : 0] * x[i + 1 < n ? i + 1 : i] + s[(i * 7) % 5] * x[i];
}"""
    f = irgrad.load(text, flags=["-fopenmp"]).kernel("f", "void(f64[n] x, f32[5] s, out f64[n] y, i64 n)", threads=2)

    def gradient(n: int) -> list[Any]:
        x, s = np.sin(np.arange(n) * 0.7), np.linspace(0, 1, 5).astype(np.float32)
        return [np.asarray(g) for g in irgrad.vjp(f, x, s)[1](np.cos(np.arange(n)))]

    def numbers(n: int) -> np.ndarray:
        x, bar, s = np.sin(np.arange(n) * 0.7), np.cos(np.arange(n)), np.linspace(0, 1, 5)
        before, after = x[np.maximum(np.arange(n) - 1, 0)], x[np.minimum(np.arange(n) + 1, n - 1)]
        found = bar * (np.cos(x) * before * after + s[(np.arange(n) * 7) % 5])
        np.add.at(found, np.maximum(np.arange(n) - 1, 0), bar * np.sin(x) * after)
        np.add.at(found, np.minimum(np.arange(n) + 1, n - 1), bar * np.sin(x) * before)
        return found

    irgrad.release()
    fresh = {}
    for n in (100, 30_000, 200_000):
        irgrad.release()
        fresh[n] = gradient(n)
        np.testing.assert_allclose(fresh[n][0], numbers(n), rtol=1e-12, atol=1e-13)
    for n in (200_000, 100, 30_000, 200_000, 30_000, 100):
        for a, b in zip(gradient(n), fresh[n], strict=True):
            np.testing.assert_array_equal(a, b)
    assert irgrad.release() > 16 * 8 * 200_000
