"""The ways in which a derivative is asked for, in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

import irgrad as ig
from irgrad.engine import grad
from irgrad.engine.kernel.ways import first_way
from irgrad.rules.errors import Unsupported

CONSTRUCTORS = """
#include <vector>
struct s { int n[3]; double x; };
static std::vector<double> work(8);
extern "C" double f(s *p, long k) { p->n[k]++; return work[k]; }
"""
BITS = """#include <stdlib.h>
struct s { unsigned char live[4]; double w[2]; const double *x; };
double f(const double *x, long n) {
  struct s *s = calloc(1, sizeof *s); s->x = x; s->w[1] = 2;
  s->live[n] |= 1;
  double y = s->w[s->live[n]] * s->x[0] * s->x[0]; free(s); return y; }
"""


def test_all_ways_in_their_order() -> None:
    text = ig.load(CONSTRUCTORS, language="c++").text
    asked: list[tuple[bool, bool]] = []

    def ask(inside: bool, members: str) -> None:
        asked.append((inside, bool(members)))
        raise Unsupported(f"way {len(asked)}")

    with pytest.raises(Unsupported, match="way 1"):
        first_way(text, lambda: text, ask)
    assert asked == [(False, False), (True, False), (False, True), (True, True)]


def test_a_file_that_has_changed_is_not_another_function(tmp_path: Path) -> None:
    """Passes of the compiler ran: what they started from is compiled when it is asked for."""
    path = tmp_path / "f.c"
    path.write_text(BITS)
    first, second = (ig.load(path, opt="O2").kernel("f", "f64(f64[n] x, i64 n)") for _ in range(2))
    assert grad(first)([3.0])[0] == 12
    path.write_text(BITS.replace("s->w[1] = 2", "s->w[1] = 4"))
    assert grad(ig.load(path, opt="O2").kernel("f", "f64(f64[n] x, i64 n)"))([3.0])[0] == 24
    path.write_text(BITS.replace("s->w[1] = 2", "s->w[1] = 6"))
    other = second.options
    with pytest.raises(Unsupported):
        grad(second.with_options(strict_fp=not other.strict_fp))([3.0])
