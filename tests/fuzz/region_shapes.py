"""The random functions of `regions.py` with what they work on elsewhere than behind arguments, and with more constructs.

    python tests/fuzz/region_shapes.py 0:100           check the functions of these seeds as kernels
    python tests/fuzz/region_shapes.py 7 --source      print one

    file        arrays that are variables of the file
    pointers    memory that pointers of the file lead to
    members     memory behind members of a struct (`m->y[i]`)
    records     members of the elements of an array of structs (`m[i].y`)
    handed      `members`, and in programs the struct is what the derivative is called with

More constructs: counters (`n[k]++`), captured values, products and extremes of elements, critical sections of several
updates, the place of an extreme, sections that share what they read, tasks of blocks.
`region_programs.py` takes them as whole programs.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.regions import HEAD, Regions, failures

SHAPES = ("file", "members", "pointers", "records", "handed", "arguments")
_NAMES = ("x", "y", "w", "at", "u", "v", "count")
_KINDS = {name: "long" if name in ("at", "count") else "double" for name in _NAMES}
_ROOM = 5000
_BODY = """    double s = 0.4;
    for (long i = 0; i < n; i++) u[i] = 0.5 * x[i] + 0.1 * y[i], v[i] = cos(x[i]), count[i] = i % 2;
    kept = 0.3 * w[0];
PARTS
    for (long i = 0; i < n; i++) s += 0.3 * u[i] * v[i] + 0.2 * y[i] + 0.01 * count[i] * x[i];
    return s;
"""
_TAKEN = """
double f(const double *x, double *y, const double *w, const long *at, long n, long m) {
BEFORE
    for (long i = 0; i < n; i++) X = x[i], Y = y[i], AT = at[i];
    for (long i = 0; i < m; i++) W = w[i];
    double s = g(GIVENn, m);
    for (long i = 0; i < n; i++) y[i] = Y;
BEHIND
    return s;
}
"""


class Shaped(Regions):
    """A function of parallel regions whose arrays lie somewhere, by its seed."""

    def __init__(self, seed: int) -> None:
        self.shape = SHAPES[seed % len(SHAPES)]
        super().__init__(seed)

    # -- memory

    def _whole(self, parts: str) -> str:
        body = _BODY.replace("PARTS\n", parts)
        g = "static __attribute__((noinline)) double g"
        if self.shape == "arguments":
            rows = "".join(f"    {_KINDS[name]} *{name} = malloc(n * 8);\n" for name in ("u", "v", "count"))
            body = rows + body.replace("    return s;", "    free(u); free(v); free(count);\n    return s;")
            return f"{HEAD}\ndouble f(const double *x, double *y, const double *w, const long *at, long n, long m) {{\n{body}}}\n"
        if self.shape == "file":
            head = "".join(f"static {_KINDS[name]} its_{name}[{_ROOM}];\n" for name in _NAMES)
            return f"{HEAD}{head}{g}(long n, long m) {{\n{_renamed(body, 'its_')}}}\n{self._taken('its_', '', '', '')}"
        if self.shape == "pointers":
            head = "".join(f"static {_KINDS[name]} *its_{name};\n" for name in _NAMES)
            before = "".join(f"    its_{name} = malloc({'m' if name == 'w' else 'n'} * 8);\n" for name in _NAMES)
            behind = "    " + " ".join(f"free(its_{name});" for name in _NAMES)
            return f"{HEAD}{head}{g}(long n, long m) {{\n{_renamed(body, 'its_')}}}\n{self._taken('its_', '', before, behind)}"
        if self.shape == "records":
            body = _of_records(re.sub(r"\btree\([uv]\b", "tree(x", body))
            head = "typedef struct { double y, u; long count; double v; } cell;\n"
            given = "const double *x, const double *w, const long *at, cell *c, long n, long m"
            return (f"{HEAD}{head}{g}({given}) {{\n{body}}}\n"
                    "double f(const double *x, double *y, const double *w, const long *at, long n, long m) {\n"
                    "    cell *c = malloc(n * sizeof *c);\n    for (long i = 0; i < n; i++) c[i].y = y[i];\n"
                    "    double s = g(x, w, at, c, n, m);\n    for (long i = 0; i < n; i++) y[i] = c[i].y;\n    free(c);\n    return s;\n}\n")  # fmt: skip
        rows = " ".join(f"{_KINDS[name]} *{name};" for name in _NAMES)
        head = f"typedef struct {{ {rows} long spare; }} model;\n"
        before = ("    model its, *c = &its;\n"
                  + "".join(f"    its.{name} = malloc({'m' if name == 'w' else 'n'} * 8);\n" for name in _NAMES))  # fmt: skip
        behind = "    " + " ".join(f"free(its.{name});" for name in _NAMES)
        return f"{HEAD}{head}{g}(model *c, long n, long m) {{\n{_renamed(body, 'c->')}}}\n{self._taken('its.', 'c, ', before, behind)}"

    def _taken(self, prefix: str, given: str, before: str, behind: str) -> str:
        """The function that copies its arguments to where they lie."""
        text = _TAKEN.replace("BEFORE\n", before).replace("BEHIND\n", f"{behind}\n").replace("GIVEN", given)
        for name in ("X", "Y", "W", "AT"):
            text = re.sub(rf"\b{name}\b", f"{prefix}{name.lower()}[i]", text)
        return text

    # -- constructs

    def _makers(self) -> list[Callable[[], str]]:
        more = [self._counter, self._captured, self._times, self._extremes, self._place, self._both, self._shared_sections,
                self._blocks, self._counter, self._own_count]  # fmt: skip
        return [*super()._makers(), *more, *more]

    def _of_x(self) -> str:
        """A value of what no loop writes."""
        a, b = (self.r.choice(["x[i]", "x[at[i]]", "w[i % m]", "x[n - 1 - i]", "w[0]", "inner(w, m, x[i])"]) for _ in range(2))
        return self.r.choice([f"sin({a}) * {b}", f"{a} * {b} + 0.2", f"exp(-{a} * {a}) * {b}", f"({a} > {b} ? {a} : 0.3 * {b})"])

    def _where(self) -> str:
        return self.r.choice(["at[i]", "i / 2", "at[i] % 3", "0", "n - 1 - i", "(i * 3) % n"])

    def _loop_of(self, body: str) -> str:
        return f"    #pragma omp parallel for{self._schedule()}\n    for (long i = 0; i < n; i++) {{\n{body}    }}\n"

    def _counter(self) -> str:
        how = self.r.choice(["++;", " += 2;", "--;", " |= 4;", " += at[i];"])
        also = f"        #pragma omp atomic\n        {self.r.choice('yu')}[{self._where()}] += {self._of_x()};\n" if self.r.random() < 0.4 else ""
        return self._loop_of(f"        if (x[i] > {self.r.choice(['-2', '0', 'w[0]'])}) {{\n        #pragma omp atomic\n"
                             f"        count[{self._where()}]{how}\n        }}\n{also}")  # fmt: skip

    def _own_count(self) -> str:
        """A local array of counters, and what is made of them."""
        name = self._name()
        return (f"    long {name}[5] = {{0}};\n" + self._loop_of(f"        #pragma omp atomic\n        {name}[at[i] % 5]++;\n")
                + f"    for (long k = 0; k < 5; k++) s += {name}[k] * 0.1 * x[k % n];\n")  # fmt: skip

    def _captured(self) -> str:
        name, target = self._name(), self._target()
        if self.r.random() < 0.5:
            return (f"    long {name} = 0;\n" + self._loop_of(f"        long k;\n        if (x[i] > 0) {{\n        #pragma omp atomic capture\n"
                    f"        k = {name}++;\n        {target}[k] = {self._of_x()};\n        }}\n") + f"    s += {target}[0] * {name};\n")  # fmt: skip
        return (f"    double {name} = 0.1;\n" + self._loop_of(f"        double k, h = {self._of_x()};\n        #pragma omp atomic capture\n"
                f"        {{ k = {name}; {name} += h; }}\n        {target}[i] += 0.1 * k;\n") + f"    s += {name};\n")  # fmt: skip

    def _times(self) -> str:
        place = self.r.choice([f"y[{self._where()}]", f"v[{self._where()}]"])
        return self._loop_of(f"        double h = 1 + 0.1 * sin({self._of_x()});\n        #pragma omp atomic\n        {place} {self.r.choice(['*=', '/=', '*='])} h;\n")

    def _extremes(self) -> str:
        target, sign = self.r.choice("yuv"), self.r.choice("<>")
        place = f"{target}[{self._where()}]"
        return self._loop_of(f"        double h = {self._of_x()};\n        #pragma omp critical\n        if (h {sign} {place}) {place} = h;\n")

    def _place(self) -> str:
        name = self._name()
        return (f"    double {name} = -1e9; long {name}k = 0;\n" + self._loop_of(f"        double h = {self._of_x()};\n"
                f"        #pragma omp critical\n        if (h > {name}) {{ {name} = h; {name}k = i; }}\n") + f"    s += {name} * x[{name}k];\n")  # fmt: skip

    def _both(self) -> str:
        a, b = self.r.sample("yuv", 2)
        k = self._where()
        return self._loop_of(f"        double h = {self._of_x()};\n        #pragma omp critical\n        {{ {a}[{k}] += h; count[{k}]++; "
                             f"{self.r.choice(['', f'{b}[{self._where()}] -= 2 * h;'])} }}\n")  # fmt: skip

    def _shared_sections(self) -> str:
        name, target = self._name(), self._target()
        rows = "".join(f"        #pragma omp section\n        for (long i = {k}; i < n; i += 3) {target}[i] = {name} * sin({target}[i] * x[i]) + 0.1 * {k} * {name};\n" for k in range(3))
        return f"    double {name} = cos(x[0]) * w[0];\n    #pragma omp parallel sections\n    {{\n{rows}    }}\n    s += {name};\n"

    def _blocks(self) -> str:
        """Tasks of blocks of iterations, from a loop of one thread."""
        name, target = self._name(), self._target()
        wait = self.r.choice(["", "        #pragma omp taskwait\n"])
        return (f"    double {name} = 0.2;\n    #pragma omp parallel\n    #pragma omp single\n    {{\n        for (long b = 0; b < 4; b++) {{\n"
                f"            #pragma omp task firstprivate(b){self.r.choice(['', ' untied', f' depend(in : {name})'])}\n            {{\n                double h = 0;\n"
                f"                for (long i = b * n / 4; i < (b + 1) * n / 4; i++) {{ {target}[i] = 0.5 * {target}[i] + {self._of_x()}; h += {target}[i]; }}\n"
                f"                #pragma omp atomic\n                {name} += h * w[0];\n            }}\n        }}\n{wait}    }}\n    s += 0.1 * {name};\n")  # fmt: skip


def _renamed(body: str, prefix: str) -> str:
    return re.sub(rf"(?<![\w.>])({'|'.join(_NAMES)})\b", rf"{prefix}\1", body)


def _of_records(body: str) -> str:
    """`y[e]` as `c[e].y`."""
    while found := re.search(r"\b([yuv]|count)\[", body):
        depth, end = 1, found.end()
        while depth:
            depth += {"[": 1, "]": -1}.get(body[end], 0)
            end += 1
        body = f"{body[: found.start()]}c[{body[found.end() : end]}.\0{found[1]}{body[end:]}"
    return body.replace("\0", "")


def main() -> int:
    """Check a range of seeds."""
    first, _, last = sys.argv[1].partition(":")
    if "--source" in sys.argv:
        print(Shaped(int(first)).source)
        return 0
    seeds = range(int(first), int(last or int(first) + 1))
    return 1 if failures(seeds, kind=Shaped, progress=lambda row: print(row, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main())
