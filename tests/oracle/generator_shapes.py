"""Makers of the random kernels: nests, gathers and long loops of sizes that are known at run time, odd counters, arguments
that are one another's memory. What wide derivatives rearrange."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from .generator_parts import SHAPES, Expressions, Node

_KINDS = ("int", "long", "unsigned", "size_t", "unsigned short", "short")


def _count(g: Expressions, most: int) -> str:
    """A number of iterations, perhaps none."""
    return g.rng.choice((f"IX(c0 + {g.rng.randint(0, 9)}, {most})", f"IX(idx[{g.rng.randrange(4)}] * 3, {most})", f"IX(2 * c0 + idx[1], {most})", str(most)))


def _for(g: Expressions, i: str, stop: str) -> str:
    """The head of a loop over [0, stop), in some order and with some counter."""
    kind = g.rng.choice(_KINDS)
    return g.rng.choice((
        f"for ({kind} {i} = 0; {i} < ({kind})({stop}); {i}++)",
        f"for ({kind} {i} = ({kind})({stop}); {i}-- > 0;)",
        f"for (int {i} = (int)({stop}) - 1; {i} >= 0; {i}--)",
        f"for ({kind} {i} = 0; {i} != ({kind})({stop}); ++{i})",
    ))  # fmt: skip


def _x(g: Expressions, at: str) -> str:
    return f"x[IX({at}, {g.extents['x']})]"


def _matvec(g: Expressions) -> Node:
    a, v, r, i, j = (g.new(p) for p in ("m", "v", "r", "i", "j"))
    m, k = f"{a}m", f"{a}k"
    at = g.rng.choice((f"{i} * {k} + {j}", f"{j} * {m} + {i}", f"({m} - 1 - {i}) * {k} + {j}", f"{i} * {k} + ({k} - 1 - {j})"))
    inner = g.rng.choice((
        f"{{ double s = {g.number()}; {_for(g, j, k)} s += {a}[{at}] * {v}[{j}]; {r}[{i}] = 0.5 * sin(s); }}",
        f"{{ double t = 0.3 * {r}[{i}]; {_for(g, j, k)} {v}[{j}] += t * {a}[{at}]; }}",
        f"{{ double t = 0.3 * {r}[{i}], s = 0; {_for(g, j, k)} {{ s += {a}[{at}] * {v}[{j}]; {v}[{j}] = 0.9 * {v}[{j}] + t * {a}[{at}]; }} {r}[{i}] = tanh(s); }}",
        f"{{ {r}[{i}] *= 0.5; {_for(g, j, k)} {r}[{i}] += 0.2 * {a}[{at}] * {v}[{j}]; }}",
        f"{{ {_for(g, j, k)} {v}[{j}] = 0.5 * {v}[{j}] + 0.3 * {a}[{at}] * {v}[{k} - 1 - {j}]; {r}[{i}] += 0.1 * {v}[0]; }}",
    ))  # fmt: skip
    return (
        f"{{ int {m} = {_count(g, 7)}, {k} = {_count(g, 9)}; double *{a} = (double *)malloc(({m} * {k} + 1) * 8), *{v} = (double *)malloc(({k} + 1) * 8), *{r} = (double *)malloc(({m} + 1) * 8);",
        (
            f"for (int {i} = 0; {i} < {m} * {k} + 1; {i}++) {a}[{i}] = 0.5 * {_x(g, i)} * {_x(g, f'{i} + 3')};",
            f"for (int {i} = 0; {i} < {k} + 1; {i}++) {v}[{i}] = 0.4 * {_x(g, f'{i} * 2 + 1')}; for (int {i} = 0; {i} < {m} + 1; {i}++) {r}[{i}] = 0.3 * {g.leaf()};",
            f"{_for(g, i, m)} {inner}",
            f"d0 = 0.5 * d0 + 0.2 * {r}[IX(c0, {m} + 1)] + 0.2 * {v}[IX(idx[2], {k} + 1)]; y[1] = 0.5 * y[1] + 0.2 * {r}[0];",
        ),
        f"free({a}); free({v}); free({r}); }}",
        False,
    )


def _gather(g: Expressions) -> Node:
    p, i, j = g.new("p"), g.new("i"), g.new("j")
    row = g.rng.choice((1, 3, 4))
    steps = "; ".join(f"s = {g.rng.choice(('0.5 * s + 0.4 * sin(s + {0})', 's * cos(0.3 * {0})', '0.6 * s + 0.3 * {0} * s', 'sqrt(1.0 + s * s) - 0.5 * {0}')).format(_x(g, f'{i} + {q}'))}" for q in range(4))
    many = g.rng.choice(("4", "4", "IX(c0, 5)", "IX(idx[0], 5)"))
    read = g.rng.choice((f"{p}[{row} * idx[{i}]{' + 1' if row > 1 else ''}]", f"{p}[{row} * idx[3 - {i}]]", f"{p}[{row} * (idx[{i}] + 1) - 1]"))
    guard = g.rng.choice(("", "", "if (c0 > 1) ", f"if (idx[{i}] > 2) ", "if (d0 > 0) "))
    between = g.rng.choice(("", f"{p}[3] = 0.5 * {g.leaf()};", f"for (int {j} = 0; {j} < 2; {j}++) {p}[{j}] *= 0.7;"))
    return (
        f"{{ int {p}n = 9 + c0; double *{p} = (double *)malloc({p}n * {row} * 8);",
        (
            f"{_for(g, i, f'{p}n')} {{ double s = {_x(g, i)}; for (int {j} = 0; {j} < 3; {j}++) {{ {steps}; }} for (int {j} = 0; {j} < {row}; {j}++) {p}[{row} * {i} + {j}] = 0.5 * tanh(s) * ({j} + 1); }}",
            between,
            f"for (int {i} = 0; {i} < {many}; {i}++) {guard}d1 = 0.6 * d1 + 0.3 * {read};",
        ),
        f"free({p}); }}",
        False,
    )


def _long_loop(g: Expressions) -> Node:
    t, i = g.new("t"), g.new("i")
    step = g.rng.choice(("exp(-{0} * {0})", "sqrt(1.0 + {0} * {0})", "0.5 * sin({0}) / (1.5 + cos({0}))", "log(1.5 + {0} * {0})"))
    use = g.rng.choice((
        f"d2 = 0.9 * d2 + 0.02 * {t}[{i}] * {_x(g, i)};",
        f"y[IX({i}, {g.extents['y']})] = 0.9 * y[IX({i}, {g.extents['y']})] + 0.03 * {t}[{i}];",
        f"if ({t}[{i}] > 0.5) d2 = 0.95 * d2 + 0.02 * {t}[{i}]; else d3 = 0.97 * d3 - 0.01 * {t}[{i}];",
    ))  # fmt: skip
    return (
        f"{{ int {t}n = {g.rng.choice((58, 61, 64, 120))} + {g.rng.choice(('c0', '2 * idx[1]'))}; double *{t} = (double *)malloc({t}n * 8);",
        (
            f"{_for(g, i, f'{t}n')} {t}[{i}] = {step.format('(' + _x(g, f'{i} * 3') + f' + 0.01 * (int){i})')};",
            f"{_for(g, i, f'{t}n')} {{ {use} }}",
        ),
        f"free({t}); }}",
        False,
    )


def _two_exits(g: Expressions) -> Node:
    t, i = g.new("t"), g.new("i")
    stop = g.rng.choice((f"if ({t}[{i}] > {g.rng.uniform(0.2, 0.9):.2f}) break;", f"if ((int){i} == idx[2]) break;", f"if ({g.condition()}) continue;", f"if (d1 < {g.number()} && (int){i} > 1) break;"))
    return (
        f"{{ double {t}[12]; for (int {i} = 0; {i} < 12; {i}++) {t}[{i}] = 0.7 * {_x(g, f'{i} + 1')};",
        (
            (f"{_for(g, i, _count(g, 12))} {{", (stop, f"d1 = 0.6 * d1 + 0.4 * sin({t}[{i}]); {t}[IX({i} * 5, 12)] = 0.8 * d1 * {t}[{i}];"), "}", False),
            f"d3 = 0.5 * d3 + 0.2 * {t}[3] + 0.2 * {t}[IX(c0, 12)];",
        ),
        "}",
        False,
    )


def _aliases(g: Expressions) -> Node:
    h, m = f"{g.name}_{g.new('al')}", g.extents["y"]
    inner = g.rng.choice((
        "a[i] = 0.5 * a[i] + 0.4 * sin(b[i]);", "a[i] = b[n - 1 - i] * 0.8 + 0.1 * a[0];", "{ double t = b[i]; a[i] *= 0.7; a[n - 1 - i] += 0.3 * t * b[i]; }",
    ))  # fmt: skip
    inline = g.rng.choice(("__attribute__((noinline)) ", ""))
    g.head.append(f"static {inline}void {h}(double *a, const double *b, int n) {{ {_for(g, 'i', 'n')} {inner} }}")
    a, b = g.rng.choice((("y", "y"), ("y + 1", "y"), ("y", "y + 1"), ("y", "x"), ("y + 2", "y")))
    return f"{h}({a}, {b}, {m - 2 if '2' in a + b else min(m, g.extents['x']) - 1});"


def _odd_counters(g: Expressions) -> Node:
    i, m = g.new("i"), g.extents["y"]
    step = g.rng.randint(2, 3)
    return g.rng.choice((
        f"for (unsigned char {i} = 250; {i} != 4; {i}++) d2 = 0.8 * d2 + 0.1 * {_x(g, i)} * {i} / 255.0;",
        f"for (unsigned {i} = 0xfffffffdu; {i} != 3u; {i}++) y[IX({i} & 7, {m})] = 0.6 * y[IX({i} & 7, {m})] + 0.3 * {g.leaf()};",
        f"for (long {i} = c0; {i} > -{m}; {i} -= {step}) d0 = 0.7 * d0 + 0.3 * y[IX({i} + 64, {m})] * {_x(g, f'{i} + 64')};",
        f"{{ double *p = y + {m}; while (p >= y + {2 * step}) {{ p -= {step}; *p = 0.6 * *p + 0.3 * p[1 - {step}]; }} }}",
        f"for (int {i} = 0, k = {m - 1}; {i} < k; {i}++, k--) {{ double t = y[{i}]; y[{i}] = 0.9 * y[k] * {g.leaf()}; y[k] = t; }}",
        f"for (size_t {i} = (size_t)c0; {i} < (size_t)c0 * 2; {i} += 1 + (c0 & 1)) d3 = sin(d3 + 0.3 * {_x(g, i)});",
        f"for (short {i} = 32764; {i} > 0; {i}++) d1 = 0.8 * d1 + 0.1 * {_x(g, f'{i} & 15')};",
        f"{{ volatile double v = {g.leaf()}; for (int {i} = 0; {i} < 4; {i}++) {{ v = 0.5 * v + 0.4 * {g.leaf()}; d2 = 0.5 * d2 + 0.3 * v; }} }}",
    ))  # fmt: skip


def _handles(g: Expressions) -> Node:
    s, i, m = f"struct {g.name}_H", g.new("i"), g.extents["y"]
    v = f"{g.name}_v16"
    if not any(s + " {" in h for h in g.head):
        fields = g.rng.choice(("double *p; double *q;", "double *p; long k;"))
        g.head.append(f"{s} {{ {fields} }}; typedef {g.rng.choice(('char', 'int', 'long', 'short'))} {v} __attribute__((vector_size(16), aligned(8), may_alias));")
    fields = next(h for h in g.head if s + " {" in h)
    second, read = ("q = y + 1", "a[1].q[1]") if "*q" in fields else ("k = 1", "a[1].k * d0")
    move = g.rng.choice((f"*({v} *)(a + 1) = *({v} *)a;", f"{{ {v} t = *({v} *)a; *({v} *)a = *({v} *)(a + 1); *({v} *)(a + 1) = t; }}", "a[1] = a[0];"))
    where = g.rng.choice((f"{s} a[2];", f"{s} *a = ({s} *)malloc(2 * sizeof *a);"))
    return (
        f"{{ {where} a[0].p = y + IX(c0, {m - 1}); a[0].{second}; a[1] = a[0]; a[1].p = y;",
        (f"for (int {i} = 0; {i} < {g.rng.choice(('1', '2', '(int)n'))}; {i}++) {{ {move} a[1].p[0] = 0.5 * a[1].p[0] + 0.3 * {read} * a[0].p[1]; }}",),
        ("free(a); }" if "malloc" in where else "}"),
        False,
    )


def _matmul(g: Expressions) -> Node:
    a, i, j, k = g.new("a"), g.new("i"), g.new("j"), g.new("k")
    m, n = f"{a}m", f"{a}n"
    order = [_for(g, i, m), _for(g, j, n), _for(g, k, m)]
    g.rng.shuffle(order)
    lower = g.rng.choice(("", f"if ({j} <= {i}) ", f"if ({k} != {j}) "))
    return (
        f"{{ int {m} = {_count(g, 5)}, {n} = {_count(g, 6)}; double {a}[25], {a}b[30], {a}c[30];",
        (
            f"for (int {i} = 0; {i} < 30; {i}++) {{ {a}[{i} % 25] = 0.3 * {_x(g, i)}; {a}b[{i}] = 0.4 * {_x(g, f'{i} + 2')} * d0; {a}c[{i}] = 0; }}",
            f"{' '.join(order)} {lower}{a}c[{i} * 6 + {j}] += {a}[{i} * 5 + {k}] * {a}b[{k} * 6 + {j}];",
            f"for (int {i} = 0; {i} < 30; {i}++) d2 = 0.8 * d2 + 0.1 * {a}c[{i}];",
        ),
        "}",
        False,
    )


MAKERS = {name: globals()[f"_{name}"] for name in SHAPES}
