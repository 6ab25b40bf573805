"""Random C kernels: deterministic in (seed, size), values bounded, derivatives well conditioned.

    kernel = generate(17, 6)
    kernel.source      C text: helpers, globals and the function, every name starts with the kernel's
    kernel.signature   "f64(f64[8] x, f64 a, inout f64[6] y, i32 n, i32[4] idx)"
    kernel.sample(rng) {"x": array, ...} in the order of the signature; y and z are the inout buffers
    kernel.features    what the kernel contains, for triage
    shrink(kernel, fails)  the smallest kernel found that still fails

Every expression is kept within about [-2, 2] (see `Expressions`), so that differences, complex step and duals agree.
A body is a tree of statements from which any node can be dropped and the kernel still compiles and runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .generator_parts import FEATURES, HEADER, SHAPED, SHAPES, Expressions, Node, render
from .generator_straight import Straight

__all__ = ["FEATURES", "HEADER", "SHAPED", "SHAPES", "STRAIGHT", "Kernel", "generate", "shrink", "source_file"]

STRAIGHT = 2_000_000
"""The kernels from here on are straight: what LLVM turns into vectors of a few lanes."""


@dataclass(frozen=True)
class Argument:
    """One argument: `inout f64[6] y` is ("y", "f64", 6, True); a scalar has extent 0."""

    name: str
    dtype: str
    extent: int = 0
    inout: bool = False

    @property
    def text(self) -> str:
        """The argument as the signature spells it."""
        shape = f"[{self.extent}]" if self.extent else ""
        return f"{'inout ' if self.inout else ''}{self.dtype}{shape} {self.name}"

    @property
    def c(self) -> str:
        """The argument as C spells it."""
        base = {"f64": "double", "f32": "float", "i64": "long", "i32": "int"}[self.dtype]
        if not self.extent:
            return f"{base} {self.name}"
        return f"{'' if self.inout else 'const '}{base} *{self.name}"


@dataclass(frozen=True)
class Kernel:
    """A generated kernel."""

    seed: int
    name: str
    arguments: tuple[Argument, ...]
    returns: bool
    prologue: str
    locals: tuple[str, ...]
    body: tuple[Node, ...]
    features: frozenset[str] = field(default=frozenset())

    @property
    def signature(self) -> str:
        """In irgrad's syntax."""
        return f"{'f64' if self.returns else 'void'}({', '.join(a.text for a in self.arguments)})"

    @property
    def wrt(self) -> tuple[str, ...]:
        """Names of the float arguments."""
        return tuple(a.name for a in self.arguments if a.dtype[0] == "f")

    @property
    def has_f32(self) -> bool:
        """Some of the arithmetic is in single precision."""
        return "float" in self.source

    @property
    def source(self) -> str:
        """C text without includes (see HEADER)."""
        head = f"{'double' if self.returns else 'void'} {self.name}({', '.join(a.c for a in self.arguments)})"
        lines = [*self.locals, *render(self.body, 1)]
        end = "  return d0 + 0.5 * d1;" if self.returns else "  y[0] += 0.5 * d0 - 0.25 * d1;"
        return "\n".join([self.prologue + head + " {", *lines, end, "}", ""])

    def sample(self, rng: np.random.Generator) -> dict[str, Any]:
        """Inputs for one run."""
        out: dict[str, Any] = {}
        for a in self.arguments:
            if a.dtype[0] == "i":
                kind = np.int64 if a.dtype == "i64" else np.int32
                out[a.name] = rng.integers(0, 7, a.extent).astype(kind) if a.extent else kind(rng.integers(0, 7))
            else:
                kind = np.float64 if a.dtype == "f64" else np.float32
                value = rng.uniform(-1.2, 1.2, a.extent or 1)
                if self.seed >= STRAIGHT:  # they divide by inputs
                    value = np.copysign(0.4 + 2 / 3 * np.abs(value), value)
                value = value.astype(kind)
                out[a.name] = value if a.extent else value[0]
        return out


def generate(seed: int, size: int = 6, features: set[str] | None = None) -> Kernel:
    """The kernel of a seed: about `size` statements at the top level. `features` limits what it may contain."""
    rng = random.Random(seed * 1_000_003 + size)
    if seed >= STRAIGHT:
        return _straight(rng, seed)
    pool = sorted(FEATURES if features is None else features & set(FEATURES))
    chosen = set(rng.sample(pool, min(len(pool), rng.randint(2, 5))))
    if seed >= SHAPED:
        shapes = sorted(SHAPES if features is None else features & set(SHAPES))
        chosen = set(rng.sample(sorted(chosen), min(len(chosen), 2)))
        chosen |= set(rng.sample(shapes, min(len(shapes), rng.randint(1, 2))))
    name = f"k{seed}"
    f32 = "f32" in chosen
    args = [Argument("x", "f64", rng.randint(5, 9))]
    if rng.random() < 0.5:
        args.append(Argument("a", "f64"))
    if f32:
        args.append(Argument("u", "f32", rng.randint(4, 6)))
        if rng.random() < 0.4:
            args.append(Argument("b", "f32"))
    args.append(Argument("y", "f64", rng.randint(5, 8), inout=True))
    if f32 and rng.random() < 0.5:
        args.append(Argument("z", "f32", 5, inout=True))
    args.append(Argument("n", rng.choice(("i32", "i64"))))
    args.append(Argument("idx", "i32", 4))
    returns = rng.random() < 0.75
    maker = Expressions(rng, name, {a.name: a.extent for a in args}, f32, chosen)
    maker.returns = returns
    body: list[Node] = []
    todo: list[Callable[[], Node]] = [maker.feature(f) for f in sorted(chosen)]
    todo += [maker.statement] * max(0, size - len(todo))
    rng.shuffle(todo)
    for make in todo:
        body.append(make())
    kept = [a.name for a in args]
    locals_ = maker.locals("a" in kept, "b" in kept)
    return Kernel(seed, name, tuple(args), returns, maker.prologue(), tuple(locals_), tuple(body), frozenset(chosen))


def _straight(rng: random.Random, seed: int) -> Kernel:
    single, returns = rng.random() < 0.25, rng.random() < 0.7
    kind = "f32" if single else "f64"
    arguments = [Argument("x", kind, rng.randint(2, 8))]
    if rng.random() < 0.3:
        arguments.append(Argument("a", kind))
    if not returns or rng.random() < 0.3:
        arguments.append(Argument("y", kind, rng.randint(2, 8), inout=True))
    maker = Straight(rng, f"k{seed}", {a.name: a.extent for a in arguments if a.extent}, single)
    if len(arguments) > 1 and not arguments[1].extent:
        maker.pool.append("a")
    body = [maker.statement() for _ in range(rng.randint(1, 4))]
    body += maker.ending()
    head, locals_ = "\n".join(maker.head) + "\n", ("  double d0 = 0, d1 = 0;",)
    return Kernel(seed, maker.name, tuple(arguments), returns, head, locals_, tuple(body), frozenset(maker.features))


def source_file(kernels: list[Kernel]) -> str:
    """One C file of many kernels."""
    return HEADER + "\n".join(k.source for k in kernels)


def shrink(kernel: Kernel, fails: Callable[[Kernel], bool], attempts: int = 60) -> Kernel:
    """Drop statements while `fails` stays true, at most so many trials."""
    left = attempts

    def smaller(nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
        out = [nodes[:i] + nodes[i + 1 :] for i in range(len(nodes))]
        for i, node in enumerate(nodes):
            if isinstance(node, tuple) and node[1]:
                out.append(nodes[:i] + tuple(node[1]) + nodes[i + 1 :] if node[3] else nodes)
                out += [(*nodes[:i], (node[0], s, node[2], node[3]), *nodes[i + 1 :]) for s in smaller(node[1])]
        return [o for o in out if o != nodes]

    progress = True
    while progress and left > 0:
        progress = False
        for body in smaller(kernel.body):
            left -= 1
            if left < 0:
                break
            candidate = replace(kernel, body=body)
            try:
                bad = fails(candidate)
            except Exception:  # a candidate that does not compile is no candidate
                bad = False
            if bad:
                kernel, progress = candidate, True
                break
    return kernel
