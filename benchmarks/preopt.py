"""What optimising first is worth: the same gradient with and without it: `python benchmarks/preopt.py`.

Differentiating optimised code was 4.2 times faster (geometric mean) than optimising the derivative of code as the
compiler wrote it in W. S. Moses and V. Churavy, "Instead of Rewriting Foreign Code for Machine Learning, Automatically
Synthesize Fast Gradients" (NeurIPS 2020). Here both gradients go through the same -O3 pipeline afterwards, are checked
against each other, and are timed in turns in one process, on buffers that exist already. The kernels are those of
run.py, and an integrator of Boost.odeint with adaptive steps where its headers are installed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks import ours  # noqa: E402
from benchmarks.cases import CASES  # noqa: E402
from benchmarks.harness import TOLERANCE, distance, measure  # noqa: E402
from benchmarks.native import HERE  # noqa: E402

NAMES = ("gmm-10", "lstm-2", "expsin", "recurrence", "burgers-copy", "rk4", "euler", "mlp", "matmul", "nbody", "kmeans")
ODEINT = r"""
#include <array>
#include <vector>
#include <boost/numeric/odeint.hpp>
using namespace boost::numeric::odeint;
struct Lorenz {
  const double *p;
  template <class S> void operator()(const S &x, S &dx, double) const {
    dx[0] = p[0] * (x[1] - x[0]);
    dx[1] = x[0] * (p[1] - x[2]) - x[1];
    dx[2] = x[0] * x[1] - p[2] * x[2];
  }
};
template <class S> double end(const double *x, const double *p, S s) {
  for (int i = 0; i < 3; i++) s[i] = x[i];
  integrate_adaptive(make_controlled<runge_kutta_dopri5<S>>(1e-9, 1e-9), Lorenz{p}, s, 0.0, 5.0, 0.01);
  return s[0] + 2 * s[1] + 3 * s[2];
}
extern "C" double odeint_array(const double *x, const double *p) { return end(x, p, std::array<double, 3>()); }
extern "C" double odeint_vector(const double *x, const double *p) { return end(x, p, std::vector<double>(3)); }
"""
Pair = tuple[str, Callable[[bool], tuple[ours.Call, list[Any]]]]


def boost() -> str:
    """The folder of Boost's headers, empty where there is none."""
    for folder in (Path(sysconfig.get_path("purelib"), "cmeel.prefix", "include"), Path("/usr/include"),
                   Path("/usr/local/include")):  # fmt: skip
        if (folder / "boost/numeric/odeint.hpp").is_file():
            return str(folder)
    return ""


def pairs(names: list[str], quick: bool) -> Iterator[Pair]:
    """(name, how to make the gradient with and without optimising first)."""
    for case in (case for case in CASES if case.name in names):
        yield case.name, lambda preopt, case=case: _of_case(case, quick, preopt)
    for name in ("odeint_array", "odeint_vector"):
        if name in names and not boost():
            print(f"{name:<16} not run: the headers of Boost are not installed (pip install irgrad[dev])")
        elif name in names:
            yield name, lambda preopt, name=name: _of_odeint(name, preopt)


def _of_case(case: Any, quick: bool, preopt: bool) -> tuple[ours.Call, list[Any]]:
    import irgrad

    function = irgrad.load(HERE / "kernels" / case.source, preopt=preopt).kernel(case.function, case.signature)
    call = ours.derivative(case, function, case.inputs(quick))[1]
    return call, call()


def _of_odeint(name: str, preopt: bool) -> tuple[ours.Call, list[Any]]:
    import irgrad
    from irgrad import engine

    library = irgrad.load(ODEINT, language="c++", flags=["-std=c++14"], include=[boost()], preopt=preopt)
    made = engine.grad(library.kernel(name, "f64(f64[3] x, f64[3] p)"), wrt=("x", "p"))
    x, p = np.array([1.0, 2.0, 20.0]), np.array([10.0, 28.0, 8 / 3])

    def call() -> list[Any]:
        return list(made(x, p))

    return call, call()


def main(argv: list[str] | None = None) -> int:
    """Print times and ratios and their geometric mean; 1 when gradients differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, short runs: a check, not a measurement")
    parser.add_argument("names", nargs="*", default=[*NAMES, "odeint_array", "odeint_vector"], metavar="KERNEL")
    options = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ratios, wrong = [], 0
    for name, made in pairs(options.names, options.quick):
        try:
            (first, want), (late, got) = made(True), made(False)
        except Exception as caught:  # reported, never raised: the others are still of interest
            print(f"{name:<16} not run: {type(caught).__name__}: {str(caught).splitlines()[0]}")
            continue
        error = distance(got, [np.asarray(part) for part in want])
        if error > TOLERANCE:
            print(f"{name:<16} WRONG: the gradients differ by {error:.1e}")
            wrong = 1
            continue
        sides = [ours.Entries(first), ours.Entries(late)]
        rounds = [[measure(side, quick=True).least for side in sides] for _ in range(1 if options.quick else 5)]
        least = [min(times) for times in zip(*rounds, strict=True)]
        ratios.append(least[1] / least[0])
        print(f"{name:<16} optimised first {least[0] * 1e3:9.3f} ms, not {least[1] * 1e3:9.3f} ms, {ratios[-1]:6.2f}x",
              flush=True)  # fmt: skip
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of {len(ratios)}: {mean:.2f}x")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
