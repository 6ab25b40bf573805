"""Vectors of floats that are loaded from memory in which something else lies as well, taken apart lane by lane.

LLVM puts the members of a struct that it splits into one variable of a vector type, `{double, long, double *}` into
`<4 x double>`, say; what is no float it takes out through the vector's bits:

    v = load <4 x double>, p                               a = load double, p
    x = shufflevector v, [0 0 0 0]               ->        x = shufflevector (insertelement a, 0), [0 0 0 0]
    q = inttoptr (extractelement (bitcast v), 2)           q = inttoptr (load i64, p + 16)

So each lane has the type of its use before the analyses ask what the memory holds. A vector that is used in any other
way stays whole.

A struct that is copied by words is loaded as a vector of integers, and a member that is asked for afterwards is taken
out of that. It is loaded from its own place, so that what is known of the place, and of no other, is known of it:

    v = load <2 x i64>, p                                  v = load <2 x i64>, p
    store v, q                                   ->        store v, q
    x = bitcast (extractelement v, 1) to double            x = load double, p + 8
"""

from __future__ import annotations

from math import gcd

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, ConstUndef, ConstZero, Function, Instruction, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["lanes_read", "load_members", "split_mixed_vectors"]

_MEMBERS = (ty.I32, ty.I64, ty.F32, ty.F64)


def split_mixed_vectors(fn: Function) -> bool:
    """Vectors of floats beside something else in memory are loaded lane by lane. Returns whether anything changed."""
    views = [i for i in fn.instructions() if _is_view(i)]
    if not views:
        return False
    users = uses_of(fn.blocks)
    replaced: dict[Value, Value] = {}
    for block in fn.blocks:
        old = block.instructions
        if not any(map(_is_load, old)):
            continue
        block.instructions = []
        for instr in old:
            block.instructions.append(instr)
            if _is_load(instr) and (numbers := _numbers(instr, users)):
                block.instructions.pop()
                _split(block, instr, users, numbers, replaced)
    replace_uses(fn, replaced)
    return bool(replaced)


def load_members(fn: Function) -> bool:
    """Elements of vectors of integers that are loaded are loaded from their own places. Returns whether anything
    changed."""
    users: Uses | None = None
    replaced: dict[Value, Value] = {}
    for block in fn.blocks:
        old = block.instructions
        if not any(map(_is_whole, old)):
            continue
        users = users or uses_of(fn.blocks)
        block.instructions = []
        for instr in old:
            block.instructions.append(instr)
            if _is_whole(instr):
                _load_members(block, instr, users, replaced)
    replace_uses(fn, replaced)
    gone = {view for pick in replaced if isinstance(pick, Instruction) for view in pick.operands[:1]
            if isinstance(view, Instruction) and view.opcode == "bitcast"
            and all(user in replaced for user in (users or {}).get(view, ()))}  # fmt: skip
    for block in fn.blocks if replaced else ():
        block.instructions = [instr for instr in block.instructions if instr not in replaced and instr not in gone]
    return bool(replaced)


def _is_whole(instr: Instruction) -> bool:
    type_ = instr.type
    return (instr.opcode == "load" and isinstance(type_, ty.VectorType) and type_.elem.is_int
            and not instr.volatile and not instr.ordering)  # fmt: skip


def _load_members(block: Block, load: Instruction, users: Uses, replaced: dict[Value, Value]) -> None:
    b, loaded = Builder(block), dict[tuple[int, ty.Type], Value]()
    b.metadata = {"dbg": load.metadata["dbg"]} if "dbg" in load.metadata else {}
    for view in (load, *(u for u in users.get(load, ()) if u.opcode == "bitcast")):
        if not isinstance(view.type, ty.VectorType) or view.type.elem not in _MEMBERS:
            continue
        for pick in users.get(view, ()):
            if pick.opcode != "extractelement" or not isinstance(pick.operands[1], ConstInt):
                continue
            casts = [u for u in users.get(pick, ()) if u.opcode == "bitcast" and u.type.is_float]
            for value in (pick, *casts):
                at, type_ = ty.store_size(pick.type) * pick.operands[1].value, value.type
                if (at, type_) not in loaded:
                    place = b.gep(ty.I8, load.operands[0], at)
                    loaded[at, type_] = b.load(type_, place, gcd(load.align or 1, at))
                replaced[value] = loaded[at, type_]


def lanes_read(vector: Value, users: Uses) -> set[int] | None:
    """The lanes of a vector that its users read, as floats or as bits; None when they may read any."""
    read: set[int] = set()
    for user in users.get(vector, ()):
        match user.opcode:
            case "bitcast" if _is_view(user):
                lanes = lanes_read(user, users)
            case "extractelement" if isinstance(user.operands[1], ConstInt):
                lanes = {user.operands[1].value}
            case "shufflevector":
                lanes = _shuffled(user, vector)
            case _:
                lanes = None
        if lanes is None:
            return None
        read |= lanes
    return read


def _shuffled(shuffle: Instruction, vector: Value) -> set[int] | None:
    """The lanes of one operand that a shuffle takes."""
    first, second, mask = shuffle.operands
    assert isinstance(first.type, ty.VectorType)
    count = first.type.count
    if isinstance(mask, ConstZero):
        return {0} if first is vector else set()
    if isinstance(mask, ConstUndef):
        return set()
    chosen = {e.value for e in getattr(mask, "elems", ()) if isinstance(e, ConstInt)}
    if not getattr(mask, "elems", ()):
        return None
    return {n for n in chosen if n < count and first is vector} | {n - count for n in chosen
                                                                   if n >= count and second is vector}  # fmt: skip


def _is_load(instr: Instruction) -> bool:
    type_ = instr.type
    return (instr.opcode == "load" and isinstance(type_, ty.VectorType) and type_.elem is ty.F64
            and not instr.volatile and not instr.ordering)  # fmt: skip


def _is_view(instr: Instruction) -> bool:
    """The bits of a vector of doubles, lane by lane."""
    if instr.opcode != "bitcast" or not isinstance(instr.type, ty.VectorType) or instr.type.elem is not ty.I64:
        return False
    source = instr.operands[0].type
    return isinstance(source, ty.VectorType) and source.elem is ty.F64


def _numbers(load: Instruction, users: Uses) -> set[int]:
    """The lanes that are read as bits only, when some lane is made a pointer and the vector can be taken apart."""
    views = [u for u in users.get(load, ()) if _is_view(u)]
    picks = [pick for view in views for pick in users.get(view, ())]
    if not any(u.opcode == "inttoptr" for pick in picks for u in users.get(pick, ())):
        return set()
    if lanes_read(load, users) is None or any(pick.opcode != "extractelement" for pick in picks):
        return set()
    bits = {pick.operands[1].value for pick in picks if isinstance(pick.operands[1], ConstInt)}
    return bits if bits.isdisjoint(_floats(load, users)) else set()


def _floats(load: Instruction, users: Uses) -> set[int]:
    """The lanes that are read as floats."""
    rest: Uses = {load: [u for u in users.get(load, ()) if not _is_view(u)]}
    return lanes_read(load, rest) or set()


def _split(block: Block, load: Instruction, users: Uses, numbers: set[int], replaced: dict[Value, Value]) -> None:
    b = Builder(block)
    b.metadata = {"dbg": load.metadata["dbg"]} if "dbg" in load.metadata else {}
    align = min(load.align or 8, 8)
    vector: Value = ConstUndef(load.type, poison=True)
    for lane in sorted(_floats(load, users)):
        vector = b.insertelement(vector, b.load(ty.F64, _lane(b, load, lane), align), lane)
    loaded = {lane: b.load(ty.I64, _lane(b, load, lane), align) for lane in sorted(numbers)}
    replaced[load] = vector
    for view in users.get(load, ()):
        for pick in users.get(view, ()) if _is_view(view) else ():
            where = pick.operands[1]
            assert isinstance(where, ConstInt)
            replaced[pick] = loaded[where.value]


def _lane(b: Builder, load: Instruction, lane: int) -> Value:
    return b.gep(ty.I8, load.operands[0], 8 * lane)
