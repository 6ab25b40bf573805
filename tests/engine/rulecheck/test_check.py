"""`check_rule`: every row of the tables passes, damaged rows and broken promises are caught, kinks are kinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracle.math_functions import slope
from oracle.rule_checks import mutants, points_of, same_function
from oracle.rule_symbols import provide

import irgrad
from irgrad import check_rule
from irgrad.engine.rulecheck.check import RuleCheckFailed
from irgrad.rules import extern, inactive, layer, opcode, rows, rule
from irgrad.rules.definitions.definition import Key, Rule
from irgrad.rules.definitions.types import Activity, AoS, mode_type
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import Expr, to_text
from irgrad.rules.expressions.row import Row
from irgrad.rules.layers import writable

SOURCE = """
#include <math.h>
void squares(const double *x, long n, double *out) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }
double mix(double a, double b) { return fabs(a) * b; }
void scale(double a, double *x, long n) { for (long i = 0; i < n; i++) x[i] *= a; }
double powers(double x, int n) { double p = 1; for (int i = 0; i < n; i++) p *= x; return p; }
"""
# prepared code has no such call: LLVM takes sincos and modf apart; it has no sincospi, and neither has the C library
TAKEN_APART = {"sincos", "modf"}
NOWHERE = {"sincospi", "sincospi.pair"}
ROWS = {key: row for key, row in rows().items() if row.outputs}
SHARE = ("fmul", "fdiv", "hypot", "pow", "powi", "atan2", "fabs", "fmax", "tgamma", "floor", "sincos.pair", "csqrt")


def _key(row: Row) -> Any:
    return opcode(row.opcode) if row.opcode else row.key


def _truth(row: Row) -> Any:
    """The derivatives by mpmath, from the definitions that the tests keep."""
    import mpmath as mp

    def jacobian(*args: Any) -> Any:
        with mp.workdps(70):
            letters = row.signature.replace("p", "")
            at = [int(a) if c == "i" else mp.mpf(float(a)) for c, a in zip(letters, args, strict=True)]
            columns = [slope(row.key, at, letters.index("f") + n) for n in range(len(row.floats))]
            return [[np.array([[float(column[k])]]) for column in columns] for k in range(len(row.outputs))]

    return jacobian


@pytest.fixture(scope="module", autouse=True)
def _symbols() -> None:
    provide()


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("checked") / "checked.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


# -- the tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", SHARE)
def test_rows_pass(key: str) -> None:
    row = rows()[key]
    report = check_rule(_key(row), widths=(3,), points=1, activities="all", reference=_truth(row))
    assert report.ok
    assert f"the row `{key}`" in report.rule
    assert len(report.lines) == 3  # forward, reverse, adjoint identity
    assert not report.notes


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("key", sorted(set(ROWS) - TAKEN_APART - NOWHERE))
def test_every_row_passes(key: str, dtype: str) -> None:
    row = ROWS[key]
    if key == "carg" and dtype == "f32":  # `cargf` becomes `atan2f`
        with pytest.raises(RuleError, match="`carg` cannot be called as f32"):
            check_rule(_key(row), dtype=dtype)
        return
    batches = (None, 1, 4) if len(row.signature) < 3 else (None,)
    report = check_rule(_key(row), dtype=dtype, reference=_truth(row), batches=batches)
    assert not report.notes


@pytest.mark.parametrize("key", sorted(TAKEN_APART))
def test_rows_that_llvm_takes_apart_are_not_said_to_be_checked(key: str) -> None:
    with pytest.raises(RuleCheckFailed, match="the rule was never selected: llvm"):
        check_rule(key)


def test_rows_that_nothing_here_can_call_are_refused() -> None:
    with pytest.raises(RuleError, match="`sincospi` cannot be called as f64"):
        check_rule("sincospi")


# -- mutants ---------------------------------------------------------------------------------------------------------


def _damaged(row: Row, limit: int | None) -> list[tuple[Row, Expr]]:
    """Damaged versions of a row that are another function."""
    points = points_of(row, "f64", 4)
    found = []
    for j in range(len(row.outputs)):
        for i in row.floats:
            original = row.partials[j][i]
            for mutant in mutants(original)[:limit]:
                if not same_function(row, mutant, original, points):
                    table = [list(of_result) for of_result in row.partials]
                    table[j][i] = mutant
                    found.append((replace(row, partials=tuple(map(tuple, table))), mutant))
    return found


def _survivors(keys: Any, limit: int | None = None) -> tuple[int, list[str]]:
    tried, alive = 0, []
    for name in keys:
        row = rows()[name]
        key = _key(row) if row.opcode else Key("function", name)
        for changed, mutant in _damaged(row, limit):
            tried += 1
            with layer("mutant"):
                types = (mode_type(None), Activity)
                writable().add(Rule(key, "partials", types, True, None, (), False, "here", f"mutant {to_text(mutant)}",
                                    "mutant", row=changed))  # fmt: skip
                try:
                    # only next to the lower end of its domain does a series show its last coefficients
                    check_rule(key, widths=(1,), modes=("forward",), activities="all", reference=_truth(row),
                               points=64 if "gamma" in name else 8)  # fmt: skip
                except RuleCheckFailed as failure:
                    assert "WRONG" in str(failure)
                else:
                    alive.append(f"{name}: {mutant}")
    return tried, alive


def test_damaged_rows_are_caught() -> None:
    assert _survivors(("fmul", "fdiv", "hypot", "atan2", "fabs", "erf"), 3) == (24, [])


@pytest.mark.slow
def test_every_damaged_row_is_caught() -> None:
    tried, alive = _survivors(sorted(set(ROWS) - TAKEN_APART - NOWHERE - {k for k in ROWS if k == "nextafter"}))
    assert alive == []
    assert tried > 250


# -- promises --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_rule_of_calls_in_every_layout_of_a_batch(lib: Any) -> None:
    scale = lib.kernel("scale", "void(f64 a, inout f64[n] x, i64 n)")
    with layer():

        @rule(scale)
        def _(ctx, a, x, n):  # type: ignore[no-untyped-def]
            if ctx.mode == "forward":
                x.d[...] = a * x.d + a.d * x.saved
            else:
                with ctx.for_range(n) as i:
                    a.d += x.saved[i] * x.d[i]
                x.d[...] = a * x.d

        report = check_rule(scale, batches=(None, 1, (4, AoS)), points=1)
    cases = [line.case for line in report.lines]
    assert "reverse in a, width 1" in cases
    assert [c for c in cases if "samples" in c] == [
        "forward, 1 samples SoA", "reverse, 1 samples SoA", "forward, 1 samples AoS", "reverse, 1 samples AoS",
        "forward, 4 samples AoS", "reverse, 4 samples AoS"]  # fmt: skip
    assert report.reference == "the derivative of the function's own body"


def test_assigned_shadows_are_caught(lib: Any) -> None:
    squares = lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")
    with layer():

        @rule(squares, mode="reverse")
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            x.d = 0.0  # what `=` in place of `+=` does
            x.d += 2.0 * x.saved * out.d

        with pytest.raises(RuleCheckFailed, match=r"d out\[\d\] / d x\[\d\] is .* wanted") as caught:
            check_rule(squares, widths=(1,), modes=("reverse",), points=1)
        assert not caught.value.report


def test_wrong_forward_rules_break_the_adjoint_identity(lib: Any) -> None:
    squares = lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")
    with layer():

        @rule(squares)
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            if ctx.mode == "forward":
                out.d[...] = 3.0 * x.saved * x.d
            else:
                x.d += 2.0 * x.saved * out.d

        with pytest.raises(RuleCheckFailed) as caught:
            check_rule(squares, widths=(1,), points=1)
        wrong = [line.case for line in caught.value.report.lines if not line.ok]
        assert wrong == ["forward in x, width 1", "adjoint identity in x, width 1"]


def test_writes_outside_and_into_inputs_are_caught(lib: Any) -> None:
    squares = lib.kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")
    with layer():

        @rule(squares, mode="reverse")
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            x.d += 2.0 * x.saved * out.d
            ctx.copy(out.d, x.saved, n + 1)

        with pytest.raises(RuleCheckFailed, match="something wrote outside of `out'`"):
            check_rule(squares, widths=(1,), modes=("reverse",), points=1)


def test_only_claimed_activities_are_tried(lib: Any) -> None:
    from irgrad.rules import Active, Const

    mix = lib.kernel("mix")
    with layer():

        @rule("mix", Active, Const, mode="forward")
        def _(a: Any, b: Any) -> Any:
            return np.where(a >= 0, b, -b), 0.0

        report = check_rule(mix, widths=(1, 3), points=1)
    assert [line.case for line in report.lines] == ["forward in a, width 1", "forward in a, width 3"]
    assert "reverse in a: the rule does not claim it" in report.notes
    assert "forward in a, b: the rule does not claim it" in report.notes


def test_kinks_are_reported_and_are_no_failure(lib: Any) -> None:
    mix = lib.kernel("mix")
    with layer():

        @rule("mix")
        def _(a: Any, b: Any) -> Any:
            return np.where(a > 0, b, -b), abs(a)

        report = check_rule(mix, args=(0.0, 2.0), widths=(1,), activities="all", modes=("forward",))
        assert report.kinks == () or "-2 on the left, 2 on the right" in report.kinks[0]
    with layer():

        @rule("mix")
        def _(a: Any, b: Any) -> Any:
            return np.where(a >= 0, b, -b), abs(a)

        report = check_rule(mix, args=(0.0, 2.0), widths=(1,), activities="all", modes=("forward",))
        assert report.kinks == ("at (0, 2), d return / d a: -2 on the left, 2 on the right, rule 2",)
    with layer():

        @rule("mix")
        def _(a: Any, b: Any) -> Any:
            return 5 * b, abs(a)

        with pytest.raises(RuleCheckFailed):
            check_rule(mix, args=(0.0, 2.0), widths=(1,), activities="all", modes=("forward",))


def test_documented_kinks_are_met() -> None:
    assert any(k.startswith("at (0.0, 0.0): 0, 0 (the smallest subgradient") for k in check_rule("hypot").kinks)


def test_symbols_with_a_prototype_are_called_by_it() -> None:
    import ctypes

    from irgrad.engine.codegen.llvm import binding

    body = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(lambda a, b: a * a * b)
    binding().add_symbol("irgrad_test_aab", ctypes.cast(body, ctypes.c_void_p).value)
    with layer():
        declared = extern("irgrad_test_aab", "f64(f64 a, f64 b)")

        @rule(declared)
        def _(a: Any, b: Any) -> Any:
            return 2 * a * b, a * a

        assert check_rule(declared, points=1, widths=(1,)).reference == "five-point differences"
    with layer():

        @rule(declared)
        def _(a: Any, b: Any) -> Any:
            return a * a, 2 * a * b

        with pytest.raises(RuleCheckFailed):
            check_rule(declared, points=1, widths=(1,))


# -- what cannot be checked ------------------------------------------------------------------------------------------


def test_what_cannot_be_checked_says_why(lib: Any) -> None:
    with pytest.raises(RuleError, match="there is no rule for `nothing_of_the_kind`"):
        check_rule("nothing_of_the_kind")
    with layer():
        inactive("mix")
        with pytest.raises(RuleError, match="declared inactive"):
            check_rule(lib.kernel("mix"))

        @rule("unknown_function")
        def _(a: Any) -> Any:
            return a

        with pytest.raises(RuleError, match="nothing says how `unknown_function` is called"):
            check_rule("unknown_function")

        @rule(extern("of_pointers", "void(f64* x)"), mode="reverse")
        def _(ctx: Any, x: Any) -> None: ...

        with pytest.raises(RuleError, match="the extent of `x` is not known"):
            check_rule("of_pointers")

        @rule("powers")
        def _(x: Any, n: Any) -> Any:
            return x

        with pytest.raises(RuleError, match="`n` is no size of an array"):
            check_rule(lib.kernel("powers"))


def test_a_rule_that_is_never_selected_is_said_so(lib: Any) -> None:
    with layer():

        @rule("squares_of_another_name")
        def _(x: Any) -> Any:
            return x

        with pytest.raises(RuleCheckFailed, match="the rule was never selected"):
            check_rule("squares_of_another_name", kernel=lib.kernel("mix"))


def test_the_report_reads_well(lib: Any) -> None:
    text = str(check_rule("hypot", widths=(1,), activities="all", points=1))
    first, second = text.splitlines()[:2]
    assert first == "check of the rule for hypot (f64(f64 a0, f64 a1))"
    assert second == "  rule       the row `hypot` of the tables"
    assert text.endswith("verdict: the rule keeps its promises")
