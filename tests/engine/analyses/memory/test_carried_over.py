"""Variables that hold something from an earlier call."""

from __future__ import annotations

import pytest
from analysed import facts_of_c

from irgrad.engine.analyses.memory.carried_over import carried_over

HEAD = """
typedef struct { char *base, *top; } arena;
char *top; arena both; long count; double table[4];
void *malloc(unsigned long);
void other(void);
#define APART __attribute__((noinline))
APART static double *take(long n) { char *p = top; top += 8 * n; return (double *)p; }
APART static void start(void) { top = malloc(800); }
APART static void perhaps(double *x) { if (x[0] > 0) top = malloc(800); }
APART static double deep(double *x, long n) {
  top = malloc(80); take(1)[0] = x[n]; return n ? x[n] / deep(x, n / 2) + deep(x, n - 1) : top[0]; }
"""


@pytest.mark.parametrize(("body", "found"), [
    ("top = malloc(800); take(3)[0] = x[0]; x[1] = *top;", set()),
    ("start(); take(3)[0] = x[0]; x[1] = *top;", set()),
    ("take(3)[0] = x[0]; start();", {"top"}),
    ("if (x[0] > 0) top = malloc(800); x[1] = *top;", {"top"}),
    ("perhaps(x); x[1] = *top;", {"top"}),
    ("if (x[0] > 0) start(); else top = malloc(8); x[1] = *top;", set()),
    ("for (int i = 0; i < 9; i++) { if (x[i] > 3) x[1] = *top; top = malloc(8); }", {"top"}),
    ("for (int i = 0; i < 9; i++) { top = malloc(8); if (x[i] > 3) x[1] = *top; }", set()),
    ("top = malloc(8); other(); x[1] = *top;", set()),
    ("both.base = malloc(80); both.top = both.base; x[1] = both.top[2];", set()),
    ("both.base = malloc(80); x[1] = both.top[2];", {"both"}),
    ("count++; x[1] = count;", {"count"}),
    ("table[0] = x[0]; x[1] = table[(int)x[2]];", {"table"}),
    ("*(int *)&count = 3; x[1] = count;", {"count"}),
    ("x[1] = deep(x, 9);", {"top"}),
])  # fmt: skip
def test_what_is_read_before_it_is_written(body: str, found: set[str]) -> None:
    facts = facts_of_c(HEAD + f"void f(double *x) {{ {body} }}", "f", {0}, "-fno-strict-aliasing")
    mask = carried_over(facts.pointers, facts.types.ranges.places)
    assert {obj.site.name for obj in facts.pointers.objects if obj.site and mask >> obj.index & 1} == found


def test_a_callee_that_throws_has_perhaps_not_written() -> None:
    source = """
#include <stdlib.h>
extern "C" { char *top; }
__attribute__((noinline)) static void start(double x) { if (x > 0) throw 1; top = (char *)malloc(8); }
extern "C" void f(double *x) { %s try { start(x[0]); } catch (int) {} x[1] = *top; }"""
    for before, found in (("", {"top"}), ("top = (char *)malloc(1);", set())):
        facts = facts_of_c(source % before, "f", {0}, "-xc++")
        mask = carried_over(facts.pointers, facts.types.ranges.places)
        names = {obj.site.name for obj in facts.pointers.objects if obj.site and mask >> obj.index & 1}
        assert names & {"top"} == found
