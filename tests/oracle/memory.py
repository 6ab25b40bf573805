"""Memory of the interpreter: objects of byte-addressed cells that hold typed values.

An address is an integer, `object << 32 | offset`; object 0 holds all globals and functions, so that differences of their
addresses fit 32 bits. A float read back where it was stored is the same number. Read as an integer it becomes `Bits`: an
int that remembers which number its bytes came from, so that byte-wise copies, packed structs and sign tricks keep tangents.
"""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from typing import Any

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import types as ty

from .undefined import POISON, UNDEF, Fault, Undefined, meet

# A byte is an int 0..255, UNDEF (never written), POISON, or (origin, k): byte k of the number origin = (number, type).
Byte = Any


class Bits(int):
    """An integer some of whose bytes are bytes of a number: `items` has one Byte per byte."""

    items: list[Byte]


def _same(a: Any, b: Any) -> bool:
    """Two origins hold one and the same number object, so equal values and tangents."""
    return a[0] is b[0] and a[1] is b[1]


def bits(items: list[Byte], domain: Any) -> Any:
    """The integer made of these bytes (little-endian); plain when no byte belongs to a number or is undefined."""
    if any(type(b) is Undefined for b in items):
        if any(b is POISON for b in items):
            return POISON
        return UNDEF if all(b is UNDEF for b in items) else Undefined(items)
    raw = bytes(plain_byte(b, domain) for b in items)
    value = int.from_bytes(raw, "little")
    if any(type(b) is tuple for b in items):
        out = Bits(value)
        out.items = items
        return out
    return value


def plain_byte(b: Byte, domain: Any) -> int:
    """The byte as an integer."""
    if type(b) is tuple:
        origin, k = b
        return ir.float_to_bits(origin[1], float(domain.real(origin[0]))) >> (8 * k) & 0xFF
    return int(b)


def scalar_bytes(t: ty.Type, value: Any) -> list[Byte]:
    """The bytes of a scalar, or of a vector of bits of which some are undefined: then all of them are."""
    n = ty.store_size(t)
    if type(value) is tuple:
        return [meet(*value)] * n
    if type(value) is Undefined:
        return (value.items + [0] * n)[:n] if value.items else [value] * n
    if isinstance(t, ty.FloatType):
        origin = (value, t)
        return [(origin, k) for k in range(n)]
    if type(value) is Bits:
        return (value.items + [0] * n)[:n]
    return list(int(value).to_bytes(n, "little"))


def scalar_from(t: ty.Type, items: list[Byte], domain: Any) -> Any:
    """A scalar of type `t` read from these bytes."""
    if isinstance(t, ty.FloatType):
        first = items[0]
        if type(first) is tuple and first[1] == 0 and first[0][1] is t:
            origin = first[0]
            if all(type(b) is tuple and _same(b[0], origin) and b[1] == k for k, b in enumerate(items)):
                return origin[0]
        if any(type(b) is Undefined for b in items):
            return POISON if any(b is POISON for b in items) else UNDEF
        raw = int.from_bytes(bytes(plain_byte(b, domain) for b in items), "little")
        return domain.lift(ir.bits_to_float(t, raw))
    value = bits(items, domain)
    width = t.bits if isinstance(t, ty.IntType) else 64
    if width == 8 * len(items):
        return value
    return narrowed(value, width, domain) if type(value) is Undefined else value & ((1 << width) - 1)


def narrowed(value: Undefined, width: int, domain: Any) -> Any:
    """The low bits of an integer some of whose bytes are undefined."""
    if value.items is None:
        return value
    items = value.items[: (width + 7) // 8]
    kept = bits(items, domain)
    if width % 8 == 0:
        return kept
    return UNDEF if type(kept) is Undefined else int(kept) & ((1 << width) - 1)


def bytewise(op: str, a: Any, b: Any, width: int, domain: Any) -> Any:
    """and/or/xor of integers of which at least one is undefined: bytes that the other one decides are defined."""
    if a is POISON or b is POISON:
        return POISON
    if width % 8:
        known = b if type(a) is Undefined else a
        absorbing = {"and": 0, "or": (1 << width) - 1}.get(op)
        return absorbing if type(known) is not Undefined and known == absorbing else UNDEF
    out: list[Byte] = []
    for x, y in zip(_items(a, width // 8), _items(b, width // 8), strict=True):
        if type(x) is Undefined or type(y) is Undefined:
            other = y if type(x) is Undefined else x
            absorbing = {"and": 0, "or": 0xFF}.get(op)
            out.append(absorbing if type(other) is int and other == absorbing else UNDEF)
        else:
            out += _items(combine(op, bits([x], domain), bits([y], domain), 8, domain), 1)
    return bits(out, domain)


def combine(op: str, a: int, b: int, width: int, domain: Any) -> int:
    """and/or/xor of integers of which at least one is Bits: keeps whole numbers, and their sign tricks."""
    mask = (1 << width) - 1
    plain = (int(a) & int(b) if op == "and" else int(a) | int(b) if op == "or" else int(a) ^ int(b)) & mask
    if width % 8:
        return plain
    n = width // 8
    xs, zs = _items(a, n), _items(b, n)
    out: list[Byte] = []
    k = 0
    while k < n:
        x, z = xs[k], zs[k]
        if type(x) is not tuple:
            x, z, swapped = z, x, True
        else:
            swapped = False
        if type(x) is not tuple or type(z) is tuple:
            out.append(plain >> (8 * k) & 0xFF)
            k += 1
            continue
        mine, other = (zs, xs) if swapped else (xs, zs)
        size = ty.store_size(x[0][1])
        whole = x[1] == 0 and k + size <= n and all(
            type(mine[k + j]) is tuple and _same(mine[k + j][0], x[0]) and mine[k + j][1] == j for j in range(size)
        )
        if whole and all(type(other[k + j]) is not tuple for j in range(size)):
            word = int.from_bytes(bytes(o or 0 for o in other[k : k + size]), "little")
            number = _sign_trick(op, x[0], word, 8 * size, domain)
            if number is not None:
                origin = (number, x[0][1])
                out += [(origin, j) for j in range(size)]
                k += size
                continue
        keep = (op == "and" and z == 0xFF) or (op in ("or", "xor") and not z)
        out.append(x if keep else plain >> (8 * k) & 0xFF)
        k += 1
    return bits(out, domain)


def _items(a: Any, n: int) -> list[Byte]:
    if type(a) is Undefined and a.items is None:
        return [a] * n
    return (a.items + [0] * n)[:n] if type(a) in (Bits, Undefined) else list(a.to_bytes(n, "little"))


def _sign_trick(op: str, origin: Any, word: int, width: int, domain: Any) -> Any:
    top, full, number = 1 << (width - 1), (1 << width) - 1, origin[0]
    if word == (full if op == "and" else 0):
        return number
    if op == "and" and word == full ^ top:
        return -number if domain.negative(number) else number
    if op == "or" and word == top:
        return number if domain.negative(number) else -number
    if op == "xor" and word == top:
        return -number
    return None


class Block:
    """One allocation. `default` is what unwritten bytes read as."""

    __slots__ = ("alive", "cells", "constant", "default", "heap", "size")

    def __init__(self, size: int, default: Byte, heap: bool) -> None:
        self.size = size
        self.default = default
        self.heap = heap
        self.alive = True
        self.constant = False
        self.cells: dict[int, tuple[ty.Type, Any]] = {}


_WIDEST = 16  # bytes of a cell
_SIZES: dict[ty.Type, int] = {}


def _size(t: ty.Type) -> int:
    n = _SIZES.get(t)
    if n is None:
        n = _SIZES[t] = ty.store_size(t)
    return n


class Memory:
    """All objects of one run."""

    def __init__(self, domain: Any) -> None:
        self.domain = domain
        self.blocks: list[Block] = [Block(0, 0, False)]

    def allocate(self, size: int, default: Byte = UNDEF, heap: bool = False) -> int:
        """A new object; its address. Raises Fault where offsets would not fit."""
        if size >> 32:
            raise Fault(f"an object of {size} bytes")
        self.blocks.append(Block(size, default, heap))
        return (len(self.blocks) - 1) << 32

    def find(self, address: int) -> tuple[Block, int]:
        """The object and offset of an address."""
        index = address >> 32
        if not 0 <= index < len(self.blocks) or address < 4096:
            raise Fault(f"address {address:#x} is in no object")
        block = self.blocks[index]
        if not block.alive:
            raise Fault(f"object {index} is used after it was freed")
        return block, address & 0xFFFFFFFF

    def free(self, address: int) -> None:
        """free()."""
        if address == 0:
            return
        block, offset = self.find(address)
        if offset or not block.heap:
            raise Fault("free of what malloc did not return")
        block.alive = False
        block.cells.clear()

    def load(self, address: int, t: ty.Type) -> Any:
        """A scalar of type `t`."""
        try:
            block = self.blocks[address >> 32]
            cell = block.cells.get(address & 0xFFFFFFFF)
            if cell is not None and cell[0] is t:
                return cell[1]
        except IndexError:
            pass
        return self._load_slowly(address, t)

    def whole(self, address: int, t: ty.Type) -> Any:
        """The value of type `t` that was stored there as such; None where it was not."""
        block, offset = self.find(address)
        cell = block.cells.get(offset)
        return cell[1] if cell is not None and cell[0] is t else None

    def _load_slowly(self, address: int, t: ty.Type) -> Any:
        return scalar_from(t, self.read_bytes(address, _size(t)), self.domain)

    def store(self, address: int, t: ty.Type, value: Any) -> None:
        """Store a scalar."""
        offset = address & 0xFFFFFFFF
        try:
            block = self.blocks[address >> 32]
            cell = block.cells.get(offset)
            if cell is not None and (cell[0] is t or _size(cell[0]) == _size(t)) and not block.constant:
                block.cells[offset] = (t, value)
                return
        except IndexError:
            pass
        n = _size(t)
        if n > _WIDEST:
            items = scalar_bytes(t, value)
            for k in range(0, n, 8):
                self.store(address + k, ty.int_(8 * len(items[k : k + 8])), bits(items[k : k + 8], self.domain))
            return
        block, offset = self._range(address, n, write=True)
        self._clear(block, offset, n)
        block.cells[offset] = (t, value)

    def _range(self, address: int, n: int, write: bool = False) -> tuple[Block, int]:
        block, offset = self.find(address)
        if offset + n > block.size:
            raise Fault(f"access of {n} bytes at {address:#x} outside an object of {block.size} bytes")
        if write and block.constant:
            raise Fault("store to a constant")
        return block, offset

    def _covering(self, block: Block, offset: int) -> int | None:
        """Start of the cell that covers a byte."""
        cells = block.cells
        for start in range(offset, max(offset - _WIDEST, -1), -1):
            cell = cells.get(start)
            if cell is not None:
                return start if start + _size(cell[0]) > offset else None
        return None

    def _clear(self, block: Block, offset: int, n: int) -> None:
        """Remove the cells of a range; cells that stick out keep their outer bytes."""
        for edge in (offset, offset + n - 1):
            start = self._covering(block, edge)
            if start is not None:
                t, value = block.cells[start]
                if start < offset or start + _size(t) > offset + n:
                    del block.cells[start]
                    for k, b in enumerate(scalar_bytes(t, value)):
                        block.cells[start + k] = (ty.I8, b if type(b) is int else bits([b], self.domain))
        cells = block.cells
        if n > 4 * len(cells):
            for o in [o for o in cells if offset <= o < offset + n]:
                del cells[o]
        else:
            for o in range(offset, offset + n):
                cells.pop(o, None)

    def read_bytes(self, address: int, n: int) -> list[Byte]:
        """The bytes of a range."""
        if n == 0:
            return []
        block, offset = self._range(address, n)
        out: list[Byte] = [block.default] * n
        start = self._covering(block, offset)
        o = offset if start is None else start
        end = offset + n
        cells = block.cells
        while o < end:
            cell = cells.get(o)
            if cell is None:
                o += 1
                continue
            for k, b in enumerate(scalar_bytes(*cell)):
                if offset <= o + k < end:
                    out[o + k - offset] = b
            o += _size(cell[0])
        return out

    def copy(self, to: int, source: int, n: int) -> None:
        """memcpy and memmove."""
        if n == 0:
            return
        block, offset = self._range(source, n)
        target, place = self._range(to, n, write=True)
        whole: list[tuple[int, tuple[ty.Type, Any]]] = []
        o = offset
        start = self._covering(block, offset)
        first = None
        if start is not None and start < offset:
            first = start + _size(block.cells[start][0])
            for k, b in enumerate(self.read_bytes(source, min(first, offset + n) - offset)):
                whole.append((k, (ty.I8, b if type(b) is int else bits([b], self.domain))))
            o = first
        while o < offset + n:
            cell = block.cells.get(o)
            if cell is None:
                if block.default is not target.default:
                    whole.append((o - offset, (ty.I8, block.default)))
                o += 1
            elif o + _size(cell[0]) <= offset + n:
                whole.append((o - offset, cell))
                o += _size(cell[0])
            else:
                for k, b in enumerate(scalar_bytes(*cell)[: offset + n - o]):
                    whole.append((o + k - offset, (ty.I8, b if type(b) is int else bits([b], self.domain))))
                break
        self._clear(target, place, n)
        for k, cell in whole:
            target.cells[place + k] = cell

    def forget(self, address: int, n: int, default: Undefined = UNDEF) -> None:
        """The bytes of a range become undefined."""
        block, offset = self._range(address, n)
        if n == block.size:
            block.cells.clear()
            block.default = default
            return
        self._clear(block, offset, n)
        for o in range(offset, offset + n):
            block.cells[o] = (ty.I8, default)

    def fill(self, to: int, byte: int, n: int) -> None:
        """memset."""
        if n == 0:
            return
        block, offset = self._range(to, n, write=True)
        if n == block.size:
            block.cells.clear()
            block.default = int(byte) & 0xFF
            return
        self._clear(block, offset, n)
        byte = int(byte) & 0xFF
        o = offset
        wide = int.from_bytes(bytes([byte] * 8), "little")
        while o < offset + n:
            if o % 8 == 0 and o + 8 <= offset + n:
                block.cells[o] = (ty.I64, wide)
                o += 8
            else:
                block.cells[o] = (ty.I8, byte)
                o += 1
