"""Versions of loops by what is known at run time: which loops have them, one after the other."""

from __future__ import annotations

import pytest
from handwritten.made import module_of

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.normalise.demote import close_loops
from irgrad.engine.normalise.loop_versions import version_loops

ROWS = "for (unsigned i = 0; i < n; i++) for (unsigned j = 0; j < i; j++) e += p[i * s] * p[j * s] * p[i * s + 1];"
LONG = "".join(f"e += __builtin_sin(e + {k}) * __builtin_cos(e * {k});" for k in range(60))


def _loops(body: str) -> tuple[int, int]:
    source = f"double f(const double *p, unsigned n, unsigned s) {{ double e = 0; {body} return e; }}"
    fn = module_of(source, "f").functions["f"]
    return version_loops(fn), len(get(Loops, fn).top)


@pytest.mark.parametrize(
    ("body", "versions", "loops"),
    [
        (ROWS, 2, 3),  # no wrapping, and in that version rows of two numbers
        (ROWS.replace("unsigned", "long"), 1, 2),
        ("for (unsigned i = 0; i < n; i++) e += p[i * s];", 1, 2),
        ("for (unsigned i = 0; i < n; i++) e += p[i];", 0, 1),
        (f"for (int t = 0; t < 9; t++) {{ {LONG} {ROWS} }}", 2, 1),  # the nest in a loop that is too long
    ],
)
def test_which_loops_have_versions(body: str, versions: int, loops: int) -> None:
    assert _loops(body) == (versions, loops)


def test_one_of_both_runs_and_its_sum_leaves_by_phis() -> None:
    """Behind another loop, an adjoint might be zero for what is not used; from memory, a sum is thought to be read."""
    body = ROWS.replace("unsigned", "long")
    source = f"double f(const double *p, long n, long s) {{ double e = 0; {body} return e; }}"
    fn = module_of(source, "f").functions["f"]
    assert version_loops(fn) == 1
    assert close_loops(fn) == 0 and not any(i.opcode == "alloca" for i in fn.instructions())
    one, other = get(Loops, fn).top
    behind = set(one.exits)
    while more := {after for block in behind for after in block.successors} - behind:
        behind |= more
    assert other.header not in behind and one.header not in behind
