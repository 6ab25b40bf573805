"""Derivatives of a C kernel without irgrad's transforms: duals and complex step through the interpreter, and differences.

    subject = Subject(read(ir_text), "energy", "f64(f64[n,3] pos, i64 n)")
    subject.values({"pos": pos})                    {"return": ..., "acc": ...}: all outputs
    subject.jacobian({"pos": pos}, ["pos"])         {("return", "pos"): array of shape out + in}
    subject.directional(inputs, {"pos": v})         {"return": J v, ...} exactly (duals over floats, or over mpf)
    directional(fn, inputs, directions)             five-point differences of any function of a dict of arrays
"""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import types as ty
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.signature import Signature

from .interpreter import Machine
from .numbers import ComplexDomain, Domain, Dual, DualDomain, FloatDomain, MpfDomain

Values = dict[str, Any]
STEP = 1e-30


def element_type(p: Any) -> ty.Type:
    """The IR type of a parameter's dtype (`f64`, `i32`, ...)."""
    name = str(p)
    if name[0] == "f":
        return {"16": ty.HALF, "32": ty.F32, "64": ty.F64}[name[1:]]
    if name == "bf16":
        return ty.BFLOAT
    return ty.int_(int(name.lstrip("iu")))


def five_point(f: Callable[[float], Any], h: float = 1e-3) -> Any:
    """f'(0) by five points: error O(h^4) + eps/h."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def directional(
    fn: Callable[[Values], Any], inputs: Mapping[str, Any], directions: Mapping[str, Any], h: float = 1e-3
) -> Any:
    """Five-point derivative of `fn(inputs)` along `directions` (names left out stay)."""

    def along(t: float) -> Any:
        moved = {k: v + t * np.asarray(directions[k]) if k in directions else v for k, v in inputs.items()}
        return fn(moved)

    return five_point(along, h)


class Subject:
    """A function of a module seen through its signature. Every evaluation is a fresh machine."""

    def __init__(self, module: ir.Module, name: str, signature: str, limit: int = 20_000_000) -> None:
        self.module = module
        self.name = name
        self.signature = Signature(signature)
        self.limit = limit

    # ------------------------------------------------------------ one run
    def run(self, inputs: Mapping[str, Any], domain: Domain, moved: Mapping[str, Sequence[Any]]) -> Values:
        """Outputs as flat lists of numbers of the domain. `moved` gives the numbers of some inputs, flat."""
        machine = Machine(self.module, domain, self.limit)
        shapes = {p.name: np.shape(inputs[p.name]) for p in self.signature.arguments if p.is_array}
        scalars = {
            p.name: int(inputs[p.name])
            for p in self.signature.arguments
            if not p.is_array and not p.dtype.is_float
        }
        sizes = {**scalars, **self.signature.solve(shapes, scalars)}
        args, outs = [], []
        for p in self.signature.parameters:
            t = element_type(p.dtype)
            numbers = self._numbers(p, t, inputs, sizes, domain, moved)
            if p.is_array:
                address = machine.array(t, numbers)
                args.append(address)
                if p.is_output:
                    outs.append((p.name, address, t, len(numbers)))
            else:
                args.append(numbers[0])
        returned = machine.call(self.name, args)
        result: Values = {}
        if self.signature.returns is not None:
            result["return"] = [returned]
        for name, address, t, count in outs:
            result[name] = machine.read(address, t, count)
        return result

    @staticmethod
    def _numbers(
        p: Parameter, t: ty.Type, inputs: Mapping[str, Any], sizes: Mapping[str, int], domain: Domain, moved: Any
    ) -> list[Any]:
        if p.name in moved:
            return list(moved[p.name])
        if p.name in inputs:
            flat = np.asarray(inputs[p.name]).reshape(-1)
        elif p.is_array:
            flat = np.zeros(int(np.prod(p.extents(sizes), dtype=int)))
        else:
            flat = np.asarray([sizes[p.name]])
        if isinstance(t, ty.FloatType):
            return [domain.lift(float(v)) for v in flat]
        assert isinstance(t, ty.IntType)
        return [int(v) & ((1 << t.bits) - 1) for v in flat]

    def _is_float(self, name: str) -> bool:
        if name == "return":
            return bool(self.signature.returns is not None and self.signature.returns.is_float)
        return next(p.dtype.is_float for p in self.signature.parameters if p.name == name)

    # ------------------------------------------------------------ what is read off
    def values(self, inputs: Mapping[str, Any], domain: Domain | None = None) -> Values:
        """All outputs, flat, as float arrays (object arrays of mpf for the MpfDomain)."""
        domain = domain or FloatDomain()
        out = self.run(inputs, domain, {})
        kind = object if isinstance(domain, MpfDomain) else float
        return {k: np.array([_plain(v, kind) for v in vs], dtype=kind) for k, vs in out.items()}

    def directional(
        self, inputs: Mapping[str, Any], directions: Mapping[str, Any], exact: bool = False
    ) -> tuple[Values, Values]:
        """(outputs, their derivatives along `directions`), flat; with `exact` through mpf of 40 digits, nothing rounded."""
        if exact:
            with mpmath.workdps(40):
                return self._directional(inputs, directions, DualDomain(MpfDomain()))
        return self._directional(inputs, directions, DualDomain())

    def _directional(self, inputs: Mapping[str, Any], directions: Mapping[str, Any], domain: DualDomain) -> Any:
        moved = {
            name: [
                Dual(domain.lift(float(x)), domain.lift(float(t)))
                for x, t in zip(np.reshape(inputs[name], -1), np.reshape(d, -1), strict=True)
            ]
            for name, d in directions.items()
        }
        out = self.run(inputs, domain, moved)
        values, tangents = {}, {}
        for name, numbers in out.items():
            if self._is_float(name):
                values[name] = np.array([float(domain.real(v)) for v in numbers])
                tangents[name] = np.array([float(v.t) if type(v) is Dual else 0.0 for v in numbers])
        return values, tangents

    def jacobian(self, inputs: Mapping[str, Any], wrt: Sequence[str]) -> dict[tuple[str, str], Any]:
        """d(output)/d(input) as matrices (flat output, flat input), in one run with array tangents."""
        domain = DualDomain()
        counts = {name: int(np.size(inputs[name])) for name in wrt}
        total = sum(counts.values())
        moved, start = {}, 0
        for name, n in counts.items():
            moved[name] = [
                Dual(float(x), np.eye(1, total, start + i)[0]) for i, x in enumerate(np.reshape(inputs[name], -1))
            ]
            start += n
        out = self.run(inputs, domain, moved)
        result = {}
        for name, numbers in out.items():
            if not self._is_float(name):
                continue
            rows = np.array([v.t if type(v) is Dual else np.zeros(total) for v in numbers]).reshape(-1, total)
            start = 0
            for source, n in counts.items():
                result[name, source] = rows[:, start : start + n]
                start += n
        return result

    def complex_step(self, inputs: Mapping[str, Any], directions: Mapping[str, Any]) -> Values:
        """Derivatives of the outputs along `directions` by complex step, flat."""
        moved = {
            name: [
                complex(float(x), STEP * float(t))
                for x, t in zip(np.reshape(inputs[name], -1), np.reshape(d, -1), strict=True)
            ]
            for name, d in directions.items()
        }
        out = self.run(inputs, ComplexDomain(), moved)
        return {
            name: np.array([v.imag / STEP if type(v) is complex else 0.0 for v in numbers])
            for name, numbers in out.items()
            if self._is_float(name)
        }

    def differences(self, inputs: Mapping[str, Any], directions: Mapping[str, Any], h: float = 1e-3) -> Values:
        """Derivatives of the outputs along `directions` by five-point differences of the interpreter's values."""
        names = [n for n in self.values(inputs) if self._is_float(n)]
        return {n: directional(lambda at, n=n: self.values(at)[n], inputs, directions, h) for n in names}


def _plain(v: Any, kind: Any) -> Any:
    return v if kind is object else float(v)
