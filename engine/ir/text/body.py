"""Reads the body of a function: blocks, instructions, metadata attachments, debug records.

One method per family of opcodes, found in a table. Names may be used before they are defined (phis, blocks in any
order): such a use gets a placeholder that is replaced when the body is complete.
"""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    Function,
    Instruction,
    MetadataValue,
    Module,
    Value,
)
from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.text.instructions import PARSERS, InstructionReader
from irgrad.engine.ir.types import Type


class _Placeholder(Value):
    """A local value used before its definition."""

    __slots__ = ("token_at",)

    def __init__(self, type_: Type, name: str, token_at: int) -> None:
        super().__init__(type_, name)
        self.token_at = token_at


class BodyReader(InstructionReader):
    """Fills `function` from the text of its body (without the braces)."""

    __slots__ = ("block", "blocks", "counter", "debug", "defined", "function", "locals", "patches", "unresolved")

    def __init__(self, module: Module, function: Function, text: str, first_line: int) -> None:
        super().__init__(module, text, first_line)
        self.function = function
        self.locals: dict[str, Value] = {}
        self.blocks: dict[str, Block] = {}
        self.defined: dict[str, int] = {}
        self.unresolved: dict[str, _Placeholder] = {}
        self.patches: list[Instruction] = []
        self.counter = 0
        self.debug: list[str] = []
        self.block: Block | None = None
        for arg in function.args:
            if arg.name is None:
                arg.name = str(self.counter)
            self._define(arg, arg.name)

    def read(self) -> None:
        """Read the whole body into `function.blocks`."""
        tokens = self.tokens
        while True:
            token = tokens[self.at]
            if token[-1:] == ":" and token != ":":
                self.at += 1
                self._start_block(bare_name("%" + token[:-1]))
            elif token[:5] == "#dbg_":
                self.debug.append(token.rstrip())
                self.at += 1
            elif token == "":
                break
            elif token == "uselistorder":
                self._use_list_order()
            else:
                if self.block is None:
                    self._start_block(None)
                self._instruction(token)
        if not self.function.blocks:
            self.fail("a block")
        self._resolve()

    # -- names -----------------------------------------------------------------------------------------------------

    def _define(self, value: Value, name: str) -> None:
        if name in self.locals or name in self.defined:
            self.fail(f"a name other than `%{name}`, which is defined already", back=1)
        self.locals[name] = value
        if name.isdecimal() and name.isascii():
            self.counter = max(self.counter, int(name) + 1)

    def _start_block(self, name: str | None) -> None:
        if name is None:
            name = str(self.counter)
        if name in self.locals or name in self.defined:
            self.fail(f"a label other than `{name}`, which is defined already", back=1)
        if name.isdecimal() and name.isascii():
            self.counter = max(self.counter, int(name) + 1)
        block = self.block_named(name)
        self.defined[name] = len(self.defined)
        block.function = self.function
        self.function.blocks.append(block)
        self.block = block

    def block_named(self, name: str) -> Block:
        found = self.blocks.get(name)
        if found is None:
            found = self.blocks[name] = Block(name)
            found.function = self.function
        return found

    def local(self, type_: Type, token: str) -> Value:
        name = token[1:] if token[1:2] != '"' else bare_name(token)
        found = self.locals.get(name)
        if found is None:
            found = self.unresolved.get(name)
            if found is None:
                found = self.unresolved[name] = _Placeholder(type_, name, self.at - 1)
        if found.type is not type_:
            self.fail(f"a value of type `{type_}` instead of `{found.type}`", back=1)
        return found

    def _resolve(self) -> None:
        for name in self.blocks:
            if name not in self.defined:
                positions = [i for i, t in enumerate(self.tokens) if t[:1] == "%" and bare_name(t) == name]
                self.at = positions[0] if positions else self.at
                self.fail(f"a label; `%{name}` is not defined")
        for name, hole in self.unresolved.items():
            found = self.locals.get(name)
            if found is None or found.type is not hole.type:
                self.at = hole.token_at
                got = "it is not defined" if found is None else f"`%{name}` has type `{found.type}`"
                self.fail(f"a value of type `{hole.type}` ({got})")
        for instr in self.patches:
            for i, operand in enumerate(instr.operands):
                if isinstance(operand, _Placeholder):
                    instr.operands[i] = self.locals[operand.name or ""]
                elif isinstance(operand, MetadataValue) and isinstance(operand.value, _Placeholder):
                    operand.value = self.locals[operand.value.name or ""]

    # -- one instruction -------------------------------------------------------------------------------------------

    def _instruction(self, token: str) -> None:
        tokens = self.tokens
        name: str | None = None
        if token[:1] == "%":
            name = token[1:] if token[1:2] != '"' else bare_name(token)
            if tokens[self.at + 1] != "=":
                self.at += 1
                self.fail("`=`")
            self.at += 2
            token = tokens[self.at]
        parse = PARSERS.get(token)
        if parse is None:
            self.fail("an instruction")
        self.at += 1
        holes = len(self.unresolved)
        waiting = holes > 0
        instr = parse(self, token)
        block = self.block
        assert block is not None
        instr.block = block
        block.instructions.append(instr)
        if waiting or len(self.unresolved) > holes:
            self._note_holes(instr)
        if instr.type is not ty.VOID:
            if name is None:
                name = str(self.counter)
            instr.name = name
            self._define(instr, name)
        elif name is not None:
            self.fail("no name for an instruction without a result", back=1)
        if self.debug:
            instr.debug_records = self.debug
            self.debug = []
        if tokens[self.at] == ",":
            self._attachments(instr)
        if instr.is_terminator:
            self.block = None

    def _note_holes(self, instr: Instruction) -> None:
        for operand in instr.operands:
            if isinstance(operand, _Placeholder) or (
                isinstance(operand, MetadataValue) and isinstance(operand.value, _Placeholder)
            ):
                self.patches.append(instr)
                return

    def _attachments(self, instr: Instruction) -> None:
        """`, !dbg !12, !tbaa !5`."""
        tokens = self.tokens
        while tokens[self.at] == ",":
            kind = tokens[self.at + 1]
            if kind[:1] != "!":
                self.at += 1
                self.fail("metadata")
            self.at += 2
            instr.metadata[kind[1:]] = self.metadata_text()

    def _use_list_order(self) -> None:
        self.at += 1
        self.typed_value()
        self.take(",")
        self.balanced()
