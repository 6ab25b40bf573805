"""Memory of the user's allocators is given back by their own functions, after the reverse sweep."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import irgrad
from irgrad.engine import grad, value_and_grad
from irgrad.rules import allocator
from irgrad.rules.layers import layer

SOURCE = """
static double room[64];
static long used = 0, given = 0;
__attribute__((noinline)) void *pool_get(long bytes) { void *p = (char *)room + used; used += bytes; return p; }
__attribute__((noinline)) void pool_put(long tag, void *p) { given += tag; used = (char *)p - (char *)room; }
long state(void) { return 1000 * given + used; }
double square(const double *x) {
  double *t = pool_get(2 * sizeof *t);
  t[0] = *x; t[1] = *x * *x;
  double r = t[0] * t[1];
  t[0] = r;
  r = t[0] * *x;
  pool_put(7, t);
  return r;
}
"""


def test_a_release_waits_for_the_reverse_sweep(tmp_path: Path) -> None:
    path = tmp_path / "pool.c"
    path.write_text(SOURCE)
    lib = irgrad.load(path)
    square = lib.kernel("square", "f64(f64[1] x)")
    with layer():
        from irgrad.rules.definitions.definition import Key, Rule
        from irgrad.rules.definitions.types import Activity, mode_type
        from irgrad.rules.layers import writable

        allocator("pool_get", 0)
        options = {"sizes": (), "zeroed": False, "frees": True, "pointer": 1}
        writable().add(Rule(Key("function", "pool_put"), "allocator", (mode_type(None), Activity), True, None, (),
                            False, "here", "pool_put", "test", options))  # fmt: skip
        value, gradient = value_and_grad(square, wrt="x")(np.array([1.5]))
        assert value == 1.5**4
        np.testing.assert_allclose(gradient, [4 * 1.5**3])
        text = grad(square, wrt="x")
        assert text is not None
        derived = square.primal.vjp((0, 1)).stage.text
        release = derived.split("@irgrad.release.pool_put(", 2)[-1]
        assert "@pool_put(i64" in release
        assert "call void @irgrad.tape.free_later" not in derived
