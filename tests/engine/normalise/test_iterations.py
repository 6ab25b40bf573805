"""Independent loops as calls: what goes, what stays and why, and that the program still computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.normalise.iterations import ITERATION, LOOP, apart, outline_iterations, promises, scalar_loops

EACH = '_Pragma("clang loop vectorize(assume_safety)")'


def _kernel(body: str, *, promise: bool = True) -> Kernel:
    source = f"#include <math.h>\nvoid f(const double *x, double *y, long n) {{ {body} }}\n"
    source = source.replace("EACH", EACH if promise else "")
    return irgrad.load(source).kernel("f", "void(f64[n] x, out f64[n] y, i64 n)")


def _outlined(kernel: Kernel) -> Kernel:
    return kernel.with_options(device=True)


def _functions(kernel: Kernel) -> list[str]:
    return [name for name in read(kernel.primal.stage.text).functions if apart(name)]


BODIES = {
    "counted up": "EACH for (long i = 0; i < n; i++) y[i] = x[i] * x[i] / (2 + x[i]);",
    "counted down by two": "EACH for (long i = n - 1; i >= 0; i -= 2) y[i] = x[i] * x[n - 1 - i];",
    "by an int": "EACH for (int i = 3; i < (int)n; i += 3) y[i] = x[i] * i;",
    "by pointers": "const double *p = x; EACH for (double *q = y; q < y + n; q++, p++) *q = *p * *p;",
    "a sum": "double s = 1; EACH for (long i = 0; i < n; i++) s += x[i]; y[0] = s;",
    "two sums, one by branches":
        "double s = 0, t = 2; EACH for (long i = 0; i < n; i++) { s -= x[i]; if (x[i] > 0) t += 1 / x[i]; }"
        " y[0] = s; y[1] = t;",
    "memory of an iteration":
        "EACH for (long i = 0; i < n; i++) { double w[3] = {x[i], 1, 2};"
        " for (int j = 1; j < 9; j++) w[j % 3] += j * w[(j + 1) % 3]; y[i] = w[1]; }",
    "neighbours": "EACH for (long i = 1; i < n - 1; i++) y[i] = x[i - 1] - 2 * x[i] + x[i + 1];",
    "in a loop": "for (long t = 0; t < 3; t++) { EACH for (long i = 0; i < n; i++) y[i] = y[i] * .5 + x[i]; }",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_the_program_computes_the_same(name: str) -> None:
    """Bit by bit, but for sums: an iteration adds up what it adds before the sum gets it."""
    x = np.random.default_rng(2).normal(size=23)
    plain, kernel = _kernel(BODIES[name], promise=False), _outlined(_kernel(BODIES[name]))
    assert [ITERATION in n or LOOP in n for n in _functions(kernel)] == [True, True]
    np.testing.assert_allclose(kernel(x), plain(x), rtol=1e-15 if "sum" in name else 0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("EACH for (long i = 1; i < n; i++) y[i] = y[i - 1] + x[i];", ""),  # a promise that is not kept is the source's
        ("for (long i = 0; i < n; i++) y[i] = 2 * x[i];", "nothing says that its iterations are independent"),
        ("double s = 1; EACH for (long i = 0; i < n; i++) s = s * .5 + x[i]; y[0] = s;", "goes on with what the one"),
        ("double s = 0; EACH for (long i = 0; i < n; i++) { s += x[i]; y[i] = s; }", "goes on with what the one"),
        ("double s = 0; EACH for (long i = 0; i < n; i++) y[i] = s = sin(x[i]); y[0] = s;", "its last iteration"),
        ("EACH for (long i = 0; i < n; i++) { if (x[i] > 2) break; y[i] = x[i]; }", "it ends in more than one way"),
        ("EACH for (long i = 1; i < n; i *= 2) y[i] = x[i];", "how often it runs is not known before it"),
    ],
)
def test_what_stays_says_why(body: str, why: str) -> None:
    kernel = _outlined(_kernel(body))
    stage = kernel.primal.stage
    module = read(stage.text, roots=[stage.name])
    reasons = outline_iterations(module, module.functions[stage.name])
    assert bool(_functions(kernel)) == (not why)
    assert [r.startswith("<string>:2:") and why in r for r in reasons] == ([True] if why else [])


def test_a_derivative_keeps_them_apart() -> None:
    """At every order: what is optimised before it is differentiated again must not become one loop."""
    kernel = _outlined(_kernel(BODIES["counted up"]))
    program = kernel.primal.pullback([0, 1])
    again = program.jvp([n for n, slot in enumerate(program.slots) if slot.differentiable])
    for stage in (program.stage, again.stage):
        made = read(stage.text)
        assert any(".rev." in name and ITERATION in name for name in made.functions)
        assert verify_module(made) == []


def test_without_a_promise_nothing_changes() -> None:
    kernel = _kernel(BODIES["counted up"], promise=False)
    assert not promises(kernel.source.text)
    text = _kernel(BODIES["counted up"]).source.text
    assert promises(text) and '"llvm.loop.vectorize.enable", i1 true' not in scalar_loops(text)


@pytest.mark.parametrize(("head", "goes"), [("static", True), ("static __attribute__((noinline))", False)])
def test_loops_of_functions_that_it_calls(head: str, goes: bool) -> None:
    """They become parts of it first, with what leads to them."""
    source = f"""{head} void inner(const double *x, double *y, long n) {{
      {EACH} for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }}
    static void outer(const double *x, double *y, long n) {{ inner(x, y, n); }}
    void f(const double *x, double *y, long n) {{ outer(x, y, n); y[0] += 1; }}"""
    kernel = irgrad.load(source).kernel("f", "void(f64[n] x, out f64[n] y, i64 n)")
    assert bool(_functions(_outlined(kernel))) == goes
    x = np.arange(5.0)
    assert np.array_equal(_outlined(kernel)(x), kernel(x))
