"""Random C functions of arrays that may overlap, in programs that ask for their derivatives themselves.

    python tests/fuzz/overlaps.py 0:40               check the functions of these seeds
    python tests/fuzz/overlaps.py 7 --source         print one

A function reads and writes three arrays, which it is given as parameters, as members of structs, or as rows of a table:
loops of all kinds, reads of its own writes, memmove. Each runs with its arrays apart, side by side, partly over each
other and all the same. Gradients, split gradients and tangents are compared with differences of the whole memory.
"""

# ruff: noqa: E501  (C text reads better unbroken)
from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

_HEAD = r"""
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
struct taped { void *tape; double value; };
struct taped __enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
enum { N = 48, LENGTH = 4 };
typedef struct { double *p; int k; double *q; double scale; int m; } pair;
typedef struct { pair in; double *o; } triple;
static double memory[N], shadow[N], start[N], weight[N], along[N], want[N], after[N], value;
static const int places[][3] = {{0, 16, 32}, {0, 0, 32}, {0, 16, 16}, {0, 1, 32}, {3, 2, 0}, {0, 0, 0}, {0, 4, 8},
                                {5, 4, 32}, {16, 0, 2}, {2, 30, 1}, {7, 20, 14}, {12, 9, 3}};
static void fill(void) { for (int i = 0; i < N; i++) start[i] = 0.6 + 0.37 * sin(1.7 * i + 0.3), weight[i] = cos(2.1 * i), along[i] = sin(0.9 * i + 1); }
static void begin(const double *s) { memcpy(memory, start, sizeof memory), memcpy(shadow, s, sizeof shadow); }
static int near(double got, double right) { return fabs(got - right) <= 1e-6 * (1 + fabs(right)); }
static void compare(const char *name, int k, const char *mode) {
  for (int i = 0; i < N; i++)
    if (!near(shadow[i], want[i])) { printf("%s, arrays %d, %s: [%d] is %.9g, not %.9g\n", name, k, mode, i, shadow[i], want[i]); return; }
}
static void tangent(const char *name, int k, double t) {
  double right = 0;
  for (int i = 0; i < N; i++) t += weight[i] * shadow[i], right += want[i] * along[i];
  if (!near(t, right)) printf("%s, arrays %d, forward: %.9g, not %.9g\n", name, k, t, right);
}
static double whole(double f) { for (int i = 0; i < N; i++) f += weight[i] * memory[i]; return f; }
static int run(void (*test)(const int *, int), int k) {
  fflush(stdout);
  pid_t child = fork();
  if (!child) { test(places[k], k); fflush(stdout); _exit(0); }
  int status;
  waitpid(child, &status, 0);
  return status;
}
"""
_TEST = r"""
static void test_NAME(const int *c, int k) {
  pair s = {memory + c[0], 1, memory + c[1], 2.0, LENGTH}, ds = {shadow + c[0], 0, shadow + c[1], 0.0, 0};
  triple t = {s, memory + c[2]}, dt = {ds, shadow + c[2]};
  double *r[3] = {memory + c[0], memory + c[1], memory + c[2]}, *dr[3] = {shadow + c[0], shadow + c[1], shadow + c[2]};
  (void)t, (void)dt, (void)s, (void)ds, (void)r, (void)dr;
  for (int i = 0; i < N; i++) {
    double f[4], h = 1e-4;
    for (int z = 0; z < 4; z++) begin(start), memory[i] += (z < 2 ? h : 2 * h) * (z % 2 ? -1 : 1), f[z] = whole(NAME(GIVEN, LENGTH));
    want[i] = (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * h);
    if (!(fabs(want[i]) < 1e4)) return;  /* it says nothing of such functions what differences give */
  }
  begin(start), value = NAME(GIVEN, LENGTH), memcpy(after, memory, sizeof after);
  begin(weight), __enzyme_autodiff((void *)NAME, DUPLICATED, enzyme_const, LENGTH), compare("NAME", k, "reverse");
  begin(along), tangent("NAME", k, __enzyme_fwddiff((void *)NAME, DUPLICATED, enzyme_const, LENGTH));
  begin(weight);
  struct taped tape = __enzyme_augmentfwd((void *)NAME, DUPLICATED, enzyme_const, LENGTH);
  if (!near(tape.value, value)) printf("NAME, arrays %d, value: %.9g, not %.9g\n", k, tape.value, value);
  for (int i = 0; i < N; i++) if (!near(memory[i], after[i])) { printf("NAME, arrays %d, memory: [%d] is %.9g, not %.9g\n", k, i, memory[i], after[i]); break; }
  __enzyme_reverse((void *)NAME, DUPLICATED, enzyme_const, LENGTH, 1.0, tape.tape), compare("NAME", k, "split");
}
"""
_ARRAYS = "enzyme_dup, memory + c[0], shadow + c[0], enzyme_dup, memory + c[1], shadow + c[1], enzyme_dup, memory + c[2], shadow + c[2]"
# how a function is given its arrays: parameters, what it calls them, arguments, arguments with shadows, its length
_KINDS = {
    "plain": ("double *a, double *b, double *c", ("a", "b", "c"), "memory + c[0], memory + c[1], memory + c[2]", _ARRAYS, "n"),
    "struct": ("pair *s, double *c", ("s->p", "s->q", "c"), "&s, memory + c[2]", "enzyme_dup, &s, &ds, enzyme_dup, memory + c[2], shadow + c[2]", "s->m"),
    "deep": ("triple *t", ("t->in.p", "t->in.q", "t->o"), "&t", "enzyme_dup, &t, &dt", "t->in.m"),
    "rows": ("double **r", ("r[0]", "r[1]", "r[2]"), "r", "enzyme_dup, r, dr", "n"),
    "both": ("pair *s, double **r", ("s->p", "r[0]", "r[1]"), "&s, r + 1", "enzyme_dup, &s, &ds, enzyme_dup, r + 1, dr + 1", "s->m"),
}  # fmt: skip


class Overlaps:
    """A function, by its seed."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.name = f"f{seed}"
        self.kind = _KINDS[self.r.choice(list(_KINDS))]
        body = "".join(self._statement(1, []) for _ in range(self.r.randint(1, 4)))
        result = self.r.choice(["s0", f"s0 + {self.kind[1][0]}[1]", "0"])
        length = self.kind[4] if self.r.random() < 0.4 else "n"
        self.text = (f"static double {self.name}({self.kind[0]}, int n) {{\n  double s0 = 0.1;\n  n = {length};\n"
                     f"{body}  return {result};\n}}\n")  # fmt: skip

    def _index(self, counters: list[str]) -> str:
        if not counters:
            return str(self.r.randint(0, 7))
        v = self.r.choice(counters)
        forms = [v, f"{v} + {self.r.randint(0, 4)}", f"2 * {v}", f"n - 1 - {v}"]
        forms += [f"{counters[0]} + {counters[1]}", f"3 * {counters[0]} + {counters[1]}"] if len(counters) > 1 else []
        return self.r.choice(forms)

    def _place(self, counters: list[str]) -> str:
        return f"{self.r.choice(self.kind[1])}[{self._index(counters)}]"

    def _value(self, counters: list[str], depth: int = 0) -> str:
        choice = self.r.randint(0, 7)
        if depth > 2 or choice < 3:
            return self._place(counters)
        one, two = (self._value(counters, depth + 1) for _ in range(2))
        return ["s0", f"sin({one})", f"({one} * {two})", f"(0.5 * {one} + 0.3 * {two})", f"({one} / (1.5 + {two} * {two}))"][choice - 3]

    def _assignment(self, counters: list[str]) -> str:
        at, one, two = self._place(counters), self._value(counters), self._value(counters)
        forms = [f"s0 = 0.7 * s0 + 0.2 * {one};", f"{at} *= 0.5 + 0.2 * {one};", f"{at} += 0.3 * {one};", f"{at} = 0.6 * {one};",
                 f"{{ double u = {one}, w = {two}; {at} = u * 0.4; {self._place(counters)} = w * u * 0.5 + 0.2; }}"]  # fmt: skip
        forms += [f"if ({self.r.choice(counters)} % 2) {at} = 0.8 * {one};"] if counters else []
        return "    " + self.r.choice(forms) + "\n"

    def _statement(self, depth: int, counters: list[str]) -> str:
        if depth > 2 or (depth > 1 and self.r.random() < 0.5):
            return self._assignment(counters)
        v, choice = "ijk"[len(counters)], self.r.randint(0, 8)
        if choice == 0:
            to, source = self.r.choice(self.kind[1]), self.r.choice(self.kind[1])
            return f"  memmove({to} + {self.r.randint(0, 2)}, {source} + {self.r.randint(0, 2)}, n * sizeof(double));\n"
        body = "".join(self._statement(depth + 1, [*counters, v]) for _ in range(self.r.randint(1, 2)))
        if choice == 1:
            return f"  {{ int {v} = 0; do {{\n{body}  }} while (++{v} < n); }}\n"
        head = {2: f"int {v} = n - 1; {v} >= 0; {v}--", 3: f"int {v} = 1; {v} < n; {v} += 2"}.get(choice, f"int {v} = 0; {v} < n; {v}++")
        if choice == 4 and counters:
            head = f"int {v} = 0; {v} <= {counters[-1]}; {v}++"
        if choice == 5:
            body = f"    double sum = 0;\n    for (int z = 0; z < n; z++) sum += {self._value([*counters, v, 'z'])};\n    {self._place([*counters, v])} = 0.2 * sum;\n" + body
        leave = f"    if ({v} == {self.r.randint(1, 3)}) {self.r.choice(['continue', 'break'])};\n" if choice == 6 else ""
        return f"  for ({head}) {{\n{leave}{body}  }}\n"


def _program(functions: Iterable[Overlaps]) -> str:
    texts, calls = [_HEAD], ""
    for one in functions:
        test = _TEST.replace("GIVEN", one.kind[2]).replace("DUPLICATED", one.kind[3]).replace("NAME", one.name)
        texts += [one.text, test]
        calls += f'  for (int k = 0; k < (int)(sizeof places / sizeof *places); k++) if (run(test_{one.name}, k)) printf("{one.name}, arrays %d: died\\n", k);\n'
    return "".join(texts) + "int main(void) {\n  fill();\n" + calls + '  puts("finished");\n}\n'


def check(seeds: Iterable[int], *options: str) -> list[str]:
    """What is wrong with the functions of these seeds; those that are refused are left out, with a line of their own."""
    left, wrong = {one.name: one for one in map(Overlaps, seeds)}, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "overlaps.c"
        while left:
            path.write_text(_program(left.values()))
            words = [sys.executable, "-m", "irgrad.interop.cli", "run", *options, str(path), "-lm"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            *lines, last = done.stdout.splitlines() or [""]
            if last == "finished":
                return wrong + lines
            refused = re.search(r"@(f\d+)\b", done.stderr)
            if refused is None or refused[1] not in left:
                return [*wrong, f"the program ended with {done.returncode}: {done.stderr[-600:]}"]
            wrong.append(f"{refused[1]}: refused: {done.stderr.splitlines()[0]}")
            del left[refused[1]]
    return wrong


def main() -> int:
    """The command line of this file."""
    first, *options = sys.argv[1:]
    low, _, high = first.partition(":")
    seeds = range(int(low), int(high or int(low) + 1))
    if "--source" in options:
        print("".join(Overlaps(seed).text for seed in seeds))
        return 0
    failures = 0
    for begin in range(seeds.start, seeds.stop, 12):
        found = check(range(begin, min(begin + 12, seeds.stop)), *options)
        failures += len(found)
        print("\n".join(found), flush=True)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
