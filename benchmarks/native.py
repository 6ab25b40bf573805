"""Compiling the C sources as a user of C would, and calling them through ctypes: nothing of irgrad is involved.

The signature reader here is the benchmarks' own, so that a mistake in irgrad's cannot hide behind the same mistake.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3", "-march=native", "-fno-sanitize=undefined", "-fno-exceptions", "-shared", "-fPIC")
SCALARS = {"f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
ARGUMENT = re.compile(r"(?:(?P<flow>out|inout)\s+)?(?P<type>[fi]\d+)(?:\[(?P<shape>[^\]]*)\])?\s+(?P<name>\w+)")


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter: `flow` is `in`, `out` or `inout`; `shape` holds extent expressions, None for a scalar."""

    name: str
    dtype: str
    shape: tuple[str, ...] | None
    flow: str

    def zeros(self, sizes: dict[str, Any]) -> np.ndarray[Any, Any]:
        """An array of zeros of the shape that the sizes give."""
        assert self.shape is not None
        extents = tuple(int(eval(extent, {"__builtins__": {}}, sizes)) for extent in self.shape)
        return np.zeros(extents, dtype=self.dtype.replace("f", "float").replace("i", "int"))


def parse(signature: str) -> tuple[str, list[Argument]]:
    """Return type and arguments of a C prototype with shapes."""
    returned, _, rest = signature.partition("(")
    arguments = []
    for match in ARGUMENT.finditer(rest):
        shape = match["shape"]
        extents = None if shape is None else tuple(extent.strip() for extent in shape.split(","))
        arguments.append(Argument(match["name"], match["type"], extents, match["flow"] or "in"))
    return returned.strip(), arguments


def inputs_of(signature: str, data: dict[str, Any]) -> list[Any]:
    """What a user passes to the kernel: inputs in order, without the sizes that shapes already give."""
    _, arguments = parse(signature)
    bound = {extent for a in arguments if a.flow != "out" for extent in a.shape or ()}
    return [data[a.name] for a in arguments if a.flow != "out" and not (a.shape is None and a.name in bound)]


@cache
def library(source: Path) -> ctypes.CDLL:
    """The source as a shared library, compiled by the ziglang wheel's clang at -O3 for this CPU, kept by content."""
    text = source.read_bytes()
    key = hashlib.sha256(b"\0".join([text, " ".join(FLAGS).encode(), os.uname().nodename.encode()])).hexdigest()[:20]
    folder = Path(tempfile.gettempdir()) / f"irgrad-benchmarks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    built = folder / f"{source.stem}-{key}.so"
    if not built.exists():
        driver = "c++" if source.suffix == ".cpp" else "cc"
        partial = built.with_suffix(f".{os.getpid()}.so")
        command = [sys.executable, "-m", "ziglang", driver, *FLAGS, str(source), "-o", str(partial), "-lm"]
        subprocess.run(command, check=True, timeout=300)
        partial.replace(built)
    return ctypes.CDLL(str(built))


def bind(source: Path, function: str, signature: str, data: dict[str, Any]) -> Callable[[], tuple[Any, list[Any]]]:
    """A call without arguments on the given inputs; it returns the value and the `out` arrays, which it zeroes never.

    The arrays are allocated once: what is timed is the function itself.
    """
    returned, arguments = parse(signature)
    native = getattr(library(source), function)
    native.restype = None if returned == "void" else SCALARS[returned]
    values: list[Any] = []
    outs: list[Any] = []
    keep: list[Any] = []
    sizes = shapes(arguments, data)
    for argument in arguments:
        if argument.shape is None:
            values.append(SCALARS[argument.dtype](data[argument.name]))
            continue
        if argument.flow == "out":
            array = argument.zeros(sizes)
            outs.append(array)
        else:
            array = np.ascontiguousarray(data[argument.name])
        keep.append(array)
        values.append(ctypes.c_void_p(array.ctypes.data))

    def call() -> tuple[Any, list[Any]]:
        assert keep or not values
        return native(*values), outs

    return call


def shapes(arguments: list[Argument], data: dict[str, Any]) -> dict[str, Any]:
    """Every extent that is a plain name, from the data or from the shape of an input."""
    sizes = {name: value for name, value in data.items() if isinstance(value, int)}
    for argument in arguments:
        if argument.flow != "out" and argument.shape is not None:
            for extent, size in zip(argument.shape, np.shape(data[argument.name]), strict=True):
                if extent.isidentifier():
                    sizes.setdefault(extent, size)
    return sizes
