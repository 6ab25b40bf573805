"""Loops that are cut where their conditions change: which are, into how many, values to the bit, derivatives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from handwritten.made import module_of

import irgrad
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.normalise.split_ranges import split_ranges

SIGNATURE = "f64(f64[n] x, inout f64[n] y, i64 n, i64 a, i64 b)"
HEAD = "#include <math.h>\n"
CUT = {  # body of the loop, loops that there are then
    "the first": ("if (i == 0) continue; s += x[i] * x[i - 1];", 1),
    "both ends": ("if (i == 0 || i == n - 1) continue; s += x[i + 1] * x[i - 1];", 1),
    "a place": ("if (i == a) continue; s += x[i] * x[a];", 2),
    "a triangle": ("if (i < a) s += x[i] * x[i]; else s -= x[i];", 2),
    "a window": ("if (i >= a && i < b) s += x[i] * x[i]; else s -= sin(x[i]);", 3),
    "around the end": ("long r = i == n - 1 ? 0 : i + 1, l = i == 0 ? n - 1 : i - 1; s += x[l] * x[r];", 1),
    "a remainder": ("s += x[(i + 1) % n] * x[i];", 1),
    "the first by order": ("if (i + n - 1 < n) s += x[i]; else s += x[i - 1] * x[i];", 1),
    "the last by order": ("if (i + 1 < n) s += x[i + 1] * x[i]; else s += x[i];", 1),
    "an invariant": ("if (a > 3) s += x[i] * x[i]; else s += sin(x[i]);", 2),
    "unsigned": ("if ((unsigned long)i > (unsigned long)a) s += x[i] * x[i];", 2),
}


def _source(body: str, head: str = "for (long i = 0; i < n; i++)") -> str:
    parameters = "double *restrict x, double *restrict y, long n, long a, long b"
    return f"{HEAD}double f({parameters}) {{ double s = 0; {head} {{ {body} }} return s; }}"


@pytest.mark.parametrize(("body", "loops"), CUT.values(), ids=list(CUT))
def test_loops_that_are_cut(body: str, loops: int) -> None:
    module = module_of(_source(body), "f")
    fn = module.functions["f"]
    assert len(get(Loops, fn).all) == 1
    assert split_ranges(fn) > 0
    assert len(get(Loops, fn).all) <= loops + 1
    assert split_ranges(fn) == 0 or loops > 2


def test_what_the_source_expects_of_a_condition() -> None:
    """Weights of two ways are none of a branch with one."""
    fn = module_of(_source(CUT["both ends"][0]), "f").functions["f"]
    for instr in fn.instructions():
        if instr.opcode == "br" and instr.operands:
            instr.metadata["prof"] = "!0"
    assert split_ranges(fn) > 0
    ends = [block.terminator for block in fn.blocks]
    assert any("prof" in end.metadata for end in ends)
    assert all(len(end.blocks) == 2 for end in ends if "prof" in end.metadata)


LEFT = {
    "conditions on data": "if (x[i] > 0) s += x[i] * x[i];",
    "a stride that is data": "if (i * a < b) s += x[i] * x[i];",
    "an early end": "if (i == a) s += 1; if (x[i] > 1e3) break; s += x[i] * x[i];",
}


@pytest.mark.parametrize("body", LEFT.values(), ids=list(LEFT))
def test_loops_that_stay(body: str) -> None:
    assert split_ranges(module_of(_source(body), "f").functions["f"]) == 0


# -- random loops ------------------------------------------------------------------------------------------------------

MACROS = """
#include <iso646.h>
#define L(e) ((long)(e))
#define U(e) ((unsigned)(e))
#define PICK(c, p, q) ((c) ? (p) : (q))
"""
NAMES = {"L": lambda e: e, "U": lambda e: e % 2**32, "PICK": lambda c, p, q: p if c else q}
SIZES = [(24, 3, 17), (17, 0, 5), (5, 2, 3), (2, 1, 1), (20, 19, 20), (18, -2, 40)]


class Conditions:
    """A kernel whose conditions compare its counters, at random: as C, and as Python that runs on complex numbers."""

    def __init__(self, seed: int) -> None:
        self.r = r = random.Random(seed)
        self.kind = r.choice(["long", "long", "int", "unsigned"])
        outer, step = r.random() < 0.5, r.choice([1, 1, 1, 2, 3])
        low, high = r.choice(["0", "0", "1", "j"]), r.choice(["n", "n", "n - 1", "n - j"])
        rows = [self._row() for _ in range(r.randint(1, 3))]
        if self.kind != "unsigned" and r.random() < 0.3:
            head, run = f"i = {high} - 1; i >= {low}; i -= {step}", f"range({high} - 1, {low} - 1, {-step})"
        else:
            head, run = f"i = {low}; i < {high}; i += {step}", f"range({low}, {high}, {step})"
        head, nest = head.replace("n", f"({self.kind})n").replace("j", f"({self.kind})j"), "3" if outer else "2"
        self.c = "\n".join([
            f"double f{seed}(const double *x, double *y, long n, long a, long b) {{ double s = 0, h = 1;",
            f"  for (long j = {'0' if outer else '1'}; j < {nest}; j++) for ({self.kind} {head}) {{",
            *(f"    {c}" for c, _ in rows), "    s += h * h; }", "  return s; }",
        ])  # fmt: skip
        self.python = "\n".join([
            "def f(x, y, n, a, b):", "  s, h = 0, 1", f"  for j in range({'0' if outer else '1'}, {nest}):",
            f"    for i in {run}:", *(f"      {p}" for _, p in rows), "      s += h * h", "  return s",
        ])  # fmt: skip

    def _compare(self) -> str:
        r, word = self.r, "U" if self.r.random() < 0.3 else "L"
        left = r.choice(["L(i)", "L(i)", "L(i) + 1", "L(i) - 2", "2 * L(i)", "n - 1 - L(i)", "j + L(i)", "a"])
        right = r.choice(["a", "b", "n - 1", "0", "j", "3", "a + j", "n", "-1"])
        return f"{word}({left}) {r.choice(['<', '<=', '>', '>=', '==', '!=', '==', '!='])} {word}({right})"

    def _row(self) -> tuple[str, str]:
        r, c = self.r, self._compare()
        if r.random() < 0.4:
            c = f"({c}) {r.choice(['and', 'or'])} ({self._compare()})"
        k = [f"{r.uniform(-0.9, 0.9):.2f}" for _ in range(4)]
        one, other = f"{k[0]} * h + {k[1]} * x[i]", f"{k[2]} * h * x[i] + {k[3]}"
        stored = r.choice([f"h = PICK({c}, {one}, {other})", f"h = {k[0]} * h + x[PICK({c}, n - 1, L(i))] * x[i]"])
        match r.randrange(4):
            case 0:
                return f"if ({c}) continue;", f"if {c}: continue"
            case 1:
                return f"{stored};", stored
            case 2:
                return f"if ({c}) h = {one};", f"if {c}: h = {one}"
            case _:
                first, then = f"y[i] = {one}", f"y[i] = y[i] * x[i] + {k[3]} * h"
                return f"{first}; if ({c}) {then}; h = y[i];", f"{first}\n      if {c}: {then}\n      h = y[i]"


def wrong(seeds: range) -> list[str]:
    """What is wrong with the kernels of some seeds, a line each."""
    kernels = {seed: Conditions(seed) for seed in seeds}
    library = irgrad.load(HEAD + MACROS + "\n".join(one.c for one in kernels.values()), language="c")
    found = []
    for seed, one in kernels.items():
        scope: dict[str, Any] = dict(NAMES)
        exec(one.python, scope)
        kernel = library.kernel(f"f{seed}", SIGNATURE)
        reverse, rng = irgrad.value_and_grad(kernel, wrt=["x"]), np.random.default_rng(seed)
        for n, a, b in SIZES:
            x, v = rng.normal(size=n), rng.normal(size=n)
            given = {"x": x, "y": np.zeros(n), "a": a, "b": b}
            want = scope["f"](list(x + 1e-30j * v), [0] * n, n, a, b)
            value, (gradient,) = reverse(**given)
            _, (tangents, _) = irgrad.jvp(kernel, tuple(given.values()), (v, np.zeros(n), None, None))
            slope = want.imag * 1e30
            rows = {"value": (value, want.real), "vjp": (gradient @ v, slope), "jvp": (tangents, slope)}
            for name, (got, right) in rows.items():
                if not np.isclose(got, right, rtol=1e-9, atol=1e-9):
                    found.append(f"{seed} n={n} a={a} b={b}: {name} {got}, not {right}")
    return found


@pytest.mark.parametrize("first", [0, 8])
def test_random_conditions(first: int) -> None:
    assert not wrong(range(first, first + 8))


@pytest.mark.long
def test_more_random_conditions() -> None:
    assert not wrong(range(100, 160))
