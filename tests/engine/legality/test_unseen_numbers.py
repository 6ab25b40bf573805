"""Copies of the caller's memory in which nobody says where numbers lie are refused; others are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.interop.cli import main
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

HEAD = """
#include <stdlib.h>
#include <string.h>
void __enzyme_autodiff(void *, ...), __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;
"""
BYTES = HEAD + """
static void moved(void *a, void *b, long n) { memcpy(a, b, n * 8); }
void kernel(void *a, void *da, void *b, void *db, long n) {
  MODE((void *)moved, enzyme_dup, a, da, enzyme_dup, b, db, enzyme_const, n);
}
"""
BY_WAY_OF = HEAD + """
typedef union { double d; long i; } either;
typedef struct { int key; either a, b; } item;
static void exchanged(item *p) {
  item t;
  if (p[0].key > p[1].key) memcpy(&t, p, sizeof t), memcpy(p, p + 1, sizeof t), memcpy(p + 1, &t, sizeof t);
}
void kernel(item *p, item *dp) { MODE((void *)exchanged, enzyme_dup, p, dp); }
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("source", [BYTES, BY_WAY_OF], ids=["bytes", "by way of a variable"])
def test_copies_of_what_nobody_knows(source: str, level: str) -> None:
    with pytest.raises(Unsupported, match="not known where its numbers lie"):
        lower(load(source, define={"MODE": "__enzyme_autodiff"}, opt=level).text)


def test_forward_mode_copies_shadows() -> None:
    assert lower(load(BYTES, define={"MODE": "__enzyme_fwddiff"}).text)


SORTED = HEAD + """
typedef union { double d; long i; } either;
typedef struct { int key; either a, b; } item;
static int by_key(const void *a, const void *b) { return ((const item *)a)->key - ((const item *)b)->key; }
static void sorted(item *p, long n) { qsort(p, n, sizeof *p, by_key); }
void kernel(item *p, item *dp, long n) { MODE((void *)sorted, enzyme_dup, p, dp, enzyme_const, n); }
"""


@pytest.mark.parametrize("mode", ["__enzyme_autodiff", "__enzyme_fwddiff"])
def test_forward_mode_needs_them_all(mode: str) -> None:
    """The memory on the way holds nothing but integers, for all that is known: it has no shadow."""
    with pytest.raises(Unsupported, match="not known where its numbers lie"):
        lower(load(SORTED, define={"MODE": mode}).text)


TEXT = HEAD + """
#include <stdio.h>
typedef struct { char name[24]; double *v; } column;
static double first(column *c) {
  char name[24];
  memcpy(name, c->name, 24);
  return name[0] == 'a' ? c->v[0] * c->v[0] : c->v[1];
}
int main(void) {
  double v[2] = {3, 4}, d[2] = {0};
  column *c = malloc(sizeof *c), *dc = calloc(1, sizeof *c);
  strcpy(c->name, "abc"), c->v = v, dc->v = d;
  __enzyme_autodiff((void *)first, enzyme_dup, c, dc);
  return (int)d[0];
}
"""


def test_what_does_not_go_back_to_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "text.c"
    path.write_text(TEXT)
    assert main(["run", str(path)]) == 6
