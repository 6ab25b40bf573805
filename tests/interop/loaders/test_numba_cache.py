"""What the IR of a Python function depends on; a process that finds it in the cache does without Numba."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

import irgrad
from irgrad import engine
from irgrad.interop.loaders.numba_cache import key_of

K = 2.0


@numba.njit
def inner(x: Any) -> Any:
    return math.sin(x) * K


def outer(x: Any, scale: float = 3.0) -> Any:
    return np.sum(x) * scale + inner(x[0])


def _with(function: FunctionType, defaults: Any = None, **names: Any) -> FunctionType:
    """The function with other globals, as another session would have them."""
    space = {**function.__globals__, **names}
    return FunctionType(function.__code__, space, function.__name__, defaults or function.__defaults__)


def _adds(n: Any) -> Any:
    return lambda x: x + n


def test_keys_are_of_all_that_a_function_reads() -> None:
    first = key_of(outer, "f64[n] x, f64 scale")
    assert first is not None and first == key_of(_with(outer), "f64[n] x, f64 scale")
    plain = inner.py_func
    changed = [
        key_of(outer, "f32[n] x, f64 scale"), key_of(_with(outer, (4.0,)), "f64[n] x, f64 scale"),
        key_of(_with(outer, inner=numba.njit(_with(plain, K=2.5))), "f64[n] x, f64 scale"),
        key_of(_with(outer, inner=numba.njit(fastmath=True)(plain)), "f64[n] x, f64 scale"),
        key_of(_with(outer, inner=plain), "f64[n] x, f64 scale"), key_of(_adds(1), "f64 x"), key_of(_adds(2), "f64 x"),
        key_of(_adds(1.0), "f64 x"), key_of(_adds(np.arange(3.0)), "f64 x"), key_of(_adds(np.arange(4.0)), "f64 x"),
    ]  # fmt: skip
    assert None not in changed and len({first, *changed}) == 1 + len(changed)


def test_there_is_no_key_where_something_is_not_known() -> None:
    module = ModuleType("settings")
    for unknown in (module, object(), [1.0], {"a": 1}, np.array([object()])):
        assert key_of(_adds(unknown), "f64 x") is None
    assert key_of(_with(outer, inner=module), "f64[n] x") is None


def test_values_of_globals_are_those_of_the_call(tmp_path: Path) -> None:
    """Numba compiles them in; another value is another key, not a wrong derivative."""
    for value in (2.0, 5.0):
        made = irgrad.from_numba(_with(outer, inner=numba.njit(_with(inner.py_func, K=value))),
                                 "f64(f64[n] x, f64 scale)")  # fmt: skip
        x = np.array([0.3, 0.4])
        np.testing.assert_allclose(engine.grad(made)(x, 3.0), [3 + value * np.cos(0.3), 3], rtol=1e-13)


def test_a_later_process_does_without_numba(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np, irgrad\nfrom benchmarks import languages\n"
        "kernel = languages.kernel('Numba', 'energy')\n"
        "print(irgrad.grad(kernel)(*languages.arguments('energy')).sum(), 'numba' in sys.modules)\n"
    )
    said = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                           cwd=Path(__file__).parents[3], env={**os.environ, "IRGRAD_CACHE_DIR": str(tmp_path)})
            .stdout.split() for _ in range(2)]  # fmt: skip
    assert said[0][0] == said[1][0] and [row[1] for row in said] == ["True", "False"]
