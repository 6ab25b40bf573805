"""The table of benchmarks: kernel, signature, what is differentiated, independent gradient, figure to beat.

A signature is a C prototype with shapes. `manual` names a C function in `manual/` with its own signature; its `out`
arguments are the expected derivatives, in the order in which `irgrad` returns them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks import data


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the report.

    `operation` is one of `grad`, `vjp`, `jvp`, `jacfwd`, `rows` (a VJP of all rows of small Jacobian blocks) or `hvp`.
    `seeds` names the cotangents or tangents in the data. `primal_ms` and `best_ms` are the peers' measurement whose
    ratio is to be beaten; the two are never compared with times of this machine, only their ratio is.
    """

    name: str
    number: int
    source: str
    function: str
    signature: str
    wrt: tuple[str, ...]
    manual: tuple[str, str]
    inputs: Callable[[bool], data.Data]
    primal_ms: float
    best_ms: float
    best_by: str
    operation: str = "grad"
    seeds: tuple[str, ...] = ()
    jax: str | None = None

    @property
    def to_beat(self) -> float:
        """Best valid gradient over its primal, in one run of the peers' measurement."""
        return self.best_ms / self.primal_ms


GMM = "f64[k] alphas, f64[k,d] means, f64[k,d+d*(d-1)/2] icf, f64[n,d] x, f64 gamma, i64 m, i64 k, i64 d, i64 n"
LSTM = "f64[l,2,4*b] weights, f64[3,b] outer, f64[l,2,b] start, f64[c,b] sequence, i64 l, i64 c, i64 b"
HAND = (
    "f64[26] theta, f64[bones,12] relative, i32[bones] parents, f64[bones,12] inverse_rest, f64[vertices,3] rest, "
    "f64[vertices,bones] weights, f64[n,3] points, i32[n] nearest, out f64[n,3] errors, i64 bones, i64 vertices, i64 n"
)
HAND_JACOBIAN = (
    "f64[26] theta, f64[bones,12] relative, f64[bones,12] inverse_rest, f64[vertices,3] rest, "
    "f64[vertices,bones] weights, i32[n] nearest, i64 bones, i64 n, out f64[n,3,26] jacobian"
)
BA = "f64[p,11] cameras, f64[p,3] points, f64[p] weights, f64[p,2] features"
BURGERS = "f64[n] u0, i64 n, i64 steps, f64 dt, f64 dx, f64 nu"
BRUSSELATOR = "f64[n,n] u, f64[n,n] v, out f64[n,n] du, out f64[n,n] dv, i64 n, f64 a, f64 b, f64 alpha"
PRODUCT = "f64[n,n] u, f64[n,n] v, i64 n, f64 b, f64 alpha"
LORENZ = "f64[3] y0, f64[3] par, i64 steps, f64 dt"
MLP = (
    "f64[hidden,width] w1, f64[hidden] b1, f64[second,hidden] w2, f64[second] b2, f64[1,second] w3, f64[1] b3, "
    "f64[batch,width] x, f64[batch] y, i64 batch, i64 width, i64 hidden, i64 second"
)
MLP_OUT = (
    "out f64[hidden,width] gw1, out f64[hidden] gb1, out f64[second,hidden] gw2, out f64[second] gb2, "
    "out f64[1,second] gw3, out f64[1] gb3"
)
GMM_OUT = "out f64[k] galphas, out f64[k,d] gmeans, out f64[k,d+d*(d-1)/2] gicf"
LSTM_OUT = "out f64[l,2,4*b] gweights, out f64[3,b] gouter"
KMEANS = "f64[k,d] centres, f64[n,d] x"


def _gmm(name: str, d: int, primal_ms: float, best_ms: float, by: str) -> Case:
    return Case(
        name, 1, "gmm.c", "gmm", f"f64({GMM})", ("alphas", "means", "icf"), ("gmm_grad", f"void({GMM}, {GMM_OUT})"),
        partial(data.gmm, d=d), primal_ms, best_ms, by, jax="gmm",
    )  # fmt: skip


def _lstm(name: str, layers: int, steps: int, primal_ms: float, best_ms: float) -> Case:
    return Case(
        name, 3, "lstm.c", "lstm", f"f64({LSTM})", ("weights", "outer"), ("lstm_grad", f"void({LSTM}, {LSTM_OUT})"),
        partial(data.lstm, layers=layers, steps=steps), primal_ms, best_ms, "Enzyme", jax="lstm",
    )  # fmt: skip


def _vector(name: str, n: int, primal_ms: float, best_ms: float, by: str) -> Case:
    inputs = data.product if name == "product" else partial(data.vector, n=n)
    number = {"expsin": 5, "logsumexp": 6, "product": 7}[name]
    return Case(
        name, number, "sums.c", name, "f64(f64[n] x, i64 n)", ("x",),
        (f"{name}_grad", "void(f64[n] x, i64 n, out f64[n] gx)"), inputs, primal_ms, best_ms, by, jax=name,
    )  # fmt: skip


def _burgers(name: str, function: str) -> Case:
    # The peers' primal is given as 0.10-0.16 ms and the gradient as 0.37-0.39 ms for the two forms: the middle of each.
    return Case(
        name, 10, "burgers.c", function, f"f64({BURGERS})", ("u0",), ("burgers_grad", f"void({BURGERS}, out f64[n] g)"),
        data.burgers, 0.13, 0.38, "manual", jax="burgers",
    )  # fmt: skip


def _brusselator(operation: str, seeds: tuple[str, str], outs: str) -> Case:
    manual = f"void({PRODUCT}, f64[n,n] {seeds[0]}, f64[n,n] {seeds[1]}, {outs})"
    return Case(
        f"brusselator-{operation}", 11, "brusselator.c", "brusselator", f"void({BRUSSELATOR})", ("u", "v"),
        (f"brusselator_{operation}", manual), data.brusselator, 0.022, 0.033, "Enzyme", operation, seeds,
        jax="brusselator",
    )  # fmt: skip


def _lorenz(name: str, steps: int, primal_ms: float, best_ms: float, by: str) -> Case:
    return Case(
        name, 12, "lorenz.c", name, f"f64({LORENZ})", ("y0", "par"),
        (f"{name}_grad", f"void({LORENZ}, out f64[3] gy, out f64[3] gp)"), partial(data.lorenz, steps=steps),
        primal_ms, best_ms, by, jax=name,
    )  # fmt: skip


CASES: tuple[Case, ...] = (
    _gmm("gmm-10", 10, 1.24, 1.36, "JAX"),
    _gmm("gmm-64", 64, 11.9, 27.5, "Enzyme"),
    Case(
        "ba", 2, "ba.c", "ba", f"void({BA}, out f64[p,2] errors, i64 p)", ("cameras", "points", "weights"),
        ("ba_rows", f"void({BA}, i64 p, out f64[2,p,11] jcameras, out f64[2,p,3] jpoints, out f64[2,p] jweights)"),
        data.ba, 0.53, 2.37, "Enzyme", "rows", jax="ba",
    ),
    _lstm("lstm-2", 2, 1024, 0.86, 2.23),
    _lstm("lstm-4", 4, 4096, 6.7, 22.2),
    Case(
        "hand", 4, "hand.cpp", "hand", f"void({HAND})", ("theta",), ("hand_jacobian", f"void({HAND_JACOBIAN})"),
        data.hand, 0.097, 0.47, "manual", "jacfwd", jax="hand",
    ),
    _vector("expsin", 1_000_000, 9.9, 9.9, "JAX"),
    _vector("logsumexp", 1_000_000, 3.5, 2.54, "JAX"),
    _vector("product", 100_000, 0.072, 0.154, "Enzyme"),
    Case(
        "recurrence", 8, "sums.c", "recurrence", "f64(f64[n] a, f64[n] b, i64 n)", ("a", "b"),
        ("recurrence_grad", "void(f64[n] a, f64[n] b, i64 n, out f64[n] ga, out f64[n] gb)"),
        data.recurrence, 0.48, 1.15, "Enzyme", jax="recurrence",
    ),
    Case(
        "histogram", 9, "indexed.c", "histogram", "f64(f64[n] x, i32[n] bin, i64 n, i64 bins)", ("x",),
        ("histogram_grad", "void(f64[n] x, i32[n] bin, i64 n, i64 bins, out f64[n] gx)"),
        data.histogram, 0.32, 0.72, "manual", jax="histogram",
    ),
    Case(
        "gather", 9, "indexed.c", "gather", "f64(f64[m] table, i32[n] index, f64[n] w, i64 n)", ("table",),
        ("gather_grad", "void(f64[m] table, i32[n] index, f64[n] w, i64 n, i64 m, out f64[m] gtable)"),
        data.gather, 1.0, 1.54, "manual", jax="gather",
    ),
    _burgers("burgers-copy", "burgers_copy"),
    _burgers("burgers-swap", "burgers_swap"),
    _brusselator("vjp", ("wu", "wv"), "out f64[n,n] gu, out f64[n,n] gv"),
    _brusselator("jvp", ("tu", "tv"), "out f64[n,n] tdu, out f64[n,n] tdv"),
    _lorenz("rk4", 10_000, 0.12, 0.26, "Enzyme"),
    _lorenz("euler", 1_000_000, 3.4, 4.5, "manual"),
    Case(
        "mlp", 13, "linear.c", "mlp", f"f64({MLP})", ("w1", "b1", "w2", "b2", "w3", "b3"),
        ("mlp_grad", f"void({MLP}, {MLP_OUT})"), data.mlp, 0.34, 0.067, "JAX", jax="mlp",
    ),
    Case(
        "matmul", 14, "linear.c", "matmul", "f64(f64[n,n] a, f64[n,n] b, i64 n)", ("a", "b"),
        ("matmul_grad", "void(f64[n,n] a, f64[n,n] b, i64 n, out f64[n,n] ga, out f64[n,n] gb)"),
        data.matmul, 0.56, 0.52, "JAX", jax="matmul",
    ),
    Case(
        "matvec", 14, "linear.c", "matvec", "f64(f64[n,n] a, f64[n] x, i64 n)", ("x",),
        ("matvec_grad", "void(f64[n,n] a, f64[n] x, i64 n, out f64[n] gx)"), data.matvec, 0.90, 0.16, "JAX",
        jax="matvec",
    ),
    Case(
        "nbody", 15, "nbody.c", "energy", "f64(f64[n,3] pos, f64[n] mass, i64 n)", ("pos",),
        ("energy_grad", "void(f64[n,3] pos, f64[n] mass, i64 n, out f64[n,3] g)"), data.nbody, 1.48, 0.43, "Enzyme",
        jax="nbody",
    ),
    Case(
        "kmeans", 16, "kmeans.c", "kmeans", f"f64({KMEANS}, i64 n, i64 k, i64 d)", ("centres",),
        ("kmeans_grad", f"void({KMEANS}, i64 n, i64 k, i64 d, out f64[k,d] g)"), data.kmeans, 0.14, 0.116, "manual",
        jax="kmeans",
    ),
    Case(
        "kmeans-hvp", 16, "kmeans.c", "kmeans", f"f64({KMEANS}, i64 n, i64 k, i64 d)", ("centres",),
        ("kmeans_hvp", f"void({KMEANS}, f64[k,d] v, i64 n, i64 k, i64 d, out f64[k,d] h)"), data.kmeans, 0.14, 0.116,
        "manual", "hvp", ("v",), jax="kmeans",
    ),
)  # fmt: skip


def select(names: list[str]) -> list[Case]:
    """Cases by name or by the part of it before the dash; all where no name is given. SystemExit with the choice."""
    if not names:
        return list(CASES)
    known = {name for case in CASES for name in (case.name, case.name.split("-")[0])}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(c.name for c in CASES)}")
    return [case for case in CASES if case.name in names or case.name.split("-")[0] in names]
