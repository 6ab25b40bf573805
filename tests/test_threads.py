"""Sixteen threads from a barrier: one compile for each key, results equal bit by bit."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.codegen import optimise
from irgrad.engine.codegen.interrupts import TICK

pytestmark = pytest.mark.long

SOURCE = """#include <math.h>
double a(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += sin(x[i]) * x[i]; return s; }
double b(const double *x, long n) { double s = 1; for (long i = 0; i < n; i++) s *= 1 + 0.01 * x[i]; return s; }
"""


def test_one_compile_per_key_and_equal_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    made: list[str] = []
    original = optimise.optimised_module

    def counted(text: str, entries: Any, *args: Any, **kwargs: Any) -> Any:
        if TICK not in entries:  # made once in a process
            made.append(entries[0])
        return original(text, entries, *args, **kwargs)

    monkeypatch.setattr(optimise, "optimised_module", counted)
    library = irgrad.load(SOURCE)
    gradients = [engine.grad(library.kernel(name, "f64(f64[n] x, i64 n)")) for name in "ab"]
    x = np.linspace(0.1, 2.0, 50)
    barrier = threading.Barrier(16)
    results: list[tuple[int, bytes]] = []
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for _ in range(100):
                barrier.wait(60)
                results.append((number % 2, np.asarray(gradients[number % 2](x)).tobytes()))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
    assert len(results) == 1600
    assert len(set(results)) == 2, "one result for each kernel"
    assert len(made) == len(set(made)) == 2, "one compilation for each kernel"
