"""Makers of the random kernels: trees, matrices, permutations, ring buffers, callbacks, objects with methods."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .generator_parts import Expressions, Node, makers


def _tree(g: Expressions) -> Node:
    s, i = f"struct {g.name}_{g.new('T')}", g.new("i")
    h = f"{g.name}_{g.new('h')}"
    g.head.append(
        f"{s} {{ double v; {s} *l, *r; }};\n"
        f"static {s} *{h}_put({s} *t, double v) {{ if (!t) {{ t = ({s} *)malloc(sizeof *t); t->v = v; t->l = t->r = 0; }} else if (v < t->v) t->l"
        f" = {h}_put(t->l, v); else t->r = {h}_put(t->r, v); return t; }}\n"
        f"static double {h}_sum({s} *t, double w) {{ if (!t) return 0.0; double s = w * t->v + {h}_sum(t->l, 0.6 * w) - 0.5 * {h}_sum(t->r, 0.7 * w *"
        f" t->v); free(t); return s; }}"
    )
    return (
        f"{{ {s} *root = 0; for (int {i} = 0; {i} < 5; {i}++) root = {h}_put(root, sin(x[{i}] + {i}) * {g.leaf()});",
        (f"d0 = 0.5 * d0 + 0.4 * {h}_sum(root, {g.leaf()});",),
        "}",
        False,
    )


def _matrix(g: Expressions) -> Node:
    a, c, m = g.new("a"), g.new("c"), g.rng.randint(2, 4)
    if g.rng.random() < 0.5:
        declare, free = (
            f"double (*{a})[{m}] = (double (*)[{m}])malloc(sizeof(double[{m}][{m}])); double {c}[{m}][{m}];",
            f"free({a}); }}",
        )
    else:
        declare, free = f"double {a}[{m}][{m}], {c}[{m}][{m}];", "}"
    use = g.rng.choice(
        (  # a product; elimination without pivots; a triangular solve in place
            f"for (int i = 0; i < {m}; i++) for (int j = 0; j < {m}; j++) {{ {c}[i][j] = 0; for (int k = 0; k < {m}; k++) {c}[i][j] += 0.3 * {a}[i][k] *"
            f" {a}[j][k]; }} d1 = 0.5 * d1 + 0.4 * {c}[IX(c0, {m})][{m - 1}];",
            f"memcpy({c}, {a}, sizeof {c}); for (int k = 0; k < {m}; k++) for (int i = k + 1; i < {m}; i++) {{ double f = {c}[i][k] / {c}[k][k]; for (int j"
            f" = k; j < {m}; j++) {c}[i][j] -= f * {c}[k][j]; }} d1 = 0.2 * {c}[{m - 1}][{m - 1}];",
            f"for (int i = 0; i < {m}; i++) {{ double s = y[i]; for (int j = 0; j < i; j++) s -= 0.3 * {a}[i][j] * y[j]; y[i] = 0.8 * s / {a}[i][i]; }}"
            f" {c}[0][0] = y[1]; d1 = {c}[0][0];",
        )
    )
    return (
        f"{{ {declare}",
        (
            f"for (int i = 0; i < {m}; i++) for (int j = 0; j < {m}; j++) {a}[i][j] = (i == j ? 2.5 : 0.2) + 0.3 * sin(x[IX(i * 2 + j, {g.extents['x']})] + j);",
            use,
        ),
        free,
        False,
    )


def _permute(g: Expressions) -> Node:
    p, m, i = g.new("p"), g.extents["y"], g.new("i")
    return (
        f"{{ int {p}[{m}]; double {p}v[{m}]; for (int {i} = 0; {i} < {m}; {i}++) {p}[{i}] = IX({i} * 3 + idx[0], {m});",
        (
            f"for (int {i} = 0; {i} < {m}; {i}++) {p}v[{i}] = 0.8 * y[{p}[{i}]] + 0.1 * {g.leaf()};",
            f"for (int {i} = 0; {i} < {m}; {i}++) {{ if (y[{i}] > y[{p}[{i}]]) {{ int t = {p}[{i}]; {p}[{i}] = {p}[0]; {p}[0] = t; }} y[{p}[{i}]] = 0.5 *"
            f" y[{p}[{i}]] + 0.4 * {p}v[{i}]; }}",
        ),
        "}",
        False,
    )


def _ring(g: Expressions) -> Node:
    r, i = g.new("r"), g.new("i")
    return (
        f"{{ double {r}[4] = {{0.1, 0.2}}; unsigned head = 0; for (int {i} = 0; {i} < (int)n + 5; {i}++) {{ double old = {r}[head & 3];",
        (
            f"{r}[head & 3] = 0.5 * old * {r}[(head + 1) & 3] + 0.5 * sin({g.leaf()} + 0.2 * {i}); head += 1 + ({i} & 1); d2 = 0.6 * d2 + 0.3 * old;",
        ),
        f"}} d2 += 0.2 * {r}[head & 3]; }}",
        False,
    )


def _flags(g: Expressions) -> Node:
    f, i, m = g.new("f"), g.new("i"), g.extents["y"]
    kind = g.rng.choice(("unsigned char", "_Bool", "int", "short"))
    return (
        f"{{ {kind} {f}[{m}]; for (int {i} = 0; {i} < {m}; {i}++) {f}[{i}] = y[{i}] * {g.leaf()} > 0.1;",
        (
            f"for (int {i} = 1; {i} < {m}; {i}++) {{ if ({f}[{i}] && !{f}[{i} - 1]) y[{i}] = 0.7 * y[{i}] + 0.2 * {g.leaf()}; else d0 = 0.8 * d0 + 0.1 * y[{i}]; }}",
        ),
        "}",
        False,
    )


def _flexible(g: Expressions) -> Node:
    s, p, i = f"struct {g.name}_{g.new('F')}", g.new("p"), g.new("i")
    g.head.append(f"{s} {{ int count; double last; double v[]; }};")
    return (
        f"{{ {s} *{p} = ({s} *)malloc(sizeof({s}) + (c0 + 2) * sizeof(double)); {p}->count = c0 + 2; {p}->last = {g.leaf()};",
        (
            f"for (int {i} = 0; {i} < {p}->count; {i}++) {{ {p}->v[{i}] = 0.6 * {p}->last + 0.4 * sin(x[IX({i}, {g.extents['x']})]); {p}->last = {p}->v[{i}]; }}",
            f"for (int {i} = {p}->count - 1; {i} >= 0; {i}--) d3 = 0.5 * d3 + 0.4 * {p}->v[{i}];",
        ),
        f"free({p}); }}",
        False,
    )


def _walk_write(g: Expressions) -> Node:
    p, m = g.new("p"), g.extents["y"]
    return f"{{ double *{p} = y, *{p}e = y + {m - 1}; while ({p} < {p}e) {{ *{p} = 0.6 * {p}[1] + 0.3 * *{p} * {g.leaf()}; {p} += ({g.condition()}) ? 2 : 1; }} }}"


def _callback(g: Expressions) -> Node:
    s, h = f"struct {g.name}_{g.new('C')}", f"{g.name}_{g.new('h')}"
    inline = g.rng.choice(("__attribute__((noinline)) ", ""))
    g.head.append(
        f"{s} {{ double scale, total; int calls; }};\n"
        f"static double {h}_f(double v, void *c) {{ {s} *s = ({s} *)c; s->calls++; s->total = 0.7 * s->total + 0.3 * v * s->scale; return sin(v + 0.2 * s->total); }}\n"
        f"static double {h}_g(double v, void *c) {{ {s} *s = ({s} *)c; return 0.5 * v * s->scale; }}\n"
        f"static {inline}double {h}_map(double (*f)(double, void *), void *c, const double *p, int m) {{ double s = 0; for (int i = 0; i < m; i++) s = 0.6 * s + 0.4 *"
        f" f(p[i], c); return s; }}"
    )
    c = g.new("c")
    return (
        f"{{ {s} {c} = {{{g.leaf()}, 0.1, 0}};",
        (
            f"d1 = 0.5 * d1 + 0.5 * {h}_map(({g.condition()}) ? {h}_f : {h}_g, &{c}, x, 5);",
            f"d2 = 0.5 * {h}_map({h}_f, &{c}, y, 3) + 0.3 * {c}.total + 0.01 * {c}.calls;",
        ),
        "}",
        False,
    )


def _methods(g: Expressions) -> Node:
    s, h, i = f"struct {g.name}_{g.new('M')}", f"{g.name}_{g.new('h')}", g.new("i")
    g.head.append(
        f"{s} {{ double (*run)({s} *, double); double p; }};\n"
        f"static double {h}_a({s} *o, double v) {{ return 0.8 * sin(v * o->p); }}\n"
        f"static double {h}_b({s} *o, double v) {{ o->p = 0.5 * o->p + 0.4 * v; return o->p * v; }}"
    )
    o = g.new("o")
    return (
        f"{{ {s} {o}[3]; for (int {i} = 0; {i} < 3; {i}++) {{ {o}[{i}].run = (idx[{i}] & 1) ? {h}_a : {h}_b; {o}[{i}].p = x[{i}]; }}",
        (
            f"for (int {i} = 0; {i} < 5; {i}++) {{ {s} *s = &{o}[IX(idx[IX({i}, 4)] + {i}, 3)]; d0 = 0.4 * d0 + 0.5 * s->run(s, {g.leaf()}); }}",
        ),
        "}",
        False,
    )


def _swap_helper(g: Expressions) -> Node:
    h, p, i = f"{g.name}_{g.new('h')}", g.new("p"), g.new("i")
    g.head.append(
        f"static __attribute__((noinline)) void {h}_swap(double **a, double **b) {{ double *t = *a; *a = *b; *b = t; }}\n"
        f"static __attribute__((noinline)) void {h}_step(const double *a, double *b, int m, double k) {{ for (int i = 1; i < m - 1; i++) b[i] = a[i] + k * (a[i - 1] - 2 * a[i]"
        f" + a[i + 1]) * a[i]; b[0] = 0.5 * a[1]; b[m - 1] = 0.5 * a[m - 2]; }}"
    )
    return (
        f"{{ double {p}a[5], {p}b[5], *{p} = {p}a, *{p}q = {p}b; for (int {i} = 0; {i} < 5; {i}++) {{ {p}a[{i}] = x[{i}]; {p}b[{i}] = 0.3 * y[{i}]; }}",
        (
            f"for (int {i} = 0; {i} < c0 + 1; {i}++) {{ {h}_step({p}, {p}q, 5, 0.2 * {g.leaf()}); {h}_swap(&{p}, &{p}q); }}",
            f"d3 = 0.4 * {p}[2] + 0.4 * {p}[IX(idx[3], 5)];",
        ),
        "}",
        False,
    )


def _early_return(g: Expressions) -> Node:
    if g.returns:
        return f"if ({g.condition()}) return 0.5 * {g.expr(1)} + 0.3 * d0;"
    return f"if ({g.condition()}) {{ y[1] = 0.5 * {g.expr(1)} + 0.3 * d0; return; }}"


def _prints(g: Expressions) -> Node:
    return f'if (d0 > 40.0) printf("%g\\n", d0); assert(d1 == d1 && c0 < 100); d0 = 0.7 * d0 + 0.2 * {g.leaf()};'


MAKERS = makers(globals())
