"""What is computed again: by cost, by what was overwritten, by where it was defined."""

from __future__ import annotations

import re

import numpy as np
import pytest
from handwritten.planned import facts_of, find, planned, rules_of

from irgrad import engine
from irgrad.engine.differentiate.tape.recomputation import NEVER
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.report.explain import explain
from irgrad.interop.loaders import load
from irgrad.rules.expressions.costs import GPU

LOOP = """
void f(double *restrict x, double *restrict w, long *n, double *o) {
    double s = 1;
    for (long i = 0; i < *n; i++) { double u = %s; s *= u * u; }
    *o = s;
}"""


@pytest.mark.parametrize(("term", "opcode", "computed"), [
    ("x[i] * w[i] + 2", "llvm.fmuladd", True),
    ("x[i] / w[i] / (x[i] + 1)", "fdiv", True),
    ("sin(x[i])", "llvm.sin", True),
    ("sin(cos(x[i]))", "llvm.sin", False),  # two calls cost more than eight bytes
    ("sin(x[i]) * sin(x[i]) + sin(x[i])", "llvm.fmuladd", True),  # one call, of which three parts are made
    ("s + w[i]", "fadd", False),  # the sum is not there any more
])  # fmt: skip
def test_cheap_values_are_computed_again(term: str, opcode: str, computed: bool) -> None:
    facts = facts_of(LOOP % term, "dccd")
    rules = rules_of(facts)
    value = find(facts, opcode)
    assert facts.level(value) is not None
    assert rules.computes(value) == computed
    assert (rules.cost(value) < NEVER) == computed


@pytest.mark.parametrize(("term", "opcode", "computed", "missing"), [
    ("sin(cos(x[i]))", "llvm.sin", True, 0),  # of values that are there: two calls cost less than eight bytes
    ("sin(s)", "llvm.sin", False, 1),  # of a value that has to be saved for it
])  # fmt: skip
def test_a_dear_tape_has_calls_made_again(term: str, opcode: str, computed: bool, missing: int) -> None:
    """On a device 8 bytes of tape cost as much as six calls."""
    facts = facts_of(LOOP % term, "dccd", costs=GPU)
    rules = rules_of(facts)
    last = find(facts, opcode, -1)
    assert rules.computes(last) == computed
    assert len(rules.missing(last, set()) or ()) == missing
    cheap = rules_of(facts_of(LOOP % term, "dccd"))
    value = find(cheap.facts, opcode, -1)
    assert not cheap.computes(value) and cheap.missing(value, set()) is None


def test_memory_that_is_overwritten_is_not_read_again() -> None:
    source = "void f(double *x, double *o) { for (long i = 0; i < 9; i++) { o[i] = sin(x[i] * x[i]); %s } }"
    for change, computed in (("", True), ("x[i] = 1;", False)):
        facts = facts_of((source % change).replace("double *x", "double *restrict x"), "dd")
        assert rules_of(facts).computes(find(facts, "load")) == computed


def test_a_counter_follows_from_the_iteration() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0, k = 3; i < *n; i++, k += 7) s += x[i] * (double)(i * k);
        *o = s;
    }"""
    facts = facts_of(source, "dcd")
    rules = rules_of(facts)
    counters = [p for loop in facts.loops.all for p in loop.header.phis if p.type.is_int]
    assert counters
    assert all(rules.computes(p) and rules.cost(p) <= 4 for p in counters)
    assert all(len(rules.parts(p)) == 2 for p in counters)


def test_a_choice_makes_expensive_values_computed() -> None:
    facts = facts_of(LOOP % "s + w[i]", "dccd")
    rules = rules_of(facts)
    value = find(facts, "fadd")
    chosen = rules.with_choice({}, frozenset((value,)))
    assert chosen.computes(value)
    assert chosen.cost(value) == NEVER
    assert rules.missing(value, set()) == [p for p in value.operands if getattr(p, "opcode", "") == "phi"]


def test_shadows_follow_address_arithmetic() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double *rows[8], s = 0;
        for (long k = 0; k < 8; k++) rows[k] = x + *n * k;
        for (long i = 0; i < *n; i++) { double *p = rows[i * i & 7]; s += p[i + 2] * p[i + 2]; %s }
        *o = s;
    }"""
    for change, kept in (("", False), ("rows[i * i & 7] = x + i;", True)):
        facts = facts_of(source % change, "dcd")
        rules = rules_of(facts)
        pointers = [i for b in facts.cfg.rpo for i in b.instructions if i.opcode == "load" and i.type.is_ptr]
        assert len(pointers) == 1
        assert (rules.shadow_parts(pointers[0]) is None) == kept
        moved = find(facts, "getelementptr", -1)
        parts = rules.shadow_parts(moved)
        assert parts is not None
        assert parts[0] == moved.operands[:1]


def test_trip_counts_are_asked_again_where_they_can_be() -> None:
    source = """
    void f(double *restrict x, long *restrict n, double *restrict o) {
        double s = x[0];
        for (long i = 0; i < *n; i++) s = sin(s * x[1]);
        *o = s; %s
    }"""
    for change, computed in (("", True), ("*n = 0;", False)):
        facts = facts_of(source % change, "dcd")
        assert facts.loops.all
        # the count itself is direct in a combined derivative: it is the load that may be gone
        load = next(i for b in facts.cfg.rpo for i in b.instructions if i.opcode == "load" and i.type.is_int)
        assert rules_of(facts).computes_trip(facts.loops.all[0])
        assert facts.clobber.clobbered(load) != computed


def test_pointers_in_front_of_loops_are_not_read_again_in_them() -> None:
    """Members of structs are read once, in front of the nest, not in the innermost loop of the reverse sweep, where no
    pass knows any more that gradients do not overwrite them."""
    text = lower(load("""
void __enzyme_autodiff(void *, ...);
struct matrix { double *data; long rows, cols; };
double f(struct matrix *a) {
    if (a->rows <= 0) return 0;
    double s = 0, *data = a->data;
    for (long i = 0; i < a->rows; i++)
        for (long j = 0; j < a->cols; j++) s += data[i * a->cols + j] * data[i * a->cols + j];
    return s;
}
void g(struct matrix *a, struct matrix *d) { __enzyme_autodiff((void *)f, a, d); }
""").text)  # fmt: skip
    primal, _, reverse = text.split("@irgrad.root.1.vjp.", 1)[1].split("\n}", 1)[0].partition("\nr.")
    assert re.search(r"load ptr, ptr %[av]0", primal) and not re.search(r"load ptr, ptr %[av]0", reverse)


def _kept_in_loops(body: str) -> list[str]:
    source = f"double f(double *u, const double *w, double a, long n, long m) {{ double s = 1; {body} return s; }}"
    kernel = load(source, flags=["-ffp-contract=on"]).kernel("f", "f64(inout f64[n] u, f64[n] w, f64 a, i64 n, i64 m)")
    return [v.opcode for fn in explain(kernel, lanes=False).functions for loop in fn.loops for v in loop.kept]


def test_fused_operations_are_made_again_in_nests() -> None:
    """From a number that is saved anyway, where loops stand around, and not where a loop hands on what they are made
    of."""
    loop = "for (long i = 0; i < n; i++) { double p = u[i] * u[i] + w[i] * a; u[i] = u[i] + a * p * p; }"
    chain = "for (long i = 0; i < n; i++) { double p = s * u[i] + w[i] * a; s = p * p * a + s; }"
    assert _kept_in_loops(f"for (long t = 0; t < m; t++) {loop}") == ["load"]
    assert sorted(_kept_in_loops(loop)) == ["fmuladd", "load"]
    assert "fmuladd" in _kept_in_loops(f"for (long t = 0; t < m; t++) {chain}")


def test_a_sign_that_alternates_follows_from_the_number_of_the_iteration() -> None:
    """In a loop inside of another one too, whose start may differ; a sign that changes by the data is kept."""
    source = """
    double f(const double *x, const double *w, long n, long m) {
        double s = 1;
        for (long i = 0; i < n; i++) {
            double sign = w[i];
            for (long j = 0; j < m; j++) { s += sign * sin(x[j]) * s * 0.1; %s; }
        }
        return s;
    }"""
    rng = np.random.default_rng(2)
    x, w = rng.uniform(0.2, 1, 5), rng.uniform(-1, 1, 3)
    for step, bytes_kept in (("sign = -sign", 8), ("if (x[j] < 0.6) sign = -sign", 16)):
        kernel = load("#include <math.h>" + source % step).kernel("f", "f64(f64[m] x, f64[n] w, i64 n, i64 m)")
        told = str(explain(kernel, "grad", wrt=("x",)))
        assert f"tape of a call: {bytes_kept}*m*n bytes" in told
        found = engine.grad(kernel, wrt=("x", "w"))(x, w)
        for n, gradient in enumerate(found):
            for k in range(len(gradient)):
                ends = []
                for h in (1e-5, -1e-5):
                    moved = [x.copy(), w.copy()]
                    moved[n][k] += h
                    ends.append(kernel(*moved))
                assert np.isclose((ends[0] - ends[1]) / 2e-5, gradient[k], rtol=1e-7)


NEST = """
void f(double *restrict x, double *restrict w, long *n, long *restrict at, double *o) {
    double s = 0;
    for (long i = 0; i < *n; i++) %s
    *o = s;
}"""


@pytest.mark.parametrize(("body", "kept"), [
    ("s += exp(x[i] - w[0]);", True),  # 8 bytes read again for 8 bytes that are not kept
    ("s += exp(x[i] * x[i]);", False),  # read anyway, for the adjoint of the product
    ("for (long j = 0; j < *n; j++) s += exp(x[j] - w[0]);", False),  # a row that the cache holds
    ("for (long j = 0; j < *n; j++) s += exp(x[i] + j);", False),  # read once for an inner loop
    ("for (long j = 0; j < *n; j++) s += exp(x[i * *n + j] - w[0]);", True),
    ("s += exp(x[at[i]] - w[0]);", False),  # a table
])  # fmt: skip
def test_a_function_of_what_would_only_be_read_for_it_is_kept(body: str, kept: bool) -> None:
    """A function costs less than a number on the tape, but not with reading memory that no cache holds."""
    found = planned(NEST % body, "dcccd")
    value = find(found.facts, "llvm.exp")
    assert (value in found.saved) == kept
