"""Where addresses vary, lanes are taken when enough is computed for each load and store."""

from __future__ import annotations

import pytest

import irgrad
from irgrad.engine.ir.text.reader import read
from irgrad.engine.widen.widening import widen

HEAD = "#include <math.h>\n"
SUM = """double f(const double *t, const int *i, long n) {
    double s = 0; for (long k = 0; k < n; k++) s += t[i[k]]; return s; }"""
WAVE = SUM.replace("t[i[k]]", "sin(t[i[k]])")
OUTSIDE = SUM.replace("return s", "return exp(s) * sin(s)")  # what a loop does counts more


@pytest.mark.parametrize(("source", "pays"), [(SUM, False), (WAVE, True), (OUTSIDE, False)])
def test_operations_for_each_access(source: str, pays: bool) -> None:
    program = irgrad.load(HEAD + source).kernel("f", "f64(f64[m] t, i32[n] i, i64 n)").primal
    for paying in (False, True):
        module = read(program.stage.text, roots=[program.stage.name])
        rest = program.stage.name, [1, 3], [slot.dtype.size for slot in program.slots], 8
        if paying and not pays:
            with pytest.raises(irgrad.Unsupported, match=r"[23] operations .* lanes pay from 4") as caught:
                widen(module, *rest, paying=True)
            assert "load double" in caught.value.which
        else:
            assert "lanes8" in widen(module, *rest, paying=paying)
