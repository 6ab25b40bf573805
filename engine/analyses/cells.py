"""Splitting memory that holds several pointers into cells, so that a struct of pointers does not mix its fields.

From a first, field-insensitive solution and the offsets of its accesses: an object is split when every place where
pointers are loaded or stored is known modulo one period (for a single record: exactly), and the places do not overlap.
Initial values, wide values and copies at other places go to all cells: the second solution is as sound as the first.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from irgrad.engine.analyses.objects import bits_of, may_hold_pointer
from irgrad.engine.analyses.offsets import Offsets
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.pointers import Pointers
    from irgrad.engine.analyses.ranges import Ranges

_WHOLE = 1 << 40  # the period of a record that does not repeat
_MAX_CELLS = 64


class Cells:
    """`of`: allocation site -> (period, places modulo it); `places`: the offsets of each address."""

    __slots__ = ("_pointers", "_ranges", "of")

    def __init__(self, pointers: Pointers, ranges: Ranges) -> None:
        self._pointers = pointers
        self._ranges = ranges
        self.of: dict[Value, tuple[int, tuple[int, ...]]] = {}
        seen: dict[int, set[Offsets]] = {}
        for fn in pointers.functions:
            for instr in fn.instructions():
                address = _single_pointer_access(instr)
                if address is not None:
                    places = ranges.offsets(address)
                    for bit in bits_of(pointers.of(address)):
                        seen.setdefault(bit, set()).add(places)
        for bit, places_seen in seen.items():
            obj = pointers.objects[bit]
            if obj.site is None or obj.kind not in ("alloca", "heap", "global"):
                continue
            if pointers.contents(obj).bit_count() < 2:
                continue
            cells = _cells(places_seen)
            if cells is not None:
                self.of[obj.site] = cells

    def places(self, address: Value) -> Offsets:
        """The offsets of an address within its objects."""
        return self._ranges.offsets(address)

    def steps(self, source_address: Value, target_address: Value) -> tuple[int, ...] | None:
        """The distances from the start of a copy at which the objects on either side have cells; None: not known."""
        source, target = self.places(source_address), self.places(target_address)
        mask = self._pointers.of(source_address) | self._pointers.of(target_address)
        sites = [self._pointers.objects[bit].site for bit in bits_of(mask)]
        tables = [self.of[s] for s in sites if s is not None and s in self.of]
        periods = {period for period, _ in tables}
        if len(periods) != 1:
            return None
        (period,) = periods
        if any(residues(p, period, None) is None or len(p.expand()) != 1 for p in (source, target)):
            return None
        return tuple(sorted({(at - p.start) % period for _, cells in tables for at in cells for p in (source, target)}))


def residues(places: Offsets, period: int, known: tuple[int, ...] | None) -> set[int] | None:
    """The cells at `places`; None when they are not known modulo the period."""
    stride = places.stride
    if (stride and period == _WHOLE) or (stride % period if stride else 0) or places.below:
        return None
    found = {x % period for x in places.expand()}
    return found if known is None else found & set(known)


def _single_pointer_access(instr: Instruction) -> Value | None:
    """The address of a load or store of one pointer-sized value."""
    if instr.opcode == "load":
        type_, address = instr.type, instr.operands[0]
    elif instr.opcode == "store":
        type_, address = instr.operands[0].type, instr.operands[1]
    else:
        return None
    return address if may_hold_pointer(type_) and ty.store_size(type_) == 8 else None


def _cells(seen: set[Offsets]) -> tuple[int, tuple[int, ...]] | None:
    period = 0
    for places in seen:
        period = gcd(period, places.stride)
    if any(p.below for p in seen) or (period and period < 16):
        return None
    period = period or _WHOLE
    found = sorted({x % period for p in seen for x in p.expand()})
    if not 2 <= len(found) <= _MAX_CELLS:
        return None
    gaps = [b - a for a, b in zip(found, [*found[1:], found[0] + period], strict=True)]
    return (period, tuple(found)) if min(gaps) >= 8 else None
