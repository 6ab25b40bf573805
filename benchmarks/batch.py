"""Many derivatives at once: `python benchmarks/batch.py [names...] [--quick] [--widths 1,2,4,8,16] [--size]`.

For each kernel the time of its primal, and for jvp and vjp the speed-up of W tangents (cotangents) in one call over W
calls with one: W t(1) / t(W). Each derivative is compared with separate ones first; a wrong one has no time. Times are
minima of the native entries on buffers that exist already, on one thread. `--size` prints the bytes of each width's
object file and the seconds that LLVM takes for it instead, also of all kernels of `run.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks import cases, data  # noqa: E402
from benchmarks.harness import measure  # noqa: E402
from benchmarks.native import HERE, inputs_of  # noqa: E402

TOLERANCE = 1e-11


@dataclass(frozen=True, slots=True)
class Many:
    """One line: a kernel, and the arguments that are differentiated."""

    name: str
    source: str
    function: str
    signature: str
    wrt: tuple[str, ...]
    inputs: Callable[[bool], data.Data]
    modes: tuple[str, ...] = ("jvp", "vjp")


def _lorenz(quick: bool) -> data.Data:
    return {**data.lorenz(quick, 1000), "dt": 0.01}


def _layers(quick: bool) -> data.Data:
    rng, n = np.random.default_rng(21), 8 if quick else 32
    return {"x": rng.normal(size=n), "w": rng.normal(size=(3, n, n)) / n**0.5, "b": rng.normal(size=(3, n)), "n": n}


def _brusselator(quick: bool) -> data.Data:
    rng, n = np.random.default_rng(11), 9 if quick else 64
    fields = {name: rng.normal(size=(n, n)) for name in ("u", "v")}
    return {**fields, "n": n, "a": 3.4, "b": 1.0, "alpha": 0.1 * (n - 1) ** 2 / 1e3}


def _bodies(quick: bool) -> data.Data:
    rng, n = np.random.default_rng(16), 10 if quick else 256
    return {"pos": rng.normal(size=(n, 3)), "mass": rng.uniform(0.5, 1.5, size=n), "n": n}


MANY: tuple[Many, ...] = (
    Many("rk4", "batch.c", "rk4_state", "void(f64[3] y0, f64[3] par, out f64[3] y, i64 steps, f64 dt)",
         ("y0", "par"), _lorenz),
    Many("mlp", "batch.c", "layers", "void(f64[n] x, f64[3,n,n] w, f64[3,n] b, out f64[n] y, i64 n)", ("x",), _layers),
    Many("expsin", "batch.c", "expsin_map", "void(f64[n] x, out f64[n] y, i64 n)", ("x",),
         partial(data.vector, n=4096)),
    Many("brusselator", "brusselator.c", "brusselator", f"void({cases.BRUSSELATOR})", ("u", "v"), _brusselator),
    Many("nbody", "batch.c", "acceleration", "void(f64[n,3] pos, f64[n] mass, out f64[n,3] acc, i64 n)", ("pos",),
         _bodies),
    Many("ba", "ba.c", "ba", f"void({cases.BA}, out f64[p,2] errors, i64 p)", ("cameras", "points", "weights"),
         data.ba),
)  # fmt: skip


def sized() -> list[Many]:
    """What `--size` prints: the table's kernels, then those of the cases that it lacks."""
    found = {(m.source, m.function): m for m in MANY}
    for c in cases.CASES:
        found.setdefault((c.source, c.function), Many(c.name, c.source, c.function, c.signature, c.wrt, c.inputs))
    return list(found.values())


class Timed:
    """The native entry of one width on its own buffers; `lanes(j)` are the derivatives of direction j."""

    def __init__(self, kernel: Any, many: Many, inputs: data.Data, mode: str, width: int) -> None:
        from irgrad.engine.kernel.run import Run
        from irgrad.engine.kernel.select import active_outputs

        names = [p.name for p in kernel.signature.parameters]
        given, asked = [names.index(n) for n in many.wrt], list(active_outputs(kernel))
        bound = kernel.bind(inputs_of(many.signature, inputs), {})
        derivative = "jvp_only" if mode == "jvp" else "pullback"
        self.program = getattr(kernel.primal, derivative)(sorted({*given, *asked}), width)
        self.run = Run(self.program, bound, {})
        self.width = width
        self.seeds, self.results = (given, asked) if mode == "jvp" else (asked, given)
        start: dict[int, Any] = {}
        for number in self.seeds:
            slot = self._slot(number)
            shape = self.run.buffers[slot].shape
            whole = np.random.default_rng(number).uniform(-1, 1, (*shape[: len(shape) - (width > 1)], 64))
            start[slot] = np.ascontiguousarray(whole[..., :width]).reshape(shape)
        self.full = self.run(start)
        self.kept = [self.full[self._slot(i)].copy() for i in self.results]

    def _slot(self, index: int) -> int:
        found = self.program.find(index, 0)
        assert found is not None
        return int(found)

    def lane(self, j: int) -> list[Any]:
        """Derivatives of the results for direction j."""
        return [k if self.width == 1 else k[..., j] for k in self.kept]

    def entry(self) -> Callable[[], Any]:
        """The native entry alone."""
        import ctypes

        frame = (ctypes.c_void_p * len(self.full))(*(a.ctypes.data for a in self.full))
        entry, address = self.program.entry, ctypes.addressof(frame)
        return lambda: (entry(address), frame)


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns 0 when every derivative is right."""
    parser = argparse.ArgumentParser(prog="batch", description="Many derivatives at once over as many separate ones.")
    parser.add_argument("names", nargs="*", help="kernels; all by default")
    parser.add_argument("--quick", action="store_true", help="reduced sizes and few runs: checks, not measurements")
    parser.add_argument("--widths", default="2,4,8,16")
    parser.add_argument("--size", action="store_true", help="code size and compile time instead of speed-up")
    options = parser.parse_args(arguments)
    widths = [int(w) for w in options.widths.split(",")]
    if not options.size:
        print(f"{'kernel':<12} {'mode':<4} {'primal':>9} {'W = 1':>9} " + " ".join(f"{f'x{w}':>6}" for w in widths))
    right = True
    for many in sized() if options.size else MANY:
        if not options.names or many.name in options.names:
            for mode in many.modes:
                if options.size:
                    print(size_line(many, mode, [1, *widths]), flush=True)
                    continue
                text, good = line(many, mode, widths, options.quick)
                right &= good
                print(text, flush=True)
    return 0 if right else 1


def line(many: Many, mode: str, widths: list[int], quick: bool) -> tuple[str, bool]:
    """One line of the table, and whether the derivatives are right."""
    import irgrad

    inputs = many.inputs(quick)
    kernel = irgrad.load(HERE / "kernels" / many.source).kernel(many.function, many.signature)
    primal = measure(kernel.prepare(*inputs_of(many.signature, inputs)), quick=quick).least
    one = Timed(kernel, many, inputs, mode, 1)
    alone = measure(one.entry(), quick=quick).least
    cells, good = [], True
    for width in widths:
        wide = Timed(kernel, many, inputs, mode, width)
        if _error(kernel, many, inputs, mode, wide) > TOLERANCE:
            cells, good = [*cells, f"{'WRONG':>6}"], False
            continue
        cells.append(f"{width * alone / measure(wide.entry(), quick=quick).least:6.2f}")
    return f"{many.name:<12} {mode:<4} {_us(primal)} {_us(alone)} {' '.join(cells)}", good


def size_line(many: Many, mode: str, widths: list[int]) -> str:
    """Bytes of machine code and seconds in LLVM, by width."""
    import irgrad
    from irgrad.engine.codegen.jit import compile_object

    inputs = many.inputs(True)
    kernel = irgrad.load(HERE / "kernels" / many.source).kernel(many.function, many.signature)
    cells = []
    for width in widths:
        program = Timed(kernel, many, inputs, mode, width).program
        start = time.process_time()
        image, _ = compile_object(program.ir, [program.entry_symbol], cache=False)
        cells.append(f"W={width}: {len(image):6d} B {time.process_time() - start:5.2f} s")
    return f"{many.name:<12} {mode:<4} " + "   ".join(cells)


def _error(kernel: Any, many: Many, inputs: data.Data, mode: str, wide: Timed) -> float:
    """Largest difference of the first and the last lane from separate derivatives."""
    worst = 0.0
    single = Timed(kernel, many, inputs, mode, 1)
    for j in {0, wide.width - 1}:
        start = {}
        for number in single.seeds:
            slot = single._slot(number)
            shape = single.run.buffers[slot].shape
            start[slot] = np.random.default_rng(number).uniform(-1, 1, (*shape, 64))[..., j]
        full = single.run(start)
        for got, index in zip(wide.lane(j), single.results, strict=True):
            want = full[single._slot(index)]
            worst = max(worst, float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-300)))
    return worst


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:6.1f} us"


if __name__ == "__main__":
    sys.exit(main())
