"""Fifty wrong uses: what is written, what the message says, and what is written when one follows it.

Expressions see `ig`, `np`, `jax`, `run` (the command line: its exit code and what it printed), and the kernels below.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import NamedTuple

SETUP = r'''
import jax
import numpy as np

import irgrad as ig

jax.config.update("jax_enable_x64", True)
lib = ig.load("""
#include <math.h>
double sq(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i]; return s; }
void twice(double *x, long n) { for (long i = 0; i < n; i++) x[i] *= 2; }
void copy(const double *x, double *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }
double form(const double *A, const double *b, int n) {
    double s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) s += A[i * n + j] * b[i] * b[j];
    return s;
}
int solve(const double *a, double *x, long n) {
    for (long i = 0; i < n; i++) { if (a[i] == 0) return 1; x[i] = 1 / a[i]; }
    return 0;
}
double pick(const double *x, long k) { return x[k] * x[k]; }
double scale(double a, const double *x, long n) { return a * sq(x, n); }
""")
SQ, COPY = "f64(f64[n] x, i64 n)", "void(f64[n] x, out f64[n] y, i64 n)"
sq, copy, solve = lib.kernel("sq", SQ), lib.kernel("copy", COPY), lib.kernel("solve", "i32(f64[n] a, out f64[n] x, i64 n)")
scale = lib.kernel("scale", "f64(f64 a, f64[n] x, i64 n)")
x = np.arange(1.0, 4)
bodies = ig.load("struct body { double m, v; }; double momentum(const struct body *b) { return b->m * b->v; }").kernel(
    "momentum", "struct body { f64 m; f64 v; }; f64(body[] b)")
'''


class Wrong(NamedTuple):
    """kind: the error's class; says: part of the message; repaired: the same, as the message advises."""

    wrong: str
    kind: str
    says: str
    repaired: str


TABLE = [
    # names
    Wrong('lib.kernel("sqq", SQ)', "LoadError", 'lib.kernel("sq")', 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("energy", SQ)', "LoadError", "choose one of lib.functions()", "lib.functions()"),
    Wrong('ig.grad(sq, wrt="y")', "SignatureError", "choose one of x", 'ig.grad(sq, wrt="x")'),
    Wrong("sq(xx=x)", "SignatureError", "did you mean `x`", "sq(x=x)"),
    Wrong('ig.grad(copy, of="z")', "SignatureError", "choose one of y", 'ig.jac_sparse(copy, of="y")'),
    Wrong('ig.jac_sparse(copy, of="z")', "SignatureError", 'of="y"', 'ig.jac_sparse(copy, of="y")'),
    Wrong('ig.grad(sq, wrt="n")', "SignatureError", "there is no argument `n`", 'ig.grad(sq, wrt="x")'),
    Wrong("ig.grad(sq, argnums=3)", "SignatureError", "a position from 0 to 0", "ig.grad(sq, argnums=0)"),
    Wrong('ig.grad(sq, wrt="x", argnums=0)', "SignatureError", "give one of them", "ig.grad(sq, argnums=0)"),
    Wrong('ig.grad(sq, wrt=("x", "x"))', "SignatureError", "name every argument once", 'ig.grad(sq, wrt=("x",))'),
    Wrong("ig.grad(sq, wrt=())", "SignatureError", "name at least one argument", 'ig.grad(sq, wrt="x")'),
    Wrong('ig.grad("sq")', "SignatureError", 'lib.kernel("name"', "ig.grad(sq)"),
    Wrong('ig.explain_tape(sq, m=3)', "SignatureError", "the integer arguments are n", "ig.explain_tape(sq, n=3)"),
    # signatures
    Wrong('lib.kernel("sq")', "SignatureError", '"f64(f64[n] x, i64 n)"', 'lib.kernel("sq", "f64(f64[n] x, i64 n)")'),
    Wrong('lib.kernel("sq", "float64(f64[n] x, i64 n)")', "SignatureError", "write `f64`", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(double[n] x, i64 n)")', "SignatureError", "write `f64`", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(f64 x[n], i64 n)")', "SignatureError", "`f64[...] x`", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(f64 *x, i64 n)")', "SignatureError", "a bare pointer", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(f64[n] x, i64 n")', "SignatureError", "expected", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(f64[n] x)")', "SignatureError", "f64(f64[n] x, i64 n)", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(f32[n] x, i64 n)")(np.ones(3, np.float32))', "SignatureError", "f64", "sq(x)"),
    Wrong('lib.kernel("sq", "f64(f64[n] x, i32 n)")', "SignatureError", "`i64 n`", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f32(f64[n] x, i64 n)")', "SignatureError", "`f64(`", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("sq", "f64(f64 x, i64 n)")', "SignatureError", "`f64[n] x`", 'lib.kernel("sq", SQ)'),
    Wrong('lib.kernel("twice", "void(f64[n] x, i64 n)")', "SignatureError", "declare it `inout f64[n] x`",
          'lib.kernel("twice", "void(inout f64[n] x, i64 n)")(x)'),
    Wrong('lib.kernel("copy", "void(out f64[n] x, out f64[n] y, i64 n)")(n=3)', "SignatureError", "declare it `f64[n] x`",
          'lib.kernel("copy", COPY)(x)'),
    Wrong('lib.kernel("pick", "f64(f64[n] x, i64 k)")(x)', "SignatureError", "argument `k` is missing",
          'lib.kernel("pick", "f64(f64[n] x, i64 k)")(x, 1)'),
    Wrong('lib.kernel("sq", 3)', "SignatureError", 'lib.kernel("name"', 'lib.kernel("sq", ig.Signature(SQ))'),
    Wrong('lib.kernel("sq", SQ, errors={1: "no"})', "SignatureError", "integer", "sq(x)"),
    Wrong('lib.kernel("solve", "i32(f64[n] a, out f64[n] x, i64 n)", errors={0: "fine"})', "SignatureError", "0",
          'lib.kernel("solve", "i32(f64[n] a, out f64[n] x, i64 n)", errors={1: "singular"})'),
    Wrong('lib.kernel("sq", SQ, tape="keep")', "IRGradError", 'tape="store"', 'lib.kernel("sq", SQ, tape="store")'),
    # shapes and types of a call
    Wrong("sq(x.astype(np.float32))", "DTypeError", "x.astype(np.float64)", "sq(x.astype(np.float32).astype(np.float64))"),
    Wrong("sq(np.arange(3))", "DTypeError", "x.astype(np.float64)", "sq(np.arange(3).astype(np.float64))"),
    Wrong("sq(x.reshape(3, 1))", "ShapeError", "(3, 1)", "sq(x.reshape(3))"),
    Wrong("sq(x, n=3)", "SignatureError", "filled from the shapes", "sq(x)"),
    Wrong("sq()", "SignatureError", "argument `x` is missing", "sq(x)"),
    Wrong("sq(x, x)", "SignatureError", "arguments", "sq(x)"),
    Wrong("sq([[1.0], [2.0, 3.0]])", "ShapeError", "rows of one length", "sq([1.0, 2.0, 3.0])"),
    Wrong('scale("2", x)', "DTypeError", "float(a)", 'scale(float("2"), x)'),
    Wrong("scale(x, x)", "ShapeError", "pass a number", "scale(2.0, x)"),
    # derivatives
    Wrong("ig.grad(copy)", "ActivityError", "vjp(kernel, *args)", "ig.vjp(copy, x)"),
    Wrong("ig.jvp(copy, (x,), ())", "SignatureError", "one per argument", "ig.jvp(copy, (x,), (x,))"),
    Wrong("ig.jvp(copy, (x,))", "SignatureError", "jvp(kernel, primals, tangents)", "ig.jvp(copy, (x,), (x,))"),
    Wrong("ig.jvp(copy, (x,), (np.ones(2),))", "ShapeError", "pass an array of shape (3,)", "ig.jvp(copy, (x,), (np.ones(3),))"),
    Wrong("ig.vjp(copy, x)[1](np.ones(3, np.float32))", "DTypeError", "np.float64", "ig.vjp(copy, x)[1](np.ones(3))"),
    Wrong("ig.jacfwd(copy, width=100)", "SignatureError", 'width="auto"', 'ig.jacfwd(copy, width="auto")'),
    Wrong('ig.jac_sparse(copy, mode="both")', "SignatureError", 'mode="forward"', 'ig.jac_sparse(copy, mode="forward")'),
    Wrong("ig.jac_sparse(copy, np.eye(4))(x)", "ShapeError", "one row for each element", "ig.jac_sparse(copy, np.eye(3))(x)"),
    Wrong("ig.jac_sparse(copy, np.zeros((3, 3)))(x)", "IRGradError", "(0, 0), (1, 1), (2, 2)", "ig.jac_sparse(copy)(x)"),
    Wrong("jax.jit(ig.grad(sq))(x)", "SignatureError", "jax.grad(kernel)", "jax.jit(jax.grad(sq))(x)"),
    # batches
    Wrong('ig.batch(sq, layout="rows")', "SignatureError", "'soa'", 'ig.batch(sq, layout="soa")'),
    Wrong("ig.batch(sq)(x)", "ShapeError", "axis", "ig.batch(sq)(np.stack([x, x]))"),
    Wrong('ig.batch(sq, in_axes={"y": 0})([x, x])', "SignatureError", "`y`", 'ig.batch(sq, in_axes={"x": 0})(np.stack([x, x]))'),
    Wrong('ig.batch(sq, reduce="mean")', "SignatureError", "'sum'", 'ig.batch(sq, reduce="sum")'),
    # sources
    Wrong('ig.load("nonsense.zig")', "LoadError", "name an existing file", 'ig.load("model.c")'),
    Wrong('ig.load("modle.c")', "LoadError", "model.c", 'ig.load("model.c")'),
    Wrong('ig.load("double f(double x) { return x }")', "CompileError", "expected ';'", 'ig.load("double f(double x) { return x; }")'),
    Wrong('ig.load("model.c", language="pascal")', "LoadError", '"c"', 'ig.load("model.c", language="c")'),
    Wrong('ig.load("model.c", opt="O9")', "LoadError", '"O3"', 'ig.load("model.c", opt="O3")'),
    Wrong('ig.load("model.c", cpu="skylake")', "IRGradError", '"baseline"', 'ig.load("model.c", cpu="baseline")'),
    Wrong('ig.load("model.c", link=["nolib.so"])', "LoadError", "nolib.so", 'ig.load("model.c", link=["libown.so"])'),
    Wrong("ig.load(3)", "LoadError", 'load("file.c")', 'ig.load("model.c")'),
    Wrong("ig.load([])", "LoadError", 'load("file.c")', 'ig.load(["model.c"])'),
    # what has no derivative
    Wrong('ig.grad(ig.load("double own(double);\\ndouble f(double x) { return own(x); }", link=["./libown.so"]).kernel("f"))(1.0)',
          "MissingRuleError", 'load(..., link=["FILE.c"])',
          'ig.grad(ig.load("double own(double);\\ndouble f(double x) { return own(x); }", link=["own.c"]).kernel("f"))(1.0)'),
    Wrong('ig.load(ASM).kernel("f")(4.0)', "IRInvalid", "a shared library of its own",
          'ig.load("double own(double);\\ndouble f(double x) { return own(x); }", link=["libown.so"]).kernel("f")(1.0)'),
    # the command line
    Wrong('run("check", "model.c", "modle")', "", "there is no function `modle`", 'run("check", "model.c", "model")'),
    Wrong('run("check", "model.c", "total")', "", "--sig 'f64(f64[n] x, i64 n)'",
          'run("check", "model.c", "total", "--sig", "f64(f64[n] x, i64 n)")'),
    Wrong('run("check", "model.c", "total", "--sig", SQ, "--size", "m=4")', "", "--size n=4",
          'run("check", "model.c", "total", "--sig", SQ, "--size", "n=4")'),
    Wrong('run("check", "model.c", "model", "--range", "x=2:1")', "", "--range x=1:2",
          'run("check", "model.c", "model", "--range", "x=1:2")'),
    Wrong('run("check", "model.c", "model", "--set", "y=2")', "", "`x`", 'run("check", "model.c", "model", "--set", "x=2")'),
    Wrong('run("grad", "model.c", "model", "--wrt", "x", "-o", "g.exe")', "", ".so",
          'run("grad", "model.c", "model", "--wrt", "x", "-o", "g.so")'),
    Wrong('run("explain", "model.c", "total", "--sig", SQ, "--size", "n")', "", "--size n=16",
          'run("explain", "model.c", "total", "--sig", SQ, "--size", "n=16")'),
    Wrong('run("rules", "show")', "", "irgrad rules show sin", 'run("rules", "show", "sin")'),
    Wrong('run("cc", "-c", "-fsanitize=address", "model.c")', "", "build without it", 'run("cc", "-c", "model.c")'),
    Wrong('run("opt", "-p", "nonsense", "model.c")', "", "irgrad opt --list", 'run("opt", "--list")'),
    Wrong('run("chekc", "model.c", "model")', "", "did you mean check?", 'run("check", "model.c", "model")'),
    Wrong('run("check", "model.c", "total", "--sgi", SQ)', "", "did you mean --sig?", 'run("check", "model.c", "total", "--sig", SQ)'),
    Wrong('run("check", "model.c", "total", "--sig", SQ, "--set", "n=4")', "", "--size n=16",
          'run("check", "model.c", "total", "--sig", SQ, "--size", "n=16")'),
    Wrong('run("grad", "model.c", "model", "--wrt", "x", "-o", "g")', "", "the output has no suffix",
          'run("grad", "model.c", "model", "--wrt", "x", "-o", "g.o")'),
    Wrong('run("grad", "mod.c", "model", "--wrt", "x", "-o", "g.o")', "", "name `model.c`", 'run("grad", "model.c", "model", "--wrt", "x", "-o", "g.o")'),
    Wrong('run("grad", "outside.c", "f", "--wrt", "x", "-o", "g.o")', "", "--rules FILE.py",
          'run("grad", "outside.c", "f", "--wrt", "x", "-o", "g.o", "--rules", "outside.py")'),
    Wrong('run("grad", "outside.c", "f", "--wrt", "x", "-o", "g.o")[:]', "", "--link 'FILE.c'",
          'run("grad", "outside.c", "f", "--wrt", "x", "-o", "g.o", "--link", "inside.c")'),
    Wrong('lib.kernel("twice", "void(scratch f64[n] x, i64 n)")', "SignatureError", "`inout` where it is read before",
          'lib.kernel("twice", "void(inout f64[n] x, i64 n)")'),
    Wrong('ig.load("")', "LoadError", 'load("file.c")', 'ig.load("own.c")'),
    Wrong('ig.load("double h_(double); double f(double x) { return h_(x); }", link="-lnothere")', "LoadError", "install it, or name its file",
          'ig.load("double own(double); double f(double x) { return own(x); }", link="./libown.so").kernel("f")(2.0)'),
    Wrong('ig.batch_grad(bodies, in_axes=None)', "SignatureError", "its attribute `kernel`", 'ig.batch_grad(bodies.kernel, in_axes=0)'),
    Wrong('ig.primal("sin", "f64(f64 x)")', "LoadError", "declare a function of another name", 'ig.primal("own_sin", "f64(f64 x)")(np.sin)'),
    Wrong('ig.primal("own_cos", np.cos)', "SignatureError", '@irgrad.primal("own_cos", "f64(f64 x)")', 'ig.primal("own_cos", "f64(f64 x)")(np.cos)'),
    Wrong('ig.grad(lib.kernel("solve", "i32(f64[n] a, out f64[n] x, i64 n)"), wrt="a", of="x")', "ActivityError", "jacrev(kernel)",
          'ig.jacrev(lib.kernel("solve", "i32(f64[n] a, out f64[n] x, i64 n)"))(x)'),
    Wrong('ig.grad(ig.load("int f(double x) { return x > 0; }").kernel("f"))', "ActivityError", "return a floating-point number",
          'ig.grad(ig.load("double f(double x) { return x > 0; }").kernel("f"))(1.0)'),
    Wrong("ig.jvp(sq, x, x)", "SignatureError", "jvp(kernel, (x,), (t,))", "ig.jvp(sq, (np.ones(4),), (np.ones(4),))"),
    Wrong("ig.hvp(sq, np.ones(4), np.ones(4))", "SignatureError", "hvp(kernel, (x,), t)", "ig.hvp(sq, (np.ones(4),), np.ones(4))"),
    Wrong("ig.grad(sq, x)", "SignatureError", "grad(kernel)(*arguments)", "ig.grad(sq)(x)"),
    Wrong("ig.grad(sq(x))", "SignatureError", "not grad(kernel(*arguments))", "ig.grad(sq)(x)[:]"),
    Wrong('lib.kernel("sq", "f64(f64[-1] x, i64 n)")', "SignatureError", "`f64[n] x`", 'lib.kernel("sq", SQ)(x)'),
]  # fmt: skip
