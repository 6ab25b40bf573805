"""What a loop on threads may take for copies: IRGRAD_MAX_COPIES, and one thread where that is not enough."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.part_cases import MAIN, SIGNATURE, X, Y, source_of

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstData
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.runtime.copies import OWN_MEMORY, link_copies, most_bytes, tell
from irgrad.interop.driver import main_cc

PARTS = ("the place of the largest", "what depends on what was captured", "variables of an iteration",
         "an array reduction", "an operator that chooses")  # fmt: skip
UPDATES = """
#include <math.h>
double f(const double *x, double *y, long n) {
  double s = 0;
  #pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++) {
    double v = sin(x[i]) * x[i];
    s += v;
    #pragma omp atomic
    y[i * 7 % n] += v * v;
  }
  return s;
}
"""


def _results(kernel: Any) -> list[np.ndarray]:
    """Values, gradients, tangents."""
    values, pullback = ig.vjp(kernel, X, Y)
    gradients = pullback((1.3, np.cos(np.arange(Y.size))))
    along = np.sin(np.arange(X.size) + 1.0), np.cos(np.arange(Y.size) * 2.0)
    _, pushed = ig.jvp(kernel, (X, Y), along)
    return [*map(np.asarray, values), *gradients, *map(np.asarray, pushed)]


@pytest.mark.parametrize("name", [*PARTS, ""])
def test_kernels_on_one_thread(name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """One thread runs the loop as it is: with the bits of the kernel without threads."""
    text = source_of(name).replace("static double f(", "double f(") if name else UPDATES
    lib = ig.load(text, flags=["-fopenmp"])
    monkeypatch.setenv("IRGRAD_MAX_COPIES", "1000")
    plain, alone = _results(lib.kernel("f", SIGNATURE)), _results(lib.kernel("f", SIGNATURE, threads=4))
    for a, b in zip(alone, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    line = 1 + text[: text.index("#pragma omp parallel")].count("\n")
    told = [row for row in capfd.readouterr().err.splitlines() if "one thread runs" in row]
    assert told and all(row.startswith(f"irgrad: warning: one thread runs <string>:{line}:3: ") for row in told)
    assert all(OWN_MEMORY in row for row in told) and len(told) <= 4
    monkeypatch.setenv("IRGRAD_MAX_COPIES", "1e6")
    for a, b in zip(_results(lib.kernel("f", SIGNATURE, threads=4)), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert "one thread runs" not in capfd.readouterr().err


def test_the_reverse_sweep_does_as_the_forward_sweep_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says by then."""
    lib = ig.load(source_of("a captured place").replace("static double f(", "double f("), flags=["-fopenmp"])
    bars = 1.3, np.cos(np.arange(Y.size))
    wanted = ig.vjp(lib.kernel("f", SIGNATURE), X, Y)[1](bars)
    for first, second in (("100", "1e8"), ("1e8", "100")):
        monkeypatch.setenv("IRGRAD_MAX_COPIES", first)
        _, pullback = ig.vjp(lib.kernel("f", SIGNATURE, threads=3, tape="store"), X, Y)
        monkeypatch.setenv("IRGRAD_MAX_COPIES", second)
        for a, b in zip(pullback(bars), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_explain_says_it() -> None:
    lib = ig.load(source_of("a captured place").replace("static double f(", "double f("), flags=["-fopenmp"])
    assert "more than IRGRAD_MAX_COPIES" in str(ig.explain(lib.kernel("f", SIGNATURE, threads=2)))


@pytest.mark.parametrize("name", ["the place of the largest", "an array reduction"])
def test_programs_on_one_thread(name: str, tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(source_of(name) + MAIN)
    assert main_cc(["-O1", "-fopenmp", str(tmp_path / "p.c"), "-lm", "-o", str(tmp_path / "p")]) == 0

    def run(limit: str) -> subprocess.CompletedProcess[str]:
        more = {"OMP_NUM_THREADS": "4", "IRGRAD_MAX_COPIES": limit}
        return subprocess.run([str(tmp_path / "p")], env={**os.environ, **more}, check=True, capture_output=True,
                              text=True)  # fmt: skip

    alone, shared = run("100"), run("nonsense")
    assert not shared.stderr
    rows = alone.stderr.splitlines()
    assert rows and all(OWN_MEMORY in row and "p.c:" in row for row in rows)
    assert len(rows) == len(set(rows)) or len(rows) <= 3, rows
    numbers = [[float(row.split()[1]) for row in run.stdout.splitlines()] for run in (alone, shared)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)
    assert numbers[0][-1] == pytest.approx(numbers[0][-2], rel=1e-9)


@pytest.mark.parametrize("body", ["y[i] = sin(x[i]) * x[(i * 3 + 1) % n] * x[i];",
                                  "double v = x[i]; for (long j = 0; j < n; j += 9) v = sin(v) * x[j]; y[i] = v;"])
def test_a_sweep_without_memory_for_copies_of_adjoints(
    body: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One chunk after the other adds to the array itself."""
    lib = ig.load(f"""#include <math.h>
void f(const double *x, double *y, long n) {{
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {{ {body} }}
}}""", flags=["-fopenmp"])
    signature, bar = "void(f64[n] x, out f64[n] y, i64 n)", np.cos(np.arange(X.size))
    wanted = ig.vjp(lib.kernel("f", signature), X)[1](bar)
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    monkeypatch.setenv("IRGRAD_MAX_COPIES", "100")
    found = ig.vjp(lib.kernel("f", signature, threads=4), X)[1](bar)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    said = capfd.readouterr().err
    assert said.count("one thread runs <string>:4:5: memory for copies of the arrays that its chunks add to takes") == 1
    assert OWN_MEMORY in said


def test_the_definitions_replace_the_declarations() -> None:
    module = read("define i64 @f() {\n  ret i64 0\n}\n")
    fn = module.functions["f"]
    at = Builder(fn.entry, 0)
    most = most_bytes(module, at)
    tell(module, at, "a.c:3:1 (inlined at b.c:4:5)", 'it is "large"')
    fn.entry.terminator.operands[0] = most
    verify_module(module)
    said = [var.init for var in module.globals.values()]
    assert isinstance(said[0], ConstData)
    assert said[0].data == b'irgrad: warning: one thread runs a.c:3:1: it is "large"\n'
    text = link_copies(to_text(module))
    assert "declare i64 @irgrad.copies.most" not in text and text.count("define internal i64 @irgrad.copies.most") == 1
    compiled = compile_module(text, ["f"])
    assert compiled.address("f")
    assert link_copies("declare void @free(ptr)\n") == "declare void @free(ptr)\n"
