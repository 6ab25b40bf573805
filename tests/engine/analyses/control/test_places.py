"""Where loops begin and end."""

from __future__ import annotations

import irgrad as ig
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.control.places import loop_places
from irgrad.engine.ir.text.reader import read

SOURCE = """
double f(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        s = s * s + x[i];
    }
    while (s > 1)
        s *= 0.5;
    return s;
}
"""


def test_begin_and_end() -> None:
    module = read(ig.load(SOURCE).text)
    found = [loop_places(module, loop) for loop in get(Loops, module.functions["f"]).top]
    lines = [[int(place.split(":")[-2]) for place in places] for places in found]
    assert lines == [[4, 6], [7, 8]]


PLAIN = """define void @f(i64 %n) {
a:
  br label %b
b:
  %i = phi i64 [ 0, %a ], [ %j, %b ]
  %j = add i64 %i, 1
  %c = icmp eq i64 %j, %n
  br i1 %c, label %d, label %b
d:
  ret void
}
"""


def test_without_debug_information() -> None:
    module = read(PLAIN)
    assert loop_places(module, get(Loops, module.functions["f"]).top[0]) == []
