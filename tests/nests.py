"""Loops of C functions and of LLVM IR with what dependence says of them, for tests."""

from __future__ import annotations

from analysed import ir_of

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reducible import canonicalise


def analysed(source: str) -> tuple[Dependence, list[Loop]]:
    """The dependence of the C function `f`, whose arguments are buffers, and its loops, outer before inner."""
    text = ir_of(source, ("-fno-unroll-loops", "-fno-inline")) if "define" not in source else source
    module = read(text, roots=["f"])
    fn = module.functions["f"]
    for argument in fn.args:
        argument.attrs += " noalias"
    canonicalise(fn)
    induction = Induction(fn)
    return Dependence(fn, points_to(module, fn), induction), induction.loops.all
