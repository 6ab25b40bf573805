"""Random kernels whose loops threads share, with a tape between sweeps: `python tests/fuzz/chunk_tapes.py 0:40`.

Values and gradients under `jax.jit`, where threads fill a tape and read it, are the same bits for one thread and three,
those of the derivative in one call without threads, and along a direction those of central differences.
"""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SIGNATURE = "f64(f64[n] x, f64[m] w, f64 alpha, i64[n] at, out f64[n] y, out f64[n] z, i64 n, i64 m, i64 steps)"
HEAD = """#include <math.h>
double f(const double *x, const double *w, double alpha, const long *at, double *y, double *z, long n, long m,
         long steps) {
  double s = 0;
  for (long i = 0; i < n; i++) { y[i] = 0; z[i] = 0; }
"""


class Program:
    """The source of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        loops = "".join(self._loop(later=n > 0) for n in range(self.random.randint(1, 3)))
        if self.random.random() < 0.35:
            loops = f"for (long t = 0; t < steps; t++) {{\n{loops}}}\n"
        self.source = f"{HEAD}{loops}  return s;\n}}\n"

    def _term(self, names: list[str], depth: int = 0) -> str:
        choice = self.random.random()
        if depth > 2 or choice < 0.3:
            return self.random.choice(names)
        a, b = self._term(names, depth + 1), self._term(names, depth + 1)
        if choice < 0.55:
            return f"({a} {self.random.choice('+-*')} {b})"
        if choice < 0.85:
            return f"{self.random.choice(['sin', 'cos', 'tanh'])}({a})"
        return f"({a} > {self.random.choice(['0.1', '0.3', '-0.2'])} ? {b} : {self._term(names, depth + 1)})"

    def _part(self, own: list[str], number: int) -> str:
        choice = self.random.random()
        if choice < 0.4:
            many = self.random.choice(["m", "m", "3", "5"])
            first, second = self._term(["a", "b", "w[j % m]", "alpha"]), self._term(["a", "b", "x[i]"])
            return f"for (long j = 0; j < {many}; j++) {{ a = {first}; b = {second}; }}\n"
        if choice < 0.6:
            test = self.random.choice(["a", "b", "x[i]"])
            return f"if ({test} > 0.2) a = {self._term([*own, 'a'])}; else b = {self._term([*own, 'b'])};\n"
        if choice < 0.8:
            t = f"t{number}"
            return (f"double {t}[4]; for (int j = 0; j < 4; j++) {t}[j] = {self._term(['a', 'b', 'alpha'])} * j;\n"
                    f"for (int j = 1; j < 4; j++) {t}[j] = sin({t}[j - 1]) * {t}[j] + b;\na += {t}[3];\n")  # fmt: skip
        return f"b = {self._term([*own, 'a', 'b'])};\n"

    def _loop(self, *, later: bool) -> str:
        own = ["x[i]", "alpha", "w[i % m]", *(["y[i]"] if later else [])]
        own += ["x[at[i]]"] if self.random.random() < 0.5 else []
        body = f"double a = {self._term(own)}, b = 0.3;\n"
        body += "".join(self._part(own, number) for number in range(self.random.randint(1, 3)))
        body += f"y[i] {self.random.choice(['=', '+='])} {self._term(['a', 'b'])}; z[i] = b * {self._term(own)};\n"
        sums = self.random.random() < 0.6
        body += "s += a * b + y[i];\n" if sums else ""
        schedule = self.random.choice(["static", "dynamic", "guided"])
        clause = f"{'reduction(+:s) ' if sums else ''}schedule({schedule})"
        return f"#pragma omp parallel for {clause}\nfor (long i = 0; i < n; i++) {{\n{body}}}\n"


def _under_jax(kernel: Any, args: tuple[Any, ...], bars: tuple[Any, ...]) -> list[Any]:
    import jax

    x, w, alpha, at, steps = args

    def both(x: Any, w: Any, alpha: Any) -> Any:
        values, pullback = jax.vjp(lambda x, w, alpha: kernel(x, w, alpha, at, steps), x, w, alpha)
        return values, pullback(bars)

    with jax.enable_x64(True):
        return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(both)(x, w, alpha))]


def check(seed: int) -> str:
    """What is wrong with a seed; "right", or "none: ..." where there is no tape."""
    import irgrad as ig
    from irgrad.engine.kernel.tapes import tape_of

    rng = np.random.default_rng(seed)
    n, m, steps = int(rng.choice([1, 5, 16, 17, 33, 50])), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    args = (rng.normal(size=n), rng.normal(size=m), 0.7, rng.integers(0, n, n), steps)
    bars = (1.3, np.cos(np.arange(n)), np.sin(np.arange(n)))
    lib = ig.load(Program(seed).source, flags=["-fopenmp"])
    plain = lib.kernel("f", SIGNATURE)
    kernels = {t: lib.kernel("f", SIGNATURE, threads=t, tape="store") for t in (1, 3)}
    tape = tape_of(kernels[3].primal, [k for k, slot in enumerate(kernels[3].primal.slots) if slot.differentiable])
    if tape.room is None:
        return f"none: {tape.because}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {t: _under_jax(kernel, args, tuple(map(np.asarray, bars))) for t, kernel in kernels.items()}
    values, pullback = ig.vjp(plain, *args)
    wanted = [*map(np.asarray, values), *(np.asarray(g) for g in pullback(bars) if g is not None)]
    for t, made in found.items():
        for number, (a, b, c) in enumerate(zip(made, found[1], wanted, strict=True)):
            if not np.array_equal(a, b, equal_nan=True):
                return f"{t} threads: result {number} has other bits: {a} {b}"
            if np.isfinite(c).all() and not np.allclose(a, c, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(c).max()))):
                return f"{t} threads: result {number} is {a}, without {c}"
    return _differences(plain, args, bars, found[3][3:], rng)


def _differences(
    plain: Any, args: tuple[Any, ...], bars: tuple[Any, ...], gradients: list[Any], rng: np.random.Generator
) -> str:
    x, w, alpha, at, steps = args
    along = (rng.normal(size=x.size), rng.normal(size=w.size), 0.3)

    def value(e: float) -> float:
        rows = plain(x + e * along[0], w + e * along[1], alpha + e * along[2], at, steps)
        return float(sum(np.vdot(bar, row) for bar, row in zip(bars, rows, strict=True)))

    slope = (value(1e-6) - value(-1e-6)) / 2e-6
    made = float(sum(np.vdot(g, d) for g, d in zip(gradients, along, strict=True)))
    return "right" if abs(slope - made) < 1e-4 * max(1.0, abs(slope)) else f"differences give {slope}, it is {made}"


def main() -> int:
    """Check a range of seeds."""
    first, _, last = sys.argv[1].partition(":")
    wrong = 0
    for seed in range(int(first), int(last or int(first) + 1)):
        try:
            said = check(seed)
        except Exception as error:  # a crash is a finding
            said = f"{type(error).__name__}: {error}"
        wrong += not said.startswith(("right", "none"))
        if said != "right":
            print(seed, said, flush=True)
    print(f"{wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    from small_chunks import small_chunks

    small_chunks()
    sys.exit(main())
