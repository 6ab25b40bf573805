"""The report as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from explained import kernel, line

from irgrad import load
from irgrad.engine import explain
from irgrad.engine.report.facts import KeptValue, Place, RecalledValue
from irgrad.engine.report.text import is_number, kept_text, lanes_text, loop_text, to_text


def _row(text: str, *words: str) -> str:
    return next(row for row in text.splitlines() if all(word in row for word in words))


def test_what_a_nest_prints() -> None:
    text = str(explain(kernel("nested"), "grad", "x"))
    assert text.startswith("grad of f64(f64[n] x, f64[m] w, i64 n, i64 m)\n")
    assert "tape of a call: 8*m*n + 8*n bytes" in text
    inner = line("for (long j = 0; j < m; j++)")
    assert _row(text, f"loop at line {inner}-{inner + 1}", "depth 2", "m iterations", "for (long j")
    assert _row(text, "keeps 8 bytes an iteration, in a call 8*m*n bytes")
    assert _row(text, "kept ", "fmul", "8*m*n bytes in a call", "read by the reverse of sin")
    assert _row(text, "reloaded ", "load")
    assert _row(text, f"line {line('double s = x[i];')}:", "double s = x[i];")
    assert _row(text, "because x ", " here ", "return")
    assert _row(text, "llvm.sin.f64", "by the tables")
    assert _row(text, "samples of a batch: ", "side by side")


def test_a_cheaper_analysis_of_pointers_is_told() -> None:
    found = explain(kernel("straight"), lanes=False)
    assert found.pointers == ()
    assert "pointers:" not in str(found)
    cheap = to_text(replace(found, pointers=("objects: all are one",)))
    assert "  pointers: a cheaper analysis, objects: all are one\n" in cheap


def test_that_few_passes_run_for_most_of_a_large_derivative_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "  passes: all of" not in str(explain(kernel("straight")))
    monkeypatch.setattr("irgrad.engine.codegen.large_modules.LARGE", 10)
    assert "  passes: all of" not in str(explain(kernel("straight")))
    monkeypatch.setenv("IRGRAD_MAX_OPTIMISED", "12")
    found = explain(kernel("straight"))
    assert found.optimised is not None and found.optimised[1] == 12
    row = f"all of LLVM's for 12 of {found.optimised[0]} lines of IR, of what runs most often (IRGRAD_MAX_OPTIMISED)"
    assert f"  passes: {row}\n" in str(found)
    assert "for 12 of" in found.to_html()


def test_straight_code_has_no_loops() -> None:
    text = str(explain(kernel("straight"), lanes=False))
    assert "  no loops" in text
    assert "tape of a call: 0" in text
    assert "vector lanes" not in text


def test_nothing_active() -> None:
    from irgrad.interop.loaders import load

    found = explain(load("double f(double x) {\n    return 3;\n}").kernel("f"), lanes=False)
    assert found.active == ()
    assert "none: the derivative is zero" in str(found)


def test_forward_mode_says_nothing_of_a_tape() -> None:
    text = str(explain(kernel("nested"), "jvp", lanes=False))
    assert "tape" not in text
    assert "n iterations" in text


def test_the_iteration_of_a_loop_has_a_name() -> None:
    text = str(explain(kernel("triangle"), lanes=False))
    at = line("for (long i = 0; i < n; i++) {", text_of("triangle")) + offset_of("triangle")
    assert _row(text, f"i{at}: the iteration of the loop at line {at}, from 0")


def text_of(name: str) -> str:
    """The kernels from this one on."""
    from explained import SOURCE

    return SOURCE[SOURCE.index(f"double {name}(") :]


def offset_of(name: str) -> int:
    """Lines in front of it."""
    from explained import SOURCE

    return SOURCE[: SOURCE.index(f"double {name}(")].count("\n")


def test_rows() -> None:
    kept = KeptValue("count", "header", "loop", "i64", 8, "variable", (), None, Place("a.c", 3), "br")
    assert kept_text(kept) == "iterations of loop %header (line 3): i64, once"
    again = RecalledValue("recomputed", "p", "getelementptr", "ptr", Place(), "load")
    assert not is_number(again)
    assert is_number(RecalledValue("recomputed", "v", "fmul", "<4 x float>", Place(), "load"))
    found = explain(kernel("root"))
    assert "iterations are not known before it runs" in loop_text(found.loops[0])
    assert lanes_text(found.lanes[0]) == "one after the other"


def test_functions_that_are_run_again(tmp_path: Path) -> None:
    path = tmp_path / "again.c"
    path.write_text("#include <math.h>\n__attribute__((noinline)) static double g(double y)"
                    " { return sin(y) / (1 + y * y); }\n"
                    "double f(double x, long n) { for (long i = 0; i < n; i++) x += 0.1 * g(x); return x; }\n")
    found = explain(load(path).kernel("f", "f64(f64 x, i64 n)"), "grad", "x")
    assert _row(str(found), "  function g").endswith(": no tape, it is run again in the reverse sweep")
    assert [function.repeated for function in found.functions] == [False, True]
    assert found.total == "8*n bytes"
