"""Derivatives of functions that others call: an augmented function, its tape, and a reverse function, made once."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, asked, gradient, make, module_of

from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.derived_functions import split_functions
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Function
from irgrad.engine.pipeline.derivatives import analysed
from irgrad.engine.pipeline.stages import NORMALISE

CALLS = """
NOINLINE static double g(double *x, double a) { return x[0] * a; }
void f(double *x, double *o) { *o = g(x, x[1]) + g(x + 1, x[0]); }"""


def _unit() -> Unit:
    """The analysed program `CALLS`, of which nothing was derived."""
    module = module_of(CALLS, "f")
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    return analysed(module, module.functions["f"], asked("f", "reverse", ["dup", "dup"]))


def test_they_are_made_once_and_filled_later() -> None:
    unit, filled = _unit(), []

    def reverse(unit: Unit, fn: Function, abi: Abi, primal: Function, reverse: Function) -> None:
        filled.append((unit, fn, abi, primal, reverse))

    unit.emit_with(reverse=reverse)
    g = unit.module.functions["g"]
    halves = split_functions(unit, g)
    assert split_functions(unit, g) == halves
    assert len(unit.queue) == 1 and not filled
    assert all(half.is_declaration and unit.module.functions[half.name or ""] is half for half in halves)
    unit.queue.pop()()
    assert filled == [(unit, g, unit.abis[g], *halves)]
    assert split_functions(unit, g) == halves and not unit.queue


def test_their_types_follow_the_convention() -> None:
    unit = _unit()
    augmented, reverse = split_functions(unit, unit.module.functions["g"])
    assert augmented.name == "irgrad.f.r.aug.g" and reverse.name == "irgrad.f.r.rev.g"
    assert str(augmented.ftype) == "{ double, ptr } (ptr, ptr, double, ptr)"  # value and tape; x, x', a, the arena
    assert str(reverse.ftype) == "{ double } (ptr, ptr, double, double, ptr)"  # a'; x, x', a, the cotangent, the tape


def test_without_an_emitter_nothing_is_filled() -> None:
    unit = _unit()
    unit.reverse = None
    split_functions(unit, unit.module.functions["g"])
    with pytest.raises(AssertionError, match="no emitter of reverse derivatives"):
        unit.queue.pop()()


@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_recursion(n: int) -> None:
    """Each call has a tape of its own; the source overwrites what it read."""
    source = """
    NOINLINE static double walk(double *x, long n, double a) {
        if (n <= 0) return a * a;
        double before = x[n];
        x[n] = sin(a * before);
        double r = walk(x, n - 1, a + x[n]);
        return r * before + x[n];
    }
    void f(double *x, long *n, double *o) { *o = walk(x, *n, x[0]); }"""
    x = np.linspace(0.4, 1.3, 8)

    def f(z: np.ndarray) -> complex:
        z = z.astype(complex)

        def walk(k: int, a: complex) -> complex:
            if k <= 0:
                return a * a
            before = z[k]
            z[k] = np.sin(a * before)
            r = walk(k - 1, a + z[k])
            return complex(r * before + z[k])

        return walk(n, z[0])

    (dx, _), made = gradient(source, "f", "dcd", x, np.array([n]), OUT)
    want = [f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(8)]
    np.testing.assert_allclose(dx, want, rtol=1e-12, atol=1e-14)
    assert sum(".aug.walk" in name for name in made.module.functions) == 1
    assert sum(".rev.walk" in name for name in made.module.functions) == 1


def test_mutual_recursion() -> None:
    source = """
    static double odd(double x, long n);
    NOINLINE static double even(double x, long n) { return n == 0 ? x : cos(x) * odd(x * 0.9, n - 1); }
    NOINLINE static double odd(double x, long n) { return n == 0 ? x * x : x + even(sin(x), n - 1); }
    void f(double *x, long *n, double *o) { *o = even(*x, *n); }"""

    def even(x: complex, n: int) -> complex:
        return x if n == 0 else complex(np.cos(x)) * odd(x * 0.9, n - 1)

    def odd(x: complex, n: int) -> complex:
        return x * x if n == 0 else x + even(complex(np.sin(x)), n - 1)

    for n in range(6):
        (dx, _), _made = gradient(source, "f", "dcd", np.array([0.8]), np.array([n]), OUT)
        np.testing.assert_allclose(dx[0], even(0.8 + 1e-30j, n).imag / 1e-30, rtol=1e-13)


def test_two_calls_share_the_functions_but_not_the_tape() -> None:
    source = """
    NOINLINE static double g(double *x) { double t = x[0]; x[0] = exp(t) * x[1]; return t * t; }
    void f(double *x, double *o) { *o = g(x) * g(x + 2) + g(x); }"""
    x = np.array([0.3, 0.5, -0.2, 0.9])

    def f(z: np.ndarray) -> complex:
        first = z[0] ** 2
        later = np.exp(z[0]) * z[1]
        return complex(first * z[2] ** 2 + later**2)

    (dx, _), made = gradient(source, "f", "dd", x, OUT)
    np.testing.assert_allclose(dx, [f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(4)], rtol=1e-13, atol=1e-15)
    assert sum(".aug.g" in name for name in made.module.functions) == 1


def test_a_callee_that_saves_nothing_has_no_tape() -> None:
    source = """
    NOINLINE static double g(double x, double y) { return x + 3 * y; }
    void f(double *x, double *o) { *o = g(x[0], x[1]) + g(x[1], x[2]); }"""
    (dx, _), made = gradient(source, "f", "dd", np.arange(3.0), OUT)
    assert dx.tolist() == [1, 4, 3]
    assert made.tape_bytes() == 0


def test_a_callee_reached_directly_and_by_pointer_has_one_convention() -> None:
    source = """
    NOINLINE static double square(double x) { return x * x; }
    NOINLINE static double cube(double x) { return x * x * x; }
    static double (*const table[2])(double) = {square, cube};
    void f(double *x, int *k, double *o) { *o = table[*k](x[0]) * square(x[1]); }"""
    for k, (value, slope) in enumerate([(1.5**2, 3.0), (1.5**3, 3 * 1.5**2)]):
        (dx, _), _made = gradient(source, "f", "dcd", np.array([1.5, 0.4]), np.array([k], np.int32), OUT)
        np.testing.assert_allclose(dx, [slope * 0.16, value * 0.8], rtol=1e-15)


@pytest.mark.parametrize(("callee", "call", "words"), [
    ("double g(double x) { return sin(x) * x; }", "s += g(x[i]) * g(s);", [".vjp.g"]),
    ("void g(double *x) { *x = sin(*x) * *x; }", "g(x + i); g(x + i); s += x[i];", [".aug.g", ".rev.g"])])  # fmt: skip
def test_derivatives_are_made_once_per_unit(callee: str, call: str, words: list[str]) -> None:
    """A callee that only gives a result has one function for both sweeps, one that changes memory has two halves."""
    source = f"""
    NOINLINE static {callee}
    void f(double *x, double *o) {{ double s = 0; for (int i = 0; i < 5; i++) {{ {call} }} *o = s; }}"""
    made = make(source, "f", "reverse", ["dup", "dup"])
    made_here = [n for n in made.module.functions if n.startswith("irgrad.f.r.")]
    assert len(made_here) == len(words) and all(any(word in n for n in made_here) for word in words)
