"""One table of functions in all languages: n-body, RK4, a stencil. Tests compare them, `python -m benchmarks.languages`
times how long the first gradient of each takes."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "LANGUAGES", "Spoken", "arguments", "kernel"]

FUNCTIONS = ("energy", "rk4", "diffuse")
_SIZED = {
    "energy": "f64(f64[n,3] pos, f64[n] mass, i64 n)",
    "rk4": "void(inout f64[3] y, f64 h, i64 steps)",
    "diffuse": "void(f64[n] u, out f64[n] v, i64 n)",
}
_SLICES = {
    "energy": "f64(f64[n,3] pos, f64[n] mass)",
    "rk4": "void(inout f64[3] y, f64 h, i64 steps)",
    "diffuse": "void(f64[n] u, out f64[n] v)",
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """A language: its file, and the signatures of the functions there."""

    file: str
    signatures: dict[str, str]


LANGUAGES = {
    "C": Spoken("model.c", _SIZED),
    "C++": Spoken("model.cpp", _SIZED),
    "Zig": Spoken("model.zig", _SIZED),
    "Numba": Spoken("model.py", _SLICES),
    "Rust": Spoken("model.rs", _SLICES),
    "Fortran": Spoken("model.f90", _SLICES),
}


def kernel(language: str, function: str, **options: Any) -> Any:
    """A function of the table as a kernel; the options are those of `irgrad.load`. Raises what `load` raises."""
    import irgrad

    spoken = LANGUAGES[language]
    if language == "Numba":
        module = importlib.import_module("benchmarks.languages.model")
        return irgrad.from_numba(getattr(module, function), spoken.signatures[function])
    path = Path(__file__).with_name(spoken.file)
    return irgrad.load(path, **options).kernel(function, spoken.signatures[function])


def arguments(function: str) -> tuple[Any, ...]:
    """Arguments of a function, the same in all languages."""
    rng = np.random.default_rng(3)
    if function == "energy":
        return rng.normal(size=(7, 3)), rng.uniform(1, 2, 7)
    return (np.array([1.0, 2, 20]), 0.01, 25) if function == "rk4" else (rng.normal(size=12),)
