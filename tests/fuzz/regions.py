"""Random functions with OpenMP's constructs: schedules, collapse, reductions by every operator, private variables,
sections, single, master, critical, atomic, ordered, tasks, nested regions and functions.

    python tests/fuzz/regions.py 0:300          check the functions of these seeds
    python tests/fuzz/regions.py 7 --source     print one

Each is compiled with and without `-fopenmp`: values agree, reverse mode agrees with forward mode and with central
differences, and with `threads=` (every third seed) results have the same bits on any number of threads.
"""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from small_chunks import small_chunks

SIGNATURE = "f64(f64[n] x, inout f64[n] y, f64[m] w, i64[n] at, i64 n, i64 m)"
LEVELS = (None, "O0", "O1", "O2", "O3")
_TEAMS = (1, 2, 4, 16)
HEAD = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
typedef struct { double sum, weight; } pair;
static pair joined(pair a, pair b) { pair c = {a.sum + b.sum, a.weight + b.weight}; return c; }
#pragma omp declare reduction(join : pair : omp_out = joined(omp_out, omp_in)) initializer(omp_priv = (pair){0, 0})
static double kept;
static double inner(const double *a, long n, double c) {
    double s = 0;
    for (long k = 0; k < n; k++) s += a[k] * cos(c + k);
    return s;
}
static double shared_inner(const double *a, long n, double c) {
    double s = 0;
    #pragma omp parallel for reduction(+ : s)
    for (long k = 0; k < n; k++) s += a[k] * sin(c * a[k]);
    return s;
}
static double tree(const double *a, long low, long high) {
    if (high - low < 3) { double s = 0; for (long k = low; k < high; k++) s += sin(a[k]) * a[k]; return s; }
    double left, right;
    long middle = (low + high) / 2;
    #pragma omp task shared(left)
    left = tree(a, low, middle);
    #pragma omp task shared(right)
    right = tree(a, middle, high);
    #pragma omp taskwait
    return left + 0.7 * right + 0.1 * left * right;
}
"""


class Regions:
    """A function of parallel regions, by its seed."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.number = 0
        self.alone = False
        makers = self._makers()
        parts = "".join(self.r.choice(makers)() for _ in range(self.r.randint(1, 4)))
        if self.r.random() < 0.25:
            parts = f"    for (int t = 0; t < 3; t++) {{\n{parts}    }}\n"
        self.source = self._whole(parts)

    def _makers(self) -> list[Callable[[], str]]:
        return [
            self._loop, self._loop, self._loop, self._reduction, self._reduction, self._extreme, self._product,
            self._two_deep, self._sections, self._single, self._critical, self._atomic, self._ordered, self._tasks,
            self._private, self._declared, self._nested, self._team_region, self._array_sum, self._tree, self._scan,
            self._logical, self._taskloop, self._simd, self._by_thread, self._scatter, self._time_loop,
            self._scratch, self._scratch,
        ]  # fmt: skip

    def _whole(self, parts: str) -> str:
        """The module of a function of these parts."""
        return f"""{HEAD}
double f(const double *x, double *y, const double *w, const long *at, long n, long m) {{
    double s = 0.4, *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v);
    for (long i = 0; i < n; i++) u[i] = 0.5 * x[i] + 0.1 * y[i], v[i] = cos(x[i]);
    kept = 0.3 * w[0];
{parts}
    for (long i = 0; i < n; i++) s += 0.3 * u[i] * v[i] + 0.2 * y[i];
    free(u); free(v);
    return s;
}}
"""

    # -- pieces

    def _name(self) -> str:
        self.number += 1
        return f"q{self.number}"

    def _schedule(self) -> str:
        kind = self.r.choice(["", "", "static", "static, 1", "static, 3", "dynamic", "dynamic, 2", "guided", "auto", "runtime"])
        return f" schedule({kind})" if kind else ""

    def _step(self) -> str:
        return self.r.choice(["i = 0; i < n; i++", "i = 0; i < n; i++", "i = n - 1; i >= 0; i--", "i = 1; i < n - 1; i += 2",
                              "i = 0; i <= n - 2; i++", "i = 2; i < n; i += 3"])  # fmt: skip

    def _read(self, target: str = "") -> str:
        """What an iteration may read: not of the array it writes, but for its own place."""
        name = self.r.choice([row for row in "xuvy" if row != target])
        own = [f"{target}[i]"] if target else []
        return self.r.choice([f"{name}[i]", f"{name}[at[i]]", f"{name}[(i + 1) % n]", f"{name}[0]", "w[i % m]", "w[at[i] % m]",
                              f"({self.r.uniform(-1, 1):.2f})", "(0.1 * i)", "inner(w, m, x[i])", *own])  # fmt: skip

    def _value(self, target: str = "") -> str:
        a, b, c = (self._read(target) for _ in range(3))
        return self.r.choice([f"sin({a}) * {b} + 0.3 * {c}", f"({a} > {b} ? {a} * {c} : cos({b}))", f"exp(-{a} * {a}) + 0.2 * {b}",
                              f"0.4 * {a} + 0.2 * {b} * {c}", f"tanh({a} - {b}) * {c}", f"sqrt(1.5 + {a} * {a}) * {b}"])  # fmt: skip

    def _target(self) -> str:
        return self.r.choice("uvy")

    def _store(self, target: str, value: str) -> str:
        store = f"{target}[i] {self.r.choice(['=', '=', '+=', '*='])} {value};"
        return f"if ({self._read(target)} > 0.2) {store}" if self.r.random() < 0.2 else store

    # -- constructs

    def _loop(self) -> str:
        target, clause = self._target(), self._schedule()
        nowait = self.r.random() < 0.2
        body = f"for (long {self._step()}) {{ {self._store(target, self._value(target))} }}"
        if nowait:
            other = self.r.choice([row for row in "uvy" if row != target])
            second = f"for (long i = 0; i < n; i++) {{ {other}[i] = 0.5 * {other}[i] + sin(x[i]) * {other}[i]; }}"
            clean = f"for (long {self._step()}) {{ {target}[i] += sin(x[at[i]]) * {target}[i]; }}"
            return f"    #pragma omp parallel\n    {{\n    #pragma omp for nowait{clause}\n    {clean}\n    #pragma omp for\n    {second}\n    }}\n"
        return f"    #pragma omp parallel for{clause}\n    {body}\n"

    def _reduction(self) -> str:
        name, op = self._name(), self.r.choice(["+", "+", "-"])
        clause = self._schedule()
        if self.r.random() < 0.3:
            clause += " num_threads(3)"
        also = f" {self._store(target := self._target(), self._value(target))}" if self.r.random() < 0.3 else ""
        sign = "-=" if op == "-" and self.r.random() < 0.5 else "+="
        return (f"    double {name} = {self._read().replace('[i]', '[0]').replace('(0.1 * i)', '0.2').replace('[i %', '[0 %').replace('(i +', '(0 +')};\n"
                f"    #pragma omp parallel for reduction({'+' if op == '-' else op} : {name}){clause}\n"
                f"    for (long {self._step()}) {{ {name} {sign} {self._value()};{also} }}\n    s += sin({name});\n")  # fmt: skip

    def _extreme(self) -> str:
        name, op = self._name(), self.r.choice(["max", "min"])
        value = self._value()
        how = self.r.choice([f"{name} = f{op}({name}, {value});",
                             f"{{ double h = {value}; if (h {'>' if op == 'max' else '<'} {name}) {name} = h; }}"])  # fmt: skip
        start = self.r.choice(["-INFINITY" if op == "max" else "INFINITY", "w[0]", "x[0] * 0.1"])
        return (f"    double {name} = {start};\n    #pragma omp parallel for reduction({op} : {name}){self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {how}\n    s += {name} * {name};\n")  # fmt: skip

    def _product(self) -> str:
        name = self._name()
        return (f"    double {name} = 1.1;\n    #pragma omp parallel for reduction(* : {name}){self._schedule()}\n"
                f"    for (long {self._step()}) {name} *= 1 + 0.1 * sin({self._value()});\n    s += {name} * w[0];\n")  # fmt: skip

    def _two_deep(self) -> str:
        target = self._target()
        other = self.r.choice([row for row in "xuv" if row != target])
        name = self._name()
        kind = self.r.random()
        if kind < 0.5:
            return (f"    double {name} = 0;\n    #pragma omp parallel for collapse(2) reduction(+ : {name}){self._schedule()}\n"
                    f"    for (long i = 0; i < n; i++)\n        for (long j = 0; j < m; j++) {name} += sin({other}[i] * w[j]) * {self._read()};\n"
                    f"    s += {name};\n")  # fmt: skip
        return (f"    double *{name} = malloc(n * m * sizeof(double));\n"
                f"    #pragma omp parallel for collapse(2){self._schedule()}\n    for (long i = 0; i < n; i++)\n"
                f"        for (long j = 0; j < m; j++) {name}[i * m + j] = {other}[i] * w[j] + cos({self._read()});\n"
                f"    #pragma omp parallel for{self._schedule()}\n    for (long i = 0; i < n; i++) {{ double h = 0; "
                f"for (long j = 0; j < m; j++) h += {name}[i * m + j] * {name}[i * m]; {target}[i] += 0.1 * h; }}\n    free({name});\n")  # fmt: skip

    def _sections(self) -> str:
        name, clause = self._name(), self.r.choice(["", f" lastprivate(l{self.number})", f" reduction(+ : l{self.number})"])
        row = f"l{self.number}"
        sections = "".join(
            f"        #pragma omp section\n        {{ {name}[{k}] = {self._value().replace('[i]', f'[{k} % n]').replace('at[i', f'at[{k} % n').replace('(i +', f'({k} +').replace('[i %', f'[{k} %').replace('* i)', f'* {k})')}; {row} {'+=' if 'reduction' in clause else '='} {name}[{k}] * 0.5; }}\n"
            for k in range(3))  # fmt: skip
        head = f"    double {name}[3] = {{0, 0, 0}}, {row} = 0.2 * x[0];\n"
        if not clause:
            sections = sections.replace(f" {row} = ", f" double r{row} = ").replace("* 0.5; }", f"* 0.5; {name}[0] += 0 * r{row}; }}")
            sections = sections.replace(f" {name}[0] += 0 * r{row};", f" (void)r{row};")
        return f"{head}    #pragma omp parallel sections{clause}\n    {{\n{sections}    }}\n    s += {name}[0] * {name}[1] + {name}[2] + sin({row});\n"

    def _single(self) -> str:
        name, how = self._name(), self.r.choice(["single", "single", "master", "masked"])
        copied = how == "single" and self.r.random() < 0.4
        barrier = "" if how == "single" else "    #pragma omp barrier\n"
        private = f"        double {name} = 0;\n" if copied else ""
        outer = "" if copied else f"    double {name} = 0;\n"
        return (f"{outer}    #pragma omp parallel\n    {{\n{private}        #pragma omp {how}{f' copyprivate({name})' if copied else ''}\n"
                f"        {name} = sin(x[0] + w[0]) * u[n - 1];\n{barrier}"
                f"        #pragma omp for{self._schedule()}\n        for (long i = 0; i < n; i++) y[i] += {name} * x[i];\n    }}\n")  # fmt: skip

    def _critical(self) -> str:
        name = self._name()
        body = self.r.choice([f"{name} += {self._value()};", f"{{ {name} += {self._value()}; v[0] += 0.1 * {self._read()}; }}",
                              f"{{ double h = {self._value()}; if (h > {name}) {name} = h; }}"])  # fmt: skip
        named = self.r.choice(["", " (a)", " (b)"])
        return (f"    double {name} = 0;\n    #pragma omp parallel for{self._schedule()}\n    for (long i = 0; i < n; i++) {{\n"
                f"        #pragma omp critical{named}\n        {body}\n    }}\n    s += {name} * 0.5;\n").replace("v[at[i]]", "x[at[i]]").replace("v[(i + 1) % n]", "x[i]").replace("v[0] +=", "\0").replace("v[0]", "x[0]").replace("\0", "v[0] +=")  # fmt: skip

    def _atomic(self) -> str:
        name = self._name()
        op = self.r.choice(["+=", "-=", "+="])
        what = self.r.choice([name, "y[at[i]]", "y[i / 2]"])
        value = self._value("y").replace("y[i]", "x[i]")
        while "y[" in value:
            value = self._value("y").replace("y[i]", "x[i]")
        kind = self.r.choice(["", " update", " seq_cst"])
        return (f"    double {name} = 0.1;\n    #pragma omp parallel for{self._schedule()}\n    for (long i = 0; i < n; i++) {{\n"
                f"        double h = {value};\n        #pragma omp atomic{kind}\n        {what} {op} h;\n    }}\n    s += {name} * {name};\n")  # fmt: skip

    def _ordered(self) -> str:
        name = self._name()
        return (f"    double {name} = 0.2;\n    #pragma omp parallel for ordered{self.r.choice(['', ' schedule(static, 1)', ' schedule(dynamic)'])}\n"
                f"    for (long i = 0; i < n; i++) {{\n        double h = {self._value()};\n        #pragma omp ordered\n"
                f"        {name} = 0.5 * {name} + sin(h) * {name};\n    }}\n    s += {name};\n")  # fmt: skip

    def _tasks(self) -> str:
        name = self._name()
        first = self._value().replace("[i]", "[n - 1]").replace("at[i", "at[n - 1").replace("(i +", "(n +").replace("[i %", "[n %").replace("* i)", "* 2)")
        depend = self.r.random() < 0.5
        a, b, c = (" depend(out : {0}a)", " depend(in : {0}a) depend(out : {0}b)", " depend(in : {0}b)") if depend else ("", "", "")
        wait = "" if depend else "        #pragma omp taskwait\n"
        row = lambda text: text.format(name)  # noqa: E731 - a name in each clause
        return (f"    double {name}a = 0, {name}b = 0, {name}c = 0;\n    #pragma omp parallel\n    #pragma omp single\n    {{\n"
                f"        #pragma omp task shared({name}a){row(a)}\n        {name}a = {first};\n{wait}"
                f"        #pragma omp task shared({name}a, {name}b){row(b)}\n        {name}b = {name}a * {name}a + w[0];\n{wait}"
                f"        #pragma omp task shared({name}b, {name}c){row(c)}{self.r.choice(['', ' untied', ' if(n > 100)', ' final(n > 4)'])}\n"
                f"        {name}c = sin({name}b) * x[0];\n        #pragma omp taskwait\n    }}\n    s += {name}c + 0.1 * {name}b;\n")  # fmt: skip

    def _private(self) -> str:
        name, kind = self._name(), self.r.random()
        target = self._target()
        if kind < 0.35:
            return (f"    double {name} = w[0] * 0.7;\n    #pragma omp parallel for firstprivate({name}){self._schedule()}\n"
                    f"    for (long i = 0; i < n; i++) {{ double h = {name}; h += {self._value(target)}; {target}[i] = 0.5 * h; }}\n    s += {name};\n")  # fmt: skip
        if kind < 0.7:
            return (f"    double {name} = 0;\n    #pragma omp parallel for lastprivate({name}){self._schedule()}\n"
                    f"    for (long i = 0; i < n; i++) {{ {name} = {self._value()}; s += 0; }}\n    s += {name} * {name};\n").replace("s += 0; ", "")  # fmt: skip
        return (f"    double {name}[4], {name}k = 0;\n    #pragma omp parallel for private({name}) lastprivate({name}k){self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {{ for (int k = 0; k < 4; k++) {name}[k] = sin(k + {self._read(target)}); "
                f"{target}[i] += {name}[i % 4] * {name}[3]; {name}k = {name}[1]; }}\n    s += {name}k;\n")  # fmt: skip

    def _declared(self) -> str:
        name = self._name()
        return (f"    pair {name} = {{0.1, w[0]}};\n    #pragma omp parallel for reduction(join : {name}){self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {{ double h = {self._value()}; {name}.sum += h * x[i]; {name}.weight += h * h; }}\n"
                f"    s += {name}.sum / (1.0 + {name}.weight);\n")  # fmt: skip

    def _nested(self) -> str:
        name = self._name()
        return (f"    double {name} = 0;\n    #pragma omp parallel for reduction(+ : {name}){self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {name} += shared_inner({self.r.choice(['w, m', 'x, n'])}, {self._read()});\n    s += 0.1 * {name};\n")  # fmt: skip

    def _team_region(self) -> str:
        """Several constructs in one region."""
        name, target = self._name(), self._target()
        return (f"    double {name} = 0;\n    #pragma omp parallel{self.r.choice(['', ' num_threads(2)', ' if(n > 5)'])}\n    {{\n"
                f"        double own = 0;\n        #pragma omp for{self._schedule()}\n        for (long i = 0; i < n; i++) own += sin(x[i]) * {self._read()};\n"
                f"        #pragma omp atomic\n        {name} += own;\n        #pragma omp barrier\n"
                f"        #pragma omp for{self._schedule()}\n        for (long i = 0; i < n; i++) {target}[i] += 0.1 * {name} * {self._read(target)};\n    }}\n    s += {name};\n")  # fmt: skip

    def _scratch(self) -> str:
        """Memory of each thread that its iterations use, one after the other."""
        name, target = self._name(), self._target()
        t, q, each = f"{name}t", f"{name}q", "for (long k = 0; k < m; k++)"
        filled = f"{each} {t}[k] = 0.3 * w[k] + cos(0.2 * k);"
        reserve, release = self.r.choice([(f"double *{t} = malloc(m * 8);", f"free({t});"), (f"double {t}[m];", ""),
                                          (f"double *{t} = malloc(m * 8 + 16);", f"free({t});")])  # fmt: skip
        zeros = f"double *{t} = calloc(m, 8);", f"free({t});"
        sum_ = f"double h = 0; {each} h += {t}[k] * {self.r.choice(['w[k]', f'{t}[m - 1 - k]', 'x[i]'])};"
        change = f"double old = {t}[i % m]; {t}[i % m] *= {self._value(target)}; {sum_} {t}[i % m] = old;"
        add = f"{t}[at[i] % m] += {self._value(target)}; double h = {t}[at[i] % m] * x[i]; {t}[at[i] % m] = 0;"
        before, body, (reserve, release), behind = self.r.choice([
            ("", f"{each} {t}[k] = sin({self._read(target)} + 0.1 * k) * w[k]; {sum_}", (reserve, release), ""),
            (filled, change, (reserve, release), ""),
            ("", add, zeros, ""),
            ("", f"{t}[at[i] % m] += {self._value(target)}; double h = x[i];", zeros,
             f"#pragma omp critical\n        {each} {q} += {t}[k] * w[k];"),
        ])  # fmt: skip
        around = self.r.random() < 0.2
        loop = (f"        #pragma omp for{self._schedule()}\n"
                f"        for (long {self._step()}) {{ {body} {target}[i] = 0.4 * {target}[i] + 0.2 * h; }}\n")  # fmt: skip
        loop = f"        for (int a{name} = 0; a{name} < 2; a{name}++) {{\n{loop}        }}\n" if around else loop
        return (f"    double {q} = 0;\n    #pragma omp parallel\n    {{\n        {reserve} {before}\n{loop}        {behind}\n"
                f"        {release}\n    }}\n    s += {q};\n")  # fmt: skip

    def _array_sum(self) -> str:
        name = self._name()
        where = self.r.choice(["i % 3", "at[i] % 3", "0"])
        return (f"    double {name}[3] = {{0.1, 0.2, w[0]}};\n    #pragma omp parallel for reduction(+ : {name}[:3]){self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {name}[{where}] += {self._value()};\n    s += {name}[0] * {name}[1] - sin({name}[2]);\n")  # fmt: skip

    def _tree(self) -> str:
        name = self._name()
        return f"    double {name} = 0;\n    #pragma omp parallel\n    #pragma omp single\n    {name} = tree({self.r.choice(['x', 'u', 'v'])}, 0, n);\n    s += 0.2 * {name};\n"

    def _scan(self) -> str:
        name, kind = self._name(), self.r.choice(["inclusive", "exclusive"])
        add, use = f"{name} += 0.2 * x[i] * x[i];", f"v[i] += 0.1 * {name};"
        first, second = (add, use) if kind == "inclusive" else (use, add)
        return (f"    double {name} = 0;\n    #pragma omp parallel for reduction(inscan, + : {name})\n    for (long i = 0; i < n; i++) {{\n"
                f"        {first}\n        #pragma omp scan {kind}({name})\n        {second}\n    }}\n    s += {name};\n")  # fmt: skip

    def _logical(self) -> str:
        name = self._name()
        op, start, how = self.r.choice([("&&", "1", f"{name} = {name} && x[i] > -2;"), ("||", "0", f"{name} = {name} || x[i] > 0.9;"),
                                        ("^", "0", f"{name} ^= x[i] > 0;"), ("|", "0", f"{name} |= at[i];"), ("&", "-1", f"{name} &= at[i];"),
                                        ("+", "0", f"{name} += x[i] > 0;"), ("max", "0", f"if (at[i] > {name}) {name} = at[i];")])  # fmt: skip
        return (f"    long {name} = {start};\n    #pragma omp parallel for reduction({op} : {name}){self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {how}\n    s += ({name} > 1 ? 1.5 : 0.5) * x[{name} > 0 ? {name} % n : 0];\n")  # fmt: skip

    def _taskloop(self) -> str:
        target = self._target()
        return (f"    #pragma omp parallel\n    #pragma omp single\n    #pragma omp taskloop{self.r.choice(['', ' grainsize(3)', ' num_tasks(2)', ' nogroup'])}\n"
                f"    for (long i = 0; i < n; i++) {target}[i] = 0.5 * {target}[i] + sin(x[at[i]] * {target}[i]);\n")  # fmt: skip

    def _simd(self) -> str:
        name, target = self._name(), self._target()
        return (f"    double {name} = 0;\n    #pragma omp {self.r.choice(['simd', 'parallel for simd'])} reduction(+ : {name})\n"
                f"    for (long i = 0; i < n; i++) {{ {target}[i] += 0.1 * x[i]; {name} += {target}[i] * w[i % m]; }}\n    s += {name};\n")  # fmt: skip

    def _by_thread(self) -> str:
        name = self._name()
        return (f"    double {name}[64] = {{0}};\n    #pragma omp parallel num_threads({self.r.choice('124')})\n    {{\n        int me = 0, all = 1;\n"
                f"    #ifdef _OPENMP\n        me = omp_get_thread_num(); all = omp_get_num_threads();\n    #endif\n"
                f"        for (long i = me; i < n; i += all) {name}[me] += {self._value()};\n    }}\n"
                f"    for (int k = 0; k < 64; k++) s += {name}[k];\n")  # fmt: skip

    def _scatter(self) -> str:
        """Each iteration writes to a place of its own that it reads from memory."""
        name = self._name()
        return (f"    double *{name} = calloc(n, sizeof(double));\n    #pragma omp parallel for{self._schedule()}\n"
                f"    for (long i = 0; i < n; i++) {name}[n - 1 - i] = {self._value()};\n"
                f"    #pragma omp parallel for reduction(+ : s)\n    for (long i = 0; i < n; i++) s += {name}[i] * x[at[i]];\n    free({name});\n")  # fmt: skip

    def _time_loop(self) -> str:
        """Threads stay in a region while time goes on."""
        return ("    #pragma omp parallel\n    for (int t = 0; t < 3; t++) {\n"
                f"        #pragma omp for{self._schedule()}\n        for (long i = 1; i < n - 1; i++) u[i] = 0.5 * v[i] + 0.2 * (v[i - 1] + v[i + 1]) * x[i];\n"
                f"        #pragma omp for{self._schedule()}\n        for (long i = 1; i < n - 1; i++) v[i] = sin(u[i]);\n    }}\n")  # fmt: skip


def arguments(seed: int) -> tuple[Any, ...]:
    """What a function is called with."""
    r = np.random.default_rng(seed)
    n, m = int(r.choice([1, 2, 3, 5, 16, 17, 23, 40])), int(r.integers(1, 6))
    n = max(n, 3)
    return r.uniform(-1, 1, n), r.uniform(-1, 1, n), r.uniform(-1, 1, m), r.integers(0, n, n)


def results(kernel: Any, args: tuple[Any, ...]) -> list[np.ndarray]:
    """Values, gradients, tangents, and what reverse and forward mode say of one direction."""
    import irgrad as ig

    value, y = kernel(*args)
    bar = 1.3, np.cos(np.arange(y.size))
    gradients = [np.asarray(g) for g in ig.vjp(kernel, *args)[1](bar) if g is not None]
    along = [np.sin(np.arange(np.size(a)) + 1.0) if np.asarray(a).dtype.kind == "f" else None for a in args]
    _, pushed = ig.jvp(kernel, args, along)
    forward = 1.3 * float(pushed[0]) + float(bar[1] @ pushed[1])
    reverse = sum(float(g @ t) for g, t in zip(gradients, [t for t in along if t is not None], strict=True))
    return [np.asarray(value), y, *gradients, *map(np.asarray, pushed), np.asarray([forward, reverse])]


def slopes(kernel: Any, args: tuple[Any, ...]) -> list[float]:
    """Central differences along the direction of `results`, with three steps."""
    along = [np.sin(np.arange(np.size(a)) + 1.0) if np.asarray(a).dtype.kind == "f" else None for a in args]

    def at(step: float) -> float:
        value, y = kernel(*[a if t is None else a + step * t for a, t in zip(args, along, strict=True)])
        return 1.3 * float(value) + float(np.cos(np.arange(y.size)) @ y)

    return [(at(h) - at(-h)) / (2 * h) for h in (1e-5, 1e-6, 1e-7)]


def check(seed: int, kind: type[Regions] = Regions) -> str:
    """What is wrong with the function of a seed; "right" with what threads share, or "refused" with the reason."""
    import irgrad as ig

    source, args, level = kind(seed).source, arguments(seed), LEVELS[seed % len(LEVELS)]
    without = ig.load(source, flags=["-Wno-unknown-pragmas"], opt=level).kernel("f", SIGNATURE)
    lib = ig.load(source, flags=["-fopenmp"], opt=level)
    one = lib.kernel("f", SIGNATURE)
    plain = results(one, args)
    for number, (a, b) in enumerate(zip(plain, without(*args), strict=False)):
        if not np.allclose(a, b, rtol=1e-12, atol=1e-12):
            return f"result {number} is {a}, without OpenMP {b}"
    forward, reverse = plain[-1]
    size = max(1.0, abs(forward))
    if abs(forward - reverse) > 1e-9 * size:
        return f"{forward} forward, {reverse} reverse"
    near = slopes(without, args)
    if min(abs(row - forward) for row in near) > 1e-4 * size:
        return f"{forward} forward and reverse, {near} by differences"
    if seed % 3:
        return "right"
    found: dict[int, list[np.ndarray]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for team in _TEAMS:
            found[team] = results(lib.kernel("f", SIGNATURE, threads=team), args)
    for team, rows in found.items():
        for number, (a, b, c) in enumerate(zip(rows, found[1], plain, strict=True)):
            if not np.array_equal(a, b, equal_nan=True):
                return f"{team} threads: result {number} has other bits: {a} {b}"
            if not np.allclose(a, c, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(c).max(initial=0)))):
                return f"{team} threads: result {number} is {a}, without {c}"
    return "right"


def failures(
    seeds: range, *, kind: type[Regions] = Regions, progress: Callable[[str], None] | None = None
) -> dict[int, str]:  # fmt: skip
    """What is wrong with some seeds."""
    found: dict[int, str] = {}
    begin = time.time()
    for seed in seeds:
        try:
            said = check(seed, kind)
        except Exception as error:  # a crash and a refusal are findings as well
            said = f"{type(error).__name__}: {error}"
        if said != "right":
            found[seed] = said
            if progress:
                progress(f"{seed} {said}")
        if progress and seed % 25 == 24:
            progress(f"{seed + 1}: {len(found)} wrong or refused, {time.time() - begin:.0f} s")
    return found


def main() -> int:
    """Check a range of seeds."""
    small_chunks()
    first, _, last = sys.argv[1].partition(":")
    if "--source" in sys.argv:
        print(Regions(int(first)).source)
        return 0
    return 1 if failures(range(int(first), int(last or int(first) + 1)), progress=lambda row: print(row, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main())
