"""How a batch runs, as text. What keeps samples from being lanes is in tests/engine/widen/test_refusals.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad import batch, batch_grad, explain_batch

STATE = """#include <math.h>
static double last;
double f(const double *x, long n) {
    for (long i = 0; i < n; i++) last = sin(last + x[i]);
    return last;
}
"""


def test_a_variable_that_calls_share() -> None:
    told = explain_batch(irgrad.load(STATE).kernel("f", "f64(f64[n] x, i64 n)"), np.ones((64, 3)))
    assert told.count("it uses the global variable `last`, which is not constant") == 2
    assert "to change: use local variables or arguments" in told and "one thread: " in told


def test_lines_of_files_are_quoted(tmp_path: Path) -> None:
    file = tmp_path / "model.c"
    file.write_text(STATE.replace("static double last;", "").replace("{\n    for", "{\n    double last = 0;\n    for")
                    .replace("last = sin", "if (last > x[0]) return 1; else last = sin"), encoding="utf-8")  # fmt: skip
    kernel = irgrad.load(file).kernel("f", "f64(f64[n] x, i64 n)")
    told = explain_batch(kernel, np.ones((64, 3)))
    assert f"at {file}:5:" in told and ": `for (long i = 0; i < n; i++) if (last > x[0])" in told
    file.unlink()
    told = explain_batch(batch(kernel), np.ones((64, 3)))
    assert f"at {file}:5:" in told and ": `for" not in told


VIRTUAL = """#include <math.h>
struct Law {
    virtual double at(double x) const = 0;
};
struct Square : Law { double k; Square(double k) : k(k) {} double at(double x) const override { return k * x * x; } };
struct Wave : Law { double k; Wave(double k) : k(k) {} double at(double x) const override { return sin(k * x); } };
static const struct { const char *name; double (*law)(double); double scale; } table[] = {
    {"sin", sin, 2.0}, {"exp", exp, 3.0}};
extern "C" double f(const double *x, double k, long n, int which) {
    Square square(k);
    Wave wave(k);
    const Law *laws[2] = {&square, &wave};
    double s = 0;
    for (long i = 0; i < n; i++) s += laws[(which + i) % 2]->at(x[i]);
    return s;
}
extern "C" double g(const double *x, double k, long n, int which) {
    double s = 0;
    for (long i = 0; i < n; i++) s += table[(which + i) % 2].scale * table[(which + i) % 2].law(k * x[i]);
    return s;
}
"""


@pytest.mark.parametrize("name", ["f", "g"])
def test_constant_tables_cost_no_threads(name: str) -> None:
    """Derivatives find the derivatives of table entries in shadows of the table, which calls share."""
    kernel = irgrad.load(VIRTUAL, language="c++").kernel(name, "f64(f64[n] x, f64 k, i64 n, i32 which)")
    x = np.random.default_rng(0).normal(size=(3000, 4))
    made = batch_grad(kernel, wrt=("x", "k"), in_axes=(0, None, None), threads=4)
    assert "threads: 4" in explain_batch(made, x, 0.7, 1)
    one = batch_grad(kernel, wrt=("x", "k"), in_axes=(0, None, None), threads=1)
    for got, wanted in zip(made(x, 0.7, 1), one(x, 0.7, 1), strict=True):
        assert np.array_equal(got, wanted)
    single = irgrad.grad(kernel, wrt="x")
    np.testing.assert_allclose(made(x, 0.7, 1)[0][:20], [single(row, 0.7, 1) for row in x[:20]], rtol=1e-12)
