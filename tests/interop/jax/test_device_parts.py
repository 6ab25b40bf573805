"""One kernel on many threads: values and derivatives of calls without a batch, thread by thread on the host against the
CPU's own code; what the lowering for CUDA says to XLA, and what XLA makes of it without a device."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import on_grid, on_parts

import irgrad
from irgrad.engine.codegen import nvptx
from irgrad.engine.grids import parts_text, regions, static_tape
from irgrad.interop.jax import device_parts
from irgrad.interop.jax.device import TARGET
from irgrad.rules.errors import OneThread, Unsupported

from .test_device import _device, _on, gpu, needs_library, needs_plugin

pytestmark = pytest.mark.long
jax.config.update("jax_enable_x64", True)
__all__ = ["gpu"]  # a fixture

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
#define EACH _Pragma("clang loop vectorize(assume_safety)")
double gather(const double *x, const long *at, long n, long m) {
    double s = 0;
    EACH for (long i = 0; i < m; i++) s += sin(x[at[i]]) * x[at[i]];
    return s;
}
void heat(const double *u, double *v, double *w, double a, long n, long steps) {
    for (long i = 0; i < n; i++) v[i] = u[i];
    for (long t = 0; t < steps; t++) {
        EACH for (long i = 1; i < n - 1; i++) w[i] = v[i] + a * v[i] * (v[i-1] - 2 * v[i] + v[i+1]);
        EACH for (long i = 1; i < n - 1; i++) v[i] = w[i];
    }
}
void twice(double *x, const double *p, long n) {
    EACH for (long i = 0; i < n; i++) x[i] = p[0] * x[i] * x[i] + p[1];
    EACH for (long i = 0; i < n; i++) x[i] = x[i] / (1 + x[i] * x[i]) * p[1];
}
double rows(const double *A, const double *b, long n, long m) {
    double s = 0;
    EACH for (int i = 0; i < (int)n; i++) {
        double t = 0, w[4] = {1, 2, 3, 4};
        for (int j = 0; j < (int)m; j++) { t += A[i*m+j] * b[j] * w[j & 3]; w[(j+1)&3] *= b[j]; }
        if (t > 0) s += t * t; else s -= t;
    }
    return s;
}
double newton(const double *x, long n) {
    double s = 0;
    EACH for (long i = 0; i < n; i++) {
        double y = 1;
        for (int k = 0; k < 8 && fabs(y*y - x[i]) > 1e-9; k++) y = .5*(y + x[i]/y);
        s += y;
    }
    return s;
}
void back(const double *x, double *y, long n) {
    EACH for (long i = n - 1; i >= 0; i -= 2) y[i] = exp(-x[i]) * x[n-1-i];
}
void moments(const double *x, double *out, long n) {
    double s = 0, q = 0, v = 0;
    EACH for (long i = 0; i < n; i++) { s += x[i]; q += x[i] * x[i]; }
    double mean = s / n;
    EACH for (long i = 0; i < n; i++) { double d = x[i] - mean; v += d * d * d; }
    out[0] = mean; out[1] = q / n; out[2] = v / n;
}
float single(const float *x, const float *p, long n) {
    float s = 0;
    EACH for (long i = 0; i < n; i++) s += expf(p[i & 1] * x[i]);
    return s;
}
double scratch(const double *x, long n, long m) {
    double s = 0;
    EACH for (long i = 0; i < n; i++) {
        double *t = malloc(m * sizeof *t);
        for (long j = 0; j < m; j++) t[j] = sin(x[i] * j);
        for (long j = 0; j < m; j++) s += t[j] * t[m-1-j];
        free(t);
    }
    return s;
}
double listed(const double *x, long n, long m) {
    double s = 0;
    EACH for (long i = 0; i < n; i++) {
        double **rows = malloc(m * sizeof *rows);
        for (long j = 0; j < m; j++) { rows[j] = malloc(sizeof(double)); rows[j][0] = sin(x[i] * j); }
        for (long j = 0; j < m; j++) s += rows[j][0] * rows[m-1-j][0];
    }
    return s;
}
double clauses(const double *x, double a, long n) {
    double s = 0;
    #pragma omp simd reduction(+:s)
    for (long i = 0; i < n; i++) s += tanh(a * x[i]);
    return s;
}
double carried(const double *x, long n) { double s = 1; EACH for (long i = 0; i < n; i++) s = s * .5 + x[i]; return s; }
double silent(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i]; return s; }
double line(const double *x) { return x[0] * x[1]; }
"""
LIBRARY = irgrad.load(SOURCE, flags=["-fopenmp-simd"])
RNG = np.random.default_rng(1)
X, AT = RNG.uniform(0.5, 1.5, size=40), RNG.integers(0, 40, size=33)
FIELD, FAR = RNG.uniform(0.5, 1.5, size=1000), RNG.integers(0, 9, size=700) ** 3  # 8 kB, and places that many meet
A, B = RNG.normal(size=(7, 9)), RNG.uniform(0.5, 1.2, size=9)

Made = tuple[Callable[..., Any], tuple[Any, ...]]


def _kernel(name: str, signature: str) -> Any:
    return LIBRARY.kernel(name, signature)


def _cases() -> dict[str, Made]:
    gather = _kernel("gather", "f64(f64[n] x, i64[m] at, i64 n, i64 m)")
    heat = _kernel("heat", "void(f64[n] u, out f64[n] v, out f64[n] w, f64 a, i64 n, i64 steps)")
    twice = _kernel("twice", "void(inout f64[n] x, f64[2] p, i64 n)")
    rows = _kernel("rows", "f64(f64[n,m] A, f64[m] b, i64 n, i64 m)")
    newton = _kernel("newton", "f64(f64[n] x, i64 n)")
    back = _kernel("back", "void(f64[n] x, out f64[n] y, i64 n)")
    moments = _kernel("moments", "void(f64[n] x, out f64[3] out, i64 n)")
    single = _kernel("single", "f32(f32[n] x, f32[2] p, i64 n)")
    scratch = _kernel("scratch", "f64(f64[n] x, i64 n, i64 m)")
    listed = _kernel("listed", "f64(f64[n] x, i64 n, i64 m)")
    clauses = _kernel("clauses", "f64(f64[n] x, f64 a, i64 n)")
    return {
        "gather": (lambda x: gather(x, AT), (X,)),
        "large gather": (lambda x: gather(x, FAR), (FIELD,)),
        "heat": (lambda x, a: (heat(x, a, steps=6)[0] ** 2).sum(), (X, 0.1)),
        "twice": (lambda x, p: (twice(x, p) * x).sum(), (X, np.array([0.3, 0.4]))),
        "rows": (rows, (A, B)),
        "newton": (newton, (X,)),
        "back": (lambda x: (back(x) ** 2).sum(), (X,)),
        "moments": (lambda x: (moments(x) * np.array([1.0, 2, 3])).sum(), (X,)),
        "single": (single, (X.astype(np.float32), np.array([0.3, 0.4], np.float32))),
        "scratch": (lambda x: scratch(x, m=5), (X,)),
        "listed": (lambda x: listed(x, m=5), (X,)),
        "clauses": (clauses, (X, 0.7)),
    }


CASES = _cases()


def _derivative(word: str, f: Any, count: int) -> Callable[..., Any]:
    wrt = tuple(range(count))
    made: dict[str, Callable[..., Any]] = {
        "value": f,
        "grad": jax.grad(f, wrt),
        "value and grad": jax.value_and_grad(f, wrt),
        "jvp": lambda *a: jax.jvp(f, a, a),
        "hvp": lambda *a: jax.jvp(jax.grad(f, wrt), a, a),
    }
    return made[word]


def _compared(got: Any, wanted: Any, tolerance: float) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * float(jnp.abs(b).max()))


def _shuffled(numbers: Any) -> list[int]:
    out = list(numbers)
    random.Random(3).shuffle(out)
    return out


CELLS = [(name, word) for name in CASES for word in ("value", "grad", "value and grad", "jvp")]
CELLS += [(name, "hvp") for name in CASES if name != "listed"]  # see below


@pytest.mark.parametrize(("name", "word"), CELLS)
def test_threads_give_what_the_cpu_gives(name: str, word: str) -> None:
    """In any order of the threads of a launch."""
    f, args = CASES[name]
    function = _derivative(word, f, len(args))
    wanted = jax.jit(function)(*args)
    with on_parts(7, _shuffled) as made:
        got = jax.jit(function)(*args)
    assert made and all(plan.parts.threads == 7 for plan in made)
    _compared(got, wanted, 2e-6 if name == "single" else 1e-13)


@pytest.mark.parametrize(
    ("name", "word"), [(name, "value and grad") for name in CASES] + [("rows", "hvp"), ("scratch", "hvp")]
)
def test_threads_at_once(name: str, word: str) -> None:
    """Threads of the system that run at the same time: additions that meet are atomic."""
    f, args = CASES[name]
    function = _derivative(word, f, len(args))
    wanted = jax.jit(function)(*args)
    with on_parts(32, workers=8):
        got = jax.jit(function)(*args)
    _compared(got, wanted, 2e-6 if name == "single" else 1e-13)


def test_directions_at_once() -> None:
    """Additions of several tangents are additions of each."""
    heat = _kernel("heat", "void(f64[n] u, out f64[n] v, out f64[n] w, f64 a, i64 n, i64 steps)")
    function = jax.jacrev(jax.grad(lambda x: (heat(x, 0.1, steps=2)[0] ** 3).sum()))
    wanted = jax.jit(function)(X[:8])
    with on_parts(5, _shuffled) as made:
        got = jax.jit(function)(X[:8])
    assert any("extractelement" in plan.parts.text for plan in made)
    _compared(got, wanted, 1e-13)


def test_values_of_arrays_are_bitwise_those_of_the_cpu() -> None:
    """No sum over iterations: every iteration computes what it computes on the CPU."""
    heat = _kernel("heat", "void(f64[n] u, out f64[n] v, out f64[n] w, f64 a, i64 n, i64 steps)")
    twice = _kernel("twice", "void(inout f64[n] x, f64[2] p, i64 n)")
    cases: list[Made] = [(lambda x: heat(x, 0.1, steps=6), (X,)), (twice, (X, X[:2]))]
    for function, args in cases:
        wanted = jax.jit(function)(*args)
        with on_parts(5, _shuffled):
            got = jax.jit(function)(*args)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
            assert np.array_equal(np.asarray(a).view(np.int64), np.asarray(b).view(np.int64))


@pytest.mark.parametrize(
    ("name", "atomic"),
    [("newton", False), ("moments", False), ("gather", False), ("twice", False),
     ("heat", True), ("large gather", True)],
)
def test_additions_by_class(name: str, atomic: bool) -> None:
    """Atomic where iterations may meet in large memory: the neighbours of a stencil, the reverse of a gather. Not where
    each has its own place, nor in small memory, of which each thread has a row."""
    f, args = CASES[name]
    with on_parts(5) as made:
        jax.jit(_derivative("grad", f, len(args)))(*args)
    assert any("atomicrmw" in plan.parts.text for plan in made) == atomic


@pytest.mark.parametrize("name", ["rows", "moments", "clauses"])
def test_sums_are_the_same_in_any_order_of_threads(name: str) -> None:
    """Rows of sums are added up in a fixed order: bit by bit the same, whatever thread comes first."""
    f, args = CASES[name]
    function, results = _derivative("value and grad", f, len(args)), []
    for order in (list, _shuffled, lambda numbers: list(numbers)[::-1]):
        with on_parts(16, order):
            results.append(jax.tree.leaves(jax.jit(function)(*args)))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize(
    ("function", "found", "planted"),
    [
        ("_share_region", "", ""),
        ("_share_region", 'mul(turn, "%threads")', 'mul(turn, "1")'),
        ("_share_region", "i64 {number}", "i64 {turn}"),
        ("_fold_text", "rows.threads - 1", "rows.threads - 2"),
        ("_fold_text", "rows.folded * rows.bytes", "rows.bytes"),
    ],
)
def test_a_wrong_index_is_caught(function: str, found: str, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator with a wrong index: the comparison above finds it."""
    source, space = inspect.getsource(getattr(parts_text, function)), dict(vars(parts_text))
    assert found in source
    exec(source.replace(found, planted), space)
    monkeypatch.setattr(parts_text, function, space[function])
    f, args = CASES["moments"]
    wanted = jax.jit(f)(*args)
    with on_parts(5):
        got = jax.jit(f)(*args)
    assert np.allclose(got, wanted, rtol=1e-12) == (found == planted)


@pytest.mark.parametrize(
    ("found", "planted"),
    [("", ""), ("own = at.mul(thread,", "own = at.mul(ConstInt(ty.I64, 0),")],
)
def test_iterations_that_share_tape_are_caught(found: str, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All iterations run forward before one runs back: a place for two of them gives other numbers."""
    source, space = inspect.getsource(static_tape.place_tape), dict(vars(static_tape))
    assert found in source
    exec(source.replace(found, planted), space)
    monkeypatch.setattr(regions, "place_tape", space["place_tape"])
    f, args = CASES["scratch"]
    function = jax.grad(f)
    wanted = jax.jit(function)(*args)
    with on_parts(5) as made:
        got = jax.jit(function)(*args)
    assert made and np.allclose(got, wanted, rtol=1e-12) == (found == planted)


def test_what_runs_in_one_thread_says_so() -> None:
    shape = jax.ShapeDtypeStruct((40,), np.float64)
    for name, why in (("carried", "goes on with what the one before it left"), ("silent", "nothing says that")):
        with pytest.warns(OneThread, match=rf"`{name}` runs in one thread of the GPU: <string>:\d+:\d+: .*{why}"):
            _lowered(_kernel(name, "f64(f64[n] x, i64 n)"), shape)
    with pytest.warns(OneThread, match=r"`listed` runs in one thread of the GPU: <string>:\d+:\d+: other iterations"):
        _lowered(_derivative("hvp", CASES["listed"][0], 1), shape)


def test_a_kernel_without_a_loop_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    text = _lowered(_kernel("line", "f64(f64[2] x)"), jax.ShapeDtypeStruct((2,), np.float64))
    assert text.count(TARGET) == 1 and not [w for w in recwarn if issubclass(w.category, OneThread)]


@pytest.mark.parametrize("name", ["gather", "twice", "rows", "moments"])
def test_batches_stay_one_sample_a_thread(name: str) -> None:
    f, args = CASES[name]
    rows = [np.stack([np.asarray(a), 1.1 * np.asarray(a), 0.9 * np.asarray(a)]) for a in args]
    function = jax.vmap(_derivative("value and grad", f, len(args)))
    wanted = jax.jit(function)(*rows)
    with on_grid(2) as made:
        got = jax.jit(function)(*rows)
    assert made
    _compared(got, wanted, 1e-13)


@needs_library
def test_a_batch_is_one_kernel() -> None:
    text = _lowered(jax.vmap(_kernel("newton", "f64(f64[n] x, i64 n)")), jax.ShapeDtypeStruct((100, 40), np.float64))
    assert text.count(TARGET) == 1


def _lowered(function: Any, *shapes: Any) -> str:
    return str(jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text())


# -- for a device ----------------------------------------------------------------------------------------------------


@needs_library
def test_launches_in_sequence() -> None:
    """Two loops: the program up to the first, then three launches for each, since both have sums."""
    f, _ = CASES["moments"]
    text = _lowered(f, jax.ShapeDtypeStruct((100_000,), np.float64))
    words = re.findall(r'name = "irgrad_moments_D0_(\w+)"', text)
    assert words == ["first", *["share", "fold", "next"] * 2]
    assert "grid_x = 782 : i32" in text and "stablehlo.while" not in text


@needs_library
def test_many_loops_are_a_loop_of_xla() -> None:
    f, _ = CASES["heat"]
    text = _lowered(lambda x: f(x, 0.1), jax.ShapeDtypeStruct((1000,), np.float64))
    assert re.findall(r'name = "irgrad_heat_D0_(\w+)"', text) == ["first", "share", "next"]
    assert text.count("stablehlo.while") == 1


@needs_library
def test_a_second_lowering_comes_from_the_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    f, _ = CASES["moments"]
    shape = jax.ShapeDtypeStruct((1000,), np.float64)
    first = _lowered(jax.grad(f), shape)
    jax.clear_caches()
    device_parts._compiled.cache_clear()
    monkeypatch.setattr(device_parts, "plan_of", None)
    assert _lowered(jax.grad(f), shape) == first


@needs_library
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_ptxas_accepts_them(name: str, architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if nvptx.ptxas() is None:
        pytest.skip("ptxas is not installed")
    made: list[str] = []
    keep = nvptx.ptx

    def ptx(text: str, entries: list[str], _: str) -> str:
        made.append(keep(text, entries, architecture))
        return made[-1]

    monkeypatch.setattr(nvptx, "ptx", ptx)
    device_parts._compiled.cache_clear()
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    f, args = CASES[name]
    shapes = [jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype) for a in args]
    _lowered(_derivative("value and grad", f, len(args)), *shapes)
    device_parts._compiled.cache_clear()
    assert made and all(nvptx.cubin(code, architecture) for code in made)


def _compiled(function: Any, *shapes: Any) -> Any:
    sharding = jax.sharding.SingleDeviceSharding(_device())
    return jax.jit(function, in_shardings=sharding).trace(*shapes).lower(lowering_platforms=("cuda",)).compile()


@needs_plugin
@pytest.mark.parametrize("name", CASES)
def test_xla_copies_nothing_between_launches(name: str) -> None:
    """Addresses are kept from launch to launch, so arrays stay where they are; a launch that finds others traps."""
    f, args = CASES[name]
    shapes = [jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype) for a in args]
    text = _compiled(_derivative("value and grad", f, len(args)), *shapes).as_text()
    made = dict(re.findall(r"^\s*(?:ROOT )?(%[-\w.]+) = [^\n]*? ([-a-z]+)\(", text, re.M))
    source = dict(re.findall(r"^\s*(%[-\w.]+) = [^\n]*? (?:get-tuple-element|copy)\((%[-\w.]+)\)", text, re.M))
    copied = [source[name] for name, operation in made.items() if operation == "copy" and name in source]
    assert text.count(f'custom_call_target="{TARGET}"') >= 4
    assert [name for name in copied if made[source.get(name, name)] in ("custom-call", "while")] == []


def test_a_plan_that_many_threads_cannot_run_names_the_line() -> None:
    f, args = CASES["listed"]
    with pytest.raises(Unsupported, match="a loop cannot run on many threads") as caught, on_parts(5):
        jax.jit(_derivative("hvp", f, len(args)))(*args)
    assert caught.value.where.startswith("<string>:") and "jax.vmap" in caught.value.fix


@needs_plugin
def test_constants_of_a_loop_are_held() -> None:
    """XLA puts a constant of its own into the body of each loop: no launch behind the first one may look for that of
    the first."""
    f, args = CASES["heat"]
    shape = jax.ShapeDtypeStruct(np.shape(args[0]), np.float64)
    text = _compiled(lambda x: jax.lax.fori_loop(0, 5, lambda _, x: x - 1e-3 * jax.grad(f)(x, *args[1:]), x), shape)
    calls = re.findall(r"custom-call\(([^)]*)\), custom_call_target=\"[^\"]*ptx\".*?output_to_operand_aliasing=(.*)",
                       text.as_text())  # fmt: skip
    assert len(calls) >= 6
    for operands, aliases in calls:
        taken = set(map(int, re.findall(r"\((\d+), \{", aliases)))
        assert len(operands.split(",")) - len(taken) <= 1, operands  # the number `a`, which `first` copies


# -- on a device ------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("name", "word"), CELLS)
def test_launches_on_a_device(name: str, word: str) -> None:
    """Each chain of launches: against the CPU's own code, and the same again where the order of sums is fixed."""
    f, args = CASES[name]
    function = _derivative(word, f, len(args))

    def run() -> Any:
        return jax.jit(function)(*map(jnp.asarray, args))

    first, second, wanted = _on("cuda", run), _on("cuda", run), _on("cpu", run)
    _compared(first, wanted, 1e-4 if name == "single" else 1e-11)
    if name in ("rows", "moments", "clauses"):
        assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True))


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["heat", "moments"])
def test_launches_inside_of_loops_of_xla(name: str) -> None:
    """In a loop, and with other work between two calls: buffers of the program may move from call to call."""
    f, args = CASES[name]

    def run() -> Any:
        def step(_: Any, x: Any) -> Any:
            return x - 1e-3 * jax.grad(f)(x, *args[1:]) / (1 + jnp.abs(x))

        whole = jax.jit(lambda x: (jax.lax.fori_loop(0, 5, step, x), step(0, jnp.sin(x)) + step(0, x)))
        return whole(jnp.asarray(args[0]))

    _compared(_on("cuda", run), _on("cpu", run), 1e-11)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_large_loops_on_a_device() -> None:
    """More iterations than threads."""
    x = np.linspace(0.5, 1.5, 1_000_000)
    for name in ("moments", "newton", "back"):
        f = CASES[name][0]

        def run(f: Any = f) -> Any:
            return jax.jit(jax.value_and_grad(f))(jnp.asarray(x))

        _compared(_on("cuda", run), _on("cpu", run), 1e-9)
