"""The offsets of every pointer within its object, and the values of every integer, as strided sets.

Forward propagation over all reachable functions, in sweeps until nothing changes: through arithmetic, phis (induction
variables by their step, bounded where the limit of the loop is), calls, returns, and pointers kept in memory
(`pointer_offsets.py`: object by object).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from irgrad.engine.analyses.memory import strided_sets as off
from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.analyses.memory.counters import Counters
from irgrad.engine.analyses.memory.objects import PointsTo
from irgrad.engine.analyses.memory.offset_arithmetic import at_most, binary, destination, natural, rounded_to
from irgrad.engine.analyses.memory.pointer_offsets import PASSES, PointerSpots
from irgrad.engine.analyses.memory.sentinels import end_of_sentinel
from irgrad.engine.analyses.memory.spots import ANY, Spots, moved, union
from irgrad.engine.analyses.memory.strided_sets import NATURAL, TOP, ZERO, Offsets
from irgrad.engine.analyses.memory.text_copies import copies_text
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    Constant,
    ConstExpr,
    ConstInt,
    ConstZero,
    Function,
    GlobalAlias,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import BITWISE, SHIFTS, having
from irgrad.engine.ir.types import may_hold_pointer

_WIDEN_AFTER = 3
_MAX_SWEEPS = 40
_COARSE_AFTER = 20
_ARITHMETIC = having("displaces")
_PARTS = (BITWISE | SHIFTS) - {"xor"}
_COMMUTES = having("commutes")


class Ranges:
    """`places(pointer)`: bytes from the start of each object it may point to; `offsets(value)`: the values of an
    integer, or the offsets of a pointer in any object."""

    def __init__(self, pointers: PointsTo) -> None:
        self.pointers = pointers
        self._state: dict[Value, Offsets] = {}
        self._changes: dict[object, int] = {}
        self._returns: dict[Function, Offsets] = {}
        self._changed = self._gave_up = False
        self._places: dict[Value, Spots] = {}
        self._texts: dict[Instruction, bool] = {}
        self._ends: dict[tuple[int, int], int | None] = {}
        self._counters = Counters(self._get, self._displacement)
        self.spots = PointerSpots(pointers, self._joined, self._displacement)
        for arg in pointers.root.args:
            self._state[arg] = ZERO if arg.type.is_ptr else TOP
        for sweep in range(_MAX_SWEEPS):
            self._changed = False
            self.spots.begin(coarse=sweep >= _COARSE_AFTER)
            for instr in self.spots.due:
                self._visit(instr)
            if not (self._changed or self.spots.changed or self.spots.resume()):
                break
        else:
            self._gave_up = True
            self._state = dict.fromkeys(self._state, TOP)
            self.spots.give_up()

    @property
    def cheaper(self) -> tuple[str, ...]:
        """What the analysis did not tell apart, because there was too much of it; nothing where it told all apart."""
        held = self.spots.held
        rows = (
            (held.together, "objects: pointers that may lead to very many are taken to lead to all"),
            (held.coarse, "places: new places in an object are not told apart after many rounds"),
            (self._gave_up, "offsets: a pointer may point anywhere in its objects"),
        )
        return tuple(text for holds, text in rows if holds)

    def offsets(self, value: Value) -> Offsets:
        """The set for an integer, or for a pointer in any object; everything when nothing is known."""
        return self._get(value) or TOP

    def outside(self, bit: int, places: Offsets, size: int) -> bool:
        """A place that an object of known size does not have: the pointer leads to another object there."""
        known = self.pointers.objects[bit].size
        return known is not None and places.exact and not 0 <= places.start <= known - size

    def places(self, pointer: Value) -> Spots:
        """The objects that a pointer may point to, and its offsets in each."""
        found = self._places.get(pointer)
        if found is None:
            found = self._places[pointer] = self.spots.known(pointer)
        return found

    def _get(self, value: Value) -> Offsets | None:
        """The set so far; None for a value not reached yet."""
        match value:
            case Instruction() | Argument():
                if value.type.is_int or not self.spots.tracked(value):
                    return self._state.get(value)
                return self.spots.joined(value)
            case ConstInt():
                return Offsets(value.value)
            case ConstZero():
                return ZERO
            case ConstExpr():
                return self._expression(value)
            case GlobalAlias():
                return self._get(value.target)
            case Constant() if value.type.is_ptr:
                return ZERO
            case _:
                return TOP

    def _expression(self, value: ConstExpr) -> Offsets | None:
        if value.opcode == "getelementptr" and value.elem is not None:
            return self._gep(value.operands, value.elem, value.flags)
        if value.opcode in PASSES:
            return self._get(value.operands[0])
        return TOP

    def _set(self, value: Value, new: Offsets | None) -> None:
        if new is None:
            return
        old = self._state.get(value)
        if old == new:
            return
        if old is not None:
            new = self._joined(value, old, new)
            if new == old:
                return
        self._state[value] = new
        self._changed = True
        self.spots.due.value(value)

    def _joined(self, key: object, old: Offsets, new: Offsets) -> Offsets:
        if old == new or off.contains(old, new):
            return old
        count = self._changes[key] = self._changes.get(key, 0) + 1
        if count > 8 * _WIDEN_AFTER or self.spots.held.coarse:
            return TOP
        if isinstance(key, tuple) and (isinstance(key[0], Argument) or count <= 2 * _WIDEN_AFTER):
            few = off.join(old, new, apart=True)  # members of a structure that one function is applied to
            if few.members:
                return few
        return off.join(old, new, count > _WIDEN_AFTER)

    def _visit(self, instr: Instruction) -> None:
        op = instr.opcode
        if op == "store":
            self.spots.note_number(instr, instr.operands[1])
            self.spots.keep(instr.operands[1], self.spots.get(instr.operands[0]), instr)
        elif op == "ret":
            if instr.operands:
                self._return(instr)
        elif instr.is_call:
            self._call(instr)
        else:
            tracked = self.spots.tracked(instr)
            if op == "load" and instr.type.is_int:
                self.spots.note_number(instr, instr.operands[0])
            if instr.type.is_int or (instr.type.is_ptr and not tracked):
                self._set(instr, self._transfer(instr))
            if tracked:
                self.spots.set(instr, self._point(instr))
                if op in ("atomicrmw", "cmpxchg"):
                    self.spots.keep(instr.operands[0], self.spots.get(instr.operands[-1]), instr)

    def _return(self, instr: Instruction) -> None:
        value = instr.operands[0]
        assert instr.block is not None and instr.block.function is not None
        fn = instr.block.function
        if may_hold_pointer(value.type):
            self.spots.leave(fn, value)
        places = self._get(value) if value.type.is_ptr or value.type.is_int else None
        if places is None:
            return
        old = self._returns.get(fn)
        new = places if old is None else old if old == places else self._joined(fn, old, places)
        if new != old:
            self._returns[fn] = new
            self._changed = True
            self.spots.due.returned(fn)

    def _call(self, call: Instruction) -> None:
        effect = self.pointers.effect(call)
        if effect is not None and effect.copy is not None:
            target, source, length = (call.args[i] for i in effect.copy)
            if call not in self._texts:
                self._texts[call] = copies_text(self.pointers.module, call, effect.copy[2])
            size = length.value if isinstance(length, ConstInt) else None
            self.spots.copy(target, source, size, text=self._texts[call])
        elif effect is not None and effect.fill is not None:
            self.spots.clear(call.args[effect.fill[0]])
        elif effect is not None and effect.keeps is not None:
            place, kept = (call.args[i] for i in effect.keeps)
            self.spots.keep(place, moved(self.spots.get(kept), TOP), call)
        tracked = self.spots.tracked(call)
        wanted = call.type.is_int or (call.type.is_ptr and not tracked)
        if effect is not None and (wanted or tracked):
            self._external(call, effect, wanted, tracked)
        if effect is not None and effect.zeroed and effect.copy is None and effect.fill is None:
            self.spots.clear(call)
        for fn in self.pointers.callees(call) or ():
            if not fn.blocks:
                continue
            for actual, formal in zip(call.args, fn.args, strict=False):
                own = self.spots.tracked(formal)
                if formal.type.is_int or (formal.type.is_ptr and not own):
                    self._set(formal, self._get(actual))
                if own:
                    self.spots.set(formal, self.spots.received(actual, formal))
            if wanted:
                self._set(call, self._returns.get(fn))
            if tracked:
                self.spots.set(call, self.spots.returned(fn))

    def _external(self, call: Instruction, effect: Effect, wanted: bool, tracked: bool) -> None:
        """The result of a call that may leave the module."""
        made = effect.allocates or effect.moves is not None
        same = effect.returns is not None and (
            (call.callee_name or "").startswith("llvm.") or effect.copy is not None or effect.fill is not None
        )
        if tracked:
            if made:
                self.spots.fresh(call)
            elif call.callee_name == "__dynamic_cast":
                self.spots.set(call, self.spots.classes(call.args[0]))
            elif same and effect.returns is not None:
                self.spots.set(call, self.spots.get(call.args[effect.returns]))
            else:
                self.spots.set(call, {ANY: TOP})
        if wanted:
            if made:
                self._set(call, ZERO)
            elif same and effect.returns is not None:
                self._set(call, self._get(call.args[effect.returns]))
            else:
                self._set(call, self._intrinsic(call))

    def _intrinsic(self, call: Instruction) -> Offsets | None:
        name = call.callee_name or ""
        if name.startswith(("llvm.umax.", "llvm.smax.", "llvm.umin.", "llvm.smin.")):
            a, b = self._get(call.args[0]), self._get(call.args[1])
            if a is None or b is None:
                return None
            a, b = (b, a) if a.exact else (a, b)
            if b.exact and b.start >= 0 and (name.startswith("llvm.umin.") or ("min" in name and natural(a))):
                return at_most(a, b.start)
            return off.join(a, b)
        return NATURAL if name.startswith(("llvm.ctpop", "llvm.ctlz", "llvm.cttz", "llvm.abs")) else TOP

    # -- transfer functions -------------------------------------------------------------------------------------------

    def _transfer(self, instr: Instruction) -> Offsets | None:
        op = instr.opcode
        if op == "phi":
            return self._phi(instr)
        if op == "alloca":
            return ZERO
        if op == "getelementptr" and instr.elem is not None:
            return self._gep(instr.operands, instr.elem, instr.flags)
        if op == "load":
            return self.spots.joined(instr) if instr.type.is_ptr else TOP
        if op in PASSES:
            return self._cast(instr)
        if op == "select":
            a, b = self._get(instr.operands[1]), self._get(instr.operands[2])
            return b if a is None else a if b is None else off.join(a, b)
        if op in ("icmp", "fcmp"):
            return Offsets(0, ((1, 1),))
        if len(instr.operands) != 2 or not all(o.type.is_int or o.type.is_ptr for o in instr.operands):
            return TOP
        a, b = self._get(instr.operands[0]), self._get(instr.operands[1])
        return None if a is None or b is None else binary(instr, a, b)

    def _point(self, instr: Instruction) -> Spots | None:
        """Where the result of an instruction points."""
        op = instr.opcode
        if op == "phi":
            return self._phi_spots(instr)
        if op == "alloca":
            return {self.pointers.object_of[instr].index: ZERO}
        if op == "getelementptr" and instr.elem is not None:
            base = instr.operands[0]
            if isinstance(base, ConstZero):  # an address computed as a number
                return {ANY: TOP}
            if (there := destination(instr)) is not None:
                return self.spots.get(there)
            if step := rounded_to(instr):
                return self.spots.rounded(base, step)
            distance = self._displacement(instr.operands, instr.elem, instr.flags)
            return moved(self._elements(self.spots.get(base), distance), distance)
        if isinstance(instr.type, ty.IntType) and instr.type.bits > 64 and op in _PARTS:
            out: Spots | None = None  # addresses side by side, each of them whole
            for operand in instr.operands[: 2 if op == "or" else 1]:
                out = union(out, self.spots.get(operand))
            return out
        if len(instr.operands) == 2 and instr.type.is_int and op in _ARITHMETIC:
            return self._calculated(instr)
        return self.spots.transfer(instr)

    def _elements(self, spots: Spots | None, distance: Offsets | None) -> Spots | None:
        """Those of some spots that a pointer may be moved from by a distance: where there are others, it does not leave
        the end of a list or a tree of the standard library (`sentinels.py`)."""
        if spots is None or distance is None or len(spots) < 2 or not distance.exact or distance.start <= 0:
            return spots
        kept: Spots = {}
        for bit, places in spots.items():
            left = self._no_sentinels(bit, places, distance.start)
            if left is not None:
                kept[bit] = left
        return kept

    def _no_sentinels(self, bit: int, places: Offsets, distance: int) -> Offsets | None:
        if bit < 0 or places.stride:
            return places
        every = places.expand()
        left = [at for at in every if (end := self._end(bit, at)) is None or at + distance < end]
        if len(left) == len(every):
            return places
        return off.join_numbers(left)

    def _end(self, bit: int, place: int) -> int | None:
        if (bit, place) not in self._ends:
            self._ends[bit, place] = end_of_sentinel(self.pointers.objects[bit], place)
        return self._ends[bit, place]

    def _calculated(self, instr: Instruction) -> Spots | None:
        """An address computed with integers: each operand may be the address, the other one the distance."""
        out: Spots | None = None
        for here, other in ((0, 1), (1, 0)):
            spots = self.spots.get(instr.operands[here])
            distance = self._get(instr.operands[other])
            if spots is None or distance is None:
                continue
            if here == 1 and instr.opcode not in _COMMUTES:
                continue
            out = union(out, {bit: binary(instr, places, distance) for bit, places in spots.items()})
        return out

    def _phi_spots(self, phi: Instruction) -> Spots | None:
        start: Spots | None = None
        steps: list[int] = []
        for incoming in phi.operands:
            step = self._counters.step(incoming, phi)
            if step is not None:
                steps.append(step)
            else:
                start = union(start, self.spots.get(incoming))
        if not start or not any(steps):
            return start
        for advance in self._advances(phi, steps):
            start = moved(start, advance)
        return start

    def _cast(self, instr: Instruction) -> Offsets | None:
        if not (instr.operands[0].type.is_int or instr.operands[0].type.is_ptr):
            return TOP  # the bits of floats
        a = self._get(instr.operands[0])
        if a is None or not instr.type.is_int or not instr.operands[0].type.is_int:
            return a
        if instr.opcode == "trunc" and a.stride:
            assert isinstance(instr.type, ty.IntType)
            return off.make(0, [(gcd(a.stride, a.start, 1 << instr.type.bits), None)], True) if a.below else a
        if instr.opcode == "zext" and a.below and instr.operands[0].type in (ty.I1, ty.I8):
            return off.make(0, [(1, 1 if instr.operands[0].type is ty.I1 else 255)], False)
        if instr.opcode == "zext" and a.below:
            return off.make(a.start % a.stride if a.stride else a.start, list(a.terms), False)
        return a

    def _gep(self, operands: Sequence[Value], elem: ty.Type, flags: tuple[str, ...]) -> Offsets | None:
        base, distance = self._get(operands[0]), self._displacement(operands, elem, flags)
        return None if base is None or distance is None else off.add(base, distance)

    def _displacement(self, operands: Sequence[Value], elem: ty.Type, flags: tuple[str, ...]) -> Offsets | None:
        """How far a getelementptr moves its pointer."""
        total = ZERO
        current: ty.Type = elem
        for number, index in enumerate(operands[1:]):
            if number == 0:
                size = ty.size_of(elem)
            elif isinstance(current, ty.StructType):
                assert isinstance(index, ConstInt) and current.fields is not None
                total = total.shift(ty.field_offsets(current)[index.value])
                current = current.fields[index.value]
                continue
            else:
                assert isinstance(current, ty.ArrayType | ty.VectorType)
                current = current.elem
                size = ty.size_of(current)
            if not index.type.is_int:
                return TOP
            value = self._get(index)
            if value is None:
                return None
            if "nuw" in flags and value.below:
                value = off.make(value.start % value.stride, list(value.terms), False)
            step = off.scale(value, size)
            total = step if total is ZERO else off.add(total, step)
        return total

    def _phi(self, phi: Instruction) -> Offsets | None:
        start: Offsets | None = None
        steps: list[int] = []
        for incoming in phi.operands:
            step = self._counters.step(incoming, phi)
            if step is not None:
                steps.append(step)
                continue
            value = self._get(incoming)
            if value is not None:
                start = value if start is None else off.join(start, value)
        if start is None or not any(steps):
            return start
        counted = self._counters.values(phi) if len(steps) == 1 else None
        if counted is not None:
            return counted
        for advance in self._advances(phi, steps):
            start = off.add(start, advance)
        return start

    def _advances(self, phi: Instruction, steps: list[int]) -> list[Offsets]:
        """What a loop adds to a phi that takes these steps."""
        assert phi.block is not None
        trips = self._counters.runs(phi.block) if len(steps) == 1 else None
        count = None if trips is None else trips - 1
        return [off.scale(Offsets(0, ((1, count),) if count != 0 else ()), step) for step in steps]
