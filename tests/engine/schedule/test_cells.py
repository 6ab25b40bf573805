"""Neighbouring loads share a tape array where their memory is overwritten later; swapped buffers count as apart."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient

STEPS, N = 20, 64
COPY = """
void f(double *x, long *n, long *m, double *o) {
    double *u = malloc(*n * 8), *v = malloc(*n * 8);
    memcpy(u, x, *n * 8);
    for (long t = 0; t < *m; t++) {
        for (long i = 1; i < *n - 1; i++) v[i] = u[i] * (u[i + 1] - u[i - 1]) * 0.1 + u[i];
        for (long i = 1; i < *n - 1; i++) u[i] = v[i];
    }
    double s = 0;
    for (long i = 0; i < *n; i++) s += u[i] * u[i];
    *o = s;
    free(u); free(v);
}"""
SWAP = """
void f(double *x, long *n, long *m, double *o) {
    double *u = malloc(*n * 8), *v = malloc(*n * 8);
    memcpy(u, x, *n * 8); memcpy(v, x, *n * 8);
    for (long t = 0; t < *m; t++) {
        for (long i = 1; i < *n - 1; i++) v[i] = u[i] * (u[i + 1] - u[i - 1]) * 0.1 + u[i];
        double *w = u; u = v; v = w;
    }
    double s = 0;
    for (long i = 0; i < *n; i++) s += u[i] * u[i];
    *o = s;
    free(u); free(v);
}"""


def _energy(x: np.ndarray) -> float:
    u = x.copy()
    for _ in range(STEPS):
        v = u.copy()
        v[1:-1] = u[1:-1] * (u[2:] - u[:-2]) * 0.1 + u[1:-1]
        u = v
    return float(u @ u)


def _check(source: str) -> int:
    x = np.sin(np.arange(N) * 0.3) + 0.2
    (dx, _), made = gradient(source, "f", "dccd", x, np.array([N]), np.array([STEPS]), OUT)
    h = 1e-6
    wanted = [(_energy(x + h * e) - _energy(x - h * e)) / (2 * h) for e in np.eye(N)]
    assert np.allclose(dx, wanted, rtol=1e-7, atol=1e-8)
    return made.tape_bytes()


def test_one_array_for_the_three_neighbours() -> None:
    assert _check(COPY) < STEPS * N * 8 * 1.5 + 4 * N * 8 + 2048


def test_swapped_buffers() -> None:
    assert _check(SWAP) < STEPS * N * 8 * 1.5 + 4 * N * 8 + 2048


CARRIED = """
void f(double *x, long *n, long *m, double *o) {
    double *u = malloc(*n * 8);
    memcpy(u, x, *n * 8);
    for (long t = 0; t < *m; t++) {
        double here = %s, sum = 0;
        for (long i = 1; i < *n - 1; i++) {
            double right = u[i + 1];
            sum += here * here * (right - u[i - 1]);
            here = right;
        }
        for (long i = 0; i < *n; i++) u[i] = u[i] * 0.9 + 0.01 * sum * u[i] * u[i];
    }
    double s = 0;
    for (long i = 0; i < *n; i++) s += u[i] * u[i];
    *o = s;
    free(u);
}"""


@pytest.mark.parametrize(("start", "carried"), [("u[1]", True), ("u[2]", False), ("0.3 * u[1]", False)])
def test_what_is_handed_on_is_a_cell_when_the_first_iteration_finds_it_there(start: str, carried: bool) -> None:
    def energy(x: np.ndarray) -> float:
        u = x.copy()
        for _ in range(3):
            here, total = {"u[1]": u[1], "u[2]": u[2], "0.3 * u[1]": 0.3 * u[1]}[start], 0.0
            for i in range(1, len(u) - 1):
                total += here * here * (u[i + 1] - u[i - 1])
                here = u[i + 1]
            u = u * 0.9 + 0.01 * total * u * u
        return float(u @ u)

    x = np.sin(np.arange(16) * 0.3) + 0.2
    (dx, _), made = gradient(CARRIED % start, "f", "dccd", x, np.array([16]), np.array([3]), OUT)
    wanted = [(energy(x + h) - energy(x - h)) / 2e-6 for h in 1e-6 * np.eye(16)]
    np.testing.assert_allclose(dx, wanted, rtol=1e-7, atol=1e-8)
    # read as a cell it needs no look at whether this is the first iteration
    firsts = [i for i in made.function.instructions() if i.opcode == "select" and i.type.is_fp]
    assert (not firsts) == carried


def test_a_recurrence_and_its_next_value_share_one_array() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0.7;
        for (long i = 0; i < *n; i++) s = fmax(fmax(s, x[i]) * 0.9, 0.3 * x[i] * s);
        *o = s;
    }"""
    x = np.sin(np.arange(400.0)) + 1.2

    def f(x: np.ndarray) -> float:
        s = 0.7
        for v in x:
            s = max(max(s, v) * 0.9, 0.3 * v * s)
        return s

    (dx, _), _ = gradient(source, "f", "dcd", x, np.array([400]), OUT)
    wanted = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(400)]
    np.testing.assert_allclose(dx, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("count", [1, 2, 300])
def test_a_running_maximum_is_saved_once(count: int) -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double top = x[0];
        for (long i = 1; i < *n; i++) top = fmax(top, x[i]);
        *o = top * top;
    }"""
    x = np.cos(np.arange(count) * 1.7) + 2
    (dx, _), made = gradient(source, "f", "dcd", x, np.array([count]), OUT)
    assert np.array_equal(dx, np.where(x == x.max(), 2 * x.max(), 0))
    assert made.tape_bytes() < 8 * count + 256


def test_strides_that_are_only_known_at_run_time_are_no_neighbours() -> None:
    source = """
    void f(double *x, long *n, long *m, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) s += x[i * (*m + 1)] * x[i * (*m + 1) + 1];
        for (long i = 0; i < *n; i++) x[i] = s * x[i] * x[i];
        *o = x[0] + x[1];
    }"""
    x = np.linspace(0.3, 1.7, 40)
    (dx, _), _ = gradient(source, "f", "dccd", x, np.array([10]), np.array([2]), OUT)

    def f(x: np.ndarray) -> float:
        s = sum(x[3 * i] * x[3 * i + 1] for i in range(10))
        return float(s * x[0] ** 2 + s * x[1] ** 2)

    wanted = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(40)]
    np.testing.assert_allclose(dx[10:], np.array(wanted)[10:], rtol=1e-7, atol=1e-8)
