"""Panics of Rust, as failures of a kernel with a message and a line.

Where rustc calls a function that never returns, the module calls `irgrad.panic` with the address of a number:

    call void @...panic_bounds_check(i64 %i, i64 %n, ptr @location)      call void @irgrad.panic(ptr @irgrad.panic.7)
    @irgrad.panic.7 = private constant { i32, [N x i8] } { i32 7, [N x i8] c"index out of bounds at model.rs:12" }

Functions of the library that fail in the name of their caller are handed its location: behind each location stands the
address of a number of its own.
"""

from __future__ import annotations

import itertools
import re

__all__ = ["ALIGNED", "HELD", "Panics", "demangled", "report_panics"]

_LEGACY = re.compile(r"_ZN((?:\d+[\w.$]+)+)E")
_HASH = re.compile(r"h[0-9a-f]{16}")
_PART, _LEGACY_PART = re.compile(r"(?:s[0-9a-zA-Z]*_)?(\d+)_?"), re.compile(r"(\d+)")

ALIGNED = ("irgrad.panic.aligned", "memory with an alignment of more than 16 bytes")
"""What fails where `malloc` cannot take the place of Rust's allocator: the variable, and what it says."""
HELD = ("irgrad.panic.held", "a lock is taken that is held already")
"""What fails where a thread would wait for itself."""

_NEVER = re.compile(r"^attributes (#\d+) = \{[^\n]*\bnoreturn\b", re.M)
_DECLARED = re.compile(r'^declare [^@\n]*@("?)(_(?:R|ZN)[\w.$]+)\1\([^\n]*(#\d+)$', re.M)
_CALL = re.compile(r'^  (?:tail )?call void @"?(_(?:R|ZN)[\w.$]+)"?\((.*)\)(?: #\d+)?((?:, ![^\n]*)?)$', re.M)
_WITH_PLACE = re.compile(
    r'^  (?:%[^=\n]+ = )?(?:tail )?call [^@\n]*@"?(_(?:R|ZN)[\w.$]+)"?\(([^\n]*@alloc_[^\n]*)\)'
    r"(?: #\d+)?(?:, ![^\n]*)?$", re.M,
)  # fmt: skip
_STRING = re.compile(r'^@(alloc_\w+) = [^\n]*?constant \[\d+ x i8\] c"([^"\n]*)"', re.M)
_PLACE = re.compile(
    r'^@(?P<name>alloc_\w+) = (?P<head>[^\n]*?constant) <\{ ptr, \[16 x i8\] \}> '
    r'<\{ ptr @(?P<file>alloc_\w+), \[16 x i8\] c"(?P<numbers>[^"\n]*)" \}>(?P<tail>[^\n]*)$', re.M,
)  # fmt: skip
_BRACKETS = re.compile(r"\([^()]*\)")
_LITERAL = re.compile(r"inttoptr \(i64 (\d+) to ptr\)")
_SAID = {
    "panic_bounds_check": "index out of bounds", "handle_alloc_error": "out of memory",
    "len_mismatch_fail": "slices of different lengths", "handle_error": "capacity overflow",
    "begin_panic": "panic", "panic_fmt": "panic", "panic": "panic",
    "unwrap_failed": "called `Option::unwrap()` on a `None` value",
}  # fmt: skip
_ATTEMPTS = {"div_by_zero": "divide by zero", "rem_by_zero": "calculate the remainder with a divisor of zero"} | {
    f"{short}_overflow": f"{verb} with overflow" for short, verb in (
        ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"), ("rem", "calculate the remainder"),
        ("neg", "negate"), ("shl", "shift left"), ("shr", "shift right"))
}  # fmt: skip
_PLACEHOLDER, _LONG = 0xC0, 0x80
_LIBRARY = re.compile(r"^(?:/rustc/\w+|.*/rustlib/src/rust)/library/")
_LONGEST, _NEAR = 200, 4000
_MADE = r"^  {part} = extractvalue [^\n]*?(%[\w.]+), 0[^\n]*$"
_CALLED = r"^  {value} = call [^@\n]*@[^(\n]*\(([^\n]*)\)[^()\n]*$"


def demangled(symbol: str) -> list[str]:
    """The path of a function whose symbol rustc made, without hashes; empty for symbols of another form."""
    legacy = _LEGACY.fullmatch(symbol)
    at, parts = (3, []) if legacy else (symbol.find("C") + 1, []) if symbol.startswith("_R") else (len(symbol), [])
    part = _LEGACY_PART if legacy else _PART
    while found := part.match(symbol, at):
        end = found.end() + int(found[1])
        parts.append(symbol[found.end() : end])
        at = end
    return [part for part in parts if not (legacy and _HASH.fullmatch(part))]


class Panics:
    """The numbers of a module's panics, and what stands for them in the module."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, message: str) -> str:
        """The variable with the number of a message."""
        return self._names.setdefault(message, f"@irgrad.panic.{len(self._names) + 1}")

    def add(self, name: str, message: str) -> None:
        """A variable that has a name already."""
        self._names[message] = f"@{name}"

    def text(self) -> str:
        """The definitions of all of them."""
        rows = []
        for number, (message, name) in enumerate(self._names.items(), 1):
            data = message.encode("utf-8", "replace") + b"\0"
            shown = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data)
            kind = f"[{len(data)} x i8]"
            rows.append(f'{name} = private constant {{ i32, {kind} }} {{ i32 {number}, {kind} c"{shown}" }}, align 8\n')
        return "".join(rows)


def report_panics(text: str) -> str:
    """The module of rustc in which panics are calls of `irgrad.panic`."""
    groups = set(_NEVER.findall(text))
    never = {name: demangled(name) for _, name, group in _DECLARED.findall(text) if group in groups}
    fixed = [row for row in (ALIGNED, HELD) if f"@{row[0]}" in text]
    if not never and not fixed:
        return text
    strings = {name: _bytes(raw) for name, raw in _STRING.findall(text)}
    places = {row["name"]: _place(row["numbers"], strings.get(row["file"], b"")) for row in _PLACE.finditer(text)}
    panics = Panics()
    loads = 0

    def reported(call: re.Match[str]) -> str:
        nonlocal loads
        name, arguments, debug = call.groups()
        words = _operands(arguments)
        if name not in never:
            return call[0]
        place = words[-1].removeprefix("@") if words else ""
        said = _said(never[name], words, arguments, strings, call.string[max(0, call.start() - _NEAR) : call.start()])
        if words and words[-1].startswith("%") and _takes_place(never[name]):
            loads += 1
            return (f"  %irgrad.at.{loads} = getelementptr i8, ptr {words[-1]}, i64 24{debug}\n"
                    f"  %irgrad.which.{loads} = load ptr, ptr %irgrad.at.{loads}, align 8{debug}\n"
                    f"  call void @irgrad.panic(ptr %irgrad.which.{loads}) noreturn nounwind{debug}")  # fmt: skip
        where = f" at {places[place]}" if place in places else ""
        return f"  call void @irgrad.panic(ptr {panics.name(said + where)}) noreturn nounwind{debug}"

    failing = _failing(text, places, strings)
    text = _CALL.sub(reported, text)

    def numbered(row: re.Match[str]) -> str:
        message = f"{failing.get(row['name'], 'panic')} at {places[row['name']]}"
        return (f'@{row["name"]} = {row["head"]} <{{ ptr, [16 x i8], ptr }}> <{{ ptr @{row["file"]}, '
                f'[16 x i8] c"{row["numbers"]}", ptr {panics.name(message)} }}>{row["tail"]}')  # fmt: skip

    if loads:
        text = _PLACE.sub(numbered, text)
    text = _DECLARED.sub(lambda row: row[0] if row[2] not in never or text.count(f"@{row[2]}") > 1 else "", text)
    for row in fixed:
        panics.add(*row)
    return text + "\ndeclare void @irgrad.panic(ptr) noreturn nounwind cold\n" + panics.text()


def _failing(text: str, places: dict[str, str], strings: dict[str, bytes]) -> dict[str, str]:
    """What fails at a location that its caller gives: what the caller says, or the name of the callee."""
    found: dict[str, str] = {}
    for name, arguments in _WITH_PLACE.findall(text):
        words = _operands(arguments)
        path = demangled(name)
        said = next((_shown(strings[a[1:]][: int(b)]) for a, b in itertools.pairwise(words)
                     if a[1:] in strings and b.isdecimal()), "")  # fmt: skip
        message = said or (f"`{path[-1]}` panics" if path else "panic")
        for word in words:
            if word[1:] in places:
                found.setdefault(word[1:], message)
    return found


def _takes_place(path: list[str]) -> bool:
    """Whether the last argument of such a function is a location: of the functions that report an empty memory, not."""
    return not path or path[-1] not in ("handle_alloc_error", "handle_error")


def _operands(arguments: str) -> list[str]:
    """The values that a call passes, without types and attributes."""
    while _BRACKETS.search(arguments):
        arguments = _BRACKETS.sub("", arguments)
    return [part.split()[-1] for part in arguments.split(",") if part.split()]


def _bytes(raw: str) -> bytes:
    """A string constant of the IR."""
    return re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), raw.encode("utf-8", "surrogateescape"))


def _place(numbers: str, file: bytes) -> str:
    """A location as messages show it: `model.rs:12`."""
    data = _bytes(numbers)
    name = file.split(b"\0")[0].decode("utf-8", "replace")
    return f"{_LIBRARY.sub('', name)}:{int.from_bytes(data[8:12], 'little')}"


def _said(path: list[str], words: list[str], arguments: str, strings: dict[str, bytes], before: str) -> str:
    """What a panic says; `before`: the instructions in front of it, which may put the message together."""
    last = path[-1] if path else "panic"
    made = re.findall(_MADE.format(part=re.escape(words[0])), before, re.M) if words else []
    calls = re.findall(_CALLED.format(value=re.escape(made[-1])), before, re.M) if made else []
    if calls:
        arguments, words = calls[-1], _operands(calls[-1])
    text = strings.get(words[0].removeprefix("@"), b"") if words else b""
    if len(words) > 1 and words[1].isdecimal() and text:  # a string and its length
        return _shown(text[: int(words[1])])
    if last == "panic_fmt":
        literal = _LITERAL.search(arguments)
        return _shown(text[: int(literal[1]) >> 1]) if literal else _shown(_template(text)) or "panic"
    if last.startswith("panic_const_"):
        return f"attempt to {_ATTEMPTS.get(last[12:]) or last[12:].replace('_', ' ')}"
    return _SAID.get(last) or last.replace("_", " ")


def _template(data: bytes) -> bytes:
    """The text of a format string, `{}` for what is filled in: pieces by their lengths, placeholders by options."""
    found, at = b"", 0
    while at < len(data) and data[at]:
        size = data[at]
        at += 1
        if size == _LONG:
            size = int.from_bytes(data[at : at + 2], "little")
            at += 2
        if size >= _PLACEHOLDER:
            found += b"{}"
            at += 4 * (size & 1) + 2 * (size >> 1 & 1) + 2 * (size >> 2 & 1) + 2 * (size >> 3 & 1)
        else:
            found += data[at : at + size]
            at += size
    return found


def _shown(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").replace("\0", "").split())[:_LONGEST]
