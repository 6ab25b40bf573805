"""Values of an iteration that lie side by side on the tape: gradients, the number of arrays, the bytes."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient

BLOCKS = """
void f(double *x, long *n, double *o) {{
    double v[5] = {{x[0], x[1], x[0] * x[1], 0.5, x[1] + 1}};
    for (long i = 0; i < *n; i++)
        for (int k = 0; k < {count}; k++) {{
            double a = v[k % 5], b = v[(k + 1) % 5];
            v[k % 5] = 0.7 * sin(a * b) + 0.1 * k;
            v[(k + 2) % 5] *= 1 + 0.1 * a * b;
        }}
    *o = v[0] * v[1] + v[2] * v[3] * v[4];
}}"""


def _value(x: np.ndarray, n: int, count: int) -> complex:
    v = [x[0], x[1], x[0] * x[1], 0.5, x[1] + 1]
    for _ in range(n):
        for k in range(count):
            a, b = v[k % 5], v[(k + 1) % 5]
            v[k % 5] = 0.7 * np.sin(a * b) + 0.1 * k
            v[(k + 2) % 5] = v[(k + 2) % 5] * (1 + 0.1 * a * b)
    return complex(v[0] * v[1] + v[2] * v[3] * v[4])


@pytest.mark.parametrize("count", [3, 5, 7, 8])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_gradients_are_those_of_complex_steps(count: int, n: int) -> None:
    x = np.array([0.4, 1.1])
    (dx, _), _ = gradient(BLOCKS.format(count=count), "f", "dcd", x, np.array([n]), OUT)
    wanted = [_value(x + 1e-30j * unit, n, count).imag / 1e-30 for unit in np.eye(2)]
    np.testing.assert_allclose(dx, wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("count", "shared"), [(5, True), (8, False)])
def test_loops_of_few_iterations_share_an_array_unless_they_make_vectors(count: int, shared: bool) -> None:
    _, made = gradient(BLOCKS.format(count=count), "f", "dcd", np.array([0.4, 1.1]), np.array([6]), OUT)
    arrays = len(made.calls("irgrad.tape.alloc"))
    assert arrays == 1 if shared else arrays > 1


def test_the_tape_is_as_large_as_with_arrays_apart() -> None:
    sizes = []
    for n in (1000, 2000):
        _, made = gradient(BLOCKS.format(count=5), "f", "dcd", np.array([0.4, 1.1]), np.array([n]), OUT)
        sizes.append(made.tape_bytes())
    assert 1000 * 5 * 2 * 8 <= sizes[1] - sizes[0] <= 1000 * 5 * 6 * 8


def test_a_loop_of_records_within() -> None:
    """Links to the records of loops of unknown length have arrays of their own."""
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[0];
        for (int k = 0; k < 5; k++) {
            double a = sin(s), b = a * s + x[1];
            for (long i = 0; s * s < 9 && i < *n; i++) s = s + sin(s * b) + a;
            for (long i = 0; s * s > 1 && i < *n; i++) s = 0.4 * s - 0.1 * sin(b * s);
        }
        *o = s;
    }"""

    def value(x: np.ndarray) -> complex:
        s = x[0]
        for _ in range(5):
            a = np.sin(s)
            b = a * s + x[1]
            i = 0
            while s.real**2 < 9 and i < 7:
                s, i = s + np.sin(s * b) + a, i + 1
            i = 0
            while s.real**2 > 1 and i < 7:
                s, i = 0.4 * s - 0.1 * np.sin(b * s), i + 1
        return complex(s)

    x = np.array([0.4, 1.1])
    (dx, _), _ = gradient(source, "f", "dcd", x, np.array([7]), OUT)
    wanted = [value(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(2)]
    np.testing.assert_allclose(dx, wanted, rtol=1e-10)
