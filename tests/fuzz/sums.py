"""Random loops over independent iterations whose sums go into a result: the fused schedule, and what forbids it.

    python tests/fuzz/sums.py 0:1000    the gradients of these seeds

Each is a C function with a loop over samples: scratch of an iteration (written whole or not), tables that stay or
change, several sums (also conditional ones, and such that go on in a later loop), states that iterations hand on, ends
by what is computed; behind it an expression of the sums that is linear or not, that reads or writes the loop's memory
or not. The gradient with both sweeps of one iteration at a time, where the engine finds that it may, has to be that
of forward mode, whose values are the same bits.
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

HEAD = "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n"
SIGNATURE = "f64(f64[n] x, inout f64[m] w, i64[n] p, i64 n, i64 m)"
HELPERS = """
static __attribute__((noinline)) double dot(const double *a, const double *b, long m) {
    double s = 0;
    for (long k = 0; k < m; k++) s += a[k] * b[k];
    return s;
}
struct totals { double first; double second; long count; };
"""


class Sums:
    """The source of a loop, by its seed."""

    def __init__(self, seed: int) -> None:
        r = self.r = random.Random(seed)
        self.scratch = r.choice(["heap", "stack", "inside", "none"])
        self.table = r.choice(["heap", "argument", "argument"])
        self.sums = ["s"] + (["r"] if r.random() < 0.5 else [])
        self.state = r.choice([""] * 6 + ["lag", "seen", "random", "largest"])
        self.cell = r.random() < 0.25  # the first sum lies in memory
        self.source = HEAD + HELPERS + self._function()

    def _function(self) -> str:
        r = self.r
        lines = ["double f(const double *x, double *w, const long *p, long n, long m) {"]
        begin = [f"{s} = {r.choice(('0', '0.5', 'w[0]', 'x[0] * 0.1'))}" for s in self.sums]
        lines.append(f"    double {', '.join(begin)};")
        if self.cell:
            lines.append("    struct totals all = {s, 0, 0}; struct totals *to = &all;")
        if self.table == "heap":
            lines.append("    double *e = malloc(m * sizeof *e); for (long k = 0; k < m; k++) e[k] = exp(0.3 * w[k]);")
        else:
            lines.append("    double *e = w;")
        if self.scratch == "heap":
            lines.append("    double *t = calloc(m, sizeof *t);")
        elif self.scratch == "stack":
            lines.append("    double t[16]; memset(t, 0, sizeof t);")
        lines.append("    double c = cos(w[0]), lag = 0.3, seen = 0, largest = -1e9; unsigned long random = 7; long ran = 0;")
        lines += self._loop()
        lines += self._behind()
        lines += ["    free(t);"] * (self.scratch == "heap") + ["    free(e);"] * (self.table == "heap")
        return "\n".join([*lines, "    return result;", "}"]) + "\n"

    def _loop(self) -> list[str]:
        r = self.r
        head = r.choice(["for (long i = 0; i < n; i++) {", "for (long i = n - 1; i >= 0; i--) {", "long i = -1; while (++i < n) {",
                         "for (long i = 0; i < n; i += 2) {", "for (const double *q = x; q < x + n; q++) { long i = q - x;"])  # fmt: skip
        body = [head]
        if r.random() < 0.2:
            body.append(f"    if (x[i] {r.choice('<>')} 0.{r.randint(3, 8)}) continue;")
        if r.random() < 0.15:
            body.append("    if (x[i] > 0.87) break;")
        if self.scratch == "inside":
            body.append(f"    double {r.choice(['t[16]', '*t = malloc(m * sizeof *t)'])};")
        freed = "malloc" in body[-1] if len(body) > 1 else False
        body.append("    double v = " + self._value("x[i]") + ";")
        if self.scratch != "none":
            first = r.choice(["0", "0", "0", "0", "1"])  # 1: what iteration before left there is read
            if self.scratch == "inside":
                first = "0"  # else it has no value
            body.append(f"    for (long k = {first}; k < m; k++) t[k] = {self._value('e[k]')} * v;")
            if r.random() < 0.4:
                body.append("    for (long k = 1; k < m; k++) t[k] += 0.3 * t[k - 1] * t[k - 1];")
            body.append(f"    v = {r.choice(['dot(t, e, m)', 'sin(dot(t, t, m))', 'dot(t, w, m) + t[m - 1]', 'sqrt(1 + t[0] * t[m - 1] * t[0] * t[m - 1])'])};")
        if self.state == "lag":
            body.append("    lag = 0.5 * lag + v; v = lag * v;")
        elif self.state == "seen":
            body.append("    v *= 1 + 0.01 * seen; seen += 1;")
        elif self.state == "random":
            body.append("    random = random * 6364136223846793005ul + 1442695040888963407ul; if (random >> 63) v *= 1.5;")
        elif self.state == "largest":
            body.append("    if (v > largest) largest = v;")
        if r.random() < 0.1:
            body.append("    e[0] = 0.9 * e[0];")
        if freed:
            body.append("    free(t);")
        for s in self.sums:
            to = "to->first" if self.cell and s == "s" else s
            more = r.choice(["v", "v * c", "v * v", "v * e[p[i]]", "log(1 + v * v) * x[i]"])
            body.append(r.choice([f"    {to} += {more};", f"    {to} += {more};", f"    {to} -= {more};", f"    if (v > 0.2) {to} += {more};",
                                  f"    {to} = {more} + {to};", f"    if (v < 0.1) {{ {to} += {more}; }} else {{ {to} -= 2 * {more}; }}"]))  # fmt: skip
        if self.cell:
            body.append("    to->count++;")
        if r.random() < 0.06:
            body.append(f"    {self.sums[-1]} *= 0.99;")
        return ["    " + line for line in [*body, "    ran++;", "}"]]

    def _value(self, of: str) -> str:
        return self.r.choice([f"sin({of})", f"{of} * {of}", f"(0.4 + {of})", f"exp(-{of} * {of})", f"{of} * c", of])

    def _behind(self) -> list[str]:
        r = self.r
        lines = ["    s = all.first;"] if self.cell else []
        if r.random() < 0.25:
            s = r.choice(self.sums)
            lines.append(f"    for (long k = 0; k < m; k++) {s} {r.choice(['+=', '-='])} {r.choice(['e[k] * e[k]', 'w[k]', 'sin(w[k])'])};")
        if r.random() < 0.08:
            lines.append("    for (long k = 0; k < m; k++) e[k] *= 1.1;")
        linear = r.random() < 0.75
        parts = []
        for s in self.sums:
            parts.append(r.choice([s, f"2 * {s}", f"-{s}", f"{s} * w[0]", f"{s} / (2 + w[m - 1])", f"c * {s}", f"{s} * n", f"({s} - x[0]) * 0.5"]) if linear
                         else r.choice([f"{s} * {s}", f"log(2 + {s} * {s})", f"({s} > 1 ? {s} : 0.5 * {s})", f"{s} * {self.sums[-1]}"]))
        if self.state in ("largest", "lag") and r.random() < 0.5:
            parts.append(self.state)
        if self.scratch in ("heap", "stack") and r.random() < 0.15:
            parts.append("t[0]")
        lines.append(f"    double result = {' + '.join(parts)};")
        if self.table != "heap" and r.random() < 0.3:
            lines.append(r.choice(["    w[m - 1] = result;", "    w[0] = 2 * s;", "    w[m - 1] += result; result *= 0.5;", "    w[0] = 0; result += w[1];"]))
        if r.random() < 0.15:
            lines.append("    result += ran;")
        return lines


def choices(seed: int) -> tuple[bool, str]:
    """Whether the loop of a seed is fused; and what its gradients are: "right", "refused", or what is wrong."""
    import irgrad as ig

    made, r = Sums(seed), random.Random(seed + 1)
    n, m = r.choice([0, 1, 5, 16, 17, 45, 90]), r.choice([1, 2, 3, 7])
    draw = np.random.default_rng(seed)
    x, w, p = draw.uniform(0.2, 0.9, max(n, 1)), draw.uniform(0.2, 0.9, m), draw.integers(0, m, max(n, 1))
    opt = r.choice(["O1", "O2", "O2", "O3"])
    library = ig.load(made.source, opt=opt)
    plain = library.kernel("f", SIGNATURE)
    arguments = (x, w.copy(), p)
    values = plain(x, w.copy(), p)
    direction = draw.normal(size=len(x)), draw.normal(size=m)
    _, tangents = ig.jvp(plain, arguments, (direction[0], direction[1], None))
    seeds = 1.3, draw.normal(size=m)
    wanted = float(seeds[0] * tangents[0] + seeds[1] @ tangents[1])
    kernel = library.kernel("f", SIGNATURE, tape_memory=r.choice(["2kB", "64kB", "1MB"]))
    try:
        outputs, pullback = ig.vjp(kernel, x, w.copy(), p)
        gradients = pullback(seeds)
    except ig.Unsupported as error:
        return False, f"refused: {error}"
    fused = ".fused." in str(kernel.primal.vjp([0, 1, 5]).stage.text)
    found = float(gradients[0] @ direction[0] + gradients[1] @ direction[1])
    same = all(np.array_equal(a, b) for a, b in zip(outputs, values, strict=True))
    if not same or not abs(found - wanted) <= 1e-9 * (1 + abs(wanted)):
        return fused, f"{'fused' if fused else 'not fused'}: {found} for {wanted}, values {'equal' if same else 'differ'}"
    return fused, "right"


def check(seed: int) -> str:
    """What the gradients of a seed are."""
    return choices(seed)[1]


def main() -> int:
    """Check a range of seeds, and say how many were fused."""
    first, _, last = sys.argv[1].partition(":")
    fused = 0

    def one(seed: int) -> str:
        nonlocal fused
        so, said = choices(seed)
        fused += so
        return said

    wrong = count(one, range(int(first), int(last or int(first) + 1)))
    print(f"fused: {fused}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
