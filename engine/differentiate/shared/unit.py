"""What the derivatives of one root share: the facts, the calling conventions of derived functions, shadows of
constants, and the functions still to be generated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from irgrad.engine.analyses.activity.activity import objects_of
from irgrad.engine.analyses.memory.objects import describes_types, holds_address, is_never_written, is_stream, resolve
from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.leaves import REASSOCIATE, has_float, has_pointer, zero_of
from irgrad.engine.differentiate.layout.separate_shadows import join_constants
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstExpr,
    ConstInt,
    ConstText,
    ConstUndef,
    ConstZero,
    Function,
    GlobalAlias,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.rewrite import text_constant
from irgrad.engine.ir.types import Type, may_hold_pointer
from irgrad.engine.normalise.iterations import apart
from irgrad.engine.runtime.arena import CONSTANT_SHADOW
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.engine.normalise.segments import Segments


T = TypeVar("T")
_VECTOR = re.compile(r"<\d+ x ")


class ForwardEmitter(Protocol):
    """Fills the forward derivative of a function."""

    def __call__(self, unit: Unit, fn: Function, target: Function, abi: Abi) -> None: ...


class ReverseEmitter(Protocol):
    """Fills the two halves of the reverse derivative of a function, or one function with both."""

    def __call__(self, unit: Unit, fn: Function, abi: Abi, primal: Function, reverse: Function) -> None: ...


class Unit:
    """Shared state while the derivatives of one root are generated."""

    def __init__(
        self, module: Module, root: Function, facts: Facts, request: Request,
        segments: Mapping[Function, Segments] | None = None,
        left: Mapping[tuple[Function, str], str] | None = None,
    ) -> None:  # fmt: skip
        """segments: loops in segments, by their functions; left: why others, by function and header, are not."""
        self.module = module
        self.root = root
        self.facts = facts
        self.activity = facts.activity
        self.pointers = facts.pointers
        self.types = facts.types
        self.rules: Rulebook | None = module.rules
        self.request = request
        self.segments = segments or {}
        self.lent = frozenset(made.one for made in self.segments.values() if made.one is not None)
        self.left = left or {}
        self.mode = request.mode
        self.width = request.width  # tangents or cotangents at once, see lanes.py
        self.memory = request.layout(request.width)
        # Shadow memory is only accessed as floats and pointers, each a value of its own, and the primal has no vectors:
        # then all vectors are lanes, and all numbers the primal's (see distribute.py).
        self.plain = request.width == 1 or not _has_vectors(module)
        self.flags: tuple[str, ...] = () if request.strict_fp else REASSOCIATE
        taped = request.derivative == "forward_with_tape"  # the tape of the root is the caller's, see taped.py
        self.outputs = frozenset(request.outputs) if taped else None
        self.abis: dict[Function, Abi] = {}
        self.queue: list[Callable[[], None]] = []
        self.derived: dict[tuple[Function, str], Function] = {}
        self.forward: ForwardEmitter | None = None
        self.reverse: ReverseEmitter | None = None
        self.shadow_globals: dict[tuple[GlobalVariable, int], GlobalVariable] = {}  # of each lane that lies apart
        self._lane = 0
        self.descriptors: dict[Function, GlobalVariable] = {}
        self.addressed: list[Function] = []
        self.leaf_kinds: dict[tuple[Type, tuple[int, ...]], frozenset[Type]] = {}  # see carried.py
        self.strong_zero, self.zero_slopes = request.strong_zero, request.zero_slopes
        self.runtime_activity = request.runtime_activity  # a shadow may be the value's own memory
        self._found: dict[Callable[[Unit], object], object] = {}
        self._prefix = f"irgrad.{root.name}.{request.mode[0]}"
        self._abis()
        self.discarded_objects = self._discarded(request.discard)
        self.between = open_memory(self) if request.derivative == "split_reverse" else 0

    @contextmanager
    def one_lane(self) -> Iterator[None]:
        """What is written here is of one lane of those that lie apart."""
        width, self.width = self.width, 1
        try:
            yield
        finally:
            self.width = width

    def wide(self, type_: Type) -> Type:
        """Type of the shadow or adjoint of a value of this type."""
        return type_ if self.width == 1 else shadow_type(type_, self.width)

    def accessed(self, type_: Type) -> None:
        """Note that the shadow of a value of this type is loaded or stored."""
        self.plain &= type_.is_ptr or (type_.is_float and type_ is not ty.F80)
        self.plain &= not self.memory.separate

    def swept(self, size: Value, *, copied: bool = False) -> None:
        """Note that so many bytes of shadow memory are copied or filled: LLVM makes integers of a few, and of structs
        that it takes apart."""
        self.plain &= not isinstance(size, ConstInt) or (size.value > 64 and not copied)

    # -- calling conventions -------------------------------------------------------------------------------------------

    def _abis(self) -> None:
        parent: dict[Function, Function] = {}

        def find(fn: Function) -> Function:
            while parent.get(fn, fn) is not fn:
                fn = parent[fn]
            return fn

        for fn in self.pointers.functions:
            self.abis[fn] = self._own_abi(fn)
        for fn in self.pointers.functions:
            for instr in fn.instructions():
                if instr.is_call and not isinstance(instr.callee, Function):
                    targets = [t for t in self.pointers.callees(instr) or [] if t in self.abis]
                    for target in targets[1:]:
                        parent[find(target)] = find(targets[0])
        classes: dict[Function, Abi] = {}
        for fn, abi in self.abis.items():
            classes.setdefault(find(fn), Abi(fn)).merge(abi)
        for fn, abi in self.abis.items():
            abi.merge(classes[find(fn)])

    def _own_abi(self, fn: Function) -> Abi:
        ends = [block.terminator for block in fn.blocks]
        results = [end.operands[0] for end in ends if end.opcode == "ret" and end.operands]
        shadowed = self._memory_shadowed if fn in self.segments else self._has_shadow
        return Abi(
            fn, [self.differentiable(arg) for arg in fn.args], [shadowed(arg) for arg in fn.args],
            any(map(self.differentiable, results)), any(map(self._has_shadow, results)),
        )  # fmt: skip

    def _has_shadow(self, value: Value) -> bool:
        return may_hold_pointer(value.type) and self.activity.pointer(value)

    def _memory_shadowed(self, value: Value) -> bool:
        """A loop in segments is told of memory that it uses through other addresses."""
        return value.type.is_ptr and bool(self.pointers.of(value) & self.activity.shadowed_mask)

    def differentiable(self, value: Value) -> bool:
        """An active value with a tangent and an adjoint: it has floats, or has integers that carry some."""
        if not self.activity.value(value):
            return False
        whole = value.type.scalar.is_int or value.type.is_aggregate
        return has_float(value.type) or bool(whole and self.types.carriers.floats(value))

    def call_abi(self, instr: Instruction) -> Abi:
        """Convention of the functions that this call may reach."""
        for target in self.call_targets(instr):
            return self.abis[target]
        raise KeyError(instr)

    def call_targets(self, instr: Instruction) -> list[Function]:
        """Functions with a body that this call may reach."""
        callee = resolve(instr.callee)
        if isinstance(callee, Function):
            return [callee] if callee in self.abis and not callee.is_declaration else []
        return [t for t in self.pointers.callees(instr) or [] if t in self.abis and not t.is_declaration]

    # -- derived functions -----------------------------------------------------------------------------------

    def new_function(self, suffix: str, ftype: ty.FunctionType) -> Function:
        """An empty internal function with a fresh name."""
        name = f"{self._prefix}.{suffix}"
        while name in self.module.functions:
            name += "_"
        fn = Function(name, ftype)
        fn.head = "internal"
        fn.tail = "noinline nounwind" if apart(name) else "nounwind"
        self.module.functions[name] = fn
        return fn

    def declare(self, name: str, ftype: ty.FunctionType, tail: str = "", ret_attrs: str = "") -> Function:
        """The declaration of an external function or intrinsic (or what the module has under that name)."""
        found = self.module.functions.get(name)
        if found is None:
            found = Function(name, ftype)
            found.tail = tail
            found.ret_attrs = ret_attrs
            self.module.functions[name] = found
        return found

    def runtime(self, name: str) -> Function:
        """A function of `helpers.py`: arena functions are declared, copy helpers defined in the module."""
        from irgrad.engine.runtime import helpers

        if name in self.module.functions:
            return self.module.functions[name]
        if name in helpers.TAPE_TYPES:
            ret, params = helpers.TAPE_TYPES[name]
            alloc = name in ("irgrad.tape.alloc", "irgrad.tape.carve", "irgrad.tape.at", "irgrad.tape.need")
            tail = helpers.ALLOC_ATTRIBUTES if alloc else helpers.TAPE_ATTRIBUTES
            return self.declare(name, ty.function(ret, params), tail, "noalias" if ret.is_ptr else "")
        from irgrad.engine.ir.text.reader import read

        for called, helper in read(helpers.helper_text(name)).functions.items():
            self.module.functions.setdefault(called, helper)
        return self.module.functions[name]

    def text_constant(self, text: str) -> GlobalVariable:
        """A constant string of the module."""
        return text_constant(self.module, text)

    # -- what others may write -------------------------------------------------------------------------------

    def emit_with(self, *, forward: ForwardEmitter | None = None, reverse: ReverseEmitter | None = None) -> None:
        """How the derivatives of functions are emitted (the emitters are above: they import this module)."""
        self.forward, self.reverse = forward or self.forward, reverse or self.reverse

    def get(self, make: Callable[[Unit], T]) -> T:
        """What `make` finds out about this derivation; asked for again, what it found then."""
        if make not in self._found:
            self._found[make] = make(self)
        return self._found[make]  # type: ignore[return-value]

    @cached_property
    def every_write(self) -> int:
        """Objects that anything reachable from the root may write: what may change between two halves of a split
        derivative."""
        mask = 0
        for fn in self.pointers.functions:
            mask |= self.pointers.writes(fn)
        return mask

    def _discarded(self, arguments: Sequence[int]) -> int:
        """Memory of root arguments whose final contents nobody asks for: stores that nothing reads are dropped."""
        mask = 0
        for i in arguments:
            obj = self.pointers.object_of.get(self.root.args[i])
            if obj is not None:
                mask |= 1 << obj.index
        for fn in self.pointers.functions:
            mask &= ~self.pointers.reads(fn)
        return mask

    def discarded(self, pointer: Value) -> bool:
        """Whether a store through `pointer` only reaches memory that nobody reads."""
        objects = self.pointers.of(pointer)
        return bool(objects) and not objects & ~self.discarded_objects

    @property
    def outside_root(self) -> int:
        """Objects that may change between the sweeps of the root: none, it runs both in one call."""
        return 0

    def holds_pointers(self, pointer: Value) -> bool:
        """Whether the memory behind `pointer` may hold pointers whose shadows are used."""
        mask = self.pointers.of(pointer)
        return any(self.activity.holds_pointers(obj) for i, obj in enumerate(self.pointers.objects) if mask >> i & 1)

    def indirectly_active(self, fn: Function) -> bool:
        """Whether an active indirect call may reach `fn`."""
        for caller in self.pointers.functions:
            for instr in caller.instructions():
                if instr.is_call and not isinstance(resolve(instr.callee), Function) and self.activity.call(instr):
                    targets = self.pointers.callees(instr)
                    if targets is None or fn in targets:
                        return True
        return False

    # -- shadows of constants --------------------------------------------------------------------------------

    def shadow_constant(self, value: Value) -> Value:
        """Shadow of a pointer-carrying constant: the shadow global, a function's descriptor, or itself for null."""
        if not self.memory.separate:
            return self._shadow_constant(value)
        parts: list[Constant] = []
        for lane in range(self.width):
            self._lane = lane
            part = self._shadow_constant(value)
            assert isinstance(part, Constant)
            parts.append(part)
        return join_constants(value.type, parts)

    def _shadow_constant(self, value: Value) -> Value:
        """The shadow in one lane."""
        if isinstance(value, GlobalVariable):
            return value if self._inactive_external(value) else self.shadow_global(value)
        if isinstance(value, GlobalAlias):
            return self._shadow_constant(value.target)
        if isinstance(value, Function):
            return self.descriptor(value)
        if isinstance(value, ConstZero | ConstUndef | ConstInt):
            if (wide := self._scaled(value.type) if value.type.is_aggregate else value.type) is value.type:
                return value
            return ConstUndef(wide, value.poison) if isinstance(value, ConstUndef) else zero_of(wide)
        if isinstance(value, ConstExpr):
            if value.opcode == "ptrtoint" and self._scale > 1:
                return ConstExpr("ptrtoint", self._scaled(value.type), [self._shadow_constant(value.operands[0])])
            operands = [
                self._shadow_constant(op) if i == 0 or value.opcode == "select" else op
                for i, op in enumerate(value.operands)
            ]
            if self._scale > 1 and value.opcode == "getelementptr":
                return self._scaled_address(value, operands)
            return ConstExpr(value.opcode, value.type, operands, value.flags, value.elem)
        if isinstance(value, ConstAggregate):
            return ConstAggregate(self._scaled(value.type), [self._shadow_part(e) for e in value.elems])
        if isinstance(value, ConstText):
            return value
        raise Unsupported(
            f"no shadow for the constant of type `{value.type}`",
            because="it is neither a global, a function, null nor built from those",
            fix="report the program; pass the data as an argument instead",
        )

    def _scaled_address(self, value: ConstExpr, operands: Sequence[Value]) -> Value:
        assert value.elem is not None
        offset = lanes.constant_offset(value.elem, operands[1:])
        if offset is None:
            raise Unsupported(
                "the address of a constant has no shadow",
                which=str(value.opcode), because="its offset is not known to be a number",
                fix="take the address in a function",
            )  # fmt: skip
        moved = ConstInt(ty.I64, offset * self.width)
        return ConstExpr("getelementptr", value.type, [operands[0], moved], value.flags, ty.I8)

    def _shadow_part(self, value: Constant) -> Constant:
        if has_pointer(value.type) or (not isinstance(value, ConstAggregate) and holds_address(value)):
            shadow = self._shadow_constant(value)
            assert isinstance(shadow, Constant)
            return shadow
        if isinstance(value, ConstAggregate):
            return ConstAggregate(self._scaled(value.type), [self._shadow_part(e) for e in value.elems])
        return zero_of(self._scaled(value.type)) if has_float(value.type) or self._scale > 1 else value

    @property
    def _scale(self) -> int:
        return self.memory.scale

    def _scaled(self, type_: Type) -> Type:
        """Type of what shadow memory holds in one place."""
        return shadow_type(type_, self._scale)

    def _inactive_external(self, var: GlobalVariable) -> bool:
        """A global of another module that holds nothing active, like the type descriptors that vtables point to."""
        obj = self.pointers.object_of.get(var)
        fixed = describes_types(var) or is_stream(var)
        return var.init is None and (obj is None or fixed or not self.activity.object(obj))

    def refuse_foreign(self, instr: Instruction, address: Value, value: Value) -> None:
        """A variable of another module is its own shadow: no shadow may be stored there."""
        if not self.activity.pointer(value) or self.runtime_activity:
            return
        for obj in objects_of(self.pointers, self.pointers.of(address)):
            if isinstance(obj.site, GlobalVariable) and not is_never_written(obj) and self._inactive_external(obj.site):
                raise _needs_shadow(obj.site)

    def shadow_global(self, var: GlobalVariable) -> GlobalVariable:
        """The global that holds tangents (or adjoints) of `var`, made on first use."""
        key = (var, self._lane)
        if key in self.shadow_globals:
            return self.shadow_globals[key]
        if var.init is None:
            raise _needs_shadow(var)
        kept = CONSTANT_SHADOW if var.constant else ".shadow."
        name = f"{self._prefix}{kept}{var.name}{f'.{self._lane}' if self._lane else ''}"
        kind = var.value_type if self._scale == 1 else ty.array(ty.size_of(var.value_type) * self.width, ty.I8)
        shadow = GlobalVariable(name, kind, None, False, "internal", "")
        self.shadow_globals[key] = shadow
        self.module.globals[name] = shadow
        shadow.init = ConstZero(kind)
        if has_pointer(var.value_type) or holds_address(var.init):
            shadow.init = self._shadow_part(var.init) if self._scale == 1 else self._scaled_init(var.init)
            shadow.value_type = shadow.init.type
            shadow.constant = var.constant and self._only_leads(var, shadow.value_type)
        known = re.search(r"\balign (\d+)", var.tail)
        shadow.tail = f", align {max(16, int(known[1]) if known else ty.align_of(var.value_type))}"
        if "thread_local" in var.head:
            shadow.head = "internal thread_local"
        return shadow

    def _only_leads(self, var: GlobalVariable, kept: Type) -> bool:
        """A table of methods or functions, say, which may have integers too: no derivative is added to its shadow."""
        obj = self.pointers.object_of.get(var)
        if obj is None or self.activity.object(obj) or not _of_words(kept):
            return False
        return not any(isinstance(kind, ty.FloatType) for kind in self.types.holds(obj))

    def _scaled_init(self, init: Constant) -> Constant:
        """What the shadow of a global with pointers starts from: shadow pointers at W times their offsets, zeros."""
        fields: list[Constant] = []
        end = 0
        for offset, pointer in _pointers_of(init, 0):
            shadow = self._shadow_constant(pointer)
            assert isinstance(shadow, Constant)
            fields += [ConstZero(ty.array(offset * self.width - end, ty.I8)), shadow]
            end = offset * self.width + 8
        fields.append(ConstZero(ty.array(ty.size_of(init.type) * self.width - end, ty.I8)))
        return ConstAggregate(ty.struct(tuple(f.type for f in fields), packed=True), fields)

    def descriptor(self, fn: Function) -> GlobalVariable:
        """The constant {primal, derivative entry points} that stands for a function's address among shadows."""
        if fn not in self.descriptors:
            body = ty.struct((ty.PTR, ty.PTR, ty.PTR))
            name = f"{self._prefix}.functions.{fn.name}"
            self.descriptors[fn] = GlobalVariable(name, body, ConstZero(body), True, "internal", ", align 16")
            self.module.globals[name] = self.descriptors[fn]
            self.addressed.append(fn)
        return self.descriptors[fn]


def _of_words(type_: Type) -> bool:
    """Whether a type has pointers and integers, and no bytes that might be parts of something else."""
    if isinstance(type_, ty.StructType):
        return all(map(_of_words, type_.fields or ()))
    return _of_words(type_.elem) if isinstance(type_, ty.ArrayType) else type_.is_ptr or type_ in (ty.I32, ty.I64)


def _pointers_of(init: Constant, offset: int) -> Iterator[tuple[int, Constant]]:
    """The pointers in an initial value, with their offsets."""
    if isinstance(init, ConstZero | ConstUndef):
        return
    if not isinstance(init, ConstAggregate):
        if isinstance(init, ConstExpr) and init.opcode == "ptrtoint":
            init = init.operands[0]  # type: ignore[assignment]
        if init.type.is_ptr or holds_address(init):
            yield offset, init
        return
    if isinstance(init.type, ty.StructType):
        offsets: Sequence[int] = ty.field_offsets(init.type)
    else:
        step = ty.size_of(init.type.elem)  # type: ignore[attr-defined]
        offsets = [i * step for i in range(len(init.elems))]
    for elem, at in zip(init.elems, offsets, strict=False):
        if has_pointer(elem.type) or holds_address(elem):
            yield from _pointers_of(elem, offset + at)


def _has_vectors(module: Module) -> bool:
    """Whether a function of the module, or one that a rule hides, computes with vectors."""
    hidden = module.rules.hidden if module.rules is not None else {}
    bodies = ((fn.blocks, fn.lazy) for fn in module.functions.values())
    for blocks, lazy in (*bodies, *hidden.values()):
        if lazy is not None and _VECTOR.search(lazy):
            return True
        if any(v.type.is_vector for block in blocks for i in block.instructions for v in (i, *i.operands)):
            return True
    return False


def open_memory(unit: Unit) -> int:
    """Objects that a program can write between two halves: all but locals, their address never given away, and the
    memory of arguments that it promises not to write."""
    pointers = unit.pointers
    promised = [unit.root.args[i] for i in unit.request.kept]
    mask = still = 0
    for obj in pointers.objects:
        if obj.site in promised:
            still |= 1 << obj.index
        elif obj.kind not in ("alloca", "heap", "function"):
            mask |= 1 << obj.index
    return (pointers.reachable(mask) | 1) & ~still


def _needs_shadow(var: GlobalVariable) -> Unsupported:
    return Unsupported(
        f"the external global `{var.name}` needs a shadow", fix='load(..., link=["the file that defines it"])',
        because="active values are stored in it, but it is defined outside of the module",
    )  # fmt: skip
