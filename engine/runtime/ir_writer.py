"""A writer of IR text with loops and conditions, for functions that irgrad itself needs (the driver of a batch).

Counters live in allocas of the entry block; LLVM makes registers of them. So text can be emitted in the order in which
one reads it, and no phi has to know the label that its block ends with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Writer", "constant_text"]


def constant_text(name: str, text: str) -> str:
    """A constant string of C."""
    raw = text.encode() + b"\0"
    quoted = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw)
    return f'@{name} = private unnamed_addr constant [{len(raw)} x i8] c"{quoted}"'


class Writer:
    """Writes the body of one function. Values are strings: `%3`, `17`, `null`."""

    def __init__(self, head: str) -> None:
        """head: everything before the opening brace."""
        self._head = head
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def emit(self, text: str) -> str:
        """An instruction with a result; returns the result's name."""
        name = self._name("v")
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {text}")

    def alloca(self, type_: str, count: int = 1, align: int = 8) -> str:
        """Memory of the function's own, reserved once."""
        name = self._name("m")
        self._allocas.append(f"  {name} = alloca {type_}, i64 {count}, align {align}")
        return name

    def add(self, a: str, b: str) -> str:
        """a + b, as i64."""
        return self.emit(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        """a * b, as i64."""
        return self.emit(f"mul i64 {a}, {b}")

    def at(self, pointer: str, offset: str, type_: str = "i8") -> str:
        """The address `offset` elements of a type behind a pointer."""
        return self.emit(f"getelementptr {type_}, ptr {pointer}, i64 {offset}")

    def load(self, type_: str, pointer: str, offset: str | int = 0, *, align: int = 8) -> str:
        """Load element `offset` of an array."""
        return self.emit(f"load {type_}, ptr {self.at(pointer, str(offset), type_)}, align {align}")

    def compare(self, predicate: str, a: str, b: str) -> str:
        """icmp of two i64."""
        return self.emit(f"icmp {predicate} i64 {a}, {b}")

    @contextmanager
    def loop(self, count: str, metadata: str = "") -> Iterator[str]:
        """A loop over 0 ... count - 1 (never entered for 0); gives the index. `metadata` is attached to its branch."""
        cell = self.alloca("i64")
        test, body, out = self._label(), self._label(), self._label()
        self.do(f"store i64 0, ptr {cell}")
        self._open(test)
        index = self.emit(f"load i64, ptr {cell}")
        self.do(f"br i1 {self.compare('ult', index, count)}, label %{body}, label %{out}")
        self._lines.append(f"{body}:")
        yield index
        self.do(f"store i64 {self.add(index, '1')}, ptr {cell}")
        self.do(f"br label %{test}{metadata}")
        self._lines.append(f"{out}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is written inside runs only if the i1 holds."""
        body, out = self._label(), self._label()
        self.do(f"br i1 {condition}, label %{body}, label %{out}")
        self._lines.append(f"{body}:")
        yield
        self._open(out)

    @contextmanager
    def forever(self) -> Iterator[str]:
        """A loop that `do("br ...")` to the label given leaves; code continues there."""
        top, out = self._label(), self._label()
        self._open(top)
        yield out
        self.do(f"br label %{top}")
        self._lines.append(f"{out}:")

    def leave(self, condition: str, label: str) -> None:
        """Jump to a label if the i1 holds."""
        stay = self._label()
        self.do(f"br i1 {condition}, label %{label}, label %{stay}")
        self._lines.append(f"{stay}:")

    def text(self, result: str = "void") -> str:
        """The finished function and what it returns, as `ptr null`."""
        return "\n".join([f"{self._head} {{", "entry:", *self._allocas, *self._lines, f"  ret {result}", "}", ""])

    def _open(self, label: str) -> None:
        self.do(f"br label %{label}")
        self._lines.append(f"{label}:")

    def _label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"%{prefix}{self._count}"
