"""Linear forms keep their promises: random integer code in a nest of loops, evaluated number by number with poison."""

from __future__ import annotations

import random

import pytest

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.affine import Affine, Scaled
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Value
from irgrad.engine.ir.text.reader import read

WIDTHS = (4, 6, 8)


def random_nest(rng: random.Random) -> Function:
    """Two counted loops with random arithmetic on their counters, on the arguments and on constants."""

    def flags(*names: str) -> str:
        return " ".join(n for n in names if rng.random() < 0.5)

    by = {w: [f"%p{w}", f"%q{w}"] for w in WIDTHS}
    w1, w2 = rng.choice(WIDTHS), rng.choice(WIDTHS)
    s1, s2 = (rng.choice(["1", "1", "2", "-1", "3", f"%p{w}"]) for w in (w1, w2))
    first1, first2 = (
        rng.choice(["0", "0", "1", f"%q{w1}"]),
        rng.choice(["0", "-2", f"%q{w2}", "%i" if w1 == w2 else "0"]),
    )
    by[w1].append("%i")
    by[w2].append("%j")
    body = []
    for k in range(rng.randrange(3, 14)):
        w = rng.choice(WIDTHS)
        opcode = rng.choice(["add", "add", "sub", "mul", "shl", "or", "xor", "trunc", "sext", "zext"])
        a = rng.choice(by[w][-4:])
        b = rng.choice([*by[w], str(rng.randrange(-3, 4))])
        to = rng.choice([x for x in WIDTHS if (x < w if opcode == "trunc" else x > w)] or [0])
        if opcode in ("trunc", "sext", "zext"):
            if not to:
                continue
            hint = {"trunc": flags("nuw", "nsw"), "sext": "", "zext": flags("nneg")}[opcode]
            body.append(f"%v{k} = {opcode} {hint} i{w} {a} to i{to}")
            w = to
        elif opcode == "shl":
            body.append(f"%v{k} = shl {flags('nuw', 'nsw')} i{w} {a}, {rng.randrange(w)}")
        elif opcode == "or":
            body.append(f"%v{k} = or disjoint i{w} {a}, {b}")
        elif opcode == "xor":
            body.append(f"%v{k} = xor i{w} {a}, -1")
        else:
            body.append(f"%v{k} = {opcode} {flags('nuw', 'nsw')} i{w} {a}, {b}")
        by[w].append(f"%v{k}")
    args = ", ".join(f"i{w} %{c}{w}" for w in WIDTHS for c in "pq")
    lines = "\n  ".join(body)
    return read(f"""
define void @f({args}) {{
entry:
  br label %outer
outer:
  %i = phi i{w1} [ {first1}, %entry ], [ %i1, %outer.latch ]
  %ci = phi i32 [ 0, %entry ], [ %ci1, %outer.latch ]
  br label %inner
inner:
  %j = phi i{w2} [ {first2}, %outer ], [ %j1, %inner ]
  %cj = phi i32 [ 0, %outer ], [ %cj1, %inner ]
  {lines}
  %j1 = add {flags("nuw", "nsw")} i{w2} %j, {s2}
  %cj1 = add i32 %cj, 1
  %cc = icmp eq i32 %cj1, 5
  br i1 %cc, label %outer.latch, label %inner
outer.latch:
  %i1 = add {flags("nuw", "nsw")} i{w1} %i, {s1}
  %ci1 = add i32 %ci, 1
  %cd = icmp eq i32 %ci1, 4
  br i1 %cd, label %out, label %outer
out:
  ret void
}}
""").functions["f"]


def signed(n: int, bits: int) -> int:
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def bits_of(value: Value) -> int:
    return value.type.bits  # type: ignore[attr-defined,no-any-return]


def step(instr: Instruction, get: dict[Value, int | None]) -> int | None:
    """Unsigned result of one instruction; None: poison."""

    def read_(v: Value) -> int | None:
        return v.value & ((1 << bits_of(v)) - 1) if isinstance(v, ConstInt) else get[v]

    bits = bits_of(instr)
    operands = [read_(v) for v in instr.operands]
    if any(x is None for x in operands):
        return None
    a, b = operands[0] or 0, (operands[1] or 0) if len(operands) > 1 else 0
    n = bits_of(instr.operands[0])
    sa, sb = signed(a, n), signed(b, n)
    match instr.opcode:
        case "add":
            u, s = a + b, sa + sb
        case "sub":
            u, s = a - b, sa - sb
        case "mul":
            u, s = a * b, sa * sb
        case "shl":
            u, s = a << b, sa << b
        case "or":
            if a & b:
                return None
            u, s = a | b, sa | sb
        case "xor":
            u, s = a ^ b, sa ^ sb
        case "trunc":
            u, s = a, sa
        case "sext":
            u, s = sa & ((1 << bits) - 1), sa
        case "zext":
            if "nneg" in instr.flags and sa < 0:
                return None
            u = s = a
        case "icmp":
            return int(a == b)
        case _:
            raise AssertionError(instr.opcode)
    if "nuw" in instr.flags and not 0 <= u < 1 << bits:
        return None
    if "nsw" in instr.flags and not -(1 << (bits - 1)) <= s < 1 << (bits - 1):
        return None
    return u & ((1 << bits) - 1)


def value_of(form: Affine, counters: dict[Loop, int], get: dict[Value, int | None]) -> int | None:
    """The form as an integer; None when a symbol is poison."""
    total = form.const
    for symbol, coefficient in form.terms.items():
        factor = 1
        if isinstance(symbol, Loop | Scaled):
            factor = counters[symbol if isinstance(symbol, Loop) else symbol.loop]
        if not isinstance(symbol, Loop):
            value = symbol.value if isinstance(symbol, Scaled) else symbol
            number = get[value]
            if number is None:
                return None
            factor *= signed(number, bits_of(value))
        total += coefficient * factor
    return total


@pytest.mark.parametrize("seed", range(120))
def test_forms_hold_in_every_iteration(seed: int) -> None:
    rng = random.Random(seed)
    fn = random_nest(rng)
    induction = Induction(fn)
    outer, inner = induction.loops.all
    watched = [v for v in inner.header.instructions if v.opcode != "br" and v.type.is_int and v.name != "cc"]
    forms = {v: induction.form(v) for v in watched}
    for _ in range(6):
        get: dict[Value, int | None] = {a: rng.randrange(1 << bits_of(a)) for a in fn.args}
        rows: dict[Value, dict[tuple[int, int], int]] = {v: {} for v in watched}
        run(outer, inner, get, watched, rows, forms)
        for value, form in forms.items():
            if form.rising:
                check_rising(form, rows[value], outer, inner, get)


def run(
    outer: Loop,
    inner: Loop,
    get: dict[Value, int | None],
    watched: list[Instruction],
    rows: dict[Value, dict[tuple[int, int], int]],
    forms: dict[Value, Affine],
) -> None:
    """Run the nest; every form must equal its value modulo 2**bits, and over the integers where it says exact."""
    entry = outer.preheader
    for k in range(4):
        enter(outer, get, entry if k == 0 else outer.latches[0])
        for m in range(5):
            enter(inner, get, inner.latches[0] if m else outer.header)
            for instr in inner.header.instructions:
                if instr.opcode not in ("phi", "br"):
                    get[instr] = step(instr, get)
            for value in watched:
                number = get[value]
                expected = value_of(forms[value], {outer: k, inner: m}, get)
                if number is None or expected is None:
                    continue
                bits = bits_of(value)
                assert (number - expected) % (1 << bits) == 0, (value.name, str(forms[value]))
                if forms[value].exact:
                    assert signed(number, bits) == expected, (value.name, str(forms[value]))
                rows[value][k, m] = number
        for instr in outer.latches[0].instructions:
            if instr.opcode not in ("phi", "br"):
                get[instr] = step(instr, get)


def enter(loop: Loop, get: dict[Value, int | None], source: object) -> None:
    values = {}
    for phi in loop.header.phis:
        v = phi.operands[phi.blocks.index(source)]  # type: ignore[arg-type]
        values[phi] = v.value & ((1 << bits_of(v)) - 1) if isinstance(v, ConstInt) else get[v]
    get.update(values)


def check_rising(
    form: Affine, rows: dict[tuple[int, int], int], outer: Loop, inner: Loop, get: dict[Value, int | None]
) -> None:
    """Between iterations of one loop the unsigned reading moves by the stride times the distance."""
    for loop, at in ((outer, 0), (inner, 1)):
        if any(isinstance(s, Scaled) for s in form.terms) or loop not in form.terms:
            continue
        for (k, m), number in rows.items():
            origin = (0, m) if at == 0 else (k, 0)
            if origin in rows:
                moved = form.terms[loop] * ((k, m)[at])
                assert number - rows[origin] == moved, (str(form), k, m)


def test_the_random_nests_have_forms() -> None:
    """So that the test above tests something: exact ones, rising ones, products."""
    exact = rising = products = 0
    for seed in range(120):
        fn = random_nest(random.Random(seed))
        induction = Induction(fn)
        for instr in induction.loops.all[1].header.instructions:
            if instr.type.is_int and instr.name is not None and instr.name[0] == "v":
                form = induction.form(instr)
                exact += bool(form.loops()) and form.exact
                rising += bool(form.loops()) and form.rising
                products += any(isinstance(s, Scaled) for s in form.terms)
    assert exact > 60 and rising > 40 and products > 40, (exact, rising, products)
