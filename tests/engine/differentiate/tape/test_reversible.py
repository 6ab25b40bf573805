"""Integers that the reverse sweep steps back: which, that each step is undone, under every kind of loop and door."""

from __future__ import annotations

import random

import jax
import numpy as np
import pytest
from handwritten.planned import planned
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.loaders import load

LOOP = """
#include <math.h>
typedef unsigned long u64; typedef unsigned int u32;
void f(double *restrict x, long *restrict w, long *n, double *o) {
    double v = x[0]; %s
    for (long i = 0; i < *n; i++) {
        %s
        double u = (double)((u64)(k) >> 11) * 0x1p-53;
        v = v * u + sin(v + u) * x[1];
    }
    *o = v;
}"""
"""The state k makes the numbers u of a chain of floats."""

STEPS = {
    "generator": ("u64 k = 7;", "k = k * 6364136223846793005UL + 1442695040888963407UL;"),
    "where": ("u64 k = 7;", "if (x[2] * i > 3) k += 1UL << 60;"),
    "either": ("u64 k = 7;", "if (x[2] * i > 3) k += 1UL << 60; else k ^= 5UL << 57;"),
    "by what is read": ("u64 k = 7;", "k += (u64)w[i] * 0x9e3779b97f4a7c15UL;"),
    "less": ("u64 k = 7;", "k = (u64)w[i] * 0x9e3779b97f4a7c15UL - k;"),
    "rotated": ("u64 k = 0x9e3779b97f4a7c15UL;", "k = (k << 13 | k >> 51) ^ 0x5555UL;"),
    "mixed": ("u64 k = 88172645463325252UL;", "k ^= k << 29; k ^= k >> 31;"),
    "exchanged": ("u64 k = 1UL << 55, j = 3UL << 55;", "u64 t = k + j; k = j; j = t;"),
    "one by another": ("u64 k = 7, j = 9;", "j = j * 5 + 1; k += j << 50;"),
}
KEPT = {
    "even factor": ("u64 k = 7;", "k = k * 6 + (1UL << 60) + i;"),
    "by itself": ("u64 k = 7;", "if (k > 1UL << 40) k -= 1UL << 39; else k = k * 5 + (1UL << 37);"),
    "shifted out": ("u64 k = 7;", "k = (k >> 3) + ((u64)i << 50);"),
    "overwritten": ("u64 k = 7;", "k += (u64)w[i] << 50; w[i] = i;"),
}


def _program(case: tuple[str, str]) -> str:
    return LOOP % case


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_undone(name: str) -> None:
    plan = planned(_program(STEPS[name]), "dccd")
    assert plan.rules.reversals
    assert not any(hasattr(key, "type") and key.type.is_int for key in plan.saved), str(plan)
    assert "  stepped     " in str(plan)


@pytest.mark.parametrize("name", KEPT)
def test_what_has_no_inverse_is_kept(name: str) -> None:
    plan = planned(_program(KEPT[name]), "dccd")
    assert not plan.rules.reversals
    assert "stepped" not in str(plan)


def _gradient(kernel: engine.Kernel, x: np.ndarray, *rest: object) -> np.ndarray:
    """Differences."""
    ways = 1e-6 * np.eye(len(x))
    return np.array([(kernel(x + way, *rest) - kernel(x - way, *rest)) / 2e-6 for way in ways])


SIGNED = "double f(const double *x, const long *w, long n)"
X = np.array([0.3, 0.7, 0.4])
W = np.array([3, 8, 1, 9, 2, 7, 5, 6, 4, 0, 2, 1], dtype=np.int64)


def _kernel(case: tuple[str, str], opt: str = "O2") -> engine.Kernel:
    text = _program(case).replace("void f(double *restrict x, long *restrict w, long *n, double *o)", SIGNED)
    text = text.replace("*n", "n").replace("*o = v;", "return v;")
    return load(text, language="c", opt=opt).kernel("f", "f64(f64[3] x, i64[n] w, i64 n)")


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("opt", ["O0", "O2"])
def test_gradients(name: str, opt: str) -> None:
    kernel = _kernel(STEPS[name], opt)
    want = _gradient(kernel, X, W)
    np.testing.assert_allclose(engine.grad(kernel)(X, W), want, rtol=1e-6, atol=1e-8)
    way = np.array([0.3, -0.2, 0.1])
    _, slope = engine.jvp(kernel, (X, W), (way, None))
    np.testing.assert_allclose(slope, engine.grad(kernel)(X, W) @ way, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["generator", "where", "exchanged"])
def test_under_jax_and_again(name: str) -> None:
    kernel = _kernel(STEPS[name])
    want = engine.grad(kernel)(X, W)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(jax.grad(kernel))(X, W), want, rtol=1e-12)
        batch = np.stack([X, 2 * X, 0.5 * X])
        each = np.stack([engine.grad(kernel)(x, W) for x in batch])
        np.testing.assert_allclose(jax.vmap(jax.grad(kernel), in_axes=(0, None))(batch, W), each, rtol=1e-11)
    way = np.array([0.3, -0.2, 0.1])
    ahead, behind = (engine.grad(kernel)(X + h * way, W) for h in (1e-6, -1e-6))
    product = engine.hvp(kernel, (X, W), way, wrt="x")
    np.testing.assert_allclose(product, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-7)


NESTS = """
#include <math.h>
typedef unsigned long u64;
double rows(const double *x, const int *len, long n) {
    double s = 0; long p = 0;
    for (long i = 0; i < n; i++) {
        double r = 0;
        for (long j = 0; j < len[i]; j++) r += x[p + j] * x[p + j] * (j + 1);
        s += sin(r); p += len[i];
    }
    return s;
}
double kept(const double *x, const int *len, long n) {
    double y[64], s = 0; long k = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < len[i]; j++) if (x[i + j] > 0) { y[k % 64] = x[i + j] * x[j]; k++; }
    for (long i = 0; i < k && i < 64; i++) s += y[i] * y[i] * (i + 1);
    return s;
}
double until(const double *x, const int *len, long n) {
    double s = 1; long k = 0, i = 0;
    while (s < 40 && i < 100) {
        if (len[i % n] > 2) k += 3; else k ^= 5;
        for (long j = 0; j <= k % 3; j++) {
            s += sin(s) * 0.01 + x[(k + j) % n] * x[i % n] * 0.3;
            if (s > 60) return s * s;
        }
        i++;
    }
    return s;
}
double pointers(const double *x, const int *len, long n) {
    const double *p = x; const int *q = len; double s = 0;
    for (long i = 0; i < n; i++) {
        double r = 0;
        for (int j = 0; j < *q; j++) r += p[j] * p[j] * (j + 1);
        s += sin(r) * r;
        p += *q;
        if (x[i] > 0) q++; else q += 2 - i % 2;
        if (q >= len + n) q = len + n - 1;
    }
    return s;
}
double both_ways(const double *x, const int *len, long n) {
    double y[64] = {0}, z[64] = {0}, s = 0, *p = y, *q = z;
    for (long i = 0; i < n; i++) {
        double *r = p;
        if (x[i] > 0) { *p += sin(x[i]) * x[i + 1]; p++; } else { *q += x[i] * x[i + 2]; q += 2; }
        if (len[i] % 2) { p = p + 1; }
        *r += 0.1 * x[i];
    }
    for (int i = 0; i < 64; i++) s += y[i] * y[i] * (i + 1) + z[i] * y[i] + z[i] * z[63 - i];
    return s;
}
double passed_on(const double *x, const int *len, long n) {
    double s = 0; u64 k = 99;
    for (long i = 0; i < n; i++) {
        double v = x[i];
        for (long j = 0; j < len[i] % 5; j++) {
            k = k * 6364136223846793005UL + 1442695040888963407UL;
            v = v * (double)(k >> 11) * 0x1p-53 + sin(v) * x[(k >> 40) % n];
        }
        s += v * v;
    }
    return s;
}
"""


@pytest.mark.parametrize("name", ["rows", "kept", "until", "pointers", "both_ways", "passed_on"])
@pytest.mark.parametrize("opt", ["O1", "O2"])
def test_loops_of_every_kind(name: str, opt: str) -> None:
    """Inner loops, numbers handed through nests, loops of unknown length and with several exits."""
    kernel = load(NESTS, language="c", opt=opt).kernel(name, "f64(f64[m] x, i32[n] len, i64 n)")
    x = np.random.default_rng(3).uniform(0.2, 0.9, size=48) * np.where(np.arange(48) % 3 == 1, -1.0, 1.0)
    length = np.array([3, 0, 5, 2, 1, 4, 6, 0, 2, 3, 7, 1], dtype=np.int32)
    want = _gradient(kernel, x, length)
    np.testing.assert_allclose(engine.grad(kernel, wrt="x")(x, length), want, rtol=2e-5, atol=1e-7)


def test_the_tape_is_shorter() -> None:
    """What was an array of counts takes no room."""
    source = """
    double f(const double *x, double *y, long n) {
        long k = 0; double s = 0;
        for (long i = 0; i < n; i++) if (x[i] > 0) y[k++] = x[i] * x[i];
        for (long i = 0; i < k; i++) s += y[i] * (i + 1);
        return s;
    }"""
    kernel = load(source, language="c").kernel("f", "f64(f64[n] x, inout f64[n] y, i64 n)")
    text = str(irgrad.explain(kernel, derivative="vjp", lanes=False))
    assert "stepped back phi %k" in text
    assert "tape of a call: 0" in text


def test_pointers_are_stepped_back_with_their_shadows() -> None:
    source = """
    double f(const double *x, const int *len, long n) {
        const double *p = x; double s = 0;
        for (long i = 0; i < n; i++) {
            double r = 0;
            for (int j = 0; j < len[i]; j++) r += p[j] * p[j];
            s += r; p += len[i];
        }
        return s;
    }"""
    kernel = load(source, language="c").kernel("f", "f64(f64[m] x, i32[n] len, i64 n)")
    text = str(irgrad.explain(kernel, derivative="grad", wrt="x", lanes=False))
    assert "tape of a call: 0" in text and "stepped back phi %p" in text
    x, length = np.linspace(0.2, 2, 12), np.array([3, 0, 5, 4], dtype=np.int32)
    np.testing.assert_allclose(engine.grad(kernel, wrt="x")(x, length), 2 * x, rtol=1e-15)
    np.testing.assert_allclose(engine.jacrev(kernel, wrt="x")(x, length), 2 * x, rtol=1e-15)


# -- random steps ------------------------------------------------------------------------------------------------------


def _step(r: random.Random, names: list[str]) -> str:
    k, other = r.choice(names), r.choice([*names, "(u64)w[i]", "(u64)i * 77"])
    if other == k:
        other = "(u64)w[i] * 0x9e3779b97f4a7c15UL"
    turn = r.randint(1, 63)
    kinds = [
        f"{k} += {other};", f"{k} -= {other};", f"{k} ^= {other};", f"{k} = {other} - {k};",
        f"{k} *= {r.randrange(1, 1 << 60, 2)}UL;", f"{k} ^= {k} << {r.randint(1, 63)};",
        f"{k} ^= {k} >> {r.randint(1, 63)};", f"{k} = {k} << {turn} | {k} >> {64 - turn};",
    ]  # fmt: skip
    step, instead = r.choice(kinds), r.choice(kinds)
    if r.random() < 0.4:
        step = f"if (w[i] % {r.randint(2, 4)} == 0) {{ {step} }}"
        step += f" else {{ {instead} }}" if r.random() < 0.5 else ""
    return step


def _random(seed: int) -> str:
    r = random.Random(seed)
    names = [f"k{i}" for i in range(r.randint(1, 3))]
    lines = [_step(r, names) for _ in range(r.randint(1, 4))]
    if len(names) > 1 and r.random() < 0.4:
        lines.append(f"u64 t = {names[0]}; {names[0]} = {names[1]}; {names[1]} = t;")
    begin = "u64 " + ", ".join(f"{n} = {r.getrandbits(63)}UL" for n in names) + ";"
    loop = LOOP.replace("(u64)(k)", f"(u64)({' ^ '.join(names)})")
    return loop % (begin, " ".join(lines))


@pytest.mark.parametrize("seed", fast(12, range(120)))
def test_random_steps(seed: int) -> None:
    text = _random(seed).replace("void f(double *restrict x, long *restrict w, long *n, double *o)", SIGNED)
    text = text.replace("*n", "n").replace("*o = v;", "return v;")
    kernel = load(text, language="c", opt=("O1", "O2", "O3")[seed % 3]).kernel("f", "f64(f64[3] x, i64[n] w, i64 n)")
    np.testing.assert_allclose(engine.grad(kernel)(X, W), _gradient(kernel, X, W), rtol=2e-6, atol=1e-8)
