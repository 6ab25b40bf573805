"""libc for the interpreter: memory, strings, sorting, classification."""


from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .mathematics import M64, signed32


def _memcpy(m: Any, to: int, source: int, n: int, *_: Any) -> int:
    m.memory.copy(to, source, int(n))
    return to


def _memset(m: Any, to: int, byte: int, n: int, *_: Any) -> int:
    m.memory.fill(to, byte, int(n))
    return to


def _realloc(m: Any, p: int, n: int) -> int:
    new = m.memory.allocate(n, heap=True)
    if p:
        m.memory.copy(new, p, min(m.memory.find(p)[0].size, n))
        m.memory.free(p)
    return new


def _posix_memalign(m: Any, where: int, align: int, n: int) -> int:
    m.memory.store(where, ty.PTR, m.memory.allocate(n, heap=True))
    return 0


def _strlen(m: Any, p: int) -> int:
    n = 0
    while m.memory.load(p + n, ty.I8):
        n += 1
    return n


def _memcmp(m: Any, a: int, b: int, n: int) -> int:
    for i in range(n):
        x, y = int(m.memory.load(a + i, ty.I8)), int(m.memory.load(b + i, ty.I8))
        if x != y:
            return (x - y) & 0xFFFFFFFF
    return 0


def _qsort(m: Any, base: int, n: int, size: int, compare: int) -> None:
    """Insertion sort through a scratch element: the same result as any stable sort."""
    scratch = m.memory.allocate(size)
    for i in range(1, n):
        m.memory.copy(scratch, base + i * size, size)
        j = i
        while j > 0 and signed32(m.call_pointer(compare, [base + (j - 1) * size, scratch])) > 0:
            m.memory.copy(base + j * size, base + (j - 1) * size, size)
            j -= 1
        m.memory.copy(base + j * size, scratch, size)


def _malloc(m: Any, n: int, *_: Any) -> int:
    return m.memory.allocate(int(n), heap=True)


LIBC: dict[str, Callable[..., Any]] = {
    "malloc": _malloc, "_Znwm": _malloc, "_Znam": _malloc, "valloc": _malloc,
    "calloc": lambda m, n, s: m.memory.allocate(n * s, 0, heap=True),
    "realloc": _realloc,
    "malloc_usable_size": lambda m, p: m.memory.find(p)[0].size if p else 0,
    "free": lambda m, p: m.memory.free(p),
    "_ZdlPv": lambda m, p: m.memory.free(p), "_ZdaPv": lambda m, p: m.memory.free(p),
    "_ZdlPvm": lambda m, p, n: m.memory.free(p), "_ZdaPvm": lambda m, p, n: m.memory.free(p),
    "aligned_alloc": lambda m, a, n: m.memory.allocate(n, heap=True),
    "memalign": lambda m, a, n: m.memory.allocate(n, heap=True),
    "posix_memalign": _posix_memalign,
    "memcpy": _memcpy, "memmove": _memcpy, "memset": _memset,
    "__memcpy_chk": _memcpy, "__memmove_chk": _memcpy, "__memset_chk": _memset,
    "strlen": _strlen, "memcmp": _memcmp, "bcmp": _memcmp, "qsort": _qsort,
    "labs": lambda m, n: n if not n >> 63 else -n & M64,
    "llabs": lambda m, n: n if not n >> 63 else -n & M64,
    "__errno_location": lambda m: _errno(m),
    "__fpclassify": lambda m, x: _classify(m, x), "__fpclassifyf": lambda m, x: _classify(m, x),
    "__isnan": lambda m, x: int(m.domain.nan(x)), "__isnanf": lambda m, x: int(m.domain.nan(x)),
    "__isinf": lambda m, x: int(math.isinf(float(m.domain.real(x)))),
    "__signbit": lambda m, x: int(m.domain.negative(x)), "__signbitf": lambda m, x: int(m.domain.negative(x)),
}  # fmt: skip
OF_VALUES = frozenset("labs llabs __fpclassify __fpclassifyf __isnan __isnanf __isinf __signbit __signbitf".split())
"""Those that compute from their arguments' values only."""


def _errno(m: Any) -> int:
    if not hasattr(m, "errno"):
        m.errno = m.memory.allocate(4, 0)
    return m.errno


def _classify(m: Any, x: Any) -> int:
    r = float(m.domain.real(x))
    return 0 if math.isnan(r) else 1 if math.isinf(r) else 2 if r == 0 else 3 if abs(r) < 2.3e-308 else 4
