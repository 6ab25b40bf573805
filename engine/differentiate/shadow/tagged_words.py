"""Words that hold a float at one time and a pointer at another, moved by code that does not say which of them.

Closures of different shapes in one buffer are such memory (`std::function`), unions are. A move copies the shadow of a
pointer in the primal sweep, and an adjoint back in the reverse sweep. Both are right for every word if its shadow is,
all through the primal sweep, the shadow pointer where it holds a pointer and zero where it holds a float:

    primal   store float        M^[q] = 0                reverse   store pointer      M^[q] = 0
             y = load p         y^ = M^[p]                         y = load p         M^[p] += y_ unless y^
             store y, q         M^[q] = y^                         store y, q         y_ += M^[q] unless y^ ; M^[q] = 0

(M^: shadow memory, y^: shadow of y, y_: its adjoint.) A pointer without shadow is taken for a float, of which the
adjoint is zero. The memory is the program's own, for which the derivative allocates a shadow of zeros: what a caller
hands over comes with adjoints from the start. Accesses of such shadows have no type tags, so that LLVM keeps their
order.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT, Kind, kind_size, leaves
from irgrad.engine.analyses.memory.objects import Object, alignment, describes_types, said_alignment
from irgrad.engine.analyses.memory.strided_sets import multiples
from irgrad.engine.analyses.memory.tbaa import TYPE_TAG, word_node
from irgrad.engine.analyses.memory.text_copies import copies_text
from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.leaves import has_pointer, zero_of
from irgrad.engine.differentiate.shadow.bit_sums import add_words
from irgrad.engine.differentiate.shadow.copies import clear_shadow, layout_of_copy
from irgrad.engine.differentiate.shared.refuse import place, refuse, refuse_uses
from irgrad.engine.differentiate.shared.sweeps import AdjointSweep, PrimalCopy, PrimalSweep
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import ConstInt, Function, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from irgrad.engine.differentiate.shared.unit import Unit

_WORD = 8
_MOVES = having("moves_words")
_POINTERS = having("pointer_cast")
Copy = tuple[Instruction, tuple[int, int, int]]


class Either:
    """`objects`: memory with such words, as a mask; `values`: the integers that carry them; `copies`: the calls that
    copy them. The floats are doubles: one fills its word, so that a store leaves nothing of a pointer behind."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.objects = 0
        self.values: set[Value] = set()
        self.copies: set[Instruction] = set()
        self._known: dict[Instruction, bool] = {}
        self._places: dict[Function, dict[tuple[Value, bool], list[tuple[Instruction, int, int]]]] = {}
        self._local = self._holding = 0  # memory of the program's own; memory with shadow pointers
        for obj in unit.pointers.objects:
            self._holding |= unit.activity.holds_pointers(obj) << obj.index
            if obj.kind in ("alloca", "heap", "function") or _constant(obj):
                self._local |= 1 << obj.index
        if unit.mode == "reverse" and unit.width == 1 and not self._find():
            self.objects, self.values, self.copies = 0, set(), set()

    # -- which moves are decided when the derivative runs --------------------------------------------------------

    def _find(self) -> bool:
        """Moves that nothing decides, and all others of the memory that those touch. False where one of them cannot
        be decided when the derivative runs either."""
        carriers, unit = self.unit.types.carriers, self.unit
        members: dict[Value, list[Value]] = {}
        for fn in unit.pointers.functions:
            for value in (*fn.args, *fn.instructions()):
                if value.type.scalar is ty.I64:
                    members.setdefault(carriers.find(value), []).append(value)
        addresses: dict[Value, list[Value]] = {}
        for value, address, _ in carriers.accesses:
            addresses.setdefault(carriers.find(value), []).append(address)
        classes = [root for root in members if any(map(unit.activity.value, members[root]))]
        addresses |= {root: [] for root in classes if root not in addresses}
        work = [root for root in classes if self._undecided(members[root], addresses[root])]
        copies = list(self._all_copies())
        copied = [copy for copy in copies if self._contradicts(*copy)]
        found = set(work)
        while work or copied:
            for root in work:
                if not self._values(members[root], addresses[root]):
                    return False
            for call, where in copied:
                if not self._copied(call, where):
                    return False
            if self.objects & (~self._local | self._awkward):
                return False
            work = [root for root in classes if root not in found and self._touches(members[root], addresses[root])]
            found.update(work)
            copied = [(c, w) for c, w in copies if c not in self.copies and self._holds(c.args[w[0]])]
        return True

    def _undecided(self, members: list[Value], addresses: list[Value]) -> bool:
        """Nothing tells that active integers of this class are floats and no pointers."""
        unit, size = self.unit, max(ty.store_size(v.type) for v in members)
        said = not addresses and unit.types.carriers.either(members[0], 0)
        return (said or any(self._conflict(a, size) for a in addresses)) and any(
            unit.activity.value(v) and (not unit.differentiable(v) or unit.activity.pointer(v)) for v in members
        )

    def _conflict(self, address: Value, size: int) -> bool:
        return any(kind is CONFLICT for _, kind in self.unit.types.access(address, size))

    def _touches(self, members: list[Value], addresses: list[Value]) -> bool:
        """Integers that may be floats or pointers, in memory of such words."""
        return any(map(self._holds, addresses)) and any(map(self.unit.activity.pointer, members))

    def _holds(self, address: Value) -> bool:
        return bool(self.unit.pointers.of(address) & self.objects)

    def _values(self, members: list[Value], addresses: list[Value]) -> bool:
        unit = self.unit
        kinds = set(unit.types.carriers.floats(members[0]))
        for address in addresses:
            self.objects |= unit.pointers.of(address)
            kinds |= unit.types.floats_at(address, max(ty.store_size(v.type) for v in members))
        if not kinds <= {ty.F64} or any(isinstance(v, Instruction) and v.opcode not in _MOVES for v in members):
            return False
        self.values.update(members)
        unit.types.carriers.may_be(members[0], ty.F64)
        return True

    @cached_property
    def _awkward(self) -> int:
        """Objects of which floats, pointers or words are accessed where they may lie across words, or structs of words
        in one piece."""
        mask = 0
        for fn in self.unit.pointers.functions:
            for instr in fn.instructions():
                at = instr.traits.address
                if at < 0:
                    continue
                value, address = instr.operands[0] if instr.opcode == "store" else instr, instr.operands[at]
                least = max((size for _, kind, size in leaves(value.type) if kind is not INT), default=1)
                if value.type.scalar is ty.I64 and not isinstance(value, ConstInt):  # eight characters of a text, say
                    least = _WORD
                if 0 < instr.align < least or (value.type.is_aggregate and self.unit.activity.value(value)):
                    mask |= self.unit.pointers.of(address)
        return mask

    # -- copies --------------------------------------------------------------------------------------------------

    def _all_copies(self) -> Iterable[Copy]:
        for fn in self.unit.pointers.functions:
            for instr in fn.instructions():
                effect = self.unit.pointers.effect(instr) if instr.is_call else None
                copy = effect.copy if effect is not None else None
                if copy is not None and self.unit.activity.pointer(instr.args[copy[0]]):
                    yield instr, copy

    def _contradicts(self, call: Instruction, where: tuple[int, int, int]) -> bool:
        try:
            layout_of_copy(self.unit, call, where)
        except Unsupported:
            return True
        return False

    def _copied(self, call: Instruction, where: tuple[int, int, int]) -> bool:
        unit, size = self.unit, call.args[where[2]]
        kinds: set[ty.Type] = set()
        ends = [call.args[where[0]], call.args[where[1]]]
        if _moves_text(unit, call, where):
            ends = []
        for end in ends:
            self.objects |= unit.pointers.of(end)
            kinds |= unit.types.floats_at(end, size.value if isinstance(size, ConstInt) else 1 << 20)
            if said_alignment(call, end) < _WORD and not self._in_words(end):
                return False
        self.copies.add(call)
        return kinds <= {ty.F64}

    def _in_words(self, address: Value) -> bool:
        """Whether an address is at a word of each object that it leads to, whatever is said of it."""
        objects = self.unit.pointers.objects
        spots = self.unit.types.ranges.places(address)
        return bool(spots) and all(
            alignment(objects[bit]) % _WORD == 0 and multiples(where, _WORD) == where for bit, where in spots.items()
        )

    @cached_property
    def _node(self) -> str:
        return word_node(self.unit.module)

    # -- what the sweeps ask -------------------------------------------------------------------------------------

    def tags(self, access: Instruction) -> dict[str, str]:
        """What the access to the shadow of such a word says, for derivatives of the derivative."""
        value = access.operands[0] if access.opcode == "store" else access
        return {TYPE_TAG: self._node} if value in self.values else {}

    def beside(self, load: Instruction) -> bool:
        """Whether the place that a float is loaded from may hold a pointer when nobody asks for the float."""
        return bool(self.unit.pointers.of(load.operands[0]) & self.objects)

    def cleared(self, store: Instruction) -> bool:
        """Whether the shadow of what a store overwrites may be of the other sort, and is made zero: a shadow pointer
        where a float is stored, an adjoint where a pointer is."""
        if store not in self._known:
            self._known[store] = self._cleared(store)
        return self._known[store]

    def _cleared(self, store: Instruction) -> bool:
        value, address = store.operands
        unit = self.unit
        if unit.mode != "reverse" or unit.width != 1 or unit.runtime_activity or not unit.activity.pointer(address):
            return False
        mask = unit.pointers.of(address)
        if mask & self.objects:
            return True
        if mask & ~self._local or not mask & self._holding or unit.between or unit.outputs is not None:
            return False
        return self._conflict(address, ty.store_size(value.type))

    def reused(self, store: Instruction) -> Instruction | None:
        """The access of the other sort that the function of a store makes of the same place, a float's here and a
        pointer's there. Where `cleared` does not help, one's shadow would be taken for the other's: a caller hands over
        shadows of what memory holds in the end, or in the beginning, and nobody can tell which."""
        value, address = store.operands
        if not self.unit.pointers.of(address) & self._holding or self.cleared(store):
            return None
        where = _place(address)
        fn = store.block.function if store.block is not None else None
        if where is None or fn is None:
            return None
        if fn not in self._places:
            self._places[fn] = self._sorts(fn)
        base, first = where
        for at, size, pointer in self._parts(value):
            found = self._places[fn].get((base, not pointer), ())
            other = next((o for o, a, b in found if a < first + at + size and first + at < b), None)
            if other is not None:
                return other
        return None

    def _parts(self, value: Value) -> list[tuple[int, int, bool]]:
        """(byte, size, whether it is a pointer) of the pointers and floats in a value, integers that carry them too."""
        size = ty.store_size(value.type)
        if not value.type.scalar.is_int:
            return [(0, size, has_pointer(value.type))]
        layout = self.unit.types.carriers.layout(value)
        if not layout and self.unit.activity.value(value):
            return [(0, size, False)]
        return [(at, kind_size(kind), kind is ty.PTR) for at, kind in layout if isinstance(kind, Type)]

    def _sorts(self, fn: Function) -> dict[tuple[Value, bool], list[tuple[Instruction, int, int]]]:
        """Accesses of pointers (True) and of active floats (False) by what their place is counted from."""
        found: dict[tuple[Value, bool], list[tuple[Instruction, int, int]]] = {}
        for instr in fn.instructions():
            if instr.opcode not in ("load", "store"):
                continue
            value, address = instr.operands if instr.opcode == "store" else (instr, instr.operands[0])
            where = _place(address)
            for at, size, pointer in self._parts(value) if where is not None else ():
                if where is not None and (pointer or self.unit.activity.value(value)):
                    first = where[1] + at
                    found.setdefault((where[0], pointer), []).append((instr, first, first + size))
        return found


def _place(address: Value) -> tuple[Value, int] | None:
    """What an address is counted from, and by how many bytes it lies behind that, where it is a constant."""
    total = 0
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        offset = lanes.constant_offset(address.elem, address.operands[1:]) if address.elem is not None else None
        if offset is None:
            return None
        total += offset
        address = address.operands[0]
    return address, total


def _constant(obj: Object) -> bool:
    """A variable that no float is stored in, the tables of the C++ runtime among them."""
    site = obj.site
    return isinstance(site, GlobalVariable) and (site.constant or describes_types(site))


def check_reused(unit: Unit, store: Instruction) -> None:
    """Raise Unsupported for a store of one sort where the other is known to lie, unless that is in order."""
    other = unit.get(Either).reused(store)
    if other is not None:
        words = ("float", "pointer") if has_pointer(store.operands[0].type) else ("pointer", "float")
        raise refuse(
            unit, store, f"a {words[1]} is stored where a {words[0]} lies",
            because=f"it is a {words[0]} at {place(unit, other)}, and the shadow of the one would be read as that of "
                    "the other: a caller gives only one",
            fix="keep floats and pointers in members of their own, or use forward mode",
        )  # fmt: skip


def _moves_text(unit: Unit, call: Instruction, where: tuple[int, int, int]) -> bool:
    """What a copy overwrites is neither float nor pointer any longer: characters of a string, or of memory without a
    shadow."""
    return not unit.activity.pointer(call.args[where[1]]) or copies_text(unit.module, call, where[2])


# -- the primal sweep ----------------------------------------------------------------------------------------------


def look(sweep: PrimalCopy, load: Instruction) -> None:
    """Behind the copy of the load of a double: end the call where the shadow of a pointer lies beside it."""
    unit, b = sweep.unit, sweep.b
    found = unit.memory.load(b, ty.PTR, sweep.shadow(load.operands[0]), load.align, {TYPE_TAG: word_node(unit.module)})
    there: Value = ConstInt(ty.I1, 0)
    for pointer in unit.memory.each(b, found):
        there = b.binary("or", there, b.icmp("ne", pointer, zero_of(ty.PTR)))
    where = locate(unit.module, load) or place(unit, load)
    b.call(unit.runtime("irgrad.tape.lost"), [there, unit.text_constant(where)])


def clear(sweep: PrimalCopy, store: Instruction) -> None:
    """M^[q] = 0, where a float is stored."""
    value, address = store.operands
    clear_shadow(sweep.b, value.type, sweep.shadow(address), store.align)


def copy_shadows(sweep: PrimalSweep, call: Instruction, where: tuple[int, int, int]) -> None:
    """The shadow words of a copy: zero for floats. The tape keeps those of the source."""
    unit, b = sweep.unit, sweep.b
    target, source = call.args[where[0]], call.args[where[1]]
    _refuse(unit, call, sweep.caller_tape)
    size = b.to_i64(sweep.value(call.args[where[2]]), signed=False)
    if _moves_text(unit, call, where):
        sweep.zero_memory(sweep.shadow(target), size)
        return
    saved = sweep.allocate(b.mul(size, ConstInt(ty.I64, 2)))
    for to, out_of in ((saved, sweep.shadow(source)), (sweep.shadow(target), saved)):
        _copy_words(unit, b, to, out_of, size)
    sweep.tapes[call] = saved


def _copy_words(unit: Unit, b: Builder, to: Value, out_of: Value, size: Value) -> None:
    """A memcpy that says that both ends are whole words: else the next derivative looks for pointers at any byte."""
    ftype = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
    call = b.call(unit.declare("llvm.memcpy.p0.p0.i64", ftype), [to, out_of, size, ConstInt(ty.I1, 0)])
    assert call.call is not None
    call.call.arg_attrs = [f"align {_WORD}"] * 2


# -- the reverse sweep ---------------------------------------------------------------------------------------------


def reverse_load(r: AdjointSweep, load: Instruction, amount: Value) -> bool:
    """M^[p] += y_ unless y^, if that is to be asked."""
    if load not in r.unit.get(Either).values:
        return False
    _refuse(r.unit, load, r.caller_tape)
    b, pointer, tags = r.b, r.recall.shadow(load.operands[0]), r.unit.get(Either).tags(load)
    before = b.load(load.type, pointer, load.align, tags)
    total = add_words(r.unit, b, before, amount)
    nothing = zero_of(load.type)
    given = b.icmp("ne", amount, nothing)
    if r.sweep.shadowed(load):
        given = b.binary("and", given, b.icmp("eq", r.recall.shadow(load), nothing))
    b.store(b.select(given, total, before), pointer, load.align, tags)
    return True


def reverse_store(r: AdjointSweep, store: Instruction) -> bool:
    """y_ += M^[q] unless y^ ; M^[q] = 0, if that is to be asked; where a pointer is stored, M^[q] = 0."""
    b, unit, (value, address) = r.b, r.unit, store.operands
    if value not in unit.get(Either).values:
        pure = unit.get(Either).cleared(store) and not r.active(value)
        if pure:
            clear_shadow(b, value.type, r.recall.shadow(address), store.align)
        return pure
    _refuse(unit, store, r.caller_tape)
    pointer, nothing, tags = r.recall.shadow(address), zero_of(value.type), unit.get(Either).tags(store)
    amount: Value = b.load(value.type, pointer, store.align, tags)
    b.store(nothing, pointer, store.align, tags)
    if r.sweep.shadowed(value):
        amount = b.select(b.icmp("eq", r.recall.shadow(value), nothing), amount, nothing)
    r.give(value, amount)
    return True


def reverse_copy(r: AdjointSweep, call: Instruction, where: tuple[int, int, int]) -> None:
    """The adjoints of what were floats move to the source."""
    b, target = r.b, r.recall.shadow(call.args[where[0]])
    size = b.to_i64(r.recall.value(call.args[where[2]]), signed=False)
    if call not in r.sweep.tapes:
        clear = r.unit.declare("llvm.memset.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1)))
        b.call(clear, [target, ConstInt(ty.I8, 0), size, ConstInt(ty.I1, 0)])
        return
    helper = r.unit.runtime("irgrad.adjoint.either")
    b.call(helper, [target, r.recall.shadow(call.args[where[1]]), r.recall.tape(call), size])


def _refuse(unit: Unit, instr: Instruction, caller_tape: bool) -> None:
    """Raise Unsupported where the shadow of local memory is not zero from the start, or is used again."""
    if unit.runtime_activity or unit.between or caller_tape:
        raise refuse_word(unit, instr, forward=True)


def refuse_word(unit: Unit, instr: Instruction, *, forward: bool = False) -> Unsupported:
    """The error about an instruction that moves what may be a float or a pointer."""
    return refuse_uses(unit, instr, _addresses(unit, instr), forward=forward, casts=_casts(unit, instr))


def _casts(unit: Unit, instr: Instruction) -> dict[Kind, Instruction]:
    """As what the integers that an instruction takes, makes or moves are cast anywhere, and where."""
    carriers, found = unit.types.carriers, dict[Type, Instruction]()
    moved = {carriers.find(value) for value in (instr, *instr.operands)}
    for fn in unit.pointers.functions:
        for cast in fn.instructions():
            if cast.opcode != "bitcast" and cast.opcode not in _POINTERS:
                continue
            word, other = (cast, cast.operands[0]) if cast.type.scalar.is_int else (cast.operands[0], cast)
            if cast is instr or carriers.find(word) in moved:
                found.setdefault(other.type.scalar, cast)
    return {type_: cast for type_, cast in found.items() if type_.is_fp or type_.is_ptr}


def _addresses(unit: Unit, instr: Instruction) -> list[Value]:
    """The memory that what an instruction moves comes from, or goes to."""
    if instr.traits.address >= 0:
        return [instr.operands[instr.traits.address]]
    effect = unit.pointers.effect(instr) if instr.is_call else None
    if effect is not None and effect.copy is not None:
        return [instr.args[i] for i in effect.copy[:2]]
    carriers = unit.types.carriers
    moved = {carriers.find(value) for value in (instr, *instr.operands)}
    return [address for value, address, _ in carriers.accesses if carriers.find(value) in moved]
