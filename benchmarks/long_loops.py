"""Long time loops within a bound of memory, against a tape of the whole loop: `python -m benchmarks.long_loops`.

For each solver: CPU time of the primal and of its gradient (the least of some runs, one thread), the memory of tape and
states, and how far the gradient is from that of the plain tape. `--large` adds cases of which a tape would fill the
machine; they have no plain tape to be compared with, and are checked by the derivative in one direction (forward mode).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

SOURCE = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
void heat(double *u, double *w, long n, long steps, double k) {
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++) {
                double c = u[i * n + j], across = u[i * n + j - 1] + u[i * n + j + 1];
                double around = u[(i - 1) * n + j] + u[(i + 1) * n + j] + across;
                w[i * n + j] = c + k * (1 + c * c) * (around - 4 * c);
            }
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                u[i * n + j] = w[i * n + j];
    }
}
void kinetics(double *y, double *d, long n, long steps, double k) {
    for (long t = 0; t < steps; t++) {
        for (long i = 0; i < n; i++) d[i] = k * y[i] * (1 - y[i]) - 0.1 * y[i] * y[i == 0 ? n - 1 : i - 1];
        for (long i = 0; i < n; i++) y[i] += 0.01 * d[i];
    }
}
void swapped(double *u, double *w, long n, long steps, double k) {
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    memcpy(a, u, n * sizeof *a);
    memcpy(b, u, n * sizeof *b);
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n - 1; i++)
            b[i] = a[i] - k * a[i] * (a[i + 1] - a[i - 1]) + k * (a[i + 1] - 2 * a[i] + a[i - 1]);
        double *c = a; a = b; b = c;
    }
    memcpy(u, a, n * sizeof *a);
    free(a);
    free(b);
}
"""
CHOICES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a tape of all", {"tape_memory": None}), ("256 MB", {"tape_memory": "256MB"}), ("16 MB", {"tape_memory": "16MB"}),
    ("2 MB", {"tape_memory": "2MB"}), ("each 8", {"checkpoint": {"*": 8}}),
    ("8 states", {"checkpoint": {"*": "binomial:8"}}),
)  # fmt: skip


def main() -> int:
    """Print the table; 1 where a gradient is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--large", action="store_true", help="also cases that no memory holds the tape of")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    cases = [(name, 10_000, 1, 1000 // part) for name in ("kinetics", "swapped")]
    cases.append(("heat", 128, 128, 500 // part))
    right = True
    for case in cases:
        right &= _case(*case, CHOICES)
    for case in [("heat", 512, 512, 10_000), ("kinetics", 10_000, 1, 10_000)] if options.large else []:
        right &= _case(*case, CHOICES[1:2])
    return 0 if right else 1


def _case(name: str, rows: int, columns: int, steps: int, choices: Any) -> bool:
    import irgrad

    shape = f"{'n,n' if columns > 1 else 'n'}"
    signature = f"void(inout f64[{shape}] u, inout f64[{shape}] w, i64 n, i64 steps, f64 k)"
    library = irgrad.load(SOURCE)
    rng = np.random.default_rng(0)
    size = (rows, columns) if columns > 1 else (rows,)
    start, other, weights = rng.uniform(0.2, 0.8, size), np.zeros(size), rng.normal(size=size)
    args = (start, other, steps, 0.05)
    primal = _least(lambda: library.kernel(name, signature)(*args), 3)
    print(f"\n{name} {'x'.join(map(str, size))}, {steps} steps: primal {primal * 1e3:.1f} ms")
    direction = rng.normal(size=size)
    tangent = irgrad.jvp(library.kernel(name, signature), args, (direction, None, None, None))[1][0]
    wanted, right = float(np.sum(weights * tangent)), True
    for title, said in choices:
        kernel = library.kernel(name, signature, **said)
        _, pullback = irgrad.vjp(kernel, *args)
        seconds = _least(lambda: pullback((weights, None)), 3)  # noqa: B023 - called at once
        found = float(np.sum(pullback((weights, None))[0] * direction))
        used = kernel.primal.pullback([0, 1, 4]).tape_bytes
        error = abs(found - wanted) / abs(wanted)
        right &= error < 1e-9
        ratio = seconds / primal
        megabytes = f"{used / 1e6:9.1f} MB"
        print(f"  {title:14} {seconds * 1e3:9.1f} ms  {ratio:6.2f} x  {megabytes}  error {error:.0e}", flush=True)
    return right


def _least(run: Any, times: int) -> float:
    run()
    found = []
    for _ in range(times):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


if __name__ == "__main__":
    sys.exit(main())
