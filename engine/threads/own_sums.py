"""Sums in an array that a function also uses otherwise go by an argument of their own.

    f(ptr p):  p[i].force = 0;  p[j].x += s;          f(ptr p, ptr sums):  p[i].force = 0;  sums[j].x += s;

Both lead to the same memory. A caller may then give something else for the sums alone: memory of a chunk (`teams.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Instruction, Module, Value
from irgrad.engine.ir.rewrite import copied
from irgrad.engine.threads.ownership import base_of

__all__ = ["apart_from"]


def apart_from(module: Module, argument: Argument, places: Iterable[tuple[Instruction, int]]) -> Argument:
    """A further last argument of the function of another one, and of the same value in all calls. places: operands,
    made of the first, that are made of the second from now on."""
    fn = argument.function
    assert fn is not None
    more = Argument(argument.type, f"{argument.name or 'p'}.sums", len(fn.args))
    more.function = fn
    fn.args.append(more)
    fn.ftype = ty.function(fn.ftype.ret, tuple(a.type for a in fn.args))
    for caller in module.functions.values():
        for call in caller.instructions():
            if call.is_call and call.callee is fn:
                call.operands.insert(len(call.args), call.args[argument.index])
                assert call.call is not None
                call.call.fn_type = fn.ftype
    made: dict[Value, Value] = {argument: more}
    for instr, place in places:
        instr.operands[place] = _made_of(instr.operands[place], made)
    return more


def _made_of(pointer: Value, made: dict[Value, Value]) -> Value:
    """The same address, made of the other argument; made: what there is of it."""
    if pointer not in made:
        assert isinstance(pointer, Instruction) and pointer.block is not None
        base = base_of(pointer)
        assert base is not None
        operands = [_made_of(base, made) if o is base else o for o in pointer.operands]
        at = Builder(pointer.block, pointer.block.instructions.index(pointer) + 1)
        made[pointer] = at.insert(copied(pointer, operands))
    return made[pointer]
