"""`irgrad tesseract model.c f`: the file tesseract_api.py with which Tesseract serves a function and its derivatives.

What is written holds the schemas and the way to the kernel; the endpoints are the functions of this module. They take
and give dictionaries of NumPy arrays by the names of arguments and outputs (the return value is `result`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irgrad.engine.functions.gradients import jvp as engine_jvp
from irgrad.engine.functions.gradients import vjp as engine_vjp
from irgrad.engine.functions.jacobians import jacfwd
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.select import plain_kernel
from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.slots import RETURN
from irgrad.rules.errors import SignatureError

__all__ = ["abstract_eval", "api_text", "apply", "jacobian", "jvp", "relative", "vjp"]

RESULT = "result"
"""The name of the return value: `return` is a word of Python."""
Arrays = dict[str, Any]


def api_text(kernel: Any, source: str, function: str, options: Mapping[str, Any]) -> str:
    """The text of tesseract_api.py. source: the path from the folder of that file; options: keywords of `load`.

    Raises SignatureError for kernels of structs.
    """
    kernel = plain_kernel(kernel)
    signature = kernel.signature
    kinds = {p.name: p for p in signature.parameters}
    inputs = "\n".join(f"    {p.name}: {_field(p.dtype, p)}" for p in signature.arguments)
    rows = []
    for name, shown in zip(kernel.output_names, _outputs(kernel), strict=True):
        p = kinds.get(name)
        kind = p.dtype if p is not None else signature.returns
        assert kind is not None
        rows.append(f"    {shown}: {_field(kind, p)}")
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return _TEMPLATE.format(source=source, function=function, signature=str(signature), options=given, inputs=inputs,
                            outputs="\n".join(rows), errors=repr(dict(kernel.source.errors) or None),
                            summary=f"The compiled function `{signature}` of {source}.")  # fmt: skip


def _field(kind: DType, p: Parameter | None) -> str:
    words = {"f32": "Float32", "f64": "Float64", "f16": "Float16"}
    word = words.get(kind.name) or f"{'U' if kind.name[0] == 'u' else ''}Int{kind.name[1:]}"
    if kind.name in ("bf16", "bool"):
        raise SignatureError(f"Tesseract has no numbers of {kind}", which=str(p or kind), fix="a wrapper in C")
    if p is not None and p.shape:
        shape = ", ".join(str(e) if str(e).isdigit() else "None" for e in p.shape)
        word = f"Array[({shape},), {word}]"
    return f"Differentiable[{word}]" if kind.is_float else word


def _outputs(kernel: Kernel) -> list[str]:
    return [RESULT if name == RETURN else name for name in kernel.output_names]


def _fields(inputs: Any) -> Mapping[str, Any]:
    if isinstance(inputs, Mapping):
        return inputs
    return {name: getattr(inputs, name) for name in type(inputs).model_fields}


def _values(kernel: Kernel, inputs: Any) -> Arrays:
    rows = _fields(inputs)
    return {p.name: np.asarray(rows[p.name], p.dtype.numpy) for p in kernel.signature.arguments}


def _named(kernel: Kernel, out: Any) -> Arrays:
    names = _outputs(kernel)
    return dict(zip(names, [out] if len(names) == 1 else out or (), strict=True))


def apply(kernel: Kernel, inputs: Any) -> Arrays:
    """The outputs. Raises as the kernel does."""
    return _named(kernel, kernel(**_values(kernel, inputs)))


def jvp(kernel: Kernel, inputs: Any, outputs: Iterable[str], tangents: Mapping[str, Any]) -> Arrays:
    """Tangents of the outputs along tangents of some inputs."""
    values = _values(kernel, inputs)
    given = [None if (t := tangents.get(name)) is None else np.asarray(t, x.dtype) for name, x in values.items()]
    found = _named(kernel, engine_jvp(kernel, list(values.values()), given)[1])
    return {name: found[name] for name in outputs}


def vjp(kernel: Kernel, inputs: Any, wanted: Iterable[str], cotangents: Mapping[str, Any]) -> Arrays:
    """Gradients of the inputs `wanted` from cotangents of some outputs."""
    values, names = _values(kernel, inputs), tuple(wanted)
    out, pullback = engine_vjp(kernel, *values.values(), wrt=names)
    rows = [None if (w := cotangents.get(name)) is None else np.asarray(w, np.asarray(y).dtype)
            for name, y in _named(kernel, out).items()]  # fmt: skip
    return dict(zip(names, pullback(rows[0] if len(rows) == 1 else tuple(rows)), strict=True))


def jacobian(kernel: Kernel, inputs: Any, wanted: Iterable[str], outputs: Iterable[str]) -> dict[str, Arrays]:
    """The Jacobian of each output by each input: of the output's shape and then the input's."""
    names = tuple(wanted)
    rows = _named(kernel, jacfwd(kernel, wrt=names)(**_values(kernel, inputs)))
    return {output: dict(zip(names, rows[output], strict=True)) for output in outputs}


def _shape(value: Any) -> Any:
    return value.get("shape") if isinstance(value, Mapping) else getattr(value, "shape", None)


def abstract_eval(kernel: Kernel, inputs: Any) -> dict[str, dict[str, Any]]:
    """Shapes and dtypes of the outputs from those of the inputs; nothing runs. Integers that determine shapes have to
    be given by value."""
    rows = _fields(inputs)
    shapes, scalars = {}, {}
    for p in kernel.signature.arguments:
        value = rows[p.name]
        shape = _shape(value)
        if p.is_array:
            shapes[p.name] = tuple(shape or ())
        elif shape is None:
            scalars[p.name] = int(value)
    sizes = kernel.signature.solve(shapes, scalars)
    slots = [kernel.primal.slots[n] for n in kernel.output_positions]
    return {name: {"shape": list(slot.shape(sizes)), "dtype": slot.dtype.numpy.name}
            for name, slot in zip(_outputs(kernel), slots, strict=True)}  # fmt: skip


def relative(source: Path, output: Path) -> str:
    """The path of a source from the folder of the file that is written."""
    return os.path.relpath(source.resolve(), output.resolve().parent)


_TEMPLATE = '''"""{summary}

Written by `irgrad tesseract`."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tesseract_core.runtime import (
    Array, Differentiable, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
)  # noqa: F401

import irgrad
from irgrad.interop import tesseract

KERNEL = irgrad.load(Path(__file__).parent / {source!r}{options}).kernel(
    {function!r}, {signature!r}, errors={errors})


class InputSchema(BaseModel):
{inputs}


class OutputSchema(BaseModel):
{outputs}


def apply(inputs: InputSchema) -> OutputSchema:
    return OutputSchema(**tesseract.apply(KERNEL, inputs))


def jacobian(inputs: InputSchema, jac_inputs: set[str], jac_outputs: set[str]) -> dict[str, dict[str, Any]]:
    return tesseract.jacobian(KERNEL, inputs, jac_inputs, jac_outputs)


def jacobian_vector_product(
    inputs: InputSchema, jvp_inputs: set[str], jvp_outputs: set[str], tangent_vector: dict[str, Any]
) -> dict[str, Any]:
    return tesseract.jvp(KERNEL, inputs, jvp_outputs, tangent_vector)


def vector_jacobian_product(
    inputs: InputSchema, vjp_inputs: set[str], vjp_outputs: set[str], cotangent_vector: dict[str, Any]
) -> dict[str, Any]:
    return tesseract.vjp(KERNEL, inputs, vjp_inputs, cotangent_vector)


def abstract_eval(abstract_inputs: Any) -> dict[str, Any]:
    return tesseract.abstract_eval(KERNEL, abstract_inputs)
'''
