"""The table of hand-written kernels: one construct each. `CASES` joins the groups of the cases_*.py files.

    case("name", "f64(f64[8] x, i32 n)", "C source whose function is `name`", n=5)

Float inputs that are not given are drawn from [-1.2, 1.2] with a seed made of the name; integers must be given.
Helpers, types and globals of a case start with the case's name, so that all cases fit one file.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HEADER = """#include <assert.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
"""
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64, "i8": np.int8}


@dataclass(frozen=True)
class Case:
    """A kernel and how it is tested."""

    name: str
    signature: str
    source: str
    given: dict[str, Any] = field(default_factory=dict)
    wrt: tuple[str, ...] = ()  # () : every float input
    flags: tuple[str, ...] = ()  # a case with flags is compiled on its own
    tolerance: float = 1e-10
    second: bool = False  # forward over reverse is tested as well
    language: str = "c"
    levels: tuple[str, ...] = ("-O0", "-O2", "-O3")
    oracle: str = "-O0"  # the level at which the oracle reads it

    @property
    def function(self) -> str:
        """Name of the C function."""
        return self.name

    def inputs(self) -> dict[str, Any]:
        """Arguments by name."""
        from irgrad.engine.signature.signature import Signature

        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        out: dict[str, Any] = {}
        for p in Signature(self.signature).arguments:
            kind = DTYPES[str(p.dtype)]
            if p.name in self.given:
                value = self.given[p.name]
                out[p.name] = np.asarray(value, kind) if p.is_array else kind(value)
                continue
            assert p.dtype.is_float, f"{self.name}: give {p.name}"
            if not p.is_array:
                out[p.name] = kind(rng.uniform(-1.2, 1.2))
            else:
                out[p.name] = rng.uniform(-1.2, 1.2, p.extents({})).astype(kind)
        return out

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the inputs to differentiate."""
        return self.wrt or tuple(k for k, v in self.inputs().items() if np.asarray(v).dtype.kind == "f")


_OPTIONS = ("wrt", "flags", "tolerance", "second", "language", "levels", "oracle")


def case(name: str, signature: str, source: str, /, **given: Any) -> Case:
    """A case; keywords are options of `Case` or inputs."""
    options = {k: given.pop(k) for k in _OPTIONS if k in given}
    return Case(name, signature, source.strip() + "\n", given, **options)


def all_cases() -> tuple[Case, ...]:
    """Every case, in order."""
    from . import cases_calls, cases_control, cases_math, cases_memory, cases_structs, cases_types

    groups = (cases_control, cases_memory, cases_structs, cases_calls, cases_math, cases_types)
    return tuple(c for group in groups for c in group.CASES)
