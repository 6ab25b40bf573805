"""What bounds the iterations of loops as people spell them."""

from __future__ import annotations

import pytest
from nests import analysed

from irgrad.engine.analyses.evolution.ceilings import Ceilings

BLOCKS = """
void f(double *x, double *y, LONG *size) {
    LONG n = *size;
    for (LONG b = 0; b < n; b += 32)
        for (LONG i = b; i < (b + 32 < n ? b + 32 : n); i++) y[i] = x[i] * x[i];
}"""
SQUARE = """
void f(double *x, double *y, LONG *size) {
    LONG n = *size;
    for (LONG i = 0; i < n; i++)
        for (LONG j = 0; j < n; j++) y[i * n + j] = x[j * n + i];
}"""
TRIANGLE = """
void f(double *x, double *y, LONG *size) {
    LONG n = *size;
    for (LONG i = 0; i < n; i++)
        for (LONG j = i + 1; j < n; j++) y[i * n + j] = x[j * n + i];
}"""
PAIRS = """
void f(double *x, double *y, LONG *size) {
    LONG n = *size;
    for (LONG i = 0; i < n; i++)
        for (LONG j = 0; j < n; j += 2) y[i * n + j] = x[j * n + i];
}"""
SHIFTED = """
void f(double *x, double *y, LONG *size) {
    LONG n = *size;
    for (LONG i = 0; i < n; i++)
        for (LONG j = 0; j <= n; j++) y[i * n + j] = x[j];
}"""
TYPES = ("long", "unsigned long")  # others are widened before loops are looked at


@pytest.mark.parametrize("kind", TYPES)
def test_a_block_ends_where_the_least_of_two_numbers_says(kind: str) -> None:
    dependence, loops = analysed(BLOCKS.replace("LONG", kind))
    ceilings = Ceilings(dependence.induction).of(loops[1])
    assert any(ceiling.form.is_const and ceiling.form.const == 31 for ceiling in ceilings)
    assert all(ceiling.factor == 1 for ceiling in ceilings)


@pytest.mark.parametrize("kind", TYPES)
def test_a_quotient_bounds_a_multiple_of_the_iteration(kind: str) -> None:
    dependence, loops = analysed(PAIRS.replace("LONG", kind))
    (ceiling,) = Ceilings(dependence.induction).of(loops[1])
    assert (ceiling.factor, ceiling.form.const, list(ceiling.form.terms.values())) == (2, -1, [1])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("source", [BLOCKS, SQUARE, TRIANGLE, PAIRS])
def test_rows_and_blocks_are_apart(source: str, kind: str) -> None:
    """The bound of inner loops is known by comparisons in front of the outer ones."""
    dependence, loops = analysed(source.replace("LONG", kind))
    assert not [relation for loop in loops for *_, relation in dependence.pairs(loop)]


@pytest.mark.parametrize("kind", TYPES)
def test_a_row_that_reaches_into_the_next_one_is_not(kind: str) -> None:
    dependence, loops = analysed(SHIFTED.replace("LONG", kind))
    assert [relation.carried for *_, relation in dependence.pairs(loops[0])]
