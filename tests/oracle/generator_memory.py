"""Makers of the random kernels: arrays, structs, unions, heap, globals."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .generator_parts import Expressions, Node, makers


def _inplace(g: Expressions) -> Node:
    i, m = g.new("i"), g.extents["y"]
    name = g.rng.choice(("y", "y", "w")) if "w" in g.extents else "y"
    m = g.extents[name]
    forms = (
        f"{name}[{i}] = {name}[{i}-1] * {name}[{i}+1];",
        f"{name}[{i}] = 0.5 * {name}[{i}-1] + 0.3 * sin({name}[{i}]) - 0.2 * {name}[{i}+1];",
        f"{name}[{i}+1] = tanh({name}[{i}] + 0.4 * {name}[{i}-1] * {name}[{i}+1]);",
        f"{{ double t = {name}[{i}]; {name}[{i}] = {name}[{i}-1]; {name}[{i}-1] = 0.9 * t * cos({name}[{i}+1]); }}",
    )
    form = g.rng.choice(forms)
    if g.rng.random() < 0.4:
        s = g.new("i")
        return (f"for (int {s} = 0; {s} < 3; {s}++)", (f"for (int {i} = 1; {i} < {m - 1}; {i}++) {form}",), "", False)
    if g.rng.random() < 0.3:
        return f"for (int {i} = {m - 2}; {i} >= 1; {i}--) {form}"
    return f"for (int {i} = 1; {i} < {m - 1}; {i}++) {form}"


def _local_array(g: Expressions) -> Node:
    t, i, m = g.new("t"), g.new("i"), g.rng.randint(3, 6)
    g.counters.append(i)
    fill, use = g.expr(2), g.expr(1)
    g.counters.pop()
    return (
        f"{{ double {t}[{m}];",
        (
            f"for (int {i} = 0; {i} < {m}; {i}++) {t}[{i}] = {fill};",
            f"for (int {i} = 0; {i} < {m}; {i}++) {t}[{g.index(m)}] = 0.5 * {t}[{i}] + 0.4 * {use};",
            f"d1 = 0.5 * d1 + 0.5 * {t}[{g.index(m)}] * {t}[{g.index(m)}];",
        ),
        "}",
        False,
    )


def _vla(g: Expressions) -> Node:
    t, i = g.new("t"), g.new("i")
    g.counters.append(i)
    fill = g.expr(2)
    g.counters.pop()
    return (
        f"{{ int m = c0 + 2; double {t}[m];",
        (
            f"for (int {i} = 0; {i} < m; {i}++) {t}[{i}] = {fill};",
            f"for (int {i} = 1; {i} < m; {i}++) {t}[{i}] += 0.5 * {t}[{i} - 1];",
            f"d2 = tanh({t}[m - 1]);",
        ),
        "}",
        False,
    )


def _struct_type(g: Expressions) -> str:
    s = f"{g.name}_S"
    if not any(s in h for h in g.head):
        fields = ["double p;", "float q;", "int k;", "double v[2];", "double *r;"]
        g.rng.shuffle(fields)
        g.head.append(f"struct {s} {{ {' '.join(fields)} }};")
    return f"struct {s}"


def _struct(g: Expressions) -> Node:
    s, a, b = _struct_type(g), g.new("s"), g.new("s")
    copy = g.rng.choice((f"{b} = {a};", f"memcpy(&{b}, &{a}, sizeof {b});"))
    return (
        f"{{ {s} {a} = {{0}}, {b};",
        (
            f"{a}.p = {g.expr()}; {a}.q = (float)({g.expr(1)}); {a}.k = idx[1]; {a}.v[0] = {g.leaf()}; {a}.v[1] = {g.leaf()};"
            f" {a}.r = y + IX({a}.k, {g.extents['y']});",
            f"{copy}",
            f"{a}.p = {g.leaf()}; {b}.v[IX({b}.k, 2)] *= 0.7;",
            f"d0 = 0.5 * {b}.p + 0.2 * {b}.q + 0.1 * {b}.v[0] * {b}.v[1] + 0.1 * *{b}.r;",
            f"*{b}.r = sin({a}.p + {b}.q);",
        ),
        "}",
        False,
    )


def _struct_array(g: Expressions) -> Node:
    s, a, i, m = _struct_type(g), g.new("s"), g.new("i"), g.rng.randint(3, 5)
    swap = g.rng.choice(
        (
            f"{{ {s} t = {a}[{i}]; {a}[{i}] = {a}[{i} - 1]; {a}[{i} - 1] = t; }}",
            f"{{ {s} t; memcpy(&t, &{a}[{i}], sizeof t); memcpy(&{a}[{i}], &{a}[{i} - 1], sizeof t); {a}[{i} - 1] = t; }}",
        )
    )
    return (
        f"{{ {s} *{a} = ({s} *)malloc({m} * sizeof({s}));",
        (
            (
                f"for (int {i} = 0; {i} < {m}; {i}++) {{",
                (
                    f"memset(&{a}[{i}], 0, sizeof({s})); {a}[{i}].p = sin(x[IX({i}, {g.extents['x']})] + {i}); {a}[{i}].q ="
                    f" (float)(0.5 * {a}[{i}].p * {g.leaf()}); {a}[{i}].k = {i};",
                    f"{a}[{i}].v[0] = {a}[{i}].p * 0.5; {a}[{i}].v[1] = {g.leaf()}; {a}[{i}].r = &{a}[{i}].v[{i} & 1];",
                ),
                "}",
                False,
            ),
            (
                f"for (int {a}r = 0; {a}r < {m}; {a}r++) for (int {i} = 1; {i} < {m}; {i}++)",
                (f"if ({a}[{i}].p < {a}[{i} - 1].p) {swap}",),
                "",
                False,
            ),
            f"for (int {i} = 0; {i} < {m}; {i}++) d1 = 0.6 * d1 + 0.2 * {a}[{i}].p * ({i} + 1) / {m}.0 + 0.1 * {a}[{i}].q +"
            f" 0.1 * {a}[{i}].v[1] + 0.05 * {a}[{i}].k;",
        ),
        f"free({a}); }}",
        False,
    )


def _swap(g: Expressions) -> Node:
    p, q, t, i, m = g.new("p"), g.new("p"), g.new("t"), g.new("i"), g.rng.randint(4, 6)
    steps = g.rng.choice(("3", "(int)n", "2"))
    return (
        f"{{ double {t}a[{m}], {t}b[{m}]; double *{p} = {t}a, *{q} = {t}b;",
        (
            f"for (int {i} = 0; {i} < {m}; {i}++) {{ {p}[{i}] = x[IX({i}, {g.extents['x']})]; {q}[{i}] = 0.1 * y[IX({i}, "
            f"{g.extents['y']})]; }}",
            (
                f"for (int {t} = 0; {t} < {steps}; {t}++) {{",
                (
                    f"for (int {i} = 1; {i} < {m - 1}; {i}++) {q}[{i}] = {p}[{i}] - 0.2 * {p}[{i}] * ({p}[{i}] - {p}[{i} - 1]) +"
                    f" 0.1 * ({p}[{i} + 1] - 2 * {p}[{i}] + {p}[{i} - 1]);",
                    f"{{ double *s = {p}; {p} = {q}; {q} = s; }}",
                ),
                "}",
                False,
            ),
            f"for (int {i} = 0; {i} < {m}; {i}++) d2 = 0.7 * d2 + 0.3 * {p}[{i}];",
        ),
        "}",
        False,
    )


def _rows(g: Expressions) -> Node:
    r, i, m = g.new("r"), g.new("i"), g.rng.randint(2, 4)
    heap = g.rng.random() < 0.6
    fill = f"{r}[{i}][j] = sin(x[IX({i} + 2 * j, {g.extents['x']})] * ({i} + 1));"
    swap = f"{{ double *s = {r}[0]; {r}[0] = {r}[IX(idx[1], {m})]; {r}[IX(idx[1], {m})] = s; }}"
    alloc = "(double *)malloc(3 * sizeof(double))" if heap else f"{r}s + 3 * {i}"
    outer = (
        f"double **{r} = (double **)malloc({m} * sizeof(double *));" if heap else f"double {r}s[{3 * m}], *{r}[{m}];"
    )
    free = f"for (int {i} = 0; {i} < {m}; {i}++) free({r}[{i}]); free({r}); }}" if heap else "}"
    return (
        f"{{ {outer} for (int {i} = 0; {i} < {m}; {i}++) {r}[{i}] = {alloc};",
        (
            f"for (int {i} = 0; {i} < {m}; {i}++) for (int j = 0; j < 3; j++) {fill}",
            swap,
            f"for (int {i} = 1; {i} < {m}; {i}++) for (int j = 0; j < 3; j++) {r}[{i}][j] = 0.5 * {r}[{i}][j] * {r}[{i} - 1][2 - j] +"
            f" 0.3 * {g.leaf()};",
            f"d3 = 0.5 * d3 + 0.5 * {r}[{m - 1}][IX(c0, 3)];",
        ),
        free,
        False,
    )


def _heap(g: Expressions) -> Node:
    h, i, m = g.new("h"), g.new("i"), g.rng.choice(("6", "(c0 + 2)"))
    alloc = g.rng.choice((f"(double *)malloc({m} * sizeof(double))", f"(double *)calloc({m}, sizeof(double))"))
    return (
        f"{{ double *{h} = {alloc}; for (int {i} = 0; {i} < {m}; {i}++) {h}[{i}] = 0.5 * x[IX({i}, {g.extents['x']})];",
        (
            f"for (int {i} = 1; {i} < {m}; {i}++) {h}[{i}] = sin({h}[{i} - 1] + {g.leaf()}) * {h}[{i}];",
            *g.body(1, 1),
            f"y[{g.index(g.extents['y'])}] = 0.5 * {h}[{m} - 1] + 0.5 * {h}[0] * {h}[1];",
        ),
        f"free({h}); }}",
        False,
    )


def _realloc(g: Expressions) -> Node:
    h, i = g.new("h"), g.new("i")
    return (
        f"{{ int cap = 2, m = 0; double *{h} = (double *)malloc(cap * sizeof(double)); {h}[0] = x[0];",
        (
            (
                f"for (int {i} = 0; {i} < (int)n + 3; {i}++) {{",
                (
                    f"if (m == cap) {{ cap *= 2; {h} = (double *)realloc({h}, cap * sizeof(double)); }}"
                    f" {h}[m++] = sin({g.leaf()} + 0.3 * {i});",
                ),
                "}",
                False,
            ),
            f"for (int {i} = 1; {i} < m; {i}++) {h}[{i}] += 0.5 * {h}[{i} - 1] * {h}[{i}];",
            f"if (m > 0) d2 = 0.5 * d2 + 0.3 * {h}[m - 1];",
        ),
        f"free({h}); }}",
        False,
    )


def _heap_loop(g: Expressions) -> Node:
    h, i = g.new("h"), g.new("i")
    return (
        f"for (int {i} = 0; {i} < (int)n; {i}++) {{ double *{h} = (double *)malloc(({i} + 2) * sizeof(double));",
        (
            f"for (int j = 0; j < {i} + 2; j++) {h}[j] = cos(x[IX(j + {i}, {g.extents['x']})] * d0);",
            f"for (int j = 0; j < {i} + 1; j++) {h}[j + 1] = 0.6 * {h}[j] * {h}[j + 1];\n"
            f"d0 = 0.5 * d0 + 0.5 * {h}[{i} + 1];",
        ),
        f"free({h}); }}",
        False,
    )


def _union(g: Expressions) -> Node:
    r = g.rng.random()
    if r < 0.35:  # |a| by masking
        return (
            f"{{ union {{ double d; unsigned long long i; }} q; q.d = {g.expr()}; q.i &= 0x7fffffffffffffffULL; d2 = 0.8 * q.d +"
            f" 0.1 * {g.leaf()}; }}"
        )
    if r < 0.6:  # a flipped sign
        return (
            f"{{ unsigned long long q; double v = {g.expr()}; memcpy(&q, &v, 8); q ^= 0x8000000000000000ULL; memcpy(&v, &q, 8);"
            f" d2 = 0.7 * v * {g.leaf()}; }}"
        )
    if r < 0.8:  # the sign of b on a
        return (
            f"{{ unsigned long long p, q; double v = {g.expr(1)}, s = {g.leaf()}; memcpy(&p, &v, 8); memcpy(&q, &s, 8); p = (p &"
            " 0x7fffffffffffffffULL) | (q & 0x8000000000000000ULL); memcpy(&v, &p, 8); d3 = 0.9 * v; }"
        )
    return (
        f"{{ union {{ double v[2]; struct {{ double a, b; }} s; }} q; q.s.a = {g.expr()}; q.s.b = {g.leaf()}; d3 = 0.5 * q.v[IX(c0, 2)]"
        " + 0.4 * q.v[1]; }"
    )


def _const_table(g: Expressions) -> Node:
    t = f"{g.name}_{g.new('C')}"
    g.head.append(f"static const double {t}[6] = {{{', '.join(g.number() for _ in range(6))}}};")
    i = g.new("i")
    return (
        f"for (int {i} = 0; {i} < 6; {i}++) {g.rng.choice(('d1', 'd2'))} = 0.6 * d1 + 0.4 * {t}[{i}] *"
        f" {t}[IX(idx[1] + {i}, 6)] * x[IX({i}, {g.extents['x']})];"
    )


def _global(g: Expressions) -> Node:
    t, i = f"{g.name}_{g.new('G')}", g.new("i")
    g.head.append(f"static double {t}[4];")
    if g.rng.random() < 0.5:
        h = f"{g.name}_{g.new('h')}"
        g.head.append(
            f"static __attribute__((noinline)) void {h}(double v, int k) {{ {t}[IX(k, 4)] = 0.5 * {t}[IX(k + 1, 4)] + 0.5 * v; }}"
        )
        step = f"{h}({g.leaf()}, {i} + c0);"
    else:
        step = f"{t}[IX({i} * 3 + c0, 4)] = 0.4 * {t}[IX({i} + 1, 4)] + sin({g.leaf()});"
    return (
        f"for (int {i} = 0; {i} < 4; {i}++) {t}[{i}] = 0.2 * x[{i}];",
        (f"for (int {i} = 0; {i} < 5; {i}++) {step}",),
        f"d0 = 0.5 * d0 + 0.3 * {t}[1] + 0.2 * {t}[IX(c0, 4)];",
        False,
    )


def _memset(g: Expressions) -> Node:
    m = g.extents["y"]
    lo = g.rng.randint(0, m - 3)
    return (
        "{",
        (f"memset(y + {lo}, 0, 2 * sizeof(double));", *g.body(1, 1), f"y[{lo}] += {g.expr(1)};"),
        "}",
        True,
    )


def _memmove(g: Expressions) -> Node:
    m = g.extents["y"]
    a, b = g.rng.choice(((0, 1), (1, 0), (0, 2), (2, 0)))
    t = g.new("t")
    if g.rng.random() < 0.4:
        return (
            f"{{ double {t}[{m}]; memcpy({t}, y, sizeof {t}); for (int i = 0; i < {m}; i++) y[i] = 0.8 * {t}[{m - 1} - i] + 0.1 *"
            f" {g.leaf()}; }}"
        )
    return f"memmove(y + {a}, y + {b}, {m - 2} * sizeof(double)); y[1] = 0.5 * y[1] + 0.4 * {g.leaf()};"


def _pointer_walk(g: Expressions) -> Node:
    p, m = g.new("p"), g.extents["x"]
    return (
        f"{{ const double *{p} = x; const double *e = x + {m}; while ({p} != e) {{ d2 = 0.7 * d2 + 0.3 * *{p}++; }} }}"
    )


def _pointer_select(g: Expressions) -> Node:
    p = g.new("p")
    return (
        f"{{ double *{p} = ({g.condition()}) ? y : y + 2; double *q = idx[2] > 3 ? &d1 : {p} + 1;"
        f" *{p} = 0.5 * *q + 0.4 * {g.leaf()}; *q = sin(*q) + 0.1 * {p}[0]; }}"
    )


def _list(g: Expressions) -> Node:
    s = f"struct {g.name}_N"
    if not any(s + " {" in h for h in g.head):
        g.head.append(f"{s} {{ double v; {s} *next; }};")
    i = g.new("i")
    return (
        f"{{ {s} *head = 0; for (int {i} = 0; {i} < (int)n + 1; {i}++) {{ {s} *e = ({s} *)malloc(sizeof *e); e->v = sin(x[IX({i}, "
        f"{g.extents['x']})]); e->next = head; head = e; }}",
        (
            f"for ({s} *e = head; e && e->next; e = e->next) e->v = 0.5 * e->v + 0.4 * e->next->v * {g.leaf()};",
            f"for ({s} *e = head; e; e = e->next) d2 = 0.6 * d2 + 0.4 * e->v;",
        ),
        f"while (head) {{ {s} *e = head->next; free(head); head = e; }} }}",
        False,
    )


MAKERS = makers(globals())
