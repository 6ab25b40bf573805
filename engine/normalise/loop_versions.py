"""Loops have a version for what is known at run time alone, beside the loop as it is.

    loop: ...         ->      if c:  the same loop, with what `c` tells
                              else:  the loop as it is

What `c` may tell: that subscripts do not wrap, with remainders of less than twice the divisor (`whole_subscripts.py`),
that rows lie without gaps (`stride_versions.py`). Where a derivative adds to memory at such subscripts it has to know
which iterations meet; in the version it does. The question is asked once, as far outside as what it hangs on is known.

Done for the outermost loops that may be cut and are not too long; the version is a loop that the next kind may have a
version of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.loop_parts import Version, choose, may_be_cut, place_before
from irgrad.engine.normalise.stride_versions import dense_rows
from irgrad.engine.normalise.whole_subscripts import whole_subscripts

__all__ = ["version_loops"]

_LONGEST = 200  # instructions of a nest

Kind = Callable[[Loop, Induction], Version | None]
_KINDS: tuple[Kind, ...] = (whole_subscripts, dense_rows)


def version_loops(fn: Function) -> int:
    """Give loops of the function their versions. Returns how many there are."""
    return sum(_version(fn, kind) for kind in _KINDS)


def _version(fn: Function, kind: Kind) -> int:
    done: set[object] = set()
    count = 0
    while (found := _next(fn, kind, done)) is not None:
        loop, version = found
        at = place_before(fn, loop, version.values, divides=False)
        condition, known = version.write(at)
        settled = at.insert(Instruction("freeze", ty.I1, [condition]))
        inner = [b for b in loop.blocks if get(Loops, fn).of(b) is not loop]
        done.update(inner)
        done.update(choose(fn, loop, settled, known, {}))
        count += 1
    return count


def _next(fn: Function, kind: Kind, done: set[object]) -> tuple[Loop, Version] | None:
    loops = get(Loops, fn)
    forms: Induction | None = None
    for loop in _outermost(loops, uses_of(fn.blocks) if loops.top else {}, loops.top):
        if loop.header in done:
            continue
        done.add(loop.header)
        forms = forms or Induction(fn, loops=loops)
        version = kind(loop, forms)
        if version is not None:
            return loop, version
    return None


def _outermost(loops: Loops, users: Uses, some: list[Loop]) -> Iterator[Loop]:
    """The outermost loops that may have versions."""
    for loop in some:
        if may_be_cut(loop, loops, users, _LONGEST):
            yield loop
        else:
            yield from _outermost(loops, users, loop.children)
