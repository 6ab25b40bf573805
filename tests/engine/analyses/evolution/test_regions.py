"""What loops touch of memory whose size nobody says, in programs in which each array ends, or begins, where nothing is
mapped: a region that is a byte too long kills them. Gradients with states have to be those with a tape."""

from __future__ import annotations

from pathlib import Path

import pytest
from guarded_programs import HEAD, close, run

STATES = {
    "stencil": ("n * n", """for (long t = 0; t < steps; t++) {
        for (long i = 1; i + 1 < n; i++) for (long j = 1; j + 1 < n; j++)
            w[i * n + j] = u[i * n + j] + 0.1 * sin(u[(i - 1) * n + j] - u[i * n + j + 1]);
        for (long i = 1; i + 1 < n; i++) for (long j = 1; j + 1 < n; j++) u[i * n + j] = w[i * n + j];
    }"""),
    "swap": ("n", """for (long t = 0; t < steps; t++) {
        for (long i = 0; i + 1 < n; i++) w[i] = 0.9 * u[i] + 0.2 * sin(u[i + 1]);
        double *s = u; u = w; w = s;
    }"""),
    "strides": ("2 * n", """for (int t = 0; t < (int)steps; t++)
        for (int i = (int)n - 1; i >= 0; i--) u[2 * i] = sin(u[2 * i]) + 0.3 * u[2 * i + 1];"""),
    "covered": ("n", """for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) if (u[i] > 0.2) u[i] = u[i] * (1 - 0.5 * u[i]);"""),
    "rows": ("n * n", """long ld = -n; double *v = u + (n - 1) * n;
        for (long t = 0; t < steps; t++) for (long i = 0; i < n; i++) for (long j = 0; j < n; j++)
            v[i * ld + j] = 0.9 * v[i * ld + j] + 0.1 * sin(v[i * ld]);"""),
    "copies": ("n", """for (long t = 0; t < steps; t++) {
        memcpy(w, u, n * sizeof *u);
        for (long i = 0; i + 1 < n; i++) u[i] = sin(w[i] + 0.3 * w[i + 1]);
        memset(w, 0, n / 2 * sizeof *w);
    }"""),
    "walk": ("n", """for (long t = 0; t < steps; t++)
        for (double *p = u, *q = w; p < u + n; p++, q++) { *p = sin(*p) * 1.1; *q += *p * *p; }"""),
    "history": ("n * (steps + 1)", """for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) u[(t + 1) * n + i] = sin(u[t * n + i]) + w[i];"""),
    "not the last one": ("n", """for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) { if (i + 1 < n) u[i + 1] += 0.3 * sin(u[i]); }"""),
    "converges": ("n", """double d = 1; long t = 0;
        while (n > 0 && d > 0.3 && t++ < 50) {
            d = 0;
            for (long i = 0; i < n; i++) { double v = 0.5 * sin(u[i]) + 0.3 * w[i]; d += fabs(v - u[i]); u[i] = v; }
        }"""),
}  # fmt: skip
EITHER = {
    "triangle": ("n * (n + 1) / 2", """for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) for (long j = 0; j <= i; j++) u[i * (i + 1) / 2 + j] *= 0.9 + 0.1 * sin(w[j]);"""),
    "triangle of a square": ("n * n", """for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) u[(n - 1 - i) * n + j] = sin(u[j * n + i]);"""),
    "left at once": ("n", """double s = 0.1; for (long t = 0; t < steps; t++) {
        if (s < 1) break;
        for (long i = 0; i < 9; i++) { s += u[i]; u[i] = sin(s); }
    }"""),
    "odd and even": ("n", """for (long t = 0; t < steps; t++)
        for (long i = t % 2; i < n; i += 2) u[i] = sin(u[i]) + 0.1 * u[n - 1 - i];"""),
    "indirect": ("n", """for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) { long k = (long)(fabs(u[i]) * 1000) % n; u[k] = sin(u[k]) + 0.1 * w[i]; }"""),
}  # fmt: skip


def program(cases: dict[str, tuple[str, str]]) -> str:
    parts, calls = [HEAD], []
    for number, (size, body) in enumerate(cases.values()):
        parts.append(f"""
static void f{number}(double *u, double *w, long n, long steps) {{
    {body}
}}
static __attribute__((noinline)) void g{number}(double *u, double *du, double *w, double *dw, long n, long steps) {{
    __enzyme_autodiff((void *)f{number}, enzyme_dup, u, du, enzyme_dup, w, dw, enzyme_const, n, enzyme_const, steps);
}}
static void show{number}(long n, long steps, int end) {{
    long size = {size};
    double *row[4];
    for (int k = 0; k < 4; k++) {{
        row[k] = guarded(size, end);
        for (long i = 0; i < size; i++) row[k][i] = k % 2 ? cos(i + k) : 0.1 + 0.05 * ((i * 7 + k) % 11);
    }}
    g{number}(row[0], row[1], row[2], row[3], n, steps);
    for (int k = 0; k < 4; k++) for (long i = 0; i < size; i++) printf("%.17g ", row[k][i]);
    puts("");
}}
""")
        calls.append(f"for (long n = 0; n < 7; n++) for (int k = 0; k < 6; k++) show{number}(n, k * k / 2, k % 2);")
    return "\n".join(parts) + "int main(void) {\n    " + "\n    ".join(calls) + "\n}\n"


@pytest.mark.parametrize("level", ["-O2", pytest.param("-O0", marks=pytest.mark.long)])
def test_regions_of_arrays(tmp_path: Path, level: str) -> None:
    text = program(STATES)
    plain, _ = run(tmp_path, text, level)
    states, said = run(tmp_path, text, level, "--tape-memory=1kB")
    assert close(plain, states)
    assert "keeps a tape" not in said


@pytest.mark.long
@pytest.mark.parametrize("name", EITHER)
def test_what_cannot_be_told_keeps_its_tape(tmp_path: Path, name: str) -> None:
    """With states or without: right, and inside of the arrays."""
    text = program({name: EITHER[name]})
    plain, _ = run(tmp_path, text, "-O2")
    states, said = run(tmp_path, text, "-O2", "--tape-memory=1kB")
    assert close(plain, states)
    assert name in ("left at once", "triangle of a square") or "keeps a tape of all its iterations" in said
