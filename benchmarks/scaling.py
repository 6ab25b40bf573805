"""Cost of long functions: CPU seconds and peak memory from IR text to the first gradient, by number of instructions.

    python -m benchmarks.scaling            # 10^3, 10^4, 10^5 instructions
    python -m benchmarks.scaling 200000

Each size runs in a process of its own, without the disk cache. Linear growth is a column `us/instruction` that stays.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

SIZES = (1_000, 10_000, 100_000)


def straight(count: int) -> str:
    """One block: a chain of sums, products and sines that stays of size one."""
    ops = ("fadd double {p}, {q}", "fmul double {p}, 0.5", "call double @llvm.sin.f64(double {p})",
           "fadd double {p}, 0.25")  # fmt: skip
    lines = ["declare double @llvm.sin.f64(double)", "define void @f(ptr noalias %x, ptr noalias %y) {",
             "%v0 = load double, ptr %x"]  # fmt: skip
    lines += [f"%v{i} = " + ops[i % 4].format(p=f"%v{i - 1}", q=f"%v{max(0, i - 7)}") for i in range(1, count)]
    return "\n".join([*lines, f"store double %v{count - 1}, ptr %y", "ret void", "}", ""])


def branches(count: int) -> str:
    """A chain of branches around one product."""
    lines = ["define void @f(ptr noalias %x, ptr noalias %y) {", "%w = load double, ptr %x", "br label %h0"]
    value = "%w"
    for k in range(count // 7):
        lines += [f"h{k}:", f"%q{k} = fcmp ogt double {value}, 0.3", f"br i1 %q{k}, label %a{k}, label %e{k}",
                  f"a{k}:", f"%u{k} = fmul double {value}, 0.9", f"br label %e{k}", f"e{k}:",
                  f"%p{k} = phi double [%u{k}, %a{k}], [{value}, %h{k}]", f"br label %h{k + 1}"]  # fmt: skip
        value = f"%p{k}"
    return "\n".join([*lines, f"h{count // 7}:", f"store double {value}, ptr %y", "ret void", "}", ""])


def measure(shape: str, count: int) -> None:
    """One row of the table."""
    import numpy as np

    import irgrad

    text = {"straight": straight, "branches": branches}[shape](count)
    start = time.process_time()
    kernel = irgrad.load(text, language="ll").kernel("f", "void(f64[1] x, out f64[1] y)")
    gradient = irgrad.engine.grad(kernel)
    gradient(np.array([0.7]))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = 1e6 * seconds / count
    print(f"{shape:10}{count:10}{seconds:10.2f} s{peak:10.0f} MiB{rate:10.0f} us/instruction", flush=True)


def main(words: list[str]) -> None:
    """Run the sizes given, or one row when called with a shape and a size."""
    if words and words[0].isalpha():
        measure(words[0], int(words[1]))
        return
    for shape in ("straight", "branches"):
        for count in map(int, words or SIZES):
            command = [sys.executable, "-m", "benchmarks.scaling", shape, str(count)]
            subprocess.run(command, check=True, env={**os.environ, "IRGRAD_CACHE": "0"})


if __name__ == "__main__":
    main(sys.argv[1:])
