"""Stores of which only the last one counts leave their loops; those that somebody sees before stay."""

from __future__ import annotations

import random

import numpy as np
import pytest
from analysed import ir_of
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain

import irgrad as ig
from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.invariants import leave_loops
from irgrad.engine.normalise.loop_memory import LoopMemory, may_sink, sink_stores
from irgrad.engine.normalise.reducible import canonicalise


def _prepared(source: str, root: str, *flags: str) -> tuple[Module, Pointers]:
    """A C program as the pass gets it."""
    module = read(prepare(ir_of(source, flags), [root]), roots=[root])
    for fn in module.functions.values():
        if fn.blocks:
            canonicalise(fn)
    return module, points_to(module, module.functions[root])


CELLS = {
    "rows of a factor": ("x[i * n + j] -= x[i * n + k] * x[k * n + j];", "k < j", True),
    "the cell is read": ("x[i * n + j] -= 0.5 * x[i * n + k];", "k <= j", False),
    "a row above": ("x[i * n + j] += 0.5 * x[(i - 1) * n + k];", "k < n", True),
    "the same column": ("x[i * n + j] += 0.5 * x[k * n + j];", "k < n", False),
    "another column": ("x[i * n + j] += 0.5 * x[k * n + i];", "k < n", True),
    "not the pivot": ("if (k != i) x[k * n + j] -= 0.1 * x[i * n + j];", "k < n", False),
}


def _source(body: str, bound: str) -> str:
    return f"""void f(double *x, long *size) {{
    long n = *size;
    for (long i = 0; i < n; i++) {{
        x[i * n] *= 0.5;
        for (long j = 0; j < i; j++)
            for (long k = 0; {bound}; k++) {{ {body} }}
    }}
}}"""


def _inner_stores(fn: Function) -> int:
    loops = get(Loops, fn)
    return sum(i.opcode == "store" and loops.depth(b) == 3 for b in fn.blocks for i in b.instructions)


@pytest.mark.parametrize("case", CELLS)
def test_stores_leave_where_no_access_meets_the_cell(case: str) -> None:
    body, bound, leaves = CELLS[case]
    module, pointers = _prepared(_source(body, bound), "f")
    fn = module.functions["f"]
    before = _inner_stores(fn)
    sink_stores(LoopMemory(pointers, fn))
    assert (_inner_stores(fn) < before) == leaves


def test_what_was_said_of_a_place_stays_there() -> None:
    """A store that leaves says nothing of other accesses any more; its type is what it was."""
    module, pointers = _prepared(_source(*CELLS["rows of a factor"][:2]), "f")
    fn = module.functions["f"]
    depth = get(Loops, fn).depth
    inside = [i for block in fn.blocks if depth(block) == 3 for i in block.instructions if i.opcode == "store"]
    for store in inside:
        store.metadata["noalias"] = "!0"
    sink_stores(LoopMemory(pointers, fn))
    assert inside
    assert all(set(store.metadata) <= {"dbg", "tbaa"} and "tbaa" in store.metadata for store in inside)


def test_a_load_that_a_guard_keeps_apart_leaves() -> None:
    """Elimination: the pivot's row, in the loop over the other rows."""
    module, pointers = _prepared("""void f(double *x, long *size) {
    for (long p = 0; p < 5; p++) {
        x[5 * p] *= 2;
        for (long r = 0; r < *size; r++)
            if (r != p) x[5 * r] -= 0.1 * x[5 * p];
    }
}""", "f")  # fmt: skip
    fn = module.functions["f"]
    assert leave_loops(pointers, fn)
    loops = get(Loops, fn)
    assert sum(i.opcode == "load" and loops.depth(b) == 2 for b in fn.blocks for i in b.instructions) == 1


def _nest(seed: int) -> str:
    r = random.Random(seed)
    where = ["i * n + j", "i * n + k", "j * n + k", "k * n + j", "j * n + i", "i * n + i", "i", "j", "k"]
    bounds = ["n", "i", "i + 1", "n - i"], ["n", "i", "j", "j + 1", "n - j"]
    cell = r.choice(where[:1] + where[4:8])
    guard = r.choice(["", "", "", "if (k != i) ", "if (k != j) ", "if (k < i) "])
    body = f"{guard}x[{cell}] += 0.5 * x[{r.choice(where)}] - 0.25 * x[{r.choice(where)}];"
    more = r.choice(["", "", f"x[{r.choice(where)}] *= 0.5;", f"x[{r.choice(where[:1] + where[4:7])}] = x[{cell}];"])
    outside = r.choice(["", "", f"x[{cell.replace('k', 'j')}] *= 0.9;"])
    return f"""void f{seed}(double *x, long *size) {{
    long n = *size;
    for (long i = 0; i < n; i++) {{
        x[i * n] *= 0.5;
        for (long j = {r.choice(["0", "0", "1", "i"])}; j < {r.choice(bounds[0])}; j++) {{
            {outside}
            for (long k = {r.choice(["0", "0", "i", "1"])}; k < {r.choice(bounds[1])}; k++) {{ {body} {more} }}
            {outside}
        }}
    }}
}}"""


def _runs(module: Module, seed: int) -> list[list[float]]:
    found = []
    for n in (0, 1, 2, 3, 5):
        machine = Machine(module, FloatDomain())
        x = machine.array(ty.F64, [float(v) for v in np.random.default_rng(n).uniform(-1, 1, 40)])
        machine.call(f"f{seed}", [x, machine.array(ty.I64, [n])])
        found.append(machine.read(x, ty.F64, 40))
    return found


def different(seeds: range) -> tuple[list[str], int]:
    """Nests whose values change when stores and loads leave their loops; how many leave."""
    source = "\n".join(map(_nest, seeds))
    calls = "".join(f" f{seed}(x, size);" for seed in seeds)
    module, pointers = _prepared(f"{source}\nvoid all(double *x, long *size) {{{calls} }}", "all", "-fno-inline")
    bad, moved = [], 0
    for seed in seeds:
        fn = module.functions.get(f"f{seed}")
        if fn is None or not fn.blocks:
            continue
        before = _runs(module, seed)
        moved += leave_loops(pointers, fn)
        moved += sink_stores(LoopMemory(pointers, fn)) if may_sink(fn) else 0
        if _runs(module, seed) != before:
            bad.append(_nest(seed))
    return bad, moved


def test_random_nests_keep_their_values() -> None:
    bad, moved = different(range(40))
    assert not bad
    assert moved > 5


@pytest.mark.slow
def test_more_random_nests_keep_their_values() -> None:
    assert not different(range(100, 1000))[0]


def test_gradient_of_a_factorisation() -> None:
    kernel = ig.load("""#include <math.h>
void f(double *a, long n) {
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < i; j++) {
            for (long k = 0; k < j; k++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
            a[i * n + j] /= a[j * n + j];
        }
        for (long j = i; j < n; j++)
            for (long k = 0; k < i; k++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
}""").kernel("f", "void(inout f64[n,n] a, i64 n)")  # fmt: skip
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (6, 6)) + 6 * np.eye(6)
    seed, direction = rng.normal(size=(2, 6, 6))
    _, pull = ig.vjp(kernel, a.copy())
    plus, minus = kernel(a + 1e-6 * direction), kernel(a - 1e-6 * direction)
    np.testing.assert_allclose(np.sum(pull(seed) * direction), np.sum(seed * (plus - minus)) / 2e-6, rtol=1e-8)
