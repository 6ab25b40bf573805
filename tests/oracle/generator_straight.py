"""Straight random kernels: what LLVM turns into vectors of a few lanes. Products and quotients of components of small
arrays and structs, helpers by value, short constant loops, selects, complex numbers by hand, vectors of 2 to 8.

Everything is of one type T, double or float. A statement makes new components, which later ones read.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["Straight"]

_FIELDS = "abcdefgh"


class Straight:
    """Makes the statements of one straight kernel. `pool` are the components that may be read: C expressions."""

    def __init__(self, rng: random.Random, name: str, arrays: dict[str, int], single: bool) -> None:
        self.rng, self.name, self.single = rng, name, single
        self.type = f"{name}_T"
        self.head = [f"typedef {'float' if single else 'double'} {self.type};"]
        self.outputs = {"y": arrays["y"]} if "y" in arrays else {}
        self.pool = [f"{n}[{i}]" for n, extent in arrays.items() for i in range(extent)]
        self.inputs = list(self.pool)
        self.fixed = [p for p in self.pool if p[0] == "x"]  # stay what they are: nowhere near zero
        self.fresh = 0
        self.features: set[str] = set()

    # ------------------------------------------------------------ pieces
    def new(self, prefix: str) -> str:
        """A fresh name."""
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def one(self) -> str:
        """A component: of the newest more often than not."""
        return self.rng.choice(self.pool if self.rng.random() < 0.5 else self.pool[-8:])

    def some(self, count: int) -> list[str]:
        """Components side by side in memory, or any."""
        if self.rng.random() < 0.4:
            first = self.rng.randrange(max(1, len(self.pool) - count + 1))
            run = self.pool[first : first + count]
            return run + [self.one() for _ in range(count - len(run))]
        return [self.one() for _ in range(count)]

    def number(self) -> str:
        """A literal of type T."""
        return self.rng.choice(("0.5", "0.75", "1.25", "-0.5", "-1.0", "2.0", "0.3")) + ("f" if self.single else "")

    def call(self, function: str) -> str:
        """The name of a function of libm for T."""
        return function + ("f" if self.single else "")

    def term(self) -> str:
        """A short expression of a few components."""
        a, b, c, d = self.some(4)
        forms = [f"{a} * {b}", f"{a} * {b} + {c} * {d}", f"{a} * {b} - {c} * {d}", f"({a} - {b}) * ({c} + {d})", f"{a} * {a}",
                 f"{a} * {b} * {c}", f"{self.number()} * {a} + {b}", f"-{a}", f"{a} - {b}", f"{a} / ({self.over()} + {b} * {b})",
                 f"({a} * {b}) / ({self.over()} + {c} * {c})", f"{a} / {self.rng.choice(self.fixed)}",
                 f"{self.call('sqrt')}({self.over()} + {a} * {a})"]  # fmt: skip
        if self.rng.random() < 0.15:
            forms = [f"{self.call('sin')}({a} * {b})", f"{self.call('exp')}(-{a} * {a})", f"{self.call('cos')}({a}) * {b}", f"{self.call('tanh')}({a} + {b})"]
        if self.rng.random() < 0.2:
            self.features.add("selects")
            forms = [f"({a} > {b} + {self.gap()} ? {c} : {d} * {a})", f"({a} < {self.gap()} ? {b} * {c} : {d})", f"{self.call('fmax')}({a}, {b})", f"{self.call('fmin')}({a} * {b}, {c})",
                     f"{self.call('fabs')}({a}) * {b}", f"({a} * {b} > {self.gap()} ? {c} / ({self.over()} + {a} * {a}) : 0)"]  # fmt: skip
        return self.rng.choice(forms)

    def over(self) -> str:
        """A positive literal: what keeps a divisor from zero."""
        return "1.5f" if self.single else "1.5"

    def gap(self) -> str:
        """What keeps the two sides of a condition apart: equal ones would be compared by their rounding."""
        return f"{self.rng.uniform(0.01, 0.3):.4f}" + ("f" if self.single else "")

    def use(self, name: str, count: int, form: str = "{}[{}]") -> None:
        """The components of a variable may be read from now on."""
        self.pool += [form.format(name, i) for i in range(count)]

    # ------------------------------------------------------------ statements
    def scalars(self) -> str:
        """Values one after the other, of one form or of several."""
        names = [self.new("s") for _ in range(self.rng.randint(1, 4))]
        lines = [f"{self.type} {n} = {self.term()};" for n in names]
        self.pool += names
        return " ".join(lines)

    def stores(self) -> str:
        """Into an array: a local one, or an output."""
        if self.outputs and self.rng.random() < 0.5:
            n = self.outputs["y"]
            at = self.rng.sample(range(n), min(n, self.rng.randint(1, 4)))
            return " ".join(f"y[{i}] {self.rng.choice(('=', '=', '+=', '*='))} {self.term()};" for i in at)
        w, count = self.new("w"), self.rng.randint(2, 8)
        text = f"{self.type} {w}[{count}]; " + " ".join(f"{w}[{i}] = {self.term()};" for i in range(count))
        self.use(w, count)
        return text

    def struct(self, count: int) -> str:
        """The name of a struct of so many components; fields are a, b, c and so on, or an array m."""
        name = f"struct {self.name}_{'s' if count < 9 else 'm'}{count}"
        text = f"{name} {{ {self.type} {', '.join(_FIELDS[:count])}; }};"
        if text not in self.head:
            self.head.append(text)
        self.features.add("structs")
        return name

    def fields(self, name: str, count: int) -> None:
        """The fields of a struct may be read from now on."""
        self.pool += [f"{name}.{f}" for f in _FIELDS[:count]]

    def structs(self) -> str:
        """A struct made of components, or copied out of an array."""
        count, v = self.rng.randint(2, 6), self.new("v")
        kind = self.struct(count)
        arrays = [p.partition("[")[0] for p in self.inputs if p.endswith(f"[{count - 1}]")]
        if arrays and self.rng.random() < 0.4:
            text = f"{kind} {v}; memcpy(&{v}, {self.rng.choice(arrays)}, sizeof {v});"
        else:
            text = f"{kind} {v} = {{{', '.join(self.term() for _ in range(count))}}};"
        self.fields(v, count)
        return text

    def helpers(self) -> str:
        """A function of structs by value: sums, products and quotients of their components."""
        self.features.add("helpers")
        count = self.rng.randint(2, 4)
        kind, h, v = self.struct(count), f"{self.name}_{self.new('h')}", self.new("v")
        f = _FIELDS[:count]
        turned = f[1:] + f[:1]
        bodies = [
            [f"p.{a} * q.{b} - p.{b} * q.{a}" for a, b in zip(f, turned, strict=True)],
            [f"p.{a} * q.{a} + p.{b} * q.{b}" for a, b in zip(f, turned, strict=True)],
            [f"p.{a} * q.{b}" for a, b in zip(f, turned, strict=True)],
            [f"p.{a} / ({self.over()} + q.{a} * q.{a})" for a in f],
            [f"p.{a} > q.{a} + {self.gap()} ? p.{a} : q.{b} * p.{a}" for a, b in zip(f, turned, strict=True)],
            [f"p.{a} + {self.number()} * q.{a}" for a in f],
            [f"p.{b}" if i % 2 else f"q.{a}" for i, (a, b) in enumerate(zip(f, turned, strict=True))],
        ]
        body = ", ".join(self.rng.choice(bodies))
        quiet = self.rng.choice(("", "", "__attribute__((noinline)) "))
        if self.rng.random() < 0.3:
            self.head.append(f"static {quiet}{self.type} {h}({kind} p, {kind} q) {{ return {' + '.join(f'p.{a} * q.{b}' for a, b in zip(f, turned, strict=True))}; }}")
            made, result = self.type, [v]
        else:
            scaled = f"{kind} r = {{{body}}}; " + self.rng.choice(("", f"r.a = r.a * r.{f[-1]}; ", f"{self.type} l = 1 / ({self.over()} + p.a * p.a); r.a *= l; r.b *= l; "))
            self.head.append(f"static {quiet}{kind} {h}({kind} p, {kind} q) {{ {scaled}return r; }}")
            made, result = kind, [f"{v}.{a}" for a in f]
        one, two = (f"({kind}){{{', '.join(self.some(count))}}}" for _ in range(2))
        self.pool += result
        return f"{made} {v} = {h}({one}, {two});"

    def loops(self) -> str:
        """A loop of a few iterations over small arrays."""
        self.features.add("loops")
        count, v, w = self.rng.randint(2, 8), self.new("l"), self.new("l")
        first = f"{self.type} {v}[{count}] = {{{', '.join(self.some(count))}}}, {w}[{count}];"
        a, b, c = f"{v}[i]", f"{v}[(i + 1) % {count}]", f"{v}[{count} - 1 - i]"
        each = self.rng.choice((f"{a} * {b}", f"{a} / ({self.over()} + {b} * {b})", f"{a} * {b} - {c}", f"{a} > {b} + {self.gap()} ? {a} : {self.number()} * {c}", f"{a} * {c} + {self.number()}"))
        step = self.rng.choice((1, 1, 1, 2))
        text = f"{first} for (int i = 0; i < {count}; i++) {w}[i] = {each};"
        if step == 2:
            text += f" for (int i = 0; i + 1 < {count}; i += 2) {{ {self.type} t = {w}[i]; {w}[i] = {w}[i + 1] * {v}[i]; {w}[i + 1] = t - {v}[i + 1]; }}"
        if self.rng.random() < 0.5:
            s = self.new("s")
            text += f" {self.type} {s} = {self.rng.choice(('0', self.one()))}; for (int i = 0; i < {count}; i++) {s} {self.rng.choice(('+= ', '-= ', f'= {self.number()} * {s} + '))}{w}[i]{self.rng.choice(('', f' * {v}[i]', f' * {w}[i]'))};"
            self.pool.append(s)
        self.use(w, count)
        return text

    def complex_by_hand(self) -> str:
        """Two complex numbers in a struct or in two arrays: product, quotient, square, a power."""
        self.features.add("complex")
        z = self.new("z")
        a, b, c, d = self.some(4)
        kind = self.struct(2)
        product = f"{a} * {c} - {b} * {d}, {a} * {d} + {b} * {c}"
        quotient = f"({a} * {c} + {b} * {d}) / ({self.over()} + {c} * {c} + {d} * {d}), ({b} * {c} - {a} * {d}) / ({self.over()} + {c} * {c} + {d} * {d})"
        text = f"{kind} {z} = {{{self.rng.choice((product, quotient))}}};"
        for _ in range(self.rng.randint(0, 2)):
            t = self.new("t")
            text += self.rng.choice((
                f" {self.type} {t} = {z}.a * {z}.a - {z}.b * {z}.b + {c}; {z}.b = 2 * {z}.a * {z}.b + {d}; {z}.a = {t};",
                f" {kind} {t} = {{{z}.b, -{z}.a}}; {z} = {t};", f" {z}.a *= {d}; {z}.b *= {d};",
            ))  # fmt: skip
        self.fields(z, 2)
        return text

    def vectors(self) -> str:
        """Vectors of the compiler: arithmetic, shuffles, single lanes, selects."""
        self.features.add("vectors")
        count = self.rng.choice((2, 2, 3, 4, 4, 5, 8))
        kind = f"{self.name}_v{count}"
        text = f"typedef {self.type} {kind} __attribute__((ext_vector_type({count})));"
        if text not in self.head:
            self.head.append(text)
        a, b, r = self.new("q"), self.new("q"), self.new("q")
        lines = [f"{kind} {n} = {{{', '.join(self.some(count))}}};" for n in (a, b)]
        order = ", ".join(str(self.rng.randrange(2 * count)) for _ in range(count))
        forms = [f"{a} * {b}", f"{a} / ({self.over()} + {b} * {b})", f"{a} * {b} - {b}", f"__builtin_shufflevector({a}, {b}, {order})", f"-{a} + {b} * {self.number()}",
                 f"{a} > {b} + {self.gap()} ? {a} : {b} * {a}", f"__builtin_elementwise_max({a}, {b})", f"__builtin_elementwise_abs({a}) * {b}", f"__builtin_elementwise_sqrt({self.over()} + {a} * {a})",
                 f"{a} * {self.one()}"]  # fmt: skip
        lines.append(f"{kind} {r} = {self.rng.choice(forms)};")
        if self.rng.random() < 0.4:
            lines.append(f"{r}[{self.rng.randrange(count)}] = {self.term()};")
        self.use(r, count)
        return " ".join(lines)

    def statement(self) -> str:
        """Any of them."""
        makers: list[Callable[[], str]] = [self.scalars, self.scalars, self.scalars, self.stores, self.stores, self.structs, self.helpers, self.helpers, self.loops, self.complex_by_hand, self.vectors]
        return self.rng.choice(makers)()

    def ending(self) -> list[str]:
        """d0 and d1 of the newest components."""
        return [f"d0 = {self.rng.choice(('{} * {}', '{} + {}', '{} - {}')).format(*self.some(2))};", f"d1 = {self.term()};"]
