"""The functions that stand for accesses behind an address of `__enzyme_todense`, as text (see `todense.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.enzyme.thunks import passing
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.runtime.sparse_memory import CLOSE, FIND, PLACE, PREFIX

__all__ = ["LARGEST", "Memory", "access_text", "any_text", "flush_text", "loop_text"]

LARGEST = 16
"""Bytes of a value that a cell of such memory has room for."""
_BASE, _STEP = 1 << 62, 1 << 48  # no address of a program: an access that was forgotten ends it
_CELL, _LEAST = 24, 2


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory behind one address: `cached` where it behaves as memory; without functions it holds zeros."""

    number: int
    load: Function | None
    store: Function | None
    more: tuple[ty.Type, ...]
    cached: bool

    @property
    def value(self) -> ty.Type:
        """What the functions load and store; a byte where there are none."""
        return self.load.ftype.ret if self.load is not None else ty.I8

    @property
    def base(self) -> int:
        """The address of its first byte."""
        return _BASE + self.number * _STEP

    @property
    def kinds(self) -> tuple[ty.Type, ...]:
        """The types of what its functions get besides place and value: the memory's head, and the further arguments."""
        return (ty.PTR, *self.more) if self.cached else self.more

    def holds(self, kind: ty.Type) -> bool:
        """Whether a value of that type is one or several of its numbers."""
        size = ty.size_of(kind)
        if self.load is None:
            return not kind.is_aggregate and _LEAST <= size <= LARGEST
        return not kind.is_aggregate and not kind.is_ptr and size > 0 and size % ty.size_of(self.value) == 0

    def access(self, what: str, kind: ty.Type) -> Function:
        """`load` or `store` of a value of that type, at an address."""
        params = (ty.I64, *self.kinds) if what == "load" else (kind, ty.I64, *self.kinds)
        return Function(f"{PREFIX}{what}.{self.number}.{kind}",
                        ty.function(kind if what == "load" else ty.VOID, params))  # fmt: skip

    def ask(self, kind: ty.Type) -> tuple[str, str]:
        """Code that asks the program for the value at %byte, and that value."""
        if self.load is None:
            return "", "zeroinitializer"
        return f"{_called(self.load, f'%v = call {kind}', [], 0)}", "%v"

    def tell(self, kind: ty.Type) -> str:
        """Code that tells the program that %v was stored at %byte."""
        return _called(self.store, "call void", [f"{kind} %v"], 1) if self.store is not None else ""


def _called(fn: Function, call: str, first: list[str], at: int) -> str:
    place = fn.ftype.params[at]
    bits = place.bits if isinstance(place, ty.IntType) else 64
    cast = "" if bits == 64 else f"  %o = {'trunc' if bits < 64 else 'zext'} i64 %byte to {place}\n"
    more = [f"{arg.type} {passing(arg.attrs)}%m{j}" for j, arg in enumerate(fn.args[at + 1 :])]
    given = ", ".join([*first, f"{place} {'%byte' if bits == 64 else '%o'}", *more])
    return f"{cast}  {call} @{quoted_name(fn.name or '')}({given})\n"


def _params(memory: Memory, *first: str) -> str:
    head = ["ptr %s"] if memory.cached else []
    return ", ".join([*first, *head, *(f"{type_} %m{j}" for j, type_ in enumerate(memory.more))])


def access_text(memory: Memory, what: str, kind: ty.Type) -> str:
    """The definitions of one access, and of that of one of its numbers."""
    unit = memory.value if memory.load is not None else kind
    size, name = ty.size_of(unit), quoted_name(memory.access(what, kind).name or "")
    count = ty.size_of(kind) // size
    wide = ty.vector(count, unit) if count > 1 else unit
    one, more = f"@{quoted_name(f'{PREFIX}one.{what}.{memory.number}.{kind}')}", _params(memory, "")
    places = ["%byte", *(f"%b{k}" for k in range(1, count))]
    lines = [f"  %byte = sub i64 %at, {memory.base}"]
    lines += [f"  %b{k} = add i64 %byte, {k * size}" for k in range(1, count)]
    if what == "load":
        start, whole = f"define internal {kind} @{name}({_params(memory, 'i64 %at')})", "poison"
        for k, place in enumerate(places):
            lines.append(f"  %w{k} = call {unit} {one}(i64 {place}{more})")
            if count > 1:
                lines.append(f"  %v{k} = insertelement {wide} {whole}, {unit} %w{k}, i64 {k}")
            whole = f"%v{k}" if count > 1 else "%w0"
        lines += [f"  %r = bitcast {wide} {whole} to {kind}", f"  ret {kind} %r"]
    else:
        start = f"define internal void @{name}({_params(memory, f'{kind} %v', 'i64 %at')})"
        lines.append(f"  %wide = bitcast {kind} %v to {wide}")
        for k, place in enumerate(places):
            if count > 1:
                lines.append(f"  %w{k} = extractelement {wide} %wide, i64 {k}")
            lines.append(f"  call void {one}({unit} {f'%w{k}' if count > 1 else '%wide'}, i64 {place}{more})")
        lines.append("  ret void")
    body = "\n".join(lines)
    return f"{start} alwaysinline {{\n{body}\n}}\n{_one_text(memory, one, what, unit)}"


def _one_text(memory: Memory, name: str, what: str, kind: ty.Type) -> str:
    code, value = memory.ask(kind)
    if what == "load":
        start = f"define internal {kind} {name}({_params(memory, 'i64 %byte')})"
        if not memory.cached:
            return f"{start} alwaysinline {{\n{code}  ret {kind} {value}\n}}"
        return (f"{start} {{\n  %cell = call ptr @{FIND}(ptr %s, i64 %byte)\n  %none = icmp eq ptr %cell, null\n"
                f"  br i1 %none, label %ask, label %have\nask:\n{code}  ret {kind} {value}\n"
                f"have:\n  %w = load {kind}, ptr %cell, align 8\n  ret {kind} %w\n}}")  # fmt: skip
    put = (f"  %cell = call ptr @{PLACE}(ptr %s, i64 %byte)\n  store {kind} %v, ptr %cell, align 8\n"
           if memory.cached else memory.tell(kind))  # fmt: skip
    params = _params(memory, f"{kind} %v", "i64 %byte")
    return f"define internal void {name}({params}) alwaysinline {{\n{put}  ret void\n}}"


def any_text(name: str, memories: Sequence[Memory], what: str, kind: ty.Type) -> str:
    """The definition of an access of one of these memories, or of ordinary memory, as the address says."""
    load = what == "load"
    params, cases, blocks = ["i64 %at"] if load else [f"{kind} %v", "i64 %at"], list[str](), list[str]()
    for memory in memories:
        k = memory.number
        given = [f"{type_} %p{k}.{j}" for j, type_ in enumerate(memory.kinds)]
        params += given
        if not memory.holds(kind):
            continue
        function = f"@{quoted_name(memory.access(what, kind).name or '')}"
        cases.append(f"i64 {memory.base // _STEP}, label %m{k}")
        blocks.append(f"m{k}:\n  %r{k} = call {kind} {function}({', '.join(['i64 %at', *given])})\n  ret {kind} %r{k}"
                      if load else f"m{k}:\n  call void {function}({', '.join([f'{kind} %v', 'i64 %at', *given])})\n"
                      "  ret void")  # fmt: skip
    plain = f"  %r = load {kind}, ptr %p, align 1\n  ret {kind} %r" if load else (
            f"  store {kind} %v, ptr %p, align 1\n  ret void")  # fmt: skip
    return "\n".join([
        f"define internal {kind if load else 'void'} @{quoted_name(name)}({', '.join(params)}) {{",
        f"  %page = lshr i64 %at, {_STEP.bit_length() - 1}", f"  switch i64 %page, label %other [ {' '.join(cases)} ]",
        *blocks, "other:", "  %p = inttoptr i64 %at to ptr", plain, "}",
    ])  # fmt: skip


def flush_text(memory: Memory, name: str) -> str:
    """The definition of what the end of a derivative does: the program gets what was stored."""
    start = f"define internal void @{name}({_params(memory)}) {{\n"
    end = f"  call void @{CLOSE}(ptr %s)\n  ret void\n}}"
    if memory.store is None:
        return start + end
    return (f"{start}  %cells = load ptr, ptr %s, align 8\n  %count.at = getelementptr i64, ptr %s, i64 2\n"
            f"  %count = load i64, ptr %count.at, align 8\n  br label %next\nnext:\n"
            f"  %i = phi i64 [ 0, %0 ], [ %j, %told ]\n  %done = icmp eq i64 %i, %count\n"
            f"  br i1 %done, label %out, label %told\ntold:\n  %bytes = mul i64 %i, {_CELL}\n"
            f"  %cell = getelementptr i8, ptr %cells, i64 %bytes\n  %byte = load i64, ptr %cell, align 8\n"
            f"  %value = getelementptr i8, ptr %cell, i64 8\n  %v = load {memory.value}, ptr %value, align 8\n"
            f"{memory.tell(memory.value)}  %j = add i64 %i, 1\n  br label %next\nout:\n{end}")  # fmt: skip


def loop_text(name: str, kind: ty.Type, count: ty.Type, *, fill: bool) -> str:
    """memset or memcpy, number by number."""
    size = ty.size_of(kind)
    bits, splat = size * 8, sum(1 << 8 * k for k in range(size))
    what = (f"  %wide = {'zext' if bits > 8 else 'bitcast'} i8 %from to i{bits}\n  %all = mul i{bits} %wide, {splat}\n"
            f"  %v = bitcast i{bits} %all to {kind}\n" if fill else
            f"  %q = getelementptr i8, ptr %from, {count} %i\n  %v = load {kind}, ptr %q, align 1\n")  # fmt: skip
    return (f"define internal void @{name}(ptr %to, {'i8' if fill else 'ptr'} %from, {count} %bytes) {{\n"
            f"  br label %next\nnext:\n  %i = phi {count} [ 0, %0 ], [ %j, %put ]\n"
            f"  %done = icmp uge {count} %i, %bytes\n  br i1 %done, label %out, label %put\nput:\n"
            f"  %p = getelementptr i8, ptr %to, {count} %i\n{what}  store {kind} %v, ptr %p, align 1\n"
            f"  %j = add {count} %i, {size}\n  br label %next\nout:\n  ret void\n}}")  # fmt: skip
