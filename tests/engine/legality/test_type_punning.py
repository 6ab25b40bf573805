"""Floats read as other floats are refused in both modes; packed pairs, copies and tagged unions are not."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad import engine

FLAGS = ["-fno-strict-aliasing"]
PUNS = {
    "halves of a double": "double d = x[0] * x[1]; float f[2]; memcpy(f, &d, 8); return f[1] * x[1];",
    "a buffer of doubles as singles": "const float *f = (const float *)x; return f[1] * x[1] + f[0];",
    "half of a double replaced": """
        union { double d; float f[2]; } u;
        u.d = x[0] * x[1]; u.f[0] = 1;
        return u.d * x[0];""",
}
FINE = {
    "a tagged union": """
        union { double d; float f; } u; double r;
        if (x[0] > 0) { u.d = x[0] * 2; r = u.d; } else { u.f = (float)x[1]; r = u.f; }
        return r * r;""",
    "a lane of a vector replaced": """
        typedef double two __attribute__((vector_size(16)));
        union { double d[2]; two v; } u;
        double *volatile at = u.d, *lanes = at;
        lanes[1] = x[1] * x[1]; lanes[0] = x[0] * x[1];
        two w = *(two *)lanes;
        return w[0] * w[1] + w[0];""",
    "bits copied": """
        double a = x[0] * x[1], b; unsigned long l;
        memcpy(&l, &a, 8); memcpy(&b, &l, 8);
        return 4 * b * b;""",
}


def _kernel(body: str) -> irgrad.Kernel:
    source = f"#include <string.h>\ndouble f(const double *x) {{ {body} }}"
    return irgrad.load(source, flags=FLAGS).kernel("f", "f64(f64[2] x)")


@pytest.mark.parametrize("name", PUNS)
def test_refused(name: str) -> None:
    kernel, x = _kernel(PUNS[name]), np.array([1.3, 0.7])
    for derivative in (lambda: engine.grad(kernel)(x), lambda: engine.jvp(kernel, (x,), (x,))):
        with pytest.raises(irgrad.IRGradError, match=r"bits of an active|`double` is used as `float`") as e:
            derivative()
        assert "<string>" in str(e.value)
        assert "to fix" in str(e.value)


@pytest.mark.parametrize("name", FINE)
def test_allowed(name: str) -> None:
    kernel, x = _kernel(FINE[name]), np.array([1.3, 0.7])
    h = 1e-6
    want = [(kernel(x + h * e) - kernel(x - h * e)) / (2 * h) for e in np.eye(2)]
    assert np.allclose(engine.grad(kernel)(x), want, rtol=1e-6, atol=1e-8)


def test_floats_where_everybody_else_sees_integers() -> None:
    """Each int of a struct is seen at its own place, which is more precise than the index of the floats: a float access
    is left without any place that is a float, and nobody knows what it means."""
    kernel = irgrad.load("""
    #include <stdlib.h>
    typedef struct { int a, b; double c; } row;
    double f(const double *x, long n, int z) {
        row *r = malloc(n * sizeof *r);
        double *all = (double *)r, s = 0;
        for (long i = 0; i < n; i++) { r[i].a = z + (int)i; r[i].b = 3; r[i].c = x[i]; s += r[i].a * r[i].b; }
        for (long i = 0; i < n; i++) { all[2 * i] = x[i] * x[i]; s += all[2 * i] * r[i].c; }
        free(r);
        return s;
    }""").kernel("f", "f64(f64[n] x, i64 n, i32 z)")
    with pytest.raises(irgrad.IRGradError, match=r"used as integers is used as `double`|is overwritten"):
        engine.grad(kernel)(np.ones(3), 1)
