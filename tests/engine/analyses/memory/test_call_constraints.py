"""What calls say of points-to sets: addresses that memory holds as integers, and what moves them."""

from __future__ import annotations

import pytest
from analysed import all_of, facts_of_c

HEAD = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct slot { intptr_t word; long count; };
struct sizes { long n; long m; };
__attribute__((noinline)) static double twice(struct slot *s) {
  double *p = (double *)s->word;
  return *p * 2;
}
__attribute__((noinline)) static long length(const struct sizes *s) { return s->n + s->m; }
"""
BODIES = {
    "stored": "s.word = (intptr_t)x; return twice(&s) * length(&z);",
    "copied": "struct slot t; s.word = (intptr_t)x; memcpy(&t, &s, sizeof s); return twice(&t) * length(&z);",
    "moved": """struct slot *h = malloc(sizeof *h); h->word = (intptr_t)x; h = realloc(h, 4 * sizeof *h);
                double r = twice(h); free(h); return r * length(&z);""",
    "by value": "s.word = (intptr_t)x; struct slot all[2] = {s, s}, t = all[n & 1]; return twice(&t) * length(&z);",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_addresses_as_integers_are_of_the_memory_that_holds_them(body: str, level: str) -> None:
    source = f"{HEAD}double f(double *x, long n) {{ struct slot s = {{0}}; struct sizes z = {{n, 3}}; {body} }}"
    facts = facts_of_c(source, "f", {0}, level)
    pointers = facts.pointers
    x = pointers.of(pointers.root.args[0])
    read = [i for i in all_of(facts, "load", "twice") if i.type.is_float]
    assert read and all(pointers.of(i.operands[0]) & x for i in read)
    sizes = [i for i in all_of(facts, "load", "length") if i.type.is_int]
    assert sizes and not any(pointers.of(i) for i in sizes)
