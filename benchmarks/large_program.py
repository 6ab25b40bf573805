"""A large program that differentiates one small function: how long it takes to compile, and where the time goes.

    python -m benchmarks.large_program            # 20,000 lines of IR
    python -m benchmarks.large_program 100000

Only what the differentiated function reaches is read by irgrad; the rest is LLVM's alone. The last row is
the same program compiled by the C compiler without irgrad.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_HEAD = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
"""
# A numerical function, a parser and a list, as programs have them around the function that matters.
_PART = """
struct item@ { double w[#]; int kind; struct item@ *next; char name[16]; };
double mix@(const double *a, const double *b, long n) {
  double s = @.5, t = 1;
  for (long i = 0; i < n; i++) {
    double d = a[i] - b[i] * #;
    if (d > #) s += exp(-d * d); else s -= d / (1 + fabs(t));
    t = t * 0.5 + sin(d + s);
  }
  return s * t;
}
int parse@(const char *text, struct item@ *to) {
  int state = 0, count = 0;
  for (const char *p = text; *p; p++) switch (state) {
    case 0: if (*p == '{') { state = 1; count++; } else if (*p == ' ') continue; else return -1; break;
    case 1: if (*p == '}') state = 0; else if (*p == '"') state = 2; else to->kind = to->kind * 10 + (*p - '0'); break;
    case 2: if (*p == '"') state = 1; else if (count < 15) to->name[count++] = *p; break;
    default: return -2;
  }
  struct item@ *other = malloc(sizeof *other);
  if (!other) return -3;
  memcpy(other, to, sizeof *other);
  other->next = to->next;
  to->next = other;
  for (int i = 0; i < #; i++) to->w[i] = other->w[(i + count) % #] * mix@(to->w, other->w, #);
  return snprintf(to->name, sizeof to->name, "%d", count);
}
"""
_MAIN = """
static double f(const double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += sin(x[i]) * x[i];
  return s;
}
int main(int argc, char **argv) {
  double x[3] = {1, 2, 3}, g[3] = {0};
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, 3);
  for (int i = 0; i < 3; i++) if (fabs(g[i] - sin(x[i]) - x[i] * cos(x[i])) > 1e-12) return 1;
  if (argc > 5) {
CALLS  }
  return 0;
}
"""
LINES_OF_A_PART = 250
"""Lines of IR that a part becomes."""


def program(parts: int) -> str:
    """The source, with so many parts around the differentiated function."""
    bodies = (_PART.replace("@", str(k)).replace("#", str(3 + k % 5)) for k in range(parts))
    calls = (f"    {{ struct item{k} z = {{0}}; printf(\"%d %g\\n\", parse{k}(argv[1], &z), z.w[0]); }}\n"
             for k in range(parts))  # fmt: skip
    return "".join([_HEAD, *bodies, _MAIN.replace("CALLS", "".join(calls))])


def seconds(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Wall clock and CPU seconds of a process and of what it starts."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ir_lines(source: Path, level: str) -> int:
    """Lines of IR that the program is compiled to: of functions and variables, without metadata."""
    import irgrad

    text = irgrad.load(source, opt=level.lstrip("-") or None).text
    return sum(1 for line in text.splitlines() if line and line[0] not in "!;")


def main(lines: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="irgrad-large-") as scratch:
        source, image = Path(scratch, "large.c"), Path(scratch, "large.o")
        source.write_text(program(lines // LINES_OF_A_PART))
        print(f"{'level':8} {'lines of IR':>12} {'wall clock':>12} {'CPU':>9}")
        for number, level in enumerate(("", "-O0", "-O2")):
            environment = {**os.environ, "IRGRAD_CACHE_DIR": str(Path(scratch, f"cache{number}"))}
            words = [sys.executable, "-m", "irgrad.interop.cli", "cc", *([level] if level else []), "-c"]
            wall, cpu = seconds([*words, str(source), "-o", str(image)], environment)
            print(f"{level or 'default':8} {ir_lines(source, level):12,} {wall:10.2f} s {cpu:7.2f} s")
        plain = Path(scratch, "plain.c")
        plain.write_text(source.read_text().replace("__enzyme_autodiff(", "other("))
        from irgrad.interop.loaders.compiler import find_compiler

        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": scratch, "ZIG_LOCAL_CACHE_DIR": scratch}
        compiler = find_compiler().command["c"]
        wall, cpu = seconds([*compiler, "-O2", "-c", str(plain), "-o", str(image)], environment)
        print(f"{'clang -O2 alone':21} {wall:10.2f} s {cpu:7.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
