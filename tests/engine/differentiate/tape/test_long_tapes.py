"""Loops that keep their tapes though memory is bounded are named, and only where there is a tape."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from irgrad.engine.differentiate.tape.long_tapes import WholeTape
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.kernel.checkpoints import checkpoints, chosen
from irgrad.interop.command_line import read_command
from irgrad.interop.driver import _module

HEAD = """#include <math.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const, enzyme_tape;
"""
WHOLE = "extern void __enzyme_autodiff(void *, ...);\n"
BODY = """static double f(double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s = CALL;
    return s;
}
void g(double *x, double *dx, long n) { __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, n); }
"""


def said(text: str, folder: Path) -> list[str]:
    file = folder / "a.c"
    file.write_text(text, encoding="utf-8")
    command = read_command(["-O2", "-c", str(file)])
    module, _ = _module(command, command.sources)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lower(module, checkpoint=chosen(checkpoints(None, "1MB")))
    return [str(one.message) for one in found if issubclass(one.category, WholeTape)]


def test_the_loop_and_the_reason(tmp_path: Path) -> None:
    (message,) = said(HEAD + WHOLE + BODY.replace("CALL", "sin(s) * x[rand() % n]"), tmp_path)
    assert "a.c:7:5 keeps a tape of all its iterations: `rand` is called (" in message


@pytest.mark.parametrize("call", ["sin(s) * x[i]", "s + x[i] + rand() % 2"])
def test_no_warning_without_a_tape(tmp_path: Path, call: str) -> None:
    """A loop with states, and one of which nothing is kept."""
    assert not said(HEAD + WHOLE + BODY.replace("CALL", call), tmp_path)


def test_two_halves(tmp_path: Path) -> None:
    text = HEAD + "struct both { void *t; double r; };\nextern struct both __enzyme_augmentfwd(void *, ...);\n"
    text += "extern void __enzyme_reverse(void *, ...);\n"
    body = BODY.partition("void g")[0].replace("CALL", "sin(s) * x[i]")
    text += body + """void g(double *x, double *dx, long n) {
        struct both b = __enzyme_augmentfwd((void *)f, enzyme_dup, x, dx, enzyme_const, n);
        __enzyme_reverse((void *)f, enzyme_dup, x, dx, enzyme_const, n, 1.0, b.t);
    }
    """
    assert "a derivative in two halves" in said(text, tmp_path)[0]

