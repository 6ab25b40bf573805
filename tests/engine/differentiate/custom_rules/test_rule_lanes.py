"""Rules in derivatives of several tangents or cotangents: for all lanes at once, or one lane after the other."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad.engine import grad, jacfwd, jacrev, multi_jvp, multi_vjp
from irgrad.engine.functions.strips import OneLane
from irgrad.rules import Active, Const, Duplicated, Ptr, extern, f64, foreign, layer, rule, which
from irgrad.rules.errors import OneAtATime, RuleError, Unsupported

WIDTHS = (1, 2, 3, 4, 8, 16)
N = 3

# x = A^-1 b; `scale` is a number, `log` counts calls of the derivatives: what they add to its first lane
SOLVE = """
#include <stdlib.h>
#include <string.h>
static void lu(double *F, long n) {
  for (long k = 0; k < n; k++)
    for (long i = k + 1; i < n; i++) {
      F[i * n + k] /= F[k * n + k];
      for (long j = k + 1; j < n; j++) F[i * n + j] -= F[i * n + k] * F[k * n + j];
    }
}
static void forwards(const double *F, double *x, long n, long w) {
  for (long i = 0; i < n; i++)
    for (long k = 0; k < i; k++) for (long j = 0; j < w; j++) x[i * w + j] -= F[i * n + k] * x[k * w + j];
  for (long i = n - 1; i >= 0; i--) {
    for (long k = i + 1; k < n; k++) for (long j = 0; j < w; j++) x[i * w + j] -= F[i * n + k] * x[k * w + j];
    for (long j = 0; j < w; j++) x[i * w + j] /= F[i * n + i];
  }
}
static void backwards(const double *F, double *x, long n, long w) {
  for (long i = 0; i < n; i++) {
    for (long k = 0; k < i; k++) for (long j = 0; j < w; j++) x[i * w + j] -= F[k * n + i] * x[k * w + j];
    for (long j = 0; j < w; j++) x[i * w + j] /= F[i * n + i];
  }
  for (long i = n - 1; i >= 0; i--)
    for (long k = i + 1; k < n; k++) for (long j = 0; j < w; j++) x[i * w + j] -= F[k * n + i] * x[k * w + j];
}
static double room[1 << 16];
static long used;
double solve(const double *A, const double *b, double *x, long n, double scale, const double *log) {
  double *F = room + used, s = 0;
  memcpy(F, A, n * n * sizeof *F);
  for (long i = 0; i < n; i++) x[i] = scale * b[i];
  lu(F, n);
  forwards(F, x, n, 1);
  for (long i = 0; i < n; i++) s += x[i];
  return s;
}
double solve_augmented(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                       double scale, const double *log, double *log_d, void **tape, long lanes) {
  double *F = room + used, s = 0;
  used = (used + n * n + n) % (1 << 15);
  memcpy(F, A, n * n * sizeof *F);
  for (long i = 0; i < n; i++) x[i] = scale * b[i];
  lu(F, n);
  forwards(F, x, n, 1);
  for (long i = 0; i < n; i++) s += F[n * n + i] = x[i];
  *tape = F;
  return s;
}
void solve_reverse(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                   double scale, double *scale_d, const double *log, double *log_d, const double *y_d, void *tape,
                   long lanes) {
  const double *F = tape, *kept = F + n * n;
  for (long i = 0; i < n; i++) for (long j = 0; j < lanes; j++) x_d[i * lanes + j] += y_d[j];
  backwards(F, x_d, n, lanes);
  for (long j = 0; j < lanes; j++) {
    for (long i = 0; i < n; i++) {
      b_d[i * lanes + j] += scale * x_d[i * lanes + j];
      scale_d[j] += b[i] * x_d[i * lanes + j];
      for (long k = 0; k < n; k++) A_d[(i * n + k) * lanes + j] -= x_d[i * lanes + j] * kept[k];
      x_d[i * lanes + j] = 0;
    }
  }
  log_d[0] += 1;
}
double solve_forward(const double *A, const double *A_d, const double *b, const double *b_d, double *x, double *x_d,
                     long n, double scale, const double *scale_d, const double *log, const double *log_d, double *y_d,
                     long lanes) {
  double *F = room + used, s = solve(A, b, x, n, scale, log);
  for (long j = 0; j < lanes; j++) y_d[j] = 0;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < lanes; j++) {
      double t = scale * b_d[i * lanes + j] + scale_d[j] * b[i];
      for (long k = 0; k < n; k++) t -= A_d[(i * n + k) * lanes + j] * x[k];
      x_d[i * lanes + j] = t;
    }
  forwards(F, x_d, n, lanes);
  for (long i = 0; i < n; i++) for (long j = 0; j < lanes; j++) y_d[j] += x_d[i * lanes + j];
  y_d[0] += log_d[0];
  return s;
}
void solve_one(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
               double scale, double *scale_d, const double *log, double *log_d, double y_d) {
  double *F = room + used;
  memcpy(F, A, n * n * sizeof *F);
  lu(F, n);
  for (long i = 0; i < n; i++) x_d[i] += y_d;
  backwards(F, x_d, n, 1);
  for (long i = 0; i < n; i++) {
    b_d[i] += scale * x_d[i];
    *scale_d += b[i] * x_d[i];
    for (long k = 0; k < n; k++) A_d[i * n + k] -= x_d[i] * x[k];
    x_d[i] = 0;
  }
  log_d[0] += 100;
}
void kernel(const double *A, const double *b, double *out, long n, double scale, const double *log) {
  double x[3][8], y[2][8];
  for (long i = 0; i < n; i++) x[0][i] = b[i] * b[i];
  for (int r = 0; r < 2; r++) {
    double s = solve(A, x[r], y[r], n, scale + r, log);
    for (long i = 0; i < n; i++) x[r + 1][i] = y[r][i] * y[r][i] + s;
  }
  for (long i = 0; i < n; i++) out[i] = x[2][i];
}
"""
PROTOTYPE = "f64(f64[n,n] A, f64[n] b, out f64[n] x, i64 n, f64 scale, f64[1] log)"
POINTER = Duplicated[Ptr[f64]]
RNG = np.random.default_rng(4)
A, B, SCALE, LOG = RNG.normal(size=(N, N)) + 4 * np.eye(N), RNG.normal(size=N), 1.25, np.zeros(1)


def _out(a: Any, b: Any, scale: Any) -> Any:
    x = b * b
    for r in range(2):
        y = np.linalg.solve(a, (scale + r) * x)
        x = y * y + y.sum()
    return x


def _wanted() -> tuple[Any, Any, Any]:
    """The Jacobians in A, b and scale, by complex steps."""
    tiny, parts = 1e-100, [A.astype(complex), B.astype(complex), np.array(SCALE, complex)]
    found = []
    for part in parts:
        columns = np.empty((N, part.size))
        for e in range(part.size):
            part.reshape(-1)[e] += 1j * tiny
            columns[:, e] = _out(*parts).imag / tiny
            part.reshape(-1)[e] = part.reshape(-1)[e].real
        found.append(columns.reshape(N, *part.shape))
    return tuple(found)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("lanes") / "solve.c"
    path.write_text(SOLVE)
    signature = "void(f64[n,n] A, f64[n] b, out f64[n] out, i64 n, f64 scale, f64[1] log)"
    return irgrad.load(path).kernel("kernel", signature)


def _for_all_lanes(width: Any = "any") -> None:
    foreign(extern("solve", PROTOTYPE), augmented="solve_augmented", reverse="solve_reverse", forward="solve_forward",
            width=width)  # fmt: skip


def _for_one() -> None:
    foreign(extern("solve", PROTOTYPE), reverse="solve_one")


def _pulled(kernel: Any, cotangents: Any, width: int) -> Any:
    _, pull = multi_vjp(kernel, A, B, SCALE, LOG, wrt=("A", "b", "scale", "log"), width=width)
    return pull(cotangents)


def _check_reverse(found: Any, cotangents: Any) -> None:
    for got, wanted in zip(found, _wanted(), strict=False):
        np.testing.assert_allclose(got, np.tensordot(cotangents, wanted, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", fast(1, WIDTHS))
def test_functions_in_c_for_all_lanes(kernel: Any, width: int) -> None:
    """One call for all lanes of each call of the kernel: it adds to the first lane alone."""
    count = 2 * width + 1
    cotangents = RNG.normal(size=(count, N))
    directions = (RNG.normal(size=(count, N, N)), RNG.normal(size=(count, N)), RNG.normal(size=count),
                  np.zeros((count, 1)))  # fmt: skip
    with layer():
        _for_all_lanes()
        found = _pulled(kernel, cotangents, width)
        _, moved = multi_jvp(kernel, (A, B, SCALE, LOG), directions, width=width)
    _check_reverse(found, cotangents)
    np.testing.assert_array_equal(found[3][:, 0], [2.0 if i % width == 0 else 0.0 for i in range(count)])
    by_a, by_b, by_scale = _wanted()
    wanted = np.einsum("iab,kab->ki", by_a, directions[0]) + directions[1] @ by_b.T + np.outer(directions[2], by_scale)
    np.testing.assert_allclose(moved, wanted, rtol=1e-12, atol=1e-12)


def test_forward_functions_are_called_once_for_all_lanes(kernel: Any) -> None:
    """The tangent of `log` in the first lane is added to the result there, once in each call: to all of out."""
    with layer():
        _for_all_lanes()
        zeros = [np.zeros((8, *np.shape(v))) for v in (A, B, SCALE)]
        _, plain = multi_jvp(kernel, (A, B, SCALE, LOG), (*zeros, np.zeros((8, 1))), width=4)
        _, moved = multi_jvp(kernel, (A, B, SCALE, LOG), (*zeros, np.ones((8, 1))), width=4)
    np.testing.assert_array_equal(plain, 0)
    assert [bool(row.any()) for row in moved] == [True, False, False, False] * 2


@pytest.mark.parametrize("width", (1, 3, 8))
def test_a_rule_for_one_lane_is_run_for_each(kernel: Any, width: int) -> None:
    cotangents = RNG.normal(size=(5, N))
    with layer():
        _for_one()
        assert not kernel.primal.pullback((0, 1, 2, 4, 5), width).stage.note
        found = _pulled(kernel, cotangents, width)
    _check_reverse(found, cotangents)
    np.testing.assert_array_equal(found[3], np.full((5, 1), 200.0))


@pytest.mark.parametrize("rules", ["all", "one"])
@pytest.mark.parametrize("wrt", fast(1, ["A", "b", "scale"]))
def test_one_function_serves_every_activity(kernel: Any, wrt: str, rules: str) -> None:
    """Where an argument has no derivative the functions in C get zeros, and null when they make the call."""
    wanted = dict(zip(("A", "b", "scale"), _wanted(), strict=True))[wrt]
    with layer():
        (_for_all_lanes if rules == "all" else _for_one)()
        for jacobian in (jacfwd, jacrev) if rules == "all" else (jacrev,):
            for width in (1, 4):
                found = jacobian(kernel, wrt=wrt, width=width)(A, B, SCALE, LOG)
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_the_rule_for_all_lanes_comes_first_above_width_one(kernel: Any) -> None:
    cotangents = np.eye(N)
    with layer():
        _for_one()
        _for_all_lanes()
        for width, first, others in ((1, 200.0, 200.0), (4, 2.0, 0.0)):
            found = _pulled(kernel, cotangents, width)
            _check_reverse(found, cotangents)
            assert found[3][0, 0] == first and found[3][1, 0] == others
        types = (POINTER, POINTER, POINTER, Const, Active[f64], POINTER)
        chosen = [which("solve", *types, ret=Active[f64], width=w).rule for w in (1, 4)]
    assert [r is not None and r.lanes for r in chosen] == [False, True]


def test_a_rule_for_one_width(kernel: Any) -> None:
    cotangents = np.eye(N)
    with layer():
        _for_one()
        _for_all_lanes(width=4)
        counted = [_pulled(kernel, cotangents, width)[3][:, 0].tolist() for width in (2, 4)]
    assert counted == [[200.0] * 3, [2.0, 0.0, 0.0]]


def test_jacobians_share_the_primal_without_a_warning(kernel: Any, recwarn: pytest.WarningsRecorder) -> None:
    with layer():
        _for_all_lanes()
        for jacobian in (jacfwd, jacrev):
            found = jacobian(kernel, wrt=("A", "b", "scale", "log"))(A, B, SCALE, LOG)
            for got, wanted in zip(found, _wanted(), strict=False):
                np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
        assert not kernel.primal.lane_by_lane
    assert not [w for w in recwarn if issubclass(w.category, OneLane)]


# -- bodies with ctx ---------------------------------------------------------------------------------------------------

INNER = """
double inner(const double *x, const double *M, double *out, long n, double s) {
  double total = 0;
  for (long i = 0; i < n; i++) {
    out[i] = 0;
    for (long j = 0; j < n; j++) out[i] += s * M[i * n + j] * x[j];
    total += s * x[i] * x[i];
  }
  return total;
}
void entry(const double *x, const double *M, double *out, long n, double s) {
  double y[8];
  double t = inner(x, M, y, n, s);
  t += inner(y, M, out, n, s * t);
  for (long i = 0; i < n; i++) out[i] += t * x[i];
}
void by_pointer(const double *x, double *out, long n) {
  for (long i = 0; i < n; i++) out[i] = x[i] * x[i];
}
void pointers(const double *x, double *out, long n) { by_pointer(x, out, n); }
void shared(double *x, long n) { by_pointer(x, x, n); }
void scaled(const double *a, double *x, long n) { for (long i = 0; i < n; i++) x[i] *= *a; }
void refs(const double *a, const double *x, double *out, long n) {
  for (long i = 0; i < n; i++) out[i] = x[i] * x[i];
  scaled(a, out, n);
}
"""
INNER_PROTOTYPE = "f64(f64[n] x, f64[n,n] M, out f64[n] out, i64 n, f64 s)"


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("inner") / "inner.c"
    path.write_text(INNER)
    return irgrad.load(path)


def _inner_rules(**options: Any) -> None:
    """The derivatives of `inner`: the same text for one lane and for all."""
    declared = extern("inner", INNER_PROTOTYPE)

    @rule(declared, mode="reverse", **options)
    def _(ctx: Any, x: Any, M: Any, out: Any, n: Any, s: Any) -> None:
        x.d += 2.0 * s * x.saved * ctx.result.d
        s.d += ctx.result.d * np.sum(x.saved * x.saved)
        s.d += np.sum(out.result * out.d) / s
        with ctx.for_range(n) as i, ctx.for_range(n) as j:
            if options:
                with ctx.for_range(ctx.width) as w:
                    x.d[j, w] += s * M.saved[i, j] * out.d[i, w]
                    M.d[i, j, w] += s * x.saved[j] * out.d[i, w]
            else:
                x.d[j] += s * M.saved[i, j] * out.d[i]
                M.d[i, j] += s * x.saved[j] * out.d[i]

    @rule(declared, mode="forward", **options)
    def _(ctx: Any, x: Any, M: Any, out: Any, n: Any, s: Any) -> None:
        ctx.result.d = 2.0 * s * np.sum(x.saved * x.d) + s.d * np.sum(x.saved * x.saved)
        out.d = out.result * s.d / s
        with ctx.for_range(n) as i, ctx.for_range(n) as j:
            if options:
                with ctx.for_range(ctx.width) as w:
                    out.d[i, w] += s * (M.saved[i, j] * x.d[j, w] + M.d[i, j, w] * x.saved[j])
            else:
                out.d[i] += s * (M.saved[i, j] * x.d[j] + M.d[i, j] * x.saved[j])


@pytest.mark.parametrize("width", (1, 3, 8))
@pytest.mark.parametrize("options", [{}, {"width": "any"}], ids=["each", "all"])
def test_bodies_with_ctx(inner: Any, options: Any, width: int) -> None:
    entry = inner.kernel("entry", "void(f64[n] x, f64[n,n] M, out f64[n] out, i64 n, f64 s)")
    x, m, s = RNG.normal(size=4), RNG.normal(size=(4, 4)), 0.75
    wanted = jacrev(entry, wrt=("x", "M", "s"), width=1)(x, m, s)  # of the bodies in C
    with layer():
        _inner_rules(**options)
        for jacobian in (jacfwd, jacrev):
            found = jacobian(entry, wrt=("x", "M", "s"), width=width)(x, m, s)
            for got, want in zip(found, wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_second_derivatives_of_a_rule_for_all_lanes(inner: Any, tmp_path: Path) -> None:
    """Tangents of a gradient whose reverse functions a rule wrote."""
    path = tmp_path / "energy.c"
    path.write_text(INNER + "double energy(const double *x, const double *M, long n, double s)"
                            "{ double y[8]; return inner(x, M, y, n, s) + y[0] * y[1]; }")  # fmt: skip
    energy = irgrad.load(path).kernel("energy", "f64(f64[n] x, f64[n,n] M, i64 n, f64 s)")
    x, m = RNG.normal(size=3), RNG.normal(size=(3, 3))
    wanted = irgrad.engine.hessian(energy, wrt="x")(x, m, 0.5)
    with layer():
        _inner_rules(width="any")
        np.testing.assert_allclose(irgrad.engine.hessian(energy, wrt="x")(x, m, 0.5), wanted, rtol=1e-12, atol=1e-12)


def test_pointers_of_unknown_extent(inner: Any) -> None:
    """All lanes: the shadow as it lies in memory. One: refused at that width, the directions run one by one."""
    pointers, x = inner.kernel("pointers", "void(f64[n] x, out f64[n] out, i64 n)"), RNG.normal(size=5)
    with layer():

        @rule("by_pointer", mode="reverse")
        def _(ctx: Any, x: Any, out: Any, n: Any) -> None:
            with ctx.for_range(n * ctx.width) as i:
                x.d[i] += 2.0 * x.saved(n)[i // ctx.width] * out.d[i]
                out.d[i] = 0.0

        with pytest.raises(OneAtATime, match="in a derivative of width 4") as caught:
            _ = pointers.primal.pullback((0, 1), 4).stage
        assert "the extent of argument 0 is not known" in caught.value.because
        assert 'width="any"' in caught.value.fix
        with pytest.warns(OneLane, match="`pointers` run one after the other"):
            np.testing.assert_allclose(jacrev(pointers, width=4)(x), np.diag(2 * x), rtol=1e-15)
        rule("by_pointer", mode="reverse", width="any")(_)
        np.testing.assert_allclose(jacrev(pointers, width=4)(x), np.diag(2 * x), rtol=1e-15)


def test_shadows_that_overlap_are_not_copied(inner: Any) -> None:
    shared = inner.kernel("shared", "void(inout f64[n] x, i64 n)")
    with layer():
        declared = extern("by_pointer", "void(f64[n] x, out f64[n] out, i64 n)")
        rule(declared, mode="reverse")(lambda ctx, x, out, n: None)
        with pytest.raises(OneAtATime) as caught:
            _ = shared.primal.pullback((0,), 4).stage
    assert "argument 1 may share memory with another" in caught.value.because


def test_functions_that_make_the_call_take_one(kernel: Any) -> None:
    with layer():
        foreign(extern("solve", PROTOTYPE), reverse="solve_one", forward="solve_forward")
        with pytest.raises(OneAtATime) as caught:
            _ = kernel.primal.jvp_only((1, 2), 4).stage
        assert "its function in C makes the call as well" in caught.value.because
    with layer():
        foreign(extern("solve", PROTOTYPE), augmented="solve_augmented", reverse="solve_one")
        with pytest.raises(OneAtATime) as caught:
            _ = kernel.primal.pullback((1, 2), 4).stage
        assert "its augmented function in C gets the shadows of one" in caught.value.because


def test_the_prototype_wanted_is_printed(kernel: Any) -> None:
    with layer():
        foreign(extern("solve", PROTOTYPE), reverse="solve_one", width="any")
        with pytest.raises(RuleError) as caught:
            _ = kernel.primal.pullback((0, 1, 2, 4, 5), 4).stage
    assert caught.value.fix == (
        "void solve_one(void *A, void *A_d, void *b, void *b_d, void *x, void *x_d, long n, double scale, "
        "void *scale_d, void *log, void *log_d, void *y_d, long lanes);"
    )


# -- shadows that lie apart --------------------------------------------------------------------------------------------


def _apart(kernel: Any, lanes: int) -> str:
    """The reverse derivative of `refs` in which the shadow of each argument is one pointer per lane: its IR."""
    from irgrad.engine.differentiate.layout.shadow_types import Apart
    from irgrad.engine.differentiate.shared.request import Request
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.kernel.normal_form import prepared_text
    from irgrad.engine.pipeline.derivatives import derive
    from irgrad.rules import current

    primal = kernel.primal
    source, kept = primal.source, primal.kept(current())
    text = prepared_text(source.name, source.signature, source.text + "\n", kept.__contains__)
    module = read(text, roots=[primal.stage.name])
    book = Rulebook(current(), source.digest, module)
    request = Request(primal.stage.name, "vjp", ("dup", "dup", "dup", "const"), ("double", "double", "double", ""),
                      width=Apart(lanes))  # fmt: skip
    made = derive(module, request, book)
    return f"{made.name}\n{to_text(module)}"


def test_a_rule_for_all_lanes_where_shadows_lie_apart(inner: Any) -> None:
    """Programs in C hand over W separate shadows: such a rule would take them for one."""
    refs = inner.kernel("refs", "void(f64[1] a, f64[n] x, out f64[n] out, i64 n)")
    with layer():
        declared = extern("scaled", "void(f64& a, inout f64[n] x, i64 n)")
        rule(declared, mode="reverse", width="any")(lambda ctx, a, x, n: None)
        with pytest.raises(Unsupported, match="a rule for all lanes where shadows lie apart"):
            _apart(refs, 2)


def test_a_rule_for_one_lane_where_shadows_lie_apart(inner: Any) -> None:
    from irgrad.engine.codegen.jit import compile_module
    from irgrad.engine.pipeline.derivatives import link_runtime

    refs, lanes = inner.kernel("refs", "void(f64[1] a, f64[n] x, out f64[n] out, i64 n)"), 3
    with layer():

        @rule(extern("scaled", "void(f64& a, inout f64[n] x, i64 n)"), mode="reverse")
        def _(ctx: Any, a: Any, x: Any, n: Any) -> None:
            a.d += 10 * np.sum(x.saved * x.d)
            x.d[...] = a * x.d

        name, _, text = _apart(refs, lanes).partition("\n")
    compiled = compile_module(link_runtime(text), [name])
    a, x, out, n = np.array([1.5]), RNG.normal(size=4), np.zeros(4), np.array([4])
    a_d, x_d, cotangents = np.zeros((lanes, 1)), np.zeros((lanes, 4)), RNG.normal(size=(lanes, 4))
    out_d, arguments = cotangents.copy(), []
    for value, shadow in ((a, a_d), (x, x_d), (out, out_d), (n, None)):
        rows = [] if shadow is None else list(shadow)
        arguments += [ctypes.c_void_p(v.ctypes.data) for v in (value, *rows)]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arguments))(compiled.address(name))(*arguments)
    np.testing.assert_allclose(x_d, cotangents * 3 * x, rtol=1e-14)
    terms = 10 * cotangents * x * x  # of both signs: rounding is relative to their size, not to that of the sum
    assert (np.abs(a_d[:, 0] - terms.sum(axis=1)) <= 1e-14 * np.abs(terms).sum(axis=1)).all()


def test_gradients_of_one_lane_use_the_rule_for_all(kernel: Any, tmp_path: Path) -> None:
    """Where there is no other rule."""
    path = tmp_path / "one.c"
    path.write_text(SOLVE + "double first(const double *A, const double *b, long n, double s, const double *log)"
                            "{ double x[8]; return solve(A, b, x, n, s, log) * x[0]; }")  # fmt: skip
    first = irgrad.load(path).kernel("first", "f64(f64[n,n] A, f64[n] b, i64 n, f64 s, f64[1] log)")
    with layer():
        _for_all_lanes()
        _, by_b, _, by_log = grad(first, wrt=("A", "b", "s", "log"))(A, B, SCALE, LOG)
    inverse = np.linalg.inv(A) * SCALE
    x = inverse @ B
    np.testing.assert_allclose(by_b, x.sum() * inverse[0] + x[0] * inverse.sum(axis=0), rtol=1e-12)
    assert by_log[0] == 1.0
