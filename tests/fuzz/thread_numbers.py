"""Random regions whose threads know their numbers: values of real threads (gcc's), derivatives against differences.

    python tests/fuzz/thread_numbers.py 0:100

Threads write in one phase to their own places and read those of others in the next, with a barrier between: no program
has a race, and values do not depend on which thread comes first but for the order of sums.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

N = 19
SIGNATURE = "f64(f64[n] x, out f64[n] y, i32 n)"


class Regions:
    """A random function `double f(const double *x, double *y, int n)` with a region."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.threads = self.r.randint(1, 6)
        self.loops = 0
        self.helpers: list[str] = []

    def source(self) -> str:
        """The source, with all that it needs."""
        r = self.r
        asked = r.choice([f"num_threads({self.threads})", f"num_threads(n % 2 + {self.threads})", ""])
        first = "" if asked else f"  omp_set_num_threads({self.threads});\n"
        more = r.choice(["", " firstprivate(w)", " reduction(+ : s)"])
        inner = "".join(self._phase(k, 2) for k in range(r.randint(1, 4)))
        end = self._sum("s", more)
        body = f"""double f(const double *x, double *y, int n) {{
{first}  double part[64] = {{0}}, s = x[0], w = x[1], shared = 0.5;
  for (int k = 0; k < n; k++) y[k] = 0.1 * x[k];
#pragma omp parallel {asked}{more}
  {{
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    double t = w * (me + 1), own[3] = {{x[me % n], 0.5, all}};
{inner}{end}  }}
  for (int k = 0; k < 64; k++) s += part[k] * (k + 1);
  return s + shared + omp_get_thread_num();
}}
"""
        return "#include <math.h>\n#include <omp.h>\n" + "".join(self.helpers) + body

    def _sum(self, name: str, more: str) -> str:
        if "reduction" in more:
            return f"    {name} += t * {self.r.choice(['own[0]', '1.5', 'x[2]'])};\n"
        how = self.r.choice(["atomic", "critical"])
        return f"#pragma omp {how}\n    {name} += t * own[{self.r.randrange(3)}];\n"

    def _value(self) -> str:
        r = self.r
        return r.choice([
            f"sin(t + x[(me * {r.randint(1, 5)} + {r.randint(0, 9)}) % n])", f"x[(all + {r.randint(0, 9)}) % n] * t",
            f"own[(me + {r.randint(0, 2)}) % 3] * 0.7", f"cos(x[{r.randrange(N)}]) + 0.1 * me", "0.3 * t * t / (1 + t * t)",
            f"(me % 2 ? x[{r.randrange(N)}] : t)",
        ])  # fmt: skip

    def _private(self, depth: int) -> str:
        r, kind = self.r, self.r.randrange(6)
        if kind == 0:
            return f"    t = {self._value()};\n"
        if kind == 1:
            return f"    own[{r.choice(['0', '1', 'me % 3', 'all % 3'])}] {r.choice(['=', '+='])} {self._value()};\n"
        if kind == 2:
            return f"    part[me] {r.choice(['+=', '='])} {self._value()};\n"
        if kind == 3:
            return f"    if (me {r.choice(['==', '<', '!='])} {r.randint(0, 3)}) {{\n{self._private(depth)}    }}\n"
        if kind == 4 and depth:
            name = f"j{depth}{self._number()}"
            return f"    for (int {name} = me; {name} < n; {name} += all) t = t * 0.9 + 0.1 * sin(x[{name}] * {self._value()});\n"
        return f"    t += {self._value()};\n"

    def _number(self) -> int:
        self.loops += 1
        return self.loops

    def _shared(self) -> str:
        """A construct that the threads share, and that ends with a barrier."""
        r, i = self.r, f"i{self._number()}"
        schedule = r.choice(["", " schedule(static)", f" schedule(static, {r.randint(1, 5)})"])
        kind = r.randrange(6)
        head = f"for (int {i} = 0; {i} < n; {i}++)"
        if r.random() < 0.25:
            head = f"for (int {i} = n - 1; {i} >= 0; {i} -= {r.randint(1, 3)})"
        if kind <= 1:
            own = "" if schedule == "" and r.random() < 0.5 else " + 0.1 * me"
            return f"#pragma omp for{schedule}\n    {head} y[{i}] = {r.choice(['', 'y[' + i + '] * 0.5 + '])}sin(x[{i}] * t){own};\n"
        if kind == 2:
            return f"#pragma omp for{schedule} nowait\n    {head} {{ t += 0.1 * x[{i}] * (me + 1); y[{i}] = t; }}\n#pragma omp barrier\n"
        if kind == 3:
            return f"#pragma omp single\n    shared = shared * 0.5 + x[{r.randrange(N)}];\n"
        if kind == 4:
            return f"#pragma omp {r.choice(['master', 'masked'])}\n    shared += t * x[{r.randrange(N)}];\n#pragma omp barrier\n"
        name = f"helper{len(self.helpers)}"
        self.helpers.append(f"static double {name}(const double *x, double *y, int n, double t) {{\n"
                            f"  double own = omp_get_thread_num() * t;\n#pragma omp for{schedule}\n"
                            f"  {head} y[{i}] = y[{i}] + own * x[{i}] + omp_get_num_threads();\n  return own * 0.5;\n}}\n")  # fmt: skip
        return f"    t += {name}(x, y, n, t);\n"

    def _read(self) -> str:
        r = self.r
        return r.choice([
            f"    t += part[(me + {r.randint(1, 5)}) % all] * 0.5;\n", f"    t = 0.5 * t + y[(me * 3 + {r.randrange(N)}) % n];\n",
            "    for (int k = 0; k < me; k++) t += 0.1 * part[k];\n", "    t += shared * own[0];\n",
        ])  # fmt: skip

    def _phase(self, number: int, depth: int) -> str:
        r = self.r
        body = "".join(self._private(depth) for _ in range(r.randint(1, 3)))
        body += r.choice(["#pragma omp barrier\n", "#pragma omp barrier\n" + self._shared()])
        body += "".join(self._read() for _ in range(r.randint(1, 2))) + "#pragma omp barrier\n"
        if depth and r.random() < 0.35:
            name = f"turn{self._number()}"
            if r.random() < 0.3:
                return (f"    for (int {name} = 0; {name} < 4; {name}++) {{\n      if ({name} > 1 + all % 2) break;\n"
                        f"{body}{self._phase(number, 0)}    }}\n")  # fmt: skip
            return f"    for (int {name} = 0; {name} < {r.randint(1, 3)}; {name}++) {{\n{body}    }}\n"
        return body


def real_threads(source: str, x: np.ndarray, folder: Path) -> np.ndarray:
    """What the function computes on threads of gcc's library."""
    (folder / "f.c").write_text(source)
    (folder / "main.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\ndouble f(const double *, double *, int);\nint main(int c, char **v) {\n"
        "double x[99], y[99] = {0};\nfor (int i = 1; i < c; i++) x[i - 1] = atof(v[i]);\n"
        'printf("%.17g ", f(x, y, c - 1));\nfor (int i = 0; i < c - 1; i++) printf("%.17g ", y[i]);\n}\n')
    files = [folder / "f.c", folder / "main.c"]
    subprocess.run(["gcc", "-fopenmp", "-O1", "-w", *files, "-lm", "-o", folder / "p"], check=True)
    done = subprocess.run([folder / "p", *map(repr, map(float, x))], capture_output=True, text=True, check=True, timeout=60)
    return np.array(done.stdout.split(), float)


def failure(seed: int) -> str:
    """What is wrong with a function; "" where nothing is."""
    import irgrad as ig

    source = Regions(seed).source()
    x = 0.8 + 0.37 * np.sin(2.3 * np.arange(N) + seed)
    with tempfile.TemporaryDirectory() as folder:
        theirs = real_threads(source, x, Path(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = ig.load(source, flags=["-fopenmp"], opt=random.Random(seed).choice([None, "O0", "O1", "O3"])).kernel("f", SIGNATURE)
    value, y = kernel(x)
    ours = np.array([value, *y])
    if not np.allclose(ours, theirs, rtol=1e-9, atol=1e-9):
        return f"values differ from real threads: {ours - theirs}"
    report = ig.check(kernel, x)
    return "" if report.ok else str(report)


def main() -> int:
    """Check a range of seeds."""
    if shutil.which("gcc") is None:
        print("gcc is not here")
        return 1
    first, _, last = sys.argv[1].partition(":")
    begin, wrong = time.time(), 0
    for seed in range(int(first), int(last or int(first) + 1)):
        try:
            said = failure(seed)
        except Exception as error:  # whatever ends a check is of interest
            said = f"{type(error).__name__}: {error}"
        if said:
            wrong += 1
            print(seed, said, flush=True)
        if seed % 20 == 19:
            print(f"{seed + 1}: {wrong} wrong, {time.time() - begin:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
