"""`irgrad tune`: what the tape, arithmetic and functions cost on this machine, measured by kernels of its own.

The unit is one addition in a loop over vectors that stay in the first cache. A function is one in such a loop too,
which may call it for several numbers at once where the engine's code does. A number of the tape is written in a loop
that counts up and read in one that counts down, in arrays that the caches hold and in one that they do not. How large a
tape will be is mostly unknown when it is planned. The cost beyond the caches counts: by the geometric mean of the two
hydrodynamics with a tape of 133 MB took 1.1 of the time, and nothing was faster. Times are those of the processor, each
the least of several, so that other programs do not change them much.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from irgrad.engine.codegen.llvm import host_cpu
from irgrad.engine.codegen.machine_costs import host_costs, written
from irgrad.engine.codegen.own_sources import cost_file, cost_text, forget_costs
from irgrad.engine.support.progress import Progress
from irgrad.interop.loaders import load
from irgrad.rules.errors import LoadError
from irgrad.rules.expressions.costs import OPERATIONS, Costs

__all__ = ["Measured", "measure", "reset", "shown", "tune"]

_CALLS = """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt erf
erfc tgamma lgamma""".split()
_OF_TWO = "pow hypot atan2 fmod".split()
_CHAIN = 32  # additions
_SMALL = 1024  # numbers: a quarter of the first cache
_CACHED, _BEYOND = (1 << 12, 1 << 15), 1 << 23  # numbers of a tape: 32 and 256 KiB, 64 MiB
_PASSES = 1 << 21  # numbers that pass through a tape in one measurement
_AGAIN = 5  # measurements
_HEADER = "#include <math.h>\n"
_BODY = """void %s(const double *restrict x, const double *restrict a, double *restrict out, long n, long times) {
    for (long r = 0; r < times; r++)
        for (long i = 0; i < n; i++) { double y = x[i]; %s out[i] = y; }
}
"""
_TAPE = """void tape(const double *restrict x, const double *restrict a, double *restrict out, long n, long times) {
    for (long r = 0; r < times; r++) {
        double sums[16] = {0};
        for (long i = 0; i < n; i++) out[i] = a[0] * i;
        for (long i = n - 16; i >= 0; i -= 16)
            for (int j = 0; j < 16; j++) sums[j] += out[i + j];
        for (int j = 0; j < 16; j++) out[j] = sums[j];
    }
}
"""
_SIGNATURE = "void(f64[n] x, f64[4] a, inout f64[n] out, i64 n, i64 times)"


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs of this machine. unit: nanoseconds of one addition; cached, beyond: what 8 bytes of tape cost where the
    caches hold it and where they do not, in additions"""

    costs: Costs
    unit: float
    cached: float
    beyond: float


def tune() -> str:
    """Measure this machine's costs and write their table; what was done, as text. Raises LoadError where the file
    cannot be written."""
    path = cost_file()
    if path is None:
        raise LoadError("there is no place for this machine's table of costs", because="IRGRAD_COSTS=0 turns it off, "
                        "or the user has no home", fix="IRGRAD_COSTS=/path/of/a/file irgrad tune")  # fmt: skip
    with Progress("measuring"):
        found = measure()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_bytes(written(found.costs, host_cpu()))
        new.replace(path)
    except OSError as error:
        raise LoadError(
            "this machine's table of costs cannot be written", where=str(path), because=str(error),
            fix="IRGRAD_COSTS=/path/of/a/file irgrad tune, and the same variable later",
        ) from None  # fmt: skip
    forget_costs()
    return (
        f"{_table(found.costs)}\n\nan addition takes {found.unit:.3f} ns; 8 bytes of tape cost {found.cached:.0f} "
        f"additions in the caches, {found.beyond:.0f} beyond them\n{path}: written; derivatives are made by these "
        "costs from now on (irgrad tune --reset removes them)"
    )


def reset() -> str:
    """Remove the table; what was done, as text."""
    path = cost_file()
    if path is None or not path.exists():
        return "there is no table of this machine's costs: the shipped ones are used"
    try:
        path.unlink()
    except OSError as error:
        raise LoadError("this machine's table of costs cannot be removed", where=str(path), because=str(error),
                        fix="IRGRAD_COSTS=0 in the environment leaves it alone") from None
    forget_costs()
    return f"{path}: removed; the shipped costs are used again"


def shown() -> str:
    """The costs that are used. Raises LoadError for a damaged table."""
    costs, path = host_costs(), cost_file()
    source = f"{path}" if cost_text() is not None and costs.measured else "the shipped costs (irgrad tune measures)"
    return f"{_table(costs)}\n\nfrom {source}"


def _table(costs: Costs) -> str:
    rows = [f"{'in additions':<16}{'used':>6}{'shipped':>9}", f"{'8 bytes of tape':<16}{costs.tape:>6}{Costs.tape:>9}"]
    for name in ("fdiv", "sqrt", *_CALLS, *_OF_TWO):
        rows.append(f"{name:<16}{costs.of(name, OPERATIONS[name]):>6}{OPERATIONS[name]:>9}")
    return "\n".join(rows)


def measure() -> Measured:
    """Measure this machine's costs, in a second or two of which most is compilation."""
    chain = "".join(f"y = y + a[{i % 4}];" for i in range(_CHAIN))
    bodies = {"one": "y = y + a[0];", "chain": f"y = y + a[0]; {chain}", "fdiv": "y = a[0] / y;"}
    bodies |= {name: f"y = {name}(y);" for name in ("sqrt", *_CALLS)}
    bodies |= {name: f"y = {name}(y, a[0]);" for name in _OF_TWO}
    texts = [_BODY % (f"measured_{name}", body) for name, body in bodies.items()]
    library = load("".join([_HEADER, *texts, _TAPE]))

    def nanoseconds(name: str, n: int, times: int) -> float:
        kernel = library.kernel(name, _SIGNATURE)
        numbers = np.linspace(1.1, 1.9, n) if name.endswith("acosh") else np.linspace(0.1, 0.9, n)
        call = kernel.prepare(numbers, np.full(4, 1e-3), np.zeros(n), times)
        call()
        return 1e9 * min(_seconds(call) for _ in range(_AGAIN)) / (n * times)

    least = nanoseconds("measured_one", _SMALL, 200)
    unit = max((nanoseconds("measured_chain", _SMALL, 50) - least) / _CHAIN, 1e-3)
    found = {name: nanoseconds(f"measured_{name}", _SMALL, 20) - least + unit for name in bodies}
    costs = {name: max(1, round(found[name] / unit)) for name in bodies if name not in ("one", "chain")}
    calls = sorted(costs[name] for name in (*_CALLS, *_OF_TWO))
    costs |= {"div": costs["fdiv"], "frem": costs["fmod"], "call": calls[len(calls) // 2]}
    cached = max(nanoseconds("tape", n, _PASSES // n) for n in _CACHED) / unit
    beyond = max(nanoseconds("tape", _BEYOND, 1) / unit, cached)
    return Measured(Costs(max(1, round(beyond)), measured=tuple(costs.items())), unit, cached, beyond)


def _seconds(call: object) -> float:
    begin = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - begin
