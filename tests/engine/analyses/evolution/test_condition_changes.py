"""Where conditions change: iterations told by the analysis are those in which a walk through the loop sees it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from handwritten.made import module_of

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.condition_changes import Change, Number, at_end, change_of
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import TripCount, const, evaluate, signed
from irgrad.engine.ir.model import Argument

CONDITIONS = {  # with the head of their loop
    "i < a": "i = 0; i < n; i++", "i <= a": "i = 0; i < n; i++", "i > a": "i = 0; i < n; i += 2",
    "i >= a + 3": "i = 1; i < n; i++",
    "i == a": "i = 0; i < n; i++", "i != n - 2": "i = 0; i < n; i++", "2 * i == a": "i = 0; i < n; i++",
    "i < a ": "i = n - 1; i >= 0; i--", "i >= a": "i = n - 1; i >= 0; i -= 3", "n - 1 - i > a": "i = 0; i < n; i++",
    "(unsigned long)i <= (unsigned long)a": "i = 0; i < n; i++",
}  # fmt: skip


def _changes(condition: str, head: str) -> tuple[Change, Any, list[Argument]]:
    body = f"double s = 0; for (long {head}) {{ if ({condition}) s += x[i]; else s = s * x[i]; }} return s;"
    fn = module_of(f"double f(const double *x, long n, long a) {{ {body} }}", "f").functions["f"]
    loops = get(Loops, fn)
    (loop,), forms = loops.all, Induction(fn, loops=loops)
    ends = loop.latches[0].terminator.operands[0]
    (compare,) = [i for b in loop.blocks for i in b.instructions if i.opcode == "icmp" and i is not ends]
    change = change_of(compare, loop, forms)
    assert change is not None
    return change, forms.trip_count(loop), fn.args


def _at(change: Change, numbers: dict[Any, int], count: int) -> int:
    """The iteration that a change tells, as the formulas of the analysis have it."""
    number = change.at
    start, bound = (signed(evaluate(e, lambda v: numbers[v])) for e in (number.start, number.bound))
    reached = [start + number.step * k for k in range(count)]
    if number.kind == "equal":
        return next((k for k, v in enumerate(reached) if v == bound), count)
    up = 1 if number.step > 0 else -1
    return sum((bound - v) * up > 0 or (number.closed and v == bound) for v in reached)


@pytest.mark.parametrize(("condition", "head"), CONDITIONS.items())
def test_where_they_change(condition: str, head: str) -> None:
    change, _, args = _changes(condition.strip(), head)
    start, end, step = (part.strip() for part in head.split(";"))
    by = {"i++": 1, "i--": -1}.get(step) or int(step.split("= ")[1]) * (-1 if "-=" in step else 1)
    for n, a in [(10, 4), (10, 0), (7, 9), (3, 1), (12, 11)]:
        first = eval(start.split("=")[1], {"n": n})
        counters = list(range(first, n if "<" in end else -1, by))
        text = condition.replace("(unsigned long)", "").strip()
        walk = [bool(eval(text, {"i": i, "n": n, "a": a})) for i in counters]
        at = _at(change, {args[1]: n, args[2]: a}, len(counters))
        told = [change.first != (k == at if change.point else k >= at) for k in range(len(counters))]
        compare = change.condition  # LLVM may have turned it round
        turned = [not w for w in walk]
        assert told in (walk, turned), (n, a, compare.pred)


@pytest.mark.parametrize(("condition", "end"), [("i == 0", True), ("i == n - 1", False), ("i == a", None)])
def test_the_first_and_the_last(condition: str, end: bool | None) -> None:
    change, trip, _ = _changes(condition, "i = 0; i < n; i++")
    assert at_end(change.at, trip) is end


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("step", [1, -1])
def test_the_first_and_the_last_of_an_order(step: int, closed: bool) -> None:
    told = set()
    for start, bound, last in itertools.product(range(-3, 4), range(-3, 4), range(5)):
        number = Number("order", const(start), const(bound), step, closed)
        end = at_end(number, TripCount(const(last)))
        before = [(bound - start - step * k) * step >= (0 if closed else 1) for k in range(last + 1)]
        assert end is None or sum(before) == (1 if end else last), (start, bound, last)
        told.add(end)
    assert told == {True, False, None}


@pytest.mark.parametrize("condition", ["x[i] > 0", "i * a < n", "i % 3 == a", "i == (long)x[i]", "i + (long)x[i] < a"])
def test_conditions_that_are_no_such(condition: str) -> None:
    body = f"for (long i = 0; i < n; i++) {{ if ({condition}) s += x[i]; else s = s * x[i]; }} return s;"
    fn = module_of(f"double f(const double *x, long n, long a) {{ double s = 0; {body} }}", "f").functions["f"]
    loops = get(Loops, fn)
    (loop,), forms = loops.all, Induction(fn, loops=loops)
    ends = loop.latches[0].terminator.operands[0]
    rows = [i for b in loop.blocks for i in b.instructions if i.opcode in ("icmp", "fcmp") and i is not ends]
    assert rows and all(i.opcode == "fcmp" or change_of(i, loop, forms) is None for i in rows)
