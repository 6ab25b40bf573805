"""Damaged modules: valid LLVM IR with a few tokens swapped, dropped, doubled or replaced, the same for the same seed."""

# ruff: noqa: E501
from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from oracle.build import to_ir

from fuzz.verdicts import Verdict

SOURCE = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
struct node { double value; int kind; struct node *next; };
static const double table[4] = {0.5, 1.5, -2.0, 3.0};
static double helper(const struct node *n, double s) {
    for (; n; n = n->next) switch (n->kind) { case 0: s += n->value; break; case 1: s *= n->value; break; default: s -= 1; }
    return s;
}
double lists(const double *x, int n) {
    struct node *head = 0; double s = 1;
    for (int i = 0; i < n; i++) {
        struct node *t = malloc(sizeof *t);
        t->value = x[i] * table[i & 3]; t->kind = i % 3; t->next = head; head = t;
    }
    s = helper(head, s);
    while (head) { struct node *t = head->next; free(head); head = t; }
    return s;
}
double loops(const double *x, int n) {
    double s = 0, t[8] = {0};
    for (int i = 0; i < n; i++) { t[i & 7] += sin(x[i]) * x[0]; if (t[i & 7] > 2) break; s += t[(i + 1) & 7] * exp(-s); }
    memcpy(t + 4, t, 32);
    return s + t[5] * fabs(t[6]);
}
typedef double pair __attribute__((vector_size(16)));
double vectors(const double *x, int n) {
    pair a = {x[0], x[1]}, b = {x[1], 2};
    for (int i = 0; i < n; i++) a = a * b + (i & 1 ? a : b);
    float f = (float)a[0];
    return f * a[1] + pow(fabs(x[0]) + 1, x[1]);
}
double (*const choice[2])(double) = {sin, cos};
double pointers(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += choice[i & 1](x[i]); return s; }
"""
NAMES = ("lists", "loops", "vectors", "pointers")
SIGNATURE = "f64(f64[n] x, i32 n)"

_TOKEN = re.compile(r'\s+|"[^"\n]*"|[%@!#$][-\w$.]*|[\w.+-]+|.')
_TYPES = "i1 i8 i32 i64 i128 i4096 half float double x86_fp80 fp128 ptr void label metadata token {} [0xi8] <2xdouble>".split()
_NUMBERS = "0 1 -1 2 255 4294967295 -9223372036854775808 99999999999999999999 0x7FF8000000000000 undef poison null".split()
_OPCODES = (
    "add sub mul fadd fmul fdiv load store alloca getelementptr phi br switch ret unreachable call invoke select freeze "
    "bitcast inttoptr ptrtoint trunc zext fptosi extractvalue insertelement shufflevector fence atomicrmw cmpxchg"
).split()


@dataclass(frozen=True)
class Mutant:
    """One damaged module and the function to derive."""

    name: str
    function: str
    text: str


@cache
def _bases() -> list[tuple[str, str]]:
    from irgrad.engine.ir.text.entities import restrict

    found = []
    for level in ("-O0", "-O2"):
        text = to_ir(SOURCE, level, ("-fno-discard-value-names",))
        found += [(name, restrict(text, [name])) for name in NAMES]
    return found


def mutant(seed: int) -> Mutant:
    """The mutant of a seed: one to three changes."""
    rng = random.Random(seed)
    bases = _bases()
    name, text = bases[seed % len(bases)]
    lines = text.splitlines()
    change = _turn if seed % 3 == 0 else _change  # fine: half are still valid; coarse: hardly any is IR any more
    for _ in range(rng.choice((1, 1, 2, 3))):
        change(lines, rng)
    return Mutant(f"mutant {seed}", name, "\n".join(lines) + "\n")


_FAMILIES = [
    row.split()
    for row in (
        "add sub mul shl lshr ashr and or xor udiv sdiv urem srem", "fadd fsub fmul fdiv frem", "eq ne ult ugt sle sge slt",
        "oeq une olt ogt uno ord ult false true", "zext sext trunc fptosi sitofp uitofp bitcast fpext fptrunc",
        "nuw nsw exact disjoint samesign fast nnan reassoc contract inbounds volatile tail", "i8 i16 i32 i64 i128",
        "float double half bfloat x86_fp80", "@sin @cos @exp @llvm.sin.f64 @malloc @free @helper @nowhere",
        "0 1 2 3 4 7 8 64 -1 4294967296", "noalias nonnull readonly writeonly captures(none) nounwind zeroext signext",
        "load store", "0.000000e+00 1.500000e+00 0x7FF0000000000000 0x7FF8000000000000",
    )
]  # fmt: skip
_FAMILY = {word: row for row in _FAMILIES for word in row}


def _turn(lines: list[str], rng: random.Random) -> None:
    """One change within a function that keeps the grammar."""
    body = [i for i, row in enumerate(lines) if row.startswith("  ") and not row.lstrip().startswith("#dbg")]
    at = rng.choice(body)
    kind = rng.randrange(8)
    if kind == 0 and not re.match(r"\s+(%|br|ret|switch|unreachable|\])", lines[at]):
        lines.insert(rng.choice(body), lines[at] if rng.random() < 0.5 else lines.pop(at))
        return
    if kind == 1 and at + 1 < len(lines):
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
        return
    tokens = _TOKEN.findall(lines[at])
    names = [i for i, t in enumerate(tokens) if t[0] == "%" and len(t) > 1 and i]
    words = [i for i, t in enumerate(tokens) if t in _FAMILY]
    if kind < 5 and names:
        place = rng.choice(names)
        before = "".join(tokens[max(0, place - 2) : place])
        pool = re.findall(re.escape(before) + r"(%[-\w.]+)", "\n".join(lines)) if before.strip() else []
        tokens[place] = rng.choice(pool or [tokens[i] for i in names])
    elif words:
        place = rng.choice(words)
        tokens[place] = rng.choice(_FAMILY[tokens[place]])
    lines[at] = "".join(tokens)


def _change(lines: list[str], rng: random.Random) -> None:
    full = [i for i, row in enumerate(lines) if row.strip() and not row.lstrip().startswith((";", "#dbg"))]
    if rng.random() < 0.8:
        full = [i for i in full if lines[i].startswith("  ")] or full
    at = rng.choice(full)
    kind = rng.randrange(11)
    if kind == 0:
        lines.insert(at, lines[rng.choice(full)])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        other = rng.choice(full)
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] = "".join(_tokens(_TOKEN.findall(lines[at]), kind, rng))


def _tokens(tokens: list[str], kind: int, rng: random.Random) -> list[str]:
    places = [i for i, t in enumerate(tokens) if t.strip()]
    at = rng.choice(places)
    wanted = {5: r"i\d+$|double$|float$|ptr$|void$", 6: r"-?\d", 7: r"[a-z]+$", 8: r"[%@]"}.get(kind)
    if wanted:
        at = rng.choice([i for i in places if re.match(wanted, tokens[i])] or [at])
    if kind == 3:
        other = rng.choice(places)
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif kind == 4:
        del tokens[at]
    elif kind == 5:
        tokens[at] = rng.choice(_TYPES)
    elif kind == 6:
        tokens[at] = rng.choice(_NUMBERS)
    elif kind == 7:
        tokens[at] = rng.choice(_OPCODES)
    elif kind == 8:
        tokens[at] = rng.choice([t for t in tokens if t[0] in "%@"] or ["%nothing"])
    elif kind == 9:
        tokens.insert(at, tokens[rng.choice(places)])
    else:
        tokens[at] = tokens[at][: rng.randrange(len(tokens[at]))] + rng.choice(("", "\x7f", "é", "(", "}", "0" * 40, "<"))
    return tokens


def work(items: list[Any], report: Callable[[Any], None]) -> None:
    """Load, derive and compile each; nothing is called, since its memory accesses may be damaged as well."""
    for item in items:
        report(item.name)
        report(Verdict(item.name, *_judge(item)))


def _judge(item: Mutant) -> tuple[str, str]:
    import traceback

    import irgrad

    try:
        kernel = irgrad.load(item.text, language="ll").kernel(item.function, SIGNATURE)
        _ = kernel.primal.compiled
        _ = kernel.primal.pullback((0, 2)).compiled
    except irgrad.IRGradError as error:
        return "ok", type(error).__name__
    except Exception:
        return "error", traceback.format_exc(limit=-4)
    return "ok", "compiled"
