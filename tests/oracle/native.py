"""Call a compiled function through its signature with ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from irgrad.engine.signature.signature import Signature

C_TYPES = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "i8": ctypes.c_int8,
}  # fmt: skip
DTYPES = {"f64": np.float64, "f32": np.float32, "i32": np.int32, "i64": np.int64, "i8": np.int8}


def run_native(library: ctypes.CDLL, name: str, text: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs by name ("return" and out/inout arguments), flat. `inputs` are not changed."""
    signature = Signature(text)
    arrays = {p.name: np.shape(inputs[p.name]) for p in signature.arguments if p.is_array}
    scalars = {p.name: int(inputs[p.name]) for p in signature.arguments if not p.is_array and not p.dtype.is_float}
    sizes = {**scalars, **signature.solve(arrays, scalars)}
    call, out, keep = [], {}, []
    for p in signature.parameters:
        dtype = str(p.dtype)
        if p.is_array:
            start = inputs[p.name] if p.name in inputs else np.zeros(p.extents(sizes))
            a = np.array(start, DTYPES[dtype], order="C")
            keep.append(a)
            call.append(a.ctypes.data_as(ctypes.c_void_p))
            if p.is_output:
                out[p.name] = a.reshape(-1)
        else:
            call.append(C_TYPES[dtype](np.asarray(inputs[p.name] if p.name in inputs else sizes[p.name]).item()))
    f = getattr(library, name)
    f.restype = C_TYPES[str(signature.returns)] if signature.returns else None
    result = f(*call)
    return ({"return": np.array([result])} if signature.returns else {}) | out
