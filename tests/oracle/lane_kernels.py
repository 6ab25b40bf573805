"""Random kernels in IR over short vectors, some of whose lanes are poison, undef, NaN, infinite or frozen.

    kernel = lane_kernel(17)
    kernel.source      `double @lanes17(ptr %x, ptr %y, i64 %n)` without the declarations of DECLARED
    kernel.sample(rng) {"x": array, "y": array, "n": 3}

Vectorisers leave such lanes: vectors filled in part, shuffles that take one of two lanes, products of lanes of which
one is wanted. Each vector remembers which of its lanes are good: defined, finite, and bounded. Only these reach the
result, conditions and memory of the caller; every operation computes on all lanes.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

SIGNATURE = "f64(f64[8] x, inout f64[4] y, i64 n)"
_UNARY = ("sqrt", "exp", "log", "sin", "cos", "fabs")
_BINARY = ("maxnum", "minnum", "copysign", "pow")
DECLARED = "\n".join(
    [f"declare {t} @llvm.{f}.{s}({t})" for t, s in (("double", "f64"), ("<2 x double>", "v2f64"),
     ("<4 x double>", "v4f64")) for f in _UNARY]
    + [f"declare {t} @llvm.{f}.{s}({t}, {t})" for t, s in (("<2 x double>", "v2f64"), ("<4 x double>", "v4f64"))
       for f in _BINARY]
    + [f"declare {t} @llvm.fma.{s}({t}, {t}, {t})" for t, s in (("<2 x double>", "v2f64"), ("<4 x double>", "v4f64"))]
    + [f"declare double @llvm.vector.reduce.fadd.v{n}f64(double, <{n} x double>)" for n in (2, 4)]
    + ["declare noalias ptr @malloc(i64)", "declare void @free(ptr)"]
)  # fmt: skip


@dataclass(frozen=True)
class LaneKernel:
    """A generated kernel."""

    seed: int
    source: str

    @property
    def name(self) -> str:
        """Its symbol."""
        return f"lanes{self.seed}"

    @property
    def signature(self) -> str:
        """In irgrad's syntax."""
        return SIGNATURE

    @property
    def wrt(self) -> tuple[str, ...]:
        """Names of the float arguments."""
        return ("x", "y")

    @property
    def features(self) -> frozenset[str]:
        """For triage: what it calls."""
        return frozenset(re.findall(r"@llvm\.(\w+)|\b(?:freeze|alloca|malloc|undef)\b", self.source)) - {""}

    def sample(self, rng: np.random.Generator) -> dict[str, Any]:
        """Inputs for one run."""
        return {"x": rng.uniform(-1.2, 1.2, 8), "y": rng.uniform(-1.2, 1.2, 4), "n": np.int64(rng.integers(1, 4))}


@dataclass(frozen=True)
class Vec:
    """A vector in SSA form; `good`: which lanes may be used; `bound`: of their magnitude."""

    name: str
    good: tuple[bool, ...]
    bound: float

    @property
    def n(self) -> int:
        """Lanes."""
        return len(self.good)

    @property
    def typed(self) -> str:
        """Type and name."""
        return f"{kind(self.n)} {self.name}"


def kind(n: int) -> str:
    """The type of n lanes."""
    return f"<{n} x double>"


class Writer:
    """Writes one function."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.count = 0
        self.block = "entry"
        self.vectors: list[Vec] = []
        self.scalars: list[tuple[str, float]] = []

    # -- parts ---------------------------------------------------------------------------------------------------------

    def put(self, text: str) -> str:
        """A new value."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self, stem: str) -> str:
        """A new label."""
        self.count += 1
        return f"{stem}{self.count}"

    def start(self, label: str) -> None:
        """A block begins."""
        self.lines.append(f"{label}:")
        self.block = label

    def flags(self) -> str:
        """Fast-math flags of an operation, mostly none."""
        return self.rng.choice(("", "", "", "contract ", "nsz ", "reassoc nsz contract ", "nnan ", "fast "))

    def vector(self, n: int | None = None) -> Vec:
        """One of the vectors there are, the later ones more often."""
        fit = [v for v in self.vectors if n is None or v.n == n]
        return self.rng.choice(fit[-4:] if self.rng.random() < 0.7 else fit)

    def keep(self, name: str, good: tuple[bool, ...], bound: float) -> Vec:
        """A new vector; one that may be large is made small."""
        if bound > 3:
            n = len(good)
            name = self.put(f"fmul {kind(n)} {name}, {self.splat(n, 2.0 ** -int(np.ceil(np.log2(bound))))}")
            bound = 1.0
        made = Vec(name, good, bound)
        self.vectors.append(made)
        return made

    def splat(self, n: int, value: float) -> str:
        """A constant with equal lanes."""
        return "<" + ", ".join([f"double {value!r}" if "e" not in repr(value) else f"double {value:.8e}"] * n) + ">"

    def scalar(self) -> tuple[str, float]:
        """A number: one there is, or a good lane."""
        some = [v for v in self.vectors if any(v.good)]
        if some and self.rng.random() < 0.7:
            v = self.rng.choice(some[-5:])
            lane = self.rng.choice([i for i, g in enumerate(v.good) if g])
            self.scalars.append((self.put(f"extractelement {v.typed}, i64 {lane}"), v.bound))
            return self.scalars[-1]
        return self.rng.choice(self.scalars)

    def condition(self) -> str:
        """A bit that is defined."""
        (a, _), (b, _) = self.scalar(), self.scalar()
        return self.put(f"fcmp {self.rng.choice(('ogt', 'olt', 'ule'))} double {a}, {b}")

    # -- operations ----------------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Scalars go into some lanes of a vector that held nothing."""
        n = self.rng.choice((2, 2, 4))
        name, good, bound = self.rng.choice(("poison", "poison", "undef")), [False] * n, 1.0
        for lane in self.rng.sample(range(n), self.rng.randint(1, n)):
            value, size = self.scalar()
            name = self.put(f"insertelement {kind(n)} {name}, double {value}, i64 {lane}")
            good[lane], bound = True, max(bound, size)
        self.keep(name, tuple(good), bound)

    def stray(self) -> None:
        """A number of a bad lane, and what is computed of it, go into a lane that is bad from then on."""
        a = self.vector()
        bad = [i for i, g in enumerate(a.good) if not g] or [0]
        x = self.put(f"extractelement {a.typed}, i64 {self.rng.choice(bad)}")
        y, _ = self.scalar()
        op = self.rng.choice(("fmul double {x}, {y}", "fdiv double {y}, {x}", "fadd double {x}, {y}",
                              "call double @llvm.sqrt.f64(double {x})", "call double @llvm.log.f64(double {y})"))
        z = self.put(op.format(x=x, y=y))
        b = self.vector()
        lane = self.rng.randrange(b.n)
        good = tuple(g and i != lane for i, g in enumerate(b.good))
        self.keep(self.put(f"insertelement {b.typed}, double {z}, i64 {lane}"), good, b.bound)

    def shuffle(self) -> None:
        """Lanes of one or two vectors, and lanes of nothing."""
        a, n = self.vector(), self.rng.choice((2, 2, 4))
        b = self.vector(a.n) if self.rng.random() < 0.5 else Vec("poison", (False,) * a.n, 1.0)
        mask = [self.rng.randrange(2 * a.n if any(b.good) else a.n) if self.rng.random() < 0.7 else None
                for _ in range(n)]  # fmt: skip
        lanes = ", ".join("i32 poison" if k is None else f"i32 {k}" for k in mask)
        both = a.good + b.good
        name = self.put(f"shufflevector {a.typed}, {kind(a.n)} {b.name}, <{n} x i32> <{lanes}>")
        self.keep(name, tuple(k is not None and both[k] for k in mask), max(a.bound, b.bound))

    def arithmetic(self) -> None:
        """Sums and products, lane by lane."""
        a = self.vector()
        b = self.vector(a.n)
        op = self.rng.choice(("fadd", "fsub", "fmul", "fmul", "fmul"))
        bound = a.bound * b.bound if op == "fmul" else a.bound + b.bound
        self.keep(self.put(f"{op} {self.flags()}{a.typed}, {b.name}"), self.both(a, b), bound)

    def both(self, a: Vec, b: Vec) -> tuple[bool, ...]:
        """Lanes that are good in both."""
        return tuple(x and y for x, y in zip(a.good, b.good, strict=True))

    def quotient(self) -> None:
        """A quotient, whose divisor is away from zero; or any divisor, and no lane of it is good."""
        a = self.vector()
        b = self.vector(a.n)
        if self.rng.random() < 0.3:
            self.keep(self.put(f"fdiv {a.typed}, {b.name}"), (False,) * a.n, 1.0)
            return
        square = self.put(f"fmul {b.typed}, {b.name}")
        below = self.put(f"fadd {kind(a.n)} {square}, {self.splat(a.n, 0.75)}")
        self.keep(self.put(f"fdiv {self.flags()}{a.typed}, {below}"), self.both(a, b), a.bound / 0.75)

    def function(self) -> None:
        """A function of libm; a root or a logarithm of anything has no good lane."""
        a = self.vector()
        name, suffix = self.rng.choice(_UNARY), f"v{a.n}f64"
        x, good = a.name, a.good
        if name in ("sqrt", "log"):
            if self.rng.random() < 0.4:
                good = (False,) * a.n
            else:
                square = self.put(f"fmul {a.typed}, {a.name}")
                x = self.put(f"fadd {kind(a.n)} {square}, {self.splat(a.n, 0.5)}")
        bound = {"exp": float(np.exp(a.bound)), "sin": 1.0, "cos": 1.0, "fabs": a.bound}.get(name, a.bound + 1)
        self.keep(self.put(f"call {kind(a.n)} @llvm.{name}.{suffix}({kind(a.n)} {x})"), good, bound)

    def function_of_two(self) -> None:
        """The larger, the smaller, the sign of the other; a power has no good lane; a product and a sum."""
        a = self.vector()
        b, t = self.vector(a.n), kind(a.n)
        if self.rng.random() < 0.3:
            text = f"call {t} @llvm.fma.v{a.n}f64({t} {a.name}, {t} {b.name}, {t} {a.name})"
            self.keep(self.put(text), self.both(a, b), a.bound * b.bound + a.bound)
            return
        name = self.rng.choice(_BINARY)
        good = (False,) * a.n if name == "pow" else self.both(a, b)
        self.keep(self.put(f"call {t} @llvm.{name}.v{a.n}f64({t} {a.name}, {t} {b.name})"), good, max(a.bound, b.bound))

    def choose(self) -> None:
        """One of two by a scalar bit, by bits of lanes, or by constants of which some are poison."""
        a = self.vector()
        b, t = self.vector(a.n), kind(a.n)
        how, bits = self.rng.random(), f"<{a.n} x i1>"
        good = self.both(a, b)
        if how < 0.3:
            bit = self.condition()
            text = f"select i1 {bit}, {a.typed}, {t} {b.name}"
        elif how < 0.7:
            c = self.vector(a.n)
            if how < 0.5:
                bit = self.put(f"fcmp ogt {c.typed}, {self.splat(a.n, 0.125)}")
            else:
                whole = self.put(f"fptosi {c.typed} to <{a.n} x i32>")
                more = self.put(f"add nsw <{a.n} x i32> {whole}, {whole}")
                bit = self.put(f"icmp sgt <{a.n} x i32> {more}, zeroinitializer")
            good = tuple(x and y for x, y in zip(good, c.good, strict=True))
            text = f"select {bits} {bit}, {a.typed}, {t} {b.name}"
        else:
            picks = [self.rng.choice(("true", "false", "true", "false", "poison")) for _ in range(a.n)]
            good = tuple(p != "poison" and (x if p == "true" else y)
                         for p, x, y in zip(picks, a.good, b.good, strict=True))  # fmt: skip
            text = f"select {bits} <{', '.join(f'i1 {p}' for p in picks)}>, {a.typed}, {t} {b.name}"
        self.keep(self.put(text), good, max(a.bound, b.bound))

    def freeze(self) -> None:
        """Bad lanes become defined, and nobody knows what they hold."""
        a = self.vector()
        self.keep(self.put(f"freeze {a.typed}"), a.good, a.bound)

    def memory(self) -> None:
        """Through the stack or the heap: a part is written, and all is read; a number goes where only the run knows.

        On the heap every lane is good: what is read of it is taken to be used (see `StructuralZeros.conditional`).
        """
        a = self.vector()
        heap = a.n == 4 and all(a.good)
        place = self.put("call ptr @malloc(i64 32)" if heap else "alloca <4 x double>, align 32")
        self.lines.append(f"  store {a.typed}, ptr {place}, align 8")
        good = [*a.good, False, False][:4]
        if a.n == 2 and self.rng.random() < 0.5:
            value, size = self.scalar()
            at = self.put(f"getelementptr inbounds double, ptr {place}, i64 3")
            self.lines.append(f"  store double {value}, ptr {at}, align 8")
            good[3] = True
            a = Vec(a.name, a.good, max(a.bound, size))
        if self.rng.random() < 0.5:
            value, size = self.scalar()
            at = self.put(f"getelementptr inbounds double, ptr {place}, i64 {self.put('and i64 %n, 3')}")
            self.lines.append(f"  store double {value}, ptr {at}, align 8")
            a = Vec(a.name, a.good, max(a.bound, size))
        self.keep(self.put(f"load <4 x double>, ptr {place}, align 8"), tuple(good), a.bound)
        if heap:
            self.lines.append(f"  call void @free(ptr {place})")

    def total(self) -> None:
        """The sum of the lanes, where all are good."""
        fit = [v for v in self.vectors if all(v.good)]
        v = self.rng.choice(fit)
        text = f"call reassoc double @llvm.vector.reduce.fadd.v{v.n}f64(double -0.0, {v.typed})"
        self.scalars.append((self.put(f"fmul double {self.put(text)}, 2.5e-01"), v.bound))

    def numbers(self) -> None:
        """Arithmetic of scalars."""
        (a, _), (b, _) = self.scalar(), self.scalar()
        op = self.rng.choice(("fadd", "fsub", "fmul"))
        name = self.put(f"{op} {self.flags()}double {a}, {b}")
        self.scalars.append((self.put(f"call double @llvm.sin.f64(double {name})"), 1.0))

    # -- control -------------------------------------------------------------------------------------------------------

    def branch(self) -> None:
        """Two ways, and a vector that comes from either."""
        bit, yes, no, join = self.condition(), self.label("yes"), self.label("no"), self.label("join")
        self.lines.append(f"  br i1 {bit}, label %{yes}, label %{no}")
        before, known = list(self.vectors), list(self.scalars)
        ends: list[tuple[Vec, str]] = []
        n = self.vector().n
        for label in (yes, no):
            self.start(label)
            self.vectors, self.scalars = list(before), list(known)
            self.straight(self.rng.randint(0, 3))
            ends.append((self.vector(n), self.block))
            self.lines.append(f"  br label %{join}")
        self.vectors, self.scalars = before, known
        self.start(join)
        (a, first), (b, second) = ends
        name = self.put(f"phi {kind(n)} [ {a.name}, %{first} ], [ {b.name}, %{second} ]")
        self.keep(name, self.both(a, b), max(a.bound, b.bound))

    def loop(self) -> None:
        """n times: a vector that is carried around, with the lanes that were good at first good at the end."""
        begin, around, out = self.vector(), self.label("loop"), self.label("out")
        before, known = list(self.vectors), list(self.scalars)
        entry = self.block
        self.lines.append(f"  br label %{around}")
        self.start(around)
        at = len(self.lines)
        self.count += 3
        carried, index, more = f"%v{self.count}", f"%v{self.count - 1}", f"%v{self.count - 2}"
        v = Vec(carried, begin.good, 3.0)
        self.vectors.append(v)
        self.straight(self.rng.randint(1, 4))
        last = self.vector(v.n)
        picks = [i if g else v.n + i for i, g in enumerate(last.good)]
        if any(v.good) and not all(g or not h for g, h in zip(last.good, v.good, strict=True)):
            lanes = ", ".join(f"i32 {k}" for k in picks)
            name = self.put(f"shufflevector {last.typed}, {v.typed}, <{v.n} x i32> <{lanes}>")
            last = Vec(name, v.good, max(last.bound, v.bound))
        small = self.put(f"call {kind(v.n)} @llvm.sin.v{v.n}f64({last.typed})")
        self.lines.insert(at, f"  {index} = phi i64 [ 0, %{entry} ], [ {more}, %{around} ]")
        self.lines.insert(at, f"  {carried} = phi {kind(v.n)} [ {begin.name}, %{entry} ], [ {small}, %{around} ]")
        self.lines.append(f"  {more} = add nuw nsw i64 {index}, 1")
        bit = self.put(f"icmp slt i64 {more}, %n")
        self.lines.append(f"  br i1 {bit}, label %{around}, label %{out}")
        self.vectors, self.scalars = before, known
        self.start(out)
        self.vectors.append(Vec(small, v.good, 1.0))

    def straight(self, count: int) -> None:
        """Operations without control."""
        makers = [self.fill, self.shuffle, self.shuffle, self.arithmetic, self.arithmetic, self.arithmetic, self.stray,
                  self.quotient, self.function, self.function_of_two, self.choose, self.freeze, self.memory,
                  self.numbers]  # fmt: skip
        for _ in range(count):
            if any(all(v.good) for v in self.vectors) and self.rng.random() < 0.1:
                self.total()
            else:
                self.rng.choice(makers)()


def lane_kernel(seed: int) -> LaneKernel:
    """The kernel of a seed."""
    rng = random.Random(seed * 1_000_003 + 1)
    w = Writer(rng)
    for lane in range(0, 8, 2):
        at = w.put(f"getelementptr inbounds double, ptr %x, i64 {lane}")
        w.vectors.append(Vec(w.put(f"load <2 x double>, ptr {at}, align 8"), (True, True), 1.2))
    w.scalars.append((w.put("load double, ptr %x, align 8"), 1.2))
    w.vectors.append(Vec(w.put("load <4 x double>, ptr %y, align 8"), (True,) * 4, 1.2))
    for _ in range(rng.randint(1, 3)):
        w.straight(rng.randint(2, 7))
        if rng.random() < 0.6:
            rng.choice((w.branch, w.loop))()
    total = "0.0"
    for k, v in enumerate([v for v in w.vectors if any(v.good)][-6:]):
        lane = rng.choice([i for i, g in enumerate(v.good) if g])
        value = w.put(f"extractelement {v.typed}, i64 {lane}")
        scaled = w.put(f"fmul double {value}, {1.0 + 0.25 * k!r}")
        total = w.put(f"fadd double {total}, {scaled}")
        if k < 2:
            at = w.put(f"getelementptr inbounds double, ptr %y, i64 {rng.randrange(4)}")
            w.lines.append(f"  store double {value}, ptr {at}, align 8")
    head = f"define double @lanes{seed}(ptr %x, ptr %y, i64 %n) {{\nentry:"
    return LaneKernel(seed, "\n".join([head, *w.lines, f"  ret double {total}", "}", ""]))


def lane_module(kernels: list[LaneKernel]) -> str:
    """One module of many kernels."""
    return "\n".join([DECLARED, *(k.source for k in kernels)])
