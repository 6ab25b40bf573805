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
from typing import TypeVar
from zlib import crc32

from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.passes import Code, Settings
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import ConstData, ConstInt, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.opcodes import ACCESSES
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.uses import uses_of
from irgrad.rules.errors import Unsupported

__all__ = ["bound_members", "has_indices", "perhaps_bounded"]

_Found = TypeVar("_Found")

LEAVES = "irgrad.tape.leaves"  # ends a call: (whether an index leaves its array, where)
_LOOKS = "nounwind willreturn memory(inaccessiblemem: readwrite)"
_INDEX = re.compile(r"getelementptr [^\n]*\[\d+ x [^\n]*, ptr %[^\n,]+(?:, i\d+ 0)?, i\d+ %")
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
    elements = _Elements(module)
    code.changes += sum(_bound_indices(module, fn, elements) for fn in elements.bodies)


class _Elements:
    """Whether what lies at an address is read or written wherever the address is used: one that is only compared, or
    handed on as more than an element, may be that behind the last."""

    def __init__(self, module: Module) -> None:
        self.bodies = [fn for fn in module.functions.values() if not fn.is_declaration]
        self._uses: dict[Value, list[Instruction]] = {}
        for fn in self.bodies:
            self._uses |= uses_of(fn.blocks)
        self._asked: set[Value] = set()
        self._calls: dict[Value, list[Instruction]] = {}
        for user in {user for fn in self.bodies for user in fn.instructions() if user.is_call}:
            self._calls.setdefault(user.callee, []).append(user)
        self._known: set[Value] = {operand for fn in self.bodies for user in fn.instructions()
                                   for operand in user.operands[: -1 if user.is_call else None]}  # fmt: skip

    def accessed(self, address: Value, *, whole: bool = False) -> bool:
        """whole: of a struct, whose address says that it is there."""
        users = self._uses.get(address, ())
        if address in self._asked:  # a function that calls itself
            return True
        self._asked.add(address)
        found = bool(users) and all(self._accesses(address, user, whole=whole) for user in users)
        self._asked.discard(address)
        return found

    def _accesses(self, address: Value, user: Instruction, *, whole: bool) -> bool:
        if user.opcode in ACCESSES:
            at = int(user.opcode == "store")
            return user.operands[at] is address and address not in user.operands[:at]
        if user.opcode == "ret":  # the function gives an element, as `std::array::operator[]` does
            fn = user.block.function if user.block is not None else None
            calls = self._calls.get(fn, []) if fn is not None and fn not in self._known else []
            return bool(calls) and all(self.accessed(call, whole=whole) for call in calls)
        if user.is_call:
            return whole or (user.callee_name or "").startswith(_MOVES)
        if user.opcode != "getelementptr" or len(user.operands) == 2:
            return False
        first = user.operands[1]
        return isinstance(first, ConstInt) and first.value == 0 and self.accessed(user, whole=True)


def _bound_indices(module: Module, fn: Function, elements: _Elements) -> int:
    """Bound the indices of a function. Returns how many were."""
    chosen = []
    for instr in fn.instructions():
        chain = _chain(instr)
        if chain is not None and elements.accessed(instr, whole=isinstance(_array(instr).elem, ty.StructType)):
            chosen.append(chain)
    inner = {one for chain in chosen for one in chain[:-1]}
    rows = [chain for chain in chosen if chain[-1] not in inner]
    for chain in rows:
        _bound(module, fn, chain)
    return len(rows)


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


def _bound(module: Module, fn: Function, chain: list[Instruction]) -> None:
    """Of several dimensions the place in all of them is bounded: rows are walked through, one behind the other."""
    last = chain[-1]
    assert last.block is not None
    b = Builder(last.block, last.block.instructions.index(last))
    b.metadata = {"dbg": last.metadata["dbg"]} if "dbg" in last.metadata else {}
    place, count = b.to_i64(chain[0].operands[2]), 1
    for one in chain:
        count *= _array(one).count
    for one in chain[1:]:
        place = b.add(b.mul(place, ConstInt(ty.I64, _array(one).count)), b.to_i64(one.operands[2]))
    end = ConstInt(ty.I64, count - 1)
    look = declare(module, LEAVES, ty.VOID, (ty.I1, ty.PTR), _LOOKS)
    b.call(look, [b.icmp("ugt", place, end), _text(module, fn, last)])
    bounded = b.call(declare(module, "llvm.umin.i64", ty.I64, (ty.I64, ty.I64)), [place, end])
    last.operands = [chain[0].operands[0], ConstInt(ty.I64, 0), bounded]
    last.elem = ty.array(count, _array(last).elem)


def _text(module: Module, fn: Function, instr: Instruction) -> GlobalVariable:
    """Where an access is, for the message."""
    data = (locate(module, instr) or f"`{fn.name}`").encode("utf-8", "surrogateescape") + b"\0"
    name = f"irgrad.text.{crc32(data):x}"
    if name not in module.globals:
        kind = ty.array(len(data), ty.I8)
        module.globals[name] = GlobalVariable(name, kind, ConstData(kind, data), True, "internal unnamed_addr")
    return module.globals[name]
