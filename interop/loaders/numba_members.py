"""Integers in the structures of Numba, marked as such in the IR that Numba writes.

The block of a list is its length, its capacity, and then its elements, which are found by an index that may be
negative. That the first words are integers, whatever the elements are, is known where Numba writes the access of a
member; `!tbaa` says it, in a tree of its own, so that LLVM concludes nothing from it about other accesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from irgrad.engine.analyses.memory.tbaa import MEMBERS

__all__ = ["typed_members"]

_ROOT, _NAME = f"{MEMBERS} of Numba", "long"


@contextmanager
def typed_members() -> Iterator[None]:
    """What Numba compiles meanwhile says which members are integers. To be entered under Numba's compiler lock."""
    from numba.core.cgutils import _StructProxy as Structure

    read, write = Structure.__getitem__, Structure.__setitem__

    def read_marked(self: Any, index: int) -> Any:
        value = read(self, index)
        _mark(self._builder)
        return value

    def write_marked(self: Any, index: int, value: Any) -> None:
        write(self, index, value)
        _mark(self._builder)

    Structure.__getitem__, Structure.__setitem__ = read_marked, write_marked
    try:
        yield
    finally:
        Structure.__getitem__, Structure.__setitem__ = read, write


def _mark(builder: Any) -> None:
    """The access that was written last, where it moves an integer."""
    from llvmlite import ir

    last = builder.block.instructions[-1]
    moved = last.operands[0] if last.opname == "store" else last if last.opname == "load" else None
    if moved is None or not isinstance(moved.type, ir.IntType) or "tbaa" in last.metadata:
        return
    zero = ir.Constant(ir.IntType(64), 0)
    root = builder.module.add_metadata([_ROOT])
    kind = builder.module.add_metadata([_NAME, root, zero])
    last.set_metadata("tbaa", builder.module.add_metadata([kind, kind, zero]))
