"""Rounded floats that a function stores: refused where the caller's memory is of floats, right where it counts."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

HEAD = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void __enzyme_autodiff(void *, ...), __enzyme_fwddiff(void *, ...);
extern int enzyme_dup;
#define BITS (int64_t)(6497320848556798.0 * *x + 4606985713057410000.0)
"""
STORED = HEAD + """
static void copied(const double *x, double *y) { int64_t i = BITS; memcpy(y, &i, 8); }
static void joined(const double *x, double *y) { union { double d; int64_t i; } u; u.i = BITS; *y = u.d; }
static void punned(const double *x, double *y) { *(int64_t *)y = BITS; }
static void unnamed(const double *x, void *y) { int64_t i = BITS; memcpy(y, &i, 8); }
double kernel(double x) {
  double dx = 1, fixed[3], dfixed[3] = {1, 1, 1};
  double *y = MEMORY, *dy = SHADOW;
  dy[1] = 1;
  CALL((void *)FUNCTION, enzyme_dup, &x, &dx, enzyme_dup, y + 1, dy + 1);
  return dx + dy[1];
}
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("mode", ["__enzyme_autodiff", "__enzyme_fwddiff"])
@pytest.mark.parametrize("function", ["copied", "joined", "punned", "unnamed"])
@pytest.mark.parametrize("memory", [("fixed", "dfixed"), ("malloc(24)", "calloc(3, 8)")], ids=["variable", "heap"])
def test_bits_in_memory_of_floats_are_no_silent_zero(
    memory: tuple[str, str], function: str, mode: str, level: str
) -> None:
    """All that the function does with the memory of its caller is a store of an integer."""
    names = {"CALL": mode, "FUNCTION": function, "MEMORY": memory[0], "SHADOW": memory[1]}
    with pytest.raises(Unsupported, match="becomes the bits of a float"):
        lower(load(STORED, define=names, opt=level).text)


COUNTED = HEAD + """
struct counted { double a, b; int64_t n; };
static void into_struct(const double *x, struct counted *s) { s->n = (int64_t)*x; s->b = *x * *x; }
static void behind_header(const double *x, char *block) {
  *(int64_t *)block = (int64_t)*x;
  ((double *)(block + 8))[1] = *x * *x;
}
static void into_counts(const double *x, int64_t *counts) { *counts = (int64_t)*x; }
double kernel(double x) {
  double dx = 0;
  struct counted *s = malloc(sizeof *s), *ds = calloc(1, sizeof *s);
  char *block = malloc(24), *dblock = calloc(3, 8);
  int64_t *counts = calloc(1, 8), *dcounts = calloc(1, 8);
  ds->b = 1;
  ((double *)(dblock + 8))[1] = 1;
  __enzyme_autodiff((void *)into_struct, enzyme_dup, &x, &dx, enzyme_dup, s, ds);
  __enzyme_autodiff((void *)behind_header, enzyme_dup, &x, &dx, enzyme_dup, block, dblock);
  __enzyme_autodiff((void *)into_counts, enzyme_dup, &x, &dx, enzyme_dup, counts, dcounts);
  return dx + (double)(*(int64_t *)block + s->n + *counts);
}
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_counts_beside_floats_and_alone_stay_counts(level: str) -> None:
    assert lower(load(COUNTED, opt=level).text)
