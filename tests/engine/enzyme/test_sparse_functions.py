"""The text of accesses: LLVM accepts it, for all kinds of values and places."""

from __future__ import annotations

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.enzyme.sparse_functions import LARGEST, Memory, access_text, flush_text, loop_text
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function
from irgrad.engine.runtime.sparse_memory import sparse_text


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("place", [ty.I32, ty.I64])
@pytest.mark.parametrize("kind", [ty.F32, ty.F64])
def test_accesses(kind: ty.Type, place: ty.Type, cached: bool) -> None:
    load = Function("load", ty.function(kind, (place, ty.PTR, ty.I32)))
    store = Function("store", ty.function(ty.VOID, (kind, place, ty.PTR, ty.I32)))
    memory = Memory(3, load, store, (ty.PTR, ty.I32), cached)
    declared = f"declare {kind} @load({place}, ptr, i32)\ndeclare void @store({kind}, {place}, ptr, i32)\n"
    parts = [access_text(memory, what, kind) for what in ("load", "store")]
    end = [flush_text(memory, "flush")] if cached else []
    parse("\n".join([sparse_text(), declared, *parts, *end]))


def test_memory_without_functions_holds_zeros_of_any_kind() -> None:
    memory = Memory(0, None, None, (), True)
    kinds = [ty.F32, ty.F64, ty.I64, ty.vector(2, ty.F64)]
    parts = [access_text(memory, what, kind) for kind in kinds for what in ("load", "store")]
    parse("\n".join([sparse_text(), *parts, flush_text(memory, "flush")]))
    assert all(ty.size_of(kind) <= LARGEST for kind in kinds)


@pytest.mark.parametrize("kind", [ty.I8, ty.F32, ty.F64])
def test_loops(kind: ty.Type) -> None:
    parse("\n".join([loop_text("fill", kind, ty.I64, fill=True), loop_text("copy", kind, ty.I32, fill=False)]))
