"""Operators of parallel constructs: their parts, sums and products, what is refused."""

from __future__ import annotations

import pytest

import irgrad as ig
from irgrad.engine.constructs.operators import Operator

LIB = ig.load(r"""
double add(double a, double b) { return a + b; }
double plus(double a, double b) { double t = b; return t + a; }
double mul(double a, double b) { return a * b; }
double twice(double a, double b) { return a + a; }
double minus(double a, double b) { return a - b; }
long sum(long a, long b) { return a + b; }
void four(const double *a, const double *b, double *c) { for (int i = 0; i < 4; i++) c[i] = a[i] + b[i]; }
void any(const double *a, const double *b, double *c, long n) { for (long i = 0; i < n; i++) c[i] = a[i] + b[i]; }
double one(double a) { return a; }
float mixed(double a, double b) { return a + b; }
double inplace(double *a, double b) { return *a += b; }
int status(double a, double b, double *c) { *c = a + b; return 0; }
_Bool either(_Bool a, _Bool b) { return a || b; }
""")


@pytest.mark.parametrize(("name", "found"), [("add", "fadd"), ("plus", "fadd"), ("mul", "fmul"), ("twice", ""),
                                             ("minus", ""), ("sum", "")])  # fmt: skip
def test_sums_and_products_are_recognised(name: str, found: str) -> None:
    assert Operator(LIB.kernel(name)).recognised == found


def test_parts() -> None:
    operator = Operator(LIB.kernel("four", "void(f64[2,2] a, f64[2,2] b, out f64[2,2] c)"))
    (part,) = operator.parts
    assert (part.name, part.result, part.shape, part.count, part.memory) == ("b", "c", (2, 2), 4, "[4 x double]")
    assert operator.shared == ()
    assert operator.recognised == ""


@pytest.mark.parametrize(("name", "signature", "because"), [
    ("one", "f64(f64 a)", "it has 1 inputs and 1 outputs"),
    ("mixed", "f32(f64 a, f64 b)", "its sides and its result differ"),
    ("any", "void(f64[n] a, f64[n] b, out f64[n] c, i64 n)", "is not constant"),
    ("inplace", "f64(inout f64[] a, f64 b)", "overwrites an argument"),
    ("status", "status i32(f64 a, f64 b, out f64[] c)", "reports a status"),
    ("either", "bool(bool a, bool b)", "is a bool"),
])  # fmt: skip
def test_refused(name: str, signature: str, because: str) -> None:
    with pytest.raises(ig.SignatureError, match="no operator") as caught:
        Operator(LIB.kernel(name, signature))
    assert because in str(caught.value)
    assert "to fix" in str(caught.value)


def test_no_kernel() -> None:
    with pytest.raises(ig.SignatureError, match="has to be a kernel"):
        ig.parallel.scan(lambda a, b: a + b)
    with pytest.raises(ig.SignatureError, match="has to be a kernel"):
        ig.parallel.map(max)


def test_other_words_are_refused() -> None:
    add, four = LIB.kernel("add"), LIB.kernel("four", "void(f64[4] a, f64[4] b, out f64[4] c)")
    for call in (lambda: ig.parallel.reduce(add, "zero"), lambda: ig.parallel.reduce(add, [0.0, 1.0]),
                 lambda: ig.parallel.reduce(four, (0.0, 1.0)), lambda: ig.parallel.histogram(add, 0.0, -1),
                 lambda: ig.parallel.histogram(add, 0.0, 2.0), lambda: ig.parallel.histogram(add, 0.0, 2, index="f64"),
                 lambda: ig.parallel.scatter("complex")):  # type: ignore[arg-type] # fmt: skip
        with pytest.raises(ig.SignatureError):
            call()  # type: ignore[no-untyped-call]
