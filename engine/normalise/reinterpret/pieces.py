"""Floats and pointers that are copied in pieces are copied whole.

A loop over bytes that the compiler unrolled, and its vectoriser after that, moves a struct in whatever pieces fit:

    b = bitcast <2 x double> v to <16 x i8>              store double (extractelement v, 1), q
    store i8 (extractelement b, 8), q                    store i64 w, q + 8
    store <8 x i8> (load p + 9), q + 1            ->
    store i8 (trunc (lshr (load i64 p + 8), 56)), q + 9

    h = or (zext (load i32, p)), (shl (zext (load i32, p + 4)), 32)        h = load i64, p

In a block, each byte is followed to the value that it is part of, through shuffles, shifts and memory. A word of memory
that is stored in pieces is stored at once, after the last of them, where its bytes are those of one float, pointer or
word, or lie side by side in memory that nothing changed meanwhile. What the source calls an integer is no piece.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.memory.tbaa import Tbaa, type_tag
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    ConstExpr,
    ConstInt,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.reinterpret.value_bytes import (
    LONGEST,
    PLACES,
    Byte,
    Loaded,
    ValueBytes,
    place,
    plain_size,
)

__all__ = ["join_pieces"]

_WORD = 8
_LISTED = 4096  # bytes of a copy, the same
_TOUCHES = having("reads") | having("writes")
_WRITES = having("writes")


def join_pieces(module: Module, fn: Function) -> bool:
    """Floats and pointers that are copied in pieces are copied whole. Returns whether anything changed."""
    if not any(_is_joined(i) or (i.opcode == "store" and _comes_in_pieces(i.operands[0])) for i in fn.instructions()):
        return False
    bytes_of, tbaa, replaced = ValueBytes(), Tbaa(module), dict[Value, Value]()
    changed = False
    for block in fn.blocks:
        joins = _Joins(block, bytes_of, tbaa)
        changed |= joins.run()
        replaced |= joins.replaced
    if replaced:
        replace_uses(fn, replaced)
    if changed:
        _drop_unused(fn)
    return changed


def _is_piece(type_: ty.Type) -> bool:
    """An integer shorter than a word, or a vector of such."""
    return type_.scalar.is_int and 0 < plain_size(type_.scalar) < _WORD


def _comes_in_pieces(value: Value) -> bool:
    moved = isinstance(value, Instruction) and (value.opcode == "load" or value.opcode in PLACES)
    return (moved or isinstance(value, ConstExpr)) and _is_piece(value.type)


def _is_joined(instr: Instruction) -> bool:
    """The bits of an integer that was put together become a float or a pointer, or what is taken out of many."""
    source = instr.operands[0] if instr.operands else None
    if instr.opcode == "trunc" and source is not None and isinstance(source.type, ty.IntType):
        return source.type.bits > 8 * _WORD >= 8 * plain_size(instr.type) > 0
    casts = instr.opcode == "inttoptr" or (instr.opcode == "bitcast" and instr.type.is_float)
    return casts and isinstance(source, Instruction) and source.opcode in PLACES and source.opcode != "bitcast"


def _apart(a: Value, b: Value) -> bool:
    """Two bases are different variables."""
    return a is not b and _is_variable(a) and _is_variable(b)


def _is_variable(value: Value) -> bool:
    """A variable, or fresh memory."""
    if not isinstance(value, Instruction):
        return isinstance(value, GlobalVariable)
    return value.opcode == "alloca" or (value.call is not None and "noalias" in value.call.ret_attrs.split())


@dataclass(slots=True, eq=False)
class _Word:
    """A word of memory that is stored in parts, of which nothing was read yet."""

    base: Value
    start: int
    stores: list[tuple[Instruction, int]] = field(default_factory=list)  # (store, its distance from the base)
    content: dict[int, Byte] = field(default_factory=dict)
    in_pieces: bool = False


class _Joins:
    """One block."""

    def __init__(self, block: Block, bytes_of: ValueBytes, tbaa: Tbaa) -> None:
        self.replaced: dict[Value, Value] = {}
        self._block = block
        self._bytes = bytes_of
        self._tbaa = tbaa
        self._memory: dict[Value, dict[int, Byte]] = {}
        self._written: dict[Value, dict[int, int]] = {}
        self._last: dict[Value, int] = {}
        self._everything = 0  # when something was done that may have written anywhere
        self._open: dict[tuple[Value, int], _Word] = {}
        self._left: dict[Instruction, int] = {}  # a store -> words of it that stay as they are
        self._joined: dict[Instruction, set[int]] = {}  # a store -> the words of it that are stored at once
        self._wide: dict[tuple[Value, int, ty.Type], Value] = {}
        self._before: dict[Instruction, list[Instruction]] = {}
        self._after: dict[Instruction, list[Instruction]] = {}

    def run(self) -> bool:
        """Rewrite the block. Returns whether anything changed."""
        for now, instr in enumerate(self._block.instructions, 1):
            plain = not instr.volatile and not instr.ordering
            if instr.opcode == "load" and plain and plain_size(instr.type):
                self._load(instr, now)
            elif instr.opcode == "store" and plain and plain_size(instr.operands[0].type):
                self._store(instr, now)
            elif instr.opcode in _TOUCHES and not _only_computes(instr):
                if not (_moves_bytes(instr) and self._move(instr, now)):
                    self._touch(instr, now)
            elif _is_joined(instr):
                self._cast(instr)
        self._close(list(self._open.values()))
        for store, left in self._left.items():
            if 0 < left < len(self._joined.get(store, ())) + left:
                self._keep_rest(store)
        gone = {store for store, left in self._left.items() if not left}
        if not (self._before or self._after or self.replaced):
            return False
        old, self._block.instructions = self._block.instructions, []
        for instr in old:
            itself = [] if instr in gone or instr in self.replaced else [instr]
            for new in (*self._before.get(instr, ()), *itself, *self._after.get(instr, ())):
                new.block = self._block
                self._block.instructions.append(new)
        return True

    # -- memory ------------------------------------------------------------------------------------------------------

    def _load(self, load: Instruction, now: int) -> None:
        (base, at), size = place(load.operands[0]), plain_size(load.type)
        self._close(self._touched(base, at, size))
        if size > LONGEST:
            return
        others = [when for other, when in self._last.items() if other is not base and not _apart(other, base)]
        elsewhere, written = max([self._everything, *others]), self._written.get(base, {})
        since = [max(elsewhere, written.get(at + i, 0)) for i in range(size)]
        self._bytes.loads[load] = Loaded((base, at), self._block, now, since)
        memory = self._memory.setdefault(base, {})
        own: list[Byte] = [(load, i) for i in range(size)]
        if self._is_number(load):
            self._bytes.loaded(load, own)
        elif _is_piece(load.type) or all(at + i in memory for i in range(size)):
            self._bytes.loaded(load, [memory.setdefault(at + i, byte) for i, byte in enumerate(own)])
        else:
            memory.update({at + i: byte for i, byte in enumerate(own)})

    def _store(self, store: Instruction, now: int) -> None:
        value, (base, at) = store.operands[0], place(store.operands[1])
        size = plain_size(value.type)
        self._close(self._touched(base, at, size))
        content = self._bytes.of(value) if size <= LONGEST else [(value, i) for i in range(size)]
        placed = {at + i: byte for i, byte in enumerate(content)}
        self._write(base, placed, placed, now)
        if size <= LONGEST and (_is_piece(value.type) or size < _WORD or at % _WORD):
            self._add(store, base, placed)

    def _move(self, call: Instruction, now: int) -> bool:
        """A memcpy or memset of known length: the target holds what the source held."""
        target, value, length = call.args[:3]
        if not isinstance(length, ConstInt) or length.value > _LISTED:
            return False
        (base, at), size = place(target), length.value
        if isinstance(value, ConstInt):
            written: dict[int, Byte] = dict.fromkeys(range(at, at + size), (None, value.value & 255))
        elif value.type.is_ptr:
            source, start = place(value)
            self._close(self._touched(source, start, size))
            held = self._memory.get(source, {})
            written = {at + i: held[start + i] for i in range(size) if start + i in held}
        else:
            return False
        self._close(self._touched(base, at, size))
        self._write(base, range(at, at + size), written, now)
        return True

    def _write(self, base: Value, places: Iterable[int], content: dict[int, Byte], now: int) -> None:
        """Bytes of memory are written; of those that `content` lacks it is not known with what."""
        for other in [other for other in self._memory if other is not base and not _apart(other, base)]:
            del self._memory[other]
        memory = self._memory.setdefault(base, {})
        for byte in places:
            memory.pop(byte, None)
        memory.update(content)
        self._written.setdefault(base, {}).update(dict.fromkeys(places, now))
        self._last[base] = now

    def _add(self, store: Instruction, base: Value, placed: dict[int, Byte]) -> None:
        starts = sorted({at - at % _WORD for at in placed})
        self._left[store] = len(starts)
        for start in starts:
            word = self._open.setdefault((base, start), _Word(base, start))
            word.stores.append((store, min(placed)))
            word.content.update({at: byte for at, byte in placed.items() if start <= at < start + _WORD})
            word.in_pieces |= store.operands[0].type.scalar.is_int and not self._is_number(store)

    def _touched(self, base: Value, at: int, size: int) -> list[_Word]:
        """The open words that an access meets, or may meet."""
        return [word for word in self._open.values()
                if (any(at <= byte < at + size for byte in word.content) if word.base is base
                    else not _apart(word.base, base))]  # fmt: skip

    def _touch(self, instr: Instruction, now: int) -> None:
        """A call, a fence, an update: it may read and write anything."""
        self._close(list(self._open.values()))
        if instr.opcode in _WRITES:
            self._memory.clear()
            self._everything = now

    def _is_number(self, access: Instruction) -> bool:
        """The source calls what is loaded or stored an integer."""
        tag = type_tag(access)
        return bool(tag) and self._tbaa.kind(tag or "") is INT

    # -- words -------------------------------------------------------------------------------------------------------

    def _close(self, words: list[_Word]) -> None:
        """Something is about to read them: those that were stored in pieces are stored whole."""
        for word in words:
            del self._open[word.base, word.start]
            last, b = word.stores[-1][0], self._builder(word.stores[-1][0])
            places = range(word.start, word.start + _WORD)
            if not word.in_pieces or len(word.content) < _WORD:
                continue
            parts = self._word([word.content[i] for i in places], b)
            if not parts or any(store.operands[0] is parts[0] for store, _ in word.stores):
                continue
            align = max(gcd(store.align or 1, abs(word.start - at)) for store, at in word.stores)
            for i, part in enumerate(parts):
                step = _WORD // len(parts) * i
                b.store(part, b.gep(ty.I8, word.base, word.start + step, flags=()), gcd(align, step))
            self._after.setdefault(last, []).extend(b.block.instructions)
            for store, _ in word.stores:
                self._left[store] -= 1
                self._joined.setdefault(store, set()).add(word.start)

    def _keep_rest(self, store: Instruction) -> None:
        """What a store writes of words that are not complete is stored by itself, where it is of numbers."""
        value, (base, at) = store.operands[0], place(store.operands[1])
        content, b = self._bytes.of(value), self._builder(store)
        rest = [i for i in range(len(content)) if (at + i) - (at + i) % _WORD not in self._joined[store]]
        while rest:
            first = rest[0]
            size = next(n for n in (4, 2, 1) if (at + first) % n == 0 and set(range(first, first + n)) <= set(rest))
            part = self._whole(content[first : first + size], ty.int_(8 * size), b)
            if part is None or not part.type.is_int:
                return
            b.store(part, b.gep(ty.I8, base, at + first, flags=()), gcd(store.align or 1, first))
            rest = rest[size:]
        self._before.setdefault(store, []).extend(b.block.instructions)
        self._left[store] = 0

    def _cast(self, cast: Instruction) -> None:
        """A float or pointer that is put together of pieces."""
        source = cast.operands[0]
        found = self._bytes.of(source)
        if len(found) != plain_size(cast.type) or all(byte and byte[0] is source for byte in found):
            return
        b = self._builder(cast)
        whole = self._whole(found, cast.type, b)
        if whole is None or whole is source:
            return
        if whole.type is not cast.type:
            opcode = "ptrtoint" if whole.type.is_ptr else "inttoptr" if cast.type.is_ptr else "bitcast"
            pointer, number = (whole.type.is_ptr or cast.type.is_ptr), (whole.type.is_fp or cast.type.is_fp)
            whole = None if pointer and number else b.insert(Instruction(opcode, cast.type, [whole]))
        if whole is not None:
            self._before.setdefault(cast, []).extend(b.block.instructions)
            self.replaced[cast] = whole

    @staticmethod
    def _builder(at: Instruction) -> Builder:
        b = Builder(Block("pieces"))
        b.metadata = {"dbg": at.metadata["dbg"]} if "dbg" in at.metadata else {}
        return b

    def _word(self, found: list[Byte], b: Builder) -> list[Value]:
        """The word with these bytes, or its halves, one of which is a float; none where they are of more things."""
        whole = self._whole(found, ty.I64, b)
        if whole is not None:
            return [whole]
        half = _WORD // 2
        halves = [self._whole(found[i : i + half], ty.I32, b) for i in (0, half)]
        parts = [part for part in halves if part is not None]
        return parts if len(parts) == 2 and any(part.type.is_float for part in parts) else []

    def _whole(self, found: list[Byte], type_: ty.Type, b: Builder) -> Value | None:
        """The value with these bytes, of this type where it is loaded."""
        known = [byte for byte in found if byte is not None]
        if len(known) < len(found):
            return None
        if all(value is None for value, _ in known):
            number = sum(byte << 8 * i for i, (_, byte) in enumerate(known))
            return ConstInt(ty.int_(8 * len(known)), number)
        value, start = known[0]
        if value is not None and all(byte == (value, start + i) for i, byte in enumerate(known)):
            return self._part(value, start, type_, b)
        return self._side_by_side(known, type_)

    def _part(self, value: Value, start: int, type_: ty.Type, b: Builder) -> Value | None:
        """Some bytes of one value."""
        lane, size = plain_size(value.type.scalar), plain_size(type_)
        if lane == size and start % size == 0:
            return b.extractelement(value, start // size) if value.type.is_vector else value
        if isinstance(value, Instruction) and value in self._bytes.loads:
            return self._loaded(value, start, type_)
        if value.type.scalar.is_int and start % size == 0 and plain_size(value.type) % size == 0:
            count = plain_size(value.type) // size
            whole = ty.int_(8 * size)
            bits = b.cast("bitcast", value, whole if count == 1 else ty.vector(count, whole))
            return bits if count == 1 else b.extractelement(bits, start // size)
        return None

    def _side_by_side(self, known: list[tuple[Value | None, int]], type_: ty.Type) -> Value | None:
        """A load of bytes that several loads of this block read side by side, while none of them changed."""
        loads = [(self._bytes.loads.get(value), k) if value is not None else (None, 0) for value, k in known]
        first = loads[0][0]
        if first is None:
            return None
        base, begin = first.place[0], first.place[1] + loads[0][1]
        earliest, least = None, 0
        for i, ((value, k), (load, _)) in enumerate(zip(known, loads, strict=True)):
            if load is None or load.block is not self._block or load.place != (base, begin + i - k):
                return None
            if earliest is None or load.when < least:
                earliest, least = value, load.when
        if any(load is None or load.since[k] >= least for load, k in loads):
            return None
        assert isinstance(earliest, Instruction)
        return self._loaded(earliest, begin - self._bytes.loads[earliest].place[1], type_)

    def _loaded(self, load: Instruction, start: int, type_: ty.Type) -> Value:
        """What another load would have read at a distance from where a load reads."""
        key = load, start, type_
        if key not in self._wide:
            b = self._builder(load)
            align = gcd(load.align or 1, abs(start))
            self._wide[key] = b.load(type_, b.gep(ty.I8, load.operands[0], start, flags=()) if start else
                                     load.operands[0], align)  # fmt: skip
            if load.block is self._block:
                self._before.setdefault(load, []).extend(b.block.instructions)
            else:
                assert load.block is not None
                at = load.block.instructions.index(load)
                for new in b.block.instructions:
                    new.block = load.block
                load.block.instructions[at:at] = b.block.instructions
        return self._wide[key]


def _moves_bytes(instr: Instruction) -> bool:
    return instr.is_call and (instr.callee_name or "").startswith(("llvm.memcpy.", "llvm.memset."))


def _only_computes(instr: Instruction) -> bool:
    """A call of an intrinsic of numbers."""
    name = instr.callee_name if instr.is_call else None
    numbers = all(not arg.type.is_ptr for arg in instr.args) if name else False
    return bool(name) and (name or "").startswith("llvm.") and numbers and instr.type.scalar is not ty.VOID


def _drop_unused(fn: Function) -> None:
    """Pieces that nothing puts anywhere any more."""
    dead = True
    while dead:
        users = uses_of(fn.blocks)
        dead = False
        for block in fn.blocks:
            kept = [i for i in block.instructions if users.get(i) or not _is_moved(i)]
            dead |= len(kept) < len(block.instructions)
            block.instructions = kept


def _is_moved(instr: Instruction) -> bool:
    load = instr.opcode == "load" and not instr.volatile and not instr.ordering
    return (load or instr.opcode in PLACES) and instr.type.scalar.is_int
