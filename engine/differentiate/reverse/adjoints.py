"""The reverse of each instruction: what its adjoint adds to the adjoints of its operands and to shadow memory.

Each function gets the `Reverse` of the function being differentiated and one instruction of the original. Let x^ be
the adjoint of x, M^ the shadow memory. Then, run backwards:

    y = f(a, b)      a^ += f_a y^ ; b^ += f_b y^        y = load p       M^[p] += y^
    store v, p       v^ += M^[p] ; M^[p] = 0            y = c ? a : b    a^ += c ? y^ : 0 ; b^ += c ? 0 : y^
    copy q <- p      M^[p] += M^[q] ; M^[q] = 0         fill             M^[q] = 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.call_effects import effect_of
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.custom_rules.ruled import reverse_pair, ruled_site
from irgrad.engine.differentiate.layout import lanes, separate_shadows
from irgrad.engine.differentiate.layout.leaves import add, has_float, has_pointer, is_nothing, zero_of
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.differentiate.shadow import persistent_memory, runtime_activity, tagged_words
from irgrad.engine.differentiate.shadow.accumulate import accumulate
from irgrad.engine.differentiate.shadow.beside_pointers import divided
from irgrad.engine.differentiate.shadow.bit_sums import add_bits
from irgrad.engine.differentiate.shadow.carried import BITS, adjoint_of_bits, kinds_of
from irgrad.engine.differentiate.shadow.copies import clear_shadow, floats_ended, layout_of_copy, move_fields, only_ends
from irgrad.engine.differentiate.shadow.tagged_words import Either
from irgrad.engine.differentiate.shared.alias_scopes import shadow_scope
from irgrad.engine.differentiate.shared.conventions import augmented_type, reverse_type
from irgrad.engine.differentiate.shared.derived_functions import combined_function, split_functions
from irgrad.engine.differentiate.shared.refuse import missing, refuse
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.state import ReverseState
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import mask_lanes
from irgrad.engine.ir.model import (
    CallInfo,
    ConstAggregate,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.runtime.persistent_memory import CLEAR

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.conventions import Abi
    from irgrad.engine.differentiate.shared.rule_sites import Site


def reverse_instruction(r: ReverseState, instr: Instruction) -> None:
    """Emit the reverse of one instruction."""
    handler = HANDLERS.get(instr.opcode)
    if handler is not None:
        handler(r, instr)
    elif instr.type is not ty.VOID and r.active(instr):
        if instr.opcode in BITS:
            adjoint_of_bits(r, instr)
        else:
            by_row(r, instr)


def by_row(r: ReverseState, instr: Instruction) -> None:
    """Arithmetic and calls to known functions."""
    amount = r.take(instr)
    if amount is None:
        return
    applied = r.plan.reads.application(instr)
    if applied is None:
        raise refuse(r.unit, instr, f"`{instr.opcode}` on an active value has no derivative")
    active = [r.active(o) for o in applied.operands]
    terms = applied.adjoints(
        r.unit, r.b, amount, active, lambda i: r.recall.value(applied.operands[i]), lambda: r.recall.value(instr),
        strong=r.zeros.conditional(instr),
    )  # fmt: skip
    keep = _lanes_used(r, instr, amount)
    for i, (operand, term) in enumerate(zip(applied.operands, terms, strict=True)):
        if keep is None or term is None or term.type is not amount.type or applied.linear(i):
            r.give(operand, term)
        else:
            r.give(operand, r.b.select(keep, term, zero_of(term.type)))


def _lanes_used(r: ReverseState, instr: Instruction, amount: Value) -> Value | None:
    """The lanes in which products with this adjoint are formed; None: all of them. In a lane that nothing uses the
    adjoint is zero, and the slope may be infinite, NaN or poison."""
    if not amount.type.is_fp or not r.zeros.lacking(instr):
        return None
    assert isinstance(instr.type, ty.VectorType)
    given = r.zeros.given(instr)
    lane = ty.vector(instr.type.count, ty.I1)
    used = ConstAggregate(lane, [ConstInt(ty.I1, given >> i & 1) for i in range(instr.type.count)])
    return lanes.condition(r.b, used, amount.type, r.unit.width)


# -- moving values -------------------------------------------------------------------------------------------


def select(r: ReverseState, instr: Instruction) -> None:
    """c ? a : b; the branch not taken receives a true zero, never 0 x inf."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is None:
        return
    cond, a, b = instr.operands
    value = r.recall.value(cond)
    if r.zeros.conditional(instr) or r.zeros.lacking(instr):  # the condition may be poison where nobody asked for it
        value = r.b.insert(Instruction("freeze", value.type, [value]))
    chosen = lanes.condition(r.b, value, amount.type, r.unit.width)
    if r.active(a):
        r.give(a, r.b.select(chosen, amount, zero_of(amount.type)))
    if r.active(b):
        r.give(b, r.b.select(chosen, zero_of(amount.type), amount))


def same(r: ReverseState, instr: Instruction) -> None:
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
        if r.unit.memory.separate and source.type.is_fp is not instr.type.is_fp:
            parts = [separate_shadows.lane(r.b, instr.type, amount, j, width) for j in range(width)]
            amount = separate_shadows.join(r.b, source.type, [r.b.cast("bitcast", part, source.type) for part in parts])
        else:
            amount = r.b.cast("bitcast", amount, r.unit.wide(source.type))
    r.give(source, amount)


def _same_bits(r: ReverseState, cast: Instruction) -> bool:
    """A float as an integer that carries it, or back."""
    source = cast.operands[0]
    whole, other = (source, cast) if source.type.is_fp else (cast, source)
    return other.type.scalar.is_int and whole.type.scalar in kinds_of(r.unit, other) and r.active(source)


def float_cast(r: ReverseState, instr: Instruction) -> None:
    """fptrunc and fpext: the adjoint is cast back."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is not None:
        back = "fpext" if instr.opcode == "fptrunc" else "fptrunc"
        r.give(instr.operands[0], r.b.cast(back, amount, r.unit.wide(instr.operands[0].type)))


def extractvalue(r: ReverseState, instr: Instruction) -> None:
    """Part of an aggregate."""
    source = instr.operands[0]
    if not (r.active(instr) and r.active(source)):
        return
    amount = r.take(instr)
    if amount is not None:
        r.give(source, r.b.insertvalue(zero_of(r.unit.wide(source.type)), amount, *instr.indices))


def insertvalue(r: ReverseState, instr: Instruction) -> None:
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


def extractelement(r: ReverseState, instr: Instruction) -> None:
    """Lane of a vector."""
    if not r.active(instr):
        return
    amount = r.take(instr)
    if amount is not None:
        vector, lane = instr.operands
        whole = zero_of(r.unit.wide(vector.type))
        r.give(vector, lanes.insert(r.b, whole, amount, r.recall.value(lane), r.unit.width))


def insertelement(r: ReverseState, instr: Instruction) -> None:
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


def shufflevector(r: ReverseState, instr: Instruction) -> None:
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


def _add_lanes(r: ReverseState, instr: Instruction, x: Value, y: Value) -> Value:
    """The sum of two adjoints of a lane, also where the lanes are integers that carry floats."""
    if instr.type.is_fp:
        return add(r.b, x, y)
    kinds = kinds_of(r.unit, instr) | kinds_of(r.unit, instr.operands[0])
    if len(kinds) != 1 or ty.store_size(instr.type.scalar) % max(map(ty.store_size, kinds)):
        raise refuse(r.unit, instr, "an active float travels as an integer, and its type is not known")
    return add_bits(r.b, kinds, x, y)


# -- memory --------------------------------------------------------------------------------------------------


def load(r: ReverseState, instr: Instruction) -> None:
    """The adjoint is added to shadow memory."""
    amount = r.take(instr) if r.active(instr) else None
    if amount is None:
        return
    if tagged_words.reverse_load(r, instr, amount) or r.neighbours.give(instr, amount):
        return
    pointer = r.recall.shadow(instr.operands[0])
    if not (instr.type.scalar.is_float and r.zeros.lacking(instr)):
        _accumulate(r, instr, instr.type, pointer, pointer, amount)
        return
    # What the load only passes over belongs to others: to another lane whose shadow interleaves, to another thread.
    size = ty.store_size(instr.type.scalar)
    for first, count in _runs(r.zeros.given(instr)):
        type_ = ty.vector(count, instr.type.scalar) if count > 1 else instr.type.scalar
        at = r.unit.memory.moved(r.b, pointer, first * size)
        part = lanes.part(r.b, amount, first, count, r.unit.width)
        _accumulate(r, instr, type_, pointer, at, part)


def _accumulate(r: ReverseState, load: Instruction, type_: ty.Type, pointer: Value, at: Value, amount: Value) -> None:
    """Shadow memory `at` += amount; `pointer` is the shadow of the whole access."""

    def store(total: Value, before: Value) -> None:
        if r.unit.get(Either).beside(load):
            total = r.b.select(is_nothing(r.b, amount), before, total)
        if r.unit.runtime_activity:
            own = r.recall.value(load.operands[0])
            total = runtime_activity.kept(r.unit, r.b, type_, own, pointer, total, before)
        store_shadow(r, load, type_, at, total)

    accumulate(r.unit, r.b, load, amount, lambda: load_shadow(r, load, type_, at), store)


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """(first, count) of the runs of ones in a mask."""
    first = 0
    while mask >> first:
        count = 0
        while mask >> (first + count) & 1:
            count += 1
        if count:
            yield first, count
        first += count + 1


def load_shadow(r: ReverseState, like: Instruction, type_: ty.Type, pointer: Value) -> Value:
    """A load from shadow memory with the alignment, and the type tag, of the access it mirrors."""
    r.unit.accessed(type_)
    return r.unit.memory.load(r.b, type_, pointer, like.align, _tags(r, like, type_))


def store_shadow(r: ReverseState, like: Instruction, type_: ty.Type, pointer: Value, value: Value) -> None:
    """A store to shadow memory with the alignment and type tag of the access it mirrors."""
    r.unit.accessed(type_)
    r.unit.memory.store(r.b, type_, value, pointer, like.align, _tags(r, like, type_))


def _tags(r: ReverseState, like: Instruction, type_: ty.Type) -> dict[str, str]:
    tag = r.unit.types.tag_backwards(like)
    return {**({"tbaa": tag} if tag else {}), **r.b.metadata, **shadow_scope(r.unit, like, type_)}


def store(r: ReverseState, instr: Instruction) -> None:
    """The stored value receives what shadow memory holds, and shadow memory is cleared."""
    value, target = instr.operands
    if not r.unit.activity.pointer(target):
        return
    if tagged_words.reverse_store(r, instr):
        return
    if has_float(value.type) or r.active(value):
        pointer = r.recall.shadow(target)
        nothing: Value = zero_of(r.unit.wide(value.type))
        asked = runtime_activity.asked(r.unit, target, value)
        if r.active(value):
            before = load_shadow(r, instr, value.type, pointer)
            amount, nothing = divided(r.unit, r.b, value, before)
            if asked:
                own = r.recall.value(target)
                amount = runtime_activity.read(r.unit, r.b, value.type, own, pointer, amount, adjoint=True)
                nothing = runtime_activity.kept(r.unit, r.b, value.type, own, pointer, nothing, before)
            store_shadow(r, instr, value.type, pointer, nothing)
            r.give(value, amount)
        elif not has_pointer(value.type):
            if asked:
                before, own = load_shadow(r, instr, value.type, pointer), r.recall.value(target)
                nothing = runtime_activity.kept(r.unit, r.b, value.type, own, pointer, nothing, before)
            store_shadow(r, instr, value.type, pointer, nothing)
        return
    if has_pointer(value.type):
        return
    ended = floats_ended(r.unit.types.ended(target, ty.store_size(value.type)), value.type)
    if (ended or r.unit.runtime_activity) and runtime_activity.asked(r.unit, target):
        runtime_activity.clear_number(r.unit, r.b, r.recall.value(target), r.recall.shadow(target), value.type)
        return
    for offset, kind in ended:
        for at in separate_shadows.each(r.b, r.recall.shadow(target), r.unit.width):
            place = r.b.gep(ty.I8, at, offset * r.unit.memory.scale)
            clear_shadow(r.b, shadow_type(kind, r.unit.memory.scale), place, 1)


def call(r: ReverseState, instr: Instruction) -> None:
    """Calls: memory operations, derived functions, rows."""
    callee = resolve(instr.callee)
    if instr.callee_name == CLEAR:
        persistent_memory.clear(r.unit, r.b, instr)
        return
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
        if r.plan.reads.application(instr) is None:
            raise missing(r.unit, instr)
        by_row(r, instr)


def _zero_again(r: ReverseState, instr: Instruction, sizes: tuple[int, ...]) -> None:
    """The reverse sweep of a tape that is used again finds the shadow of zeroed memory as it was."""
    if not r.sweep.shadowed(instr):
        return
    total: Value = ConstInt(ty.I64, 1)
    for i in sizes:
        total = r.b.mul(total, r.b.to_i64(r.recall.value(instr.args[i]), signed=False), ())
    fn = r.unit.declare("llvm.memset.p0.i64", ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1)))
    wide = r.unit.memory.scaled(r.b, total)
    for at in separate_shadows.each(r.b, r.recall.shadow(instr), r.unit.width):
        r.b.call(fn, [at, ConstInt(ty.I8, 0), wide, ConstInt(ty.I1, 0)])


def copy(r: ReverseState, instr: Instruction, where: tuple[int, int, int]) -> None:
    """memcpy and memmove: float fields of the target's adjoint move to the source's."""
    target, source, size = (instr.args[i] for i in where)
    if not r.unit.activity.pointer(target):
        return
    if only_ends(r.unit, instr, where):
        fill(r, instr, where)
        return
    if instr in r.unit.get(Either).copies:
        tagged_words.reverse_copy(r, instr, where)
        return
    period, fields = layout_of_copy(r.unit, instr, where)
    moved = [(offset, kind) for offset, kind in fields if isinstance(kind, ty.FloatType)]
    if not moved:
        return
    length = r.recall.value(size)
    pointers = separate_shadows.rows(r.b, [r.recall.shadow(end) for end in (target, source)], r.unit.width)
    if r.unit.runtime_activity or (len(moved) == 1 and runtime_activity.asked(r.unit, target)):
        runtime_activity.reverse_copy(r, instr, where, length, moved, period)
        return
    if len(moved) > 1 and "memmove" in (instr.callee.name or ""):
        for into, out_of in pointers:
            move_fields(r, into, out_of, length, period, moved)
        return
    for offset, kind in moved:
        for name, extra in r.unit.memory.helpers(r.b, kind, length, period, offset):
            fn = r.unit.runtime(f"irgrad.adjoint.copy.{name}")
            for row in pointers:
                r.b.call(fn, [*row, *extra])


def fill(r: ReverseState, instr: Instruction, where: tuple[int, int, int]) -> None:
    """memset: the adjoint of what is overwritten is cleared."""
    target, size = instr.args[where[0]], instr.args[where[2]]
    if not r.unit.activity.pointer(target):
        return
    # Shadow pointers in it are not read again: what was there before the fill, the primal sweep saved if it is needed.
    length = r.recall.value(size)
    ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
    clear = r.unit.declare("llvm.memset.p0.i64", ftype)
    if persistent_memory.lasts(r.unit, target) and r.unit.holds_pointers(target):
        persistent_memory.clear_floats(r, instr, where, length)
        return
    wide = r.unit.memory.scaled(r.b, r.b.to_i64(length))
    if runtime_activity.asked(r.unit, target):
        runtime_activity.clear(r.unit, r.b, r.recall.value(target), r.recall.shadow(target), wide)
        return
    r.unit.swept(wide)
    for at in separate_shadows.each(r.b, r.recall.shadow(target), r.unit.width):
        r.b.call(clear, [at, ConstInt(ty.I8, 0), wide, ConstInt(ty.I1, 0)])


def ruled_call(r: ReverseState, instr: Instruction, site: Site) -> None:
    """Call what a rule of the user writes for the reverse sweep."""
    pair = reverse_pair(r.unit, r.clobber, instr, site)
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


def derived_call(r: ReverseState, instr: Instruction) -> None:
    """Call the reverse of the callee with the tape of this very call, or both sweeps of the callee at once."""
    assert instr.call is not None
    combined = r.plan.combined.runs(instr)
    abi = r.unit.call_abi(instr)
    amount = r.take(instr) if instr.type is not ty.VOID and r.active(instr) else None
    half, used = r.taped.reverse_of(instr) if r.taped is not None and not combined else (None, frozenset())
    args: list[Value] = []
    for i, arg in enumerate(instr.args):
        args.append(r.recall.value(arg) if half is None or len(args) in used else ConstUndef(arg.type, poison=True))
        if i < len(abi.shadow) and abi.shadow[i]:
            args.append(r.recall.shadow(arg))
    if abi.ret_adjoint:
        args.append(amount if amount is not None else zero_of(r.unit.wide(instr.type)))
    if not combined:
        args.append(r.recall.tape(instr))
    ftype = reverse_type(instr.call.fn_type, abi, r.unit.width, tape=not combined)
    callee = resolve(instr.callee)
    if half is not None:
        entry: Value = half
    elif isinstance(callee, Function):
        entry = combined_function(r.unit, callee) if combined else split_functions(r.unit, callee)[1]
    else:
        descriptor = separate_shadows.first(r.b, r.recall.shadow(instr.callee), r.unit.width)
        entry = r.b.load(ty.PTR, r.b.gep(ty.PTR, descriptor, 2))
    result = r.b.insert(Instruction("call", ftype.ret, [*args, entry], call=CallInfo(ftype)))
    for position, arg in enumerate(arg for arg, active in zip(instr.args, abi.adjoint, strict=False) if active):
        r.give(arg, r.b.extractvalue(result, position))


HANDLERS: dict[str, Callable[[ReverseState, Instruction], None]] = {
    "select": select, "freeze": same, "bitcast": same, "fptrunc": float_cast, "fpext": float_cast,
    "extractvalue": extractvalue, "insertvalue": insertvalue, "extractelement": extractelement,
    "insertelement": insertelement, "shufflevector": shufflevector, "load": load, "store": store, "call": call,
}  # fmt: skip

__all__ = ["HANDLERS", "Abi", "Unit", "augmented_type", "reverse_instruction"]
