"""Which kinds of values are ever written into an object: what a read of it can find, whatever type it reads as.

`MemoryTypes` says how memory is used; a read counts there as well as a write. Here only writes count, so that memory in
which nothing but doubles are stored is known to hold the bits of a double even where it is read as integers.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.byte_kinds import INT, Kind, Mark, leaves
from irgrad.engine.analyses.memory.objects import Object, bits_of
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, ConstUndef, ConstZero, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, INT_BINARY, RESIZES, having

ANYTHING = Mark("anything")
_AT_BYTES = having("places_bytes") & INT_BINARY
_MOVES = CHOICES | RESIZES | {"bitcast", "or"}


class Contents:
    """`kinds(obj)`: float types, PTR, INT, or ANYTHING for what the module does not show. Zeros do not count."""

    def __init__(self, pointers: Pointers) -> None:
        self._pointers = pointers
        self._kinds: dict[int, set[Kind]] = {0: {ANYTHING}}
        self._copies: list[tuple[int, int]] = []  # (target, source) masks
        for obj in pointers.objects:
            fixed = isinstance(obj.site, GlobalVariable) and isinstance(obj.site.init, ConstZero)
            if obj.kind in ("argument", "pointee", "unknown") or (obj.kind == "global" and not fixed):
                self._kinds[obj.index] = {ANYTHING}
        for fn in pointers.functions:
            for instr in fn.instructions():
                self._visit(instr)
        self._close()

    def kinds(self, obj: Object) -> frozenset[Kind]:
        """Every kind that is written somewhere into the object."""
        return frozenset(self._kinds.get(obj.index, ()))

    def only_floats(self, obj: Object) -> bool:
        """Floats are all that is ever written there (and zeros)."""
        kinds = self._kinds.get(obj.index)
        return bool(kinds) and all(isinstance(kind, ty.FloatType) for kind in kinds or ())

    def _visit(self, instr: Instruction) -> None:
        if instr.opcode == "store":
            self._write(instr.operands[1], self._of(*instr.operands))
        elif instr.opcode in ("atomicrmw", "cmpxchg"):
            self._write(instr.operands[0], self._of(instr.operands[-1], instr.operands[0]))
        elif instr.is_call:
            self._call(instr)

    def _of(self, value: Value, pointer: Value) -> set[Kind]:
        """What storing `value` writes; integers that only travel are followed to where they come from."""
        kinds: set[Kind] = {kind for _, kind, _ in leaves(value.type)} or {ANYTHING}
        if INT not in kinds:
            return kinds
        kinds.discard(INT)
        seen: set[Value] = set()
        work = [value]
        while work:
            value = work.pop()
            if value in seen or isinstance(value, ConstZero | ConstUndef):
                continue
            seen.add(value)
            op = value.opcode if isinstance(value, Instruction) else ""
            if isinstance(value, ConstInt):
                kinds |= {INT} if value.value else set()
            elif not isinstance(value, Instruction):
                kinds.add(INT)
            elif op == "load":
                self._copies.append((self._pointers.of(pointer), self._pointers.of(value.operands[0])))
            elif op == "bitcast" and not value.operands[0].type.scalar.is_int:
                kinds |= {kind for _, kind, _ in leaves(value.operands[0].type)}
            elif op in _MOVES:
                work += value.operands[1:] if op == "select" else value.operands
            elif op in _AT_BYTES and isinstance(value.operands[1], ConstInt):
                work.append(value.operands[0])
            else:
                kinds.add(INT)
        return kinds

    def _write(self, pointer: Value, kinds: set[Kind]) -> None:
        for bit in bits_of(self._pointers.of(pointer)):
            self._kinds.setdefault(bit, set()).update(kinds)

    def _call(self, call: Instruction) -> None:
        effect = self._pointers.effect(call)
        if effect is None or effect.inactive or effect.nothing or effect.frees is not None:
            return
        if effect.copy is not None:
            target, source = (self._pointers.of(call.args[i]) for i in effect.copy[:2])
            self._copies.append((target, source))
        elif effect.moves is not None:
            self._copies.append((self._pointers.of(call), self._pointers.of(call.args[effect.moves])))
        elif effect.fill is not None:
            byte = call.args[1] if len(call.args) > 1 else None
            if not (isinstance(byte, ConstInt) and not byte.value):
                self._write(call.args[0], {INT})
        elif not effect.allocates:
            from irgrad.engine.analyses.memory.modref import own_reads_writes

            for bit in bits_of(own_reads_writes(self._pointers, call)[1]):
                self._kinds.setdefault(bit, set()).add(ANYTHING)

    def _close(self) -> None:
        changed = True
        while changed:
            changed = False
            for target, source in self._copies:
                found: set[Kind] = set()
                for bit in bits_of(source):
                    found |= self._kinds.get(bit, set())
                for bit in bits_of(target):
                    held = self._kinds.setdefault(bit, set())
                    if not found <= held:
                        held |= found
                        changed = True


__all__ = ["ANYTHING", "Contents"]
