"""Summaries of what functions read and write."""

from __future__ import annotations

from analysed import facts_of_c

RECURSIVE = """
static void fill(double *p, double *q, int n) { if (n > 0) { p[n] = q[n] * 2; fill(q, p, n - 1); } }
__attribute__((noinline)) static void go(double *p, double *q, int n) { fill(p, q, n); }
void root(double *a, double *b, double *c) { go(a, b, 5); c[0] = a[1]; }
"""


def test_summaries_go_through_recursion() -> None:
    facts = facts_of_c(RECURSIVE, "root", {0, 1}, "-fno-inline")
    pointers = facts.pointers
    inner = facts.module.functions.get("fill") or facts.module.functions["go"]
    assert pointers.names(pointers.writes(inner)) == "{argument %0, argument %1}"
    assert pointers.names(pointers.reads(pointers.root)) == "{argument %0, argument %1}"
