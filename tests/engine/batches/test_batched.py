"""Batches against the same calls one by one, for every layout, batch size and kind of kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from oracle.differences import five_point
from samples import sample
from steps import STEPS

import irgrad
from irgrad import engine
from irgrad.engine.batches.threads import helped

INDEX = np.arange(3, dtype=np.int32)
SIZES = (0, 1, 7, 64, 300)
RNG = np.random.default_rng(3)


def _data(name: str, n: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Arguments of a kernel by name, n samples of those in `BATCHED`, and the names that are differentiated."""
    if name == "product":
        return {"x": RNG.normal(size=n), "y": RNG.normal(size=n)}, ("x", "y")
    if name == "power":
        return {"x": RNG.normal(size=n), "k": 3}, ("x",)
    if name == "cubes":
        return {"x": RNG.normal(size=(n, 5)), "a": RNG.normal(size=n)}, ("x", "a")
    if name == "halves":
        return {"x": RNG.normal(size=(n, 5)).astype(np.float32)}, ("x",)
    if name == "energy":
        return {"pos": RNG.normal(size=(n, 4, 3)), "mass": np.ones(4)}, ("pos", "mass")
    index = RNG.integers(0, 5, size=(n, 7)).astype(np.int32)
    return {"x": RNG.normal(size=5), "index": index}, ("x",)


BATCHED = {"power": ("x",), "energy": ("pos",), "gather": ("index",)}
NAMES = ("product", "power", "cubes", "halves", "energy", "gather")


def _rows(name: str, data: dict[str, Any], n: int) -> list[list[Any]]:
    """The arguments of each single call."""
    batched = BATCHED.get(name, tuple(data))
    return [[v[i] if k in batched else v for k, v in data.items()] for i in range(n)]


def _axes(name: str, data: dict[str, Any], axis: int = 0) -> dict[str, int]:
    return dict.fromkeys(BATCHED.get(name, tuple(data)), axis)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("width", ("auto", 1))
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_single_calls(name: str, width: int | str, n: int) -> None:
    kernel, (data, wrt) = sample(name), _data(name, n)
    single = engine.value_and_grad(kernel, wrt=wrt)
    wanted = [single(*row) for row in _rows(name, data, n)]
    axes, rtol = _axes(name, data), 1e-6 if name == "halves" else 1e-12
    options: dict[str, Any] = {"in_axes": axes, "width": width}
    values = engine.batch(kernel, **options)(*data.values())
    again, gradients = engine.batch_value_and_grad(kernel, wrt=wrt, **options)(*data.values())
    alone = engine.batch_grad(kernel, wrt=wrt, **options)(*data.values())
    assert values.shape == again.shape == (n,)
    np.testing.assert_allclose(values, [v for v, _ in wanted], rtol=rtol, atol=1e-300)
    np.testing.assert_allclose(again, values, rtol=rtol)
    for k, (got, other) in enumerate(zip(gradients, alone, strict=True)):
        rows = np.array([g[k] for _, g in wanted]).reshape(got.shape)
        np.testing.assert_allclose(got, rows, rtol=rtol, atol=1e-13)
        np.testing.assert_allclose(other, rows, rtol=rtol, atol=1e-13)
        assert got.dtype == data[wrt[k]].dtype


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ("product", "cubes", "energy"))
def test_batch_axis_last(name: str, n: int) -> None:
    kernel, (data, wrt) = sample(name), _data(name, n)
    batched = BATCHED.get(name, tuple(data))
    turned = {k: np.ascontiguousarray(np.moveaxis(v, 0, -1)) if k in batched else v for k, v in data.items()}
    wanted = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=_axes(name, data))(*data.values())
    made = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=_axes(name, data, -1), layout="soa")
    got = made(*turned.values())
    assert np.array_equal(got[0], wanted[0])
    for a, b in zip(got[1], wanted[1], strict=True):
        assert np.array_equal(a, np.moveaxis(b, 0, -1))
    one = engine.batch_grad(kernel, wrt=wrt, in_axes=_axes(name, data, -1), layout="soa", width=1)(*turned.values())
    for a, b in zip(one, got[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    mixed = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=_axes(name, data, -1))(*turned.values())
    assert all(np.array_equal(a, b) for a, b in zip(mixed[1], wanted[1], strict=True))


def test_axes_by_rank_in_the_middle_and_from_the_end() -> None:
    pos, mass = RNG.normal(size=(6, 4, 3)), np.ones(4)
    kernel = sample("energy")
    wanted = engine.batch(kernel)(pos, mass)
    turned = pos.transpose(1, 0, 2)
    assert np.array_equal(engine.batch(kernel, in_axes=(1, None))(turned.copy(), mass), wanted)
    assert np.array_equal(engine.batch(kernel, in_axes=[-2, None])(turned, mass), wanted)
    assert np.array_equal(engine.batch(kernel, layout="soa")(pos.transpose(1, 2, 0), mass), wanted)
    assert np.array_equal(engine.batch(kernel, in_axes=0)(pos, np.ones((6, 4))), wanted)
    assert np.array_equal(engine.batch(kernel)(pos=pos, mass=mass), wanted)


def test_several_outputs_inout_and_integers() -> None:
    x = RNG.normal(size=(9, 3))
    got, squares = engine.batch(sample("scale"))(x, 2.0)
    np.testing.assert_array_equal(got, 2 * x)
    np.testing.assert_array_equal(squares, 4 * x * x)
    counts = engine.batch(sample("count"))(x)
    assert counts.dtype == np.int32 and np.array_equal(counts, (x > 0).sum(1))
    rows = engine.batch(sample("flip"), in_axes=0)(np.array([True, False, True]), np.array([1, 200, 200], np.uint8))
    assert rows.dtype == bool and rows.tolist() == [True, True, False]


@pytest.mark.parametrize("n", (1, 7, 64, 1000))
@pytest.mark.parametrize("name", ("product", "cubes", "energy", "gather"))
def test_sums_over_samples(name: str, n: int) -> None:
    kernel, (data, wrt) = sample(name), _data(name, n)
    axes = _axes(name, data)
    if name == "product":
        data["y"] = 0.5
        axes = {"x": 0}
    each = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=axes)(*data.values())
    total = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=axes, reduce="sum")(*data.values())
    np.testing.assert_allclose(total[0], each[0].sum(), rtol=1e-12)
    np.testing.assert_allclose(engine.batch(kernel, in_axes=axes, reduce="sum")(*data.values()), total[0], rtol=1e-12)
    for k, (a, b) in enumerate(zip(total[1], each[1], strict=True)):
        shared = wrt[k] not in axes
        np.testing.assert_allclose(a, b.sum(0) if shared else b, rtol=1e-11, atol=1e-13)
        assert not shared or np.shape(a) == np.shape(data[wrt[k]])


@pytest.mark.parametrize("name", ("product", "cubes", "energy"))
def test_the_number_of_threads_changes_no_bit(name: str) -> None:
    kernel, (data, wrt) = sample(name), _data(name, 3000)
    axes = _axes(name, data)
    if name != "energy":
        data[wrt[1]], axes = 0.5, {"x": 0}
    rows = []
    for threads in (1, 2, 3, 7, None):
        made = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=axes, threads=threads, reduce="sum")
        value, gradients = made(*data.values())
        rows.append([value.tobytes(), *(g.tobytes() for g in gradients)])
        assert threads is None or helped.count == threads - 1
    assert all(row == rows[0] for row in rows)


def test_small_batches_call_no_helpers() -> None:
    engine.batch(sample("product"))(np.ones(8), 0.5)
    assert helped.count == 0


def test_a_sample_does_not_depend_on_its_place() -> None:
    """Vector code for all samples, also the last ones of a batch: the same bits wherever a sample stands."""
    kernel = sample("product")
    y = RNG.normal(size=200)
    whole = engine.batch(kernel, in_axes=(None, 0))(1.0, y)
    for cut in (1, 3, 63, 65, 130):
        assert np.array_equal(engine.batch(kernel, in_axes=(None, 0))(1.0, y[cut:]), whole[cut:])


def test_nan_stays_in_its_sample() -> None:
    for name in ("product", "cubes", "energy"):
        kernel, (data, wrt) = sample(name), _data(name, 70)
        axes = _axes(name, data)
        good = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=axes)(*data.values())
        first = next(iter(data.values()))
        first[(33, *[0] * (first.ndim - 1))] = np.nan
        bad = engine.batch_value_and_grad(kernel, wrt=wrt, in_axes=axes)(*data.values())
        keep = np.arange(70) != 33
        assert np.isnan(bad[0][33]) and np.array_equal(bad[0][keep], good[0][keep])
        for a, b in zip(bad[1], good[1], strict=True):
            assert np.array_equal(a[keep], b[keep])


def test_gradients_against_differences() -> None:
    x, y = RNG.normal(size=5), RNG.normal(size=5)
    dx, dy = engine.batch_grad(sample("product"), wrt=("x", "y"))(x, y)
    for i in range(5):
        assert dx[i] == pytest.approx(five_point(lambda t, i=i: (x[i] + t) * np.sin(y[i])), rel=1e-8)
        assert dy[i] == pytest.approx(five_point(lambda t, i=i: x[i] * np.sin(y[i] + t)), rel=1e-8)


@pytest.mark.parametrize("layout", ("aos", "soa"))
def test_forward_and_reverse_are_adjoint(layout: str) -> None:
    n = 11
    x, dt = RNG.normal(size=(n, 3)), RNG.normal(size=n)
    dx, ddt = RNG.normal(size=(n, 3)), RNG.normal(size=n)
    if layout == "soa":
        x, dx = np.ascontiguousarray(x.T), np.ascontiguousarray(dx.T)
    kernel = sample("scale")
    out, moved = engine.batch_jvp(kernel, (x, dt), (dx, ddt), layout=layout)
    values, pullback = engine.batch_vjp(kernel, x, dt, layout=layout)
    assert all(np.array_equal(a, b) for a, b in zip(out, values, strict=True))
    w = tuple(RNG.normal(size=o.shape) for o in out)
    for _ in range(2):
        back = pullback(w)
        left = sum(np.vdot(a, b) for a, b in zip(w, moved, strict=True))
        right = np.vdot(back[0], dx) + np.vdot(back[1], ddt)
        assert left == pytest.approx(right, rel=1e-12)
    scaled = w[0] * dt[:, None] if layout == "aos" else w[0] * dt
    np.testing.assert_allclose(pullback((w[0], None))[0], scaled, rtol=1e-14)


def test_pullbacks_sum_over_shared_arguments() -> None:
    x = RNG.normal(size=(50, 3))
    out, pullback = engine.batch_vjp(sample("cubes"), x, 2.0)
    w = RNG.normal(size=50)
    dx, da = pullback(w)
    np.testing.assert_allclose(dx, 6 * x**2 * w[:, None], rtol=1e-13)
    np.testing.assert_allclose(da, (x**3).sum(1) @ w, rtol=1e-12)
    assert da.shape == () and out.shape == (50,)
    assert engine.batch_vjp(sample("cubes"), x, 2.0, wrt="a")[1](w) == da


def test_tangents_of_some_arguments() -> None:
    x = RNG.normal(size=(4, 3))
    out, moved = engine.batch_jvp(sample("cubes"), (x, 2.0), (None, 1.0))
    np.testing.assert_allclose(moved, (x**3).sum(1), rtol=1e-13)
    np.testing.assert_allclose(out, 2 * moved, rtol=1e-13)


def test_results_go_to_given_arrays() -> None:
    x, y = RNG.normal(size=70), RNG.normal(size=70)
    value, dx, dy = np.empty(70), np.empty(70), np.empty(70)
    made = engine.batch_value_and_grad(sample("product"), wrt=("x", "y"))
    got = made(x, y, out=(value, (dx, dy)))
    assert got[0] is not None and np.shares_memory(got[1][0], dx)
    np.testing.assert_allclose(value, x * np.sin(y), rtol=1e-12)
    np.testing.assert_allclose(dy, x * np.cos(y), rtol=1e-12)
    out = np.empty(70)
    assert engine.batch(sample("product"))(x, y, out=out) is out and np.array_equal(out, value)


@pytest.mark.parametrize("dtype", (np.float64, np.float32))
def test_addresses_change_no_bit(dtype: Any) -> None:
    """Blocks begin where cache lines do: not at all, one sample or fifteen later."""
    n, size = 9000, np.dtype(dtype).itemsize
    source = "T f(T x, T y) { return x * SIN(y); }".replace("T", "double" if size == 8 else "float")
    kernel = irgrad.load("#include <math.h>\n" + source.replace("SIN", "sin" if size == 8 else "sinf")).kernel("f")
    x, y = RNG.normal(size=n).astype(dtype), RNG.normal(size=n).astype(dtype)
    made = engine.batch_value_and_grad(kernel, wrt=("x", "y"))
    wanted = [made(x, y)[0], *made(x, y)[1]]
    for offset in (0, 1, 64 // size - 1):
        rows = []
        for _ in range(5):
            memory = np.full(n + 128 // size, 7, dtype)
            rows.append(memory[-memory.ctypes.data % 64 // size + offset :])
        a, b, *out = (row[:n] for row in rows)
        a[:], b[:] = x, y
        made(a, b, out=(out[0], tuple(out[1:])))
        assert all(np.array_equal(got, want) for got, want in zip(out, wanted, strict=True))
        assert all((row[n:] == 7).all() for row in rows)


@pytest.mark.parametrize("offset", (0, 8, 40))
def test_large_results_lie_in_cache_lines_as_the_argument_does(offset: int) -> None:
    memory = np.ones(9016)
    x = memory[(offset - memory.ctypes.data) % 64 // 8 :][:9000]
    value = engine.batch(sample("product"))(x, 0.5)
    assert x.ctypes.data % 64 == offset == value.ctypes.data % 64
    assert value.shape == (9000,) and value.flags.carray and np.allclose(value, np.sin(0.5), rtol=1e-15)


EXITS = """#include <math.h>
double f(double x, double y) {
    for (;;) { y = sin(y); if (y < x) { y = exp(y); break; } y *= x; if (y > 1) return y; }
    return cos(y); }"""
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "no batch": (lambda k, x: engine.batch(k)(x[0], 2.0), irgrad.ShapeError, "no argument is batched"),
    "all None": (lambda k, x: engine.batch(k, in_axes=(None, None))(x[0], 2.0), irgrad.ShapeError, "every entry"),
    "extents": (lambda k, x: engine.batch(k)(x, np.ones(3)), irgrad.ShapeError, "`a` has 3 samples, wanted 4"),
    "rank": (lambda k, x: engine.batch(k, in_axes=(0, 0))(x, 2.0), irgrad.ShapeError, "`a` has rank 0, wanted rank 1"),
    "axis": (lambda k, x: engine.batch(k, in_axes=(2, None))(x, 2.0), irgrad.ShapeError, "`x` has no axis 2"),
    "count": (lambda k, x: engine.batch(k, in_axes=(0,))(x, 2.0), irgrad.SignatureError, "in_axes has 1 entries"),
    "name": (lambda k, x: engine.batch(k, in_axes={"z": 0})(x, 2.0), irgrad.SignatureError, "`z`, which is no"),
    "kind": (lambda k, x: engine.batch(k, in_axes=("x", 0))(x, 2.0), irgrad.SignatureError, "in_axes of `x`"),
    "dtype": (lambda k, x: engine.batch(k)(x.astype(np.float32), 2.0), irgrad.DTypeError, "`x` has dtype float32"),
    "scalar dtype": (lambda k, x: engine.batch(k)(x, np.ones(4, int)), irgrad.DTypeError, "`a` has dtype int64"),
    "layout": (lambda k, x: engine.batch(k, layout="rows"), irgrad.SignatureError, "layout = 'rows'"),
    "reduce": (lambda k, x: engine.batch(k, reduce="mean"), irgrad.SignatureError, "reduce = 'mean'"),
    "threads": (lambda k, x: engine.batch(k, threads=0), irgrad.SignatureError, "threads = 0"),
    "out shape": (lambda k, x: engine.batch(k)(x, 2.0, out=np.empty(3)), irgrad.ShapeError, r"\(3,\), wanted"),
    "out dtype": (lambda k, x: engine.batch(k)(x, 2.0, out=np.empty(4, "f4")), irgrad.DTypeError, "float32"),
    "out count": (lambda k, x: engine.batch(k)(x, 2.0, out=()), irgrad.SignatureError, "out has 0 arrays"),
    "out order": (lambda k, x: engine.batch(k)(x, 2.0, out=np.empty(8)[::2]), irgrad.ShapeError, "C-ordered"),
    "overlap": (lambda k, x: engine.batch_grad(k)(x, 2.0, out=x), irgrad.ShapeError, "overlaps an argument"),
    "no kernel": (lambda k, x: engine.batch(abs), irgrad.SignatureError, "not a kernel"),
    "tangents": (lambda k, x: engine.batch_jvp(k, (x, 2.0), (x,)), irgrad.SignatureError, "1 tangents for 2"),
    "tangent": (lambda k, x: engine.batch_jvp(k, (x, 2.0), (x[:2], None)), irgrad.ShapeError, "tangent of `x`"),
    "cotangent": (lambda k, x: engine.batch_vjp(k, x, 2.0)[1](np.ones(3)), irgrad.ShapeError, "cotangent of `return`"),
    "width": (lambda k, x: engine.batch(k, width=0), irgrad.SignatureError, "width = 0"),
    "no lanes": (lambda k, x: engine.batch(irgrad.load(EXITS).kernel("f"), width=4)(x[0], 0.5), irgrad.Unsupported,
                 "different ways"),
    "integers": (lambda k, x: engine.batch(sample("count"), reduce="sum")(x), irgrad.DTypeError, "cannot be summed"),
    "sizes": (lambda k, x: engine.batch(sample("ramp"), in_axes=(0, None))(np.arange(3), 1), irgrad.ShapeError, "`n`"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_argument(name: str) -> None:
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call(sample("cubes"), np.ones((4, 3)))


RK4 = """void slope(const double *y, double p, double *d) {
    d[0] = 10 * (y[1] - y[0]); d[1] = y[0] * (p - y[2]) - y[1]; d[2] = y[0] * y[1] - 2.5 * y[2]; }
double f(const double *y0, double p, long steps) {
    double y[3] = {y0[0], y0[1], y0[2]}, k[3], l[3], a[3];
    for (long t = 0; t < steps; t++) {
        slope(y, p, k);
        for (int i = 0; i < 3; i++) a[i] = y[i] + 0.005 * k[i];
        slope(a, p, l);
        for (int i = 0; i < 3; i++) y[i] += 0.01 * l[i];
    }
    return y[0] + y[1] * y[2];
}"""


@pytest.mark.parametrize("width", ("auto", 1, 2, 4, 5, 16))
@pytest.mark.parametrize("n", (3, 8, 21))
def test_an_integrator_over_initial_conditions(width: int | str, n: int) -> None:
    """Loops with a tape, as lanes: value, both gradients, sums; the second argument shared."""
    kernel = irgrad.load(RK4).kernel("f", "f64(f64[3] y0, f64 p, i64 steps)")
    y0, single = RNG.normal(size=(n, 3)), engine.value_and_grad(kernel, wrt=("y0", "p"))
    wanted = [single(y, 28.0, 40) for y in y0]
    made = engine.batch_value_and_grad(kernel, wrt=("y0", "p"), width=width)
    value, (dy, dp) = made(y0, 28.0, 40)
    np.testing.assert_allclose(value, [v for v, _ in wanted], rtol=1e-12)
    np.testing.assert_allclose(dy, [g[0] for _, g in wanted], rtol=1e-11)
    np.testing.assert_allclose(dp, [g[1] for _, g in wanted], rtol=1e-11)
    summed = engine.batch_grad(kernel, wrt="p", width=width, reduce="sum")(y0, 28.0, 40)
    assert summed == pytest.approx(dp.sum(), rel=1e-12)
    if width == "auto" and n > 3:
        assert "lanes: 8 samples side by side" in engine.explain_batch(made, y0, 28.0, 40)
    assert np.array_equal(made(y0[:0], 28.0, 40)[1][0], np.zeros((0, 3)))


KINKS = """
__attribute__((noinline)) static double bend(double y, double a) { return y > 0.3 ? a * y * (1 - y) : y + 0.2; }
double f(double y, double a, long n) {
    double s = 0;
    for (long t = 0; t < n; t++) { y = bend(y, a); s += y * y; }
    return s;
}"""


TABLE = """double f(const double *t, double x, double y, long m) {
    double u = x * (m - 1); long i = (long)u; if (i > m - 2) i = m - 2;
    double z = t[i] * (1 - (u - i)) + t[i + 1] * (u - i);
    return exp(-z * y) * sin(x + y) + log(1 + z * z); }"""


@pytest.mark.parametrize("width", ("auto", 1, 3))
def test_tables_that_each_sample_reads_elsewhere(width: int | str) -> None:
    """Loads at addresses that vary; the gradient of the table is added up in memory of each lane's own."""
    kernel = irgrad.load("#include <math.h>\n" + TABLE).kernel("f", "f64(f64[m] t, f64 x, f64 y, i64 m)")
    table, x, y = RNG.normal(size=9), RNG.uniform(0, 1, size=37), RNG.normal(size=37)
    single = engine.value_and_grad(kernel, wrt=("t", "x"))
    wanted = [single(table, *row) for row in zip(x, y, strict=True)]
    made = engine.batch_value_and_grad(kernel, wrt=("t", "x"), in_axes=(None, 0, 0), width=width)
    value, (dt, dx) = made(table, x, y)
    np.testing.assert_allclose(value, [v for v, _ in wanted], rtol=1e-12)
    np.testing.assert_allclose(dt, [g[0] for _, g in wanted], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(dx, [g[1] for _, g in wanted], rtol=1e-11, atol=1e-12)
    summed = engine.batch_grad(kernel, wrt="t", in_axes=(None, 0, 0), width=width, reduce="sum")(table, x, y)
    np.testing.assert_allclose(summed, dt.sum(0), rtol=1e-12, atol=1e-12)
    assert width != "auto" or "lanes: 16 samples" in engine.explain_batch(kernel, table, x, y)


@pytest.mark.parametrize("width", ("auto", 4))
def test_choices_inside_of_a_loop(width: int | str) -> None:
    """The choice of each sample is kept on the tape; the function called is inlined first."""
    kernel = irgrad.load(KINKS).kernel("f", "f64(f64 y, f64 a, i64 n)")
    y, single = RNG.uniform(0, 1, size=21), engine.value_and_grad(kernel, wrt=("y", "a"))
    made = engine.batch_value_and_grad(kernel, wrt=("y", "a"), in_axes=(0, None, None), width=width)
    value, (dy, da) = made(y, 2.7, 12)
    wanted = [single(v, 2.7, 12) for v in y]
    np.testing.assert_allclose(value, [v for v, _ in wanted], rtol=1e-12)
    np.testing.assert_allclose(dy, [g[0] for _, g in wanted], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(da, [g[1] for _, g in wanted], rtol=1e-10)
    assert "lanes" in engine.explain_batch(made, y, 2.7, 12)


def test_one_can_see_how_samples_run() -> None:
    x, many = np.ones((20, 3)), np.ones((20, 5000))
    assert "scalars: blocks of 64 samples" in engine.explain_batch(sample("product"), np.ones(9), 0.5)
    assert "lanes: 16 samples" in engine.explain_batch(sample("cubes"), x, 0.5)
    assert "lanes: 4 samples" in engine.explain_batch(engine.batch(sample("cubes"), width=4), x, 0.5)
    assert "3 samples fill less than half" in engine.explain_batch(sample("cubes"), x[:3], 0.5)
    assert "16 lanes would hold 640128 bytes" in engine.explain_batch(sample("cubes"), many, 0.5)
    text = engine.explain_batch(engine.batch_grad(sample("cubes"), threads=2, width=1), x, 0.5)
    assert "sample after sample" in text and "because width=1" in text and "threads: 2" in text
    text = engine.explain_batch(irgrad.load(EXITS).kernel("f"), np.ones(9), 0.5)
    assert "at <string>:3:" in text and ": `for (;;)" in text
    text = engine.explain_batch(sample("power"), np.ones(9), np.arange(9, dtype=np.int32))
    assert "lanes: 16 samples" in text and "loops run until the last sample has left" in text


def test_kernels_with_global_state_stay_on_one_thread() -> None:
    text = """static double s;
    __attribute__((noinline)) static double twist(double y) { s *= y; return s; }
    double f(double x) { s = x; double a = twist(2); return a + twist(x); }"""
    kernel = irgrad.load(text).kernel("f")
    x = np.linspace(0, 1, 500)
    got = engine.batch(kernel, threads=4)(x)
    assert helped.count == 0 and "global variable `s`" in engine.explain_batch(kernel, x)
    np.testing.assert_allclose(got, 2 * x + 2 * x * x, rtol=1e-13)


def test_state_is_advanced_once_for_each_sample() -> None:
    """A kernel that counts its calls: samples run in order, each once."""
    text = """static long count; static __attribute__((noinline)) long next(void) { return ++count; }
    double f(double x) { return x * next(); }
    double g(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i]; return s * next(); }"""
    library = irgrad.load(text)
    got = engine.batch(library.kernel("f"), threads=2)(np.ones(70))
    assert np.array_equal(got, np.arange(1.0, 71.0))
    kernel = library.kernel("g", "f64(f64[n] x, i64 n)")
    assert np.array_equal(engine.batch(kernel)(np.ones((20, 2))), 2 * np.arange(1.0, 21.0))
    with pytest.raises(irgrad.Unsupported, match="cannot be vector lanes"):
        engine.batch(kernel, width=4)(np.ones((20, 2)))


def test_machine_code_is_made_once_for_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that are made again, pullbacks and forward derivatives included, share what was compiled."""
    kernel = irgrad.load("double f(const double *x, double a, long n) { return a * x[0] * x[n - 1]; }").kernel(
        "f", "f64(f64[n] x, f64 a, i64 n)")
    x = RNG.normal(size=(9, 3))

    def everything() -> None:
        engine.batch_jvp(kernel, (x, 2.0), (x, None))
        engine.batch_vjp(kernel, x, 2.0)[1](np.ones(9))
        engine.batch_grad(kernel)(x, 2.0)

    everything()
    monkeypatch.setattr("irgrad.engine.codegen.jit.compile_module", lambda *_, **__: pytest.fail("compiled again"))
    everything()


def test_calls_with_other_shapes_and_arrays() -> None:
    made = engine.batch_grad(sample("cubes"), reduce="sum", wrt=("x", "a"))
    for n, m in ((4, 3), (9, 3), (4, 5), (4, 3)):
        x = RNG.normal(size=(n, m))
        dx, da = made(x, 2.0)
        np.testing.assert_allclose(dx, 6 * x**2, rtol=1e-13)
        assert da == pytest.approx((x**3).sum(), rel=1e-12)


@pytest.mark.parametrize("threads", [1, 3, None])
@pytest.mark.parametrize("reduce", [None, "sum"])
def test_long_tapes_become_states(threads: int | None, reduce: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from irgrad.engine.batches import unit

    monkeypatch.setattr(unit, "free_memory", lambda: 1 << 20)
    library = irgrad.load(STEPS)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.1, 0.9, 5), rng.uniform(0.1, 0.9, (9, 5))
    plain, bounded = (irgrad.batch_value_and_grad(
        library.kernel("f", "f64(f64[n] x, inout f64[n] y, i64 n, i64 steps)", tape_memory=how),
        wrt=("x", "y"), in_axes=(None, 0, None), reduce=reduce, threads=threads) for how in (None, "auto"))
    for steps, long in ((5, False), (20_000, True), (20_000, False), (5, False)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            right, found = plain(x, y.copy(), steps), bounded(x, y.copy(), steps)
        for a, b in zip((right[0], *right[1]), (found[0], *found[1]), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-13)
        assert ["LongTape"] * long == [one.category.__name__ for one in told]
        assert not long or "for each of" in str(told[0].message)
