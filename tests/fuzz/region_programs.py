"""The random functions of `regions.py` as whole programs: `irgrad cc -fopenmp` against the same without OpenMP.

    python tests/fuzz/region_programs.py 0:100

Values, gradients and tangents have the same bits for OMP_NUM_THREADS=1, 2, 4, 16, and are those of the program without
OpenMP but for the order of sums.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.regions import Regions

_MAIN = r"""
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static void show(const double *a, long n) { for (long i = 0; i < n; i++) printf("%a ", a[i]); printf("\n"); }
int main(void) {
    long n = N, m = 4, *at = malloc(n * sizeof(long));
    double *x = malloc(n * 8), *y = malloc(n * 8), *y0 = malloc(n * 8), *dx = malloc(n * 8), *dy = malloc(n * 8), *w = malloc(m * 8), *dw = calloc(m, 8);
    for (long i = 0; i < n; i++) x[i] = 0.9 * sin(3.1 * i), y0[i] = cos(2.3 * i), at[i] = (i * 7 + 3) % n, dx[i] = 0, dy[i] = cos(i);
    for (long i = 0; i < m; i++) w[i] = sin(1 + i);
    memcpy(y, y0, n * 8);
    double s = f(x, y, w, at, n, m);
    show(&s, 1); show(y, n);
    memcpy(y, y0, n * 8);
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_dup, w, dw, enzyme_const, at, n, m);
    show(dx, n); show(dy, n); show(dw, m);
    memcpy(y, y0, n * 8);
    for (long i = 0; i < n; i++) dx[i] = sin(i), dy[i] = 0.1 * cos(i);
    for (long i = 0; i < m; i++) dw[i] = 0.3;
    double t = __enzyme_fwddiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_dup, w, dw, enzyme_const, at, n, m);
    show(&t, 1); show(dy, n);
}
"""


def source_of(seed: int) -> str:
    """The program of a seed."""
    return Regions(seed).source + _MAIN


def check_program(seed: int) -> str:
    """What is wrong with the program of a seed; "right"."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "p.c").write_text(source_of(seed))
        flags = [("-O0", "-O2")[seed % 2], f"-DN={(40, 400, 4000)[seed % 3]}"]
        for name, more in (("with", "-fopenmp"), ("without", "-Wno-unknown-pragmas")):
            command = [sys.executable, "-m", "irgrad.interop.cli", "cc", *flags, more, "p.c", "-lm", "-o", name]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"{name} OpenMP: {done.stderr}"

        def run(name: str, threads: str) -> str:
            environment = {**os.environ, "OMP_NUM_THREADS": threads}
            return subprocess.run([f"./{name}"], cwd=folder, env=environment, capture_output=True, text=True, check=True,
                                  timeout=300).stdout  # fmt: skip

        found = [run("with", threads) for threads in ("1", "2", "4", "16")]
        plain = run("without", "1")
    if len(set(found)) > 1:
        return "other bits on another number of threads"
    for number, rows in enumerate(zip(found[0].splitlines(), plain.splitlines(), strict=True)):
        ours, theirs = ([float.fromhex(word) for word in row.split()] for row in rows)
        size = max(1.0, *map(abs, theirs))
        wrong = [(a, b) for a, b in zip(ours, theirs, strict=True) if not abs(a - b) <= 1e-9 * size]
        if wrong:
            return f"row {number} is {wrong[:3]}, with and without OpenMP"
    return "right"


def main() -> int:
    """Check a range of seeds."""
    first, _, last = sys.argv[1].partition(":")
    begin, wrong = time.time(), 0
    for seed in range(int(first), int(last or int(first) + 1)):
        said = check_program(seed)
        if said != "right":
            wrong += 1
            print(seed, said, flush=True)
        if seed % 10 == 9:
            print(f"{seed + 1}: {wrong} wrong, {time.time() - begin:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
