"""Kernels on an NVIDIA GPU, beside jax.numpy and memory: `python -m benchmarks.gpu [NAME ...] [--quick]`.

midpoint   value and four slopes of 100 midpoint steps, 2^17 samples, one a thread; beside `lax.scan` under `vmap`
option     price and five slopes of 10^7 options; beside the time that reading and writing the arrays takes
cell       the state of a hierarchical multiscale LSTM, 2048 x 2048, float32, and its reverse pass; likewise
lookups    one large kernel, 2 million look-ups in tables of cross sections; gradient over value
boltzmann  one large kernel, lattice Boltzmann on 96^3 cells, ten steps; gradient over value
steps      the same by `lax.scan` over a kernel of two steps: the states are JAX's
launch     a call of a kernel of sixteen numbers, beside jax.numpy's

Each result is compared with jax.numpy's on the same device first; what is wrong has no time. Milliseconds of a call,
medians of seven rounds of calls that follow each other, both sides in turns. Without a GPU it runs on the CPU, where
`--quick` checks what is computed.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import jax  # noqa: E402 - the clone is not installed
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import irgrad  # noqa: E402
from benchmarks.futhark.programs import PROGRAMS  # noqa: E402

jax.config.update("jax_enable_x64", True)
KERNELS = Path(__file__).parent / "kernels"
OPTION = "f64(f64 spot, f64 strike, f64 rate, f64 vol, f64 time)"
BOLTZMANN = "f64(inout f64[19,n,n,n] f, inout f64[19,n,n,n] g, f64 omega, i64 n, i64 turns)"
MOVES = np.array([(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 0),
                  (-1, -1, 0), (1, -1, 0), (-1, 1, 0), (1, 0, 1), (-1, 0, -1), (1, 0, -1), (-1, 0, 1), (0, 1, 1),
                  (0, -1, -1), (0, 1, -1), (0, -1, 1)])  # fmt: skip
WEIGHTS = np.repeat([1 / 3, 1 / 18, 1 / 36], [1, 6, 12])

Array = Any
Call = Callable[..., Any]


class Case(NamedTuple):
    """value, gradient: of the kernel; like: the gradient in jax.numpy, of the same arguments; arguments;
    traffic: bytes that the gradient has to read and write; traffic_of_value: likewise; tolerance: relative;
    goal: in words"""

    value: Call
    gradient: Call
    like: Call
    arguments: tuple[Array, ...]
    traffic: int
    traffic_of_value: int
    tolerance: float
    goal: str


@functools.cache
def _library(name: str) -> Any:
    return irgrad.load(KERNELS / name, flags=["-fopenmp-simd"])


def _bytes(*arrays: Array) -> int:
    return sum(np.size(a) * np.asarray(a).dtype.itemsize for a in arrays)


def midpoint(quick: bool) -> Case:
    """Samples that take steps."""
    rng, n = np.random.default_rng(0), 64 if quick else 1 << 17
    kernel = _library("device.c").kernel("midpoint", "f64(f64[2] x, f64[2] p, i64 n)")

    def ours(x: Array, p: Array) -> Array:
        return kernel(x, p, 100)

    def model(x: Array, p: Array) -> Array:
        def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            y, v = state
            a, b = y + 0.005 * v, v - 0.005 * (p[0] * jnp.sin(y) + p[1] * v)
            return (y + 0.01 * b, v - 0.01 * (p[0] * jnp.sin(a) + p[1] * b)), None

        y, v = jax.lax.scan(step, (x[0], x[1]), None, length=100)[0]
        return y * y + v * v

    gradient, like = (jax.vmap(jax.value_and_grad(f, argnums=(0, 1))) for f in (ours, model))
    data = rng.uniform(0.5, 1.5, (n, 2)), rng.uniform(0.1, 1, (n, 2))
    return Case(jax.vmap(ours), gradient, like, data, 9 * 8 * n, 5 * 8 * n, 1e-11, "0.5 ms, a fifth of jax.numpy's")


def option(quick: bool) -> Case:
    """Prices and their slopes."""
    rng, n = np.random.default_rng(5), 64 if quick else 10_000_000
    kernel = _library("samples.c").kernel("option", OPTION)

    def model(spot: Array, strike: Array, rate: Array, vol: Array, span: Array) -> Array:
        spread = vol * jnp.sqrt(span)
        d1 = (jnp.log(spot / strike) + (rate + 0.5 * vol * vol) * span) / spread
        d2, erfc, root = d1 - spread, jax.scipy.special.erfc, np.sqrt(0.5)
        return 0.5 * spot * erfc(-d1 * root) - 0.5 * strike * jnp.exp(-rate * span) * erfc(-d2 * root)

    gradient, like = (jax.vmap(jax.value_and_grad(f, argnums=(0, 1, 2, 3, 4))) for f in (kernel, model))
    data = tuple(rng.uniform(*ends, n) for ends in ((50, 150), (50, 150), (0.01, 0.05), (0.1, 0.5), (0.1, 2)))
    return Case(jax.vmap(kernel), gradient, like, data, 11 * 8 * n, 6 * 8 * n, 1e-11, "1.3 of memory's time")


def cell(quick: bool) -> Case:
    """Elementwise, with branches; the reverse pass gives the adjoints of four arguments."""
    rng, n = np.random.default_rng(6), 8 if quick else 2048
    kernel = _library("device.c").kernel("cell")
    cells = irgrad.broadcast(kernel, wrt=("c", "f", "i", "g"))

    def model(c: Array, f: Array, i: Array, g: Array, ended: Array, below: Array) -> Array:
        new = jax.nn.sigmoid(i) * jnp.tanh(g)
        return jnp.where(ended > 0.5, new, jnp.where(below > 0.5, jax.nn.sigmoid(f) * c + new, c))

    def reverse(function: Call) -> Call:
        def swept(seed: Array, *rows: Array) -> Any:
            found, back = jax.vjp(lambda *four: function(*four, *rows[4:]), *rows[:4])
            return found, back(seed)

        return swept

    rows = [rng.normal(size=(n, n)).astype(np.float32) for _ in range(5)]
    ends = [rng.integers(0, 2, (n, n)).astype(np.float32) for _ in range(2)]
    size = 4 * n * n
    return Case(lambda _, *six: cells(*six), reverse(cells), reverse(model), (*rows, *ends), 12 * size, 7 * size, 1e-5,
                "85 % of memory's rate")


def lookups(quick: bool) -> Case:
    """Gathers, and scattered additions in reverse."""
    program = PROGRAMS["XSBench"]
    energy, micro, density, at, material, weight = program.data(quick)
    if not quick:
        rng = np.random.default_rng(7)
        at, material = rng.uniform(0.01, 0.99, 2_000_000), rng.integers(0, 12, 2_000_000)
    kernel = _library("../futhark/xsbench.c").kernel("xsbench", program.signature)

    def ours(micro: Array, density: Array, energy: Array, at: Array, material: Array, weight: Array) -> Array:
        return kernel(energy, micro, density, at, material, weight)

    def model(micro: Array, density: Array, energy: Array, at: Array, material: Array, weight: Array) -> Array:
        def one(i: Array) -> Array:
            low = jnp.clip(jnp.searchsorted(energy[i], at, side="right") - 1, 0, energy.shape[1] - 2)
            left, right = energy[i][low], energy[i][low + 1]
            f = ((right - at) / (right - left))[:, None]
            rows = micro[i][low + 1] - f * (micro[i][low + 1] - micro[i][low])
            return ((rows @ weight) * density[material, i]).sum()

        return jax.lax.map(one, jnp.arange(energy.shape[0])).sum()

    gradient, like = (jax.value_and_grad(f, argnums=(0, 1)) for f in (ours, model))
    return Case(ours, gradient, like, (micro, density, energy, at, material, weight), 0, 0, 1e-9, "2.5 of the value")


def _lattice(f: Array, omega: Array, steps: int) -> Array:
    """The kinetic energy after some steps, in jax.numpy."""
    moves, weights = jnp.asarray(MOVES, float), jnp.asarray(WEIGHTS)[:, None, None, None]

    def step(f: Array, _: None) -> tuple[Array, None]:
        h = jnp.stack([jnp.roll(f[q], MOVES[q][::-1], (0, 1, 2)) for q in range(19)])
        rho = h.sum(0)
        u = jnp.einsum("qi,qzyx->izyx", moves, h) / rho
        along = 3 * jnp.einsum("qi,izyx->qzyx", moves, u)
        balance = weights * rho * (1 + along + 0.5 * along * along - 1.5 * (u * u).sum(0))
        return h + omega * (balance - h), None

    f = jax.lax.scan(step, f, None, length=steps)[0]
    u = jnp.einsum("qi,qzyx->izyx", moves, f)
    return (0.5 * (u * u).sum(0) / f.sum(0)).sum()


def _boltzmann(quick: bool, function: Call, turns: int) -> Case:
    rng, n = np.random.default_rng(3), 5 if quick else 96
    f = WEIGHTS[:, None, None, None] * (1 + 0.1 * rng.uniform(-1, 1, (19, n, n, n)))
    rows = (function, lambda f, w: _lattice(f, w, 2 * turns))
    gradient, like = (jax.value_and_grad(row, argnums=(0, 1)) for row in rows)
    return Case(function, gradient, like, (f, 1.2), 0, 0, 1e-9, "3.4 of the value")


def boltzmann(quick: bool) -> Case:
    """All steps in one call: the tape is the kernel's."""
    kernel, turns = _library("device.c").kernel("boltzmann", BOLTZMANN), 2 if quick else 5
    return _boltzmann(quick, lambda f, omega: kernel(f, jnp.zeros_like(f), omega, turns=turns)[0], turns)


def steps(quick: bool) -> Case:
    """Two steps a call: the states between the calls are JAX's."""
    kernel, turns = _library("device.c").kernel("boltzmann", BOLTZMANN), 2 if quick else 5

    def ours(f: Array, omega: Array) -> Array:
        def turn(f: Array, _: None) -> tuple[Array, None]:
            return kernel(f, jnp.zeros_like(f), omega, turns=1)[1], None

        f = jax.lax.scan(turn, f, None, length=turns)[0]
        return kernel(f, jnp.zeros_like(f), omega, turns=0)[0]

    return _boltzmann(quick, ours, turns)


def launch(quick: bool) -> Case:
    """So small that the call is all."""
    del quick
    lib = irgrad.load("void small(const double *x, double *y) { for (int i = 0; i < 16; i++) y[i] = 2 * x[i]; }")
    kernel = lib.kernel("small", "void(f64[16] x, out f64[16] y)")
    return Case(kernel, kernel, lambda x: 2 * x, (np.arange(16.0),), 0, 0, 1e-15, "1.1 of jax.numpy's")


CASES = {f.__name__: f for f in (midpoint, option, cell, lookups, boltzmann, steps, launch)}


def distance(a: Any, b: Any) -> float:
    """The largest difference of two results, over the largest number of each array."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(jnp.abs(x - y).max() / jnp.maximum(jnp.abs(y).max(), 1e-30)) for x, y in pairs)


def times(calls: list[Callable[[], Any]], quick: bool) -> list[float]:
    """Milliseconds of each call, in turns."""

    def spent(call: Callable[[], Any], repeats: int) -> float:
        start = time.perf_counter()
        out = call()
        for _ in range(repeats - 1):
            out = call()  # the one before gives its memory back
        jax.block_until_ready(out)
        return (time.perf_counter() - start) / repeats

    for call in calls:
        spent(call, 1)
    repeats = [1 if quick else max(1, min(200, int(0.05 / spent(call, 1)))) for call in calls]
    rounds = [[spent(call, n) for call, n in zip(calls, repeats, strict=True)] for _ in range(1 if quick else 7)]
    return [1e3 * statistics.median(row[i] for row in rounds) for i in range(len(calls))]


def memory_rate(quick: bool) -> float:
    """Bytes a millisecond that the device reads and writes, by a copy of an array of float64."""
    x = jnp.zeros(1000 if quick else 64_000_000)
    return 2 * 8 * x.size / times([functools.partial(jax.jit(lambda x: x + 1), x)], quick)[0]


def row(name: str, quick: bool, rate: float) -> tuple[str, bool]:
    """A line of the table, and whether its results are right."""
    case = CASES[name](quick)
    arguments = tuple(map(jnp.asarray, case.arguments))
    calls = [functools.partial(jax.jit(f), *arguments) for f in (case.value, case.gradient, case.like)]
    off = distance(calls[1](), calls[2]())
    if not off <= case.tolerance:
        return f"{name:10} WRONG by {off:.1e}", False
    value, gradient, like = times(calls, quick)
    memory = f"{gradient * rate / case.traffic:8.2f}" if case.traffic else f"{'':8}"
    first = f"{value * rate / case.traffic_of_value:8.2f}" if case.traffic_of_value else f"{'':8}"
    return (f"{name:10} {value:10.3f} {gradient:10.3f} {gradient / value:8.2f} {like:10.3f} {gradient / like:8.2f} "
            f"{first} {memory} {off:9.1e}   {case.goal}"), True  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns 1 when a result is wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description="Kernels on an NVIDIA GPU.")
    parser.add_argument("names", nargs="*", help=f"{', '.join(CASES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes: checks, not measurements")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    rate, good = memory_rate(options.quick), True
    print(f"{jax.devices()[0].device_kind}: reads and writes {rate / 1e9:.2f} TB/s; JAX {jax.__version__}; ms")
    print(f"{'':10} {'value':>10} {'gradient':>10} {'ratio':>8} {'jnp':>10} {'to jnp':>8} {'v/memory':>8} "
          f"{'g/memory':>8} {'error':>9}   goal")  # fmt: skip
    for name in options.names or CASES:
        line, right = row(name, options.quick, rate)
        print(line, flush=True)
        good &= right
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
