"""Memory that the reverse sweep reads nothing of is freed where the program frees it; all other memory waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import irgrad as ig

HEAD = """#include <math.h>
#include <stdlib.h>
#include <string.h>
#define LOOP for (long i = 0; i < n; i++)
static double *keep;
__attribute__((noinline)) static double all(const double *p, long n) { double s = 0; LOOP s += p[i] * p[i]; return s; }
"""
EARLY = {
    "added up": "LOOP t[i] = sin(x[i]); LOOP s += t[i]; free(t);",
    "weighted": "LOOP t[i] = sin(x[i]); LOOP s += (i % 3) * t[i]; free(t);",
    "added to": "memset(t, 0, n * 8); LOOP LOOPJ t[j] += x[i] * j; LOOP s += t[i]; free(t);",
    "each iteration": "free(t); LOOP { double *u = malloc(2 * sizeof *u); u[i % 2] = x[i] * x[i]; s += 3 * u[i % 2];"
                      " free(u); }",
}  # fmt: skip
LATE = {
    "squared": "LOOP t[i] = sin(x[i]); LOOP s += t[i] * t[i]; free(t);",
    "a condition": "LOOP t[i] = sin(x[i]); LOOP if (t[i] > 0.2) s += x[i] * 2; free(t);",
    "an index": "long *k = (long *)t; LOOP k[i] = (i * i) % n; LOOP s += x[k[i]] * x[i]; free(t);",
    "by a function": "LOOP t[i] = sin(x[i]); s = all(t, n); free(t);",
    "copied": "LOOP t[i] = sin(x[i]); double *u = malloc(n * 8); memcpy(u, t, n * 8); LOOP s += u[i] * u[i]; free(t);"
              " free(u);",
    "the address is stored": "keep = t; LOOP t[i] = sin(x[i]); LOOP s += keep[i] * keep[i]; free(t);",
}  # fmt: skip


def _source(body: str) -> str:
    body = body.replace("LOOPJ", "for (long j = 0; j < n; j++)")
    return f"{HEAD}double f(const double *x, long n) {{ double *t = malloc(n * sizeof *t), s = 0; {body} return s; }}\n"


def _frees_later(kernel: ig.Kernel) -> bool:
    return "call void @irgrad.tape.free_later" in kernel.primal.pullback([0, 2]).stage.text


@pytest.mark.parametrize("what", EARLY)
def test_freed_where_the_program_does(what: str) -> None:
    assert not _frees_later(ig.load(_source(EARLY[what])).kernel("f", "f64(f64[n] x, i64 n)"))


@pytest.mark.parametrize("what", LATE)
def test_what_may_be_read_waits(what: str) -> None:
    assert _frees_later(ig.load(_source(LATE[what])).kernel("f", "f64(f64[n] x, i64 n)"))


CHECK = """
import sys
import numpy as np
import irgrad as ig
sys.path.insert(0, {folder!r})
from test_early_frees import EARLY, LATE, _source
for what, body in [*EARLY.items(), *LATE.items()]:
    kernel = ig.load(_source(body)).kernel("f", "f64(f64[n] x, i64 n)")
    for n in (3, 40):
        x = np.linspace(-1, 1.3, n)
        want = [(kernel(x + step) - kernel(x - step)) / 2e-6 for step in 1e-6 * np.eye(n)]
        for found in (ig.grad(kernel)(x), ig.vjp(kernel, x)[1](1.0)):
            assert np.allclose(found, want, rtol=1e-6, atol=1e-6), (what, found, want)
"""


def test_gradients_where_freed_memory_is_overwritten() -> None:
    """glibc fills what is freed, so that a sweep that reads it is wrong."""
    check = CHECK.format(folder=str(Path(__file__).parent))
    environment = {**os.environ, "MALLOC_PERTURB_": "165"}
    done = subprocess.run([sys.executable, "-c", check], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
