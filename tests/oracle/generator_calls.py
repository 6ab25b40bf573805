"""Makers of the random kernels: helpers, recursion, function pointers."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .generator_parts import Expressions, Node, makers

HELPERS = (
    "double {h}(double a, double b, const double *p, int m) {{ double s = a; for (int i = 0; i < m; i++) s = 0.7 * s + 0.3 *"
    " sin(p[i] * b); return s; }}",
    "double {h}(double a, double b, const double *p, int m) {{ if (a > b) return 0.8 * a * cos(b); for (int i = 0; i < m; i++)"
    " {{ a = tanh(a + p[i]); if (a > 0.9) return a * p[0]; }} return a - 0.5 * b; }}",
    "double {h}(double a, double b, const double *p, int m) {{ double t[3] = {{a, b, p[0]}}; for (int i = 0; i < m; i++) t[i % 3]"
    " = 0.5 * t[(i + 1) % 3] + 0.4 * t[(i + 2) % 3] * p[i]; return t[m % 3]; }}",
)


def _helper_name(g: Expressions, texts: tuple[str, ...] = HELPERS) -> str:
    h = f"{g.name}_{g.new('h')}"
    inline = g.rng.choice(("__attribute__((noinline)) ", "__attribute__((noinline)) ", ""))
    g.head.append(f"static {inline}" + g.rng.choice(texts).format(h=h))
    return h


def _helper(g: Expressions) -> Node:
    h = _helper_name(g)
    name = g.rng.choice(("x", "y"))
    m = g.extents[name]
    one = f"{g.target()} = {h}({g.expr(1)}, {g.leaf()}, {name}, {g.rng.choice((str(m), 'c0 % ' + str(m), '3'))});"
    if g.rng.random() < 0.4:
        i = g.new("i")
        return (f"for (int {i} = 0; {i} < 3; {i}++) {{", (one,), "}", False)
    return one


OUT_HELPERS = (
    "void {h}(double *o, const double *p, int m, double s) {{ for (int i = 0; i < m; i++) o[i] = 0.5 * o[i] + 0.5 * sin(p[i] * s);"
    " }}",
    "void {h}(double *o, const double *p, int m, double s) {{ for (int i = 1; i < m; i++) {{ o[i] = 0.6 * o[i - 1] + 0.3 * p[i] * s;"
    " if (o[i] > 1.0) break; }} o[0] = tanh(s); }}",
)


def _out_helper(g: Expressions) -> Node:
    h = _helper_name(g, OUT_HELPERS)
    m = min(g.extents["x"], g.extents["y"])
    source = g.rng.choice(("x", "y"))
    return f"{h}(y, {source}, {m}, {g.leaf()});"


def _early_helper(g: Expressions) -> Node:
    h = f"{g.name}_{g.new('h')}"
    g.head.append(
        f"static double {h}(const double *p, int m, double lim) {{ double s = 0; for (int i = 0; i < m; i++) for (int j = 0; j < m;"
        f" j++) {{ s = 0.8 * s + 0.3 * p[i] * p[j]; if (s > lim) return s * p[j]; if (p[i] < -1.0) goto out; }} s *= 0.5; out: return"
        " s; }"
    )
    return f"d1 = 0.5 * d1 + 0.5 * {h}(x, {g.extents['x']}, {g.rng.random():.3f});"


def _recursion(g: Expressions) -> Node:
    h = f"{g.name}_{g.new('r')}"
    g.head.append(
        f"static double {h}(const double *p, double a, int d) {{ if (d <= 0) return sin(a * p[0]); double l = {h}(p, 0.9 * a + 0.1 *"
        f" p[d % 4], d - 1); return 0.5 * l + 0.3 * a * {h}(p, 0.5 * l, d - 2); }}"
    )
    return f"d3 = {h}(x, {g.leaf()}, c0 % 5);"


def _mutual(g: Expressions) -> Node:
    a, b = f"{g.name}_{g.new('ma')}", f"{g.name}_{g.new('mb')}"
    g.head.append(
        f"static double {b}(double *p, int lo, int hi);\n"
        f"static double {a}(double *p, int lo, int hi) {{ if (hi - lo < 2) return p[lo]; int m = (lo + hi) / 2; double s = {b}(p, lo,"
        f" m); p[lo] = 0.5 * s; return 0.6 * s + 0.4 * {b}(p, m, hi); }}\n"
        f"static double {b}(double *p, int lo, int hi) {{ if (hi - lo < 2) return sin(p[lo]); double s = {a}(p, lo, lo + 1); return"
        f" 0.5 * s + 0.5 * s * {a}(p, lo + 1, hi); }}"
    )
    return f"d0 = 0.4 * d0 + 0.6 * {a}(y, 0, {g.extents['y']});"


def _table(g: Expressions) -> Node:
    t, names = f"{g.name}_{g.new('T')}", []
    forms = ("sin(a) * b", "0.5 * a * b", "a / (1.5 + b * b)", "tanh(a - b)", "0.6 * a + 0.4 * cos(b)")
    for form in g.rng.sample(forms, 3):
        h = f"{g.name}_{g.new('h')}"
        names.append(h)
        g.head.append(f"static double {h}(double a, double b) {{ return {form}; }}")
    g.head.append(f"static double (*const {t}[3])(double, double) = {{{', '.join(names)}}};")
    if g.rng.random() < 0.5:
        i = g.new("i")
        return f"for (int {i} = 0; {i} < 4; {i}++) d0 = {t}[IX(idx[{i}], 3)](d0, x[{i}]);"
    f = g.new("fn")
    return f"{{ double (*{f})(double, double) = {t}[IX(c0 + idx[0], 3)]; d1 = {f}(d1, {f}(d0, {g.leaf()})); }}"


MAKERS = makers(globals())
