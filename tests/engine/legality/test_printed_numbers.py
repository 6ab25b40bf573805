"""Numbers that are printed and read back have no derivative: refused. Text beside numbers is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.rules.errors import Unsupported

HEAD = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
F = "double f(const double *x) {{ char text[64], other[64]; double y; {} }}"
SIGNATURE = "f64(f64[2] x)"


def gradient(tmp_path: Path, body: str, level: str) -> np.ndarray:
    (tmp_path / "f.c").write_text(HEAD + F.format(body))
    kernel = irgrad.load(tmp_path / "f.c", opt=level).kernel("f", SIGNATURE)
    return np.asarray(engine.grad(kernel)(np.array([1.5, 2.0])))


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("body", [
    'snprintf(text, 64, "%.17g", x[0] * x[1]); return strtod(text, NULL) * x[1];',
    'sprintf(text, "%.17g", x[0]); y = atof(text); return y * y;',
    'sprintf(text, "%.17g", x[0]); strcpy(other, text); char *end; return strtod(other, &end) + x[1];',
    'sprintf(text, "%.17g", x[0]); memcpy(other, text, 64); return strtof(other + 0, NULL) + x[1];',
])  # fmt: skip
def test_numbers_that_are_read_from_their_text(body: str, level: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="a number is read from text to which active numbers are printed"):
        gradient(tmp_path, body, level)


@pytest.mark.parametrize("body", [
    'strcpy(text, "2.5"); sprintf(other, "%g", x[0]); puts(other); return strtod(text, NULL) * x[0] * x[1];',
    'sprintf(text, "%d", 5); sprintf(other, "%g", x[1]); return atof(text) * x[0] * x[1] / 2;',
    'sprintf(text, "%g", x[0]); y = strlen(text) ? 2.5 : 0; if (strtod(text, NULL) > 9) y = 1; return y * x[0] * x[1];',
])  # fmt: skip
def test_other_text(body: str, tmp_path: Path) -> None:
    assert np.allclose(gradient(tmp_path, body, "O2"), [5, 3.75])
