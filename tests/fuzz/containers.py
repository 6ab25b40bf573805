"""Random C++ programs with the standard library's containers, smart pointers, functions and classes.

    python tests/fuzz/containers.py 0 100            each program that is not right
    python tests/fuzz/containers.py 7 1 --show       its source

`source(seed)` is a C++17 file with `double loss(const double *x, long n)`, n = 6. It is smooth in x but where two values
are compared. `verdict` goes through `lib.kernel` and through a program that asks for its derivatives by itself.
"""

# ruff: noqa: E501  (C++ sources read better unbroken)
from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import irgrad
from fuzz.container_kinds import (
    Integer,
    Kind,
    Map,
    Optional,
    Owner,
    Product,
    Scalar,
    Sequence,
    Struct,
    Variant,
    Writer,
    with_numbers,
)  # fmt: skip
from fuzz.container_objects import Chain, Function, Indices, Queue, Shape, Tree
from irgrad import engine
from irgrad.rules.errors import IRGradError

X = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4])
V = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
HEADERS = "array deque functional list map memory optional queue set stack string tuple unordered_map variant vector".split()
MAIN = """
#include <cstdio>
extern "C" double __enzyme_autodiff(void *, ...);
extern "C" double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;
int main() {
  double x[6] = {0.5, 0.3, 1.2, 0.7, 0.9, 0.4}, v[6] = {0.3, -0.2, 0.5, 0.1, -0.4, 0.6}, g[6] = {0};
  __enzyme_autodiff((void *)loss, enzyme_dup, x, g, enzyme_const, 6L);
  printf("%.17g\\n%.17g\\n", loss(x, 6), __enzyme_fwddiff((void *)loss, enzyme_dup, x, v, enzyme_const, 6L));
  for (int i = 0; i < 6; i++) printf("%.17g\\n", g[i]);
}
"""


class Program(Writer):
    """One program: some types, variables of them, functions that change them, statements and a sum."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.floats = self.r.random() < 0.15
        self.structs: list[Kind] = []
        self.classes: list[Kind] = []

    def plain(self) -> Kind:
        r = self.r
        if r.random() < 0.2:
            return Integer(r.choice(["int", "long", "char", "bool", "std::string"]))
        return Scalar("float" if self.floats and r.random() < 0.3 else "double")

    def kind(self, depth: int) -> Kind:
        r = self.r
        if depth <= 0 or r.random() < 0.15:
            return r.choice([*self.structs, Scalar("double"), self.plain()]) if depth >= 0 else self.plain()
        what = r.randrange(22)
        if what < 6:
            return Sequence(r.choice(["vector", "vector", "vector", "deque", "list", "array"]), self.valued(depth - 1))
        if what < 9:
            return Map(r.choice(["map", "unordered_map"]), r.choice(["int", "int", "std::string"]), self.valued(depth - 1))
        if what == 9:
            return Product([self.kind(depth - 1), self.valued(0), *([self.plain()] * r.randrange(2))])
        if what == 10:
            return Optional(self.valued(depth - 1))
        if what == 11:
            kinds: list[Kind] = [Scalar("double"), Integer("int"), self.valued(depth - 1), *self.structs[:1]]
            return Variant([k for i, k in enumerate(kinds) if k.spell not in [o.spell for o in kinds[:i]]])
        if what < 15:
            return Owner(r.choice(["unique", "shared", "shared", "plain"]), self.valued(depth - 1))
        if what == 15:
            return Function()
        if what == 16:
            return Indices(r.choice(["set", "vector"]))
        if what == 17:
            return Queue(self, r.choice(["priority_queue", "priority_queue", "queue", "stack"]))
        if what < 20 and self.classes:
            return r.choice(self.classes)
        return r.choice([*self.structs, self.plain()])

    def valued(self, depth: int) -> Kind:
        """A type with numbers in it."""
        while True:
            kind = self.kind(depth)
            if with_numbers(kind):
                return kind

    def statement(self) -> None:
        r, (place, kind) = self.r, self.r.choice(self.variables)
        loop = self.name("i") if r.random() < 0.4 else None
        self.lines.append(f"for (int {loop} = 0; {loop} < n; {loop}++) {{" if loop else "{")
        if loop and r.random() < 0.3:
            self.lines.append(f"if ({r.choice([f'{loop} % 2', f'{self.any_number()} > 0.4321'])}) continue;")
        self.index = loop
        kind.change(self, place)
        self.index = None
        self.lines.append("}")

    def function(self) -> None:
        """A function that takes a variable by reference, and its call."""
        place, kind = self.r.choice(self.variables)
        name, kept, variables = self.name("work"), self.lines, self.variables
        self.lines, self.variables = [], [("a", kind)]
        for _ in range(self.r.randint(1, 2)):
            self.statement()
        back = kind.read(self, "a")
        body = " ".join(self.lines)
        apart = "__attribute__((noinline)) " * self.r.randrange(2)
        self.top.append(f"{apart}static double {name}({kind.spell} &a, const double *x, long n) {{ {body} return {back}; }}")
        self.lines, self.variables = kept, variables
        self.lines.append(f"s += {self.small()} * {name}({place}, x, n);")

    def source(self) -> str:
        """The file."""
        r = self.r
        for _ in range(r.randint(0, 2)):
            fields = [self.kind(r.choice([0, 0, 1])) for _ in range(r.randint(1, 4))]
            self.structs.append(Struct(self, [*fields, Scalar("double")] if r.random() < 0.7 else [Scalar("double"), *fields]))
        if r.random() < 0.4:
            self.classes.append(Shape(self, r.choice(["unique", "shared"])))
        if r.random() < 0.25:
            self.classes.append(Tree(self, r.choice(["unique", "shared"])))
        if r.random() < 0.2:
            self.classes.append(Chain(self))
        for _ in range(r.randint(1, 3)):
            kind = self.valued(r.randint(1, 3))
            for _ in range(r.choice([1, 1, 2])):
                name = self.name("v")
                kind.declare(self, name)
                self.variables.append((name, kind))
        for _ in range(r.randint(2, 7)):
            self.function() if r.random() < 0.2 else self.statement()
        for place, kind in self.variables:
            kind.total(self, place)
        text = "\n".join([*self.top, *self.lines])
        named = {"priority_queue": "queue", "make_shared": "memory", "unique_ptr": "memory", "get<": "tuple"}
        used = [h for h in HEADERS if h in text or any(h == named[word] for word in named if word in text)]
        headers = "".join(f"#include <{name}>\n" for name in ("algorithm", "cmath", *used))
        return "\n".join([
            headers, "namespace {", *self.top, "}", 'extern "C" double loss(const double *x, long n) {', "double s = 0;",
            *self.lines, "return s;", "}", "",
        ])  # fmt: skip


def source(seed: int) -> str:
    """A C++ file."""
    return Program(seed).source()


def level_of(seed: int) -> str:
    """The level of optimisation at which a seed is looked at."""
    return ("O0", "O1", "O2", "O3")[np.random.default_rng(seed).integers(4)]


def _differences(kernel: Any, h: float) -> Any:
    rows = h * np.eye(6)
    return np.array([8 * (kernel(X + d) - kernel(X - d)) - kernel(X + 2 * d) + kernel(X - 2 * d) for d in rows]) / (12 * h)


def verdict(text: str, level: str) -> tuple[str, str]:
    """(`ok`, `refused` or `wrong`, why): by `lib.kernel`, against differences and each other."""
    single = bool(re.search(r"\bfloat\b", text))
    kernel = irgrad.load(text, language="c++", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    close, same = (3e-3, 1e-4) if single else (1e-6, 1e-11)
    wants = [_differences(kernel, h) for h in ((1e-2, 1e-3) if single else (1e-4, 3e-6))]
    said, found, tangent = "", None, None
    try:
        found = engine.grad(kernel)(X)
    except IRGradError as error:
        said = f"reverse: {error}"
    try:
        tangent = engine.jvp(kernel, (X,), (V,))[1]
    except IRGradError as error:
        said += f"forward: {error}"
    problems = []
    if found is not None and not any(np.allclose(found, w, rtol=close, atol=close) for w in wants):
        problems.append(f"gradient {found}, differences {wants[0]}")
    if tangent is not None and not any(np.isclose(tangent, V @ w, rtol=close, atol=close) for w in wants):
        problems.append(f"tangent {tangent}, differences {V @ wants[0]}")
    if found is not None and tangent is not None and not np.isclose(tangent, found @ V, rtol=same, atol=same):
        problems.append(f"tangent {tangent}, by the gradient {found @ V}")
    if problems:
        return "wrong", "; ".join(problems)
    return ("refused", said) if said else ("ok", "")


def program_verdict(text: str, level: str, standard: str = "c++17") -> tuple[str, str]:
    """The same of a program that asks for its derivatives by itself, through `irgrad run`."""
    single = bool(re.search(r"\bfloat\b", text))
    kernel = irgrad.load(text, language="c++", opt=level, flags=[f"-std={standard}"]).kernel("loss", "f64(f64[n] x, i64 n)")
    close, same = (3e-3, 1e-4) if single else (1e-6, 1e-10)
    wants = [_differences(kernel, h) for h in ((1e-2, 1e-3) if single else (1e-4, 3e-6))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.cpp")
        path.write_text(text + MAIN)
        command = [sys.executable, "-m", "irgrad.interop.cli", "run", f"-{level}", f"-std={standard}", "-w", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return ("wrong" if done.returncode < 0 or "Traceback" in done.stderr or not done.stderr else "refused"), f"program: status {done.returncode}: {done.stderr}"
    value, tangent, *rows = (float(row) for row in done.stdout.split())
    found = np.array(rows)
    if not np.isclose(value, kernel(X), rtol=same, atol=same):
        return "wrong", f"program: value {value}, {kernel(X)}"
    if not any(np.allclose(found, w, rtol=close, atol=close) for w in wants):
        return "wrong", f"program: gradient {found}, differences {wants[0]}"
    if not np.isclose(tangent, found @ V, rtol=same, atol=same):
        return "wrong", f"program: tangent {tangent}, by the gradient {found @ V}"
    return "ok", ""


def both(seed: int, door: str = "both") -> tuple[str, str]:
    """The verdict on a seed, the worse of two."""
    text, level = source(seed), level_of(seed)
    doors = [verdict] * (door != "program") + [program_verdict] * (door != "kernel")
    return max((look(text, level) for look in doors), key=lambda row: ("ok", "refused", "wrong").index(row[0]))


def apart(seed: int, limit: int, door: str) -> tuple[str, str]:
    """The verdict by a process of its own; `died` and `slow` too."""
    ends = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(limit)
        os.close(ends[0])
        try:
            kind, why = both(seed, door)
        except BaseException as error:
            kind, why = "wrong", f"{type(error).__name__}: {error}"
        os.write(ends[1], f"{kind}\n{why}"[:60000].encode())
        os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0]) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status:
        return ("slow" if os.WTERMSIG(status) == signal.SIGALRM else "died"), f"signal {os.WTERMSIG(status)}"
    kind, _, why = said.partition("\n")
    return kind, why


def refusal(why: str) -> str:
    """The first line of a refusal, without names and numbers."""
    line = next((row for row in why.splitlines() if row.strip()), "")
    return re.sub(r"\d+|%\S+|\([^)]*\)", "#", line)[:160]


def main(args: Any = None) -> None:
    """Check a range of seeds, each in a process of its own, and count the classes of refusals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--door", choices=["kernel", "program", "both"], default="both")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args(args)
    kinds, classes = Counter[str](), Counter[str]()
    for seed in range(given.first, given.first + given.count):
        if given.show:
            print(source(seed))
            continue
        begin = time.time()
        kind, why = apart(seed, given.limit, given.door)
        kinds[kind] += 1
        if kind != "ok":
            classes[refusal(why)] += 1
            print(seed, level_of(seed), kind, f"{time.time() - begin:.0f} s", why[:1500], flush=True)
    print(dict(kinds))
    for line, count in classes.most_common():
        print(count, line)


if __name__ == "__main__":
    main()
