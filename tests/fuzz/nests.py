"""Random nests of loops around a time loop, whose gradients keep states in place of a tape.

    python tests/fuzz/nests.py 0:1000           the gradients of these seeds under some of the choices of each
    python tests/fuzz/nests.py 0:1000 --rows    buffers are tables of rows

Each nest is a C function of an array: buffers that change places, stencils, subscripts that are affine, reflected or
read from memory, scratch of an iteration, sums in memory, conditions on data, ends by what is computed, copies, calls,
loops within the time loop. Its gradient with states has to be that of forward mode, and the value the same bits.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.verdicts import count

CHOICES: tuple[Any, ...] = (1, 2, 7, "binomial:1", "binomial:3", "memory:1kB", "memory:64kB")
HEAD = "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n"
SIGNATURE = "f64(f64[n] x, inout f64[n] y, i64 n, i64 steps)"
HELPER = """
static __attribute__((noinline)) void mix(double *to, const double *from, long n, double p) {
    for (long i = 0; i < n; i++) to[i] = 0.7 * to[i] + 0.3 * sin(p * from[i]);
}
"""


class Nest:
    """The source of a nest, by its seed; with `rows` its buffers are tables of rows of three numbers."""

    def __init__(self, seed: int, *, rows: bool = False) -> None:
        self.r, self.rows = random.Random(seed), rows
        self.memory = [self._memory(name) for name in "uvw"[: self.r.randint(1, 3)]]
        self.names = [name for name, _, _ in self.memory]
        self.source = HEAD + HELPER + self._function()

    def _memory(self, name: str) -> tuple[str, str, str]:
        """A buffer: name, declaration, what comes at the end."""
        if self.rows:
            heap = self.r.random() < 0.7
            table = f"double **{name}0 = malloc(n * sizeof *{name}0)" if heap else f"double *{name}_[16], **{name}0 = {name}_"
            each = f"{name}0[i] = malloc(3 * sizeof(double));"
            end = f"for (long i = 0; i < n; i++) free({name}0[i]);{f' free({name}0);' if heap else ''}"
            return name, f"{table}, **{name} = {name}0; for (long i = 0; i < n; i++) {each}", end
        kind = self.r.choice(["malloc", "malloc", "stack", "static", "argument", "calloc"])
        if kind in ("malloc", "calloc"):
            call = "malloc(n * sizeof(double))" if kind == "malloc" else "calloc(n, sizeof(double))"
            return name, f"double *{name}0 = {call}, *{name} = {name}0;", f"free({name}0);"
        if kind == "argument" and name == "u":
            return name, f"double *{name} = y;", ""
        static = "static " if kind == "static" else ""
        return name, f"{static}double {name}0[16]; double *{name} = {name}0;", ""

    def _function(self) -> str:
        r = self.r
        all_of, cell = ("for (long c = 0; c < 3; c++) ", "[i][c]") if self.rows else ("", "[i]")
        start = "\n    ".join(f"{d} for (long i = 0; i < n; i++) {all_of}{n}{cell} = x[i] * {r.uniform(0.3, 1):.2f};"
                              for n, d, _ in self.memory)  # fmt: skip
        end = " ".join(e for _, _, e in self.memory)
        sums = " ".join(f"{all_of}result += {n}{cell} * {r.uniform(0.2, 1):.2f};" for n in self.names)
        return f"""
double f(const double *x, double *y, long n, long steps) {{
    {start}
    long idx[16]; for (long i = 0; i < n; i++) idx[i] = (i * {r.choice([1, 2, 3, 5])} + {r.randint(0, 4)}) % n;
    double s = 0.3, acc[2] = {{0.1, 0.2}}, result = 0;
    unsigned long rnd = {r.randint(1, 99999)};
    {self._time()}
    for (long i = 0; i < n; i++) {{ {sums} result += y[i] * y[i] * 0.1; }}
    result += s * acc[0] + acc[1];
    {end}
    return result;
}}
"""

    def _time(self) -> str:
        r = self.r
        body = [self._statement(2) for _ in range(r.randint(1, 4))]
        if r.random() < 0.35:
            body.insert(r.randint(0, len(body)), self._leave())
        inner = "\n        ".join(body)
        head = r.choice(["for (long t = 0; t < steps; t++)", "for (int t = 0; t < (int)steps; t += 1)",
                         "for (long t = steps; t-- > 0;)", "for (unsigned t = 1; t <= steps; t += 2)"])  # fmt: skip
        loop = f"{head} {{\n        {inner}\n    }}"
        if r.random() < 0.2:
            return f"for (long round = 0; round < 2; round++) {{ {loop}\n    s *= 0.9; }}"
        return loop

    def _leave(self) -> str:
        r = self.r
        return r.choice([f"if (s > {r.uniform(0.3, 2):.2f}) break;", "if (t % 5 == 3) continue;",
                         f"if (fabs(acc[0]) > {r.uniform(0.2, 3):.2f}) {{ s *= 1.5; break; }}"])  # fmt: skip

    def _statement(self, depth: int) -> str:
        r = self.r
        a, b = r.choice(self.names), r.choice(self.names)
        kinds = ["sweep", "sweep", "sweep", "sum", "scalar", "scratch", "copy", "call", "random", "condition"]
        kinds += ["swap", "swap"] if len(self.names) > 1 else []
        kinds += ["steps"] if depth else []
        match r.choice(kinds):
            case "sweep":
                return f"{self._loop()} {self._cell(a, self._index())} = {self._value(3)};"
            case "sum":
                return f"{self._loop()} acc[{r.randint(0, 1)}] += 0.1 * {self._value(2)};"
            case "scalar":
                return f"s = tanh(s + 0.2 * {self._cell(a, 't % n')} * x[(t * 3) % n]);"
            case "scratch":
                value, heap = self._value(2), r.random() < 0.5
                memory = "double *q = malloc(n * sizeof *q);" if heap else "double q[16];"
                cell = self._cell(b, "i")
                return (f"{{ {memory} for (long i = 0; i < n; i++) q[i] = {value}; "
                        f"for (long i = 0; i < n; i++) {cell} = 0.5 * {cell} + 0.4 * q[n - 1 - i]; "
                        f"{'free(q);' if heap else ''} }}")  # fmt: skip
            case "copy" if a != b and self.rows:
                return f"{self._loop()} memcpy({a}[i], {b}[{r.choice(['i', 'n - 1 - i'])}], {r.choice([1, 3])} * sizeof **{a});"
            case "call" if a != b and self.rows:
                return f"mix({a}[{r.choice(['0', 'n - 1'])}], {b}[n / 2], 3, x[0]);"
            case "swap" if a != b and self.rows:
                where = r.choice(["", "", "", "[0]"])
                return f"{{ double {'*' if where else '**'}c = {a}{where}; {a}{where} = {b}{where}; {b}{where} = c; }}"
            case "copy" if a != b:
                return f"memcpy({a}, {b}, {r.choice(['n', 'n / 2', '2'])} * sizeof *{a});"
            case "call" if a != b:
                return f"mix({a}, {b}, n, x[0]);"
            case "random":
                return f"rnd = rnd * 6364136223846793005ul + 1442695040888963407ul; {self._cell(a, '(rnd >> 33) % n')} *= 0.9 + 0.1 * s;"
            case "swap" if a != b:
                return f"{{ double *c = {a}; {a} = {b}; {b} = c; }}"
            case "steps":
                return f"for (long k = 0; k < {r.choice(['2', 't % 3', 'n / 2'])}; k++) {{ {self._statement(depth - 1)} }}"
            case _:
                cell = self._cell(a, r.choice(["0", "t % n", "n - 1"]))
                return f"if ({cell} > {r.uniform(-0.5, 0.8):.2f}) {{ {self._statement(0)} }}"

    def _cell(self, name: str, index: str) -> str:
        """An element of a buffer."""
        return f"{name}[{index}]" + (f"[{self.r.choice(['0', '1', '2', '(t + 1) % 3'])}]" if self.rows else "")

    def _loop(self) -> str:
        return self.r.choice(["for (long i = 0; i < n; i++)", "for (int i = 1; i + 1 < (int)n; i++)",
                              "for (long i = n - 1; i >= 0; i--)", "for (unsigned i = 0; i < n; i += 2)",
                              "for (long i = 0; i < n; i++) for (long j = 0; j <= i; j += 3)"])  # fmt: skip

    def _index(self) -> str:
        if self.rows:
            return self.r.choice(["i", "i", "i", "i", "n - 1 - i", "0", "(i + 1) % n"])
        return self.r.choice(["i", "i", "i", "idx[i]", "(i + 1) % n", "n - 1 - i", "(2 * i + t) % n"])

    def _value(self, depth: int) -> str:
        r = self.r
        if depth == 0 or r.random() < 0.2:
            array = r.choice([*self.names, "x", "y"])
            if self.rows and array in self.names:
                return self._cell(array, self._index())
            return r.choice([f"{array}[{self._index()}]", f"{array}[{self._index()}]", "s", f"{r.uniform(0.2, 1):.2f}"])
        a, b = self._value(depth - 1), self._value(depth - 1)
        return r.choice([f"sin({a} + {b})", f"tanh({a} * {b})", f"(0.5 * {a} + 0.4 * {b})", f"({a} * {b} * 0.6)",
                         f"({a} > {b} ? {a} : 0.7 * {b})", f"exp(-{a} * {a}) * {b}"])  # fmt: skip


def check(seed: int, *, rows: bool = False) -> str:
    """What a nest's gradients are: "right", "refused", or what is wrong."""
    import irgrad as ig

    nest, r = Nest(seed, rows=rows), random.Random(seed + 1)
    n, steps = r.randint(3, 9), r.choice([0, 1, 2, 5, 12, 23])
    draw = np.random.default_rng(seed)
    x, y = draw.uniform(0.2, 0.9, n), draw.uniform(0.2, 0.9, n)
    library = ig.load(nest.source)
    direction = draw.normal(size=(2, n))
    plain = library.kernel("f", SIGNATURE)
    values = plain(x, y.copy(), steps)
    _, tangents = ig.jvp(plain, (x, y.copy(), steps), (direction[0], direction[1], None))
    seeds = (1.3, draw.normal(size=n))
    wanted = float(seeds[0] * tangents[0] + seeds[1] @ tangents[1])
    inner = [number for number, row in enumerate(nest.source.splitlines(), 1) if "(long k" in row or "(long round" in row]
    for choice in r.sample(CHOICES, 2):
        lines = {line: r.choice(CHOICES) for line in inner if r.random() < 0.3}
        try:
            kernel = library.kernel("f", SIGNATURE, checkpoint={"*": choice, **lines})
            outputs, pullback = ig.vjp(kernel, x, y.copy(), steps)
            gradients = pullback(seeds)
        except ig.Unsupported as error:
            if not lines:
                return f"refused: {error}"
            continue
        found = float(gradients[0] @ direction[0] + gradients[1] @ direction[1])
        same = all(np.array_equal(a, b) for a, b in zip(outputs, values, strict=True))
        if not same or not abs(found - wanted) <= 1e-9 * (1 + abs(wanted)):
            return f"{choice}: {found} for {wanted}, values {'equal' if same else 'differ'}"
    return "right"


def program(seeds: range) -> str:
    """A C program that prints the gradients of these nests through the notation, a line each."""
    parts, calls = [], []
    for seed in seeds:
        nest, r = Nest(seed), random.Random(seed + 1)
        body = nest.source[nest.source.index("double f(") :].replace("double f(", f"static double f{seed}(")
        parts.append(f"""{body}
static __attribute__((noinline)) void g{seed}(double *x, double *dx, double *y, double *dy, long n, long steps) {{
    __enzyme_autodiff((void *)f{seed}, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n, enzyme_const, steps);
}}""")
        n, steps = r.randint(3, 9), r.choice([0, 1, 2, 5, 12, 23])
        calls.append(f"show({seed}, g{seed}, {n}, {steps});")
    newline = "\n    "
    return HEAD + f"""#include <stdio.h>
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *, ...);
{HELPER}{"".join(parts)}
static void show(int seed, void (*g)(double *, double *, double *, double *, long, long), long n, long steps) {{
    double *x = malloc(8 * n), *dx = calloc(n, 8), *y = malloc(8 * n), *dy = malloc(8 * n);
    for (long i = 0; i < n; i++) {{ x[i] = 0.2 + 0.07 * ((i * 5 + seed) % 10); y[i] = 0.9 - x[i] * 0.5; dy[i] = sin(i); }}
    g(x, dx, y, dy, n, steps);
    printf("%d", seed);
    for (long i = 0; i < n; i++) printf(" %.17g %.17g %.17g", dx[i], y[i], dy[i]);
    puts("");
    free(x); free(dx); free(y); free(dy);
}}
int main(void) {{
    {newline.join(calls)}
}}
"""


def check_program(seeds: range, memory: str) -> dict[int, str]:
    """What the gradients of these nests in a C program are with `--tape-memory`, against those with a tape."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "nests.c"
        file.write_text(program(seeds), encoding="utf-8")
        rows = []
        for options in ([], [f"--tape-memory={memory}"]):
            command = [sys.executable, "-m", "irgrad.interop.cli", "run", "-O2", *options, str(file), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return {seeds[0]: f"{options}: {done.stderr[-900:]}"}
            rows.append([[float(word) for word in line.split()] for line in done.stdout.splitlines()])
    found = {}
    for seed, plain, other in zip(seeds, *rows, strict=True):
        same = np.allclose(other, plain, rtol=1e-9, atol=1e-10) and plain[2::3] == other[2::3]
        found[seed] = "right" if same else f"{other} for {plain}"
    return found


def kept_states(seed: int, *, rows: bool = False) -> bool:
    """Whether the loop of a nest can keep states."""
    import irgrad as ig

    kernel = ig.load(Nest(seed, rows=rows).source).kernel("f", SIGNATURE, checkpoint={"*": 2})
    return ".segment." in str(kernel.primal.pullback([0, 1, 4]).stage.text)


def main() -> int:
    """Check a range of seeds."""
    first, _, last = sys.argv[1].partition(":")
    begin = time.time()
    seeds = range(int(first), int(last or int(first) + 1))
    if "--program" in sys.argv:
        wrong = 0
        for start in range(seeds[0], seeds[-1] + 1, 10):
            part = range(start, min(start + 10, seeds[-1] + 1))
            for seed, said in check_program(part, ("1kB", "64kB", "4kB")[start // 10 % 3]).items():
                if said != "right":
                    wrong += 1
                    print(seed, said, flush=True)
            print(f"{part[-1] + 1}: {wrong} wrong, {time.time() - begin:.0f} s", flush=True)
        return 1 if wrong else 0
    return count(partial(check, rows="--rows" in sys.argv), seeds)


if __name__ == "__main__":
    sys.exit(main())
