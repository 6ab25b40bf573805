"""Words that hold a double at one time and a pointer at another, moved as one of them: moved as integers.

    struct { int tag; union { double number; struct list *items; } as; } top = stack[n - 1]; vars[k] = top;

LLVM copies such a union as its first member, whatever it holds. A pointer that travels as a double is seen by no
analysis, and its shadow is lost; so is the adjoint of a double that travels as a pointer. As an integer the word may be
either (`differentiate/shadow/tagged_words.py`):

    d = load double, p                                      d = load i64, p
    e = phi double [d], [y]                     ->          e = phi i64 [d], [bitcast double y to i64]
    store double e, q                                       store i64 e, q
    z = fadd double d, 1                                    z = fadd double (bitcast i64 d to double), 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import ACCESS, CONFLICT
from irgrad.engine.analyses.memory.tbaa import AS_FLOAT, NO_POINTER, TYPE_TAG, Tbaa, type_tag, word_node
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    ConstFloat,
    ConstUndef,
    ConstZero,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import CHOICES
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.types import Type
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.reinterpret.unions import bits_of_float

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts

__all__ = ["Moves", "move_words"]

_WORD = 8
_OWN = ("alloca", "heap", "function")
_State = tuple[Type, list[Value], dict[str, str], tuple[str, ...]]
_CASTS = {ty.F64: ("bitcast", "bitcast"), ty.PTR: ("ptrtoint", "inttoptr")}
"""To an integer and back."""


class Moves:
    """What was changed, to be undone where the module has no derivative then: that doubles and pointers share memory is
    seen of more than unions, of objects that nothing tells apart, and there each stays what it is. The primal sweep of
    reverse mode looks whether that is so: beside what is loaded as a double no shadow of a pointer may lie
    (`tagged_words.look`). Not undone where it is one object that holds both, where pointers may be doubles, which
    a null pointer cannot be told from, and where the shadows of doubles are not zero then: in forward mode, say."""

    def __init__(self) -> None:
        self.allowed = True
        self._certain = False
        self._watched: list[Instruction] = []
        self._before: dict[Function, list[tuple[Block, list[tuple[Instruction, _State]]]]] = {}

    def keep(self, fn: Function) -> None:
        """The function as it is now, unless an earlier state is kept."""
        if fn not in self._before:
            self._before[fn] = [(block, [(i, _state(i)) for i in block.instructions]) for block in fn.blocks]

    @property
    def untouched(self) -> bool:
        """Nothing was changed yet: what is seen once words have been told of may follow from that."""
        return not self._before

    def found(self, facts: Facts, begins: list[Instruction]) -> None:
        """Note what a web begins with, as long as nothing is changed."""
        loads = [instr for instr in begins if instr.opcode == "load" and instr.type is ty.F64]
        self._watched += loads
        self._certain |= len(loads) < len(begins)
        self._certain |= any(len(facts.types.ranges.places(load.operands[0])) == 1 for load in loads)

    def undo(self, module: Module) -> bool:
        """Restore all functions, and allow no more. True when anything was changed, and may be as it was."""
        if self._certain:
            return False
        self.allowed = False
        for rows in self._before.values():
            for block, instructions in rows:
                block.instructions = [instr for instr, _ in instructions]
                for instr, (type_, operands, metadata, flags) in instructions:
                    instr.type, instr.operands, instr.metadata, instr.flags = type_, operands, metadata, flags
        for load in self._watched:
            load.metadata[NO_POINTER] = word_node(module)
        return bool(self._before)


def _state(instr: Instruction) -> _State:
    return instr.type, list(instr.operands), dict(instr.metadata), instr.flags


def move_words(facts: Facts, moves: Moves) -> bool:
    """Doubles that may be pointers, and are moved, are moved as integers, and pointers that may be doubles. True when
    anything changed."""
    if not moves.allowed:
        return False
    tbaa, changed = Tbaa(facts.module), False
    first = moves.untouched
    told: list[Instruction] = []
    loads: list[Instruction] = []
    for fn in facts.pointers.functions:
        begins = {kind: [i for i in fn.instructions() if i.type is kind and _either(facts, i, tbaa)] for kind in _CASTS}
        stores = [instr for instr in fn.instructions() if instr.opcode == "store" and _untold(facts, instr, tbaa)]
        webs = [(kind, _moved(fn, found, kind)) for kind, found in begins.items() if found]
        if stores or any(web for _, web in webs):
            moves.keep(fn)
        told += stores
        for kind, web in webs:
            if web:
                if first:
                    moves.found(facts, [instr for instr in begins[kind] if instr in web])
                accesses = _rewrite(fn, web, kind)
                loads += [instr for instr in accesses if instr.opcode == "load" and kind is ty.F64]
                told += [instr for instr in accesses if _conflict(facts, instr.operands[instr.opcode == "store"])]
                changed = True
    if changed or told:
        node = word_node(facts.module)
        for instr in loads:
            instr.metadata[AS_FLOAT] = node
        for instr in told:
            instr.metadata.pop("tbaa", None)
            instr.metadata[TYPE_TAG] = node
    return changed or bool(told)


def _untold(facts: Facts, store: Instruction, tbaa: Tbaa) -> bool:
    """A word that may be a double or a pointer is stored where it is not known that both lie."""
    value, address = store.operands
    tag = type_tag(store)
    if value.type is not ty.I64 or (tag is not None and tbaa.kind(tag) is not None) or not _own(facts, address):
        return False
    if facts.types.carriers.layout(value) != ((0, CONFLICT),) or facts.types.carriers.floats(value) != {ty.F64}:
        return False
    return not _conflict(facts, address)


def _both(facts: Facts, address: Value) -> bool:
    """Doubles and pointers were seen in the word, or at the same places of an array of which it may be one: what says
    of one element that it is a double may be the very load that moves it. An index of which nothing is known says
    nothing."""
    if any(kind is CONFLICT for _, kind in facts.types.access(address, _WORD)):
        return True
    for bit, places in facts.types.ranges.places(address).items():
        near = [item for _, item in facts.types.record(bit).near(places, _WORD)
                if item[3] == ACCESS and not (item[0].below and item[0].stride <= _WORD)]  # fmt: skip
        pointers = {where for where, kind, *_ in near if kind is ty.PTR}
        if any(kind is ty.F64 and where in pointers for where, kind, *_ in near):
            return True
    return False


def _conflict(facts: Facts, address: Value) -> bool:
    return any(kind is CONFLICT for _, kind in facts.types.access(address, _WORD))


def _own(facts: Facts, address: Value) -> bool:
    """Memory of the program's own, of which the derivative makes the shadow."""
    spots, objects = facts.types.ranges.places(address), facts.pointers.objects
    return bool(spots) and all(
        objects[bit].kind in _OWN or (isinstance(site := objects[bit].site, GlobalVariable) and site.constant)
        for bit in spots
    )


def _either(facts: Facts, instr: Instruction, tbaa: Tbaa) -> bool:
    """A double that is loaded where pointers may lie besides, or cast from an integer that may be one; a pointer where
    doubles do."""
    source, kind = instr.operands[0] if instr.operands else instr, instr.type
    if instr.opcode == "bitcast":
        return source.type is ty.I64 and bool(facts.pointers.of(source))
    if instr.opcode == "inttoptr":
        return source.type is ty.I64 and facts.types.carriers.either(source, 0)
    if instr.opcode != "load" or instr.volatile or instr.ordering:
        return False
    tag = type_tag(instr)
    if tag is not None and tbaa.kind(tag) is kind:
        return False
    return _own(facts, source) and _both(facts, source)


def _moved(fn: Function, begins: list[Instruction], kind: Type) -> dict[Value, None]:
    """Those of some values, and of what is chosen among them and others, that are stored or become integers."""
    users = uses_of(fn.blocks)
    ends: set[Value] = set()
    for instr in fn.instructions():
        plain = instr.opcode == "store" and not instr.volatile and not instr.ordering
        if plain or (instr.opcode == _CASTS[kind][0] and instr.type is ty.I64):
            ends.add(instr.operands[0])
    work: list[Value] = list(ends)
    for value in work:  # grows while it runs
        if isinstance(value, Instruction) and value.opcode in CHOICES:
            fresh = [o for o in value.operands[value.opcode == "select":] if o not in ends]
            ends.update(fresh)
            work += fresh
    web: dict[Value, None] = dict.fromkeys(value for value in begins if value in ends)
    work = list(web)
    for value in work:
        joined = [user for user in users.get(value, ()) if user.opcode in CHOICES and user in ends and user not in web
                  and user.type is kind]  # fmt: skip
        web |= dict.fromkeys(joined)
        work += joined
    return web


def _rewrite(fn: Function, web: dict[Value, None], kind: Type) -> list[Instruction]:
    """The web in integers, with casts where what it holds comes in or goes out. Returns the loads and stores."""
    into, out_of = _CASTS[kind]
    replaced: dict[Value, Value] = {}
    accesses: list[Instruction] = []
    for value in web:
        assert isinstance(value, Instruction)
        if value.opcode == out_of:
            replaced[value] = value.operands[0]
        else:
            value.type, value.flags = ty.I64, ()
    for instr in list(fn.instructions()):
        chosen = instr in web and instr.opcode in CHOICES
        if instr.opcode == into and instr.type is ty.I64 and instr.operands[0] in web:
            replaced[instr] = instr.operands[0]
            continue
        for i, operand in enumerate(instr.operands):
            stored = instr.opcode == "store" and i == 0
            if operand in web and not chosen and not stored:
                instr.operands[i] = _cast(instr, i, out_of, replaced.get(operand, operand), kind)
            elif chosen and operand not in web and (i or instr.opcode == "phi"):
                instr.operands[i] = _cast(instr, i, into, operand, ty.I64)
        if (instr.opcode == "load" and instr in web) or (instr.opcode == "store" and instr.operands[0] in web):
            accesses.append(instr)
            instr.metadata = {k: v for k, v in instr.metadata.items() if k == "dbg"}
    replace_uses(fn, replaced)
    for block in fn.blocks:
        block.instructions = [instr for instr in block.instructions if instr not in replaced]
    return accesses


def _cast(user: Instruction, number: int, opcode: str, value: Value, type_: Type) -> Value:
    """An operand of an instruction as another type."""
    block = user.blocks[number] if user.opcode == "phi" else user.block
    assert block is not None
    at = len(block.instructions) - 1 if user.opcode == "phi" else block.instructions.index(user)
    if type_ is ty.I64 and isinstance(value, ConstFloat | ConstZero | ConstUndef):
        return bits_of_float(value, type_, block, at)
    cast = Instruction(opcode, type_, [value])
    cast.block = block
    block.instructions.insert(at, cast)
    return cast
