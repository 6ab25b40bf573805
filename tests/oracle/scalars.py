"""Scalar arithmetic, comparisons and casts of the interpreter."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .memory import Bits, Fault, bits, combine

M64 = (1 << 64) - 1


def signed(value: int, width: int) -> int:
    """The signed reading of a masked integer."""
    return int(value) - (1 << width) if value >> (width - 1) else int(value)


class Scalars:
    """Lowers operations on scalars to functions of Python values."""

    def _float_op(self, op: str, t: ty.Type) -> Callable[..., Any]:
        domain = self.domain
        base: Callable[..., Any] = {
            "fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fneg": operator.neg,
            "fdiv": domain.div, "frem": lambda x, y: domain.remainder(x, y, "trunc"),
        }[op]  # fmt: skip
        rounder = domain.rounder(t)
        if rounder is None or op == "fneg":
            return base
        return lambda *a: rounder(base(*a))

    def _int_op(self, op: str, t: ty.Type, flags: tuple[str, ...]) -> Callable[..., Any]:
        assert isinstance(t, ty.IntType)
        width = t.bits
        mask = (1 << width) - 1
        domain = self.domain
        if op in ("and", "or", "xor"):
            plain = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[op]
            if width % 8:
                return plain
            return lambda a, b: (
                combine(op, a, b, width, domain) if type(a) is Bits or type(b) is Bits else plain(a, b)
            )
        if op in ("shl", "lshr", "ashr"):
            return lambda a, b: self._shift(op, a, int(b), width)
        if op in ("udiv", "urem", "sdiv", "srem"):
            def divide(a: int, b: int) -> int:
                if not b:
                    raise Fault("integer division by zero")
                if op[0] == "u":
                    return a // b if op == "udiv" else a % b
                x, y = signed(a, width), signed(b, width)
                q = abs(x) // abs(y)
                q = -q if (x < 0) != (y < 0) else q
                return (q if op == "sdiv" else x - q * y) & mask
            return divide
        plain = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[op]
        if op == "add":
            return lambda a, b: (
                combine("or", a, b, width, domain) if type(a) is Bits or (type(b) is Bits and not a & b)
                else (a + b) & mask
            )
        return lambda a, b: plain(a, b) & mask

    def _shift(self, op: str, a: int, b: int, width: int) -> int:
        if b >= width:
            return 0
        if type(a) is Bits and b % 8 == 0 and width % 8 == 0 and op != "ashr":
            n, k = width // 8, b // 8
            items = (a.items + [0] * n)[:n]
            return bits(([0] * k + items)[:n] if op == "shl" else items[k:] + [0] * k, self.domain)
        if op == "shl":
            return (int(a) << b) & ((1 << width) - 1)
        if op == "lshr":
            return int(a) >> b
        return (signed(a, width) >> b) & ((1 << width) - 1)

    def _icmp(self, pred: str, t: ty.Type) -> Callable[[int, int], int]:
        width = t.bits if isinstance(t, ty.IntType) else 64
        compare = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
                   "gt": operator.gt, "ge": operator.ge}[pred if pred in ("eq", "ne") else pred[1:]]  # fmt: skip
        if pred[0] == "s":
            return lambda a, b: int(compare(signed(a, width), signed(b, width)))
        return lambda a, b: int(compare(a, b))

    def _fcmp(self, pred: str) -> Callable[[Any, Any], int]:
        if pred in ("true", "false"):
            return lambda a, b: int(pred == "true")
        real = self.domain.real
        if pred in ("ord", "uno"):
            return lambda a, b: int((real(a) != real(a) or real(b) != real(b)) == (pred == "uno"))
        compare = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
                   "gt": operator.gt, "ge": operator.ge}[pred[1:]]  # fmt: skip
        unordered = int(pred[0] == "u")

        def run(a: Any, b: Any) -> int:
            x, y = real(a), real(b)
            if x != x or y != y:
                return unordered
            return int(compare(x, y))

        return run

    def _cast(self, op: str, s: ty.Type, t: ty.Type) -> Callable[[Any], Any]:
        domain = self.domain
        width = t.bits if isinstance(t, ty.IntType) else 64
        mask = (1 << width) - 1
        if op in ("trunc", "ptrtoint", "inttoptr", "addrspacecast", "ptrtoaddr", "zext"):
            def resize(a: int) -> int:
                if type(a) is Bits and width % 8 == 0:
                    n = width // 8
                    return bits((a.items + [0] * n)[:n], domain)
                return int(a) & mask
            return resize
        if op == "sext":
            assert isinstance(s, ty.IntType)
            return lambda a: signed(a, s.bits) & mask
        if op in ("fptoui", "fptosi"):
            def to_int(x: Any) -> int:
                r = float(domain.real(x))
                if r != r or r in (float("inf"), float("-inf")):
                    return 0
                return int(r) & mask
            return to_int
        rounder = domain.rounder(t)
        if op in ("uitofp", "sitofp"):
            assert isinstance(s, ty.IntType)
            def from_int(a: int) -> Any:
                x = domain.lift(signed(a, s.bits) if op == "sitofp" else int(a))
                return x if rounder is None else rounder(x)
            return from_int
        if op in ("fptrunc", "fpext"):
            return rounder if rounder is not None and op == "fptrunc" else lambda x: x
        raise Fault(f"cast `{op}`")
