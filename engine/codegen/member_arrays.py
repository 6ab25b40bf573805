"""Indices of arrays that are members of structs, bounded by the arrays.

    typedef struct { double w[2]; unsigned char live[4]; const double *x; int n; } state;      s->live[id / 8] |= ...

In C an index stays inside its array. Of one that nothing bounds the analyses of memory do not know that: the pointer
and the integers behind the array might be what is written. Before LLVM takes the types of structs out of addresses, an
index that is no constant becomes the least of itself and the last element's, which leaves it as it is; and beside it
stands a look whether that is so, which ends a derivative with an error that names the place.

Done where a derivative would be refused otherwise: what it costs is one comparison an access.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import TypeVar

from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.passes import Code, Settings
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstInt, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.opcodes import ACCESSES
from irgrad.engine.ir.rewrite import declare, text_constant
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.rules.errors import Unsupported

__all__ = ["bound_members", "drop_looks", "has_indices", "perhaps_bounded", "places_of_looks"]

_Found = TypeVar("_Found")

LEAVES = "irgrad.tape.leaves"  # ends a call: (whether an index leaves its array, where)
_LOOKS = "nounwind willreturn memory(inaccessiblemem: readwrite)"
_INDEX = re.compile(r"getelementptr [^\n]*\[\d+ x [^\n]*, ptr %[^\n,]+(?:, i\d+ 0)?, i\d+ %")
_SETTLED = re.compile(r"^ +(?:tail )?call void @irgrad\.tape\.leaves\(i1 false, [^\n]*\n", re.M)
_DEEP = 3  # functions around one that gives an element
_MOVES = ("llvm.memcpy.", "llvm.memset.", "llvm.memmove.")


def has_indices(text: str) -> bool:
    """Whether a module, or a function, may have something to bound."""
    return _INDEX.search(text) is not None


def perhaps_bounded(ask: Callable[[str], _Found], plain: Callable[[], str]) -> _Found:
    """What `ask("")` makes of a function; where that is refused, what `ask` makes of its module before any pass, with
    indices bounded. Raises the first error where both are refused."""
    try:
        return ask("")
    except Unsupported as error:
        text = plain()
        if not has_indices(text):
            raise
        try:
            return ask(text)
        except Unsupported:
            raise error from None


def places_of_looks(module: Module) -> tuple[str, ...]:
    """Where indices are looked at, each place once."""
    calls = (i for fn in module.functions.values() for i in fn.instructions() if i.is_call and i.callee_name == LEAVES)
    return tuple(dict.fromkeys(locate(module, call) or "its own code" for call in calls))


def bound_members(code: Code, settings: Settings) -> None:
    """Indices of arrays that are members of structs are bounded by the arrays."""
    if not settings.members or not has_indices(code.text):
        return
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes.run(code.llvm, llvm.create_pass_builder(code.machine("", 2), options))
    module = code.model
    code.count(sum(_bound_indices(module, fn) for fn in list(module.functions.values()) if not fn.is_declaration))


def drop_looks(text: str) -> str:
    """Looks at indices that LLVM has found to be inside go."""
    return _SETTLED.sub("", text) if LEAVES in text else text


def _bound_indices(module: Module, fn: Function) -> int:
    """Bound the indices of a function. Returns how many were."""
    uses, chains, calls = uses_of(fn.blocks), list[list[Instruction]](), list[tuple[Instruction, int, int]]()
    for instr in fn.instructions():
        chain, given = _chain(instr), _given(instr)
        if chain is not None and _element_accessed(instr, uses, _array(instr).elem):
            chains.append(chain)
        elif given is not None and _element_accessed(instr, uses, given[1].elem):
            calls.append((instr, given[0], given[1].count))
    inner = {one for chain in chains for one in chain[:-1]}
    rows = [chain for chain in chains if chain[-1] not in inner]
    for chain in rows:
        _bound_chain(module, chain)
    for call, number, count in calls:
        b = _before(call)
        call.operands[number] = _bounded(b, module, call, b.to_i64(call.operands[number], signed=False), count)
    return len(rows) + len(calls)


def _element_accessed(address: Instruction, uses: Uses, elem: ty.Type) -> bool:
    return _accessed(address, uses, whole=isinstance(elem, ty.StructType), size=ty.size_of(elem))


def _accessed(address: Value, uses: Uses, *, whole: bool, size: int = 0) -> bool:
    """Whether what lies at an address is read or written wherever the address is used: one that is only compared, or
    handed on as more than an element, may be that behind the last. whole: of a struct, whose address says that it is
    there; size: of the element, where it is one"""
    users = uses.get(address, ())
    return bool(users) and all(_accesses(address, user, uses, whole=whole, size=size) for user in users)


def _accesses(address: Value, user: Instruction, uses: Uses, *, whole: bool, size: int) -> bool:
    if user.opcode in ACCESSES:
        at = int(user.opcode == "store")
        return user.operands[at] is address and address not in user.operands[:at]
    if user.is_call:
        length = user.args[2] if (user.callee_name or "").startswith(_MOVES) else None
        return whole if length is None else isinstance(length, ConstInt) and length.value > 0
    if user.opcode != "getelementptr":
        return False
    first, member = user.operands[1], len(user.operands) > 2
    if not isinstance(first, ConstInt) or (not member and user.elem is not ty.I8):
        return False
    inside = range(1) if member else range(1, size)  # bytes: LLVM writes so of a struct that is copied in parts
    return first.value in inside and _accessed(user, uses, whole=True)


def _given(call: Instruction, depth: int = 0) -> tuple[int, ty.ArrayType] | None:
    """The argument that is the index, and the array, where a function gives the address of an element, as
    `std::array::operator[]` does."""
    callee = call.callee if call.is_call else None
    if not isinstance(callee, Function) or callee.is_declaration or not call.type.is_ptr or depth > _DEEP:
        return None
    ends = [instr.operands[0] for instr in callee.instructions() if instr.opcode == "ret"]
    if len(ends) != 1 or not isinstance(end := ends[0], Instruction):
        return None
    chain, inner = _chain(end), _given(end, depth + 1)
    if chain is not None and len(chain) == 1:
        index, array = end.operands[2], _array(end)
    elif inner is not None:
        index, array = end.operands[inner[0]], inner[1]
    else:
        return None
    return (index.index, array) if isinstance(index, Argument) and index.type is ty.I64 else None


def _array(address: Instruction) -> ty.ArrayType:
    assert isinstance(address.elem, ty.ArrayType)
    return address.elem


def _chain(instr: Instruction) -> list[Instruction] | None:
    """The addresses of an element of an array that is a member of a struct, one for each of its dimensions."""
    chain: list[Instruction] = []
    at: Value = instr
    while isinstance(at, Instruction) and at.opcode == "getelementptr" and isinstance(at.elem, ty.ArrayType):
        zero, *rest = at.operands[1:]
        if len(rest) != 1 or not (isinstance(zero, ConstInt) and zero.value == 0):
            return None
        if chain and at.elem.elem is not chain[0].elem:
            return None
        chain.insert(0, at)
        at = at.operands[0]
    if not chain or all(isinstance(one.operands[2], ConstInt) for one in chain):
        return None
    own = isinstance(at, GlobalVariable) or (isinstance(at, Instruction) and at.opcode == "alloca")
    return None if own or _array(chain[0]).count < 2 else chain


def _bound_chain(module: Module, chain: list[Instruction]) -> None:
    """Of several dimensions the place in all of them is bounded: rows are walked through, one behind the other."""
    last, b = chain[-1], _before(chain[-1])
    place, count = b.to_i64(chain[0].operands[2]), prod(_array(one).count for one in chain)
    for one in chain[1:]:
        place = b.add(b.mul(place, ConstInt(ty.I64, _array(one).count)), b.to_i64(one.operands[2]))
    last.operands = [chain[0].operands[0], ConstInt(ty.I64, 0), _bounded(b, module, last, place, count)]
    last.elem = ty.array(count, _array(last).elem)


def _before(instr: Instruction) -> Builder:
    assert instr.block is not None
    b = Builder(instr.block, instr.block.instructions.index(instr))
    b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
    return b


def _bounded(b: Builder, module: Module, instr: Instruction, index: Value, count: int) -> Value:
    """The index of so many elements, behind a look at it."""
    last = ConstInt(ty.I64, count - 1)
    look = declare(module, LEAVES, ty.VOID, (ty.I1, ty.PTR), _LOOKS)
    b.call(look, [b.icmp("ugt", index, last), text_constant(module, locate(module, instr) or "its own code")])
    return b.call(declare(module, "llvm.umin.i64", ty.I64, (ty.I64, ty.I64)), [index, last])
