"""Cells that a loop stores in some iterations are stored behind it, where a register has what they hold."""

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
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.loop_memory import LoopMemory
from irgrad.engine.normalise.reducible import canonicalise
from irgrad.engine.normalise.running_cells import end_cells, may_end

LOOP = "for (long i = 0; i < n; i++)"
LEAVES = {
    "some iterations": f"*out = 0; {LOOP} if (x[i] > 0) *out += x[i];",
    "continue": "*out = 1; while (n-- > 0) { if (x[n] < 0.1) continue; *out *= x[n]; }",
    "two branches": f"*out = 0; {LOOP} {{ if (x[i] > 0.5) *out += x[i]; else if (x[i] < 0) *out -= 2 * x[i]; }}",
    "a nest": f"*out = 0; {LOOP} for (long j = 0; j < i; j++) if (x[j] < x[i]) *out += x[j];",
    "what was there": f"x[n] *= 2; {LOOP} if (x[i] > 0) x[n] += x[i];",
    "one loop after the other": f"*out = 0; {LOOP} if (x[i] > 0) *out += x[i]; {LOOP} if (x[i] < 0) *out -= x[i];",
}
STAYS = {
    "nothing stored in front": f"{LOOP} if (x[i] > 0) *out += x[i];",
    "read in the loop": f"x[0] = 0; {LOOP} {{ if (x[i] > 0) x[0] += x[i]; }}",
    "another value in the register": f"double s = 0; *out = 5; {LOOP} if (x[i] > 0) {{ s += x[i]; *out = 3 * s; }}",
    "written between": f"*out = 0; for (long i = 0; i < n; i++) out[i] = 1; {LOOP} if (x[i] > 0) *out += x[i];",
    "left in between": f"*out = 0; {LOOP} {{ if (x[i] > 0.9) break; if (x[i] > 0) *out += x[i]; }}",
    "volatile": f"*(volatile double *)out = 0; {LOOP} if (x[i] > 0) *(volatile double *)out += x[i];",
}


def _source(name: str, body: str) -> str:
    return f"void {name}(double *restrict x, long *size, double *restrict out) {{ long n = *size; {body} }}\n"


def _prepared(source: str, *names: str) -> Module:
    module = read(prepare(ir_of(source), names), roots=names)
    for fn in module.functions.values():
        if fn.blocks:
            canonicalise(fn)
    return module


def _inner_stores(fn: Function) -> int:
    loops = get(Loops, fn)
    return sum(i.opcode == "store" and loops.depth(b) > 0 for b in fn.blocks for i in b.instructions)


def _runs(module: Module, name: str) -> list[list[float]]:
    found = []
    for n in (0, 1, 2, 5, 9):
        machine = Machine(module, FloatDomain())
        x = machine.array(ty.F64, [float(v) for v in np.random.default_rng(n).uniform(-1, 1, 10)])
        out = machine.array(ty.F64, [0.25] * 10)
        machine.call(name, [x, machine.array(ty.I64, [n]), out])
        found.append([*machine.read(x, ty.F64, 10), *machine.read(out, ty.F64, 10)])
    return found


@pytest.mark.parametrize("what", LEAVES)
def test_the_last_store_is_behind_the_loop(what: str) -> None:
    module = _prepared(_source("f", LEAVES[what]), "f")
    fn, before = module.functions["f"], _runs(module, "f")
    assert may_end(fn)
    assert _inner_stores(fn)
    assert end_cells(LoopMemory(points_to(module, fn), fn))
    assert not _inner_stores(fn)
    assert not verify_module(module)
    assert _runs(module, "f") == before


@pytest.mark.parametrize("what", STAYS)
def test_stores_stay(what: str) -> None:
    module = _prepared(_source("f", STAYS[what]), "f")
    fn = module.functions["f"]
    stores = _inner_stores(fn)
    assert stores
    assert end_cells(LoopMemory(points_to(module, fn), fn)) == 0
    assert _inner_stores(fn) == stores


def _random(seed: int) -> str:
    r = random.Random(seed)

    def statement(depth: int) -> str:
        cell = r.choice(["*out", "*out", "*out", "out[1]", "x[9]"])
        test = r.choice(["x[i] > 0", "i % 3 == 1", "x[i] < x[n - 1 - i]", "x[9] > 0.2", "i > 4"])
        change = r.choice([f"{cell} += x[i];", f"{cell} -= 0.5 * x[n - 1 - i];", f"{cell} = x[i];", f"{cell} *= 0.5;"])
        inner = f"for (long j = 0; j < i; j++) if (x[j] > 0.1 * j) {cell} += x[j];"
        kinds = [change, f"if ({test}) {change}", f"if ({test}) continue;", f"if ({test}) {change} else *out += 1;"]
        return r.choice([*kinds, inner, *([f"if ({test}) {{ {statement(depth + 1)} }}"] if depth < 2 else [])])

    body = " ".join(f"for (long i = 0; i < n; i++) {{ {' '.join(statement(0) for _ in range(r.randint(1, 3)))} }}"
                    for _ in range(r.randint(1, 2)))  # fmt: skip
    return r.choice(["*out = 0; ", "*out = 0; out[1] = 1; ", "x[9] = 0.3; *out = 2; ", ""]) + body


def test_random_loops_keep_their_values() -> None:
    names = [f"f{seed}" for seed in range(60)]
    module, moved = _prepared("".join(_source(f"f{seed}", _random(seed)) for seed in range(60)), *names), 0
    for name in names:
        fn, before = module.functions[name], _runs(module, name)
        moved += end_cells(LoopMemory(points_to(module, fn), fn))
        assert not verify_module(module)
        assert _runs(module, name) == before, name
    assert moved > 10


def test_the_gradient_against_differences() -> None:
    kernel = ig.load(_source("f", LEAVES["two branches"])).kernel("f", "void(f64[n] x, i64[1] size, out f64[1] out)")
    x = np.linspace(-1, 1, 8)
    pullback = ig.vjp(kernel, x, np.array([8]), wrt="x")[1]
    steps = 1e-6 * np.eye(8)
    want = [(kernel(x + step, np.array([8])) - kernel(x - step, np.array([8])))[0] / 2e-6 for step in steps]
    np.testing.assert_allclose(pullback(np.ones(1)), want, atol=1e-7)
