"""Floats that travel as integers become floats again: `load i64` and `store i64` of a struct of two floats, for one.

LLVM copies small structs and unions through integer registers. Where the analysis knows which floats such integers
carry, and they are only moved (loaded, stored, merged by phi and select, taken apart by shifts), they get a float or
vector type of the same bits, so that everything after this meets floats only. Integers that hold other data beside the
floats stay what they are (see `carried`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR
from irgrad.engine.analyses.memory.objects import has_pointer
from irgrad.engine.analyses.memory.spots import ANY, Spots
from irgrad.engine.analyses.memory.strided_sets import TOP, Offsets, touches
from irgrad.engine.analyses.memory.tbaa import TYPE_TAG, Tbaa
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstFloat,
    ConstInt,
    ConstUndef,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import CHOICES
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.types import Type

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts


def loosen(facts: Facts) -> bool:
    """Accesses that the source calls integers, but that only move what else is a float or a pointer (words that are
    sorted, or swapped), keep the names of their types where LLVM concludes nothing from them: it would move them across
    the accesses of those floats. Not members of a language's own. True when anything changed."""
    types, changed = facts.types, False
    counts: _Counts | None = None
    tbaa = Tbaa(facts.module)
    for value, _, access in types.carriers.accesses:
        tag = access.metadata.get("tbaa") if access is not None else None
        if access is None or tag is None or not types.numbers.moves(access) or tbaa.is_member(tag):
            continue
        kinds = {kind for _, kind in types.carriers.layout(value) if kind is not INT}
        if not kinds:
            continue
        if kinds == {ty.PTR}:
            counts = counts or _Counts(facts)
            if counts.are(access, tag):
                continue
        access.metadata[TYPE_TAG] = access.metadata.pop("tbaa")
        changed = True
    return changed


class _Counts:
    """Members of structures that the source computes with: the length of a tree, where the links that may lead to its
    header have another link. They are numbers where they are moved, too."""

    def __init__(self, facts: Facts) -> None:
        self._types = types = facts.types
        self._tbaa = Tbaa(facts.pointers.module)
        self._computed: set[tuple[str, int, int]] = set()  # (type, object, place)
        self._pointers: dict[int, list[Offsets]] = {}  # object -> where a pointer may lie
        for _, _, access in types.carriers.accesses:
            tag = access.metadata.get("tbaa") if access is not None else None
            if access is not None and tag is not None and not types.numbers.moves(access):
                self._computed.update((tag, bit, at.start) for bit, at in self._places(access).items() if at.exact)
        copies: list[tuple[Spots, Spots, int | None]] = []
        for fn in facts.pointers.functions:
            for instr in fn.instructions():
                self._written(instr)
                copies += self._copied(facts, instr)
        while [copy for copy in copies if self._carried(*copy)]:  # all of them in each round
            pass

    def are(self, access: Instruction, tag: str) -> bool:
        """Such a member, in each object that the access may lead to, at a place where no pointer may be."""
        spots = self._places(access)
        return self._tbaa.of_member(tag) and all(
            at.exact and (tag, bit, at.start) in self._computed and not self._pointer(bit, at)
            for bit, at in spots.items()
        )

    def _places(self, access: Instruction) -> Spots:
        return self._types.ranges.places(access.operands[access.opcode == "store"])

    def _written(self, instr: Instruction) -> None:
        """Note where a pointer is written.

        Of several objects, a store by a member that the source calls a pointer is left out, or by such a type at one of
        several places: a pointer to a link may be one to the header by its flow, and under strict aliasing what is read
        as a number was stored in neither way.
        """
        if instr.opcode in ("atomicrmw", "cmpxchg") and has_pointer(instr.operands[-1].type):
            self._note(self._types.ranges.places(instr.operands[0]))
        elif instr.opcode == "store" and has_pointer(instr.operands[0].type):
            tag, places = instr.metadata.get("tbaa"), self._places(instr)
            if len(places) > 1 and tag is not None and self._tbaa.kind(tag) is PTR:
                exact = {} if self._tbaa.of_member(tag) else {bit: at for bit, at in places.items() if at.exact}
                self._note(exact)
            else:
                self._note(places)

    def _note(self, places: Spots) -> None:
        for bit, at in places.items():
            self._pointers.setdefault(bit, []).append(at)

    def _copied(self, facts: Facts, instr: Instruction) -> list[tuple[Spots, Spots, int | None]]:
        """(to, from, bytes) of what a call copies."""
        effect = facts.pointers.effect(instr) if instr.is_call else None
        if effect is None:
            return []
        places = self._types.ranges.places
        if effect.copy is not None:
            target, source, size = (instr.args[i] for i in effect.copy)
            return [(places(target), places(source), size.value if isinstance(size, ConstInt) else None)]
        if effect.keeps is not None:
            self._note(places(instr.args[effect.keeps[0]]))
        return [] if effect.moves is None else [(places(instr), places(instr.args[effect.moves]), None)]

    def _carried(self, target: Spots, source: Spots, size: int | None) -> bool:
        """A copy takes the pointers of what it reads with it. True where that is news."""
        news = False
        for bit, start in source.items():
            of = list(self._pointers) if bit == ANY else [bit, ANY]
            for where in [at for held in of for at in self._pointers.get(held, ())]:
                if size is not None and not touches(start, where, -7, size):
                    continue
                for other, first in target.items():
                    plain = start.exact and first.exact and where.exact and (size is not None or start == first)
                    at = first.shift(where.start - start.start) if plain else TOP
                    known = self._pointers.setdefault(other, [])
                    if at not in known and TOP not in known:
                        known.append(at)
                        news = True
        return news

    def _pointer(self, bit: int, at: Offsets) -> bool:
        return bit == ANY or any(touches(at, where, -7, 8) for of in (bit, ANY) for where in self._pointers.get(of, ()))


def retype(facts: Facts) -> bool:
    """Give the active integers of all functions that the root reaches their true type. True when anything changed."""
    views: dict[Value, Type | None] = {}
    members: dict[Value, list[Value]] = {}
    carriers = facts.types.carriers
    for fn in facts.pointers.functions:
        for value in (*fn.args, *fn.instructions()):
            if value.type.scalar.is_int and ty.store_size(value.type) >= 2:
                members.setdefault(carriers.find(value), []).append(value)
    for root, values in members.items():
        if any(facts.activity.value(v) for v in values):
            views[root] = _view(facts, root)
    wide_first = sorted(views, key=lambda root: -ty.store_size(root.type))
    for root in wide_first:  # parts are taken out of what has become a vector
        if not all(_movable(facts, v, views) for v in members[root]):
            views[root] = None
    chosen = {v: view for root, view in views.items() if view is not None for v in members[root]}
    original = {v: v.type for v in chosen}
    if chosen:
        for fn in facts.pointers.functions:
            _rewrite(fn, chosen, original)
    return bool(chosen)


def undecided(facts: Facts) -> Instruction | None:
    """An active float that still travels as an integer: reverse mode would lose it, so it has to be refused."""
    for fn in facts.pointers.functions:
        if facts.activity.function(fn):
            for instr in fn.instructions():
                if instr.type.scalar.is_int and facts.activity.value(instr):
                    return instr
                if instr.is_call and any(a.type.scalar.is_int and facts.activity.value(a) for a in instr.args):
                    return instr
    return None


def _view(facts: Facts, value: Value) -> Type | None:
    """The float or vector type with the bits of this class of integers; None when some of them are anything else, or
    unknown. Those stay integers: that a byte is of no float can be said of an integer only (see `carried`)."""
    layout = facts.types.carriers.layout(value)
    lane = layout[0][1] if layout else None
    if not isinstance(lane, ty.FloatType) or len(facts.types.carriers.floats(value)) > 1:
        return None  # of a union, one shadows the other
    size, width = ty.store_size(value.type), ty.store_size(lane)
    if layout != tuple((at, lane) for at in range(0, size, width)):
        return None
    return lane if size == width else ty.vector(size // width, lane)


def _movable(facts: Facts, value: Value, views: dict[Value, Type | None]) -> bool:
    """Whether `value` keeps its meaning under the type of its class."""
    if not isinstance(value, Instruction) or value.volatile or value.ordering:
        return False
    if value.opcode == "bitcast":
        return value.operands[0].type.is_fp
    if value.opcode == "load":
        return _agrees(facts, value)
    if value.opcode != "trunc":
        return value.opcode in CHOICES
    source, shift = _shifted(value)
    if not (value.type.is_int and source.type.is_int):
        return False
    wide = views.get(facts.types.carriers.find(source))
    own = _view(facts, facts.types.carriers.find(value))
    return isinstance(wide, ty.VectorType) and own is wide.elem and shift % (8 * ty.store_size(wide.elem)) == 0


def _agrees(facts: Facts, load: Instruction) -> bool:
    """The memory holds no floats of another size than those that its class carries."""
    carried = {kind for _, kind in facts.types.carriers.layout(load)}
    held = facts.types.access(load.operands[0], ty.store_size(load.type))
    return all(kind in carried for _, kind in held if isinstance(kind, ty.FloatType))


def _shifted(trunc: Instruction) -> tuple[Value, int]:
    """(wide integer, bits that it is shifted by) of a truncation."""
    source = trunc.operands[0]
    if isinstance(source, Instruction) and source.opcode == "lshr" and isinstance(source.operands[1], ConstInt):
        return source.operands[0], source.operands[1].value
    return source, 0


def _constant(value: Value, view: Type) -> Value:
    """An integer constant as the floats with its bits."""
    if isinstance(value, ConstUndef):
        return ConstUndef(view, value.poison)
    number = 0
    if isinstance(value, ConstInt):
        number = value.value
    elif isinstance(value, ConstAggregate):
        width = 8 * ty.store_size(value.type.scalar)
        for i, part in enumerate(value.elems):
            number |= (part.value & ((1 << width) - 1)) << (width * i) if isinstance(part, ConstInt) else 0
    lane = view.elem if isinstance(view, ty.VectorType) else view
    bits = 8 * ty.store_size(lane)
    count = view.count if isinstance(view, ty.VectorType) else 1
    parts: list[Constant] = [ConstFloat(lane, (number >> (bits * i)) & ((1 << bits) - 1)) for i in range(count)]
    return ConstAggregate(view, parts) if isinstance(view, ty.VectorType) else parts[0]


def _rewrite(fn: Function, chosen: dict[Value, Type], original: dict[Value, Type]) -> None:
    replaced: dict[Value, Value] = {}
    sources = {i: _shifted(i) for i in fn.instructions() if i in chosen and i.opcode == "trunc"}
    for block in fn.blocks:
        old, block.instructions = block.instructions, []
        for instr in old:
            if instr in chosen:
                _change(instr, chosen, sources, replaced)
            elif instr.opcode == "store" and instr.operands[0] in chosen:
                instr.metadata = {k: v for k, v in instr.metadata.items() if k == "dbg"}
            elif instr.opcode == "bitcast" and instr.type is chosen.get(instr.operands[0]):
                replaced[instr] = instr.operands[0]
            elif instr.opcode != "bitcast":
                for i, operand in enumerate(instr.operands):
                    if operand in chosen and not (instr.opcode == "store" and i == 1):
                        back = Instruction("bitcast", original[operand], [operand])
                        back.block = block
                        block.instructions.append(back)
                        instr.operands[i] = back
            block.instructions.append(instr)
    if replaced:
        replace_uses(fn, replaced)


def _change(
    instr: Instruction, chosen: dict[Value, Type], sources: dict[Instruction, tuple[Value, int]],
    replaced: dict[Value, Value],
) -> None:  # fmt: skip
    """One member of a class takes its true type, in place. `sources`: what truncations take their parts of."""
    instr.type = view = chosen[instr]
    if instr.opcode == "load":
        instr.metadata = {k: v for k, v in instr.metadata.items() if k == "dbg"}
    elif instr.opcode == "bitcast":
        if instr.operands[0].type is view:
            replaced[instr] = instr.operands[0]
    elif instr.opcode == "trunc":
        source, shift = sources[instr]
        instr.opcode = "extractelement"
        instr.flags = ()
        instr.operands = [source, ConstInt(ty.I64, shift // (8 * ty.store_size(view)))]
    else:
        instr.operands = [
            o if o in chosen or (instr.opcode == "select" and i == 0) else _constant(o, view)
            for i, o in enumerate(instr.operands)
        ]
