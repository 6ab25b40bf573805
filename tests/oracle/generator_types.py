"""Makers of the random kernels: complex numbers, vectors, long double, atomics, structs by value, tagged unions."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .generator_parts import Expressions, Node, makers


def _complex_numbers(g: Expressions) -> Node:
    q, i = g.new("q"), g.new("i")
    form = g.rng.choice(
        (
            f"0.4 * {q} * {q} + 0.3 * x[IX({i}, {g.extents['x']})] * I",
            f"{q} / (1.5 + {g.leaf()} * {g.leaf()} + 0.4 * {q})",
            f"cexp(0.3 * {q} - 0.2)",
            f"csqrt(2.0 + 0.5 * {q})",
            f"conj({q}) * (0.5 + 0.3 * {g.leaf()} * I)",
        )
    )
    return (
        f"{{ double complex {q} = {g.expr(1)} + {g.leaf()} * I;",
        (
            f"for (int {i} = 0; {i} < 3; {i}++) {q} = {form};",
            f"d0 = 0.5 * creal({q}) + 0.3 * d0; d1 = 0.5 * cimag({q}) + 0.2 * cabs({q} + 1.5);",
        ),
        "}",
        False,
    )


def _vectors(g: Expressions) -> Node:
    v, i = f"{g.name}_V", g.new("i")
    if not any(f"{v} __" in h for h in g.head):
        g.head.append(f"typedef double {v} __attribute__((vector_size(32)));")
    a, b = g.new("v"), g.new("v")
    order = ", ".join(str(g.rng.randrange(8)) for _ in range(4))
    step = g.rng.choice(
        (
            f"{a} = 0.5 * {a} * {b} + 0.3 * {b};",
            f"{a} = {a} / (1.5 + {b} * {b});",
            f"{a} = 0.6 * {a} - 0.4 * {b} * {g.leaf()};",
        )
    )
    return (
        f"{{ {v} {a} = {{{g.leaf()}, {g.expr(1)}, {g.leaf()}, 0.5}}, {b};",
        (
            f"memcpy(&{b}, x, sizeof {b});",
            f"for (int {i} = 0; {i} < 3; {i}++) {{ {step} {b} = __builtin_shufflevector({a}, {b}, {order}); {a}[{i}] = 0.9 * {b}[3 - {i}]; }}",
            f"d2 = 0.5 * {a}[IX(c0, 4)] + 0.3 * {b}[1] * {a}[2];",
        ),
        "}",
        False,
    )


def _long_double(g: Expressions) -> Node:
    s, i = g.new("s"), g.new("i")
    return (
        f"{{ long double {s} = {g.leaf()};",
        (
            f"for (int {i} = 0; {i} < 4; {i}++) {s} = 0.6L * {s} * x[{i}] + 0.4L * {g.leaf()};",
            f"d3 = 0.5 * (double){s};",
        ),
        "}",
        False,
    )


def _atomics(g: Expressions) -> Node:
    i, m = g.new("i"), g.extents["y"]
    if g.rng.random() < 0.5:
        return f"for (int {i} = 0; {i} < 4; {i}++) *(_Atomic double *)&y[IX({i} * 2 + c0, {m})] += 0.2 * {g.expr(1)};"
    q = g.new("q")
    return f"{{ _Atomic double {q} = d0; for (int {i} = 0; {i} < 3; {i}++) {q} -= 0.3 * {q} * {g.leaf()}; {q} = 0.5 * {q} + d1; d0 = 0.5 * {q}; }}"


def _results_by_pointer(g: Expressions) -> Node:
    return g.rng.choice(
        (
            f"{{ double whole; d0 = modf(1.7 * {g.expr(1)}, &whole) + 0.1 * whole; }}",
            f"{{ int e; d1 = 0.8 * frexp({g.leaf()} + 2.6, &e); c0 = (c0 + e) & 7; }}",
            f"{{ int e; d2 = 0.8 * remquo({g.expr(1)}, 0.9 + 0.1 * {g.leaf()}, &e) + 0.1 * (e & 1); }}",
            f"{{ int k = (int)floor(2.0 * {g.expr(1)}) + 8; d3 = 0.6 * y[IX(k, {g.extents['y']})] + 0.1 * (k & 3) * {g.leaf()}; }}",
        )
    )


STRUCTS = (
    ("double a, b;", "{p}.a, {p}.b"),
    ("double a; int k; double b;", "{p}.a, {p}.b"),
    ("float c; double a; double b; double v[3];", "{p}.a, {p}.b"),
    ("double a; float b; float c;", "{p}.a, {p}.b"),
    ("float a, b;", "{p}.a, {p}.b"),
)


def _by_value(g: Expressions) -> Node:
    fields = g.rng.choice(STRUCTS)[0]
    s, h = f"struct {g.name}_{g.new('B')}", f"{g.name}_{g.new('h')}"
    inline = g.rng.choice(("__attribute__((noinline)) ", ""))
    p, i = g.new("p"), g.new("i")
    g.head.append(f"{s} {{ {fields} }};")
    g.head.append(
        f"static {inline}{s} {h}({s} s, double t) {{ double old = s.a; s.a = 0.8 * sin(s.a + 0.3 * t); s.b = 0.5 * s.b * old + 0.3 * t; return s; }}"
    )
    return (
        f"{{ {s} {p} = {{0}}; {p}.a = {g.leaf()}; {p}.b = {g.leaf()};",
        (f"for (int {i} = 0; {i} < 3; {i}++) {p} = {h}({p}, x[{i}]);", f"d1 = 0.5 * {p}.a + 0.5 * {p}.b;"),
        "}",
        False,
    )


def _tagged(g: Expressions) -> Node:
    a, i = g.new("t"), g.new("i")
    return (
        f"{{ struct {{ int tag; union {{ double d; long k; double p[2]; }} u; }} {a}[4]; memset({a}, 0, sizeof {a});",
        (
            f"for (int {i} = 0; {i} < 4; {i}++) {{ {a}[{i}].tag = IX(idx[{i}], 3); if ({a}[{i}].tag == 0) {a}[{i}].u.d = sin(x[{i}]);"
            f" else if ({a}[{i}].tag == 1) {a}[{i}].u.k = idx[{i}]; else {{ {a}[{i}].u.p[0] = {g.leaf()}; {a}[{i}].u.p[1] = 0.5 * x[{i}]; }} }}",
            f"for (int {i} = 0; {i} < 4; {i}++) d2 = 0.5 * d2 + 0.4 * ({a}[{i}].tag == 0 ? {a}[{i}].u.d : {a}[{i}].tag == 1 ? 0.1 *"
            f" (double){a}[{i}].u.k : {a}[{i}].u.p[0] * {a}[{i}].u.p[1]);",
        ),
        "}",
        False,
    )


MAKERS = makers(globals())
