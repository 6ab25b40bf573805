"""Accesses and calls through pointers of which nothing is known: they run nowhere, or an analysis has lost what they
lead to.

A pointer that only ever is null leads nowhere, and nothing is read through it. That is what an empty points-to set
says. If it is wrong, numbers come out of that memory with a derivative of zero, and nobody is told. So a derivative
looks when it runs: a call that gets to such an access ends with an error that names the place.

A call through a pointer leads to the functions behind it that have the types of the call. Processors also run others,
where an `int` is taken for a `long` or an argument is one too many; a derivative looks whether it is one of those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import leaves
from irgrad.engine.analyses.memory.objects import bits_of, fits, has_pointer, resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.rewrite import declare, text_constant

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts

__all__ = ["LOST", "watch_lost"]

LOST = "irgrad.tape.lost"
"""Ends a call: (whether to, where)."""
_LOOKS = "nounwind willreturn memory(inaccessiblemem: readwrite)"


def watch_lost(facts: Facts) -> bool:
    """Put a look in front of each access and call through a pointer that leads nowhere, or to functions of other types.
    True where there are any."""
    changed = False
    for fn in facts.pointers.functions:
        for instr in list(fn.instructions()):
            others = _of_other_types(facts, instr) if instr.is_call else []
            if (others or _leads_nowhere(facts, instr)) and not _watched(instr):
                _look(facts, instr, others)
                changed = True
    return changed


def _look(facts: Facts, instr: Instruction, others: list[Function]) -> None:
    """others: functions of which none is to be called; none where the instruction is not to run at all."""
    assert instr.block is not None
    b = Builder(instr.block, instr.block.instructions.index(instr))
    b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
    wrong: Value = ConstInt(ty.I1, int(not others))
    for fn in others:
        wrong = b.binary("or", wrong, b.icmp("eq", instr.callee, fn))
    where = text_constant(facts.module, locate(facts.module, instr) or "its own code")
    b.call(declare(facts.module, LOST, ty.VOID, (ty.I1, ty.PTR), _LOOKS), [wrong, where])


def _leads_nowhere(facts: Facts, instr: Instruction) -> bool:
    """Whether an instruction moves floats, stores pointers, or calls a function through a pointer without an object.
    Memory of the C library, which functions like `__ctype_b_loc` lead to, has none; nothing of this is done there."""
    if instr.traits.address >= 0:
        if not _nowhere(facts, instr.operands[instr.traits.address]):
            return False
        moved = instr.operands[0] if instr.opcode == "store" else instr
        return (instr.opcode == "store" and has_pointer(moved.type)) or _has_floats(facts, moved)
    if not instr.is_call:
        return False
    effect = facts.pointers.effect(instr)
    if effect is not None and effect.copy is not None:
        target, source = (instr.args[i] for i in effect.copy[:2])
        return any(_nowhere(facts, one) and _floats_behind(facts, other)
                   for one, other in ((target, source), (source, target)))  # fmt: skip
    return _nowhere(facts, instr.callee) and _computes(facts, instr)


def _computes(facts: Facts, call: Instruction) -> bool:
    """The call of a function that is handed floats or pointers, or returns some."""
    return any(has_pointer(value.type) or _has_floats(facts, value) for value in (call, *call.args))


def _of_other_types(facts: Facts, call: Instruction) -> list[Function]:
    """The functions behind a pointer that a processor would call with these arguments, though they have others."""
    if isinstance(resolve(call.callee), Function):
        return []
    sites = [facts.pointers.objects[bit].site for bit in bits_of(facts.pointers.of(call.callee))]
    found = [site for site in sites if isinstance(site, Function)]
    others = [fn for fn in found if not fits(call, fn)]
    exact = len(others) < len(found)
    return [fn for fn in others if _near(call, fn, exact)] if others and _computes(facts, call) else []


def _near(call: Instruction, fn: Function, exact: bool) -> bool:
    """The same floats in the same places, and as many arguments where it is to be `exact`: tables hold functions of
    other numbers of arguments for other calls."""
    given, wanted = [_register(v.type) for v in call.args], [_register(p.type) for p in fn.args]
    result = call.type is ty.VOID or _register(call.type) == _register(fn.ftype.ret)
    least = min(len(given), len(wanted))
    return result and given[:least] == wanted[:least] and (not exact or len(given) == len(wanted))


def _register(type_: ty.Type) -> str:
    """How a value is handed over: integers and addresses alike."""
    return "integer" if type_.is_int or type_.is_ptr else str(type_)


def _has_floats(facts: Facts, value: Value) -> bool:
    if any(isinstance(kind, ty.FloatType) for _, kind, _ in leaves(value.type)):
        return True
    return value.type.scalar.is_int and bool(facts.types.carriers.floats(value))


def _floats_behind(facts: Facts, pointer: Value) -> bool:
    kinds = (kind for bit in bits_of(facts.pointers.of(pointer))
             for kind in facts.types.holds(facts.pointers.objects[bit]))  # fmt: skip
    return any(isinstance(kind, ty.FloatType) for kind in kinds)


def _nowhere(facts: Facts, address: Value) -> bool:
    return isinstance(address, Instruction | Argument) and not facts.pointers.of(address)


def _watched(instr: Instruction) -> bool:
    assert instr.block is not None
    at = instr.block.instructions.index(instr)
    before = instr.block.instructions[max(at - 1, 0) : at]
    return any(other.is_call and other.callee_name == LOST for other in before)
