"""Gradients as kernels of NVIDIA's GPUs, without one: what ptxas says of each, for every architecture.

    python -m benchmarks.device [CASE ...]

A row for each gradient of the table of benchmarks: seconds from the source to PTX, and for each architecture registers
of a thread, bytes of its stack, bytes spilled. Sizes come with the launch (see `engine.grids.export`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from benchmarks.cases import CASES, Case
from benchmarks.ours import kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")


def row(case: Case) -> str:
    """What is known of one case."""
    from irgrad import IRGradError, engine
    from irgrad.engine.codegen import nvptx
    from irgrad.engine.grids.export import gradient_grid

    start = time.perf_counter()
    try:
        gradient = engine.grad(kernel(case), wrt=case.wrt)
        text = gradient_grid(gradient, "k")
        code = nvptx.ptx(text, ["k"], ARCHITECTURES[0])
        seconds = time.perf_counter() - start
        found = [nvptx.resources(nvptx.ptx(text, ["k"], name), name) for name in ARCHITECTURES]
    except IRGradError as error:
        return f"refused: {error.what}"
    parts = [f"{used['registers']:4d} {used['stack']:6d} {used['spilled']:5d}" for used in found]
    return f"{seconds:6.2f} s {len(code) // 1024:5d} KiB  " + "   ".join(parts)


def main(names: Sequence[str]) -> int:
    """The command line."""
    cases = [case for case in CASES if case.operation == "grad" and (not names or case.name in names)]
    print(f"{'':24s}  source to PTX    " + "   ".join(f"{name:>17s}" for name in ARCHITECTURES))
    print(f"{'':24s}                   " + "   ".join(["regs  stack spill"] * len(ARCHITECTURES)))
    for case in cases:
        print(f"{case.name:24s}  {row(case)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
