"""Kernels called with tensors of TensorFlow: values, gradients of every order, graphs, and what is refused."""

from __future__ import annotations

import os

import numpy as np
import pytest
from samples import library, sample

import irgrad

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: .ci/doors runs these tests")

RNG = np.random.default_rng(2)


def _energy(pos, mass):
    apart = pos[:, None] - pos[None]
    pairs = mass[:, None] * mass[None] / tf.sqrt(tf.reduce_sum(apart**2, -1) + 0.01)
    return -tf.reduce_sum(tf.linalg.band_part(pairs, -1, 0) - tf.linalg.band_part(pairs, 0, 0))


def _scale(x, dt):
    return x * dt, (x * dt) ** 2


ORACLES = {"energy": _energy, "scale": _scale}
ARGUMENTS = {
    "energy": (RNG.normal(size=(4, 3)), RNG.uniform(1, 2, 4)),
    "scale": (RNG.normal(size=3), np.float64(0.7)),
}


def _tensors(name):
    return [tf.constant(x) for x in ARGUMENTS[name]]


def _loss(function):
    def loss(*args):
        out = function(*args)
        return sum(tf.reduce_sum(y**2) for y in (out if isinstance(out, tuple) else (out,)))

    return loss


def _gradients(function, args):
    with tf.GradientTape() as tape:
        tape.watch(args)
        value = function(*args)
    return tape.gradient(value, args)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", ORACLES)
def test_gradients_of_first_and_second_order(name, graph):
    args = _tensors(name)
    mine, wanted = _loss(sample(name)), _loss(ORACLES[name])

    def second(function):
        def run(*given):
            with tf.GradientTape() as outer:
                outer.watch(given)
                first = _gradients(function, given)
                norm = sum(tf.reduce_sum(g**3) for g in first)
            return (function(*given), *first, *outer.gradient(norm, given))

        return tf.function(run) if graph else run

    for got, want in zip(second(mine)(*args), second(wanted)(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def test_jacobians_and_third_order():
    x, dt = _tensors("scale")
    for experimental in (False, True):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            moved, squares = sample("scale")(x, dt)
        jacobian = tape.jacobian(squares, x, experimental_use_pfor=experimental and False)
        np.testing.assert_allclose(jacobian, np.diag(2 * x * dt**2), rtol=1e-12)
        assert moved.shape == (3,)
    y = tf.constant(0.3, tf.float64)
    with tf.GradientTape() as a:
        a.watch(y)
        with tf.GradientTape() as b:
            b.watch(y)
            with tf.GradientTape() as c:
                c.watch(y)
                value = sample("product")(tf.constant(2.0, tf.float64), y)
            first = c.gradient(value, y)
        second = b.gradient(first, y)
    np.testing.assert_allclose(a.gradient(second, y), -2 * np.cos(0.3), rtol=1e-12)


def test_variables_arrays_numbers_and_integers():
    x = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        value = sample("gather")(x, tf.constant([2, 0], tf.int32))
    assert tape.gradient(value, x).numpy().tolist() == [2, 0, 6]
    with tf.GradientTape() as tape:
        value = sample("cubes")(x, 2.0)
    np.testing.assert_allclose(tape.gradient(value, x), 6 * x.numpy() ** 2)
    base = tf.constant(2.0, tf.float64)
    for k in (3, np.int32(3), tf.constant(3)):
        assert _gradients(lambda b, k=k: sample("power")(b, k), [base])[0] == 12
    assert sample("ramp")(3, tf.constant(2, tf.int64)).numpy().tolist() == [0, 2, 4]
    same = sample("energy")(mass=ARGUMENTS["energy"][1], pos=_tensors("energy")[0])
    np.testing.assert_allclose(same, sample("energy")(*ARGUMENTS["energy"]))


def test_floats_of_32_bits():
    x = tf.constant([1.0, 2.0])
    (gradient,) = _gradients(sample("halves"), [x])
    assert gradient.dtype == tf.float32 and gradient.numpy().tolist() == [1, 2]


def test_integer_results_have_no_gradient():
    x = tf.constant([1.0, -1.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        count = sample("count")(x)
    assert count.numpy() == 1 and tape.gradient(count, x) is None


def test_what_does_not_fit_is_refused():
    x, dt = _tensors("scale")
    with pytest.raises(irgrad.DTypeError, match="`x` has dtype float32, wanted float64"):
        sample("scale")(tf.cast(x, tf.float32), dt)
    with pytest.raises(irgrad.ShapeError):
        sample("scale")(x[None], dt)
    with pytest.raises(irgrad.ShapeError, match="wanted a scalar"):
        sample("scale")(x, x)
    open_shape = tf.function(lambda v: sample("scale")(v, dt)[0], autograph=False,
                             input_signature=[tf.TensorSpec([None], tf.float64)])  # fmt: skip
    with pytest.raises(irgrad.ShapeError, match="is not known while the graph is made"):
        open_shape(x)
    with pytest.raises(irgrad.ShapeError, match="determines the shape"):
        tf.function(lambda n: sample("ramp")(n, 2), autograph=False)(tf.constant(3, tf.int64))


def test_xla_cannot_compile_it_and_says_so():
    x, dt = _tensors("scale")
    compiled = tf.function(lambda v: sample("scale")(v, dt)[0], jit_compile=True)
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError), match="PyFunc"):
        compiled(x)


def test_a_status_is_an_error():
    half = irgrad.load("int half(const double *x, double *y) { if (*x < 0) return 3; *y = *x / 2; return 0; }").kernel(
        "half", "i32(f64[] x, out f64 y)", errors={3: "negative"})  # fmt: skip
    bad = tf.constant(-1.0, tf.float64)
    with pytest.raises(irgrad.KernelError, match="negative"):
        half(bad)
    with pytest.raises(tf.errors.OpError, match="negative"):
        tf.function(half)(bad)


def test_maps_over_samples():
    cube = irgrad.load("double f(double x) { return x * x * x; }").kernel("f")
    xs = tf.constant([1.0, 2.0, 3.0], tf.float64)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    for mapped in (tf.map_fn, tf.vectorized_map):
        assert mapped(cube, xs).numpy().tolist() == [1, 8, 27]
        assert mapped(slope, xs).numpy().tolist() == [3, 12, 27]


def test_a_training_loop_in_a_graph():
    x = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    kernel = library().kernel("cubes", "f64(f64[n] x, f64 a, i64 n)")

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = (kernel(x, 1.0) - 5) ** 2
        x.assign_sub(0.0005 * tape.gradient(loss, x))
        return loss

    losses = [float(step()) for _ in range(60)]
    assert losses[-1] < 1e-3 * losses[0]


MARCH = """
#include <math.h>
void march(const double *x, double w, double *y, double *end, long n) {
    double s = w;
    for (long i = 0; i < n; i++) { s = tanh(s * x[i]) + x[i]; y[i] = s * s; }
    *end = s;
}"""


def _march(x, w):
    rows = []
    for value in tf.unstack(x):
        w = tf.tanh(w * value) + value
        rows.append(w * w)
    return tf.stack(rows), w


def _once(run):
    def gradients(function, x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y, end = function(x, w)
            loss = (tf.reduce_sum(y) + end) ** 2
        return tape.gradient(loss, [x, w])

    return run(gradients)


def _twice(run):
    """One tape sees `x` alone, around a function whose own tape sees `w`."""

    @run
    def inner(function, x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y, end = function(x, w)
        return tape.gradient([y, end], [w])

    def gradients(function, x, w):
        with tf.GradientTape() as outer:
            outer.watch(x)
            slope = inner(function, x, w)
        return [*slope, *outer.gradient(slope, [x])]

    return gradients


def _outside(run):
    @run
    def inner(function, x, w):
        y, end = function(x, w)
        return tf.reduce_sum(y) * end

    def gradients(function, x, w):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            loss = inner(function, x, w)
        return [*tape.gradient(loss, [x, w]), *tape.gradient(loss, [x])]

    return gradients


def _forward(run):
    def tangents(function, x, w):
        with tf.autodiff.ForwardAccumulator([x, w], [tf.ones_like(x), tf.ones_like(w)]) as moved:
            y, end = function(x, w)
        return [moved.jvp(y), moved.jvp(end)]

    return run(tangents)


def _forward_over_reverse(run):
    def tangents(function, x, w):
        with tf.autodiff.ForwardAccumulator([x], [tf.range(4, dtype=tf.float64)]) as moved:
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y, end = function(x, w)
                loss = tf.reduce_sum(y) * end
            slopes = tape.gradient(loss, [x, w])
        return [moved.jvp(slope) for slope in slopes]

    return run(tangents)


@pytest.mark.parametrize(
    ("way", "eager", "graph"),
    [(_once, True, True), (_twice, True, True), (_outside, True, False), (_forward, False, False),
     (_forward_over_reverse, True, True)],
)  # fmt: skip
def test_gradients_read_the_tape_of_the_call(monkeypatch, way, eager, graph):
    from irgrad.interop.tensorflow.call import Plan

    ran = []
    compute = Plan.compute
    monkeypatch.setattr(Plan, "compute", lambda plan, *rows: ran.append(plan.spec) or compute(plan, *rows))
    x, w = tf.constant([0.2, 0.4, -0.7, 0.9], tf.float64), tf.constant(0.7, tf.float64)
    for run, reads in ((lambda f: f, eager), (tf.function, graph)):
        wanted = way(run)(_march, x, w)
        for option in ("store", "recompute"):
            march = irgrad.load(MARCH).kernel("march", "void(f64[n] x, f64 w, out f64[n] y, out f64 end, i64 n)",
                                              tape=option)  # fmt: skip
            ran.clear()
            for got, want in zip(way(run)(march, x, w), wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12)
            assert any(spec.reads_tape for spec in ran) == (reads and option == "store")


def test_arrays_without_elements_and_what_is_not_watched():
    empty = tf.zeros(0, tf.float64)
    (gradient,) = _gradients(lambda x: sample("cubes")(x, 2.0), [empty])
    assert gradient.shape == (0,) and sample("cubes")(empty, 2.0).numpy() == 0
    x, dt = _tensors("scale")
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(sample("scale")(x, tf.stop_gradient(dt))[1])
    assert tape.gradient(value, [x, dt])[1] is None
    turned = tf.transpose(tf.reshape(tf.range(6.0, dtype=tf.float64), (3, 2)))
    np.testing.assert_array_equal(sample("scale")(turned[1], 2.0)[0], [2, 6, 10])


def test_a_thousand_steps_of_training_take_no_more_memory():
    resource = pytest.importorskip("resource")
    kernel = irgrad.load(MARCH).kernel("march", "void(f64[n] x, f64 w, out f64[n] y, out f64 end, i64 n)", tape="store")
    x = tf.Variable(np.full(20_000, 0.01))

    def train(steps):
        loss = 0.0
        for _ in range(steps):
            with tf.GradientTape() as tape:
                y, _ = kernel(x, 0.5)
                loss = tf.reduce_sum(y)
            x.assign_sub(1e-3 * tape.gradient(loss, x))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, float(loss)

    before, first = train(100)
    after, last = train(900)
    assert last < first
    assert after - before < 20_000  # KiB; a tape that was kept would be 300 KB a step
