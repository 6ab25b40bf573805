"""Loads on branches that other iterations make anyway stand in front of the branch; nothing is read outside of arrays."""

# ruff: noqa: E501  (C sources read better unbroken)

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.reducible import canonicalise
from irgrad.engine.normalise.short_branches import select_branches

HEAD = "#include <math.h>\n"
BODIES = {  # u[0 .. n - 1], a[0 .. n - 1]; o starts from zeros
    "upwind": "for (long i = 1; i < n - 1; i++) { double d; if (a[i] > 0) d = u[i] - u[i - 1]; else d = u[i + 1] - u[i]; o[i] = u[i] - a[i] * d; }",
    "down": "for (long i = n - 2; i > 0; i--) { double d = 0.1; if (a[i] > 0) d = u[i + 1] * u[i]; o[i] = sin(u[i]) * d; }",
    "behind": "for (long i = 1; i < n; i++) { double d = a[i]; if (a[i] > 0.1) d = u[i - 1] * u[i]; o[i] += d * u[i]; }",
    "ahead": "for (int i = 0; i < (int)n - 1; i++) { double d = a[i]; if (a[i] < 0.1) d *= u[i + 1]; o[i] += d * u[i]; }",
    "strides": "for (long i = 2; i < n - 2; i += 2) { double d = 1; if (a[i] > 0) d = u[i - 2]; else d = u[i + 2] * a[i]; o[i] = u[i] * d; }",
    "sums": "double s = 0; for (long i = 1; i < n - 1; i++) { s += u[i] * u[i]; if (a[i] > 0) s += u[i - 1] * u[i + 1] * a[i]; } o[0] = s;",
    "swept": "for (long i = 1; i < n - 1; i++) { double d; if (a[i] > 0) d = o[i - 1]; else d = u[i + 1]; o[i] = 0.5 * d + u[i] * o[i]; }",
    "roots": "for (long i = 1; i < n - 1; i++) { double d = 0; if (u[i - 1] > 0.2) d = sqrt(u[i - 1] - 0.2); o[i] = d * u[i]; }",
    "rows": "for (long t = 0; t < 3; t++) for (long i = 1; i < n - 1; i++) { double d = u[i]; if (o[i] + a[i] > 0) d += u[i - 1]; else d -= u[i + 1]; o[i] += 0.1 * d * u[i]; }",
    "integers": "long c = 0; for (long i = 1; i < n - 1; i++) { if (a[i] > 0) { o[i] = u[i] + u[i - 1]; } else o[i] = u[i] * u[i + 1]; c += a[i] > 0; } o[0] = c * u[0];",
}  # fmt: skip
SIGNATURE = "void(f64[n] u, f64[n] a, inout f64[n] o, i64 n)"


def _kernel(name: str) -> irgrad.Kernel:
    source = HEAD + f"void {name}(const double *u, const double *a, double *o, long n) {{ {BODIES[name]} }}\n"
    return irgrad.load(source).kernel(name, SIGNATURE)


@pytest.mark.parametrize("name", BODIES)
def test_both_modes_and_differences(name: str) -> None:
    kernel, rng = _kernel(name), np.random.default_rng(len(name))
    for n in (2, 3, 4, 5, 6, 7, 17, 18, 40):
        u, a, o = rng.uniform(0.25, 1, n), rng.uniform(-1, 1, n), rng.uniform(0.1, 1, n)
        ways = [rng.normal(size=n) for _ in range(3)]
        seed = rng.normal(size=n)
        _, moved = irgrad.jvp(kernel, (u, a, o), ways)
        _, pullback = irgrad.vjp(kernel, u, a, o)
        found = sum(float(row @ way) for row, way in zip(pullback(seed), ways, strict=True))

        def at(t: float, given: Any = (u, a, o), ways: Any = ways, seed: Any = seed) -> float:
            return float(seed @ kernel(*(row + t * way for row, way in zip(given, ways, strict=True))))

        assert np.isclose(found, seed @ moved, rtol=1e-12, atol=1e-13), n
        assert np.isclose(found, (at(1e-6) - at(-1e-6)) / 2e-6, rtol=1e-5, atol=1e-7), n


EDGE = """
double edge(const double *u, const double *a, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) { double d = 1; if (a[i] > 0) d = u[i PLACE]; s += d * u[i] * a[i]; }
    return s;
}
"""


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("count", [1, 2, 64])
def test_nothing_is_read_outside(count: int, at_end: bool) -> None:
    """An array that ends, or begins, where memory does: the branch that would leave it is not taken."""
    source = EDGE.replace("PLACE", "+ 1" if at_end else "- 1")
    kernel = irgrad.load(source).kernel("edge", "f64(f64[n] u, f64[n] a, i64 n)")
    u, a = _beside_a_gap(count, at_end), np.where(np.arange(count) % 3, 1.0, 0.5)
    a[-1 if at_end else 0] = -0.3
    u[:] = np.random.default_rng(1).uniform(0.2, 1, count)
    gradients = irgrad.grad(kernel, wrt=("u", "a"))
    for found, right in zip(gradients(u, a), gradients(u.copy(), a), strict=True):
        np.testing.assert_array_equal(found, right)
    neighbour = np.roll(u, -1 if at_end else 1)
    np.testing.assert_allclose(gradients(u, a)[1], np.where(a > 0, neighbour, 1) * u, rtol=1e-13)


def test_the_branch_is_gone() -> None:
    """In the loop between the iterations that are cut off."""
    kernel = _kernel("upwind")
    module = read(prepare(kernel.primal.stage.text, [kernel.primal.stage.name]), roots=[kernel.primal.stage.name])
    (fn,) = [f for f in module.functions.values() if not f.is_declaration]
    canonicalise(fn)
    assert select_branches(fn) == 1
    verify_module(module)
    (loop,) = get(Loops, fn).all
    assert sum(len(block.successors) > 1 for block in loop.blocks) == 1
    assert sum(i.opcode == "load" for block in loop.blocks for i in block.instructions) == 4  # u three times, a once


def _beside_a_gap(count: int, at_end: bool) -> np.ndarray:
    """An array at the end, or at the beginning, of memory that may be accessed."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    protection, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = libc.mmap(None, 3 * mmap.PAGESIZE, protection, kind, -1, 0)
    for gap in (start, start + 2 * mmap.PAGESIZE):
        assert libc.mprotect(gap, mmap.PAGESIZE, 0) == 0
    at = start + 2 * mmap.PAGESIZE - 8 * count if at_end else start + mmap.PAGESIZE
    return np.frombuffer((ctypes.c_char * (8 * count)).from_address(at), np.float64)


def random_loop(rng: np.random.Generator) -> str:
    """A loop over inner elements with choices between neighbours."""
    arrays = ["u", "u", "a", "o"]
    step = int(rng.integers(1, 3))
    counter = rng.choice(["long", "int", "unsigned long"])
    head = (f"for ({counter} i = 3; i + 3 < n; i += {step})" if rng.random() < 0.7 else
            f"for (long i = n - 4; i >= 3; i -= {step})")  # fmt: skip

    def place() -> str:
        return f"{rng.choice(arrays)}[i + {rng.choice([-2, -1, -1, 0, 0, 1, 1, 2])}]"

    def term() -> str:
        one = place()
        return rng.choice([f"{place()} * {place()}", f"{place()} - {place()}", f"{place()}", f"0.3 * {place()} + a[i]",
                           f"sqrt({one} * {one} + 0.1)", "0.4"])  # fmt: skip

    def choice(depth: int) -> str:
        condition = f"{place()} {rng.choice(['<', '>', '<=', '>='])} {rng.choice(['0.2', place(), 'u[i]', '-0.1'])}"
        then = choice(depth - 1) if depth and rng.random() < 0.4 else f"d = {term()};"
        other = f"d = {term()};" if rng.random() < 0.7 else ""
        added = f"s += {place()} * {place()};" if rng.random() < 0.2 else ""
        return f"if ({condition}) {{ {then} {added} }} else {{ {other} }}"

    inner = " ".join(choice(1) for _ in range(rng.integers(1, 3)))
    body = f"double d = {term()}; {inner} o[i] = 0.5 * u[i] + 0.2 * d * {place()};"
    return f"double s = 0; {head} {{ {body} }} if (n) o[0] += s;"


@pytest.mark.parametrize("first", range(0, min(int(os.environ.get("IRGRAD_FUZZ", "10")), 40), 10))
def test_random_loops(first: int) -> None:
    bodies = [random_loop(np.random.default_rng(seed)) for seed in range(first, first + 10)]
    text = HEAD + "".join(f"void r{n}(const double *u, const double *a, double *o, long n) {{ {body} }}\n"
                          for n, body in enumerate(bodies))  # fmt: skip
    library = irgrad.load(text)
    for number in range(10):
        kernel = library.kernel(f"r{number}", SIGNATURE)
        for n in (4, 6, 7, 8, 9, 10, 24, 41):
            rng = np.random.default_rng([first, number, n])
            given = [rng.uniform(-1, 1, n) for _ in range(3)]
            ways, seed = [rng.normal(size=n) for _ in range(3)], rng.normal(size=n)
            value, moved = irgrad.jvp(kernel, tuple(given), ways)
            outputs, pullback = irgrad.vjp(kernel, *given)
            found = sum(float(row @ way) for row, way in zip(pullback(seed), ways, strict=True))
            assert np.array_equal(outputs, value)
            assert np.isclose(found, seed @ moved, rtol=1e-11, atol=1e-12), (first, number, n)
            step = [seed @ kernel(*(row + t * way for row, way in zip(given, ways, strict=True)))
                    for t in (1e-6, -1e-6, 5e-7, -5e-7)]  # fmt: skip
            near, nearer = (step[0] - step[1]) / 2e-6, (step[2] - step[3]) / 1e-6
            smooth = abs(near - nearer) < 1e-4 * (1 + abs(near))
            assert not smooth or np.isclose(found, near, rtol=1e-5, atol=1e-6), (first, number, n)
