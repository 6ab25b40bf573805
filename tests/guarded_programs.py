"""C programs in which arrays end, or begin, where nothing is mapped: a byte too many kills them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAD = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *, ...);
static double *guarded(long n, int end) {
    long page = sysconf(_SC_PAGESIZE), bytes = (n * 8 + page - 1) / page * page;
    if (n == 0) return 0;
    char *all = mmap(0, bytes + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(all, page, PROT_NONE);
    mprotect(all + page + bytes, page, PROT_NONE);
    return (double *)(end ? all + page + bytes - n * 8 : all + page);
}
"""


def run(folder: Path, text: str, *options: str) -> tuple[list[list[float]], str]:
    """The numbers that a program prints, and what is said of it."""
    file = folder / "program.c"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", *options, str(file), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()], done.stderr


def close(one: list[list[float]], other: list[list[float]]) -> bool:
    return len(one) == len(other) and all(
        len(a) == len(b) and all(abs(x - y) <= 1e-11 * (1 + abs(x)) for x, y in zip(a, b, strict=True))
        for a, b in zip(one, other, strict=True)
    )
