"""Which values vary between the samples of a batch, and which memory holds them (see `batch`).

A forward analysis to a fixpoint: loads from memory that varies vary, and so does what is computed from what varies;
memory varies once something that varies is stored to it, or to an address that varies. An address may vary by its
offsets; a base that varies is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    Constant,
    ConstExpr,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import having
from irgrad.engine.widen.refusals import (
    AS_ARGUMENT,
    BY_INDEX,
    CALLED,
    FLAT,
    LOCAL,
    NUMBERS,
    SMALLER,
    TOGETHER,
    refuse,
)
from irgrad.rules.effects import facts as effects_of
from irgrad.rules.effects import lanewise as math_intrinsic

if TYPE_CHECKING:
    from irgrad.engine.widen.twins import Twin

__all__ = ["ALLOCATORS", "ANY", "BORROW", "IGNORED", "MEMORY", "Uniformity", "math_intrinsic"]

ALLOCATORS = {"irgrad.tape.alloc": 1, "malloc": 0, "calloc": 0}
"""Functions that return fresh memory, and the argument that is its size."""
ANY, BORROW = "irgrad.any", "irgrad.borrow"
"""Markers: whether a condition holds for one of the samples; a value, or that of a sample for which a condition holds
(see `batch_masks`)."""
MEMORY = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
IGNORED = ("llvm.lifetime.", "llvm.assume", "llvm.experimental.noalias.scope.decl", "llvm.dbg.", "llvm.donothing")
_FREE = ("irgrad.tape.acquire", "irgrad.tape.finish", "irgrad.tape.free_later", "irgrad.tape.at",
         "irgrad.tape.need", "irgrad.tape.reuse", "irgrad.tape.peak", "irgrad.tape.differs", "free")
_ELEMENTWISE = having("lanewise") | {"bitcast"}
_STACK = 1 << 14  # bytes of one local array of one sample


class Uniformity:
    """The result for one function.

    varying: values that vary;  roots: arguments, allocas and allocations whose memory varies
    widths:  bytes of the elements of the memory in `roots` (one number where all is well)
    strict:  raise Unsupported for what cannot be widened; otherwise only the sets are wanted
    twins:   functions that have one for all samples (see `rule_batches`)
    """

    def __init__(
        self, fn: Function, varying: Sequence[int], sizes: Sequence[int], *, strict: bool,
        twins: Mapping[str, Twin] | None = None,
    ) -> None:  # fmt: skip
        self.fn = fn
        self._twins = twins or {}
        self.varying: set[Value] = set()
        self.roots: set[Value] = {fn.args[i] for i in varying}
        self._arguments = frozenset(self.roots)
        self._known: dict[Value, frozenset[Value] | None] = {}
        self.widths: dict[Value, set[int]] = {}
        changed = True
        while changed:
            before = len(self.varying) + len(self.roots)
            for block in fn.blocks:
                for instr in block.instructions:
                    self._visit(instr)
            changed = len(self.varying) + len(self.roots) != before
        self.widths = {root: set() for root in self.roots}
        if strict:
            self._check(sizes)

    def scaled(self, pointer: Value) -> bool:
        """Whether a pointer points into memory that varies."""
        bases = self.bases(pointer)
        return bases is not None and bool(bases & self.roots)

    def spreads(self, instr: Instruction) -> bool:
        """Whether a copy takes memory that does not vary to memory that does: every element goes to all lanes."""
        return "memset" not in (instr.callee_name or "") and self.scaled(instr.operands[0]) and not self.scaled(
            instr.operands[1])

    def twin(self, instr: Value) -> Twin | None:
        """What a batch may call in place of this call."""
        is_call = isinstance(instr, Instruction) and instr.opcode == "call"
        return self._twins.get(instr.callee_name or "") if is_call and isinstance(instr, Instruction) else None

    def parted(self, value: Value) -> bool:
        """Whether a struct is what a call for all samples returns, or one of several such."""
        phi = isinstance(value, Instruction) and value.opcode == "phi" and isinstance(value.type, ty.StructType)
        if phi and isinstance(value, Instruction):
            return all(o is value or self.twin(o) is not None for o in value.operands)
        return self.twin(value) is not None

    def bases(self, pointer: Value) -> frozenset[Value] | None:
        """The arguments, allocas, allocations and globals that a pointer may point into; None if unknown."""
        if pointer in self._known:
            return self._known[pointer]
        found: set[Value] = set()
        stack, seen = [pointer], {pointer}
        while stack:
            value = stack.pop()
            below = _sources(value)
            if below is None:
                self._known[pointer] = None
                return None
            if not below and _is_root(value):
                found.add(value)
            for source in below:
                if source not in seen:
                    seen.add(source)
                    stack.append(source)
        self._known[pointer] = frozenset(found)
        return self._known[pointer]

    # -- the fixpoint --------------------------------------------------------------------------------------------------

    def _visit(self, instr: Instruction) -> None:
        opcode = instr.opcode
        if opcode == "load":
            if self._joined(instr.operands[0]) and not instr.type.is_ptr:
                self.varying.add(instr)
            if instr.operands[0] in self.varying:
                self.varying.add(instr)
        elif opcode == "store":
            if any(v in self.varying for v in instr.operands) or self.scaled(instr.operands[1]):
                self._spread(instr.operands[1])
        elif opcode == "call":
            self._visit_call(instr)
        elif opcode == "extractvalue" and instr.type.is_ptr and self.parted(instr.operands[0]):
            return  # a tape of all samples
        elif instr.type is not ty.VOID and any(v in self.varying for v in instr.operands):
            self.varying.add(instr)

    def _visit_call(self, instr: Instruction) -> None:
        name = instr.callee_name or ""
        twin = self.twin(instr)
        if twin is not None:
            if any(v in self.varying or (v.type.is_ptr and self.scaled(v)) for v in instr.args):
                self.varying |= {instr} if instr.type is not ty.VOID else set()
                for pointer, _, written in twin.memory(instr):
                    if written or self.scaled(pointer):
                        self._spread(pointer)
        elif name.startswith(MEMORY):  # what is copied from memory that does not vary is the same for all lanes
            if "memset" not in name and self._joined(instr.operands[1]):
                self._spread(instr.operands[0])
            self._joined(instr.operands[0])
        elif name == ANY:
            return
        elif name.startswith(BORROW):
            self.varying |= {instr} if instr.operands[0] in self.varying else set()
        elif instr.type is not ty.VOID and not instr.type.is_ptr and any(v in self.varying for v in instr.args):
            self.varying.add(instr)

    def _joined(self, pointer: Value) -> bool:
        """Memory that may be reached through one pointer varies as a whole or not at all."""
        if not self.scaled(pointer):
            return False
        self._spread(pointer)
        return True

    def _spread(self, pointer: Value) -> None:
        self.roots |= self.bases(pointer) or frozenset()

    # -- what cannot be widened ----------------------------------------------------------------------------------------

    def _check(self, sizes: Sequence[int]) -> None:
        widths = self.widths
        for root in self.roots:
            if isinstance(root, Argument):
                widths[root].add(sizes[root.index])
        pairs: list[tuple[Instruction, frozenset[Value]]] = []
        for block in self.fn.blocks:
            for instr in block.instructions:
                self._check_instruction(instr, widths, pairs)
        for instr, together in pairs:
            union = set().union(*(widths[root] for root in together))
            if len(union) > 1:
                found = " and ".join(map(str, sorted(union)))
                raise refuse(f"memory is accessed by elements of {found} bytes", instr, TOGETHER)

    def _check_instruction(
        self, instr: Instruction, widths: dict[Value, set[int]], pairs: list[tuple[Instruction, frozenset[Value]]]
    ) -> None:
        opcode = instr.opcode
        if opcode in ("load", "store"):
            self._check_access(instr, widths, pairs)
        elif opcode == "call":
            self._check_call(instr, pairs)
        elif opcode in ("br", "switch"):
            if instr.operands and instr.operands[0] in self.varying:
                raise refuse("the branch goes different ways for different samples", instr, FLAT)
        elif opcode == "alloca":
            if instr in self.roots and (instr.elem is None or ty.size_of(instr.elem) > _STACK):
                raise refuse("a local array would take too much of the stack", instr, SMALLER)
        elif opcode == "getelementptr":
            self._check_address(instr)
        elif opcode in ("phi", "ret"):
            if instr.type.is_ptr and any(v in self.varying for v in instr.operands):
                raise refuse("an address varies between samples", instr, BY_INDEX)
            if instr in self.varying and not _plain_type(instr.type) and not (
                self.parted(instr) and all(o in self.varying for o in instr.operands)
            ):
                raise refuse(f"a value of type {instr.type} varies between samples", instr,
                             BY_INDEX if instr.type.is_ptr else NUMBERS)  # fmt: skip
        elif opcode in _ELEMENTWISE:
            self._check_elementwise(instr)
        elif opcode == "extractvalue" and self.parted(instr.operands[0]):
            return
        elif instr in self.varying or any(v.type.is_ptr and self.scaled(v) for v in instr.operands):
            raise refuse(f"`{opcode}` has no form for lanes", instr)

    def _check_elementwise(self, instr: Instruction) -> None:
        if instr in self.varying and not all(_plain_type(v.type) for v in (instr, *instr.operands)):
            raise refuse(f"a value of type {instr.type} varies between samples", instr,
                         BY_INDEX if instr.type.is_ptr else NUMBERS)  # fmt: skip
        if instr.opcode in ("ptrtoint", "ptrtoaddr") and self.scaled(instr.operands[0]):
            raise refuse("an address of memory that varies is used as a number", instr, BY_INDEX)

    def _check_address(self, instr: Instruction) -> None:
        """An address that varies is a base that does not and offsets that do."""
        base = instr.operands[0]
        if instr in self.varying and not instr.type.is_ptr:
            raise refuse(f"a value of type {instr.type} varies between samples", instr,
                         BY_INDEX if instr.type.is_ptr else NUMBERS)  # fmt: skip
        if base in self.varying and not (isinstance(base, Instruction) and base.opcode == "getelementptr"):
            raise refuse("an address varies between samples", instr, BY_INDEX)

    def _check_access(
        self, instr: Instruction, widths: dict[Value, set[int]], pairs: list[tuple[Instruction, frozenset[Value]]]
    ) -> None:
        pointer, value = instr.operands[-1], instr if instr.opcode == "load" else instr.operands[0]
        if instr.volatile or instr.ordering:
            raise refuse("volatile and atomic accesses have no form for lanes", instr)
        bases = self.bases(pointer)
        if bases is None:
            raise refuse("the address comes from memory", instr, AS_ARGUMENT)
        if pointer in self.varying and not _plain_type(value.type):
            raise refuse(f"a value of type {value.type} is at an address that varies between samples", instr, NUMBERS)
        if not bases & self.roots:
            return
        self._check_roots(bases, instr)
        if not _plain_type(value.type):
            raise refuse(f"memory that varies holds a {value.type}", instr, NUMBERS)
        for root in bases:
            widths[root].add(ty.store_size(value.type))
        pairs.append((instr, bases))

    def _check_roots(self, bases: frozenset[Value], instr: Instruction) -> None:
        for root in bases:
            if root not in self.roots or (isinstance(root, Argument) and root not in self._arguments):
                raise refuse("memory that varies and memory that does not are reached through one pointer", instr,
                             TOGETHER)  # fmt: skip
            if not isinstance(root, Argument | Instruction):
                raise refuse("a global variable would vary between samples", instr, LOCAL)

    def _check_call(self, instr: Instruction, pairs: list[tuple[Instruction, frozenset[Value]]]) -> None:
        name = instr.callee_name or ""
        twin = self.twin(instr)
        if twin is not None:
            self._check_twin(instr, twin, pairs)
            return
        if name.startswith((*IGNORED, *_FREE)) or (name in ALLOCATORS and instr.operands[0] not in self.varying):
            if any(v in self.varying for v in instr.args) and not name.startswith(IGNORED):
                raise refuse("a size varies between samples", instr)
            return
        if name.startswith(MEMORY):
            pointers = instr.operands[:1] if "memset" in name else instr.operands[:2]
            bases = [self.bases(p) for p in pointers]
            if any(b is None for b in bases) or any(v in self.varying for v in instr.args):
                raise refuse("an address or a length varies between samples, or comes from memory", instr, BY_INDEX)
            together = frozenset().union(*(b for b in bases if b is not None))
            if self.spreads(instr):
                together = bases[0] or frozenset()
            if together & self.roots:
                self._check_roots(together, instr)
                pairs.append((instr, together))
            return
        if name.startswith((ANY, BORROW)):
            return
        if math_intrinsic(name):
            if instr in self.varying and not _plain_type(instr.type):
                raise refuse(f"a value of type {instr.type} varies between samples", instr,
                             BY_INDEX if instr.type.is_ptr else NUMBERS)  # fmt: skip
            return
        known = effects_of(name) if name and not name.startswith("llvm.") else None
        pure = known is not None and known.kind == "pure" and not known.may_write_args
        if not pure or any(v.type.is_ptr for v in instr.args) or not _plain_type(instr.type):
            raise refuse(f"`{name or 'a pointer'}` is called", instr, CALLED)


    def _check_twin(
        self, instr: Instruction, twin: Twin, pairs: list[tuple[Instruction, frozenset[Value]]]
    ) -> None:
        mask = twin.mask(instr, self)
        if not any(v in self.varying or (v.type.is_ptr and self.scaled(v)) for v in instr.args):
            return  # the same for all samples
        if mask not in twin.choices:
            known = ", ".join(twin.choices)
            raise refuse(f"`{instr.callee_name}` is called: the arguments that differ between samples are {mask}, "
                         f"rules for batches are for {known}", instr)  # fmt: skip
        for pointer, size, written in twin.memory(instr):
            bases = self.bases(pointer)
            if bases is None:
                raise refuse("the address comes from memory", instr, AS_ARGUMENT)
            if pointer in self.varying:
                raise refuse("an address varies between samples", instr, BY_INDEX)
            if not bases & self.roots:
                if written:
                    raise refuse("it writes memory that the samples share", instr, TOGETHER)
                continue
            self._check_roots(bases, instr)
            for root in bases:
                self.widths[root].add(size)
            pairs.append((instr, bases))


def _plain_type(type_: ty.Type) -> bool:
    return isinstance(type_, ty.FloatType) or (isinstance(type_, ty.IntType) and type_.bits in (1, 8, 16, 32, 64))


def _sources(value: Value) -> list[Value] | None:
    """The pointers that a pointer is made from; none for a root; None for what is not followed."""
    if isinstance(value, Instruction):
        if value.opcode in ("getelementptr", "freeze"):
            return value.operands[:1]
        if value.opcode == "phi":
            return list(value.operands)
        if value.opcode == "select":
            return value.operands[1:]
        return [] if _is_root(value) else None
    if isinstance(value, ConstExpr):
        return [value.operands[0]] if value.opcode == "getelementptr" else None
    return []


def _is_root(value: Value) -> bool:
    if isinstance(value, Instruction):
        return value.opcode == "alloca" or (value.opcode == "call" and value.callee_name in ALLOCATORS)
    return isinstance(value, Argument) or (isinstance(value, Constant) and value.name is not None)
