"""Nests over rows of a few numbers, at a stride that is known at run time alone, have a version for rows without gaps.

    for i, for j:  ... p[j * s] ... p[j * s + 1] ... p[j * s + 2] ...       ; s an argument, or loaded before the nest
                                        ->     if s == 3:  the same nest with 3 for s
                                               else:       the nest as it is

A matrix class says `data[i * cols + j]`, and a program that has three numbers in a row knows no more of `cols`. The
derivative of such loads adds to memory at that stride: two rows may be the same memory (`s` may be 0), so its
iterations run one after the other. In the version they are independent, and vectors of rows are read and written.

Such is a nest (`loop_versions.py` says which) where all strides that are no constants are one number, and the distance
of the outermost accesses of a row tells how many numbers a row has. Pointers that walk by the stride have no count of
iterations before, and have one in the version.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.affine import Affine, Scaled
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Instruction, Value
from irgrad.engine.normalise.loop_parts import Version

__all__ = ["dense_rows"]

_WIDEST = 8  # numbers in a row


def dense_rows(loop: Loop, forms: Induction) -> Version | None:
    """The version of a nest for rows without gaps; None where it has no such rows."""
    found = _row(loop, forms) if loop.children else None
    if found is None:
        return None
    stride, width = found
    same = [v for v in _same(loop, stride, forms) if isinstance(v.type, ty.IntType)]

    def write(at: Builder) -> tuple[Value, dict[Value, Value]]:
        assert isinstance(stride.type, ty.IntType)
        fits = at.icmp("eq", stride, ConstInt(stride.type, width))
        return fits, {v: ConstInt(v.type, width) for v in same}

    return Version([stride], write)


def _same(loop: Loop, stride: Value, forms: Induction) -> list[Value]:
    """What the loop uses from outside that is the stride, in any width."""
    used = dict.fromkeys(o for block in loop.blocks for i in block.instructions for o in i.operands)
    outside = [v for v in used if isinstance(v.type, ty.IntType) and not _within(v, loop)]
    return [v for v in outside if v is stride or ((form := forms.form(v)).terms == {stride: 1} and _whole(form))]


def _whole(form: Affine) -> bool:
    return form.exact and form.const == 0


def _within(value: Value, loop: Loop) -> bool:
    return isinstance(value, Instruction) and loop.contains(value.block)


def _row(loop: Loop, forms: Induction) -> tuple[Value, int] | None:
    """The stride of a nest and how many numbers a row has."""
    strides: dict[Value, None] = {}
    rows: dict[tuple[object, ...], list[int]] = {}
    sizes = set[int]()
    for block in loop.blocks:
        for instr in block.instructions:
            if instr.opcode not in ("load", "store"):
                continue
            kind = instr.type if instr.opcode == "load" else instr.operands[0].type
            base, form = forms.address(instr.operands[0 if instr.opcode == "load" else 1])
            scaled = [s for s in form.terms if isinstance(s, Scaled)]
            if not scaled:
                continue
            if any(isinstance(s, Loop) for s in form.terms):
                return None  # a row that a loop runs through
            strides.update(dict.fromkeys(s.value for s in scaled))
            sizes |= {ty.store_size(kind), *(form.terms[s] for s in scaled)}
            if isinstance(kind, ty.FloatType):
                rows.setdefault((base, *_key(form)), []).append(form.const)
    if len(strides) != 1 or len(sizes) != 1 or not rows:
        return None
    (stride,), (size,) = strides, sizes
    width = max(max(row) - min(row) for row in rows.values()) // size + 1
    known = not _within(stride, loop)
    return (stride, width) if known and 2 <= width <= _WIDEST and _aligned(rows, size) else None


def _key(form: Affine) -> list[tuple[int, int, int]]:
    names = {s: (id(s.loop), id(s.value)) if isinstance(s, Scaled) else (id(s), 0) for s in form.terms}
    return sorted((*names[s], coefficient) for s, coefficient in form.terms.items())


def _aligned(rows: dict[tuple[object, ...], list[int]], size: int) -> bool:
    return all(offset % size == 0 and offset >= 0 for row in rows.values() for offset in row)
