"""Gradients as kernels of NVIDIA's GPUs, without one: what ptxas says of each, for every architecture.

    python -m benchmarks.device [CASE ...]
    python -m benchmarks.device --processes [CASE ...]

A row for each gradient of the tables of benchmarks: seconds from the source to PTX; bytes of the tape of a sample (of
small inputs) as it is planned for the CPU and for a device; for each architecture registers of a thread, bytes of its
stack, bytes spilled. Sizes come with the launch (see `engine.grids.export`).

With `--processes`: seconds that JAX takes to lower `jit(vmap(grad(f)))` for CUDA, in a process with an empty cache and
in another one after it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import batch_samples, data
from benchmarks.cases import CASES, Case
from benchmarks.native import inputs_of
from benchmarks.ours import kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")


def _option(_: bool) -> data.Data:
    line = batch_samples.LINES[0]
    return {name: float(values[0]) for name, values in batch_samples.inputs(line, 1).items()}


BLACK_SCHOLES = Case("black-scholes", 0, "samples.c", "option", batch_samples.OPTION, batch_samples.LINES[0].wrt,
                     ("", ""), _option, 0, 0, "")  # fmt: skip
"""Price of an option and its five slopes, from the benchmark of batches."""


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
    tapes = "".join(f"{size:9,d}" for size in tape_bytes(case))
    parts = [f"{used['registers']:4d} {used['stack']:6d} {used['spilled']:5d}" for used in found]
    return f"{seconds:6.2f} s {len(code) // 1024:5d} KiB  {tapes}  " + "   ".join(parts)


def tape_bytes(case: Case) -> list[int]:
    """Bytes of the tape of a gradient of small inputs, as it is planned for the CPU and for a device."""
    from irgrad import engine
    from irgrad.engine.grids.threads_of_loops import for_device

    sizes = []
    for made in (kernel(case), for_device(kernel(case))):
        gradient = engine.value_and_grad(made, wrt=case.wrt)
        gradient(*inputs_of(case.signature, case.inputs(True)))
        sizes.append(gradient.tape_bytes)
    return sizes


def lowered(case: Case) -> float:
    """Seconds to lower the gradients of 4,096 samples for CUDA, the source being loaded."""
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    function, inputs = kernel(case), inputs_of(case.signature, case.inputs(True))
    names = [p.name for p in function.signature.arguments]
    wrt = tuple(names.index(name) for name in case.wrt)

    def loss(*given: Any) -> Any:
        full = {**dict(enumerate(inputs)), **dict(zip(wrt, given, strict=True))}
        return function(*(full[n] for n in range(len(names))))

    shapes = [jax.ShapeDtypeStruct((4096, *np.shape(inputs[n])), np.asarray(inputs[n]).dtype) for n in wrt]
    start = time.perf_counter()
    gradients = jax.jit(jax.vmap(jax.grad(loss, tuple(range(len(wrt))))))
    gradients.trace(*shapes).lower(lowering_platforms=("cuda",))
    return time.perf_counter() - start


def processes(case: Case) -> str:
    """`lowered` in two processes, one after the other."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            made = subprocess.run([sys.executable, "-m", "benchmarks.device", "--lowered", case.name], check=True,
                                  env={**os.environ, "IRGRAD_CACHE_DIR": folder}, capture_output=True, text=True)
            seconds.append(float(made.stdout))
    return "".join(f"{value:8.2f} s" for value in seconds)


def main(words: Sequence[str]) -> int:
    """The command line."""
    names = [word for word in words if not word.startswith("--")]
    every = [BLACK_SCHOLES, *(case for case in CASES if case.operation == "grad")]
    cases = [case for case in every if not names or case.name in names]
    if "--lowered" in words:
        print(lowered(cases[0]))
        return 0
    of_case = row
    if "--processes" in words:
        print(f"{'':24s}  first process, second")
        of_case = processes
    else:
        print(f"{'':24s}  source to PTX    tape, CPU, device  " + "   ".join(f"{name:>17s}" for name in ARCHITECTURES))
        print(f"{'':61s}" + "   ".join(["regs  stack spill"] * len(ARCHITECTURES)))
    for case in cases:
        print(f"{case.name:24s}  {of_case(case)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
