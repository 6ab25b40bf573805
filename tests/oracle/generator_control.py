"""Makers of the random kernels: control flow and arithmetic. Each makes a statement tree from `Expressions`."""


from __future__ import annotations

from .generator_parts import Expressions, Node, makers


def _f32(g: Expressions) -> Node:
    return f"f1 = {g.float_expr(2)};\nd1 = 0.7 * d1 + 0.3 * f1;"


def _loops(g: Expressions) -> Node:
    return g.loop(2)


def _while(g: Expressions) -> Node:
    c = g.new("q")
    g.counters.append(c)
    inner = g.body(2, 0)
    g.counters.pop()
    test = f"{c} < 6 && fabs({g.rng.choice(g.scalars)}) > {g.rng.random() * 0.5:.3f}"
    return (f"{{ int {c} = 0; while ({test}) {{", inner, f"{c}++; }} }}", False)


def _dowhile(g: Expressions) -> Node:
    c = g.new("q")
    g.counters.append(c)
    inner = g.body(2, 0)
    test = g.condition()
    g.counters.pop()
    return (f"{{ int {c} = 0; do {{", inner, f"{c}++; }} while ({c} < 5 && ({test})); }}", False)


def _goto(g: Expressions) -> Node:
    label = g.new("skip")
    return (f"if ({g.condition()}) goto {label};", g.body(2, 1), f"{label}:;", True)


def _backward_goto(g: Expressions) -> Node:
    label, c, inside = g.new("again"), g.new("q"), g.new("inside")
    g.local_lines.append(f"  int {c} = 0;")
    inner = g.body(2, 0)
    if g.rng.random() < 0.4:  # two ways into the loop: irreducible
        return (
            f"{c} = 0; if ({g.condition()}) goto {inside}; {label}:; d0 = 0.8 * sin(d0);",
            (f"{inside}:;", *inner),
            f"if (++{c} < 4 && ({g.condition()})) goto {label};",
            False,
        )
    return (f"{c} = 0; {label}:;", inner, f"if (++{c} < 4 && ({g.condition()})) goto {label};", False)


def _nested_break(g: Expressions) -> Node:
    i, j = g.new("i"), g.new("i")
    g.counters.append(i)
    go_on = g.condition()
    g.counters.append(j)
    first, second, stop = g.body(1, 0), g.body(1, 0), g.condition()
    g.counters[-2:] = []
    return (
        f"for (int {i} = 0; {i} < (int)n; {i}++) {{",
        (
            f"if ({go_on}) continue;",
            (f"for (int {j} = {i}; {j} < 5; {j}++) {{", (*first, f"if ({stop}) break;", *second), "}", False),
            f"if (d0 > 1.4 || {i} > idx[1]) break;",
        ),
        "}",
        False,
    )


def _triangular(g: Expressions) -> Node:
    i, j, m = g.new("i"), g.new("i"), g.extents["y"]
    g.counters += [i, j]
    e = g.expr(1)
    g.counters[-2:] = []
    return (
        f"for (int {i} = 0; {i} < {m}; {i}++) {{",
        (f"for (int {j} = 0; {j} <= {i}; {j}++) y[{i}] = 0.8 * y[{i}] + 0.15 * y[{j}] * {e};",),
        "}",
        False,
    )


def _branch(g: Expressions) -> Node:
    yes, no = g.body(2, 1), g.body(2, 0)
    return (f"if ({g.condition()}) {{", (*yes, "} else {", *no), "}", False)


def _switch(g: Expressions) -> Node:
    cases: list[Node] = []
    for k in range(g.rng.randint(2, 5)):
        cases.append(
            (f"case {k}: {{", g.body(1, 0), "} break;" if g.rng.random() < 0.7 else "} /* falls through */", False)
        )
    cases.append(("default: {", g.body(1, 0), "} break;", False))
    on = g.rng.choice(("idx[0]", "c0", "(c0 + idx[1]) % 5"))
    if g.rng.random() < 0.5:
        i = g.new("i")
        head = f"for (int {i} = 0; {i} < 4; {i}++) switch (idx[{i}]) {{"
        return (head, tuple(cases), "}", False)
    return (f"switch ({on}) {{", tuple(cases), "}", False)


def _libm(g: Expressions) -> Node:
    return f"d1 = 0.5 * ({g.expr(2)}) + 0.4 * ({g.expr(1)});"


def _minmax(g: Expressions) -> Node:
    return f"d3 = 0.5 * ({g.expr(2)}) + 0.4 * ({g.expr(1)});"


def _intmath(g: Expressions) -> Node:
    i = g.new("i")
    g.counters.append(i)
    inner = g.body(1, 0)
    g.counters.pop()
    return (
        f"for (int {i} = 0; {i} < 4; {i}++) {{ c0 = (c0 * 5 + idx[{i}] + 3) % 7;",
        (*inner, f"d0 = 0.8 * d0 + 0.1 * (double)(c0 % 3) * {g.leaf()};"),
        "}",
        False,
    )


MAKERS = makers(globals())
