"""Which loads may be repeated in the reverse sweep: asked across iterations, not only within one."""

from __future__ import annotations

import pytest
from analysed import facts_of_c
from handwritten.made import HEADER

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.clobber import Clobber
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir.model import Instruction


def _loads(source: str, dup: set[int]) -> tuple[Clobber, list[Instruction]]:
    facts = facts_of_c(HEADER + source, "f", dup)
    cfg = Cfg(facts.root)
    loops = Loops(cfg, Dominators(cfg))
    clobber = Clobber(cfg, facts.pointers, Induction(facts.root, cfg, loops), 0)
    return clobber, [i for i in facts.root.instructions() if i.opcode == "load" and i.type.is_fp]


LEFT_LOOKING = "void f(double *x, long *n) { for (long i = 1; i < *n; i++) x[i] = x[i - 1] * x[i + 1]; }"
TWO_BUFFERS = """
void f(double *restrict x, double *restrict y, long *n) { for (long i = 0; i < *n; i++) y[i] = x[i] * x[i]; }"""
FIELDS = """
typedef struct { double in, out; } Cell;
void f(Cell *x, long *n) { for (long i = 0; i < *n; i++) x[i].out = x[i].in * x[i].in; }"""
SHIFTED_FIELDS = """
typedef struct { double in, out; } Cell;
void f(Cell *x, long *n) { for (long i = 0; i < *n; i++) x[i].in = x[*n - i].in * 3; }"""
BEFORE = "void f(double *x, double *o) { x[0] = 2 * x[1]; *o = x[1] * x[2] * x[2]; }"
AFTER = "void f(double *x, double *o) { *o = x[1] * x[2] * x[2]; x[2] = *o; }"
STRIDED = """
void f(double *x, long *n) { for (long i = 0; i < *n; i++) x[3 * i + 2] = x[3 * i] * x[3 * i + 1]; }"""
NEXT_OF_STRIDE = """
void f(double *x, long *n) { for (long i = 0; i < *n; i++) x[3 * i + 3] = x[3 * i] * x[3 * i + 1]; }"""


@pytest.mark.parametrize(
    ("source", "dup", "expected"),
    [
        (LEFT_LOOKING, {0}, {False, True}),  # x[i - 1] was written by the iteration before, x[i + 1] is by the next
        (TWO_BUFFERS, {0, 1}, {False}),
        (FIELDS, {0}, {False}),  # another field of the same structs
        (SHIFTED_FIELDS, {0}, {True}),
        (STRIDED, {0}, {False}),  # disjoint residues modulo three
        (BEFORE, {0, 1}, {False}),  # the store comes before every load
    ],
)
def test_verdicts(source: str, dup: set[int], expected: set[bool]) -> None:
    clobber, loads = _loads(source, dup)
    assert loads
    assert {clobber.clobbered(load) for load in loads} == expected


def test_only_what_the_store_reaches_is_clobbered() -> None:
    clobber, loads = _loads(AFTER, {0, 1})
    assert sorted(clobber.clobbered(load) for load in loads) == [False, True], "x[1] stays, x[2] is overwritten"


def test_the_next_element_of_the_same_residue() -> None:
    clobber, loads = _loads(NEXT_OF_STRIDE, {0})
    assert not any(map(clobber.clobbered, loads)), "x[3 i] was written by the iteration before, and by none after"


def test_memory_that_others_may_write() -> None:
    """Between the halves of a split derivative everything in `outside` may change."""
    facts = facts_of_c(HEADER + TWO_BUFFERS, "f", {0, 1})
    cfg = Cfg(facts.root)
    induction = Induction(facts.root, cfg, Loops(cfg, Dominators(cfg)))
    load = next(i for i in facts.root.instructions() if i.opcode == "load" and i.type.is_fp)
    mask = facts.pointers.of(load.operands[0])
    assert Clobber(cfg, facts.pointers, induction, mask).clobbered(load)
    assert not Clobber(cfg, facts.pointers, induction, 0).clobbered(load)
