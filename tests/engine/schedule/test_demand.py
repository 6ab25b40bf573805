"""Iterations that only fill what nobody gathers are left out: in loops where that can be known, and in no others."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz.widths import compare
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain

import irgrad
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.schedule.demand import compute_on_demand

BEGIN = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
static inline double heavy(const double *x, long v, long m) {
    double s = 0;
    for (long j = 0; j < m; j++) s += x[v] * x[j] * (x[j] + 0.1 * v) + x[j] * x[j];
    return s;
}
"""
ARGUMENTS = "(const double *x, const int *index, double *y, long m, long n)"
SIGNATURE = "void(f64[m] x, i32[n] index, out f64[n] y, i64 m, i64 n)"
NEW = "double *t = malloc(4 * (m + 2) * sizeof *t);"
FILL = "for (long v = 0; v < m; v++) t[v] = heavy(x, v, m);"
GATHER = "for (long i = 0; i < n; i++) y[i] = t[index[i]] * x[0];"
ASKED = {
    "plain": f"{NEW} {FILL} {GATHER} free(t);",
    "shifted": f"{NEW} for (long v = 0; v < m; v++) t[v + 1] = heavy(x, v, m); "
    "for (long i = 0; i < n; i++) y[i] = t[index[i] + 1]; free(t);",
    "beyond": f"{NEW} t[m] = x[0]; t[0] = x[0]; for (long v = 1; v < m; v++) t[v] = heavy(x, v, m); "
    "for (long i = 0; i < n; i++) y[i] = t[index[i] + 1] + t[index[i]]; free(t);",
    "fields": f"{NEW} for (long v = 0; v < m; v++) {{ t[3 * v] = heavy(x, v, m); t[3 * v + 1] = 5; "
    "t[3 * v + 2] = t[3 * v] * x[v]; } "
    "for (long i = 0; i < n; i++) y[i] = t[3 * index[i]] + t[3 * index[i] + 2] * t[3 * index[i] + 1]; free(t);",
    "stack": f"double t[64]; {FILL} {GATHER}",
    "twice": f"{NEW} {FILL} {GATHER} for (long i = n - 1; i >= 0; i--) y[i] += t[index[n - 1 - i]] * x[1]; free(t);",
    "guarded": f"{NEW} {FILL} if (n > 3 && m > 2) {GATHER} else for (long i = 0; i < n; i++) y[i] = x[0]; free(t);",
    "computed": f"{NEW} {FILL} for (long i = 0; i < n; i++) y[i] = t[(index[i] + i) >> 4 & 1]; free(t);",
    "indirect": f"{NEW} {FILL} for (long i = 0; i < n; i++) y[i] = t[index[index[i] * i >> 11]]; free(t);",
    "cut": f"{NEW} {FILL} for (long i = 0; i < n; i++) y[i] = t[index[index[i] & (n > 1)]]; free(t);",
    "single": f"{NEW} {FILL} {GATHER} y[0] += t[2]; free(t);",
    "pair": f"{NEW} {FILL} {GATHER} double k[2]; memcpy(k, t, 16); y[0] += k[1] * x[0]; free(t);",
    "natural": f"{NEW} {FILL} for (long i = 0; i < n; i++) y[i] = t[((const unsigned *)index)[i]]; free(t);",
    "two": f"{NEW} double *u = malloc(m * sizeof *u); {FILL} {GATHER} "
    "for (long v = 0; v < m; v++) u[v] = heavy(x, m - 1 - v, m); "
    "for (long i = 0; i < n; i++) y[i] += u[index[n - 1 - i]]; free(t); free(u);",
}
LEFT = {
    "linear": f"{NEW} {FILL} {GATHER} for (long i = 0; i < n && i < m; i++) y[i] += t[i]; free(t);",
    "summed": f"{NEW} double s = 0; for (long v = 0; v < m; v++) {{ s += heavy(x, v, m); t[v] = s; }} "
    f"{GATHER} free(t);",
    "chained": f"{NEW} t[0] = 1; for (long v = 0; v < m; v++) t[v + 1] = t[v] * 0.1 + heavy(x, v, m); "
    f"{GATHER} free(t);",
    "neighbour": f"{NEW} memset(t, 0, m * sizeof *t); for (long v = 1; v < m; v++) {{ t[v - 1] += heavy(x, v, m); "
    f"t[v] = x[v] * x[v]; }} {GATHER} free(t);",
    "meeting": f"{NEW} for (long v = 0; v < m; v++) t[v / 2] = heavy(x, v, m); "
    "for (long i = 0; i < n; i++) y[i] = t[index[i] / 2]; free(t);",
    "counted": f"{NEW} double s = 0; for (long v = 0; v < m; v++) {{ t[v] = heavy(x, v, m); s = x[v] * t[v]; }} "
    f"{GATHER} y[0] = s; free(t);",
    "copied": f"{NEW} {FILL} {GATHER} double *k = malloc(m * sizeof *k); memcpy(k, t, m * sizeof *k); "
    "y[0] += k[1] * x[0]; free(t); free(k);",
    "left": f"{NEW} memset(t, 0, m * sizeof *t); for (long v = 0; v < m; v++) {{ t[v] = heavy(x, v, m); "
    f"if (t[v] > 1e9) break; }} {GATHER} free(t);",
    "repeated": f"{NEW} for (long r = 0; r < 1 + n % 3; r++) {{ {FILL} {GATHER} }} free(t);",
    "chosen": f"{NEW} {FILL} if (x[0] > 0.3) {GATHER} else for (long i = 0; i < n; i++) y[i] = x[0]; free(t);",
    "found": f"{NEW} int *k = malloc(n * sizeof *k); for (long i = 0; i < n; i++) k[i] = index[n - 1 - i]; {FILL} "
    "for (long i = 0; i < n; i++) y[i] = t[k[i]]; free(t); free(k);",
    "until": f"{NEW} {FILL} for (long i = 0; i < n; i++) {{ y[i] = x[0]; if (y[i] < 0) break; "
    "y[i] = t[index[i]]; } free(t);",
    "little": f"{NEW} for (long v = 0; v < m; v++) t[v] = x[v] * x[v]; {GATHER} free(t);",
}  # fmt: skip
FILLED = {"two": 2}
CHANGED = """
void changed(const double *x, int *index, double *y, long m, long n) {
    double *t = malloc(m * sizeof *t);
    for (long v = 0; v < m; v++) t[v] = heavy(x, v, m);
    for (long i = 0; i < n; i++) { y[i] = t[index[i]]; index[n - 1 - i] = index[i]; }
    free(t);
}
"""


@cache
def _kernel(name: str) -> Any:
    cases = {**ASKED, **LEFT}
    functions = [f"void {n}{ARGUMENTS} {{ {body} }}" for n, body in cases.items()]
    signature = SIGNATURE.replace("i32[n]", "inout i32[n]") if name == "changed" else SIGNATURE
    return irgrad.load(BEGIN + "\n".join(functions) + CHANGED).kernel(name, signature)


def _inputs(name: str, m: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(100 * m + n)
    index = rng.integers(0, max(m - 1 if name == "beyond" else m, 1), size=n).astype(np.int32)
    return {"x": rng.uniform(0.1, 0.9, m), "index": index, "m": m, "n": n}


def _module(name: str, derivative: str, width: int = 16) -> tuple[Module, str]:
    program = getattr(_kernel(name).primal, derivative)((0, 2), width)
    text, root = program.stage.text, program.stage.name
    return read(prepare(text, [root]), roots=[root]), root


@pytest.mark.parametrize(("m", "n"), [(12, 3), (40, 1), (9, 8), (9, 9), (5, 30), (2, 4), (1, 1)])
@pytest.mark.parametrize("name", [*ASKED, *LEFT, "changed"])
def test_the_same_derivatives(name: str, m: int, n: int) -> None:
    kernel, inputs = _kernel(name), _inputs(name, max(m, 3) if name in ("single", "twice", "copied", "pair") else m, n)
    assert not compare(kernel, inputs, ["x"], 16, "forward")
    if (m, n) == (12, 3) and name in ("plain", "stack", "guarded"):
        assert not compare(kernel, inputs, ["x"], 16, "reverse")


@pytest.mark.parametrize("derivative", ["jvp_only", "jvp"])
@pytest.mark.parametrize("name", ASKED)
def test_loops_that_ask(name: str, derivative: str) -> None:
    module, _ = _module(name, derivative)
    assert compute_on_demand(module) == FILLED.get(name, 1)


@pytest.mark.parametrize("derivative", ["jvp_only", "jvp"])
@pytest.mark.parametrize("name", [*LEFT, "changed"])
def test_loops_that_are_left_alone(name: str, derivative: str) -> None:
    assert compute_on_demand(_module(name, derivative)[0]) == 0


def _steps(module: Module, root: str, name: str, m: int, n: int) -> tuple[int, list[Any]]:
    """Instructions that the interpreter runs, whose memory has bounds, and the tangents of y."""
    inputs, machine = _inputs(name, m, n), Machine(module, FloatDomain())
    x, dx = inputs["x"], np.random.default_rng(1).uniform(-1, 1, 16 * m)
    doubles = [machine.array(ty.F64, list(map(float, a))) for a in (x, dx, np.zeros(n), np.zeros(16 * n))]
    index = machine.array(ty.I32, list(map(int, inputs["index"])))
    sizes = [machine.array(ty.I64, [k]) for k in (m, n)]
    machine.call(root, [doubles[0], doubles[1], index, doubles[2], doubles[3], *sizes])
    return machine.steps, machine.read(doubles[3], ty.F64, 16 * n)


@pytest.mark.parametrize("name", ["plain", "beyond", "fields", "twice", "guarded", "computed", "single"])
def test_fewer_instructions_run(name: str) -> None:
    """With few gathers most iterations are left out; as many gathers as iterations cost a constant and a bit."""
    before, root = _module(name, "jvp_only", 16)
    after, _ = _module(name, "jvp_only", 16)
    assert compute_on_demand(after) == 1
    for n, least, most in ((4, 0.1, 0.7), (1, 0.0, 1.2), (40, 0.99, 1.2)):
        steps, tangents = _steps(before, root, name, 16, n)
        fewer, same = _steps(after, root, name, 16, n)
        assert same == tangents
        assert least < fewer / steps < most
