"""Accesses through a pointer argument, and what the source calls them."""

from __future__ import annotations

from irgrad.engine.analyses.memory.byte_kinds import INT, Kind
from irgrad.engine.analyses.types.argument_accesses import accesses
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.types import F64


def _found(text: str) -> list[tuple[str, Kind | None]]:
    module = read(text)
    return [(f"{i.opcode} {type_}", kind) for i, type_, kind in accesses(module, module.functions["f"].args[0])]


def test_followed_through_addresses_locals_and_calls() -> None:
    text = """
define void @g(ptr %q) {
entry:
  store float 1.0, ptr %q
  ret void
}
define double @f(ptr %x, i1 %c) {
entry:
  %home = alloca ptr
  store ptr %x, ptr %home
  %p = load ptr, ptr %home
  %q = getelementptr double, ptr %p, i64 1
  %v = load double, ptr %q
  %r = select i1 %c, ptr %q, ptr %x
  call void @g(ptr %r)
  ret double %v
}
"""
    assert sorted(_found(text), key=str) == [("load double", None), ("store float", None)]


def test_integers_are_numbers_bits_or_open() -> None:
    text = """
define double @f(ptr %x, ptr %y) {
entry:
  %n = load i64, ptr %x
  %m = add i64 %n, 1
  %bits = load <2 x i64>, ptr %x
  %v = bitcast <2 x i64> %bits to <2 x double>
  %negative = icmp slt <2 x i64> %bits, zeroinitializer
  %copied = load i64, ptr %x
  store i64 %copied, ptr %y
  %d = extractelement <2 x double> %v, i32 0
  ret double %d
}
"""
    assert _found(text) == [("load i64", INT), ("load i64", F64), ("load i64", None)]
