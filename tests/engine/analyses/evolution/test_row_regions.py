"""What loops touch behind addresses in tables, in programs in which each row ends, or begins, where nothing is mapped.
Gradients with states have to be those with a tape."""

from __future__ import annotations

from pathlib import Path

import pytest
from guarded_programs import HEAD, close, run

STATES = {
    "stencil": """for (long t = 0; t < steps; t++) {
        for (long i = 1; i + 1 < n; i++) for (long j = 1; j + 1 < m; j++)
            w[i][j] = u[i][j] + 0.1 * sin(u[i - 1][j] - u[i][j + 1]);
        for (long i = 1; i + 1 < n; i++) for (long j = 1; j + 1 < m; j++) u[i][j] = w[i][j];
    }""",
    "tables that change places": """for (long t = 0; t < steps; t++) {
        for (long i = 0; i < n; i++) for (long j = 0; j + 1 < m; j++)
            w[i][j] = 0.9 * u[i][j] + 0.2 * sin(u[n - 1 - i][j + 1]);
        double **s = u; u = w; w = s;
    }""",
    "down, each second": """for (int t = 0; t < (int)steps; t++) for (int i = (int)n / 2; i-- > 0;)
        for (int j = (int)m - 1; j >= 0; j--) u[2 * i][j] = sin(u[2 * i][j]) + 0.3 * w[i][0];""",
    "a band": """for (long t = 0; t < steps; t++) for (long i = 1; i + 1 < n; i++) for (long d = -1; d < 2; d++)
        for (long j = 0; j < m; j++) u[i + d][j] = 0.9 * u[i + d][j] + 0.1 * sin(u[i][j]);""",
    "tables of tables": """double **all[3] = {u, w, u};
        for (long t = 0; t < steps; t++) for (long k = 0; k < n % 3; k++) for (long i = 0; i < n; i++)
            for (long j = 1; j < m; j++) all[k][i][j] = sin(all[k][i][j - 1]) + 0.1 * all[2 - k][n - 1 - i][0];""",
    "history": """if (steps < n) for (long t = 0; t < steps; t++)
        for (long j = 0; j < m; j++) u[t + 1][j] = sin(u[t][j]) + 0.2 * w[0][j];""",
    "one row": """if (n > 2) for (long t = 0; t < steps; t++)
        for (long j = 0; j < m; j++) { u[2][j] = sin(u[2][j]) + w[1][m - 1 - j]; w[1][j] *= 0.9; }""",
    "known conditions": """for (long t = 0; t < steps; t++) {
        if (n > 3) for (long i = 0; i < 4; i++) for (long j = 0; j < m; j++) u[i][j] = sin(u[i][j]) + 0.1;
        if (m > 4) for (long i = 0; i < n; i++) w[i][4] = 0.5 * w[i][4] + u[i][0] * u[i][m - 1];
    }""",
    "covered": """for (long t = 0; t < steps; t++) for (long i = 0; i < n; i++) for (long j = 0; j < m; j++)
        if (u[i][j] > 0.2) u[i][j] = u[i][j] * (1 - 0.5 * u[i][j]);""",
}  # fmt: skip
EITHER = {
    "triangle": """for (long t = 0; t < steps; t++) for (long i = 0; i < n && i < m; i++)
        for (long j = 0; j <= i; j++) u[i][j] = sin(u[i][j]) + 0.3 * w[i][i - j];""",
    "rows that change places": """for (long t = 0; t < steps; t++) {
        for (long i = 0; i < n; i++) for (long j = 0; j < m; j++) u[i][j] = sin(u[i][j]) + 0.1 * i;
        if (n > 2) { double *s = u[0]; u[0] = u[2]; u[2] = s; }
    }""",
    "some rows": """for (long t = 0; t < steps; t++) for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++) if (i != t % 3) u[i][j] = sin(u[i][j]);""",
    "left early": """for (long t = 0; t < steps; t++) for (long i = 0; i < n; i++)
        for (long j = 0; j < 1000; j++) { u[i][j] *= 0.9; if (j * j >= (m - 1) * (m - 1)) break; }""",
    "indirect": """for (long t = 0; t < steps; t++) for (long i = 0; i < n; i++) {
        long k = (long)(fabs(w[i][0]) * 1000) % n;
        for (long j = 0; j < m; j++) u[k][j] = sin(u[k][j]) + 0.1 * w[i][j];
    }""",
}  # fmt: skip


def program(cases: dict[str, str]) -> str:
    """Rows of the caller in tables of the function: nothing else than these says that rows are no tables."""
    parts, calls = [HEAD], []
    for number, body in enumerate(cases.values()):
        parts.append(f"""
static void f{number}(double **of_u, double **of_w, long n, long m, long steps) {{
    double *rows[2][8], **u = rows[0], **w = rows[1];
    for (long i = 0; i < n; i++) {{ u[i] = of_u[i]; w[i] = of_w[i]; }}
    if (m < 1) return;
    {body}
}}
static __attribute__((noinline)) void g{number}(double ***all, long n, long m, long steps) {{
    __enzyme_autodiff((void *)f{number}, enzyme_dup, all[0], all[1], enzyme_dup, all[2], all[3], enzyme_const, n,
                      enzyme_const, m, enzyme_const, steps);
}}
static void show{number}(long n, long m, long steps, int end) {{
    double **all[4];
    for (int k = 0; k < 4; k++) {{
        all[k] = (double **)guarded(n, end);
        for (long i = 0; i < n; i++) {{
            all[k][i] = guarded(m, (end + i) % 2);
            for (long j = 0; j < m; j++)
                all[k][i][j] = k % 2 ? cos(i + k + 0.1 * j) : 0.1 + 0.05 * ((i * 7 + k + 3 * j) % 11);
        }}
    }}
    g{number}(all, n, m, steps);
    for (int k = 0; k < 4; k++) for (long i = 0; i < n * m; i++) printf("%.17g ", all[k][i / m][i % m]);
    puts("");
}}
""")
        each = f"show{number}(n, 7 - n, k * k / 2, k % 2);"
        calls.append(f"for (long n = 0; n < 6; n++) for (int k = 0; k < 5; k++) {each}")
    return "\n".join(parts) + "int main(void) {\n    " + "\n    ".join(calls) + "\n}\n"


@pytest.mark.parametrize("level", ["-O2", pytest.param("-O0", marks=pytest.mark.long)])
def test_rows_of_tables(tmp_path: Path, level: str) -> None:
    text = program(STATES)
    plain, _ = run(tmp_path, text, level)
    states, said = run(tmp_path, text, level, "--tape-memory=1kB")
    assert close(plain, states)
    assert "keeps a tape" not in said, said


def test_tables_of_the_caller(tmp_path: Path) -> None:
    """By strict aliasing a store of a float changes no address."""
    text = program({name: STATES[name] for name in ("stencil", "history", "covered")})
    text = text.replace("(double **of_u, double **of_w,", "(double **u, double **w,")
    text = text.replace("double *rows[2][8], **u = rows[0], **w = rows[1];", "")
    text = text.replace("u[i] = of_u[i]; w[i] = of_w[i];", "")
    plain, _ = run(tmp_path, text, "-O2")
    states, said = run(tmp_path, text, "-O2", "--tape-memory=1kB")
    assert close(plain, states)
    assert "keeps a tape" not in said, said
    _, said = run(tmp_path, text, "-O2", "-fno-strict-aliasing", "--tape-memory=1kB")
    assert "its address is read from memory that the loop writes" in said


@pytest.mark.parametrize("name", EITHER)
def test_what_cannot_be_told_keeps_its_tape(tmp_path: Path, name: str) -> None:
    """With states or without: right, and inside of the rows."""
    text = program({name: EITHER[name]})
    plain, _ = run(tmp_path, text, "-O2")
    states, said = run(tmp_path, text, "-O2", "--tape-memory=1kB")
    assert close(plain, states)
    assert "keeps a tape of all its iterations" in said
