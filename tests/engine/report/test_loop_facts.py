"""Loops and the tape: what is predicted against what a run uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from explained import SIGNATURES, SOURCE, kernel, line, values

from irgrad.engine import explain, grad, vjp
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.report.explain import Explanation
from irgrad.engine.report.facts import LoopFacts
from irgrad.interop.loaders import load


def _explained(name: str, derivative: str = "grad", wrt: Any = "x") -> Explanation:
    return explain(kernel(name), derivative, wrt, lanes=False)


def _loop(found: Explanation, text: str) -> LoopFacts:
    return next(loop for loop in found.loops if loop.place.line == line(text))


def _fresh(name: str) -> Kernel:
    """A kernel whose peak is that of the calls of one test."""
    return load(SOURCE).kernel(name, SIGNATURES[name])


def test_each_loop_has_its_class_and_the_reason() -> None:
    source = """void steps(double *u, const double *w, long n, long t) {
    for (long k = 0; k < t; k++)
        for (long i = 0; i < n; i++)
            u[i] = u[i] * w[i] + 1;
}
"""
    found = explain(load(source).kernel("steps", "void(inout f64[n] u, f64[n] w, i64 n, i64 t)"), "vjp", lanes=False)
    outer, inner = found.loops
    assert (outer.kind, inner.kind, inner.carries) == ("time steps", "independent", "independent")
    assert outer.carries.startswith("time steps: line 4, ") and outer.carries in str(found)


PLACED = """
void f(const double *b, const long *at, double *o, long n) {
    PROMISE
    for (long i = 0; i < n; i++) o[at[i]] = b[i] * b[i];
}
void g(double *o, long n) { for (long i = 1; i < n; i++) o[i] = o[i] * o[i - 1]; }
struct both { double *a, *b; };
void h(struct both *p, long n) { for (long i = 0; i < n; i++) p->a[i] = p->b[i] * p->b[i]; }
"""


def test_what_stands_in_the_way_and_how_to_say_that_it_does_not() -> None:
    simd = "`#pragma omp simd` (with -fopenmp-simd) says that iterations are independent"

    def said(name: str, signature: str, promise: str = "") -> str:
        library = load(PLACED.replace("PROMISE", promise), flags=["-fopenmp-simd"])
        return next(iter(explain(library.kernel(name, signature), lanes=False).loops)).carries

    placed = "void(f64[n] b, i64[n] at, inout f64[n] o, i64 n)"
    assert said("f", placed).endswith(f"move differently, or in no way that is known; {simd}")
    assert said("f", placed, "#pragma omp simd") == "independent"
    assert "#pragma" not in said("g", "void(inout f64[n] o, i64 n)")


@pytest.mark.parametrize(
    ("name", "arguments", "sizes"),
    [
        ("nested", (values(10), values(7)), {"n": 10, "m": 7}),
        ("nested", (values(3), values(1)), {"n": 3, "m": 1}),
        ("triangle", (values(9),), {"n": 9}),
        ("triangle", (values(1),), {"n": 1}),
        ("sometimes", (values(21), 1), {"n": 21, "often": 1}),
        ("every_third", (values(20),), {"n": 20}),
        ("every_third", (values(21),), {"n": 21}),
        ("pairs", (values(13),), {"n": 13}),
        ("singles", (values(11, np.float32),), {"n": 11}),
    ],
)
def test_the_tape_takes_as_many_bytes_as_predicted(
    name: str, arguments: tuple[Any, ...], sizes: dict[str, int]
) -> None:
    fresh = _fresh(name)
    gradient = grad(fresh, "x")
    gradient(*arguments)
    assert explain(fresh, "grad", "x", lanes=False).tape_bytes(sizes) == gradient.tape_bytes > 0


def test_the_tape_of_a_vjp() -> None:
    fresh = _fresh("heat")
    out, pullback = vjp(fresh, values(12), values(12), 5)
    pullback(tuple(map(np.ones_like, out)))
    program = fresh.primal.pullback([n for n, slot in enumerate(fresh.primal.slots) if slot.differentiable])
    assert explain(fresh, lanes=False).tape_bytes(n=12, steps=5) == program.tape_bytes > 0


def test_shadows_of_memory_of_its_own_come_on_top() -> None:
    fresh = _fresh("swapped")
    gradient = grad(fresh, "x")
    gradient(values(30), 12)
    found = explain(fresh, "grad", "x", lanes=False)
    predicted = found.tape_bytes(n=30, steps=12)
    assert predicted is not None
    assert gradient.tape_bytes - predicted == 2 * (30 * 8 + 32)  # each with a note for its release
    own = found.functions[0].own_memory
    assert [place.line for place in own] == [line("malloc(n * 8)")] * 2
    assert f"the shadows of memory that the function allocates (lines {own[0].line})" in str(found)


def test_nothing_is_kept_behind_a_branch_that_is_not_taken() -> None:
    fresh = _fresh("sometimes")
    gradient = grad(fresh, "x")
    gradient(values(21), 0)
    found = explain(fresh, "grad", "x", lanes=False)
    assert found.total == "at most 8*n bytes"
    assert gradient.tape_bytes == 0 < (found.tape_bytes(n=21, often=0) or 0)


def test_formulas_are_those_of_the_source() -> None:
    found = _explained("nested")
    outer, inner = _loop(found, "for (long i = 0; i < n; i++) {"), _loop(found, "for (long j = 0; j < m; j++)")
    assert (outer.trips, inner.trips) == ("n", "m")
    assert (outer.depth, inner.depth, inner.parent) == (1, 2, outer.number)
    assert outer.last_line == line("return total") - 1
    assert (inner.bytes, inner.total) == (8, "8*m*n bytes")
    assert found.total == "8*m*n + 8*n bytes"


def test_a_count_that_depends_on_the_loop_around_it() -> None:
    found = _explained("triangle")
    around, inside = found.loops
    assert inside.trips == f"i{around.place.line}"
    assert inside.total == "4*n^2 - 4*n bytes"
    assert around.bytes == 8  # the address of the array of each iteration
    assert around.kept[0].what == "address"


def test_a_loop_that_only_the_run_counts() -> None:
    found = _explained("root")
    (loop,) = found.loops
    assert loop.place.line == line("while (fabs")
    assert loop.trips == loop.total == "not known before it runs"
    assert loop.bytes == 16  # a number and the link to the record before
    assert loop.kept[0].where == "record"
    assert found.tape_bytes(n=2) is None
    fresh = _fresh("root")
    gradient = grad(fresh, "x")
    gradient(values(2))
    assert gradient.tape_bytes % loop.bytes == 0 < gradient.tape_bytes


def test_a_stencil_keeps_nothing() -> None:
    found = _explained("stencil", "vjp", None)
    assert [loop.trips for loop in found.loops] == ["n - 2", "m - 2"]
    assert found.total == "0"
    assert not any(loop.kept for loop in found.loops)
    assert {value.how for value in found.loops[1].recalled if value.opcode == "load"} == {"reloaded"}


def test_other_steps_and_pointers_are_counted() -> None:
    assert _explained("every_third").loops[0].trips == "ceil(n / 3)"
    assert _explained("pairs").loops[0].trips == "n"
    assert _explained("singles").loops[0].trips == "n"


def test_what_is_recomputed_is_not_on_the_tape() -> None:
    for name, wrt in (("nested", "x"), ("nested", ("x", "w")), ("heat", None), ("triangle", "x"), ("swapped", "x")):
        found = explain(kernel(name), "vjp", wrt, lanes=False)
        for loop in found.loops:
            kept = {(value.name, value.opcode) for value in loop.kept if value.what == "value"}
            assert kept.isdisjoint((value.name, value.opcode) for value in loop.recalled)
    product = next(value for value in explain(kernel("nested"), lanes=False).recalled if value.opcode == "fmul")
    assert product.how == "recomputed"
    assert product.place.line == line("s = sin(s * w[j])")
    assert product.reader.startswith("sin")


def test_a_function_that_is_called_has_its_own() -> None:
    found = _explained("outer")
    outer, inner = found.functions
    assert (outer.root, inner.root, inner.name) == (True, False, "inner")
    assert inner.place.line == line("double inner(")
    assert inner.loops[0].trips == "n"
    assert inner.bytes > 0
    assert found.sizes is None
    assert "functions that are called keep some for each call" in str(found)


def test_forward_mode_keeps_nothing() -> None:
    found = _explained("nested", "jvp", None)
    assert [loop.trips for loop in found.loops] == ["n", "m"]
    assert found.kept == found.recalled == ()
    assert found.tape_bytes() == 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"checkpoint": {3: 50}}, "each 50 iterations"),
        ({"checkpoint": {3: "binomial:8"}}, "8 at once, placed by binomial checkpointing"),
        ({"tape_memory": "1MB"}, "as many as fit 524,288 bytes, and a tape of 524,288"),
    ],
)
def test_loops_that_keep_states(said: dict[str, Any], words: str) -> None:
    source = """
    void f(double *u, long n, long steps) {
        for (long t = 0; t < steps; t++)
            for (long i = 1; i < n; i++) u[i] *= u[i - 1] * u[i];
    }"""
    made = load(source).kernel("f", "void(inout f64[n] u, i64 n, i64 steps)", **said)
    text = str(explain(made, "vjp", lanes=False))
    assert f"loop at line 3: states in place of a tape, {words}: " in text
    assert "1 piece of memory" in text
