"""Handlers are IR that LLVM accepts."""

from __future__ import annotations

import pytest
from samples import sample

from irgrad.engine.codegen.llvm import parse
from irgrad.interop.jax.handler import handler_text, register


@pytest.mark.parametrize("slots", [0, 1, 7])
def test_llvm_accepts_it(slots: int) -> None:
    module = parse(handler_text("h.x", "irgrad.entry.f", slots) + "declare void @irgrad.entry.f(ptr)\n")
    assert "h.x" in {f.name for f in module.functions if not f.is_declaration}


def test_names_are_digests_and_registered_once() -> None:
    program = sample("product").primal
    assert register(program) == register(program) == f"irgrad.product.{program.key[:32]}"
