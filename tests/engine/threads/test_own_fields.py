"""Loops over arrays of structs, whose fields are read by all iterations or are each one's own: reverse sweeps on
threads have the same bits on any number of them, and are right."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument
from irgrad.engine.threads.own_fields import OwnFields
from irgrad.rules.errors import OneThread

HEAD = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef struct { double at[2], mass, more, force[2], last; } P;  // 56 bytes
typedef struct { double x, y, z; } V;                                            // 24 bytes
"""
LOOPS = {
    "written behind all that is read": """
        for (long i = 0; i < n; i++) {
            double s = 0;
            for (long j = 0; j < n; j++) s += p[j].mass * sin(p[j].at[0] - p[i].at[0]);
            p[i].force[0] = s;
        }""",
    "in place": """
        for (long i = 0; i < n; i++) {
            p[i].force[0] = p[i].force[1] = 0;
            for (long j = 0; j < n; j++)
                for (int d = 0; d < 2; d++)
                    p[i].force[d] += p[j].mass * tanh(p[j].at[d] - p[i].at[d]) * p[i].force[1 - d];
        }""",
    "added to what was there": """
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) p[i].force[1] = 0.9 * p[i].force[1] + p[j].at[1] * p[i].mass;""",
    "through indices": """
        for (long i = 0; i < n; i++) {
            double s = p[k[i]].force[0];
            for (long j = 0; j < 4; j++) s += p[k[(i * 3 + j) % n]].mass * p[k[i]].at[1];
            p[k[i]].force[0] = s;
        }""",
    "one field of the others": """
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) p[i].at[0] += 0.01 * p[j].mass * p[i].at[0] * p[j].at[1];""",
    "of 24 bytes": """
        V *v = (V *)p;
        for (long i = 0; i < 2 * n; i++) {
            v[i].z = v[i].x;
            for (long j = 0; j < 2 * n; j++) v[i].z += v[j].x * v[i].z * 0.01 + v[j].y;
        }""",
    "in an array of numbers": """
        double *a = (double *)p;
        for (long i = 0; i < n; i++) {
            a[7 * i + 3] = 0;
            for (long j = 0; j < n; j++) a[7 * i + 3] += a[7 * j + 1] * (1 + 0.1 * a[7 * i + 3]);
        }""",
    "red and black": """
        double *a = (double *)p;
        for (long i = 1; i < 7 * n - 1; i += 2) a[i] = 0.3 * a[i] + a[i - 1] * a[i + 1];""",
}


def _source(loop: str) -> str:
    before, begin, rest = loop.partition("for (long i")
    return f"""{HEAD}
double f(const double *x, const long *k, double *y, long n) {{
    P *p = malloc(n * sizeof(P));
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 7; c++) ((double *)&p[i])[c] = x[i] * (1 + 0.1 * c);
    {before}
    #pragma omp parallel for
    {begin}{rest}
    double s = 0;
    for (long i = 0; i < n; i++) {{
        y[i] = p[i].force[0] - p[i].at[0];
        s += p[i].force[1] * p[i].mass + ((double *)&p[i])[3] * 0.3;
    }}
    free(p);
    return s;
}}
"""


SIGNATURE = "f64(f64[n] x, i64[n] k, out f64[n] y, i64 n)"


READ_BEHIND = {
    "by a pointer that moves": """
        for (long i = 0; i < n; i++) {
            double s = p[i].at[0], *end = &p[i].force[2];
            p[i].force[0] = s * s;
            for (const double *q = &p[i].force[0]; q != end; q++) s += *q * p[n - 1 - i].mass;
            p[i].force[1] = s;
        }""",
    "by one of two pointers": """
        for (long i = 0; i < n; i++) {
            p[i].force[0] = sin(p[i].mass);
            const double *q = k[i] % 2 ? &p[i].force[0] : &p[n - 1 - i].mass;
            p[i].force[1] = *q * *q;
        }""",
    "by memcpy": """
        for (long i = 0; i < n; i++) {
            double t[2];
            p[i].force[0] = p[n - 1 - i].mass * p[i].at[0];
            memcpy(t, p[i].force, sizeof t);
            p[i].force[1] = t[0] * t[0] * p[n - 1 - i].at[1];
        }""",
}


@pytest.mark.parametrize("opt", ["O0", "O2"])
@pytest.mark.parametrize("name", READ_BEHIND)
def test_what_is_read_behind_a_write_is_right(name: str, opt: str) -> None:
    """On however many threads."""
    n = 37
    x, k = 0.5 + np.random.default_rng(3).random(n), np.arange(n)
    lib = ig.load(_source(READ_BEHIND[name]), flags=["-fopenmp"], opt=opt)
    plain, bars = lib.kernel("f", SIGNATURE), (1.0, np.cos(np.arange(n)))
    assert ig.check(plain, x, k).ok
    expected = ig.vjp(plain, x, k)[1](bars)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        found = [ig.vjp(lib.kernel("f", SIGNATURE, threads=threads), x, k)[1](bars)[0] for threads in (1, 2, 4)]
    for one in found:
        np.testing.assert_array_equal(one, found[0])
    np.testing.assert_allclose(found[0], expected, rtol=1e-10)


@pytest.mark.parametrize("opt", ["O0", "O2"])
@pytest.mark.parametrize("name", LOOPS)
def test_reverse_sweeps_on_threads(name: str, opt: str) -> None:
    n = 37
    rng = np.random.default_rng(3)
    x, k = 0.5 + rng.random(n), rng.permutation(n)
    lib = ig.load(_source(LOOPS[name]), flags=["-fopenmp"], opt=opt)
    plain = lib.kernel("f", SIGNATURE)
    assert ig.check(plain, x, k).ok
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        for threads in (1, 2, 4, 16):
            f = lib.kernel("f", SIGNATURE, threads=threads)
            (_, pullback), bars = ig.vjp(f, x, k), (1.0, np.cos(np.arange(n)))
            found.append((*f(x, k), *(g for g in pullback(bars) if g is not None)))
    for results in found:
        for one, first in zip(results, found[0], strict=True):
            np.testing.assert_array_equal(one, first)
    expected = [g for g in ig.vjp(plain, x, k)[1]((1.0, np.cos(np.arange(n)))) if g is not None]
    for one, other in zip(found[0][2:], expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    rows = str(ig.explain(f, lanes=False)).splitlines()
    assert not [row for row in rows if "uses other places" in row], rows


def _argument(said: str) -> Argument:
    argument = Argument(ty.PTR, "p", 0)
    argument.attrs = said
    return argument


def test_what_is_said_of_an_address_is_read_again() -> None:
    fields = OwnFields(64, ((48, 56), (56, 64)))
    assert fields.text() == '"irgrad-own-fields"="64:48-56,56-64"'
    assert OwnFields.said_of(_argument(f"noalias {fields.text()} readonly")) == fields
    assert OwnFields.said_of(_argument("noalias")) is None
