"""Scalar arithmetic, comparisons and casts of the interpreter."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .memory import Bits, bits, bytewise, combine, narrowed
from .undefined import POISON, UNDEF, Fault, Misused, Undefined, meet

M64 = (1 << 64) - 1


def signed(value: int, width: int) -> int:
    """The signed reading of a masked integer."""
    return int(value) - (1 << width) if value >> (width - 1) else int(value)


class Scalars:
    """Lowers operations on scalars to functions of Python values."""

    def _within(self, f: Callable[..., Any], flags: tuple[str, ...]) -> Callable[..., Any]:
        """`f` with a poison result where its flags exclude a NaN or an infinity that comes in or goes out."""
        no_nan, no_inf = "nnan" in flags or "fast" in flags, "ninf" in flags or "fast" in flags
        if not (no_nan or no_inf):
            return f
        real = self.domain.real

        def run(*values: Any) -> Any:
            out = f(*values)
            for x in map(real, (*values, out)):
                if type(x) is not Undefined and ((no_nan and x != x) or (no_inf and x - x != 0 and x == x)):
                    return POISON
            return out

        return run

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
            if "disjoint" in flags:
                whole = self._int_op(op, t, ())
                return lambda a, b: POISON if int(a) & int(b) else whole(a, b)
            if width % 8:
                return plain
            return lambda a, b: (
                combine(op, a, b, width, domain) if type(a) is Bits or type(b) is Bits else plain(a, b)
            )
        if op in ("shl", "lshr", "ashr"):
            shift = lambda a, b: self._shift(op, a, int(b), width)  # noqa: E731
            return shift if not flags else lambda a, b: POISON if _lossy(op, a, int(b), width, flags) else shift(a, b)
        if op in ("udiv", "urem", "sdiv", "srem"):
            def divide(a: int, b: int) -> Any:
                if type(b) is Undefined:
                    raise Misused("the divisor")
                if not b:
                    raise Fault("integer division by zero")
                if op[0] == "u":
                    return POISON if flags and a % b else a // b if op == "udiv" else a % b
                x, y = signed(a, width), signed(b, width)
                q = abs(x) // abs(y)
                q = -q if (x < 0) != (y < 0) else q
                if q >> (width - 1) > 0:
                    raise Fault("integer division overflows")
                return POISON if flags and x != q * y else (q if op == "sdiv" else x - q * y) & mask
            return divide
        plain = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[op]
        if flags:
            return _checked(plain, width, flags)
        if op == "add":
            return lambda a, b: (
                combine("or", a, b, width, domain) if type(a) is Bits or (type(b) is Bits and not a & b)
                else (a + b) & mask
            )
        return lambda a, b: plain(a, b) & mask

    def _lost(self, op: str, t: ty.Type) -> Callable[..., Any]:
        """What an operation on integers of this type gives where an operand is undefined."""
        width = t.bits if isinstance(t, ty.IntType) else 64
        domain = self.domain
        if op in ("and", "or", "xor"):
            return lambda a, b: bytewise(op, a, b, width, domain)
        if op == "mul":
            def product(a: Any, b: Any) -> Any:
                known = b if type(a) is Undefined else a
                nothing = type(known) is not Undefined and not known
                return 0 if nothing and meet(a, b) is UNDEF else meet(a, b)
            return product
        if op in ("shl", "lshr"):
            def shifted(a: Any, b: Any) -> Any:
                if type(b) is Undefined or a is POISON or width % 8 or b % 8 or b >= width:
                    return meet(a, b)
                n, k = width // 8, int(b) // 8
                items = (a.items or [UNDEF] * n)[:n]
                return bits(([0] * k + items)[:n] if op == "shl" else items[k:] + [0] * k, domain)
            return shifted
        return meet

    def _resized(self, s: ty.Type, t: ty.Type) -> Callable[..., Any]:
        """The same for trunc, zext and casts of pointers."""
        domain = self.domain
        width = t.bits if isinstance(t, ty.IntType) else 64
        own = s.bits if isinstance(s, ty.IntType) else 64

        def resized(a: Undefined) -> Any:
            if a is POISON or (width >= own and a.items is None and own % 8):
                return a
            items = a.items or [UNDEF] * ((own + 7) // 8)
            return narrowed(Undefined((items + [0] * 16)[: max(len(items), (width + 7) // 8)]), width, domain)

        return resized

    def _shift(self, op: str, a: int, b: int, width: int) -> Any:
        if b >= width:
            return POISON
        if type(a) is Bits and b % 8 == 0 and width % 8 == 0 and op != "ashr":
            n, k = width // 8, b // 8
            items = (a.items + [0] * n)[:n]
            return bits(([0] * k + items)[:n] if op == "shl" else items[k:] + [0] * k, self.domain)
        if op == "shl":
            return (int(a) << b) & ((1 << width) - 1)
        if op == "lshr":
            return int(a) >> b
        return (signed(a, width) >> b) & ((1 << width) - 1)

    def _icmp(self, pred: str, t: ty.Type, flags: tuple[str, ...] = ()) -> Callable[[int, int], Any]:
        width = t.bits if isinstance(t, ty.IntType) else 64
        if flags:  # samesign
            plain = self._icmp(pred, t)
            return lambda a, b: POISON if (a ^ b) >> (width - 1) else plain(a, b)
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

    def _cast(self, op: str, s: ty.Type, t: ty.Type, flags: tuple[str, ...] = ()) -> Callable[[Any], Any]:
        if "nneg" in flags or (op == "trunc" and flags):
            assert isinstance(s, ty.IntType)
            plain, own = self._cast(op, s, t), s.bits
            if "nneg" in flags:
                return lambda a: POISON if a >> (own - 1) else plain(a)
            assert isinstance(t, ty.IntType)
            rest, bits_kept, signs = own - t.bits, t.bits, "nsw" in flags

            def cut(a: int) -> Any:
                high = int(a) >> bits_kept
                whole = (1 << rest) - 1 if signs and int(a) >> (bits_kept - 1) & 1 else 0
                return plain(a) if high == whole and not ("nuw" in flags and high) else POISON
            return cut
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
            low, high = (0, mask) if op == "fptoui" else (-(1 << (width - 1)), mask >> 1)

            def to_int(x: Any) -> Any:
                r = float(domain.real(x))
                if r - r != 0 or not low <= int(r) <= high:
                    return POISON
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
            if rounder is None or op == "fpext":
                return lambda x: x
            return lambda x: x if type(x) is Undefined else rounder(x)
        raise Fault(f"cast `{op}`")


def _checked(plain: Callable[[int, int], int], width: int, flags: tuple[str, ...]) -> Callable[[int, int], Any]:
    """add, sub, mul with nsw or nuw."""
    mask, half, full = (1 << width) - 1, 1 << (width - 1), 1 << width
    no_signed, no_unsigned = "nsw" in flags, "nuw" in flags

    def run(a: int, b: int) -> Any:
        exact = plain(int(a), int(b))
        if no_unsigned and not 0 <= exact < full:
            return POISON
        if no_signed and not -half <= plain(a - full if a >= half else a, b - full if b >= half else b) < half:
            return POISON
        return exact & mask

    return run


def _lossy(op: str, a: int, b: int, width: int, flags: tuple[str, ...]) -> bool:
    """A shift loses bits that `exact`, `nuw` or `nsw` say it does not lose."""
    if b >= width:
        return True
    if op != "shl":
        return bool(int(a) & ((1 << b) - 1))
    out = (int(a) << b) & ((1 << width) - 1)
    return ("nuw" in flags and out >> b != a) or ("nsw" in flags and signed(out, width) >> b != signed(a, width))
