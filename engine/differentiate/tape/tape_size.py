"""How many bytes the arrays of a tape take, as a small program over the scalar arguments of a function.

The primal sweep carves its arrays out of one buffer. Where every array is allocated at most once, and its size follows
from integer arguments, the buffer's size is known before anything runs: the sum over the arrays, without those behind
a branch that the arguments rule out. A `Room` is that sum, cut out of the IR, so that it can be kept on disk and
evaluated in Python.

    node ::= ["const", n, bits] | ["arg", number, bits] | [opcode, a, b, flags, bits] | ["icmp", pred, a, b, bits of a]
           | ["select", c, a, b] | ["zext" | "sext" | "trunc", a, bits of a, bits]          a, b, c: numbers of nodes
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, ConstInt, ConstZero, Instruction, Value
from irgrad.engine.ir.opcodes import INT_BINARY, RESIZES, SHIFTS, TRAPS

__all__ = ["LARGEST", "Room", "RoomWriter"]

LARGEST = 1 << 40
"""No array is as large: a size beyond is that of a path which is not taken."""
_MANY = 800  # nodes of one room
_READ = INT_BINARY | RESIZES | {"icmp", "select"}
_CHOICES = {"llvm.umax": "umax", "llvm.umin": "umin", "llvm.smax": "smax", "llvm.smin": "smin"}
_PREDICATES = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Room:
    """fixed: bytes in any case; nodes: see above; terms: (node of a size, the branches on the way to it)."""

    fixed: int
    nodes: tuple[tuple[Any, ...], ...] = ()
    terms: tuple[tuple[int, tuple[tuple[int, bool], ...]], ...] = ()

    def bytes(self, scalars: Mapping[int, int]) -> int | None:
        """The size for values of the integer arguments by position; None when one that matters is missing."""
        values: list[int | None] = []
        unknown: set[int] = set()  # nodes that hang on a missing argument, apart from poison
        for number, node in enumerate(self.nodes):
            if (node[0] == "arg" and node[1] not in scalars) or any(p in unknown for p in _parts(node)):
                unknown.add(number)
                values.append(None)
            else:
                values.append(_value(node, values, scalars))
        total = self.fixed
        for size, conditions in self.terms:
            if any(c not in unknown and values[c] != int(outcome) for c, outcome in conditions):
                continue
            if size in unknown:
                return None
            found = values[size]
            if found is not None and 0 <= found < LARGEST:
                total += -(-found // 16) * 16
        return -(-total // 64) * 64 if total else 0

    @property
    def cheap(self) -> bool:
        """Whether the nodes can be computed where nothing is known of the arguments: none traps."""
        return not any(node[0] in TRAPS for node in self.nodes)

    def decides(self, argument: int, first: int, last: int) -> Sequence[int]:
        """Values of an argument from `first` to `last` that stand for all of them: the two ends, where it is compared
        with one number and does nothing else, so that all sizes are those on either side of it."""
        names = [n for n, node in enumerate(self.nodes) if node[0] == "arg" and node[1] == argument]
        users = [n for n, node in enumerate(self.nodes) if any(name in _parts(node) for name in names)]
        ordered = [self.nodes[n][0] == "icmp" and self.nodes[n][1] not in ("eq", "ne") for n in users]
        if not users:
            return (first,)
        alone = ordered == [True] and not set(_parts(self.nodes[users[0]])) <= set(names)
        return (first, last) if alone else range(first, last + 1)

    def emit(self, b: Builder, arguments: Mapping[int, Value], memo: dict[Hashable, Value]) -> Value:
        """The size as instructions, of a room that is `cheap`. memo: what was written before, by what it is made of."""
        values: list[Value] = []
        for number, node in enumerate(self.nodes):
            parts = [values[p] for p in _parts(node)]
            key = (number, *parts)
            if node[0] == "arg":
                values.append(arguments[node[1]])
                continue
            if key not in memo:
                memo[key] = _emitted(b, node, parts)
            values.append(memo[key])
        total: Value = ConstInt(ty.I64, self.fixed)
        for number, conditions in self.terms:
            size = values[number]
            up = b.binary("and", b.add(size, ConstInt(ty.I64, 15), ()), ConstInt(ty.I64, -16))
            taken = b.icmp("ult", size, ConstInt(ty.I64, LARGEST))
            for condition, outcome in conditions:
                held = values[condition]
                held = held if outcome else b.binary("xor", held, ConstInt(ty.I1, 1))
                taken = b.binary("and", taken, held)
            total = b.add(total, b.select(taken, up, ConstInt(ty.I64, 0)), ())
        return b.binary("and", b.add(total, ConstInt(ty.I64, 63), ()), ConstInt(ty.I64, -64))

    def to_text(self) -> str:
        """For the disk cache."""
        return json.dumps([self.fixed, self.nodes, self.terms])

    @staticmethod
    def from_text(text: str) -> Room:
        """What `to_text` made."""
        fixed, nodes, terms = json.loads(text)
        return Room(fixed, tuple(map(tuple, nodes)), tuple((n, tuple((c, o) for c, o in cs)) for n, cs in terms))


def _parts(node: tuple[Any, ...]) -> Sequence[int]:
    """Numbers of the nodes that a node reads."""
    match node[0]:
        case "const" | "arg":
            return ()
        case "icmp":
            return node[2:4]
        case "select":
            return node[1:4]
        case "zext" | "sext" | "trunc":
            return node[1:2]
    return node[1:3]


def _emitted(b: Builder, node: tuple[Any, ...], parts: Sequence[Value]) -> Value:
    op = node[0]
    if op == "const":
        return ConstInt(ty.int_(node[2]), node[1])
    if op == "icmp":
        return b.icmp(node[1], *parts)
    if op == "select":
        return b.select(*parts)
    if op in RESIZES:
        return b.cast(op, parts[0], ty.int_(node[3]))
    if op in _CHOICES.values():
        return b.select(b.icmp(f"{op[0]}{'gt' if op.endswith('max') else 'lt'}", *parts), *parts)
    amount = parts[1]
    if op in SHIFTS and not isinstance(amount, ConstInt):  # no poison where nothing is known of it
        amount = b.binary("and", amount, ConstInt(ty.int_(node[4]), node[4] - 1))
    return b.binary(op, parts[0], amount, ())


def _value(node: tuple[Any, ...], values: Sequence[int | None], scalars: Mapping[int, int]) -> int | None:
    """The value in [0, 2**bits); None for poison: a path on which it would matter is not taken."""
    op = node[0]
    if op == "const":
        return int(node[1]) & _mask(node[2])
    if op == "arg":
        return scalars[node[1]] & _mask(node[2])
    if op == "select":
        chosen = values[node[1]]
        return None if chosen is None else values[node[2] if chosen else node[3]]
    read = [values[p] for p in _parts(node)]
    if any(v is None for v in read):
        return None
    a = int(read[0] or 0)
    if op in ("zext", "trunc"):
        return a & _mask(node[3])
    if op == "sext":
        return signed(a, node[2]) & _mask(node[3])
    b = int(read[1] or 0)
    if op == "icmp":
        pred, bits = node[1], node[4]
        left, right = (signed(a, bits), signed(b, bits)) if pred[0] == "s" else (a, b)
        return int(_PREDICATES[pred if pred in ("eq", "ne") else pred[1:]](left, right))
    return _arithmetic(op, a, b, node[3], node[4])


def _arithmetic(op: str, a: int, b: int, flags: Sequence[str], bits: int) -> int | None:
    x, y = signed(a, bits), signed(b, bits)
    if (op in TRAPS and b == 0) or (op in SHIFTS and b >= bits):
        return None
    match op:
        case "add" | "sub" | "mul":
            def exact(left: int, right: int) -> int:
                return left + right if op == "add" else left - right if op == "sub" else left * right

            wraps = "nuw" in flags and exact(a, b) != exact(a, b) & _mask(bits)
            wraps |= "nsw" in flags and exact(x, y) != signed(exact(x, y), bits)
            result = None if wraps else exact(a, b)
        case "udiv":
            result = a // b
        case "urem":
            result = a % b
        case "sdiv" | "srem":
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            result = quotient if op == "sdiv" else x - quotient * y
        case "shl":
            result = a << b
        case "lshr":
            result = a >> b
        case "ashr":
            result = x >> b
        case "and":
            result = a & b
        case "or":
            result = a | b
        case "xor":
            result = a ^ b
        case "umax" | "umin":
            result = (max if op == "umax" else min)(a, b)
        case _:
            result = (max if op == "smax" else min)(x, y)
    return None if result is None else result & _mask(bits)


def _mask(bits: int) -> int:
    return (1 << bits) - 1


class RoomWriter:
    """Cuts sizes out of a function. `arguments`: positions of the pointers to scalars, which it does not write;
    `numbers`: of its scalars."""

    def __init__(self, arguments: Mapping[Argument, int], numbers: Mapping[Argument, int] | None = None) -> None:
        self.arguments = arguments
        self.numbers = numbers or {}
        self.nodes: list[tuple[Any, ...]] = []
        self.terms: list[tuple[int, tuple[tuple[int, bool], ...]]] = []
        self._known: dict[Value, int | None] = {}
        self._numbers: dict[str, int] = {}

    def add(self, size: Value, conditions: Sequence[tuple[Value, bool]]) -> bool:
        """One array, allocated at most once, where these conditions have these outcomes; False where its size does not
        follow from the arguments."""
        number = self.node(size)
        if number is None:
            return False
        found = [(self.node(value), outcome) for value, outcome in conditions]
        self.terms.append((number, tuple((n, outcome) for n, outcome in found if n is not None)))
        return True

    def room(self, fixed: int) -> Room:
        """All arrays so far and a fixed part."""
        return Room(-(-fixed // 16) * 16, tuple(self.nodes), tuple(self.terms))

    def node(self, value: Value) -> int | None:
        """The node of an integer; None when it does not follow from the arguments."""
        while isinstance(value, Instruction) and value.opcode == "freeze":
            value = value.operands[0]
        if value not in self._known:
            self._known[value] = None
            made = self._made(value) if len(self.nodes) < _MANY else None
            if made is not None:  # of two that are the same one is enough
                number = self._numbers.setdefault(str(made), len(self.nodes))
                self._known[value] = number
                if number == len(self.nodes):
                    self.nodes.append(made)
        return self._known[value]

    def _made(self, value: Value) -> tuple[Any, ...] | None:
        if not isinstance(value.type, ty.IntType):
            return None
        bits = value.type.bits
        if isinstance(value, ConstInt | ConstZero):
            return ("const", value.value if isinstance(value, ConstInt) else 0, bits)
        if isinstance(value, Argument) and value in self.numbers:
            return ("arg", self.numbers[value], bits)
        if not isinstance(value, Instruction):
            return None
        if value.opcode == "load":
            source = value.operands[0]
            number = self.arguments.get(source) if isinstance(source, Argument) else None
            return None if number is None or value.volatile else ("arg", number, bits)
        op, operands = value.opcode, value.operands
        if op == "call":
            op, operands = _CHOICES.get((value.callee_name or "").rpartition(".")[0], ""), value.args
        if op not in _READ and op not in _CHOICES.values():
            return None
        parts = [self.node(o) for o in operands]
        if any(p is None for p in parts):
            return None
        if op == "icmp":
            kind = operands[0].type
            return (op, value.pred, *parts, kind.bits) if isinstance(kind, ty.IntType) else None
        if op == "select":
            return (op, *parts)
        if op in RESIZES:
            assert isinstance(operands[0].type, ty.IntType)
            return (op, *parts, operands[0].type.bits, bits)
        return (op, *parts, list(value.flags), bits)
