"""Widening: a function for one sample becomes one for L samples, side by side in the lanes of vectors.

    @f(ptr x, ptr n, ptr y)   ->   @f.lanes8(ptr x, ptr n, ptr y)      x, y: lanes interleaved;  n: shared

Which values *vary* between samples follows from which arguments do: a load from memory that varies, and whatever is
computed from it. Values that do not vary (sizes, counters, addresses, shared arguments) stay scalar, and so does
control flow. Memory that varies, whether of arguments, local or of the tape, holds element by element the L values of
its lanes: every byte offset into it is multiplied by L. Where an address varies, each lane loads and stores by itself:
lanes have memory of their own, so that stores never meet. Where a branch varies, both sides are computed and the right
value is selected if they are short and without side effects.

What cannot be widened is refused by an `Unsupported` that names the instruction; the caller then runs sample after
sample. Source of the method: whole-function vectorisation (Karrenberg and Hack, CGO 2011).
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    CallInfo,
    ConstAggregate,
    ConstFloat,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.text.reader import read
from irgrad.engine.widen.if_conversion import flatten
from irgrad.engine.widen.loop_masks import mask_loop
from irgrad.engine.widen.profitability import check_worth
from irgrad.engine.widen.refusals import placed, refuse
from irgrad.engine.widen.twins import call_twin, twins
from irgrad.engine.widen.uniformity import (
    ALLOCATORS,
    ANY,
    BORROW,
    IGNORED,
    MEMORY,
    Uniformity,
    math_intrinsic,
)
from irgrad.rules.errors import Unsupported

__all__ = ["widen"]

_ALIGN = 64
_SPREAD = """
define internal void @{name}(ptr noalias %to, ptr noalias %from, i64 %bytes) nounwind {{
entry:
  %count = udiv i64 %bytes, {step}
  %none = icmp eq i64 %count, 0
  br i1 %none, label %out, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %f = getelementptr i{bits}, ptr %from, i64 %i
  %x = load i{bits}, ptr %f, align 1
  %a = insertelement <{lanes} x i{bits}> poison, i{bits} %x, i64 0
  %v = shufflevector <{lanes} x i{bits}> %a, <{lanes} x i{bits}> poison, <{lanes} x i32> zeroinitializer
  %t = getelementptr [{lanes} x i{bits}], ptr %to, i64 %i
  store <{lanes} x i{bits}> %v, ptr %t, align {align}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %out
out:
  ret void
}}
"""


def widen(
    module: Module, fname: str, varying: Sequence[int], sizes: Sequence[int], lanes: int, *, paying: bool = False
) -> str:
    """Add the function over `lanes` samples to the module; returns its name.

    varying: arguments whose memory holds the lanes of its elements interleaved
    sizes:   bytes of an element of each argument
    paying:  refuse what is known to be slower than a loop over samples
    Raises Unsupported for what cannot be widened.
    """
    try:
        return _widened(module, fname, varying, sizes, lanes, paying)
    except Unsupported as error:
        raise placed(error, module) from None


def _widened(
    module: Module, fname: str, varying: Sequence[int], sizes: Sequence[int], lanes: int, paying: bool
) -> str:
    fn = module.functions[fname]
    marked = twins(module)

    def analyse() -> Uniformity:
        return Uniformity(fn, varying, sizes, strict=False, twins=marked)

    flatten(fn, analyse)
    while mask_loop(module, fn, analyse()):
        flatten(fn, analyse)
    facts = Uniformity(fn, varying, sizes, strict=True, twins=marked)
    if paying:
        check_worth(fn, facts)
    name = _Widener(module, fn, facts, lanes).run()
    if any(f.startswith((ANY, BORROW)) for f in module.functions):
        for old in [f for f in module.functions if f == fname or f.startswith((ANY, BORROW))]:
            del module.functions[old]  # what the markers mean is in the widened function alone
    return name


class _Widener:
    def __init__(self, module: Module, fn: Function, facts: Uniformity, lanes: int) -> None:
        self.module = module
        self.fn = fn
        self.facts = facts
        self.lanes = lanes
        self.target = Function(f"{fn.name}.lanes{lanes}", fn.ftype)
        self.scalar: dict[Value, Value] = dict(zip(fn.args, self.target.args, strict=True))
        self.vector: dict[Value, Value] = {}
        self.offsets: dict[Value, tuple[Value, Value]] = {}  # address that varies -> base, bytes from it by lane
        self.parts: dict[Value, list[Value]] = {}  # what calls for all samples returned
        self.blocks: dict[Block, Block] = {}
        self.b = Builder(Block())

    def run(self) -> str:
        fn, target = self.fn, self.target
        name = target.name or ""
        for old, new in zip(fn.args, target.args, strict=True):
            new.attrs = "noalias" if "noalias" in old.attrs.split() else ""
        target.tail = "nounwind"
        self.module.functions[name] = target
        order = get(Cfg, fn).rpo
        for number, block in enumerate(order):
            self.blocks[block] = Block(f"w{number}")
            self.blocks[block].function = target
            target.blocks.append(self.blocks[block])
        for block in order:
            self.b = Builder(self.blocks[block])
            for instr in block.instructions:
                self._instruction(instr)
        for block in order:
            self._fill_phis(block)
        return name

    # -- operands ------------------------------------------------------------------------------------------------------

    def one(self, value: Value) -> Value:
        """A value that does not vary."""
        return self.scalar.get(value, value)

    def wide(self, value: Value) -> Value:
        """The lanes of a value, equal ones if it does not vary."""
        found = self.vector.get(value)
        if found is not None:
            return found
        type_ = ty.vector(self.lanes, value.type)
        if isinstance(value, ConstInt | ConstFloat):
            return ConstAggregate(type_, [value] * self.lanes)
        if isinstance(value, ConstZero):
            return ConstZero(type_)
        if isinstance(value, ConstUndef):
            return ConstUndef(type_, value.poison)
        first = self.b.insertelement(ConstUndef(type_, poison=True), self.one(value), 0)
        return self.b.insert(Instruction("shufflevector", type_, [first, ConstUndef(type_, poison=True),
                                                                  ConstZero(ty.vector(self.lanes, ty.I32))]))

    def _fill_phis(self, block: Block) -> None:
        for old in block.phis:
            if old in self.parts:
                self._fill_parts(old)
                continue
            wide = old in self.vector
            new = self.vector[old] if wide else self.scalar[old]
            assert isinstance(new, Instruction)
            for value, source in zip(old.operands, old.blocks, strict=True):
                if source not in self.blocks:
                    continue
                at = self.blocks[source]
                self.b = Builder(at, at=len(at.instructions) - 1)
                new.operands.append(self.wide(value) if wide else self.one(value))
                new.blocks.append(at)

    def _fill_parts(self, old: Instruction) -> None:
        """What several calls for all samples returned."""
        for value, source in zip(old.operands, old.blocks, strict=True):
            for new, part in zip(self.parts[old], self.parts[value], strict=True) if source in self.blocks else ():
                assert isinstance(new, Instruction)
                new.operands.append(part)
                new.blocks.append(self.blocks[source])

    # -- instructions --------------------------------------------------------------------------------------------------

    def _instruction(self, instr: Instruction) -> None:
        opcode = instr.opcode
        if opcode == "call":
            self._call(instr)
        elif opcode == "phi":
            self._phi(instr)
        elif opcode == "load":
            self._load(instr)
        elif opcode == "store":
            self._store(instr)
        elif opcode == "getelementptr" and instr in self.facts.varying:
            self._varying_address(instr)
        elif opcode == "getelementptr" and self.facts.scaled(instr.operands[0]):
            self.scalar[instr] = self._address(instr)
        elif opcode == "alloca" and instr in self.facts.roots:
            assert instr.elem is not None
            new = self._copy(instr)
            new.elem, new.align = ty.array(self.lanes, instr.elem), max(instr.align, _ALIGN)
        elif instr.opcode == "extractvalue" and instr.operands[0] in self.parts:
            known = self.scalar if instr.type.is_ptr else self.vector
            known[instr] = self.parts[instr.operands[0]][instr.indices[0]]
        elif instr in self.facts.varying:
            self._elementwise(instr)
        else:
            self._copy(instr)

    def _copy(self, instr: Instruction) -> Instruction:
        """The instruction as it is, on values that do not vary."""
        new = Instruction(
            instr.opcode, instr.type, [self.one(v) for v in instr.operands], flags=instr.flags, pred=instr.pred,
            elem=instr.elem, align=instr.align, blocks=[self.blocks[b] for b in instr.blocks], indices=instr.indices,
            call=_plain(instr.call), volatile=instr.volatile, ordering=instr.ordering,
        )  # fmt: skip
        self.scalar[instr] = self.b.insert(new)
        return new

    def _phi(self, instr: Instruction) -> None:
        if instr in self.facts.varying and isinstance(instr.type, ty.StructType):
            fields = instr.type.fields or ()
            self.parts[instr] = [self.b.phi(f if f.is_ptr else ty.vector(self.lanes, f)) for f in fields]
        elif instr in self.facts.varying:
            self.vector[instr] = self.b.phi(ty.vector(self.lanes, instr.type))
        else:
            self.scalar[instr] = self.b.phi(instr.type)

    def _elementwise(self, instr: Instruction) -> None:
        type_ = ty.vector(self.lanes, instr.type)
        operands = [self.wide(v) for v in instr.operands]
        if instr.opcode == "select" and instr.operands[0] not in self.facts.varying:
            operands[0] = self.one(instr.operands[0])
        new = Instruction(instr.opcode, type_, operands, flags=instr.flags, pred=instr.pred)
        self.vector[instr] = self.b.insert(new)

    def _load(self, instr: Instruction) -> None:
        if instr not in self.facts.varying:
            self._copy(instr)
            return
        type_ = ty.vector(self.lanes, _byte(instr.type))
        if instr.operands[0] in self.offsets:
            value: Value = ConstUndef(type_, poison=True)
            for lane, place in enumerate(self._places(instr.operands[0], ty.store_size(instr.type))):
                part = self.b.load(type_.elem, place, _align(instr.type))
                value = self.b.insertelement(value, part, lane)
            self.vector[instr] = self.b.cast("trunc", value, ty.vector(self.lanes, instr.type))
            return
        value = self.b.load(type_, self.one(instr.operands[0]), _align(instr.type))
        self.vector[instr] = self.b.cast("trunc", value, ty.vector(self.lanes, instr.type))

    def _store(self, instr: Instruction) -> None:
        value, pointer = instr.operands
        if self.facts.scaled(pointer):
            wide = self.b.cast("zext", self.wide(value), ty.vector(self.lanes, _byte(value.type)))
            if pointer in self.offsets:
                for lane, place in enumerate(self._places(pointer, ty.store_size(value.type))):
                    self.b.store(self.b.extractelement(wide, lane), place, _align(value.type))
                return
            self.b.store(wide, self.one(pointer), _align(value.type))
        else:
            self._copy(instr)

    def _address(self, instr: Instruction) -> Value:
        """A getelementptr whose byte offset is multiplied by the lanes."""
        pointer = self.one(instr.operands[0])
        type_ = instr.elem
        assert type_ is not None
        for number, index in enumerate(instr.operands[1:]):
            if number and isinstance(type_, ty.StructType):
                assert isinstance(index, ConstInt) and type_.fields is not None
                offset = ty.field_offsets(type_)[index.value]
                type_ = type_.fields[index.value]
                pointer = self.b.gep(ty.I8, pointer, offset * self.lanes, flags=instr.flags)
                continue
            if number:
                assert isinstance(type_, ty.ArrayType | ty.VectorType)
                type_ = type_.elem
            step = ty.array(ty.size_of(type_) * self.lanes, ty.I8)
            pointer = self.b.gep(step, pointer, self.one(index), flags=instr.flags)
        return pointer

    def _varying_address(self, instr: Instruction) -> None:
        """Base and offsets of a getelementptr with indices that vary, or from an address that does."""
        base = instr.operands[0]
        start, total = self.offsets.get(base) or (self.one(base), ConstZero(ty.vector(self.lanes, ty.I64)))
        factor = self.lanes if self.facts.scaled(base) else 1
        type_ = instr.elem
        assert type_ is not None
        for number, index in enumerate(instr.operands[1:]):
            if number and isinstance(type_, ty.StructType):
                assert isinstance(index, ConstInt) and type_.fields is not None
                step = ty.field_offsets(type_)[index.value] * factor
                type_ = type_.fields[index.value]
                total = self.b.binary("add", total, self.wide(ConstInt(ty.I64, step)))
                continue
            if number:
                assert isinstance(type_, ty.ArrayType | ty.VectorType)
                type_ = type_.elem
            wide = self.wide(index)
            if index.type is not ty.I64:
                wide = self.b.cast("sext", wide, ty.vector(self.lanes, ty.I64))
            size = self.wide(ConstInt(ty.I64, ty.size_of(type_) * factor))
            total = self.b.binary("add", total, self.b.binary("mul", wide, size))
        self.offsets[instr] = start, total

    def _places(self, pointer: Value, width: int) -> list[Value]:
        """The address of each lane, of elements of `width` bytes."""
        start, total = self.offsets[pointer]
        apart = width if self.facts.scaled(pointer) else 0
        return [self.b.gep(ty.I8, self.b.gep(ty.I8, start, self.b.extractelement(total, lane), flags=()), lane * apart,
                           flags=()) for lane in range(self.lanes)]  # fmt: skip

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, instr: Instruction) -> None:
        name = instr.callee_name or ""
        if name.startswith(IGNORED):
            return
        if name.startswith((ANY, BORROW)):
            self._marker(instr, name)
        elif name.startswith(MEMORY) and self.facts.spreads(instr):
            self._spread(instr)
        elif name.startswith(MEMORY) and self.facts.scaled(instr.operands[0]):
            copy = self._copy(instr)
            self.b.at = len(self.b.block.instructions) - 1
            copy.operands[2] = self._times(copy.operands[2])
            self.b.at = None
        elif name in ALLOCATORS and instr in self.facts.roots:
            self._allocate(instr, ALLOCATORS[name])
        elif (twin := self.facts.twin(instr)) is not None and "B" in twin.mask(instr, self.facts):
            self.parts[instr] = call_twin(self, instr, twin)
            if instr.type is not ty.VOID and not instr.type.is_aggregate:
                self.vector[instr] = self.parts[instr][0]
        elif instr not in self.facts.varying:
            self._copy(instr)
        elif math_intrinsic(name):
            self._intrinsic(instr, name)
        else:
            self._lane_by_lane(instr)

    def _marker(self, instr: Instruction, name: str) -> None:
        """Is it so for any lane; the value of a lane for which it is so, in place of those for which it is not."""
        value, condition = instr.operands[0], instr.operands[-2]
        if condition not in self.facts.varying or value not in self.facts.varying:
            known = self.vector if value in self.facts.varying else self.scalar
            known[instr] = self.vector[value] if value in self.facts.varying else self.one(value)
            return
        if name == ANY:
            type_ = ty.function(ty.I1, (ty.vector(self.lanes, ty.I1),))
            reduce = self._declared(f"llvm.vector.reduce.or.v{self.lanes}i1", type_)
            self.scalar[instr] = self.b.call(reduce, [self.vector[value]])
            return
        wide, mask = self.vector[value], self.vector[condition]
        some: Value = self.b.extractelement(wide, 0)
        for lane in range(1, self.lanes):
            holds, part = self.b.extractelement(mask, lane), self.b.extractelement(wide, lane)
            some = self.b.select(holds, part, some)
        first = self.b.insertelement(ConstUndef(wide.type, poison=True), some, 0)
        same = Instruction("shufflevector", wide.type, [first, ConstUndef(wide.type, poison=True),
                                                        ConstZero(ty.vector(self.lanes, ty.I32))])
        self.vector[instr] = self.b.select(mask, wide, self.b.insert(same))

    def _spread(self, instr: Instruction) -> None:
        """A copy whose source is the same for all lanes."""
        size = 1
        for root in self.facts.bases(instr.operands[0]) or ():
            size = next(iter(self.facts.widths[root]), size)
        name = f"irgrad.spread{size}.{self.lanes}"
        helper = self.module.functions.get(name)
        if helper is None:
            element = ty.int_(8 * size)
            text = _SPREAD.format(name=name, lanes=self.lanes, bits=8 * size, step=ty.size_of(element),
                                  align=_align(element))  # fmt: skip
            helper = read(text).functions[name]
            self.module.functions[name] = helper
        length = self.b.to_i64(self.one(instr.operands[2]), signed=False)
        self.b.call(helper, [self.one(instr.operands[0]), self.one(instr.operands[1]), length])

    def _times(self, value: Value) -> Value:
        return self.b.mul(value, ConstInt(value.type, self.lanes), ())

    def _allocate(self, instr: Instruction, which: int) -> None:
        """Memory for all lanes, aligned to whole vectors where the allocator is our own."""
        arguments = [self.one(v) for v in instr.operands]
        size = self._times(arguments[which])
        own = (instr.callee_name or "").startswith("irgrad.")
        arguments[which] = self.b.add(size, ConstInt(size.type, _ALIGN), ()) if own else size
        memory: Value = self.b.call(arguments[-1], arguments[:-1])
        if own:
            mask = self._declared("llvm.ptrmask.p0.i64", ty.function(ty.PTR, (ty.PTR, ty.I64)))
            above = self.b.gep(ty.I8, memory, _ALIGN - 1, flags=())
            memory = self.b.call(mask, [above, ConstInt(ty.I64, -_ALIGN)])
        self.scalar[instr] = memory

    def _intrinsic(self, instr: Instruction, name: str) -> None:
        """`llvm.sin.f64` -> `llvm.sin.v8f64`; operands that are no vectors (powi, abs) stay scalar."""
        parts = name.split(".")
        wide = [v.type is instr.type or v in self.facts.varying for v in instr.args]
        if not all(v.type is instr.type for v, w in zip(instr.args, wide, strict=True) if w):
            raise refuse("an operand of this call varies between samples", instr)
        parts[2] = f"v{self.lanes}{parts[2]}"
        type_ = ty.vector(self.lanes, instr.type)
        arguments = [self.wide(v) if w else self.one(v) for v, w in zip(instr.args, wide, strict=True)]
        callee = self._declared(".".join(parts), ty.function(type_, tuple(a.type for a in arguments)))
        self.vector[instr] = self.b.call(callee, arguments, flags=instr.flags)

    def _lane_by_lane(self, instr: Instruction) -> None:
        """A library function without a vector form: one call per lane."""
        type_ = ty.vector(self.lanes, instr.type)
        arguments = [self.wide(v) if v in self.facts.varying else self.one(v) for v in instr.args]
        result: Value = ConstUndef(type_, poison=True)
        for lane in range(self.lanes):
            row = [self.b.extractelement(a, lane) if v in self.facts.varying else a
                   for v, a in zip(instr.args, arguments, strict=True)]  # fmt: skip
            call = self.b.call(instr.callee, row, flags=instr.flags)
            call.call = _plain(instr.call)
            result = self.b.insertelement(result, call, lane)
        self.vector[instr] = result

    def _declared(self, name: str, ftype: ty.FunctionType) -> Function:
        found = self.module.functions.get(name)
        if found is None:
            found = Function(name, ftype)
            self.module.functions[name] = found
        return found


def _byte(type_: ty.Type) -> ty.Type:
    """The type in memory: vectors of i1 would be packed bit by bit."""
    return ty.I8 if type_ is ty.I1 else type_


def _align(type_: ty.Type) -> int:
    """What is known of the address of an element's lanes, which follow each other without padding: those of a long
    double are 10 bytes apart."""
    return ty.store_size(type_) & -ty.store_size(type_)


def _plain(info: CallInfo | None) -> CallInfo | None:
    """What a call says, without `tail` and without promises about sizes."""
    if info is None:
        return None
    return CallInfo(info.fn_type, cc=info.cc, arg_attrs=[_kept(a) for a in info.arg_attrs], fn_attrs=info.fn_attrs)


def _kept(attrs: str) -> str:
    return " ".join(word for word in attrs.split() if word in ("immarg", "signext", "zeroext"))


