"""Every opcode and float intrinsic with an active operand: its derivative is right or refused, never a silent zero."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.verdicts import Verdict, in_workers
from handwritten.opcode_cases import CASES

import irgrad
from irgrad import engine
from irgrad.engine.ir.opcodes import OPCODES

X, H = 1.3, 1e-4
_verdicts: dict[str, Verdict] = {}


def _judge(name: str) -> Verdict:
    declarations, body = CASES[name]
    unwinds = " personality ptr @__gxx_personality_v0" if "landingpad" in body else ""
    text = f"{declarations}define double @f(double %x){unwinds} {{\nentry:\n{body}\nret double %r\n}}\n"
    got = {}
    try:
        kernel = irgrad.load(text, language="ll").kernel("f")
        want = (8 * (kernel(X + H) - kernel(X - H)) - (kernel(X + 2 * H) - kernel(X - 2 * H))) / (12 * H)
    except irgrad.IRGradError as error:
        return Verdict(name, "refused", str(error))
    refused = ""
    modes = {"forward": lambda: engine.jvp(kernel, (X,), (1.0,))[1], "reverse": lambda: engine.grad(kernel)(X)}
    for mode, run in modes.items():
        try:
            got[mode] = run()
        except irgrad.IRGradError as error:
            refused = str(error)
    wrong = {m: v for m, v in got.items() if not abs(v - want) <= 2e-4 * max(1.0, abs(want))}
    if wrong:
        return Verdict(name, "wrong", f"{wrong}, want {want}")
    return Verdict(name, "refused" if refused else "right", refused)


def _verdict(name: str) -> Verdict:
    if not _verdicts:

        def work(names: list[Any], report: Callable[[Any], None]) -> None:
            for item in names:
                report(item.name)
                report(_judge(item.name))

        _verdicts.update({v.name: v for v in in_workers(work, [Verdict(n, "") for n in CASES])})
    return _verdicts[name]


@pytest.mark.xdist_group("screen")  # one worker judges them all
@pytest.mark.parametrize("name", CASES)
def test_right_or_refused(name: str) -> None:
    verdict = _verdict(name)
    assert verdict.kind in ("right", "refused"), f"{verdict.kind}: {verdict.detail}"


@pytest.mark.parametrize("name", "fadd fsub fmul fdiv frem fneg memcpy cmpxchg_old call load_const_table".split())
def test_what_must_be_right(name: str) -> None:
    assert _verdict(name).kind == ("refused" if name == "cmpxchg_old" else "right"), _verdict(name).detail


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mul_bits", "`mul` on an active value has no derivative"),
        ("add_bits_sitofp", "the bits of an active float are used as a number"),
        ("cmpxchg", "an atomic operation on integers changes an active float"),
        ("call_varargs", "an active value is passed through `...`"),
        ("setjmp", "`_setjmp` in code to be differentiated"),
        ("inline_asm", "inline assembly"),
        ("indirectbr", "the address of a block"),
        ("llvm.sincospi", "an intrinsic that LLVM does not know"),
    ],
)
def test_messages(name: str, words: str) -> None:
    assert _verdict(name).kind == "refused"
    assert words in _verdict(name).detail
    assert "to fix" in _verdict(name).detail


# Code that ends there, another address space, and what only other platforms have: nothing to differentiate.
WITHOUT_CASE = set("unreachable addrspacecast callbr catchswitch catchret cleanupret catchpad cleanuppad".split())


def test_every_opcode_has_a_case() -> None:
    words = {word for case in CASES.values() for word in re.findall(r"[a-z_]+\w*", " ".join(case))} | {"ret"}
    assert set(OPCODES) - words == WITHOUT_CASE
    assert {OPCODES[name].treatment for name in WITHOUT_CASE} == {"structural", "refused"}


def test_refused_rows_are_refused() -> None:
    """The table is honest: a case named after a refused opcode is refused."""
    rows = {name: OPCODES.get(name.partition("_")[0]) for name in CASES}
    refused = [name for name, row in rows.items() if row is not None and row.treatment == "refused"]
    assert refused
    assert {n: _verdict(n).kind for n in refused} == dict.fromkeys(refused, "refused")


VARIADIC = """
#include <stdarg.h>
#include <stdio.h>
volatile int verbose;
__attribute__((noinline)) static void note(char *text, const char *format, ...) {
    if (verbose < 1) return;
    va_list args; va_start(args, format);
    char line[80];
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text[0] = line[0];
}
__attribute__((noinline)) static void put(double *out, ...) {
    va_list args; va_start(args, out); *out = va_arg(args, double); va_end(args);
}
double logs(double x) { char text[1]; double s = x * x; note(text, "%g", s); return s * x; }
double puts_it(double x) { double s; put(&s, x * x); return s * x; }
"""


def test_active_values_may_be_printed_through_variable_arguments() -> None:
    kernel = irgrad.load(VARIADIC).kernel("logs")
    assert engine.grad(kernel)(2.0) == 12
    assert engine.jvp(kernel, (2.0,), (1.0,))[1] == 12


@pytest.mark.parametrize("call", ["put(", "taken = put; put(", "taken = put; taken("])
def test_active_values_that_come_back_through_variable_arguments(call: str) -> None:
    """Also where the function may be called through a pointer (see normalise/variadic.py)."""
    source = VARIADIC.replace("double s; put(", f"double s; {call}")
    kernel = irgrad.load(f"void (*volatile taken)(double *, ...);{source}").kernel("puts_it")
    assert engine.grad(kernel)(2.0) == 12
    assert engine.jvp(kernel, (2.0,), (1.0,))[1] == 12


KEPT = """
#include <stdlib.h>
struct cell { double v; char text[24]; };
double f(const double *x, long n) {
  struct cell c = {x[0], "2.5 rest"}, *p[2] = {&c, 0};
  char *end, **where = n > 2 ? (char **)&p[1] : &end;
  double scale = strtod(c.text, where);
  struct cell *q = p[1] ? (struct cell *)((char *)p[1] - 11) : p[0];
  return q->v * q->v * scale;
}
"""


OTHER = "static double other(const char *s, char **end) { *end = (char *)s; return s[0]; }\n"


def test_a_pointer_that_the_library_stores_has_no_shadow() -> None:
    """Called by its name it tells a distance only (see normalise/desugar.py); called through a pointer: refused."""
    kernel = irgrad.load(KEPT, language="c").kernel("f", "f64(f64[n] x, i64 n)")
    assert kernel([1.5, 2.0]) == 1.5 * 1.5 * 2.5
    for x in ([1.5, 2.0], [1.5, 2.0, 1.0]):
        np.testing.assert_array_equal(engine.grad(kernel)(x), [2 * 1.5 * 2.5, *np.zeros(len(x) - 1)])
    chosen = KEPT.replace("strtod(c.text", "(n > 3 ? strtod : other)(c.text").replace("double f(", OTHER + "double f(")
    kernel = irgrad.load(chosen, language="c").kernel("f", "f64(f64[n] x, i64 n)")
    with pytest.raises(irgrad.IRGradError, match="`a function` stores a pointer into memory that holds active"):
        engine.grad(kernel)([1.5, 2.0])
