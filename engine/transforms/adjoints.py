"""The reverse of each instruction: what its adjoint adds to the adjoints of its operands and to shadow memory.

Each function gets the `Reverse` of the function being differentiated and one instruction of the original. Let x^ be
the adjoint of x, M^ the shadow memory. Then, run backwards:

    y = f(a, b)      a^ += f_a y^ ; b^ += f_b y^        y = load p       M^[p] += y^
    store v, p       v^ += M^[p] ; M^[p] = 0            y = c ? a : b    a^ += c ? y^ : 0 ; b^ += c ? 0 : y^
    copy q <- p      M^[p] += M^[q] ; M^[q] = 0         fill             M^[q] = 0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irgrad.engine.analyses.effects import effect_of
from irgrad.engine.analyses.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    CallInfo,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.transforms import aliased, apart, either, lanes
from irgrad.engine.transforms.augment import augmented_type
from irgrad.engine.transforms.carried import BITS, add_bits, adjoint_of_bits, kinds_of
from irgrad.engine.transforms.carried import add as add_adjoints
from irgrad.engine.transforms.copies import floats_ended, layout_of_copy
from irgrad.engine.transforms.leaves import add, has_float, has_pointer, mask_lanes, zero_of
from irgrad.engine.transforms.refuse import missing, refuse
from irgrad.engine.transforms.rows import application
from irgrad.engine.transforms.ruled import reverse_pair, ruled_site
from irgrad.engine.transforms.unit import Unit

if TYPE_CHECKING:
    from irgrad.engine.analyses.rulebook import Site
    from irgrad.engine.transforms.reverse import Reverse
    from irgrad.engine.transforms.unit import Abi


def reverse_instruction(r: Reverse, instr: Instruction) -> None:
    """Emit the reverse of one instruction."""
    handler = HANDLERS.get(instr.opcode)
    if handler is not None:
        handler(r, instr)
    elif instr.type is not ty.VOID and r.active(instr):
        if instr.opcode in BITS:
            adjoint_of_bits(r, instr)
        else:
            by_row(r, instr)


def by_row(r: Reverse, instr: Instruction) -> None:
    """Arithmetic and calls to known functions."""
    amount = r.take(instr)
    if amount is None:
        return
    applied = application(r.unit, instr)
    if applied is None:
        raise refuse(r.unit, instr, f"`{instr.opcode}` on an active value has no derivative")
    active = [r.active(o) for o in applied.operands]
    terms = applied.adjoints(
        r.unit, r.b, amount, active, lambda i: r.recall.value(applied.operands[i]), lambda: r.recall.value(instr)
    )
    guarded = instr in r.guarded and amount.type.is_fp and _singular(instr)
    skipped = r.b.fcmp("oeq", amount, zero_of(amount.type)) if guarded else None
    for operand, term in zip(applied.operands, terms, strict=True):
        if skipped is not None and term is not None and term.type.is_fp:
            r.give(operand, r.b.select(skipped, zero_of(term.type), term))
        else:
            r.give(operand, term)


SINGULAR = frozenset(
    "sqrt log log2 log10 log1p logb pow asin acos atanh acosh cbrt hypot atan2 lgamma tgamma powi y0 y1".split()
)
"""Functions with infinite derivatives at the edge of their domain."""


def _singular(instr: Instruction) -> bool:
    if instr.opcode != "call":
        return instr.opcode == "fdiv"
    name = instr.callee_name or ""
    name = name.split(".")[1] if name.startswith("llvm.") else name
    return name in SINGULAR or name.removesuffix("f") in SINGULAR


def guarded_values(fn: Function) -> set[Instruction]:
    """Floats that a select may throw away, and what they are computed from.

    LLVM makes `x > 0 ? sqrt(x) : 0` of branches. A value not taken has the adjoint zero, and 0 x inf must not become
    part of the gradient.
    """
    found: set[Instruction] = set()
    work = [o for i in fn.instructions() if i.opcode == "select" and i.type.is_fp for o in i.operands[1:]]
    while work:
        value = work.pop()
        if isinstance(value, Instruction) and value.type.is_fp and value not in found:
            if value.opcode in ("phi", "load"):
                continue
            found.add(value)
            work += value.operands
    return found


# -- moving values -------------------------------------------------------------------------------------------


def select(r: Reverse, instr: Instruction) -> None:
    """c ? a : b; the branch not taken receives a true zero, never 0 x inf."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    cond, a, b = instr.operands
    chosen = lanes.condition(r.b, r.recall.value(cond), amount.type, r.unit.width)
    if r.active(a):
        r.give(a, r.b.select(chosen, amount, zero_of(amount.type)))
    if r.active(b):
        r.give(b, r.b.select(chosen, zero_of(amount.type), amount))


def same(r: Reverse, instr: Instruction) -> None:
    """freeze, and bitcasts between equal layouts of floats."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    source = instr.operands[0]
    if source.type is not instr.type:
        if source.type.scalar is not instr.type.scalar and not _same_bits(r, instr):
            raise refuse(r.unit, instr, "the bits of an active float are read as something else")
        width = r.unit.width
        if isinstance(width, apart.Apart) and source.type.is_fp is not instr.type.is_fp:
            parts = [apart.lane(r.b, instr.type, amount, j, width) for j in range(width)]
            amount = apart.join(r.b, source.type, [r.b.cast("bitcast", part, source.type) for part in parts])
        else:
            amount = r.b.cast("bitcast", amount, r.unit.wide(source.type))
    r.give(source, amount)


def _same_bits(r: Reverse, cast: Instruction) -> bool:
    """A float as an integer that carries it, or back."""
    source = cast.operands[0]
    whole, other = (source, cast) if source.type.is_fp else (cast, source)
    return other.type.scalar.is_int and whole.type.scalar in kinds_of(r.unit, other) and r.active(source)


def float_cast(r: Reverse, instr: Instruction) -> None:
    """fptrunc and fpext: the adjoint is cast back."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is not None:
        back = "fpext" if instr.opcode == "fptrunc" else "fptrunc"
        r.give(instr.operands[0], r.b.cast(back, amount, r.unit.wide(instr.operands[0].type)))


def extractvalue(r: Reverse, instr: Instruction) -> None:
    """Part of an aggregate."""
    source = instr.operands[0]
    if not (r.active(instr) and r.active(source)):
        return
    amount = r.take(instr)
    if amount is not None:
        r.give(source, r.b.insertvalue(zero_of(r.unit.wide(source.type)), amount, *instr.indices))


def insertvalue(r: Reverse, instr: Instruction) -> None:
    """Aggregate with one part replaced."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    whole, part = instr.operands
    if r.active(part):
        r.give(part, r.b.extractvalue(amount, *instr.indices))
    if r.active(whole):
        r.give(whole, r.b.insertvalue(amount, zero_of(r.unit.wide(part.type)), *instr.indices))


def extractelement(r: Reverse, instr: Instruction) -> None:
    """Lane of a vector."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is not None:
        vector, lane = instr.operands
        whole = zero_of(r.unit.wide(vector.type))
        r.give(vector, lanes.insert(r.b, whole, amount, r.recall.value(lane), r.unit.width))


def insertelement(r: Reverse, instr: Instruction) -> None:
    """Vector with one lane replaced."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    vector, part, lane = instr.operands
    where = r.recall.value(lane)
    if r.active(part):
        r.give(part, lanes.extract(r.b, amount, where, r.unit.width))
    if r.active(vector):
        r.give(vector, lanes.insert(r.b, amount, zero_of(r.unit.wide(part.type)), where, r.unit.width))


def shufflevector(r: Reverse, instr: Instruction) -> None:
    """Each lane of the result goes back to the lane it came from."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    first, second, mask = instr.operands
    assert isinstance(first.type, ty.VectorType) and isinstance(instr.type, ty.VectorType)
    width = r.unit.width
    parts: dict[tuple[int, int], Value] = {}
    r.b.flags = r.unit.flags
    for lane, source in enumerate(mask_lanes(mask, instr.type.count)):
        if source is None:
            continue
        to = divmod(source, first.type.count)
        part: Value = lanes.extract(r.b, amount, lane, width)
        parts[to] = _add_lanes(r, instr, parts[to], part) if to in parts else part
    r.b.flags = ()
    totals: list[Value] = [zero_of(r.unit.wide(first.type)), zero_of(r.unit.wide(first.type))]
    for (side, at), part in parts.items():
        totals[side] = lanes.insert(r.b, totals[side], part, at, width)
    for operand, total in zip((first, second), totals, strict=True):
        if not isinstance(total, ConstZero):
            r.give(operand, total)


def _add_lanes(r: Reverse, instr: Instruction, x: Value, y: Value) -> Value:
    """The sum of two adjoints of a lane, also where the lanes are integers that carry floats."""
    if instr.type.is_fp:
        return add(r.b, x, y)
    kinds = kinds_of(r.unit, instr) | kinds_of(r.unit, instr.operands[0])
    if len(kinds) != 1 or ty.store_size(instr.type.scalar) % max(map(ty.store_size, kinds)):
        raise refuse(r.unit, instr, "an active float travels as an integer, and its type is not known")
    return add_bits(r.b, kinds, x, y)


# -- memory --------------------------------------------------------------------------------------------------


def load(r: Reverse, instr: Instruction) -> None:
    """The adjoint is added to shadow memory."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    if either.reverse_load(r, instr, amount) or r.neighbours.give(instr, amount):
        return
    pointer = r.recall.shadow(instr.operands[0])
    r.b.flags = r.unit.flags
    before = load_shadow(r, instr, instr.type, pointer)
    total = add_adjoints(r.unit, r.b, instr, before, amount)
    r.b.flags = ()
    if r.unit.either.beside(instr):
        total = r.b.select(r.b.fcmp("oeq", amount, zero_of(amount.type)), before, total)
    total = _kept(r, instr.operands[0], pointer, instr.type, total, before)
    store_shadow(r, instr, instr.type, pointer, total)


def load_shadow(r: Reverse, like: Instruction, type_: ty.Type, pointer: Value) -> Value:
    """A load from shadow memory with the alignment and type tag of the access it mirrors."""
    r.unit.accessed(type_)
    return lanes.load(r.b, type_, pointer, r.unit.width, like.align, _tags(r, like))


def store_shadow(r: Reverse, like: Instruction, type_: ty.Type, pointer: Value, value: Value) -> None:
    """A store to shadow memory with the alignment and type tag of the access it mirrors."""
    r.unit.accessed(type_)
    lanes.store(r.b, type_, value, pointer, r.unit.width, like.align, _tags(r, like))


def _tags(r: Reverse, like: Instruction) -> dict[str, str]:
    return {**{k: v for k, v in like.metadata.items() if k == "tbaa"}, **r.b.metadata}


def store(r: Reverse, instr: Instruction) -> None:
    """The stored value receives what shadow memory holds, and shadow memory is cleared."""
    value, target = instr.operands
    if not r.unit.activity.pointer(target):
        return
    if either.reverse_store(r, instr):
        return
    if has_float(value.type) or r.active(value):
        pointer = r.recall.shadow(target)
        nothing: Value = zero_of(r.unit.wide(value.type))
        if r.active(value):
            amount = load_shadow(r, instr, value.type, pointer)
            store_shadow(r, instr, value.type, pointer, _kept(r, target, pointer, value.type, nothing, amount))
            if r.unit.runtime_activity:
                amount = aliased.read(r.unit, r.b, value.type, r.recall.value(target), pointer, amount)
            r.give(value, amount)
        elif not has_pointer(value.type):
            if r.unit.runtime_activity:
                before = load_shadow(r, instr, value.type, pointer)
                nothing = _kept(r, target, pointer, value.type, nothing, before)
            store_shadow(r, instr, value.type, pointer, nothing)
        return
    if has_pointer(value.type):
        return
    size = ty.store_size(value.type)
    if r.unit.runtime_activity:
        aliased.clear(r.unit, r.b, r.recall.value(target), r.recall.shadow(target), ConstInt(ty.I64, size))
        return
    for offset, kind in floats_ended(r.unit.types.access(target, size), value.type):
        for at in apart.each(r.b, r.recall.shadow(target), r.unit.width):
            place = r.b.gep(ty.I8, at, offset * lanes.scale(r.unit.width))
            r.b.store(zero_of(lanes.wide(kind, lanes.scale(r.unit.width))), place, align=1)


def _kept(r: Reverse, address: Value, shadow: Value, type_: ty.Type, new: Value, before: Value) -> Value:
    """What to write to shadow memory, which under runtime activity may be the primal's."""
    if not r.unit.runtime_activity:
        return new
    return aliased.kept(r.unit, r.b, type_, r.recall.value(address), shadow, new, before)


def call(r: Reverse, instr: Instruction) -> None:
    """Calls: memory operations, derived functions, rows."""
    callee = resolve(instr.callee)
    if isinstance(callee, Function) and callee.is_declaration:
        effect = effect_of(r.unit.module, instr, callee)
        if effect.copy is not None:
            copy(r, instr, effect.copy)
            return
        if effect.fill is not None:
            fill(r, instr, effect.fill)
            return
        if effect.allocates and effect.zeroed and r.unit.between:
            _zero_again(r, instr, effect.sizes)
        if effect.allocates or effect.frees is not None:
            return
    if not r.unit.activity.call(instr):
        return
    site = ruled_site(r.unit, instr)
    if site is not None:
        ruled_call(r, instr, site)
        return
    if r.unit.call_targets(instr):
        derived_call(r, instr)
        return
    if r.active(instr):
        if application(r.unit, instr) is None:
            raise missing(r.unit, instr)
        by_row(r, instr)


def _zero_again(r: Reverse, instr: Instruction, sizes: tuple[int, ...]) -> None:
    """The reverse sweep of a tape that is used again finds the shadow of zeroed memory as it was."""
    if not r.sweep.shadowed(instr):
        return
    total: Value = ConstInt(ty.I64, 1)
    for i in sizes:
        total = r.b.mul(total, r.b.to_i64(r.recall.value(instr.args[i]), signed=False), ())
    fn = r.unit.declare("llvm.memset.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1)))
    wide = lanes.scaled(r.b, total, r.unit.width)
    for at in apart.each(r.b, r.recall.shadow(instr), r.unit.width):
        r.b.call(fn, [at, ConstInt(ty.I8, 0), wide, ConstInt(ty.I1, 0)])


def copy(r: Reverse, instr: Instruction, where: tuple[int, int, int]) -> None:
    """memcpy and memmove: float fields of the target's adjoint move to the source's."""
    target, source, size = (instr.args[i] for i in where)
    if not r.unit.activity.pointer(target):
        return
    to_source = r.unit.activity.pointer(source)
    if instr in r.unit.either.copies:
        either.reverse_copy(r, instr, where)
        return
    period, fields = layout_of_copy(r.unit, instr, where)
    moved = [(offset, kind) for offset, kind in fields if isinstance(kind, ty.FloatType)]
    if not moved:
        return
    length = r.recall.value(size)
    shadow = r.recall.shadow(target)
    if r.unit.runtime_activity:
        aliased.reverse_copy(r, instr, where, length, moved, period)
        return
    if to_source and len(moved) > 1 and "memmove" in (instr.callee.name or ""):
        for into, out_of in apart.rows(r.b, [shadow, r.recall.shadow(source)], r.unit.width):
            _move(r, into, out_of, length, period, moved)
        return
    width = r.unit.width
    pointers = apart.rows(r.b, [shadow, r.recall.shadow(source)] if to_source else [shadow], width)
    for offset, kind in moved:
        for name, extra in lanes.helpers(r.b, kind, length, period, offset, width):
            fn = r.unit.runtime(f"irgrad.adjoint.{'copy' if to_source else 'clear'}.{name}")
            for row in pointers:
                r.b.call(fn, [*row, *extra])


def _move(
    r: Reverse, target: Value, source: Value, length: Value, period: int, moved: list[tuple[int, ty.FloatType]]
) -> None:
    """Several fields of memory that may overlap: one after the other would meet what the one before has written."""
    declare, b, width = r.unit.declare, r.b, r.unit.width
    length = b.to_i64(length, signed=False)
    wide = lanes.scaled(b, length, width)
    twin = b.call(declare("malloc", ty.function(ty.PTR, (ty.I64,)), "", "noalias"), [wide])
    whole = declare("llvm.memcpy.p0.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1)))
    b.call(whole, [twin, target, wide, ConstInt(ty.I1, 0)])
    places = [p for offset, kind in moved for p in lanes.helpers(b, kind, length, period, offset, width)]
    for name, extra in places:
        b.call(r.unit.runtime(f"irgrad.adjoint.clear.{name}"), [target, *extra])
    for name, extra in places:
        b.call(r.unit.runtime(f"irgrad.adjoint.copy.{name}"), [twin, source, *extra])
    b.call(declare("free", ty.function(ty.VOID, (ty.PTR,))), [twin])


def fill(r: Reverse, instr: Instruction, where: tuple[int, int, int]) -> None:
    """memset: the adjoint of what is overwritten is cleared."""
    target, size = instr.args[where[0]], instr.args[where[2]]
    if not r.unit.activity.pointer(target):
        return
    # Shadow pointers in it are not read again: what was there before the fill, the primal sweep saved if it is needed.
    length = r.recall.value(size)
    ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
    clear = r.unit.declare("llvm.memset.p0.i64", ftype)
    wide = lanes.scaled(r.b, r.b.to_i64(length), r.unit.width)
    if r.unit.runtime_activity:
        aliased.clear(r.unit, r.b, r.recall.value(target), r.recall.shadow(target), wide)
        return
    r.unit.swept(wide)
    for at in apart.each(r.b, r.recall.shadow(target), r.unit.width):
        r.b.call(clear, [at, ConstInt(ty.I8, 0), wide, ConstInt(ty.I1, 0)])


def ruled_call(r: Reverse, instr: Instruction, site: Site) -> None:
    """Call what a rule of the user writes for the reverse sweep."""
    pair = reverse_pair(r, instr, site)
    amount = r.take(instr) if instr.type is not ty.VOID and r.active(instr) else None
    args: list[Value] = []
    for i, arg in enumerate(instr.args):
        args.append(r.recall.value(arg) if i in pair.used else ConstUndef(arg.type, poison=True))
        if pair.shape.shadow[i]:
            absent = ConstUndef(r.unit.wide(ty.PTR), poison=True)
            args.append(r.recall.shadow(arg) if i in pair.shadows else absent)
    if pair.shape.active:
        args.append(amount if amount is not None else zero_of(r.unit.wide(instr.type)))
    args.append(r.recall.tape(instr) if pair.tape else ConstZero(ty.PTR))
    result = r.b.call(pair.reverse, args)
    for position, i in enumerate(i for i, active in enumerate(pair.shape.adjoint) if active):
        r.give(instr.args[i], r.b.extractvalue(result, position))


def derived_call(r: Reverse, instr: Instruction) -> None:
    """Call the reverse of the callee with the tape of this very call."""
    from irgrad.engine.transforms.split import reverse_type, split_functions

    assert instr.call is not None
    abi = r.unit.call_abi(instr)
    amount = r.take(instr) if instr.type is not ty.VOID and r.active(instr) else None
    args: list[Value] = []
    for i, arg in enumerate(instr.args):
        args.append(r.recall.value(arg))
        if i < len(abi.shadow) and abi.shadow[i]:
            args.append(r.recall.shadow(arg))
    if abi.ret_adjoint:
        args.append(amount if amount is not None else zero_of(r.unit.wide(instr.type)))
    args.append(r.recall.tape(instr))
    ftype = reverse_type(instr.call.fn_type, abi, r.unit.width)
    callee = resolve(instr.callee)
    if isinstance(callee, Function):
        entry: Value = split_functions(r.unit, callee)[1]
    else:
        descriptor = apart.first(r.b, r.recall.shadow(instr.callee), r.unit.width)
        entry = r.b.load(ty.PTR, r.b.gep(ty.PTR, descriptor, 2))
    result = r.b.insert(Instruction("call", ftype.ret, [*args, entry], call=CallInfo(ftype)))
    position = 0
    for i, arg in enumerate(instr.args):
        if i < len(abi.adjoint) and abi.adjoint[i]:
            r.give(arg, r.b.extractvalue(result, position))
            position += 1


HANDLERS: dict[str, Callable[[Reverse, Instruction], None]] = {
    "select": select, "freeze": same, "bitcast": same, "fptrunc": float_cast, "fpext": float_cast,
    "extractvalue": extractvalue, "insertvalue": insertvalue, "extractelement": extractelement,
    "insertelement": insertelement, "shufflevector": shufflevector, "load": load, "store": store, "call": call,
}  # fmt: skip

__all__ = ["HANDLERS", "Abi", "Unit", "augmented_type", "reverse_instruction"]
