"""Random kernels whose loops threads share: values and gradients are those of the kernel as it is, the same bits on any
number of threads, and those of forward mode.

    python tests/fuzz/shared_loops.py 0:1000        check the kernels of these seeds

Odd seeds are loops that the source promises independent, over arrays that are read by rows, by neighbours, by subscripts
out of memory, and that are written in place, to other arrays, to scratch memory; every other one of them also updates
elements of an array atomically or in critical sections. Even seeds are the nests of `nests.py`, in which nothing is
promised. Every third seed also has second derivatives: products with the Hessian of a function around it that hands on
all of its outputs.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import random
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from small_chunks import small_chunks

from fuzz.nests import HEAD, HELPER, SIGNATURE, Nest

PROMISED = "f64(f64[n] x, inout f64[n] y, f64[m] w, i64[n] at, i64 n, i64 m)"
_TEAMS = (1, 2, 5)
_WHOLE = """
double whole(const double *x, const double *given, ARGS) {
    double *y = malloc(n * sizeof(double)), s;
    for (long i = 0; i < n; i++) y[i] = given[i];
    s = f(x, y, NAMES);
    for (long i = 0; i < n; i++) s += cos(i) * y[i] * (1 + 0.1 * y[i]);
    free(y);
    return s;
}
"""


class Promised:
    """A function of promised loops, by its seed."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.atomic = seed % 4 == 3
        loops = "".join(self._loop() for _ in range(self.r.randint(1, 4)))
        around = self.r.random() < 0.3
        body = f"for (long t = 0; t < 3; t++) {{{loops}    }}" if around else loops
        self.source = f"""{HEAD}{HELPER}
double f(const double *x, double *y, const double *w, const long *at, long n, long m) {{
    double *u = malloc(n * sizeof(double)), *v = calloc(n, sizeof(double)), s = 0.5;
    for (long i = 0; i < n; i++) u[i] = x[i] * 0.5 + y[i];
    {body}
    for (long i = 0; i < n; i++) s += u[i] * v[i] + y[i] * 0.3;
    free(u); free(v);
    return s;
}}
"""

    def _term(self, target: str) -> str:
        """Something an iteration reads; of the array that it writes only its own place."""
        r = self.r
        other = [name for name in "uvyx" if name != target]
        name = r.choice(other)
        return r.choice([f"{name}[i]", f"{name}[at[i]]", f"{name}[i ? i - 1 : n - 1]", f"{name}[(i * 3 + 1) % n]",
                         f"w[{r.choice(['0', 'i % m', 'at[i] % m'])}]", f"{target}[i]", f"({r.uniform(-1, 1):.2f})", "0.1 * i",
                         f"{name}[0]"])  # fmt: skip

    def _loop(self) -> str:
        r, target = self.r, self.r.choice("uvy")
        a, b, c = (self._term(target) for _ in range(3))
        value = r.choice([f"sin({a}) * {b} + 0.3 * {c}", f"{a} > {b} ? {a} * {c} : cos({b})", f"exp(-{a} * {a}) + {b}",
                          f"0.4 * {a} + 0.2 * {b} * {c}", f"tanh({a} - {b})"])  # fmt: skip
        kind = r.random()
        if kind < 0.25:
            value = f"({value}) + s_{target}"
            inner = f"double s_{target} = 0; for (long j = 0; j < m; j++) s_{target} += w[j] * {r.choice([a, b, '0.1 * j'])};"
        elif kind < 0.4:
            inner = "double h[3]; for (int k = 0; k < 3; k++) h[k] = sin(k + " + a + ");"
            value = f"h[0] * h[1] + h[{r.choice(['2', 'i % 3'])}] * {b}"
        elif kind < 0.5:
            inner = f"double *h = malloc(m * sizeof *h); mix(memset(h, 0, m * sizeof *h), w, m, {a});"
            value = f"({value}) * h[i % m]; free(h)"
        else:
            inner = ""
        end = ""
        sums = r.random() < 0.3
        if sums:
            end = f" s += {r.choice([a, b, f'{target}[i]'])} * 0.1;"
        step = r.choice(["i = 0; i < n; i++", "i = 0; i < n; i += 2", "i = n - 1; i >= 0; i--", "i = 1; i < n - 1; i++"])
        clause = (" reduction(+:s)" if sums else "") + r.choice(["", "", " schedule(static, 2)", " schedule(dynamic)"])
        store = f"{target}[i] {r.choice(['=', '=', '+=', '*='])} {value};"
        if r.random() < 0.25:
            store = f"if ({a} > 0.3) {{ {store} }}"
        body = f"{inner} {store}{end}"
        if self.atomic and r.random() < 0.7:
            body = self._updated(target, body)
        return f"""
    #pragma omp parallel for{clause}
    for (long {step}) {{ {body} }}
"""

    def _updated(self, target: str, body: str) -> str:
        """An iteration that also adds to elements of an array with which it does nothing else, or now and then does."""
        r = self.r
        array = r.choice([name for name in "uvy" if name != target])
        if r.random() < 0.9:
            body = re.sub(rf"\b{array}\[", "x[", body)
        rows = ""
        for _ in range(r.randint(1, 2)):
            place = r.choice(["at[i]", "i / 2", "(i * 5 + 2) % n", "at[n - 1 - i]", "at[at[i]]", "0"])
            value = r.choice([f"{target}[i] * 0.3", "sin(x[i])", "w[i % m] * x[at[i]]", "0.5", f"x[i] * {target}[i]"])
            how = r.choice(["+=", "-=", "+="])
            row = f"\n#pragma omp atomic\n{array}[{place}] {how} {value};\n"
            if r.random() < 0.3:
                row = f"{{ double d = {value};\n#pragma omp critical\n{{ {array}[{place}] {how} d; }}\n}}"
            rows += r.choice([row, row, f"if (x[i] > 0.1) {{{row}}}", f"for (int q = 0; q < 2; q++) {{{row}}}"])
        return f"{body}{rows}"


def _whole(args: str, names: str) -> str:
    """A function that returns a number made of all that `f` gives."""
    return _WHOLE.replace("ARGS", args).replace("NAMES", names)


def subject(seed: int) -> tuple[Any, str, tuple[Any, ...], list[str]]:
    """The library of a seed, the signature of `f`, arguments, and what is differentiated."""
    import irgrad as ig

    r = np.random.default_rng(seed)
    n = int(r.choice([1, 2, 3, 7, 16, 17, 40, 65]))
    x, y = r.uniform(-1, 1, n), r.uniform(-1, 1, n)
    if seed % 2 == 0:
        n = max(n % 16, 3)  # of arrays on the stack
        source = Nest(seed).source + _whole("long n, long steps", "n, steps")
        return ig.load(source), SIGNATURE, (x[:n] if len(x) >= n else np.resize(x, n), np.resize(y, n), int(r.integers(0, 6))), ["x", "y"]
    m = int(r.integers(1, 6))
    source = Promised(seed).source + _whole("const double *w, const long *at, long n, long m", "w, at, n, m")
    return ig.load(source, flags=["-fopenmp"]), PROMISED, (x, y, r.uniform(-1, 1, m), r.integers(0, n, n)), ["x", "y", "w"]


def _results(kernel: Any, args: tuple[Any, ...], wrt: list[str]) -> list[Any]:
    import irgrad as ig

    value, y = kernel(*args)
    bar = (1.3, np.cos(np.arange(y.size)))
    _, pullback = ig.vjp(kernel, *args)
    gradients = [np.asarray(g) for g in pullback(bar) if g is not None]
    tangents = [np.sin(np.arange(np.size(a)) + 1.0) if np.asarray(a).dtype.kind == "f" else None for a in args]
    _, pushed = ig.jvp(kernel, args, tangents)
    dot = 1.3 * float(pushed[0]) + float(bar[1] @ pushed[1])
    dual = sum(float(g @ t) for g, t in zip(gradients, [t for t in tangents if t is not None], strict=True))
    return [np.asarray(value), y, *gradients, *map(np.asarray, pushed), np.asarray([dot, dual])]


def _products(kernel: Any, args: tuple[Any, ...], wrt: list[str]) -> list[Any]:
    """Two products of vectors with the Hessian, and what each gives with the other's vector."""
    import irgrad as ig

    active = [np.asarray(a) for a in args[: len(wrt)]]
    rows = [[np.sin(np.arange(a.size) + k) for a in active] for k in (1.0, 2.5)]
    found = [[np.asarray(p) for p in ig.hvp(kernel, args, tuple(row), wrt=tuple(wrt))] for row in rows]
    both = [sum(float(p @ t) for p, t in zip(found[k], rows[1 - k], strict=True)) for k in (0, 1)]
    return [*found[0], *found[1], np.asarray(both)]


def check(seed: int) -> str:
    """What is wrong with a seed; "right" or "right: so many loops are shared"."""
    from irgrad.engine.kernel.shared_loops import shared_loops

    lib, signature, args, wrt = subject(seed)
    whole = "f64(" + signature.partition("(")[2].replace("inout f64[n] y", "f64[n] given")
    products = [w if w != "y" else "given" for w in wrt] if seed % 3 == 0 else []

    def results(threads: int | None) -> tuple[Any, list[Any]]:
        kernel = lib.kernel("f", signature, threads=threads)
        more = _products(lib.kernel("whole", whole, threads=threads), args, products) if products else []
        return kernel, [*_results(kernel, args, wrt), *more]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, plain = results(None)
        teams = {t: results(t) for t in _TEAMS}
    for team, (_, found) in teams.items():
        for number, (a, b, c) in enumerate(zip(found, teams[1][1], plain, strict=True)):
            if not np.array_equal(a, b, equal_nan=True):
                return f"{team} threads: result {number} has other bits: {a} {b}"
            size = max(1.0, float(np.abs(c).max(initial=0)))
            if np.isfinite(c).all() and not np.allclose(a, c, rtol=1e-9, atol=1e-9 * size):
                return f"{team} threads: result {number} is {a}, without {c}"
    pairs = [plain[-1], *([plain[-1 - 2 * len(products) - 1]] if products else [])]
    for one, other in pairs:  # of both modes; of two vectors
        if np.isfinite(one) and abs(one - other) > 1e-8 * max(1, abs(one)):
            return f"without threads: {one} one way, {other} the other"
    return f"right: {len(shared_loops(teams[1][0].primal).shared)}"


def main() -> int:
    """Check a range of seeds."""
    small_chunks()
    first, _, last = sys.argv[1].partition(":")
    begin, wrong, shared, loops = time.time(), 0, 0, 0
    for seed in range(int(first), int(last or int(first) + 1)):
        try:
            said = check(seed)
        except Exception as error:  # a crash is a finding
            said = f"{type(error).__name__}: {error}"
        if said.startswith("right"):
            count = int(said.partition(": ")[2])
            shared, loops = shared + bool(count), loops + count
        else:
            wrong += 1
            print(seed, said, flush=True)
        if seed % 25 == 24:
            print(f"{seed + 1}: {wrong} wrong, {shared} kernels share {loops} loops, {time.time() - begin:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
