"""Kernels under JAX: `python benchmarks/jax_bridge.py [calls|gradients|enzyme|threads ...] [--quick]`.

calls      what one call costs, in a loop, eager, under jit, with a gradient, against JAX's own operations
gradients  `jit(grad(kernel))` against `jit(grad(the same in jax.numpy))`, on one thread each
enzyme     the same against Enzyme-JAX (`pip install enzyme_ad`, Python 3.11), on a kernel that it can run
threads    16 Python threads that call jitted gradients at once: all right, and what memory is left

Everything is compared with JAX's result first; what is wrong has no time. Both sides of a ratio are timed in turns, so
that other work on the machine meets both; figures are minima.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks import peer_jax  # noqa: E402 - the clone is not installed

if __name__ == "__main__":  # before JAX starts
    peer_jax.one_thread()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import irgrad  # noqa: E402
from benchmarks import jax_models  # noqa: E402
from benchmarks.cases import Case, select  # noqa: E402
from benchmarks.native import HERE, parse  # noqa: E402

jax.config.update("jax_enable_x64", True)

NAMES = ("gmm-64", "lstm-2", "ba", "logsumexp", "rk4", "nbody", "burgers-swap", "kmeans")
TOLERANCE = 1e-8
Call = Callable[[], Any]


def main(arguments: list[str] | None = None) -> int:
    """Print the chosen tables. Returns 1 when a result is wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks/jax_bridge.py", description="Kernels under JAX.")
    parser.add_argument("tables", nargs="*", help=f"{', '.join(TABLES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="reduced sizes and few runs: checks, not measurements")
    options = parser.parse_args(arguments)
    unknown = set(options.tables) - set(TABLES)
    if unknown:
        parser.error(f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    good = True
    for name in options.tables or TABLES:
        good &= TABLES[name](options.quick)
    return 0 if good else 1


def alternating(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """Seconds of each call: the least of runs that take turns."""
    repeats = {}
    for name, call in calls.items():
        spent = []
        for _ in range(4):  # the first ones compile, and fill caches
            start = time.perf_counter()
            jax.block_until_ready(call())
            spent.append(time.perf_counter() - start)
        repeats[name] = max(1, round(2e-3 / max(min(spent), 1e-7)))
    least = dict.fromkeys(calls, float("inf"))
    begun = time.perf_counter()
    runs = 0
    while runs < 3 or time.perf_counter() - begun < seconds:
        runs += 1
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                result = call()
            jax.block_until_ready(result)
            least[name] = min(least[name], (time.perf_counter() - start) / repeats[name])
    return least


def _same(got: Any, wanted: Any) -> bool:
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
    return all(np.shape(a) == np.shape(b) and _near(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _near(a: Any, b: Any) -> bool:
    return bool(a.size == 0 or np.max(np.abs(a - b)) <= TOLERANCE * max(float(np.max(np.abs(b))), 1e-300))


def _report(name: str, ours: Call, theirs: Call, seconds: float, per: int = 1) -> bool:
    """One line: microseconds of both, and the ratio."""
    if not _same(ours(), theirs()):
        print(f"{name:44} WRONG")
        return False
    times = alternating({"ours": ours, "theirs": theirs}, seconds)
    a, b = times["ours"] / per * 1e6, times["theirs"] / per * 1e6
    print(f"{name:44}{a:>12.3f} us{b:>12.3f} us{a / b:>9.2f}", flush=True)
    return True


def calls(quick: bool) -> bool:
    """What a call costs. Sixty-four numbers, ten megabytes, and the loop of a compiled program."""
    lib = irgrad.load(HERE / "kernels" / "bridge.c")
    shifted = lib.kernel("shifted", "void(f64[n] x, out f64[n] y, i64 n)")
    squares = lib.kernel("squares", "f64(f64[n] x, i64 n)")
    rounds = lib.kernel("rounds", "void(f64[n] x, out f64[n] y, i64 n)")
    seconds, loops = (0.05, 100) if quick else (2.0, 10_000)
    x, few = jnp.linspace(0.1, 1.0, 64), jnp.linspace(0.1, 1.0, 8)
    large = jnp.linspace(0.0, 1.0, 1000 if quick else 1_310_720)
    print(f"{'one call':44}{'irgrad':>15}{'JAX':>15}{'ratio':>9}")
    own, jit = jax.jit(shifted), jax.jit(lambda x: x + 1.0)
    good = _report("jit, 8 numbers", lambda: own(few), lambda: jit(few), seconds)
    good &= _report("eager, 8 numbers", lambda: shifted(few), lambda: few + 1.0, seconds)
    gradient, same = jax.jit(jax.grad(squares)), jax.jit(jax.grad(lambda x: jnp.sum(x * x * x)))
    good &= _report("jit(grad), 64 numbers", lambda: gradient(x), lambda: same(x), seconds)
    good &= _report("eager grad, 64 numbers", lambda: jax.grad(squares)(x),
                    lambda: jax.grad(lambda x: jnp.sum(x * x * x))(x), seconds)
    loop = lambda f: jax.jit(lambda x: jax.lax.fori_loop(0, loops, lambda _, c: f(c), x))  # noqa: E731
    looped, theirs = loop(shifted), loop(lambda x: jnp.sin(x) * 0.0 + x + 1.0)
    good &= _report("one of fori_loop, 8 numbers", lambda: looped(few), lambda: theirs(few), seconds, loops)
    for what, kernel in (("sin and exp", rounds), ("x + 1", shifted)):
        compiled, entry = jax.jit(kernel), raw(kernel, large)
        good &= _report(f"10 MB, {what}; JAX: the raw entry", lambda f=compiled: f(large), entry, seconds)
    return good


def raw(kernel: Any, *arguments: Any) -> Call:
    """The kernel's native entry on buffers that exist already, without JAX."""
    prepared = kernel.prepare(*(np.asarray(a) for a in arguments))

    def call() -> Any:
        prepared()
        return prepared.outputs[0]

    return call


def gradients(quick: bool) -> bool:
    """`jit(grad)` of the benchmark kernels."""
    print(f"{'jit(grad)':44}{'irgrad':>15}{'JAX':>15}{'ratio':>9}")
    good = True
    for case in (c for c in select([]) if c.name in NAMES):
        good &= _report(case.name, *both(case, quick), 0.05 if quick else 3.0)
    return good


def both(case: Case, quick: bool) -> tuple[Call, Call]:
    """The gradient of a case with the kernel and in jax.numpy; of half the sum of squares where there is an array."""
    data = case.inputs(quick)
    arguments = [a for a in parse(case.signature)[1] if a.flow != "out"]
    bound = {extent for a in arguments for extent in a.shape or ()}
    names = [a.name for a in arguments if not (a.shape is None and a.name in bound)]
    kernel = irgrad.load(HERE / "kernels" / case.source).kernel(case.function, case.signature)
    model = getattr(jax_models, case.jax or "")
    taken = inspect.signature(model).parameters
    active = tuple(jax.device_put(data[n]) for n in case.wrt)
    fixed = {n: data[n] for n in names if np.isscalar(data[n])}
    passive = {n: jax.device_put(data[n]) for n in names if n not in fixed and n not in case.wrt}

    def of(f: Callable[..., Any], known: Any) -> Call:
        def loss(active: tuple[Any, ...], passive: dict[str, Any]) -> Any:
            given = {**dict(zip(case.wrt, active, strict=True)), **passive, **fixed}
            value = f(**{n: v for n, v in given.items() if n in known})
            return value if jnp.ndim(value) == 0 else 0.5 * jnp.sum(value**2)

        compiled = jax.jit(jax.grad(loss))
        return lambda: jax.block_until_ready(compiled(active, passive))

    return of(kernel, names), of(model, taken)


ROUNDS = """
template<std::size_t N>
void f(enzyme::tensor<double, N>& y, const enzyme::tensor<double, N>& x) {
  for (int i = 0; i < N; i++) {
    double s = x[i];
    for (int k = 0; k < 4; k++) s = __builtin_sin(s) * x[i] + __builtin_exp(-x[i] * x[i]);
    y[i] = s;
  }
}
"""


def enzyme(quick: bool) -> bool:
    """Enzyme-JAX, where it is installed. (With `-target-cpu` it compiles the function, and not its gradient.)"""
    try:
        from enzyme_ad.jax import cpp_call
    except ImportError:
        print("Enzyme-JAX is not installed (pip install enzyme_ad, Python 3.11 only): nothing to compare with")
        return True
    kernel = irgrad.load(HERE / "kernels" / "bridge.c").kernel("rounds", "void(f64[n] x, out f64[n] y, i64 n)")
    print(f"{'gradient of four rounds':44}{'irgrad':>15}{'Enzyme-JAX':>15}{'ratio':>9}")
    good = True
    for n in (1000,) if quick else (1_000, 100_000, 1_000_000):
        shape = jax.core.ShapedArray((n,), jnp.float64)
        peer = lambda x, shape=shape: cpp_call(x, out_shapes=[shape], source=ROUNDS, fn="f", argv=("-O3",))[0]  # noqa: E731
        x = jnp.linspace(0.0, 1.0, n)
        ours, theirs = (jax.jit(lambda x, f=f: jax.vjp(f, x)[1](x)[0]) for f in (kernel, jax.jit(peer)))
        good &= _report(f"n = {n}", lambda x=x, f=ours: f(x), lambda x=x, f=theirs: f(x), 0.05 if quick else 3.0)
    return good


def threads(quick: bool) -> bool:
    """Calls from 16 Python threads: every result is compared; memory at the end against memory after a tenth."""
    kernel = irgrad.load(HERE / "kernels" / "bridge.c").kernel("squares", "f64(f64[n] x, i64 n)")
    gradient = jax.jit(jax.grad(kernel))
    total, many = (1600, 16) if quick else (1_000_000, 16)
    x = [jnp.linspace(0.0, 1.0 + t, 64) for t in range(many)]
    wanted = [np.asarray(3 * v * v) for v in x]
    wrong: list[int] = []

    def work(t: int, count: int) -> None:
        for _ in range(count):
            if not np.allclose(np.asarray(gradient(x[t])), wanted[t], rtol=1e-14, atol=0):
                wrong.append(t)

    def run(count: int) -> None:
        running = [threading.Thread(target=work, args=(t, count)) for t in range(many)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    run(total // many // 10)
    before, start = _resident(), time.perf_counter()
    run(total // many - total // many // 10)
    after, passed = _resident(), time.perf_counter() - start
    print(f"{total} gradients from {many} threads: {len(wrong)} wrong, {passed / total * 1e6:.1f} us each, "
          f"{before / 1e6:.1f} MB resident after a tenth, {after / 1e6:.1f} MB after all")
    return not wrong


def _resident() -> int:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


TABLES: dict[str, Callable[[bool], bool]] = {
    "calls": calls, "gradients": gradients, "enzyme": enzyme, "threads": threads,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
