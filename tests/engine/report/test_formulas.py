"""Formulas: arithmetic, text, evaluation, sums."""

from __future__ import annotations

import itertools

import pytest

from irgrad.engine.report.formulas import Apply, Formula, Iteration, Symbol, apply, constant, of_atom, sole, summed

N, M = of_atom(Symbol("n")), of_atom(Symbol("m"))
K = of_atom(Iteration(0, "i5"))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (constant(0), "0"),
        (constant(-3), "-3"),
        (N, "n"),
        (N * M * 8 + N * 8, "8*m*n + 8*n"),
        (N - 2, "n - 2"),
        (N * N * N + 1 - N, "n^3 - n + 1"),
        (N * -1, "-n"),
        (N - N, "0"),
        (apply("max", N, constant(3)), "max(n, 3)"),
        (apply("//", N - 1, constant(4)) * 8, "8*((n - 1) // 4)"),
        (apply("ceil", N + 1, constant(3)), "ceil((n + 1) / 3)"),
    ],
)
def test_text(formula: Formula, text: str) -> None:
    assert str(formula) == text


def test_a_number_is_known() -> None:
    assert constant(7).const == 7
    assert (N - N).const == 0
    assert N.const is None
    assert (N + 1).const is None


def test_functions_fold() -> None:
    assert apply("max", N + 1, N) == N + 1
    assert apply("min", N + 1, N) == N
    assert apply("//", N * 8, constant(8)) == N
    assert apply("//", constant(7), constant(2)) == constant(3)
    assert apply("ceil", constant(7), constant(2)) == constant(4)


def test_names_and_iterations() -> None:
    formula = apply("max", N * K, M) * 2
    assert formula.names() == ["m", "n"]
    assert formula.iterations() == {0}
    assert (N + M).iterations() == set()


def test_numbers() -> None:
    formula = apply("ceil", N, constant(3)) * M - apply("//", M, N) + K
    for n, m, k in itertools.product((1, 5, 6), (0, 7), (0, 2)):
        assert formula.evaluate({"n": n, "m": m}, {0: k}) == -(-n // 3) * m - m // n + k
    with pytest.raises(KeyError, match="m"):
        formula.evaluate({"n": 1}, {0: 0})
    assert apply("//", N, M).evaluate({"n": 1, "m": 0}) == 0  # means nothing there


@pytest.mark.parametrize("power", range(4))
def test_sums_over_iterations(power: int) -> None:
    body = N
    for _ in range(power):
        body = body * K
    total = summed(body, 0, M)
    assert total is not None
    assert not total.iterations()
    for m in range(6):
        assert total.evaluate({"n": 3, "m": m}) == sum(3 * k**power for k in range(m))


def test_what_has_no_closed_form() -> None:
    assert summed(apply("max", K, N), 0, M) is None
    assert summed(K * K * K * K, 0, M) is None


def test_fractions_are_written_over_one_number() -> None:
    assert str(summed(K, 0, N)) == "(n^2 - n)/2"


def test_a_function_and_a_number() -> None:
    found = sole(apply("ceil", N, constant(3)) + 2)
    assert found is not None
    assert isinstance(found[0], Apply)
    assert (str(found[0]), found[1]) == ("ceil(n / 3)", 2)
    assert sole(N + 2) is sole(constant(2)) is sole(apply("ceil", N, constant(3)) * 2) is None
