"""The random functions of `regions.py` and `region_shapes.py` as whole programs: `irgrad cc -fopenmp` against the same
without OpenMP.

    python tests/fuzz/region_programs.py 0:100             those of `regions.py`
    python tests/fuzz/region_programs.py 0:100 --shapes    those of `region_shapes.py`; with --source: print one

Values, gradients and tangents have the same bits for OMP_NUM_THREADS=1, 2, 4, 16, and are those of the program without
OpenMP but for the order of sums. Reverse mode agrees with forward mode, and at a small size both with differences.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.region_shapes import Shaped
from fuzz.regions import Regions

_MAIN = r"""
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static void show(const double *a, long n) { for (long i = 0; i < n; i++) printf("%a ", a[i]); printf("\n"); }
static double *moved(const double *a, const double *da, double h, long n) {
    double *b = malloc(n * 8);
    for (long i = 0; i < n; i++) b[i] = a[i] + h * da[i];
    return b;
}
static double dot(const double *a, const double *b, long n) { double s = 0; for (long i = 0; i < n; i++) s += a[i] * b[i]; return s; }
int main(int count, char **words) {
    long n = atol(words[1]), m = 4, *at = malloc(n * sizeof(long));
    double *x = malloc(n * 8), *y = malloc(n * 8), *y0 = malloc(n * 8), *dx = malloc(n * 8), *dy = malloc(n * 8), *w = malloc(m * 8), *dw = calloc(m, 8);
    double *ax = malloc(n * 8), *ay = malloc(n * 8), *aw = malloc(m * 8), bar[3], near[3];
    for (long i = 0; i < n; i++) x[i] = 0.9 * sin(3.1 * i), y0[i] = cos(2.3 * i), at[i] = (i * 7 + 3) % n, dx[i] = 0, dy[i] = cos(i);
    for (long i = 0; i < n; i++) ax[i] = sin(i), ay[i] = 0.1 * cos(i);
    for (long i = 0; i < m; i++) w[i] = sin(1 + i), aw[i] = 0.3;
    memcpy(y, y0, n * 8);
    double s = f(x, y, w, at, n, m);
    show(&s, 1); show(y, n);
    for (int k = 0; k < 3; k++) {
        double h = k ? k > 1 ? 1e-7 : 1e-6 : 1e-5, both[2];
        for (int side = 0; side < 2; side++) {
            double g = side ? -h : h, *mx = moved(x, ax, g, n), *my = moved(y0, ay, g, n), *mw = moved(w, aw, g, m);
            both[side] = f(mx, my, mw, at, n, m) + dot(dy, my, n);
            free(mx); free(my); free(mw);
        }
        near[k] = (both[0] - both[1]) / (2 * h);
    }
    memcpy(y, y0, n * 8);
    REVERSE;
    show(dx, n); show(dy, n); show(dw, m);
    bar[0] = dot(dx, ax, n) + dot(dy, ay, n) + dot(dw, aw, m);
    for (long i = 0; i < n; i++) dx[i] = ax[i], dy[i] = ay[i];
    for (long i = 0; i < m; i++) dw[i] = aw[i];
    memcpy(y, y0, n * 8);
    double t = FORWARD;
    show(&t, 1); show(dy, n);
    for (long i = 0; i < n; i++) t += cos(i) * dy[i];
    bar[1] = t; bar[2] = 0;
    show(bar, 2); show(near, 3);
}
"""
_ARGUMENTS = "(void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_dup, w, dw, enzyme_const, at, n, m"
_HANDED = """
void __enzyme_autodiff_handed(void *, ...);
static double handed(int ahead, double *x, double *dx, double *y, double *dy, double *w, double *dw, long *at, long n, long m) {
    model c = {x, y, w, at, malloc(n * 8), malloc(n * 8), malloc(n * 8), 0}, d = {dx, dy, dw, calloc(n, 8), calloc(n, 8), calloc(n, 8), calloc(n, 8), 0};
    if (ahead) return __enzyme_fwddiff((void *)g, enzyme_dup, &c, &d, n, m);
    __enzyme_autodiff_handed((void *)g, enzyme_dup, &c, &d, n, m);
    return 0;
}
int main("""
_SIZES = {0: 40, 1: 400, 2: 4000}


def source_of(seed: int, *, shapes: bool = False) -> str:
    """The program of a seed."""
    made = Shaped(seed) if shapes else Regions(seed)
    handed = isinstance(made, Shaped) and made.shape == "handed"
    main = _MAIN.replace("int main(", _HANDED, 1) if handed else _MAIN
    for word, ahead, name in (("REVERSE", 0, "__enzyme_autodiff"), ("FORWARD", 1, "__enzyme_fwddiff")):
        call = f"handed({ahead}, x, dx, y, dy, w, dw, at, n, m)" if handed else f"{name}({_ARGUMENTS})"
        main = main.replace(word, call)
    return made.source + main


def check_program(seed: int, *, shapes: bool = False) -> str:
    """What is wrong with the program of a seed; "right", or "refused" with the message."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "p.c").write_text(source_of(seed, shapes=shapes))
        flags = [("-O0", "-O2", "-O1", "-O3")[seed // 6 % 4 if shapes else seed % 2]]
        for name, more in (("with", "-fopenmp"), ("without", "-Wno-unknown-pragmas")):
            command = [sys.executable, "-m", "irgrad.interop.cli", "cc", *flags, more, "p.c", "-lm", "-o", name]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                refused = "irgrad.Unsupported: " in done.stderr
                return f"{'refused ' if refused else ''}{name} OpenMP: {done.stderr}"

        def run(name: str, threads: str, size: int) -> str:
            environment = {**os.environ, "OMP_NUM_THREADS": threads}
            return subprocess.run([f"./{name}", str(size)], cwd=folder, env=environment, capture_output=True, text=True,
                                  check=True, timeout=300).stdout  # fmt: skip

        for size in (40, _SIZES[seed % 3]):
            said = _compared([run("with", threads, size) for threads in ("1", "2", "4", "16")], run("without", "1", size), size)
            if said:
                return f"of {size}: {said}"
    return "right"


def _compared(found: list[str], plain: str, size: int) -> str:
    """What is wrong with what a program says on several numbers of threads, and without OpenMP."""
    if len(set(found)) > 1:
        return "other bits on another number of threads"
    ours, theirs = ([[float.fromhex(word) for word in row.split()] for row in said.splitlines()] for said in (found[0], plain))
    for number, (one, other) in enumerate(zip(ours[:-1], theirs[:-1], strict=True)):
        least = 1e-9 * max(1.0, *map(abs, other))
        rows = zip(one, other, strict=True)
        wrong = [(a, b) for a, b in rows if not abs(a - b) <= least and repr(a) != repr(b)]  # inf is inf
        if wrong:
            return f"row {number} is {wrong[:3]}, with and without OpenMP"
    (reverse, forward), near = ours[-2:]
    scale = max(1.0, abs(forward))
    if abs(forward) < math.inf and not abs(reverse - forward) <= 1e-9 * scale * size:
        return f"{reverse} reverse, {forward} forward"
    jump = abs(near[1]) > 5 * abs(near[0]) and abs(near[2]) > 5 * abs(near[1])  # a comparison that is decided here
    if abs(forward) < math.inf and size == 40 and not jump and not min(abs(row - forward) for row in near) <= 1e-4 * scale:
        return f"{reverse} reverse, {forward} forward, {near} by differences"
    return ""


def main() -> int:
    """Check a range of seeds."""
    first, _, last = sys.argv[1].partition(":")
    shapes = "--shapes" in sys.argv
    if "--source" in sys.argv:
        print(source_of(int(first), shapes=shapes))
        return 0
    begin, wrong, refused = time.time(), 0, 0
    for seed in range(int(first), int(last or int(first) + 1)):
        said = check_program(seed, shapes=shapes)
        if said != "right":
            refused += said.startswith("refused")
            wrong += not said.startswith("refused")
            print(seed, said, flush=True)
        if seed % 10 == 9:
            print(f"{seed + 1}: {wrong} wrong, {refused} refused, {time.time() - begin:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
