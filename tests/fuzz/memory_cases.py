"""Worksharing loops of regions whose threads reserve memory for themselves, which each chunk may have for itself."""

from __future__ import annotations

import numpy as np

HEAD = "#include <math.h>\n#include <stdlib.h>\nvoid f(const double *a, double *y, long n, long m) {\n"
SIGNATURE = "void(f64[n,m] a, out f64[n] y, i64 n, i64 m)"
EACH = "for (long i = 0; i < n; i++)"
ROW = "for (long j = 0; j < m; j++)"
FILL = f"{ROW} t[j] = sin(a[i*m+j]); double s = 0; {ROW} s += t[j] * t[m-1-j];"
OWN = {
    "heap": ("double *t = malloc(m * 8);", f"schedule(dynamic, 4)\n{EACH} {{ {FILL} y[i] = s; }}", "free(t);"),
    "variable length": ("double t[m];", f"schedule(guided)\n{EACH} {{ {FILL} y[i] = s; }}", ""),
    "what it holds before": (
        f"double *t = malloc(m * 8); {ROW} t[j] = cos(0.1 * j) + a[j];",
        f"""schedule(dynamic)
        {EACH} {{
            double s = 0, before = t[i % m];
            t[i % m] *= a[i*m];
            {ROW} s += t[j] * a[i*m+j];
            t[i % m] = before, y[i] = s;
        }}""", "free(t);"),
    "zeros that are put back": (
        "double *t = calloc(m, 8);",
        f"""schedule(static)
        {EACH} {{
            double s = 0;
            for (long j = 0; j < m; j += 3) t[(7 * j + i) % m] += a[i*m+j] * a[i*m];
            {ROW} {{ s += t[j] * t[j]; t[j] = 0; }}
            y[i] = s;
        }}""", "free(t);"),
    "computed when it is wanted": (
        "double *t = malloc(m * 8); int *there = calloc(1, 4);",
        f"""schedule(dynamic)
        {EACH} {{
            if (!*there) {{ {ROW} t[j] = exp(0.1 * a[j]); *there = 1; }}
            double s = 0;
            {ROW} s += t[j] * a[i*m+j];
            y[i] = s;
        }}""", "free(t); free(there);"),
    "beside atomic updates": (
        f"\n#pragma omp for\n{EACH} y[i] = 0;\ndouble *t = malloc(m * 8);",
        f"schedule(dynamic)\n{EACH} {{ {FILL}\n#pragma omp atomic\ny[(3 * i) % n] += s;\n}}", "free(t);"),
    "half of it": (
        "double *whole = malloc(2 * m * 8), *t = whole + m;",
        f"schedule(dynamic)\n{EACH} {{ {ROW} whole[j] = a[i*m+j]; {FILL} y[i] = s + whole[1]; }}", "free(whole);"),
    "reserved under a condition": (
        "double *t = 0; if (m > 2) t = malloc(m * 8);",
        f"schedule(dynamic)\n{EACH} {{ double s = 1; if (t) {{ {ROW} t[j] = sin(a[i*m+j]); {ROW} s += t[j] * t[0]; }} "
        "y[i] = s; }", "if (t) free(t);"),
    "an end that was searched": (
        "double *t = malloc(m * 8), *end = t; for (; end != t + m; end++) *end = a[end - t];",
        f"schedule(dynamic)\n{EACH} {{ double s = 0; {ROW} t[j] *= a[i*m+j]; "
        f"for (double *p = t; p != end; p++) s += *p * *p; {ROW} t[j] = a[j]; y[i] = s; }}", "free(t);"),
}  # fmt: skip
A = np.random.default_rng(2).normal(size=(67, 11))


def text_of(case: tuple[str, str, str]) -> str:
    """The function of a case: before the loop, the loop, behind it."""
    before, loop, behind = case
    return f"{HEAD}\n#pragma omp parallel\n{{\n{before}\n#pragma omp for {loop}\n{behind}\n}}\n}}\n"
