"""Nests over rows of a few numbers, at a stride that is known at run time alone, have a version for rows without gaps.

    for i, for j:  ... p[j * s] ... p[j * s + 1] ... p[j * s + 2] ...       ; s an argument, or loaded before the nest
                                        ->     if s == 3:  the same nest with 3 for s
                                               else:       the nest as it is

A matrix class says `data[i * cols + j]`, and a program that has three numbers in a row knows no more of `cols`. The
derivative of such loads adds to memory at that stride: two rows may be the same memory (`s` may be 0), so its
iterations run one after the other. In the version they are independent, and vectors of rows are read and written.

Done for outermost loops of a nest where all strides that are no constants are one number, and the distance of the
outermost accesses of a row tells how many numbers a row has. Pointers that walk by the stride have no count of
iterations before, and have one in the version.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.affine import Affine, Scaled
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Value
from irgrad.engine.normalise.loop_parts import Part, cut, may_be_cut, place_before

__all__ = ["version_strides"]

_LONGEST = 200  # instructions of a nest
_WIDEST = 8  # numbers in a row


def version_strides(fn: Function) -> int:
    """Give the nests of a function that have such strides a version without gaps. Returns how many have."""
    done: set[object] = set()
    count = 0
    while (found := _next(fn, done)) is not None:
        loop, stride, dense, same = found
        done.add(loop.header)
        at = place_before(fn, loop, [stride], divides=False)
        no, yes = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
        assert isinstance(stride.type, ty.IntType)
        fits = at.insert(Instruction("freeze", ty.I1, [at.icmp("eq", stride, ConstInt(stride.type, dense))]))
        chosen = at.select(fits, yes, no)
        known: dict[Value, Value] = {v: ConstInt(v.type, dense) for v in same if isinstance(v.type, ty.IntType)}
        done.update(cut(fn, loop, [Part(no, chosen, known, whole=True), Part(chosen, yes, {}, whole=True)]))
        count += 1
    return count


def _next(fn: Function, done: set[object]) -> tuple[Loop, Value, int, list[Value]] | None:
    loops = get(Loops, fn)
    tops = [loop for loop in loops.top if loop.children and loop.header not in done]
    if not tops:
        return None
    forms = Induction(fn, loops=loops)
    for loop in tops:
        done.add(loop.header)
        found = _row(loop, forms) if may_be_cut(fn, loop, loops, _LONGEST) else None
        if found is not None:
            return loop, *found, _same(loop, found[0], forms)
    return None


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
