"""What keeps samples from being lanes: the reason, the line of the source, and a way out that works."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad import batch, batch_grad, explain_batch

HEAD = "#include <math.h>\n#include <stdlib.h>\n"
SIGNATURE = "f64(f64[n] x, f64[n] y, i64 n)"
# the source; the reason, the line and the way out that are told; the source after it
CASES: dict[str, tuple[str, tuple[str, str, str], str]] = {
    "exit of a loop": ("""double f(const double *x, const double *y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        s += x[i] * x[i];
        if (s > 1) { s = sin(s); break; }
        if (s < -1) return exp(s) + y[0];
    }
    return cos(s);
}""",
        ("the branch goes different ways", "if (s > 1) { s = sin(s); break; }", "not with `break`"),
        """double f(const double *x, const double *y, long n) {
    double s = 0;
    int ended = 0;
    for (long i = 0; i < n; i++) {
        double next = s + x[i] * x[i];
        s = ended ? s : next > 1 ? sin(next) : next;
        ended = ended || next > 1;
    }
    return cos(s);
}"""),
    "choice of pointers": ("""double f(const double *x, const double *y, long n) {
    const double *p = x[0] > 0 ? x : y;
    double s = 0;
    for (long i = 0; i < n; i++) s += sin(p[i]) * exp(p[i]);
    return s;
}""",
        ("a value of type ptr varies", "const double *p = x[0] > 0 ? x : y;", "choose between the values"),
        """double f(const double *x, const double *y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) { double a = x[i], b = y[i], p = x[0] > 0 ? a : b; s += sin(p) * exp(p); }
    return s;
}"""),
    "table of pointers": ("""double f(const double *x, const double *y, long n) {
    const double *rows[2] = {x, y};
    double s = 0;
    for (long i = 0; i < n; i++) s += sin(rows[i % 2][i]);
    return s;
}""",
        ("the address comes from memory", "s += sin(rows[i % 2][i]);", "arguments of their own"),
        """double f(const double *x, const double *y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += sin(i % 2 ? y[i] : x[i]);
    return s;
}"""),
    "function by a pointer": ("""static double up(double x) { return x * x; }
static double (*const laws[])(double) = {sin, up};
double f(const double *x, const double *y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += laws[i % 2](x[i]);
    return s;
}""",
        ("`a pointer` is called", "s += laws[i % 2](x[i]);", "`switch` over an integer"),
        """static double up(double x) { return x * x; }
static double law(long k, double x) { switch (k) { case 0: return sin(x); default: return up(x); } }
double f(const double *x, const double *y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += law(i % 2, x[i]);
    return s;
}"""),
    "local array": ("""double f(const double *x, const double *y, long n) {
    double u[4000], s = 0;
    for (long i = 0; i < n; i++) u[i] = x[i] * sin(x[i]);
    for (long i = 0; i < n; i++) s += u[i] * u[n - 1 - i];
    return s;
}""",
        ("a local array would take too much", "", "one from malloc"),
        """double f(const double *x, const double *y, long n) {
    double *u = malloc(n * sizeof(double)), s = 0;
    for (long i = 0; i < n; i++) u[i] = x[i] * sin(x[i]);
    for (long i = 0; i < n; i++) s += u[i] * u[n - 1 - i];
    free(u);
    return s;
}"""),
    "pointer that moves": ("""double f(const double *x, const double *y, long n) {
    const double *p = x + (x[0] > 0);
    double s = 0;
    for (long i = 0; i + 1 < n; i++, p++) s += sin(*p) * exp(*p);
    return s;
}""",
        ("an address varies", "s += sin(*p) * exp(*p);", "choose an index"),
        """double f(const double *x, const double *y, long n) {
    double s = 0;
    long from = x[0] > 0;
    for (long i = 0; i + 1 < n; i++) s += sin(x[from + i]) * exp(x[from + i]);
    return s;
}"""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_way_out_leads_to_lanes(name: str) -> None:
    before, (reason, line, change), after = CASES[name]
    x, y = np.random.default_rng(0).normal(size=(2, 64, 6))
    kernel = irgrad.load(HEAD + before).kernel("f", SIGNATURE)
    told = explain_batch(batch(kernel), x, y)
    assert "sample after sample" in told and reason in told and "<string>:" in told and line in told
    assert change in told.split("to change: ")[1]
    other = irgrad.load(HEAD + after).kernel("f", SIGNATURE)
    for made in (batch(other), batch_grad(other, wrt="x")):
        told = explain_batch(made, x, y)
        assert "samples side by side in vectors" in told and "to change" not in told
    np.testing.assert_allclose(batch(other)(x, y), [kernel(*row) for row in zip(x, y, strict=True)], rtol=1e-12)


def test_lanes_that_were_asked_for_name_the_line() -> None:
    kernel = irgrad.load(HEAD + CASES["exit of a loop"][0]).kernel("f", SIGNATURE)
    with pytest.raises(irgrad.Unsupported, match=r"in +<string>:7:") as caught:
        batch(kernel, width=4)(np.ones((4, 6)), np.ones((4, 6)))
    assert "not with `break`" in caught.value.fix and 'width="auto"' in caught.value.fix
