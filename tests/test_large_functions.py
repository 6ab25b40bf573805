"""Functions of many instructions: no recursion limit, work and memory linear. The long run takes 10^5 instructions."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from counting_work import growth, peak_bytes
from handwritten.made import asked

import irgrad
from irgrad import engine
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive

pytestmark = pytest.mark.long


def _straight(count: int) -> str:
    sine = "call double @llvm.sin.f64(double {p})"
    ops = ("fadd double {p}, {q}", "fmul double {p}, 0.5", sine, "fadd double {p}, 0.25")
    lines = ["declare double @llvm.sin.f64(double)", "define void @f(ptr noalias %x, ptr noalias %y) {"]
    lines.append("%v0 = load double, ptr %x")
    for i in range(1, count):
        lines.append(f"%v{i} = " + ops[i % 4].format(p=f"%v{i - 1}", q=f"%v{max(0, i - 7)}"))
    return "\n".join([*lines, f"store double %v{count - 1}, ptr %y", "ret void", "}", ""])


def _branches(count: int) -> str:
    lines = ["define void @f(ptr noalias %x, ptr noalias %y) {", "%w = load double, ptr %x", "br label %h0"]
    value = "%w"
    for k in range(count // 7):
        lines += [f"h{k}:", f"%q{k} = fcmp ogt double {value}, 0.3", f"br i1 %q{k}, label %a{k}, label %h{k}.end"]
        lines += [f"a{k}:", f"%u{k} = fmul double {value}, 0.9", f"br label %h{k}.end", f"h{k}.end:"]
        before = f"h{k}"
        lines += [f"%p{k} = phi double [%u{k}, %a{k}], [{value}, %{before}]", f"br label %h{k + 1}"]
        value = f"%p{k}"
    return "\n".join([*lines, f"h{count // 7}:", f"store double {value}, ptr %y", "ret void", "}", ""])


def _deriving(make: Callable[[int], str], count: int) -> Callable[[], object]:
    text = make(count)

    def work() -> None:
        module = read(text, roots=["f"])
        derive(module, asked("f", "reverse", ["dup", "dup"]))
        assert "define" in to_text(module)

    return work


@pytest.mark.parametrize("make", [_straight, _branches])
def test_work_and_memory_are_linear(make: Callable[[int], str]) -> None:
    assert growth(lambda count: _deriving(make, count), 250, 2_000) < 1.2
    assert peak_bytes(_deriving(make, 2_000)) < 1.2 * 8 * peak_bytes(_deriving(make, 250))


def _straight_slope(count: int, x: float) -> float:
    """The derivative of `_straight` by dual numbers."""
    rows = [(x, 1.0)]
    for i in range(1, count):
        (p, dp), (q, dq) = rows[i - 1], rows[max(0, i - 7)]
        rows.append(((p + q, dp + dq), (0.5 * p, 0.5 * dp), (math.sin(p), math.cos(p) * dp), (p + 0.25, dp))[i % 4])
    return rows[-1][1]


def _branches_slope(count: int, x: float) -> float:
    slope = 1.0
    for _ in range(count // 7):
        x, slope = (0.9 * x, 0.9 * slope) if x > 0.3 else (x, slope)
    return slope


def gradient_and_peak(name: str, count: int) -> None:
    """Print the gradient of a function at 0.7, and the most memory that this program ever had, in KiB.

    (Not `ru_maxrss`: that of a new process begins with its parent's.)"""
    make = {"straight": _straight, "branches": _branches}[name]
    kernel = irgrad.load(make(count), language="ll").kernel("f", "void(f64[1] x, out f64[1] y)")
    gradient = float(engine.grad(kernel)(np.array([0.7]))[0])
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    print(repr(gradient), peak)


@pytest.mark.parametrize("count", [12_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "slope"), [("straight", _straight_slope), ("branches", _branches_slope)])
def test_it_becomes_a_callable_gradient(name: str, slope: Callable[[int, float], float], count: int) -> None:
    """In a process of its own: the peak of this one is that of all tests before."""
    expected = slope(count, 0.7)
    assert expected != 0
    code = f"import test_large_functions as t; t.gradient_and_peak({name!r}, {count})"
    folders = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900,
                          env={**os.environ, "PYTHONPATH": folders})  # fmt: skip
    assert done.returncode == 0, done.stderr
    gradient, peak = done.stdout.split()
    assert float(gradient) == pytest.approx(expected, rel=1e-9)
    assert int(peak) < 2 << 20
