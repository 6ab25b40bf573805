"""Running extrema as addresses: which loops have one, values to the bit, derivatives of the element that was chosen."""

from __future__ import annotations

import re

import numpy as np
import pytest
from handwritten.made import make, module_of

import irgrad
from irgrad.engine.analyses.memory.objects import OVERLAPS
from irgrad.engine.ir.model import Instruction
from irgrad.engine.normalise.extrema import address_extrema

STEPS = {
    "if": "if (x[i] > m) m = x[i];",
    "if, the last of ties": "if (x[i] >= m) m = x[i];",
    "the other way": "m = m < x[i] ? x[i] : m;",
    "continue": "if (x[i] <= m) continue; m = x[i];",
    "fmax": "m = fmax(m, x[i]);",
    "fmax, the other way": "m = fmax(x[i], m);",
}
KERNEL = """
void f(double *restrict x, double *restrict y, double *restrict n, double *restrict o) {{
    double m = {start};
    for (long i = {first}; i < (long)*n; i++) {{ {step} }}
    *o = m * m + y[0] * m;
}}"""
DATA = {
    "distinct": [3.0, -1.0, 7.0, 2.0, 5.0],
    "ties": [1.0, 4.0, 4.0, 2.0, 4.0],
    "the first": [9.0, 1.0, 2.0, 3.0, 4.0],
    "nan": [1.0, np.nan, 5.0, np.nan, 2.0],
    "all nan": [np.nan] * 5,
    "infinite": [-np.inf, 2.0, np.inf, 1.0, np.inf],
    "zeros": [-0.0, 0.0, -0.0, 0.0, -0.0],
}


def _count(body: str, restrict: str = "restrict") -> int:
    parameters = ", ".join(f"double *{restrict} {name}" for name in "xyno")
    module = module_of(f"void f({parameters}) {{ {body} }}", "f")
    if not restrict:
        for argument in module.functions["f"].args:
            argument.attrs = OVERLAPS
    return address_extrema(module, module.functions["f"])


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
@pytest.mark.parametrize(("start", "first"), [("-INFINITY", 0), ("x[0]", 1), ("y[0]", 0)])
def test_derivatives(step: str, start: str, first: int) -> None:
    """Against a walk through the chain in Python, which tells the element that each choice takes."""
    source = KERNEL.format(step=step, start=start, first=first)
    module = module_of(source, "f")
    assert address_extrema(module, module.functions["f"]) == 1
    reverse = make(source, "f", "reverse", ["dup", "dup", "const", "dup"])
    forward = make(source, "f", "forward", ["dup", "dup", "const", "dup"])
    for name, data in DATA.items():
        x, y, n = np.array(data), np.array([2.5]), np.array([5.0])
        chosen = _walk(step, x, float(y[0]), start, first)
        m = {"start": -np.inf, "y": y[0]}.get(str(chosen), x[chosen] if isinstance(chosen, int) else 0.0)
        dx, dy = np.zeros(5), np.array([m])
        if isinstance(chosen, int):
            dx[chosen] = 2 * m + y[0]
        elif chosen == "y":
            dy[0] += 2 * m + y[0]
        o, got_x, got_y, seed = np.zeros(1), np.zeros(5), np.zeros(1), np.ones(1)
        reverse(x, got_x, y, got_y, n, o, seed)
        with np.errstate(invalid="ignore"):
            assert np.allclose(o, m * m + y[0] * m, rtol=1e-15, equal_nan=True), name
        assert np.allclose(got_x, dx, equal_nan=True) and np.allclose(got_y, dy, equal_nan=True), name
        tangent, o = np.zeros(1), np.zeros(1)
        tx, ty = np.arange(1.0, 6.0), np.array([0.5])
        forward(x, tx, y, ty, n, o, tangent)
        if np.isfinite(m):
            assert np.allclose(tangent, np.dot(dx, tx) + dy[0] * ty[0]), name


@pytest.mark.parametrize("data", DATA.values(), ids=list(DATA))
def test_derivatives_of_a_minimum(data: list[float]) -> None:
    """The element is that of the largest of the negated ones."""
    source = KERNEL.format(step="m = fmin(m, x[i]);", start="x[0]", first=1)
    reverse = make(source, "f", "reverse", ["dup", "dup", "const", "dup"])
    x, y = -np.array(data), np.array([2.5])
    chosen = _walk(STEPS["fmax"], -x, 0.0, "x[0]", 1)
    assert isinstance(chosen, int)
    dx, got = np.zeros(5), np.zeros(5)
    dx[chosen] = 2 * x[chosen] + y[0]
    reverse(x, got, y, np.zeros(1), np.array([5.0]), np.zeros(1), np.ones(1))
    assert np.allclose(got, dx, equal_nan=True)


@pytest.mark.parametrize("step", [f"m = {f}({a});" for f in ("fmax", "fmin") for a in ("m, x[i]", "x[i], m")])
def test_values_are_those_of_the_function_to_the_bit(step: str) -> None:
    """Of two zeros and of what is no number as well."""
    source = KERNEL.format(step=step, start="x[0]", first=1).replace("m * m + y[0] * m", "m")
    reverse = make(source, "f", "reverse", ["dup", "dup", "const", "dup"])
    kernel = irgrad.load("#include <math.h>\n" + source).kernel("f", "void(f64[k] x, f64[1] y, f64[1] n, out f64[1] o)")
    for data in (*DATA.values(), [0.0, -0.0], [-0.0, 0.0], [np.nan, 1.0, 0.5]):
        for sign in (1.0, -1.0):
            x, y, n, o = sign * np.array(data), np.ones(1), np.array([float(len(data))]), np.zeros(1)
            reverse(x, np.zeros(len(data)), y, np.zeros(1), n, o, np.ones(1))
            assert o.tobytes() == np.asarray(kernel(x, y, n)).tobytes(), x


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
def test_choices_nearly_always_keep_what_they_have(step: str) -> None:
    """The extremum, its address and that of its shadow are one group of choices, which become one branch."""
    made = make(KERNEL.format(step=step, start="x[0]", first=1), "f", "reverse", ["dup", "dup", "const", "dup"])
    told = [i for i in made.function.instructions() if "prof" in i.metadata]
    assert len(told) == 3 and len({i.operands[0] for i in told}) == 1
    for choice in told:
        first, second = re.findall(r"i32 (\d+)", made.module.metadata[choice.metadata["prof"]])
        kept = choice.operands[1] if int(first) > int(second) else choice.operands[2]
        assert isinstance(kept, Instruction) and kept.opcode == "phi"


def _walk(step: str, x: np.ndarray, y: float, start: str, first: int) -> int | str:
    """The element that the chain ends with: its number, "start" for a constant, "y"."""
    chosen: int | str = {"x[0]": 0, "y[0]": "y"}.get(start, "start")
    m = {"x[0]": x[0], "y[0]": y}.get(start, -np.inf)
    for i in range(first, len(x)):
        v = x[i]
        if "fmax(m" in step:
            larger = np.fmax(m, v)
            take = bool(larger != m)
        elif "fmax(x" in step:
            take = bool(np.fmax(v, m) == v)
        else:
            take = v >= m if ">=" in step else not v <= m if "<=" in step else v > m
        if take:
            chosen, m = i, v
    return chosen


APPLIES = {
    "minimum": "double m = 1e9; for (long i = 0; i < *n; i++) m = fmin(m, x[i]); *o = m;",
    "rows": "double s = 0; for (long j = 0; j < *n; j++) { double m = x[9 * j]; "
            "for (long i = 1; i < *y; i++) if (x[9 * j + i] > m) m = x[9 * j + i]; s += m; } *o = s;",
    "early exit": "double m = -1; for (long i = 0; i < *n; i++) { if (x[i] > m) m = x[i]; if (m > 5) break; } *o = m;",
}
DOES_NOT = {
    "written before": "double m = -1; for (long i = 0; i < *n; i++) x[i] = y[i] * 2; "
                      "for (long i = 0; i < *n; i++) if (x[i] > m) m = x[i]; *o = m;",
    "written": "double m = -1; for (long i = 0; i < *n; i++) { if (x[i] > m) m = x[i]; x[i + 1] = 3; } *o = m;",
    "used on the way": "double m = -1, s = 0; for (long i = 0; i < *n; i++) { if (x[i] > m) m = x[i]; s += m * m; } "
                       "*o = m + s;",
    "computed": "double m = -1; for (long i = 0; i < *n; i++) { double v = x[i] * x[i]; if (v > m) m = v; } *o = m;",
    "a sum": "double m = -1; for (long i = 0; i < *n; i++) m += x[i]; *o = m;",
}  # fmt: skip


@pytest.mark.parametrize("body", APPLIES.values(), ids=list(APPLIES))
def test_loops_with_an_extremum(body: str) -> None:
    assert _count(body) == 1


@pytest.mark.parametrize("body", DOES_NOT.values(), ids=list(DOES_NOT))
def test_loops_without(body: str) -> None:
    assert _count(body) == 0


def test_memory_that_may_be_that_of_the_result() -> None:
    body = "double m = -1; for (long i = 0; i < *n; i++) { if (x[i] > m) m = x[i]; o[i] = m > 3; } *y = m;"
    assert _count(body) == 1
    assert _count(body, restrict="") == 0


def test_nothing_is_taped_and_no_loop_runs_backwards() -> None:
    source = "void f(double *restrict x, double *restrict n, double *restrict o) {{ {} *o = m * m; }}"
    chain = "double m = x[0]; for (long i = 1; i < (long)*n; i++) if (x[i] > m) m = x[i];"
    made = make(source.format(chain), "f", "reverse", ["dup", "const", "dup"])
    x = np.random.default_rng(1).normal(size=1000)
    dx, o = np.zeros(1000), np.zeros(1)
    made(x, dx, np.array([1000.0]), o, np.ones(1))
    assert dx[np.argmax(x)] == 2 * x.max() and np.count_nonzero(dx) == 1
    assert made.tape_bytes() == 0
