"""Random kernels that look for the largest and the smallest, with the index, among numbers with ties.

    python tests/fuzz/extrema.py 0:1000      the gradients of these seeds

Each kernel goes over points and, for each, over candidates: what a candidate is worth is computed or loaded, the best
one is kept by `if`, by a choice or by a function, strictly or not, from either end, with its index, with the second best
or several at once, with candidates left out or an early end. Half of the inputs are multiples of 1/4, so that many
candidates are equal: there reverse mode has to take the one that the program takes, as forward mode does. The others
have no ties, and are compared with differences too.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.verdicts import count

HEAD = "#include <math.h>\n#include <float.h>\n"
SIGNATURE = "f64(f64[n] x, f64[m] c, out f64[n] w, i64 n, i64 m)"
SCALAR = """double g(const double *x, const double *c, long n, long m) { double w[16]; return f(x, c, w, n, m); }
"""


class Search:
    """The source of a kernel, by its seed."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.source = HEAD + self._function()

    def _function(self) -> str:
        r = self.r
        loops = [self._search(number) for number in range(r.choice([1, 1, 2]))]
        inner = "\n        ".join(text for text, _ in loops)
        used = " + ".join(use for _, use in loops)
        head = r.choice(["for (long i = 0; i < n; i++)", "for (int i = 0; i < (int)n; i++)", "for (long i = n - 1; i >= 0; i--)"])
        late = r.choice(["", "", "total *= 0.9;", "if (total > 3) total = 0.5 * total;"])
        return f"""
double f(const double *x, const double *c, double *w, long n, long m) {{
    double total = 0;
    long count[16] = {{0}};
    {head} {{
        {inner}
        w[i] = {used};
        total += {r.choice(["w[i]", "w[i] * x[i]", "sin(w[i])"])};
        {late}
    }}
    return total + 1e-3 * count[0];
}}
{SCALAR}"""

    def _search(self, number: int) -> tuple[str, str]:
        """The text of a search and what is used of it."""
        r = self.r
        best, at, v = f"best{number}", f"at{number}", f"v{number}"
        least = r.random() < 0.5
        worth = self._worth()
        first = worth.replace("[j]", "[0]").replace("(double)j", "0.0")
        start = r.choice([first, first, "INFINITY" if least else "-INFINITY", "DBL_MAX" if least else "-DBL_MAX", "1.5"])
        compare = r.choice(["<", "<="] if least else [">", ">="])
        counter = r.choice(["for (long j = 0; j < m; j++)", "for (int j = 0; j < (int)m; j++)", "for (long j = m - 1; j >= 0; j--)",
                            "for (unsigned j = 1; j < m; j += 2)", "for (long j = i % 2; j < m; j++)"])  # fmt: skip
        skip = r.choice(["", "", "", "if (j == i) continue;", f"if (c[j] > {r.uniform(0.3, 1.4):.3f}) continue;"])
        leave = r.choice(["", "", "", "", f"if ({best} {'<' if least else '>'} {r.uniform(-2, 2):.3f}) break;"])
        kind = r.choice(["if", "if", "choice", "function", "second", "swapped"])
        if kind == "function":
            keep = f"{best} = {'fmin' if least else 'fmax'}({best}, {v});"
        elif kind == "choice":
            keep = f"{at} = {v} {compare} {best} ? j : {at}; {best} = {v} {compare} {best} ? {v} : {best};"
        elif kind == "second":
            keep = f"if ({v} {compare} {best}) {{ second{number} = {best}; {best} = {v}; {at} = j; }} else if ({v} {compare} second{number}) second{number} = {v};"
        elif kind == "swapped":
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[compare]
            keep = f"if ({best} {turned} {v}) {{ {at} = j; {best} = {v}; {r.choice(['', 'count[0]++;'])} }}"
        else:
            keep = f"if ({v} {compare} {best}) {{ {best} = {v}; {at} = j; }}"
        before = f"double {best} = {start}; long {at} = 0;" + (f" double second{number} = 2.25;" if kind == "second" else "")
        text = f"{before} {counter} {{ {skip} double {v} = {worth}; {keep} {leave} }}"
        finite = f"(fabs({best}) > 1e100 ? 0.0 : {best})"
        uses = [finite, f"{finite} * x[i]", f"sqrt(fabs({finite}) + 1)"]
        if kind not in ("function",):
            uses += [f"c[{at}] * x[i]", f"{finite} + 0.3 * c[{at}]", f"x[{at} % n]"]
        if kind == "second":
            uses = [f"({finite} - 0.5 * second{number})", *uses]
        return text, r.choice(uses)

    def _worth(self) -> str:
        r = self.r
        return r.choice(["(x[i] - c[j]) * (x[i] - c[j])", "x[i] * c[j]", "c[j]", "c[j] + x[i] * (double)j", "fabs(x[i] - c[j])",
                         "sin(x[i] * c[j])", "x[i] * x[i] - 2 * x[i] * c[j] + c[j] * c[j]", "exp(-c[j]) * x[i]"])  # fmt: skip


def check(seed: int) -> str:
    """What a kernel's gradient is: "right", "refused", or what is wrong."""
    import irgrad as ig

    search, draw = Search(seed), np.random.default_rng(seed)
    n, m = int(draw.integers(1, 9)), int(draw.integers(1, 14))
    tied = seed % 2 == 0
    x, c = draw.uniform(-1.5, 1.5, n), draw.uniform(-1.5, 1.5, m)
    if tied:
        x, c = np.round(4 * x) / 4, np.round(4 * c) / 4
    try:
        kernel = ig.load(search.source).kernel("f", SIGNATURE)
        direction = draw.normal(size=n), draw.normal(size=m)
        (value, w), (slope, moved) = ig.jvp(kernel, (x, c), (*direction,))
        seeds = (1.3, draw.normal(size=n))
        outputs, pullback = ig.vjp(kernel, x, c)
        rows = pullback(seeds)
        scalar = ig.load(search.source).kernel("g", "f64(f64[n] x, f64[m] c, i64 n, i64 m)")
        second = ig.hvp(scalar, (x, c), direction, wrt=("x", "c"))
    except ig.Unsupported as error:
        return f"refused: {error}"
    wanted = float(seeds[0] * slope + seeds[1] @ moved)
    found = float(rows[0] @ direction[0] + rows[1] @ direction[1])
    if outputs[0] != value or not np.array_equal(outputs[1], w):
        return f"values {outputs[0]} and {value}"
    if not abs(found - wanted) <= 1e-11 * (1 + abs(wanted)):
        return f"reverse {found}, forward {wanted}"
    if not all(np.isfinite(row).all() for row in (*rows, *second)):
        return f"not finite: {rows} {second}"
    if tied:
        return "right"
    step = 1e-6

    def at(t: float) -> float:
        total, values = kernel(x + t * direction[0], c + t * direction[1])
        return float(seeds[0] * total + seeds[1] @ values)

    near = [(at(t * step) - at(-t * step)) / (2 * t * step) for t in (1.0, 0.25)]
    if abs(near[0] - near[1]) > 1e-4 * (1 + abs(near[0])):
        return "right"  # a kink
    if not abs(near[0] - found) <= 1e-5 * (1 + abs(found)):
        return f"reverse {found}, differences {near}"
    gradient = ig.grad(scalar, wrt=("x", "c"))
    ends = [np.concatenate(gradient(x + t * direction[0], c + t * direction[1])) for t in (step, -step)]
    curved = (ends[0] - ends[1]) / (2 * step)
    if np.abs(curved).max() > 1e4:
        return "right"  # another candidate
    there = np.concatenate(second)
    return "right" if np.allclose(there, curved, rtol=1e-4, atol=1e-4) else f"second {there}, differences {curved}"


def main() -> int:
    """Check a range of seeds."""
    first, _, last = sys.argv[1].partition(":")
    return count(check, range(int(first), int(last or int(first) + 1)))


if __name__ == "__main__":
    sys.exit(main())
