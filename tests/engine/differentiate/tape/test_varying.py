"""Arrays of the tape range over the loops that change a value: gradients against differences, and room."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from handwritten.made import OUT, gradient
from handwritten.planned import planned

N, M, D = 5, 6, 7


def _program(body: str) -> str:
    """For each s, a row b made from x; for each j of w, and each i, what `body` does to `a`; the sum of tanh(a)."""
    return f"""
void f(const double *restrict w, const double *restrict x, double *restrict b, long *n, long *m, long *d, double *o) {{
    double t = 0;
    for (long s = 0; s < *n; s++) {{
        for (long i = 0; i < *d; i++) b[i] = sin(x[s * *d + i]);
        for (long j = 0; j < *m; j++) {{
            double a = 0;
            {body}
            t += tanh(a);
        }}
    }}
    *o = t;
}}"""


ROWS = _program("for (long i = 0; i < *d; i++) a += w[j * *d + i] * b[i];")


def _rows(w: np.ndarray, x: np.ndarray) -> float:
    return float(np.tanh(np.sin(x) @ w.T).sum())


def _decayed(w: np.ndarray, x: np.ndarray) -> float:
    total = 0.0
    for row in np.sin(x):
        b = row.copy()
        for line in w:
            a = 0.0
            for i in range(D):
                a += line[i] * b[i]
                b[i] *= 0.9
            total += np.tanh(a)
    return total


def _shifted(w: np.ndarray, x: np.ndarray) -> float:
    """b[(i ^ j) % D]: the place changes with j, in a way that no version of the loop tells."""
    places = np.array([[(i ^ j) % D for i in range(D)] for j in range(M)])
    return float(sum(np.tanh(line @ row[at]) for row in np.sin(x) for at, line in zip(places, w, strict=True)))


def _running(w: np.ndarray, x: np.ndarray) -> float:
    """Each factor is a prefix sum, the same for each j."""
    return float(np.tanh(np.cumsum(np.sin(x) ** 2, 1) @ w.T).sum())


def _every_other(w: np.ndarray, x: np.ndarray) -> float:
    kept = np.array([[(i + j) % 2 for i in range(D)] for j in range(M)])
    return float(np.tanh(np.sin(x) @ (w * kept).T).sum())


PROGRAMS: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float], tuple[int, ...]]] = {
    "the same row": (ROWS, _rows, (N * D, N * M)),
    "changed in the loop": (
        _program("for (long i = 0; i < *d; i++) { a += w[j * *d + i] * b[i]; b[i] *= 0.9; }"), _decayed,
        (N * M * D, N * M)),
    "another place": (
        _program("for (long i = 0; i < *d; i++) a += w[j * *d + i] * b[(i ^ j) % *d];"), _shifted, (N * M * D, N * M)),
    "a prefix": (
        _program("double p = 0; for (long i = 0; i < *d; i++) { p += b[i] * b[i]; a += w[j * *d + i] * p; }"), _running,
        (N * D, N * D, N * M)),
    "some of it": (
        _program("for (long i = 0; i < *d; i++) if ((i + j) % 2) a += w[j * *d + i] * b[i];"), _every_other,
        (N * D, N * M)),
}  # fmt: skip


def _differences(f: Callable[[np.ndarray], float], at: np.ndarray, h: float = 1e-5) -> np.ndarray:
    flat = at.ravel()
    found = []
    for i in range(flat.size):
        up, down = flat.copy(), flat.copy()
        up[i], down[i] = flat[i] + h, flat[i] - h
        found.append((f(up.reshape(at.shape)) - f(down.reshape(at.shape))) / (2 * h))
    return np.array(found).reshape(at.shape)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_and_the_room_of_the_tape(name: str) -> None:
    source, value, arrays = PROGRAMS[name]
    rng = np.random.default_rng(3)
    w, x = rng.normal(size=(M, D)), rng.normal(size=(N, D))
    counts = [np.array([k]) for k in (N, M, D)]
    (dw, dx, _, _), made = gradient(source, "f", "dddcccd", w, x, np.zeros(D), *counts, OUT)
    np.testing.assert_allclose(dw, _differences(lambda at: value(at, x), w), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(dx, _differences(lambda at: value(w, at), x), rtol=1e-7, atol=1e-8)
    room = 8 * sum(arrays)
    assert made.tape_bytes() <= room + 64 * len(arrays)


def test_the_plan_names_the_loops_of_an_array() -> None:
    plan = planned(ROWS, "dddcccd")
    ranges = {saved.level.depth: [loop.depth for loop in saved.loops] for saved in plan.saved.values() if saved.level}
    assert ranges == {2: [1, 2], 3: [1, 3]}


LENGTHS = """
void f(const double *restrict x, double *restrict b, long *n, long *m, double *o) {
    double t = 0;
    for (long s = 0; s < *n; s++) {
        for (long i = 0; i < *m; i++) b[i] = sin(x[i] * (s + 1));
        for (long j = 0; j < *m; j++) {
            double last = 0;
            for (long i = 0; i < j; i++) last = b[i] * b[i];
            t += tanh(last * b[j]) * last;
        }
    }
    *o = t;
}"""


def test_what_a_loop_of_changing_length_leaves_behind_changes() -> None:
    x = np.random.default_rng(4).normal(size=M)

    def value(x: np.ndarray) -> float:
        total = 0.0
        for s in range(N):
            b = np.sin(x * (s + 1))
            total += sum(np.tanh(b[j - 1] ** 2 * b[j]) * b[j - 1] ** 2 for j in range(1, M))
        return total

    (dx, _, _), _ = gradient(LENGTHS, "f", "ddccd", x, np.zeros(M), np.array([N]), np.array([M]), OUT)
    np.testing.assert_allclose(dx, _differences(value, x), rtol=1e-7, atol=1e-8)
