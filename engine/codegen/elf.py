"""Object files of this process: which symbols they have, and linking them into memory without LLVM.

What LLVM emits for a unit (position-independent code in the small model for x86-64 Linux) needs five kinds of
relocations, and starting LLVM costs more than all else in a process that takes its machine code from the disk cache.
So such objects are placed here: one block of memory with code, constants and variables, a table of addresses for what
is outside and jumps through it. `place` answers None for an object that holds anything else (thread-local variables,
constructors, another processor): LLVM's linker takes it then.

Source: System V ABI, AMD64 supplement, chapter 4 (object files), version 1.0.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

__all__ = ["ObjectFile", "Placed", "place"]

_X86_64 = 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _UNWIND = 1, 2, 4, 8, 0x70000001
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400
_THREAD_LOCAL = 6  # type of a symbol
_ABS64, _PC32, _PLT32, _GOTPCREL, _PC64, _GOTPCRELX, _REX_GOTPCRELX = 1, 2, 4, 9, 24, 41, 42
_THROUGH_TABLE = (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX)
_KNOWN = (_ABS64, _PC32, _PLT32, _PC64, *_THROUGH_TABLE)
_UNDEFINED, _SPECIAL = 0, 0xFF00
_IMPLICIT = {"_GLOBAL_OFFSET_TABLE_"}
_RUN_AT_START = (b".ctors", b".dtors")  # elsewhere they have a kind of their own
_JUMP = b"\xff\x25"  # jmp *disp32(%rip)
_STUB = 8
_MOST_BYTES = 8 << 20  # larger objects have so many relocations that LLVM's linker is faster


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    local: bool


class ObjectFile:
    """Sections and symbols of a 64-bit little-endian ELF relocatable object. Raises ValueError for anything else."""

    __slots__ = ("image", "machine", "sections", "symbols", "thread_local")

    def __init__(self, image: bytes) -> None:
        if image[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF object")
        self.image = image
        (self.machine,) = struct.unpack_from("<H", image, 0x12)
        (table,) = struct.unpack_from("<Q", image, 0x28)
        size, count = struct.unpack_from("<HH", image, 0x3A)
        self.sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", image, table + k * size)) for k in range(count)]
        self.symbols: list[_Symbol] = []
        self.thread_local: list[str] = []  # variables of which each thread has a copy
        for section in self.sections:
            if section.kind == _SYMTAB:
                strings = self.sections[section.link].offset
                rows = struct.iter_unpack("<IBBHQQ", image[section.offset : section.offset + section.size])
                for name, info, _, index, value, _ in rows:
                    start = strings + name
                    text = image[start : image.index(b"\0", start)].decode("utf-8", "surrogateescape")
                    self.symbols.append(_Symbol(text, index, value, info < 16))
                    if info & 15 == _THREAD_LOCAL:
                        self.thread_local.append(text)

    @property
    def undefined(self) -> tuple[str, ...]:
        """Names that something else has to define (weak ones too), sorted."""
        return tuple(sorted({s.name for s in self.symbols if s.section == _UNDEFINED} - _IMPLICIT - {""}))

    @property
    def defined(self) -> frozenset[str]:
        """Names of what the object defines for others."""
        return frozenset(s.name for s in self.symbols if _UNDEFINED < s.section < _SPECIAL and not s.local)

    def relocations(self) -> list[tuple[int, int, int, int, int]]:
        """(section, offset, kind, symbol, addend) of every relocation of what is loaded, unwind tables left out."""
        found = []
        for table in self.sections:
            if table.kind == _RELA and self._loaded(table.info):
                rows = struct.iter_unpack("<QQq", self.image[table.offset : table.offset + table.size])
                found += [(table.info, offset, info & 0xFFFFFFFF, info >> 32, addend) for offset, info, addend in rows]
        return found

    def _loaded(self, number: int) -> bool:
        section = self.sections[number]
        return bool(section.flags & _ALLOC) and section.kind in (_PROGBITS, _NOBITS)

    def _name(self, section: _Section) -> bytes:
        (names,) = struct.unpack_from("<H", self.image, 0x3E)
        start = self.sections[names].offset + section.name
        return self.image[start : self.image.index(b"\0", start)]

    def loaded(self) -> list[int] | None:
        """Numbers of the sections that belong in memory; None when there is one that `place` does not know."""
        numbers = []
        for number, section in enumerate(self.sections):
            if section.flags & _ALLOC and section.size and section.kind != _UNWIND:
                known = section.kind in (_PROGBITS, _NOBITS) and not self._name(section).startswith(_RUN_AT_START)
                if section.flags & _TLS or not known:
                    return None
                numbers.append(number)
        return numbers


class Placed:
    """Machine code in memory; `unit[name]` is an address. It is there until `close`."""

    __slots__ = ("_memory", "_symbols")

    def __init__(self, memory: mmap.mmap, symbols: Mapping[str, int]) -> None:
        self._memory = memory
        self._symbols = symbols

    def __getitem__(self, name: str) -> int:
        return self._symbols[name]

    def close(self) -> None:
        """Give the memory back; nothing of it may run any more."""
        self._memory.close()


def place(image: bytes, outside: Mapping[str, int]) -> Placed | None:
    """Link an object into memory of its own. `outside`: addresses of all its undefined symbols.

    None when the object is not of the kind this module knows, or the system gives no executable memory.
    """
    if not sys.platform.startswith("linux") or len(image) > _MOST_BYTES:
        return None
    unit = ObjectFile(image)
    numbers, relocations = unit.loaded(), unit.relocations()
    if unit.machine != _X86_64 or numbers is None or not all(row[2] in _KNOWN for row in relocations):
        return None
    layout = _Layout(unit, numbers, relocations)
    try:
        memory = mmap.mmap(-1, layout.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError:
        return None
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    data = layout.filled(start, outside)
    if data is None or not _fill(memory, start, data, layout):
        memory.close()
        return None
    return Placed(memory, {s.name: layout.address(start, s) for s in unit.symbols if not s.local and s.section})


class _Layout:
    """Where each section lies in the block: code and jumps, then constants and the table, then variables."""

    def __init__(self, unit: ObjectFile, numbers: list[int], relocations: list[tuple[int, int, int, int, int]]) -> None:
        self.unit = unit
        self.relocations = relocations
        self.offsets: dict[int, int] = {}
        wanted = dict.fromkeys(row[3] for row in relocations if self._outside(row))
        self.table = {number: 8 * k for k, number in enumerate(wanted)}
        kinds: tuple[list[int], list[int], list[int]] = ([], [], [])
        for number in numbers:
            flags = unit.sections[number].flags
            kinds[0 if flags & _EXEC else 2 if flags & _WRITE else 1].append(number)
        end = self._lay(kinds[0], 0)
        self.stubs = _up(end, _STUB)
        self.code_end = _up(self.stubs + _STUB * len(self.table), mmap.PAGESIZE)
        end = self._lay(kinds[1], self.code_end)
        self.addresses = _up(end, 8)
        self.constant_end = _up(self.addresses + 8 * len(self.table), mmap.PAGESIZE)
        self.size = max(_up(self._lay(kinds[2], self.constant_end), mmap.PAGESIZE), mmap.PAGESIZE)

    def _outside(self, row: tuple[int, int, int, int, int]) -> bool:
        """Whether a relocation wants an address from the table: one that asks for it, or a jump out of the object."""
        return row[2] in _THROUGH_TABLE or (row[2] == _PLT32 and self.unit.symbols[row[3]].section == _UNDEFINED)

    def _lay(self, numbers: list[int], at: int) -> int:
        for number in numbers:
            section = self.unit.sections[number]
            at = _up(at, max(section.align, 1))
            self.offsets[number] = at
            at += section.size
        return at

    def address(self, start: int, symbol: _Symbol) -> int:
        """The address of a symbol of this object."""
        return start + self.offsets.get(symbol.section, 0) + symbol.value

    def filled(self, start: int, outside: Mapping[str, int]) -> bytearray | None:
        """The block's bytes at that address; None when a place is too far away."""
        unit, data = self.unit, bytearray(self.size)
        for number, at in self.offsets.items():
            section = unit.sections[number]
            if section.kind == _PROGBITS:
                data[at : at + section.size] = unit.image[section.offset : section.offset + section.size]
        values: list[int | None] = []
        for symbol in unit.symbols:
            inside = symbol.section in self.offsets
            values.append(self.address(start, symbol) if inside else outside.get(symbol.name) if not symbol.section
                          else None)  # fmt: skip
        for number, place_in_table in self.table.items():
            value = values[number]
            if value is None:
                return None
            struct.pack_into("<Q", data, self.addresses + place_in_table, value)
            stub = self.stubs + place_in_table // 8 * _STUB
            data[stub : stub + 6] = _JUMP + struct.pack("<i", self.addresses + place_in_table - stub - 6)
        try:
            for row in self.relocations:
                if row[0] in self.offsets and not self._apply(data, start, row, values[row[3]]):
                    return None
        except struct.error:  # a distance of more than 31 bits
            return None
        return data

    def _apply(self, data: bytearray, start: int, row: tuple[int, int, int, int, int], value: int | None) -> bool:
        section, offset, kind, number, addend = row
        at = self.offsets[section] + offset
        if kind in _THROUGH_TABLE:
            value = start + self.addresses + self.table[number]
        elif kind == _PLT32 and number in self.table and self.unit.symbols[number].section == _UNDEFINED:
            value = start + self.stubs + self.table[number] // 8 * _STUB
        if value is None:
            return False
        if kind == _ABS64:
            struct.pack_into("<Q", data, at, (value + addend) & (1 << 64) - 1)
        else:
            struct.pack_into("<q" if kind == _PC64 else "<i", data, at, value + addend - start - at)
        return True


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _fill(memory: mmap.mmap, start: int, data: bytearray, layout: _Layout) -> bool:
    """Write the block, then take back the right to write to code and constants."""
    memory[:] = bytes(data)
    code = layout.code_end == 0 or _protect()(start, layout.code_end, mmap.PROT_READ | mmap.PROT_EXEC) == 0
    size = layout.constant_end - layout.code_end
    return code and (size == 0 or _protect()(start + layout.code_end, size, mmap.PROT_READ) == 0)


@cache
def _protect() -> Any:
    function = ctypes.CDLL(None).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
