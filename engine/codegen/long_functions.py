"""Very long functions are made digestible for LLVM's code generator, whose work is quadratic in two lengths.

In the length of a block: instruction selection looks at a block as one graph. In the lengths of live ranges: register
allocation, scheduling and the colouring of spill slots look at all values that are alive at once, and a reverse sweep
without loops keeps most values of its primal sweep alive. So, in functions of more than `LIMIT` instructions, long
blocks are cut into pieces that become functions of their own, and a value that is used in another piece, or far from
where it is computed, goes through a frame in memory (where a register allocator would have put it after much thought).

This is the last thing that happens to IR; functions below the limit are left exactly as they are.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, MetadataValue, Module, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.outline import function_bodies
from irgrad.engine.ir.text.reader import read
from irgrad.engine.support.pause import no_collections

__all__ = ["LIMIT", "PIECE", "REACH", "STACK", "SlowCompilation", "shorten", "shorten_module"]

LIMIT = 10_000
"""Functions of more instructions than this are treated. Up to here the code generator takes about a second."""
PIECE = 500
"""How many instructions a piece has. Blocks of up to twice as many stay whole."""
REACH = 500
"""How far from its definition a value may be used, in instructions, before it goes through memory."""
STACK = 1 << 16
"""A frame of more bytes is taken from the heap: threads may have small stacks."""


class SlowCompilation(RuntimeWarning):
    """A long function could not be cut into pieces; its machine code is right, and slow to make."""


_NAME = ".piece."
_FIRST = having("leads_block")
# What belongs to the function it stands in.
_BOUND = re.compile(
    r"\bmusttail\b|@llvm\.(?:stacksave|stackrestore|frameaddress|returnaddress|va_start|localescape)"
)
_TWICE_GROUP = re.compile(r"^attributes (#\d+) = \{[^}]*\breturns_twice\b", re.M)
_HEAD = re.compile(r"^(?:declare|define)\b[^\n]*?@(?P<name>[-a-zA-Z$._0-9]+|\"[^\"\n]*\")\([^\n]*", re.M)
_TEXT_ATTRIBUTES = re.compile(r'"[^"]*"(?:="[^"]*")?|\bstrictfp\b')


def shorten_module(module: Any) -> Any:
    """An llvmlite module as `shorten` leaves it: the same one, or a new one (and the given one is closed)."""
    text = str(module)
    short = shorten(text)
    if short is text:
        return module
    module.close()
    return parse(short)


def shorten(text: str, limit: int | None = None) -> str:
    """The module with its long functions rewritten; the same string when there is none."""
    limit = LIMIT if limit is None else limit
    if text.count("\n") <= limit:
        return text
    long, names = {name: body for name, body in function_bodies(text).items() if body.count("\n") > limit}, []
    twice = _returns_twice(text) if long else _BOUND
    for name, body in long.items():
        bound = _BOUND.search(body) or twice.search(body)
        if bound is None:
            names.append(name)
        else:
            _tell(name, bound[0])
    if not names:
        return text
    with no_collections():
        module = read(text, roots=names, reach=False)
        done = False
        for name in names:
            function = module.functions.get(name)
            if function is not None and sum(len(block.instructions) for block in function.blocks) > limit:
                plan = _Plan(module, function)
                if plan.find():
                    plan.rewrite()
                    done = True
                elif plan.obstacle:
                    _tell(name, plan.obstacle)
        return to_text(module) if done else text


def _returns_twice(text: str) -> re.Pattern[str]:
    """What stands in the line of a call that returns twice: the attribute, a group of attributes with it, or the name
    of a function that has it."""
    groups = _TWICE_GROUP.findall(text)
    marks = [r"\breturns_twice\b", *(rf"{group}\b" for group in groups)]
    said = re.compile("|".join(marks))
    return re.compile("|".join([*marks, *(rf"@{re.escape(found['name'])}\(" for found in _HEAD.finditer(text)
                                          if said.search(found[0]))]))  # fmt: skip


def _tell(name: str, what: str) -> None:
    warnings.warn(f"`{name}` is long and stays whole, so that making its machine code takes time that grows with the "
                  f"square of its length: it holds {what}", SlowCompilation, stacklevel=2)  # fmt: skip


class _Plan:
    """The pieces of a function, the values that go through its frame, and how the function is rewritten."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.cfg = get(Cfg, function)
        self.pieces: dict[int, list[Function]] = {}  # id of a block -> the functions that it calls behind its phis
        self.region: dict[int, Block] = {}  # id of an instruction -> the block or the body of the piece it will be in
        self.position: dict[int, int] = {}
        self.places: dict[int, int] = {}  # id of a value -> its offset in the frame
        self.bases: dict[int, Value] = {}  # id of an address -> what it is computed from, before anything is rewritten
        self.uses: list[tuple[Instruction, int, Value, Block]] = []  # user, operand, value, where it is wanted
        self.size = self.count = 0
        self.near: dict[tuple[int, int, bool], Value] = {}  # what a region has loaded
        self.frames: dict[int, Value] = {}  # id of the body of a piece -> its argument
        self.frame: Value = function
        self.obstacle = ""  # what cannot be moved

    # -- finding -----------------------------------------------------------------------------------------------------

    def find(self) -> bool:
        """Choose pieces and places. False where there is nothing to do, or something that cannot be moved."""
        number, ends = 0, {}
        for block in self.function.blocks:
            self._choose_pieces(block)
            for instr in block.instructions:
                self.position[id(instr)] = number
                self.region.setdefault(id(instr), block)
                number += 1
            ends[block] = number
        for block in self.function.blocks:
            for user in block.instructions:
                if user.call is not None and "%" in user.call.bundles and id(self.region[id(user)]) in self.frames:
                    self.obstacle = "a call with operand bundles"
                    return False
                for index, value in enumerate(user.operands):
                    if isinstance(value, MetadataValue) and value.value is not None:
                        self.obstacle = "a value used as metadata"
                        return False
                    if isinstance(value, Instruction | Argument):
                        phi = user.opcode == "phi"
                        where = user.blocks[index] if phi else self.region[id(user)]
                        at = ends[where] if phi else self.position[id(user)]
                        if self._goes_through_memory(value, where, at):
                            if not self._place(value):
                                self.obstacle = f"a value of type {value.type} that memory cannot hold"
                                return False
                            self.uses.append((user, index, value, where))
        return bool(self.pieces or self.places)

    def _choose_pieces(self, block: Block) -> None:
        rows, start = block.instructions, _start(block)
        if len(rows) - start <= 2 * PIECE or any(i.opcode in ("alloca", "va_arg") for i in rows[start:]):
            return
        made = self.pieces[id(block)] = []
        for at in range(start, len(rows) - PIECE, PIECE):
            piece = Function(self._fresh_name(), ty.function(ty.VOID, (ty.PTR,)), ["frame"])
            body = Block("entry")
            body.function, piece.blocks = piece, [body]
            for instr in rows[at : at + PIECE]:
                self.region[id(instr)] = body
            self.frames[id(body)] = piece.args[0]
            made.append(piece)

    def _fresh_name(self) -> str:
        while True:
            name = f"{self.function.name}{_NAME}{self.count}"
            self.count += 1
            if self.module.symbol(name) is None:
                return name

    def _goes_through_memory(self, value: Value, where: Block, at: int) -> bool:
        home = self.region[id(value)] if isinstance(value, Instruction) else self.function.entry
        if home is where:
            return False
        if id(home) in self.frames or id(where) in self.frames:
            return True
        if not isinstance(value, Instruction) or value.is_terminator or not _plain(value) or value.opcode == "alloca":
            return False
        # Values of loops stay where they are: those are worth the register allocator's thought.
        straight = not self.cfg.in_cycle(home) and not self.cfg.in_cycle(where)
        return straight and abs(at - self.position[id(value)]) > REACH

    def _place(self, value: Value) -> bool:
        if _address(value):
            assert isinstance(value, Instruction)
            base = self.bases[id(value)] = value.operands[0]
            return not isinstance(base, Instruction | Argument) or self._place(base)
        if not _plain(value) or (isinstance(value, Instruction) and value.is_terminator):
            return False
        if id(value) not in self.places:
            align = _align(value)
            self.size = -(-self.size // align) * align
            self.places[id(value)] = self.size
            self.size += max(ty.size_of(value.type), 1)
        return True

    # -- rewriting ---------------------------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """Store values behind their definitions, load them where they are used, and take the pieces out."""
        frame = self._make_frame()
        before: dict[int, list[Instruction]] = {}
        ends: dict[int, list[Instruction]] = {}
        for user, index, value, where in self.uses:
            phi = user.opcode == "phi"
            rows = ends.setdefault(id(where), []) if phi else before.setdefault(id(user), [])
            user.operands[index] = self._at(value, where, rows, phi)
        for block in self.function.blocks:
            start = _start(block)
            head = block.instructions[:start]
            opening: list[Instruction] = [frame] if block is self.function.entry else []
            for value in (*self.function.args, *head) if opening else head:
                if id(value) in self.places:
                    opening += self._stored(value, block)
            parts: dict[int, list[Instruction]] = {id(block): []}
            for instr in self._merged(block.instructions[start:], before, ends.get(id(block), [])):
                assert instr.block is not None
                parts.setdefault(id(instr.block), []).append(instr)
            calls = Block()  # before the first load of what the pieces have stored
            for piece in self.pieces.get(id(block), ()):
                piece.entry.instructions = parts[id(piece.entry)]
                Builder(piece.entry).ret()
                self._adopt(piece)
                Builder(calls).call(piece, [self.frame]).block = block
            block.instructions = [*head, *opening, *calls.instructions, *parts[id(block)]]
        self._close()

    def _merged(self, rows: list[Instruction], before: dict[int, list[Instruction]],
                at_end: list[Instruction]) -> Iterator[Instruction]:
        for instr in rows:
            region = instr.block = self.region[id(instr)]
            yield from before.get(id(instr), ())
            if instr.is_terminator:
                yield from at_end
            if id(region) in self.frames:
                instr.metadata.pop("dbg", None)  # a piece has no debug information of its own
                instr.debug_records = []
            yield instr
            if id(instr) in self.places:
                yield from self._stored(instr, region)

    def _stored(self, value: Value, region: Block) -> list[Instruction]:
        rows: list[Instruction] = []
        store = Instruction("store", ty.VOID, [value, self._cell(value, region, rows)], align=_align(value))
        store.block = region
        return [*rows, store]

    def _at(self, value: Value, region: Block, rows: list[Instruction], at_end: bool) -> Value:
        """The value in a region: loaded there, or an address computed there again."""
        found = self.near.get((id(value), id(region), at_end))
        if found is not None:
            return found
        if _address(value):
            assert isinstance(value, Instruction)
            base = self.bases[id(value)]
            if isinstance(base, Instruction | Argument):
                base = self._at(base, region, rows, at_end)
            made = Instruction("getelementptr", value.type, [base, *value.operands[1:]], elem=value.elem,
                               flags=value.flags)
        else:
            made = Instruction("load", value.type, [self._cell(value, region, rows)], align=_align(value))
        made.block = region
        rows.append(made)
        self.near[id(value), id(region), at_end] = made
        return made

    def _cell(self, value: Value, region: Block, rows: list[Instruction]) -> Value:
        frame = self.frames.get(id(region), self.frame)
        made = Instruction("getelementptr", ty.PTR, [frame, ConstInt(ty.I64, self.places[id(value)])], elem=ty.int_(8),
                           flags=("inbounds",))
        made.block = region
        rows.append(made)
        return made

    # -- the frame ---------------------------------------------------------------------------------------------------

    def _make_frame(self) -> Instruction:
        size = max(self.size, 1)
        if size <= STACK:
            frame = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=ty.array(size, ty.int_(8)), align=16)
            frame.block = self.function.entry
        else:
            scratch = Block()
            frame = Builder(scratch).call(_library(self.module, "malloc", ty.PTR, ty.I64), [ConstInt(ty.I64, size)])
            frame.block = self.function.entry
        self.frame = frame
        return frame

    def _close(self) -> None:
        if self.frame.opcode != "call":  # type: ignore[attr-defined]
            return
        free = _library(self.module, "free", ty.VOID, ty.PTR)
        for block in self.function.blocks:
            if block.terminator.opcode in ("ret", "resume"):
                Builder(block, len(block.instructions) - 1).call(free, [self.frame])

    def _adopt(self, piece: Function) -> None:
        """Give a piece a place in the module, and of the function's attributes those that say how to compute.

        Not the others: a piece writes to its frame, whatever is known about the memory of the whole function.
        """
        groups = [self.module.attribute_groups.get(row, "") for row in re.findall(r"#\d+", self.function.tail)]
        piece.head = "internal"
        piece.tail = " ".join(dict.fromkeys(_TEXT_ATTRIBUTES.findall(" ".join(groups))))
        self.module.functions[piece.name or ""] = piece


def _start(block: Block) -> int:
    """Where the part of a block begins that pieces can be taken from."""
    return next(n for n, instr in enumerate(block.instructions) if instr.opcode not in _FIRST)


def _plain(value: Value) -> bool:
    return not isinstance(value.type, ty.SimpleType)  # not a token, not metadata


def _align(value: Value) -> int:
    return max(1, min(ty.align_of(value.type), 16))  # 16 is what malloc gives


def _address(value: Value) -> bool:
    """An address at a constant distance: computed again rather than kept."""
    return (isinstance(value, Instruction) and value.opcode == "getelementptr"
            and all(isinstance(i, ConstInt) for i in value.operands[1:]))  # fmt: skip


def _library(module: Module, name: str, result: ty.Type, argument: ty.Type) -> Function:
    found = module.functions.get(name)
    if found is None:
        found = module.functions[name] = Function(name, ty.function(result, (argument,)))
        found.tail = "nounwind"
    return found
