"""A root in two halves: their names and parameters, the note that goes with them, and what each half runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from handwritten.halves import Halves, complex_step, run_halves

from irgrad.engine.differentiate.layout.lanes import LANES
from irgrad.engine.differentiate.roots import REVERSE_TAIL
from irgrad.engine.differentiate.with_tape import reverse_name
from irgrad.engine.ir.printer import to_text

N = 7
X = np.linspace(0.3, 1.4, N)
W = np.cos(np.arange(1.0, N + 1))
RECURRENCE = """void f(double *x, double *y, long *n) {
    double s = 0.5;
    for (long i = 0; i < *n; i++) { s = sin(s * x[i]) + x[i]; y[i] = s; } }"""
WORK = """void f(double *x, double *y, long *n) {
    double *work = malloc(*n * sizeof *work);
    for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
    for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
    for (long i = 0; i < *n; i++) y[i] = work[i] * work[i];
    free(work); }"""
UNCOUNTED = """void f(double *x, double *y, long *n) {
    double s = x[0];
    while (s > 0.1) s = s * sin(s);
    y[0] = s; }"""


def with_work(x: np.ndarray) -> np.ndarray:
    work = np.exp(x)
    for i in range(1, len(x)):
        work[i] = work[i] * work[i - 1] * x[i]
    return work * work


def test_both_halves_have_the_name_of_the_function() -> None:
    """The tape does not depend on the width, and so neither does the half that fills it."""
    for width, strip in ((1, ""), (4, "4x")):
        made = Halves(RECURRENCE, width=width)
        assert made.pair.name == "f.forward_with_tape.110"
        assert reverse_name(made.pair.note) == made.note["reverse"] == f"f.reverse_from_tape{strip}.110"


def test_the_first_half_gets_the_tape_and_its_bytes_the_second_one_no_values_of_outputs() -> None:
    made = Halves(RECURRENCE)
    forward, reverse = (made.module.functions[name] for name in (made.pair.name, made.note["reverse"]))
    assert str(forward.ftype) == "void (ptr, ptr, ptr, ptr, ptr)"  # x, y, n, the tape and its bytes
    assert str(reverse.ftype) == "void (ptr, ptr, ptr, ptr, ptr)"  # x, x', y', n, the tape
    assert [arg.attrs for arg in forward.args] == ["noalias"] * 5


def test_only_the_second_half_is_adjoint_code() -> None:
    made, wide = Halves(RECURRENCE), Halves(RECURRENCE, width=4)
    assert made.module.functions[made.pair.name].tail == "nounwind"
    assert made.module.functions[made.note["reverse"]].tail == REVERSE_TAIL
    assert wide.module.functions[wide.note["reverse"]].tail == f'{REVERSE_TAIL} "{LANES}"'


def test_the_note_is_json() -> None:
    made = Halves(RECURRENCE)
    assert set(made.note) == {"reverse", "room", "layout"}
    assert made.bytes(2000) - made.bytes(1000) == 8000
    assert made.pair.facts is not None and made.pair.scratch == ()


def test_or_says_why_there_is_no_such_tape() -> None:
    refused = Halves(UNCOUNTED).pair
    assert (refused.name, refused.scratch, refused.facts) == ("", (), None)
    note = json.loads(refused.note)
    assert set(note) == {"because", "where"} and "@f" in note["where"]
    with pytest.raises(KeyError):
        reverse_name(refused.note)


def test_lanes_share_the_tape_of_one() -> None:
    source, f = WORK, with_work
    one, four = Halves(source), Halves(source, width=4)
    assert one.note["layout"] == four.note["layout"] != Halves(RECURRENCE).note["layout"]
    w = np.stack([W, W * W, np.sin(W), np.ones(N)], axis=1)
    _, (wide,) = run_halves(four, X, [w])
    for k in range(4):
        np.testing.assert_allclose(wide[:, k], complex_step(f, X, w[:, k]), rtol=1e-11, atol=1e-12)


def test_the_reverse_half_runs_nothing_of_the_primal() -> None:
    made = Halves(RECURRENCE)
    text = to_text(made.module)
    forward, _, reverse = text[text.index(f"@{made.pair.name}") :].partition(f"@{reverse_name(made.pair.note)}")
    assert forward.count("call double @llvm.sin") == 1 and "@llvm.cos" not in forward
    body = reverse[: reverse.index("\n}")]
    assert "@llvm.sin" not in body and body.count("@llvm.cos") == 1
