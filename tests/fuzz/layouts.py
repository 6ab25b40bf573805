"""Random programs of heap layouts: structs that mix numbers and pointers, nested arrays, arenas, headers with their
arrays in one block, growing blocks; copied by member, as structs, by memcpy, by words and by bytes; arrays that are
members (numbers, counters, bit sets) by indices that nothing bounds.

`source(seed)` is a C file with `double loss(const double *x, long n)`, n = 6, smooth in x.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import irgrad
from irgrad import engine
from irgrad.rules.errors import IRGradError

X = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4])
V = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
LEVELS = (None, "O0", "O1", "O2", "O3")

SPARE, POOL = 512, 1 << 20
HEAD = f"#define SPARE {SPARE}\n#define POOL {POOL}\n" + """#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char *base; size_t used, size; } arena;
static void *take(arena *a, size_t bytes) {
  void *p = a->base + a->used;
  a->used += (bytes + 15) & ~(size_t)15;
  return p;
}
static void *wrapped(size_t bytes) { void *p = malloc(bytes); if (!p) abort(); return p; }
static void by_bytes(void *to, const void *from, size_t n) {
  char *t = to; const char *f = from;
  for (size_t i = 0; i < n; i++) t[i] = f[i];
}
typedef long __attribute__((may_alias)) word;
static void by_words(void *to, const void *from, size_t n) {
  word *t = to; const word *f = from;
  for (size_t i = 0; i < n / sizeof *t; i++) t[i] = f[i];
}
static void swap(void *a, void *b, size_t n) {
  char spare[SPARE]; memcpy(spare, a, n); memcpy(a, b, n); memcpy(b, spare, n);
}
"""


@dataclass
class Field:
    """kind: double, float, int, long, char, `row` (double *), `link` (pointer to a struct of its own type), or the
    number of a struct; count: 0 for one, else the length of an array."""

    name: str
    kind: str | int
    count: int


class Heap:
    """One program: its structs, the objects made so far with their type, and the lines of `loss`."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.structs: list[list[Field]] = []
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.objects: list[tuple[str, int]] = []  # (a struct as an lvalue, its type)
        self.owned: list[str] = []
        self.singles = self.r.random() < 0.25

    def struct(self) -> None:
        r, number = self.r, len(self.structs)
        plain = ["double", "double", "double", "int", "long", "char", "row", "link"] + ["float"] * self.singles
        kinds: list[str | int] = [r.choice(plain) for _ in range(r.randint(2, 6))]
        if number and r.random() < 0.6:
            kinds.insert(r.randrange(len(kinds)), r.randrange(number))
        if "double" not in kinds:
            kinds.insert(r.randrange(len(kinds)), "double")
        arrays = [r.choice([0, 0, 0, 2, 3, 4]) if k not in ("row", "link") else 0 for k in kinds]
        self.structs.append([Field(f"f{i}", k, c) for i, (k, c) in enumerate(zip(kinds, arrays, strict=True))])

    def declaration(self, number: int) -> str:
        text = []
        for f in self.structs[number]:
            kind = {"row": "double *", "link": f"struct s{number} *"}.get(str(f.kind), str(f.kind))
            kind = f"struct s{f.kind}" if isinstance(f.kind, int) else kind
            text.append(f"{kind} {f.name}{f'[{f.count}]' * bool(f.count)};")
        return f"struct s{number} {{ {' '.join(text)} }};"

    def leaves(self, place: str, number: int) -> list[tuple[str, str]]:
        """(lvalue, kind) of all scalars in a struct."""
        found = []
        for f in self.structs[number]:
            for at in [f"[{i}]" for i in range(f.count)] or [""]:
                name = f"{place}.{f.name}{at}"
                found += self.leaves(name, f.kind) if isinstance(f.kind, int) else [(name, f.kind)]
        return found

    def size(self, number: int) -> int:
        """At most as many bytes as a struct has."""
        return 8 * len(self.leaves("", number))

    def numbers(self, place: str, number: int, depth: int = 1) -> list[str]:
        """Lvalues of floats in a struct, behind its pointers as well."""
        found = []
        for name, kind in self.leaves(place, number):
            if kind in ("double", "float"):
                found.append(name)
            elif kind == "row":
                found += [f"{name}[{i}]" for i in range(3)]
        links = [f for f in self.structs[number] if f.kind == "link"]
        if links and depth:
            found += self.numbers(f"(*{place}.{links[0].name})", number, depth - 1)[:4]
        return found

    # -- making ---------------------------------------------------------------------------------------------------

    def fill(self, place: str, number: int) -> None:
        r = self.r
        for name, kind in self.leaves(place, number):
            if kind in ("double", "float"):
                self.lines.append(f"{name} = {self.expression()};")
            elif kind == "row":
                how = r.choice(["wrapped(3 * sizeof(double))", "take(&pool, 3 * sizeof(double))"])
                self.lines.append(f"{name} = {how};")
                entry = f"x[(i + {r.randrange(6)}) % n] * {self.small()}"
                self.lines.append(f"for (int i = 0; i < 3; i++) {name}[i] = {entry};")
            elif kind == "link":
                same = [o for o, t in self.objects if t == self.owner(name, place, number)]
                whole = self.holder(name)
                self.lines.append(f"{name} = &{r.choice([*same, whole])};")
            else:
                self.lines.append(f"{name} = {r.randrange(1, 3)};")
        self.objects.append((place, number))

    def owner(self, name: str, place: str, number: int) -> int:
        """The type of the innermost struct that holds a field."""
        for part in name[len(place) + 1 :].split(".")[:-1]:
            field = next(f for f in self.structs[number] if f.name == part.split("[")[0])
            assert isinstance(field.kind, int)
            number = field.kind
        return number

    @staticmethod
    def holder(name: str) -> str:
        return name.rsplit(".", 1)[0]

    def make(self) -> None:
        r, number = self.r, self.r.randrange(len(self.structs))
        name, type_ = f"o{len(self.owned)}", f"struct s{number}"
        self.owned.append(name)
        how = r.randrange(7)
        count = r.randint(2, 3)
        if how == 0:
            self.lines.append(f"{type_} *{name} = wrapped(sizeof *{name});")
        elif how == 1:
            self.lines.append(f"{type_} *{name} = take(&pool, sizeof *{name});")
        elif how == 2:
            self.lines.append(f"{type_} {name}_there, *{name} = &{name}_there;")
        elif how == 3:
            self.lines.append(f"static {type_} {name}_there; {type_} *{name} = &{name}_there;")
        elif how == 4:
            self.lines.append(f"{type_} *{name} = calloc({count}, sizeof *{name});")
        elif how == 5:
            self.lines.append(f"{type_} *{name} = malloc(sizeof *{name});")
            self.lines.append(f"{name} = realloc({name}, {count} * sizeof *{name});")
        else:
            self.lines.append(f"char *{name}_block = malloc(16 + {count} * sizeof({type_}));")
            self.lines.append(f"*(int *){name}_block = {count};")
            self.lines.append(f"{type_} *{name} = ({type_} *)({name}_block + 16);")
        for i in range(count if how >= 4 else 1):
            self.fill(f"{name}[{i}]", number)

    # -- computing -------------------------------------------------------------------------------------------------

    def small(self) -> str:
        return f"{self.r.uniform(0.2, 1.1):.3f}"

    def any_number(self) -> str:
        place, number = self.r.choice(self.objects)
        return self.r.choice(self.numbers(place, number))

    def expression(self) -> str:
        r = self.r
        entry = f"x[{r.randrange(6)}]"
        other = self.any_number() if self.objects and r.random() < 0.7 else f"x[{r.randrange(6)}]"
        return r.choice([
            f"{entry} * {self.small()} + 0.5 * {other}", f"sin({other} + {entry})", f"{entry} * tanh({other})",
            f"0.5 * {other} * cos({entry})", f"{other} + 0.1 * {entry}", f"exp(-{entry}) * 0.3 + 0.2 * {other}",
        ])  # fmt: skip

    def pair(self) -> tuple[str, str, int]:
        """Two objects of one type."""
        a, number = self.r.choice(self.objects)
        return a, self.r.choice([o for o, t in self.objects if t == number]), number

    def place(self, count: int) -> str:
        """An index into so many elements, from memory."""
        return f"{'two' if count == 2 else 'three'}[{self.r.randrange(8)}]"

    def arrays(self, place: str, number: int) -> list[tuple[str, Field]]:
        """Members of a struct, or of structs in it, that are arrays of numbers."""
        found: list[tuple[str, Field]] = []
        for f in self.structs[number]:
            at = f"[{self.place(f.count)}]" if f.count else ""
            if isinstance(f.kind, int):
                found += self.arrays(f"{place}.{f.name}{at}", f.kind)
            elif f.count and f.kind not in ("row", "link"):
                found.append((f"{place}.{f.name}", f))
        return found

    def member(self, place: str, number: int) -> None:
        """An element of an array in a struct, of which a number in memory says where it is."""
        r, found = self.r, self.arrays(place, number)
        if not found:
            return
        name, f = r.choice(found)
        at = f"{name}[{self.place(f.count)}]"
        if f.kind in ("double", "float"):
            more = f"{self.small()} * {name}[{self.place(f.count)}] * x[{r.randrange(6)}]"
            self.lines.append(r.choice([
                f"{at} = {self.expression()};", f"{self.any_number()} += {more};", f"{at} = 0.5 * {at} + {more};",
                f"for (int i = 0; i < 3; i++) {name}[two[i]] += {self.small()} * x[i];",
            ]))  # fmt: skip
        else:
            self.lines.append(r.choice([
                f"{at}++;", f"{at} |= 1 << {self.place(f.count)};", f"{at} = {name}[{self.place(f.count)}];",
                f"if ({at} >> {self.place(f.count)} & 1) {self.any_number()} = {self.expression()};",
                f"for (int i = 0; i < 4; i++) {name}[two[i]] ^= 1 << i;",
                f"{self.any_number()} *= 0.1 * ({at} & 7);",
            ]))  # fmt: skip

    def integers(self) -> list[str]:
        return [name for place, number in self.objects for name, kind in self.leaves(place, number)
                if kind in ("int", "long", "char")]  # fmt: skip

    def statement(self) -> None:
        r, (a, b, number) = self.r, self.pair()
        size = f"sizeof(struct s{number})"
        whole = self.leaves(a, number)
        choice = r.randrange(18)
        if choice == 0:
            self.lines.append(f"{a} = {b};")
        elif choice == 1 and a != b:
            self.lines.append(f"memcpy(&{a}, &{b}, {size});")
        elif choice == 2 and a != b:
            self.lines.append(f"{r.choice(['by_bytes', 'by_words'])}(&{a}, &{b}, {size});")
        elif choice == 3 and a != b and self.size(number) <= SPARE:
            self.lines.append(f"swap(&{a}, &{b}, {size});")
        elif choice == 4:
            name, kind = r.choice(whole)
            self.lines.append(f"{name} = {b}{name[len(a):]};" if kind != "char" else f"{name} ^= 3;")
        elif choice == 5 and self.integers():
            count = r.choice(self.integers())
            more = f"{self.any_number()} += {self.small()} * x[i] * x[i]"
            self.lines.append(f"for (int i = 0; i < {count} && i < 3; i++) {more};")
        elif choice == 6 and self.integers():
            self.lines.append(f"if ({r.choice(self.integers())} > 1) {self.any_number()} = {self.expression()};")
        elif choice == 7 and self.integers():
            self.lines.append(f"{r.choice(self.integers())} += 1;")
        elif choice == 8:
            self.lines.append(f"{self.any_number()} = step{number}(&{a}, x);")
        elif choice == 9:
            self.lines.append(f"table{number}[n > {r.choice([2, 9])}](&{a}, x);")
        elif choice == 10:
            self.lines.append(f"{a} = made{number}({b}, x[{r.randrange(6)}]);")
        elif choice == 11:
            spare = f"t{len(self.lines)}"
            self.lines.append(f"struct s{number} *{spare} = wrapped({size}); memcpy({spare}, &{a}, {size});")
            self.lines.append(f"{self.numbers(f'(*{spare})', number)[0]} *= 0.5; {b} = *{spare}; free({spare});")
        elif choice == 12:
            links = [f.name for f in self.structs[number] if f.kind == "link"]
            if links:
                at = f"p{len(self.lines)}"
                where = r.choice(self.numbers(f"(*{at})", number, 0))
                self.lines.append(f"struct s{number} *{at} = &{a};")
                self.lines.append(f"for (int i = 0; i < 3; i++, {at} = {at}->{links[0]})")
                self.lines.append(f"  {where} = 0.5 * {where} + 0.3 * x[i];")
        elif choice in (13, 14, 15):
            self.member(a, number)
        elif choice == 16 and self.arrays("", number):
            self.lines.append(f"mark{number}(&{a}, {self.place(2)});")
        else:
            self.lines.append(f"{self.any_number()} = {self.expression()};")

    def helpers(self, number: int) -> None:
        r, type_ = self.r, f"struct s{number}"
        places = self.numbers("(*p)", number, 0)
        one, two, three = (r.choice(places) for _ in range(3))
        apart = "__attribute__((noinline)) " * r.randrange(2)
        self.functions += [
            f"{apart}static double step{number}({type_} *p, const double *x) {{ "
            f"{one} = 0.5 * {two} + {self.small()} * x[1]; return {three} * x[{r.randrange(6)}]; }}",
            f"static void first{number}({type_} *p, const double *x) {{ {two} = sin({one}) * x[2]; }}",
            f"static void second{number}({type_} *p, const double *x) {{ {three} = {one} * {self.small()} + x[3]; }}",
            f"static void (*const table{number}[])({type_} *, const double *) = {{first{number}, second{number}}};",
            f"{apart}static void mark{number}({type_} *p, long k) {{ {self.marked(number)} }}",
            f"{apart}static {type_} made{number}({type_} s, double y) {{ "
            f"{type_} *p = &s; {two} = {one} * 0.5 + y; return s; }}",
        ]

    def marked(self, number: int) -> str:
        """An assignment to an element of an array in the struct behind p."""
        found = [f for f in self.structs[number] if f.count and not isinstance(f.kind, int)]
        if not found:
            return ""
        f = self.r.choice(found)
        at = f"p->{f.name}[k]"
        return f"{at} = 0.5 * {at} + 0.1;" if f.kind in ("double", "float") else f"{at} |= 1 << k;"

    def source(self) -> str:
        """The file."""
        r = self.r
        for _ in range(r.randint(1, 3)):
            self.struct()
        for number in range(len(self.structs)):
            self.helpers(number)
        for _ in range(r.randint(1, 3)):
            self.make()
        for _ in range(r.randint(3, 10)):
            self.statement()
        total = [p for place, number in self.objects for p in self.numbers(place, number)]
        sums = [f"s += {self.small()} * sin({p});" for p in r.sample(total, min(len(total), 24))]
        sums += [f"s += 0.01 * {p};" for p in self.integers()[:6]]
        return "\n".join([
            HEAD, *(self.declaration(i) for i in range(len(self.structs))), *self.functions,
            "double loss(const double *x, long n) {", "arena pool = {malloc(POOL), 0, POOL}; double s = 0;",
            "long *two = malloc(64), *three = malloc(64);",
            "for (long i = 0; i < 8; i++) { two[i] = (i * i + n) % 2; three[i] = (i * 5 + n) % 3; }",
            *self.lines, *sums, "free(pool.base);", "free(two);", "free(three);", "return s;", "}", "",
        ])  # fmt: skip


def source(seed: int) -> str:
    """A C file."""
    return Heap(seed).source()


def verdict(text: str, level: str | None) -> tuple[str, str]:
    """(`ok`, `refused`, `wrong` or `died`, why): gradient and tangent against differences and each other."""
    single = "float f" in text
    kernel = irgrad.load(text, language="c", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    step, close = (1e-2, 3e-3) if single else (1e-4, 1e-6)
    ways = step * np.eye(6)
    steps = [8 * (kernel(X + h) - kernel(X - h)) - kernel(X + 2 * h) + kernel(X - 2 * h) for h in ways]
    want = np.array(steps) / (12 * step)
    refused = found = None
    try:
        found = engine.grad(kernel)(X)
    except IRGradError as error:
        refused = str(error)
    try:
        tangent = engine.jvp(kernel, (X,), (V,))[1]
    except IRGradError as error:
        return "refused", str(error)
    if not np.isclose(tangent, V @ want, rtol=close, atol=close):
        return "wrong", f"tangent {tangent}, differences {V @ want}"
    if found is None:
        return "refused", str(refused)
    if not np.allclose(found, want, rtol=close, atol=close):
        return "wrong", f"gradient {found}, differences {want}"
    if not np.isclose(tangent, found @ V, rtol=1e-4 if single else 1e-11, atol=1e-5 if single else 1e-12):
        return "wrong", f"tangent {tangent}, by the gradient {found @ V}"
    return "ok", ""


def main(args: Any = None) -> None:
    """Prints each seed that is not right: `python tests/fuzz/layouts.py 0 100 --level O1`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--level", choices=[level for level in LEVELS if level])
    given = parser.parse_args(args)
    for seed in range(given.first, given.first + given.count):
        kind, why = verdict(source(seed), given.level)
        print(seed, kind, why, flush=True)


if __name__ == "__main__":
    main()
