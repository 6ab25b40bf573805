"""The classes of loops that a programmer would name, and what is said of each."""

from __future__ import annotations

import pytest
from nests import analysed

from irgrad.engine.analyses.evolution.loop_classes import LoopClass, classify


def classes(body: str) -> list[LoopClass]:
    """Of the loops of a body over buffers a, b, c and ints in n and ix."""
    source = ("void f(double *restrict a, double *restrict b, double *restrict c, const long *restrict n, "
              f"const long *restrict ix) {{ {body} }}")  # fmt: skip
    dependence, loops = analysed(source)
    return [classify(dependence, loop) for loop in loops]


KNOWN = {
    "for (long i = 0; i < *n; i++) a[i] = b[i] * b[i + 1];": ["independent"],
    "for (long i = 0; i < *n; i++) a[i] = a[i] * 2;": ["independent"],
    "for (long i = 0; i < *n; i++) a[i + 1] = a[i] * 2;": ["scan"],
    "for (long i = 0; i < *n; i++) a[2 * i] = a[2 * i + 1];": ["independent"],
    "for (long i = 0; i < *n; i++) a[ix[i]] = b[i];": ["sequential"],
    "for (long i = 0; i < *n; i++) a[ix[i]] += b[i];": ["reduction"],
    "for (long i = 0; i < *n; i++) c[0] += b[i];": ["reduction"],
    "double s = 0; for (long i = 0; i < *n; i++) s += b[i]; *c = s;": ["reduction"],
    "double s = 0; for (long i = 0; i < *n; i++) { s = s * a[i] + b[i]; c[i] = s; }": ["scan"],
    "double s = b[0]; for (long i = 1; i < *n; i++) s = b[i] < s ? b[i] : s; *c = s;": ["reduction"],
    "long m = *n; for (long i = 0; i < m; i++) for (long j = 0; j < m; j++) a[i * m + j] = b[j] * a[i * m + j];":
        ["independent", "independent"],
    "long m = *n; for (long i = 0; i < m; i++) for (long j = 0; j <= m; j++) a[i * m + j] = b[j] * i;":
        ["time steps", "independent"],
    "for (long t = 0; t < n[1]; t++) for (long i = 0; i < *n; i++) a[i] = a[i] * b[i] + 1;":
        ["time steps", "independent"],
    "for (long i = 0; i < *n; i++) { a[i] = b[i]; c[i] = a[n[1] - i]; }": ["sequential"],
    "extern int rand(void); for (long i = 0; i < *n; i++) a[i] = rand();": ["sequential"],
    "for (long i = 0; i < *n; i++) a[i] = __builtin_sin(b[i]);": ["independent"],
}  # fmt: skip


@pytest.mark.parametrize("body", KNOWN)
def test_classes(body: str) -> None:
    assert [found.name for found in classes(body)] == KNOWN[body]


def test_distances_and_reasons() -> None:
    (found,) = classes("for (long i = 0; i < *n; i++) a[i + 3] = a[i] * 2;")
    (one,) = found.carried
    assert (abs(one.relation.low), abs(one.relation.high)) == (3, 3) and "8 bytes" in one.relation.because
    (found,) = classes("for (long i = 0; i < *n; i++) a[ix[i]] = b[i];")
    assert found.carried[0].relation.because == "the pointer is another one in each iteration" or (
        "not known" in found.carried[0].relation.because or "no way" in found.carried[0].relation.because)  # fmt: skip
