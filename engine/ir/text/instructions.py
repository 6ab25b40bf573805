"""The grammar of each family of instructions: one method per family, found in a table."""

from __future__ import annotations

from collections.abc import Callable

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    CallInfo,
    ConstInt,
    InlineAsm,
    Instruction,
    MetadataValue,
    Value,
)
from irgrad.engine.ir.opcodes import CASTS, FLOAT_BINARY, INT_BINARY
from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.text.cursor import Cursor
from irgrad.engine.ir.text.lexer import join
from irgrad.engine.ir.types import Type

_FLAGS = frozenset(
    "nsw nuw nusw exact disjoint nneg samesign inbounds fast nnan ninf nsz arcp contract afn reassoc".split()
)
_ORDERINGS = frozenset("unordered monotonic acquire release acq_rel seq_cst syncscope".split())
_FMF = frozenset("fast nnan ninf nsz arcp contract afn reassoc".split())
_CALL_STARTS = frozenset(("tail", "musttail", "notail"))


class InstructionReader(Cursor):
    """Reads one instruction whose opcode was stepped over. The subclass knows the names of the function."""

    __slots__ = ()

    def block_named(self, name: str) -> Block:
        """The block of that name, which may stand further down."""
        raise NotImplementedError

    def label(self) -> Block:
        """`label %name`."""
        self.take("label")
        token = self.tokens[self.at]
        if token[:1] != "%":
            self.fail("a label")
        self.at += 1
        return self.block_named(bare_name(token))

    def metadata_text(self) -> str:
        """`!12`, `!"text"`, `!{...}` or `!DIExpression(...)`."""
        tokens, start = self.tokens, self.at
        if tokens[start][:1] != "!":
            self.fail("metadata")
        self.at += 1
        if (tokens[self.at] == "{" and tokens[start] == "!") or tokens[self.at] == "(":
            self.balanced()
        return join(tokens[start : self.at])

    def flags(self) -> tuple[str, ...]:
        """Flags behind an opcode, as far as there are some."""
        tokens, start = self.tokens, self.at
        token = tokens[start]
        if token not in _FLAGS and token != "inrange":
            return ()
        out: list[str] = []
        while token in _FLAGS or token == "inrange":
            self.at += 1
            out.append(token if token != "inrange" else token + join(self.balanced()))
            token = tokens[self.at]
        return tuple(out)

    def align(self) -> int:
        """`, align 8` if it is next."""
        tokens = self.tokens
        if tokens[self.at] == "," and tokens[self.at + 1] == "align":
            self.at += 2
            return self.integer()
        return 0

    # -- families --------------------------------------------------------------------------------------------------

    def binary(self, opcode: str) -> Instruction:
        flags = self.flags()
        type_ = self.type_()
        a = self.value(type_)
        self.take(",")
        return Instruction(opcode, type_, (a, self.value(type_)), flags=flags)

    def unary(self, opcode: str) -> Instruction:
        flags = self.flags()
        type_ = self.type_()
        return Instruction(opcode, type_, (self.value(type_),), flags=flags)

    def cast(self, opcode: str) -> Instruction:
        flags = self.flags()
        value = self.typed_value()
        self.take("to")
        return Instruction(opcode, self.type_(), (value,), flags=flags)

    def compare(self, opcode: str) -> Instruction:
        flags = self.flags()
        pred = self.tokens[self.at]
        self.at += 1
        type_ = self.type_()
        a = self.value(type_)
        self.take(",")
        result = ty.vector(type_.count, ty.I1) if isinstance(type_, ty.VectorType) else ty.I1
        return Instruction(opcode, result, (a, self.value(type_)), flags=flags, pred=pred)

    def select(self, opcode: str) -> Instruction:
        flags = self.flags()
        condition = self.typed_value()
        self.take(",")
        a = self.typed_value()
        self.take(",")
        return Instruction(opcode, a.type, (condition, a, self.typed_value()), flags=flags)

    def phi(self, opcode: str) -> Instruction:
        flags = self.flags()
        type_ = self.type_()
        tokens = self.tokens
        values: list[Value] = []
        blocks: list[Block] = []
        while True:
            self.take("[")
            values.append(self.value(type_))
            self.take(",")
            if tokens[self.at][:1] != "%":
                self.fail("a label")
            blocks.append(self.block_named(bare_name(tokens[self.at])))
            self.at += 1
            self.take("]")
            if tokens[self.at] != "," or tokens[self.at + 1] != "[":
                break
            self.at += 1
        return Instruction(opcode, type_, values, flags=flags, blocks=blocks)

    def load(self, opcode: str) -> Instruction:
        atomic = self.accept("atomic")
        volatile = self.accept("volatile")
        type_ = self.type_()
        self.take(",")
        pointer = self.typed_value()
        ordering = self.ordering() if atomic else ""
        return Instruction(opcode, type_, (pointer,), volatile=volatile, ordering=ordering, align=self.align())

    def store(self, opcode: str) -> Instruction:
        atomic = self.accept("atomic")
        volatile = self.accept("volatile")
        value = self.typed_value()
        self.take(",")
        pointer = self.typed_value()
        ordering = self.ordering() if atomic else ""
        return Instruction(opcode, ty.VOID, (value, pointer), volatile=volatile, ordering=ordering, align=self.align())

    def ordering(self) -> str:
        """`syncscope("x") acquire`, one or two orderings."""
        tokens, out = self.tokens, list[str]()
        while tokens[self.at] in _ORDERINGS:
            out += self.attribute()
        if not out:
            self.fail("an atomic ordering")
        return join(out)

    def fence(self, opcode: str) -> Instruction:
        return Instruction(opcode, ty.VOID, ordering=self.ordering())

    def cmpxchg(self, opcode: str) -> Instruction:
        flags = ("weak",) if self.accept("weak") else ()
        volatile = self.accept("volatile")
        pointer = self.typed_value()
        self.take(",")
        expected = self.typed_value()
        self.take(",")
        new = self.typed_value()
        return Instruction(
            opcode, ty.struct((expected.type, ty.I1)), (pointer, expected, new), flags=flags, volatile=volatile,
            ordering=self.ordering(), align=self.align(),
        )  # fmt: skip

    def atomicrmw(self, opcode: str) -> Instruction:
        volatile = self.accept("volatile")
        operation = self.tokens[self.at]
        self.at += 1
        pointer = self.typed_value()
        self.take(",")
        value = self.typed_value()
        return Instruction(
            opcode, value.type, (pointer, value), pred=operation, volatile=volatile, ordering=self.ordering(),
            align=self.align(),
        )  # fmt: skip

    def alloca(self, opcode: str) -> Instruction:
        flags = tuple(f for f in ("inalloca", "swifterror") if self.accept(f))
        elem = self.type_()
        tokens = self.tokens
        count: Value = ConstInt(ty.I32, 1)
        align, space = 0, 0
        while tokens[self.at] == "," and tokens[self.at + 1][:1] != "!":
            self.at += 1
            if self.accept("align"):
                align = self.integer()
            elif self.accept("addrspace"):
                self.take("(")
                space = self.integer()
                self.take(")")
            else:
                count = self.typed_value()
        return Instruction(opcode, ty.ptr(space), (count,), elem=elem, align=align, flags=flags)

    def getelementptr(self, opcode: str) -> Instruction:
        flags = self.flags()
        elem = self.type_()
        operands: list[Value] = []
        result: Type | None = None
        tokens = self.tokens
        while tokens[self.at] == "," and tokens[self.at + 1][:1] != "!":
            self.at += 1
            value = self.typed_value()
            if result is None:
                result = value.type
            elif isinstance(value.type, ty.VectorType) and not isinstance(result, ty.VectorType):
                result = ty.vector(value.type.count, result)
            operands.append(value)
        if result is None:
            self.fail("`,` and a pointer")
        return Instruction(opcode, result, operands, elem=elem, flags=flags)

    def extractelement(self, opcode: str) -> Instruction:
        vector = self.typed_value()
        self.take(",")
        if not isinstance(vector.type, ty.VectorType):
            self.fail("a vector", back=2)
        return Instruction(opcode, vector.type.elem, (vector, self.typed_value()))

    def insertelement(self, opcode: str) -> Instruction:
        vector = self.typed_value()
        self.take(",")
        value = self.typed_value()
        self.take(",")
        return Instruction(opcode, vector.type, (vector, value, self.typed_value()))

    def shufflevector(self, opcode: str) -> Instruction:
        a = self.typed_value()
        self.take(",")
        b = self.typed_value()
        self.take(",")
        mask = self.typed_value()
        if not isinstance(a.type, ty.VectorType) or not isinstance(mask.type, ty.VectorType):
            self.fail("vectors", back=1)
        return Instruction(opcode, ty.vector(mask.type.count, a.type.elem), (a, b, mask))

    def _indices(self) -> tuple[int, ...]:
        tokens = self.tokens
        out: list[int] = []
        while tokens[self.at] == "," and tokens[self.at + 1].isdecimal():
            self.at += 1
            out.append(self.integer())
        if not out:
            self.fail("an index")
        return tuple(out)

    def extractvalue(self, opcode: str) -> Instruction:
        aggregate = self.typed_value()
        indices = self._indices()
        type_ = aggregate.type
        for index in indices:
            type_ = self._part(type_, index)
        return Instruction(opcode, type_, (aggregate,), indices=indices)

    def _part(self, type_: Type, index: int) -> Type:  # noqa: RET503 - fail() raises
        if isinstance(type_, ty.StructType) and type_.fields is not None and index < len(type_.fields):
            return type_.fields[index]
        if isinstance(type_, ty.ArrayType) and index < type_.count:
            return type_.elem
        self.fail(f"an index into `{type_}`", back=1)

    def insertvalue(self, opcode: str) -> Instruction:
        aggregate = self.typed_value()
        self.take(",")
        value = self.typed_value()
        return Instruction(opcode, aggregate.type, (aggregate, value), indices=self._indices())

    def va_arg(self, opcode: str) -> Instruction:
        pointer = self.typed_value()
        self.take(",")
        return Instruction(opcode, self.type_(), (pointer,))

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, opcode: str) -> Instruction:
        tail = ""
        if opcode in _CALL_STARTS:
            tail = opcode
            self.take("call")
            opcode = "call"
        tokens = self.tokens
        flags: tuple[str, ...] = ()
        if tokens[self.at] in _FMF:
            flags = self.flags()
        cc, ret_attrs = self._convention()
        type_ = self.type_()
        fn_type: ty.FunctionType | None = None
        if tokens[self.at] == "(":
            params, vararg = self.function_params()
            fn_type = ty.function(type_, params, vararg)
        callee_at = self.at
        callee = self._callee()
        args, arg_attrs = self._arguments()
        if fn_type is None:
            fn_type = ty.function(type_, tuple(a.type for a in args))
        if callee is None:
            end, self.at = self.at, callee_at + 1
            callee = self.local(ty.PTR, tokens[callee_at])
            self.at = end
        info = CallInfo(fn_type, tail=tail, cc=cc, ret_attrs=ret_attrs, arg_attrs=arg_attrs)
        info.fn_attrs = self._call_attributes()
        if tokens[self.at] == "[":
            info.bundles = join(self.balanced())
        return Instruction(opcode, type_, (*args, callee), flags=flags, call=info)

    def _convention(self) -> tuple[str, str]:
        """Calling convention and return attributes."""
        if self.at_type():
            return "", ""
        words = self.attributes_before_type().split(" ", 1)
        if words[0] == "cc":
            number, _, rest = (words[1] if len(words) > 1 else "").partition(" ")
            return f"cc {number}", rest
        if words[0].endswith("cc"):
            return words[0], words[1] if len(words) > 1 else ""
        return "", " ".join(words)

    def _callee(self) -> Value | None:
        """What is called; None for a local pointer, which is looked up when the call was read."""
        token = self.tokens[self.at]
        self.at += 1
        if token[:1] == "@":
            return self.symbol(token)
        if token[:1] == "%":
            return None
        if token == "asm":
            start = self.at
            while self.tokens[self.at] != "(" and self.tokens[self.at]:
                self.at += 1
            return InlineAsm("asm " + join(self.tokens[start : self.at]))
        return self.constant_at(ty.PTR, token)

    def _arguments(self) -> tuple[list[Value], list[str]]:
        self.take("(")
        tokens = self.tokens
        args: list[Value] = []
        attrs: list[str] = []
        if tokens[self.at] == ")":
            self.at += 1
            return args, attrs
        while True:
            type_ = self.type_()
            if type_ is ty.METADATA:
                args.append(self.metadata_operand())
                attrs.append("")
            else:
                first = tokens[self.at][:1]
                attrs.append("" if first in "%@" else self.attributes_before_value())
                args.append(self.value(type_))
            token = tokens[self.at]
            self.at += 1
            if token == ")":
                return args, attrs
            if token != ",":
                self.fail("`,` or `)`", back=1)

    def metadata_operand(self) -> MetadataValue:
        """What stands behind `metadata` in a list of arguments."""
        if self.tokens[self.at][:1] == "!":
            return MetadataValue(self.metadata_text())
        return MetadataValue("", self.typed_value())

    def _call_attributes(self) -> str:
        tokens = self.tokens
        out: list[str] = []
        while True:
            token = tokens[self.at]
            first = token[:1]
            word = first.isalpha() and token not in PARSERS and token[-1] != ":" and token != "to"
            if not (word or first == '"' or (first == "#" and token[1:2].isdigit())) or token[-1:] == ":":
                return join(out)
            out += self.attribute()

    def invoke(self, opcode: str) -> Instruction:
        instr = self.call(opcode)
        self.take("to")
        normal = self.label()
        self.take("unwind")
        instr.blocks = [normal, self.label()]
        return instr

    def callbr(self, opcode: str) -> Instruction:
        instr = self.call(opcode)
        self.take("to")
        instr.blocks = [self.label(), *self._label_list()]
        return instr

    def _label_list(self) -> list[Block]:
        self.take("[")
        out: list[Block] = []
        while not self.accept("]"):
            if out:
                self.take(",")
            out.append(self.label())
        return out

    # -- control flow ----------------------------------------------------------------------------------------------

    def br(self, opcode: str) -> Instruction:
        if self.tokens[self.at] == "label":
            return Instruction(opcode, ty.VOID, blocks=(self.label(),))
        condition = self.typed_value()
        self.take(",")
        a = self.label()
        self.take(",")
        return Instruction(opcode, ty.VOID, (condition,), blocks=(a, self.label()))

    def switch(self, opcode: str) -> Instruction:
        value = self.typed_value()
        self.take(",")
        operands: list[Value] = [value]
        blocks = [self.label()]
        self.take("[")
        while not self.accept("]"):
            operands.append(self.typed_value())
            self.take(",")
            blocks.append(self.label())
        return Instruction(opcode, ty.VOID, operands, blocks=blocks)

    def indirectbr(self, opcode: str) -> Instruction:
        address = self.typed_value()
        self.take(",")
        return Instruction(opcode, ty.VOID, (address,), blocks=self._label_list())

    def ret(self, opcode: str) -> Instruction:
        if self.accept("void"):
            return Instruction(opcode, ty.VOID)
        return Instruction(opcode, ty.VOID, (self.typed_value(),))

    def unreachable(self, opcode: str) -> Instruction:
        return Instruction(opcode, ty.VOID)

    # -- exceptions ------------------------------------------------------------------------------------------------

    def resume(self, opcode: str) -> Instruction:
        return Instruction(opcode, ty.VOID, (self.typed_value(),))

    def landingpad(self, opcode: str) -> Instruction:
        type_ = self.type_()
        tokens, start = self.tokens, self.at
        while tokens[self.at] in ("cleanup", "catch", "filter"):
            self.at += 1
            if tokens[self.at - 1] != "cleanup":
                self.typed_value()
        return Instruction(opcode, type_, clauses=join(tokens[start : self.at]))

    def funclet(self, opcode: str) -> Instruction:
        """catchswitch, catchpad, cleanuppad, catchret, cleanupret: kept as text, with their labels."""
        tokens, start = self.tokens, self.at
        result = ty.TOKEN if opcode in ("catchswitch", "catchpad", "cleanuppad") else ty.VOID
        blocks: list[Block] = []
        while tokens[self.at] in ("within", "from", "none", "[", "unwind", "to", "caller", "label") or (
            tokens[self.at][:1] == "%" and tokens[self.at + 1] != "="
        ):
            if tokens[self.at] == "label":
                blocks.append(self.label())
            elif tokens[self.at] == "[" and opcode == "catchswitch":
                blocks += self._label_list()
            elif tokens[self.at] == "[":
                self.balanced()
            else:
                self.at += 1
        return Instruction(opcode, result, clauses=join(tokens[start : self.at]), blocks=blocks)


_Parser = Callable[[InstructionReader, str], Instruction]
PARSERS: dict[str, _Parser] = {
    **dict.fromkeys(INT_BINARY | FLOAT_BINARY, InstructionReader.binary),
    **dict.fromkeys(CASTS, InstructionReader.cast),
    **dict.fromkeys(("fneg", "freeze"), InstructionReader.unary),
    **dict.fromkeys(("icmp", "fcmp"), InstructionReader.compare),
    **dict.fromkeys(("call", "tail", "musttail", "notail"), InstructionReader.call),
    **dict.fromkeys(("catchswitch", "catchpad", "cleanuppad", "catchret", "cleanupret"), InstructionReader.funclet),
}
for _name in (
    "select phi load store fence cmpxchg atomicrmw alloca getelementptr extractelement insertelement shufflevector "
    "extractvalue insertvalue va_arg invoke callbr br switch indirectbr ret unreachable resume landingpad"
).split():
    PARSERS[_name] = getattr(InstructionReader, _name)
