"""What a rule costs: an adjoint loop with a traced rule against the same derivative in C: `python benchmarks/rules.py`.

The loop calls a function that has a rule for each of 10^6 doubles. Its gradient by the rule is compared with the
gradient written in C and compiled by the same compiler; the claim is a ratio of at most 1.1. Times are minima of the
native entries on buffers that exist already, on one thread; both are checked against each other first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks.harness import measure  # noqa: E402

SOURCE = """
#include <math.h>
double soft(double x) { return x / (1.0 + fabs(x)); }
void loop(const double *x, const double *w, long n, double *out) {
  for (long i = 0; i < n; i++) out[i] = w[i] * soft(x[i]);
}
void loop_adjoint(const double *restrict x, double *restrict xd, const double *restrict w, double *restrict outd,
                  long n) {
  for (long i = 0; i < n; i++) {
    double q = 1.0 / (1.0 + fabs(x[i]));
    xd[i] += w[i] * outd[i] * q * q;
    outd[i] = 0;
  }
}
"""
CLAIM = 1.1


def prepared(n: int) -> tuple[Any, Any]:
    """(by the rule, in C): calls without arguments, and what they computed, checked against each other."""
    import irgrad
    from irgrad.engine.kernel.run import Run
    from irgrad.rules import layer, rule

    library = irgrad.load(SOURCE)
    loop = library.kernel("loop", "void(f64[n] x, f64[n] w, i64 n, out f64[n] out)")
    written = library.kernel("loop_adjoint",
                             "void(f64[n] x, inout f64[n] xd, f64[n] w, inout f64[n] outd, i64 n)")  # fmt: skip
    rng = np.random.default_rng(0)
    x, w, seed = rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
    with layer():

        @rule("soft")
        def _(x: Any) -> Any:
            return 1 / (1 + np.abs(x)) ** 2

        program = loop.primal.pullback((0, 3))
        ours = Run(program, loop.bind((x, w), {}), {})
        shadow, cotangent = program.find(0, 0), program.find(3, 0)
        assert shadow is not None and cotangent is not None
        ours.start[cotangent] = seed
        by_rule = ours()[shadow].copy()
    theirs = written.prepare(x, np.zeros(n), w, seed)
    theirs()
    np.testing.assert_allclose(by_rule, theirs.outputs[0], rtol=1e-13)
    frames = ours.buffers
    return lambda: program.invoke(frames), lambda: theirs.program.invoke(theirs.buffers)


def main(argv: list[str] | None = None) -> int:
    """Print both times and their ratio; 1 when the claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small loop, nothing is claimed")
    options = parser.parse_args(argv)
    n = 1_000 if options.quick else 1_000_000
    by_rule, in_c = prepared(n)
    ratio, ours, theirs = min(_ratio(by_rule, in_c) for _ in range(3))
    print(f"adjoint loop over {n:,} doubles: rule {ours * 1e3:.3f} ms, C {theirs * 1e3:.3f} ms, ratio {ratio:.2f}")
    return int(not options.quick and ratio > CLAIM)


def _ratio(by_rule: Any, in_c: Any) -> tuple[float, float, float]:
    ours, theirs = measure(by_rule).least, measure(in_c).least
    return ours / theirs, ours, theirs


if __name__ == "__main__":
    sys.exit(main())
