"""Expressions and statements of the random kernels (see generator.py)."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

# A statement: its text, or (opening line, children, closing line, children may replace the node).
Node = Any

HEADER = """#include <math.h>
#include <assert.h>
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define IX(e, n) ((int)((unsigned)(e) % (unsigned)(n)))
"""

FEATURES = (
    "f32 loops while dowhile goto early_helper triangular branch switch inplace local_array struct struct_array swap "
    "rows heap realloc heap_loop helper recursion mutual table union const_table global memset memmove libm minmax "
    "intmath pointer_walk backward_goto nested_break vla pointer_select list out_helper "
    "complex_numbers vectors long_double atomics results_by_pointer by_value tagged "
    "tree matrix permute ring flags flexible walk_write callback methods swap_helper early_return prints"
).split()

SHAPES = "matvec gather long_loop two_exits aliases odd_counters handles matmul".split()
"""Features of the kernels from SHAPED on: each has one or two of them. Those before stay what they were."""
SHAPED = 1_000_000


def render(nodes: Any, depth: int) -> list[str]:
    """C lines of statements."""
    pad = "  " * depth
    out = []
    for node in nodes:
        if isinstance(node, str):
            out += [pad + line for line in node.splitlines()]
        else:
            out += [pad + node[0], *render(node[1], depth + 1), pad + node[2]]
    return out


def makers(names: dict[str, Any]) -> dict[str, Callable[[Expressions], Node]]:
    """The makers of a module, by feature: its functions that begin with one underscore and have a feature's name."""
    return {f: names[f"_{f}"] for f in FEATURES if f"_{f}" in names}


class Expressions:
    """Makes expressions and statements over the variables of one kernel.

    Doubles d0..d3, floats f0, f1, ints c0 (loop counters are i1, i2, ...), arrays x, y, u, z, w (local). Operands are
    within about 2 in size; each production maps [-2, 2] to [-2, 2].
    """

    def __init__(self, rng: random.Random, name: str, extents: dict[str, int], f32: bool, chosen: set[str]) -> None:
        self.rng, self.name, self.extents, self.f32, self.chosen = rng, name, extents, f32, chosen
        self.extents = {k: v for k, v in extents.items() if k in ("x", "y", "u", "z") and v}
        self.scalars = ["d0", "d1", "d2", "d3"]
        self.counters: list[str] = []
        self.fresh = 0
        self.head: list[str] = []
        self.local_lines: list[str] = []
        self.returns = False  # whether the kernel has a value
        self.with_w = rng.random() < 0.4
        if self.with_w:
            self.extents["w"] = rng.randint(4, 6)

    # ------------------------------------------------------------ declarations
    def locals(self, has_a: bool, has_b: bool) -> list[str]:
        """Declarations at the head of the function."""
        first = "a" if has_a else "x[1]"
        lines = [f"  double d0 = x[0], d1 = 0.5 * {first}, d2 = sin(x[2]), d3 = y[1] * 0.5;"]
        if self.f32:
            lines.append(f"  float f0 = u[0], f1 = 0.5f * {'b' if has_b else 'u[1]'};")
        lines.append("  int c0 = (int)n;")
        if self.with_w:
            m = self.extents["w"]
            lines.append(f"  double w[{m}];")
            lines.append(f"  for (int i = 0; i < {m}; i++) w[i] = 0.3 * x[IX(i * 3 + 1, {self.extents['x']})];")
        return lines + self.local_lines

    def prologue(self) -> str:
        """Helpers and globals."""
        return "\n".join(self.head) + ("\n" if self.head else "")

    def new(self, prefix: str) -> str:
        """A fresh name."""
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # ------------------------------------------------------------ expressions
    def number(self) -> str:
        """A literal in [-1, 1]."""
        value = self.rng.uniform(-1, 1)
        return f"({value:.3f})" if value < 0 else f"{value:.3f}"

    def index(self, extent: int) -> str:
        """An int expression within an extent."""
        terms = [f"idx[{self.rng.randrange(4)}]", "c0", str(self.rng.randint(0, 9)), *self.counters * 3]
        e = self.rng.choice(terms)
        if self.rng.random() < 0.4:
            e += f" {self.rng.choice('+*')} {self.rng.choice(terms)}"
        return f"IX({e}, {extent})"

    def leaf(self) -> str:
        """A double (or float, promoted) to read."""
        r = self.rng.random()
        if r < 0.45:
            return self.rng.choice(self.scalars)
        if r < 0.85:
            name = self.rng.choice([k for k in self.extents if k not in ("u", "z")])
            return f"{name}[{self.index(self.extents[name])}]"
        if r < 0.92 and self.f32:
            return self.float_leaf()
        return self.number()

    def float_leaf(self) -> str:
        """A float to read."""
        names = [k for k in self.extents if k in ("u", "z")]
        if self.rng.random() < 0.5:
            name = self.rng.choice(names)
            return f"{name}[{self.index(self.extents[name])}]"
        return self.rng.choice(("f0", "f1"))

    def float_expr(self, depth: int = 1) -> str:
        """A float expression."""
        if depth <= 0:
            return self.float_leaf()
        a, b = self.float_expr(depth - 1), self.float_expr(depth - 1)
        forms = (
            f"sinf({a})", f"cosf({a} * 1.5f)", f"(0.5f * {a} * {b})", f"(0.6f * {a} - 0.4f * {b})",
            f"({a} / (1.5f + {b} * {b}))", f"tanhf({a})", f"(0.7f * sqrtf(1.0f + {a} * {a}))",
            f"expf(-{a} * {a})", f"fabsf({a})", f"(float)(0.9 * {self.leaf()})", f"fmaxf({a}, {b})",
        )  # fmt: skip
        return self.rng.choice(forms)

    def expr(self, depth: int = 2) -> str:
        """A double expression."""
        if depth <= 0:
            return self.leaf()
        a, b = self.expr(depth - 1), self.leaf()
        if self.f32 and self.rng.random() < 0.15:
            return f"(double){self.float_expr()}"
        forms = [
            f"sin({a})", f"cos(1.3 * {a})", f"(0.5 * {a} * {b})", f"(0.6 * {a} - 0.4 * {b})",
            f"({a} / (1.5 + {b} * {b}))", f"tanh({a})", f"(0.55 * {a} + 0.45 * {b})", f"(0.8 * sqrt(1.0 + {a} * {a}))",
            f"exp(-{a} * {a})", f"log(1.5 + {a} * {a})", f"({a} > {b} ? 0.9 * {a} : 0.8 * {b} - 0.1)",
        ]  # fmt: skip
        if "libm" in self.chosen:
            forms += [
                f"atan2({a}, 1.5 + {b} * {b})", f"(0.6 * hypot({a}, 0.3 + {b}))", f"(0.7 * pow(1.2 + {b} * {b}, 0.3 * {a}))",
                f"cbrt(1.5 + {a} * {a})", f"erf({a})", f"expm1(0.4 * {a})", f"log1p(0.2 * {a} * {a})", f"asin(0.4 * {a})",
                f"acos(0.4 * {a}) - 1.5", f"sinh(0.5 * {a})", f"(cosh(0.5 * {a}) - 1.0)", f"asinh({a})", f"atanh(0.4 * {a})",
                f"(0.6 * exp2(0.8 * {a}))", f"atan({a})", f"(0.5 * tan(0.5 * {a}))", f"fma({a}, 0.4 * {b}, 0.3)",
                f"log2(1.3 + {a} * {a} * 0.5)", f"log10(1.3 + {a} * {a})", f"acosh(1.5 + {a} * {a})", f"erfc({a})",
                f"(lgamma(2.5 + {a} * {a} * 0.5) * 0.5)", f"(0.4 * tgamma(2.0 + 0.3 * {a}))", f"(0.4 * pow({a}, 2.0))",
                f"(0.2 * pow({a}, 3.0))", f"(1.2 * ldexp({a}, -1))",
            ]  # fmt: skip
        if "minmax" in self.chosen:
            forms += [
                f"fabs({a})", f"fmin({a}, {b})", f"fmax({a}, 0.4 * {b})", f"fdim({a}, {b}) * 0.5", f"copysign({a}, {b})",
                f"fmod({a}, 0.7)", f"(0.5 * floor({a}) + 0.2 * {a})", f"remainder({a}, 1.1)", f"(0.3 * round({a}) + 0.2 * {b})",
                f"(0.5 * trunc({a} * 1.5))",
            ]  # fmt: skip
        return self.rng.choice(forms)

    def condition(self) -> str:
        """A condition on data or on integers."""
        r = self.rng.random()
        if r < 0.6:
            return f"{self.expr(1)} {self.rng.choice(('<', '>', '<=', '>='))} {self.rng.choice((self.number(), self.leaf()))}"
        if r < 0.8:
            return f"((c0 + {self.rng.choice(['idx[1]', *self.counters])}) & 1)"
        return f"idx[{self.rng.randrange(4)}] {self.rng.choice(('<', '>', '=='))} {self.rng.randint(1, 5)}"

    # ------------------------------------------------------------ statements
    def target(self) -> str:
        """A double lvalue."""
        if self.rng.random() < 0.5:
            return self.rng.choice(self.scalars)
        name = self.rng.choice([k for k in self.extents if k in ("y", "w")])
        return f"{name}[{self.index(self.extents[name])}]"

    def assign(self) -> Node:
        """An assignment."""
        if self.f32 and self.rng.random() < 0.25:
            name = self.rng.choice(("f0", "f1", *(["z"] if "z" in self.extents else [])))
            to = f"z[{self.index(self.extents['z'])}]" if name == "z" else name
            return f"{to} = {self.float_expr(2)};"
        to = self.target()
        r = self.rng.random()
        if r < 0.6:
            return f"{to} = {self.expr()};"
        if r < 0.8:
            return f"{to} = 0.6 * {to} + 0.4 * {self.expr()};"
        return f"{to} *= 0.9 * cos({self.leaf()});"

    def body(self, count: int, depth: int) -> tuple[Node, ...]:
        """Some statements."""
        return tuple(self.statement(depth) for _ in range(count))

    def statement(self, depth: int = 1) -> Node:
        """Any plain statement; loops and branches up to a depth."""
        r = self.rng.random()
        if depth <= 0 or r < 0.55:
            return self.assign()
        if r < 0.75:
            return (f"if ({self.condition()}) {{", self.body(self.rng.randint(1, 2), depth - 1), "}", True)
        return self.loop(depth)

    def loop(self, depth: int, bound: str | None = None) -> Node:
        """A counted loop."""
        i = self.new("i")
        start = self.rng.choice(("0", "1", "-1"))
        stop = bound or self.rng.choice(("(int)n", "4", "6", "idx[2]", "c0 % 5"))
        self.counters.append(i)
        inner = self.body(self.rng.randint(1, 3), depth - 1)
        self.counters.pop()
        if self.rng.random() < 0.25:
            return (f"for (int {i} = {stop}; {i} > {start}; {i}--) {{", inner, "}", False)
        step = self.rng.choice(("++", "++", "++", " += 2"))
        return (f"for (int {i} = {start}; {i} < {stop}; {i}{step}) {{", inner, "}", False)

    def feature(self, name: str) -> Callable[[], Node]:
        """The maker of a feature's statement."""
        from . import (
            generator_calls,
            generator_control,
            generator_data,
            generator_memory,
            generator_shapes,
            generator_types,
        )

        modules = (generator_calls, generator_control, generator_data, generator_memory, generator_shapes, generator_types)
        known: dict[str, Callable[[Expressions], Node]] = {}
        for module in modules:
            known |= module.MAKERS
        return lambda: known[name](self)
