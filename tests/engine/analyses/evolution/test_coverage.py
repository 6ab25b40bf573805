"""What iterations write whole before they read it is in no state; what they may find of an earlier one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad as ig

HEAD = "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n"
LOOP = """
__attribute__((noinline)) static double some(const double *w, long i) {{ return w[i] * w[i + 1]; }}
double f(const double *x, long n, long m, long steps) {{
    double *u = malloc(n * sizeof *u), *w = calloc(n, sizeof *w), e = 0;
    for (long i = 0; i < n; i++) u[i] = x[i];
    for (long i = 0; i < n; i++) w[i] = 0.3 * x[n - 1 - i];
    for (long t = 0; t < steps; t++) {{
        {body}
        for (long i = 0; i < n; i++) u[i] = 0.7 * u[i] + 0.2 * sin({read});
    }}
    for (long i = 0; i < n; i++) e += u[i] * u[i] + w[i] * x[i];
    free(u); free(w);
    return e;
}}
"""
ANY = "w[(7 * i + t) % n]"
NEW = "u[i] + 0.1 * x[i] * u[(i + 1) % n]"
SIGNATURE = "f64(f64[n] x, i64 n, i64 m, i64 steps)"
N, STEPS = 36, 9
DROPPED = {
    "all": (f"for (long i = 0; i < n; i++) w[i] = {NEW};", ANY),
    "backwards": (f"for (long i = n - 1; i >= 0; i--) w[i] = {NEW};", ANY),
    "rows": (f"for (long a = 0; a < m; a++) for (long b = 0; b < m; b++) {{ long i = a * m + b; w[i] = {NEW}; }}", ANY),
    "columns": (f"for (long b = 0; b < m; b++) for (long a = 0; a < m; a++) {{ long i = a * m + b; w[i] = {NEW}; }}",
                ANY),
    "members": ("for (long i = 0; i < n; i += 3) { w[i] = u[i]; w[i + 1] = u[i + 1]; w[i + 2] = 3 * u[i / 2]; }", ANY),
    "cleared": ("memset(w, 0, n * sizeof *w); w[t % n] = u[0]; w[(5 * t) % n] += u[1];", ANY),
    "copied": ("memcpy(w, u, n * sizeof *w); w[t % n] *= 1.5;", ANY),
    "borders": (f"w[0] = u[0]; for (long i = 1; i < n - 1; i++) w[i] = {NEW}; w[n - 1] = u[1];", ANY),
    "inside": (f"for (long i = 1; i < n - 1; i++) w[i] = {NEW}; for (long i = 1; i < n - 1; i++) u[i] += 0.1 * w[i];",
               "u[(i + 1) % n]"),
    "never read": ("w[t % n] = u[0]; if (u[1] > 0) w[0] = u[2];", "u[(i + 1) % n]"),
}  # fmt: skip
KEPT = {
    "a border": (f"for (long i = 1; i < n - 1; i++) w[i] = {NEW};", ANY),
    "a condition": (f"for (long i = 0; i < n; i++) if (u[i] > 0.557) w[i] = {NEW};", ANY),
    "read before": (f"u[0] += 0.1 * w[n / 2]; for (long i = 0; i < n; i++) w[i] = {NEW};", ANY),
    "read in a function": (f"u[0] += some(w, t % 5); for (long i = 0; i < n; i++) w[i] = {NEW};", ANY),
    "every other": (f"for (long i = 0; i < n; i += 2) w[i] = {NEW};", ANY),
    "an early end": (f"for (long i = 0; i < n; i++) {{ w[i] = {NEW}; if (u[i] > 1.3) break; }}", ANY),
    "some iterations": (f"if (t % 2) for (long i = 0; i < n; i++) w[i] = {NEW};", ANY),
    "some rows": (f"for (long a = 0; a < 3; a++) if (t % 3 != a) for (long i = 12 * a; i < n; i++) w[i] = {NEW};", ANY),
    "read in the nest": ("for (long i = 0; i < n; i++) w[i] = 0.5 * w[(i + 1) % n] + u[i];", ANY),
    "a row of its own": ("for (long i = 0; i < 4; i++) w[4 * (t % 9) + i] = u[i];", ANY),
    "the row of its iteration": ("if (steps < 10) for (long i = 0; i < 4; i++) w[4 * t + i] = u[i];", ANY),
    "triangle": ("for (long a = 0; a < 6; a++) for (long b = 0; b <= a; b++) w[6 * a + b] = u[6 * a + b] * x[a];", ANY),
    "two that overlap": ("for (long i = 0; i < 20; i++) w[i] = u[i]; for (long i = 22; i < n; i++) w[i] = u[i];", ANY),
}  # fmt: skip
ASKED = {
    "a length": (f"for (long i = 0; i < 36 - 36 % m; i++) w[i] = {NEW};", ANY, 35, 36),
    "a step": ("for (long a = 0; a < 6; a++) for (long b = 0; b < 6; b++) w[a * m + b] = u[a * m + b] * x[a];",
               ANY, 5, 6),
    "a guard": (f"if (m > 3) for (long i = 0; i < n; i++) w[i] = {NEW};", ANY, 2, 4),
    "a border that may be": (f"for (long i = m; i < n; i++) w[i] = {NEW};", ANY, 1, 0),
}  # fmt: skip


def _check(body: str, read: str, m: int) -> bool:
    """Whether states leave `w` out; the gradient is right in any case."""
    library = ig.load(HEAD + LOOP.format(body=body, read=read))
    x = 0.5 + np.linspace(0, 1, N) ** 2
    plain = library.kernel("f", SIGNATURE)
    wanted = ig.grad(plain)(x, m, STEPS)
    along = np.cos(np.arange(N))
    step = 1e-6
    slope = (plain(x + step * along, m, STEPS) - plain(x - step * along, m, STEPS)) / (2 * step)
    assert abs(wanted @ along - slope) < 1e-6 * abs(slope) + 1e-7
    choices: tuple[Any, ...] = (1, 4, "binomial:2")
    for choice in choices:
        kernel = library.kernel("f", SIGNATURE, checkpoint={"<string>:10": choice})
        np.testing.assert_allclose(ig.grad(kernel)(x, m, STEPS), wanted, rtol=1e-12, atol=1e-13)
    used = library.kernel("f", SIGNATURE, checkpoint={"<string>:10": 1}).tape_bytes(x, m, STEPS)
    more = library.kernel("f", SIGNATURE, checkpoint={"<string>:10": 1}).tape_bytes(x, m, 4 * STEPS)
    states = (more - used) / (3 * STEPS) / (8 * N)  # arrays in a state
    assert 0.9 < states < 2.9
    return states < 1.9


@pytest.mark.parametrize("name", DROPPED)
def test_left_out(name: str) -> None:
    assert _check(*DROPPED[name], 6)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    assert not _check(*KEPT[name], 6)


@pytest.mark.parametrize("name", ASKED)
def test_asked_when_it_runs(name: str) -> None:
    """Whether it is whole depends on an argument."""
    body, read, gap, whole = ASKED[name]
    assert not _check(body, read, gap)
    assert _check(body, read, whole)
