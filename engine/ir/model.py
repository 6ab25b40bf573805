"""The model of an LLVM module.

    Module      = named types, globals, aliases, functions, attribute groups and metadata (both kept as text)
    Function    = a value of type ptr; arguments and blocks (none: a declaration)
    Block       = instructions, the last of which is a terminator
    Instruction = opcode, type, operands, and what its opcode needs besides (see the table)

Values are compared by identity. Operand order of the instructions that are not obvious:

    load          [pointer]                        atomicrmw  [pointer, value], `pred` is the operation
    store         [value, pointer]                 cmpxchg    [pointer, expected, new]
    getelementptr [base, index...], `elem`         alloca     [count], `elem`
    call, invoke, callbr  [argument..., callee]    select     [condition, if true, if false]
    phi           [incoming...], `blocks`          br         [] or [condition], `blocks` = [to] / [if true, if false]
    switch        [value, case constant...], `blocks` = [default, case...]
    ret           [] or [value]                    invoke     `blocks` = [normal, unwind]
    extractvalue  [aggregate], `indices`           insertvalue [aggregate, value], `indices`
    extractelement [vector, index]                 insertelement [vector, value, index]
    shufflevector [a, b, mask constant]            landingpad `clauses`
    icmp, fcmp    [a, b], `pred`                   casts      [value], `type` is the target
"""

from __future__ import annotations

import struct as _struct
from collections.abc import Iterator, Sequence
from typing import Any

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.opcodes import CALLS, OPCODES, TERMINATORS, Opcode
from irgrad.engine.ir.types import Type


class Value:
    """Anything an instruction can use. `name` is without its sigil; None until printed or named."""

    __slots__ = ("name", "type")

    def __init__(self, type_: Type, name: str | None = None) -> None:
        self.type = type_
        self.name = name


class Constant(Value):
    """Base of constants (globals and functions are constants as well, of type ptr)."""

    __slots__ = ()


class ConstInt(Constant):
    """An integer; `value` is the signed reading (i1 true is 1)."""

    __slots__ = ("value",)

    def __init__(self, type_: Type, value: int) -> None:
        super().__init__(type_)
        assert isinstance(type_, ty.IntType)
        bits = type_.bits
        value &= (1 << bits) - 1
        self.value = value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


class ConstFloat(Constant):
    """A float literal, exact: `bits` are the bits of the value in its own format."""

    __slots__ = ("bits",)

    def __init__(self, type_: Type, bits: int) -> None:
        super().__init__(type_)
        self.bits = bits

    @property
    def value(self) -> float:
        """The value as a Python float (rounded for formats wider than double)."""
        return bits_to_float(self.type, self.bits)


class ConstZero(Constant):
    """`zeroinitializer`, `null`, `none`: all bits zero, of any type."""

    __slots__ = ()


class ConstUndef(Constant):
    """`undef`, or `poison` when `poison` is true."""

    __slots__ = ("poison",)

    def __init__(self, type_: Type, poison: bool = False) -> None:
        super().__init__(type_)
        self.poison = poison


class ConstAggregate(Constant):
    """A struct, array or vector given by its elements (also a splat)."""

    __slots__ = ("elems",)

    def __init__(self, type_: Type, elems: Sequence[Constant]) -> None:
        super().__init__(type_)
        self.elems = tuple(elems)


class ConstData(Constant):
    """c"..." : an array of bytes."""

    __slots__ = ("data",)

    def __init__(self, type_: Type, data: bytes) -> None:
        super().__init__(type_)
        self.data = data


class ConstExpr(Constant):
    """A constant expression: opcode, operands, flags; `elem` is the source element type of a getelementptr."""

    __slots__ = ("elem", "flags", "opcode", "operands")

    def __init__(
        self, opcode: str, type_: Type, operands: Sequence[Value], flags: tuple[str, ...] = (), elem: Type | None = None
    ) -> None:
        super().__init__(type_)
        self.opcode = opcode
        self.operands = tuple(operands)
        self.flags = flags
        self.elem = elem


class ConstText(Constant):
    """A constant kept as text that no pass looks into: blockaddress, dso_local_equivalent, no_cfi, ptrauth."""

    __slots__ = ("text",)

    def __init__(self, type_: Type, text: str) -> None:
        super().__init__(type_)
        self.text = text


class InlineAsm(Constant):
    """`asm ...`: the text as printed."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__(ty.PTR)
        self.text = text


class MetadataValue(Value):
    """A metadata operand of a call, as text (`!"round.dynamic"`, `!12`); `value` when it wraps an SSA value."""

    __slots__ = ("text", "value")

    def __init__(self, text: str, value: Value | None = None) -> None:
        super().__init__(ty.METADATA)
        self.text = text
        self.value = value


class GlobalVariable(Constant):
    """@name = ... global|constant. `head`: text between `=` and the type; `tail`: what follows the initialiser; `told`:
    whether code outside of the module knows its address."""

    __slots__ = ("constant", "head", "init", "tail", "told", "value_type")

    def __init__(
        self, name: str, value_type: Type, init: Constant | None, constant: bool, head: str = "", tail: str = ""
    ) -> None:
        super().__init__(ty.PTR, name)
        self.value_type = value_type
        self.init = init
        self.constant = constant
        self.head = (
            head  # linkage, visibility, thread_local, unnamed_addr, addrspace, ... (without `global`/`constant`)
        )
        self.tail = tail  # ", section ..., align 8, !dbg !3" with its leading comma
        self.told = False


class GlobalAlias(Constant):
    """@name = alias T, ptr @target (or ifunc: `kind`)."""

    __slots__ = ("head", "kind", "target", "value_type")

    def __init__(self, name: str, value_type: Type, target: Constant, head: str = "", kind: str = "alias") -> None:
        super().__init__(ty.PTR, name)
        self.value_type = value_type
        self.target = target
        self.head = head
        self.kind = kind


class Argument(Value):
    """A formal argument; `attrs` is its attribute text (`noalias noundef readonly`)."""

    __slots__ = ("attrs", "function", "index")

    def __init__(self, type_: Type, name: str | None, index: int, attrs: str = "") -> None:
        super().__init__(type_, name)
        self.index = index
        self.attrs = attrs
        self.function: Function | None = None


class Block(Value):
    """A basic block; `debug_records` of an instruction are kept with that instruction."""

    __slots__ = ("function", "instructions")

    def __init__(self, name: str | None = None) -> None:
        super().__init__(ty.LABEL, name)
        self.instructions: list[Instruction] = []
        self.function: Function | None = None

    @property
    def terminator(self) -> Instruction:
        """The last instruction. IndexError while the block is empty."""
        return self.instructions[-1]

    @property
    def successors(self) -> list[Block]:
        """Targets of the terminator, in order, with repetitions."""
        return self.instructions[-1].blocks if self.instructions else []

    @property
    def phis(self) -> list[Instruction]:
        """The phis, which stand first."""
        out = []
        for instr in self.instructions:
            if instr.opcode != "phi":
                break
            out.append(instr)
        return out


class CallInfo:
    """What a call says besides callee and arguments. All attribute fields are text as printed."""

    __slots__ = ("arg_attrs", "bundles", "cc", "fn_attrs", "fn_type", "ret_attrs", "tail")

    def __init__(
        self,
        fn_type: ty.FunctionType,
        *,
        tail: str = "",
        cc: str = "",
        ret_attrs: str = "",
        arg_attrs: Sequence[str] = (),
        fn_attrs: str = "",
        bundles: str = "",
    ) -> None:
        self.fn_type = fn_type
        self.tail = tail
        self.cc = cc
        self.ret_attrs = ret_attrs
        self.arg_attrs = list(arg_attrs)  # one text per argument (may be shorter than the arguments)
        self.fn_attrs = fn_attrs
        self.bundles = bundles


_LEADS = TERMINATORS | {"phi"}  # opcodes with blocks
_NOWHERE: Any = ()  # of all others: a large module has a million empty lists less that the garbage collector looks at


class Instruction(Value):
    """One instruction. Fields that its opcode does not use keep their empty default."""

    __slots__ = (
        "align", "block", "blocks", "call", "clauses", "debug_records", "elem", "flags", "indices",
        "metadata", "opcode", "operands", "ordering", "pred", "volatile",
    )  # fmt: skip

    def __init__(
        self,
        opcode: str,
        type_: Type,
        operands: Sequence[Value] = (),
        *,
        name: str | None = None,
        flags: tuple[str, ...] = (),
        pred: str = "",
        elem: Type | None = None,
        align: int = 0,
        blocks: Sequence[Block] = (),
        indices: tuple[int, ...] = (),
        call: CallInfo | None = None,
        volatile: bool = False,
        ordering: str = "",
        clauses: str = "",
        metadata: dict[str, str] | None = None,
    ) -> None:
        super().__init__(type_, name)
        self.opcode = opcode
        self.operands: list[Value] = list(operands)
        self.flags = flags  # nsw nuw exact fast nnan ... inbounds nuw disjoint samesign inalloca
        self.pred = pred  # icmp/fcmp predicate; atomicrmw operation
        self.elem = elem  # getelementptr source element type; alloca allocated type
        self.align = align  # load, store, alloca, atomics; 0: not given
        self.blocks: list[Block] = list(blocks) if opcode in _LEADS else _NOWHERE
        self.indices = indices
        self.call = call
        self.volatile = volatile
        self.ordering = ordering  # atomics: text such as 'syncscope("x") seq_cst' or 'acq_rel monotonic'
        self.clauses = clauses  # landingpad / catchpad text
        self.metadata: dict[str, str] = metadata if metadata is not None else {}  # 'dbg': '!12', 'tbaa': '!5', ...
        self.debug_records: Sequence[str] = ()  # '#dbg_value(...)' lines that stand before this instruction
        self.block: Block | None = None

    @property
    def traits(self) -> Opcode:
        """The row of the opcode. Raises KeyError for an opcode that LLVM does not have."""
        return OPCODES[self.opcode]

    @property
    def is_terminator(self) -> bool:
        """Ends a block."""
        return self.opcode in TERMINATORS

    @property
    def is_call(self) -> bool:
        """call, invoke or callbr."""
        return self.opcode in CALLS

    @property
    def callee(self) -> Value:
        """What a call calls (last operand)."""
        return self.operands[-1]

    @property
    def args(self) -> list[Value]:
        """The arguments of a call."""
        return self.operands[:-1]

    @property
    def callee_name(self) -> str | None:
        """Name of the called function when it is called directly (aliases are not looked through)."""
        callee = self.operands[-1]
        return callee.name if isinstance(callee, Function) else None


class Function(Constant):
    """A function. `head`: text between `define`/`declare` and the return type (linkage, visibility, cc, ...)."""

    __slots__ = ("analyses", "args", "blocks", "ftype", "head", "lazy", "metadata", "ret_attrs", "tail")

    def __init__(self, name: str, ftype: ty.FunctionType, arg_names: Sequence[str | None] = ()) -> None:
        super().__init__(ty.PTR, name)
        self.ftype = ftype
        names = list(arg_names) + [None] * (len(ftype.params) - len(arg_names))
        self.args = [Argument(t, names[i], i) for i, t in enumerate(ftype.params)]
        for arg in self.args:
            arg.function = self
        self.blocks: list[Block] = []
        self.head = ""  # "dso_local", "internal fastcc", ...
        self.ret_attrs = ""  # "noundef nonnull"
        self.tail = ""  # after the parameter list: 'local_unnamed_addr #0 comdat align 16 personality ptr @f'
        self.metadata: dict[str, str] = {}
        self.analyses: tuple[list[tuple[Block, ...]], dict[Any, Any]] | None = None  # see analyses/control/cache.py
        self.lazy: str | None = None  # body text not read yet (functions not reachable from the roots)

    @property
    def is_declaration(self) -> bool:
        """Has no body."""
        return not self.blocks and self.lazy is None

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    def instructions(self) -> Iterator[Instruction]:
        """All instructions in block order."""
        for block in self.blocks:
            yield from block.instructions


class Module:
    """A module. Dictionaries keep the order of the text."""

    def __init__(self) -> None:
        self.source_filename = ""
        self.datalayout = ""
        self.triple = ""
        self.types: dict[str, ty.StructType] = {}  # '%struct.S' -> type
        self.comdats: dict[str, str] = {}  # '$name' -> 'comdat any'
        self.globals: dict[str, GlobalVariable] = {}
        self.aliases: dict[str, GlobalAlias] = {}
        self.functions: dict[str, Function] = {}
        self.attribute_groups: dict[str, str] = {}  # '#0' -> '{ nounwind ... }'
        self.metadata: dict[str, str] = {}  # '!0' / '!llvm.ident' -> text after '='
        self.module_asm: list[str] = []
        self.use_list_orders: list[str] = []
        self.rules: Any = None  # a Rulebook while the module is differentiated under rules of the user

    def symbol(self, name: str) -> GlobalVariable | GlobalAlias | Function | None:
        """Global, alias or function of that name (without `@`)."""
        return self.functions.get(name) or self.globals.get(name) or self.aliases.get(name)


def bits_to_float(type_: Type, bits: int) -> float:
    """Value of a float's bit pattern as a Python float. `x86_fp80` and `fp128` are rounded to double."""
    kind = str(type_)
    if kind == "double":
        return float(_struct.unpack("<d", _struct.pack("<Q", bits))[0])
    if kind == "float":
        return float(_struct.unpack("<f", _struct.pack("<I", bits))[0])
    if kind == "half":
        return float(_struct.unpack("<e", _struct.pack("<H", bits))[0])
    if kind == "bfloat":
        return float(_struct.unpack("<f", _struct.pack("<I", bits << 16))[0])
    mantissa_bits, implicit = (63, False) if kind == "x86_fp80" else (112, True)
    total = FLOAT_TOTAL[kind]
    sign = -1.0 if bits >> (total - 1) else 1.0
    exponent_mask = 0x7FFF
    low = mantissa_bits if implicit else mantissa_bits + 1
    exponent = (bits >> low) & exponent_mask
    mantissa = bits & ((1 << low) - 1)
    if exponent == exponent_mask:
        fraction = mantissa & ((1 << mantissa_bits) - 1)
        return sign * float("inf") if fraction == 0 else float("nan")
    if implicit and exponent:
        mantissa |= 1 << mantissa_bits
    try:
        return sign * _ldexp(mantissa, max(exponent, 1) - 16383 - mantissa_bits)
    except OverflowError:
        return sign * float("inf")


FLOAT_TOTAL = {"x86_fp80": 80, "fp128": 128, "ppc_fp128": 128}


def _ldexp(mantissa: int, exponent: int) -> float:
    from fractions import Fraction

    scale = Fraction(2) ** exponent
    return float(Fraction(mantissa) * scale)


def float_to_bits(type_: Type, value: float) -> int:
    """Bit pattern of `value` rounded to a float type. Overflow gives infinity."""
    kind = str(type_)
    if kind == "double":
        return int(_struct.unpack("<Q", _struct.pack("<d", value))[0])
    if kind == "float":
        try:
            return int(_struct.unpack("<I", _struct.pack("<f", value))[0])
        except OverflowError:
            return 0x7F800000 if value > 0 else 0xFF800000
    if kind == "half":
        try:
            return int(_struct.unpack("<H", _struct.pack("<e", value))[0])
        except OverflowError:
            return 0x7C00 if value > 0 else 0xFC00
    if kind == "bfloat":
        full = float_to_bits(ty.F32, value)
        if value != value:
            return full >> 16 | 0x40
        return (full + 0x7FFF + (full >> 16 & 1)) >> 16
    mantissa_bits, implicit = (63, False) if kind == "x86_fp80" else (112, True)
    low = mantissa_bits if implicit else mantissa_bits + 1
    raw = int(_struct.unpack("<Q", _struct.pack("<d", value))[0])
    sign, exponent, fraction = raw >> 63, raw >> 52 & 0x7FF, raw & ((1 << 52) - 1)
    top = 0 if implicit else 1 << 63
    if exponent == 0x7FF:
        wide_exponent, mantissa = 0x7FFF, top | fraction << (mantissa_bits - 52)
    elif exponent == 0 and fraction == 0:
        wide_exponent, mantissa = 0, 0
    else:
        if exponent == 0:
            shift = 53 - fraction.bit_length()
            fraction, exponent = (fraction << shift) & ((1 << 52) - 1), 1 - shift
        wide_exponent, mantissa = exponent - 1023 + 16383, top | fraction << (mantissa_bits - 52)
    return sign << (low + 15) | wide_exponent << low | mantissa


def const_float(type_: Type, value: float) -> Constant:
    """A float constant, or a splat of it for a vector type."""
    if isinstance(type_, ty.VectorType):
        one = const_float(type_.elem, value)
        return ConstAggregate(type_, [one] * type_.count)
    return ConstFloat(type_, float_to_bits(type_, value))


def const_int(type_: Type, value: int) -> ConstInt:
    """An integer constant."""
    return ConstInt(type_, value)


def is_zero(value: Value) -> bool:
    """A constant whose bits are all zero (so +0.0, not -0.0)."""
    if isinstance(value, ConstZero):
        return True
    if isinstance(value, ConstInt):
        return value.value == 0
    if isinstance(value, ConstFloat):
        return value.bits == 0
    return isinstance(value, ConstAggregate) and all(map(is_zero, value.elems))
