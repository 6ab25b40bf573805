"""Which loads no later store overwrites: by hand, and against the accesses that random nests make when they run."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from analysed import facts_of_c
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain
from oracle.operations import Code

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.overwrites import Overwrites
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Module, Value

Pair = tuple[Instruction, Instruction]
Told = Callable[[Overwrites, Instruction, Instruction, Loop], bool]
Met = Callable[[Module, str, int, Loop], set[Pair]]


class Recording(Machine):
    """An interpreter that lists the loads and stores of floats in the order in which they run, with addresses."""

    def __init__(self, module: Module) -> None:
        super().__init__(module, FloatDomain())
        self.seen: list[tuple[Instruction, int]] = []
        self.ways: list[tuple[int, Block]] = []  # blocks that are left, after so many accesses

    def _lower(self, instr: Instruction, s: list[int], d: int) -> Callable[[list[Any]], None]:
        code = super()._lower(instr, s, d)
        if instr.opcode not in ("load", "store"):
            return code

        def recorded(r: list[Any]) -> None:
            self.seen.append((instr, r[s[-1]]))
            code(r)

        return recorded

    def _terminator(self, block: Block, slot: Callable[[Value], int], index: dict[int, int]) -> Code:
        code = super()._terminator(block, slot, index)

        def recorded(r: list[Any]) -> Any:
            self.ways.append((len(self.seen), block))
            return code(r)

        return recorded


def overwritten(module: Module, name: str, n: int) -> set[Pair]:
    """Loads and stores of which the latter has written, later, what the former has read, in a run."""
    machine = Recording(module)
    args = [machine.array(ty.F64, [1.0] * 4000), machine.array(ty.I64, [n])]
    machine.call(name, [args[0] + 8000, args[1]])
    found: set[Pair] = set()
    read: dict[int, set[Instruction]] = {}
    for instr, address in machine.seen:
        if instr.opcode == "load":
            read.setdefault(address, set()).add(instr)
        else:
            found.update((load, instr) for load in read.get(address, ()))
    return found


def met_between(module: Module, name: str, n: int, loop: Loop) -> set[Pair]:
    """Accesses that touch the same bytes in two iterations of one run of a loop."""
    machine = Recording(module)
    args = [machine.array(ty.F64, [1.0] * 4000), machine.array(ty.I64, [n])]
    machine.call(name, [args[0] + 8000, args[1]])
    fn = module.functions[name]
    before = [block for block in Cfg(fn).preds(loop.header) if not loop.contains(block)]
    ends = [(at, block in before) for at, block in machine.ways if block in before or block in loop.latches]
    found: set[Pair] = set()
    at: dict[int, list[tuple[int, Instruction]]] = {}
    for number, ((start, enters), (end, _)) in enumerate(pairwise([*ends, (len(machine.seen), True)])):
        at = {} if enters else at
        for instr, address in machine.seen[start:end]:
            if loop.contains(instr.block):
                before = at.setdefault(address, [])
                found.update(pair for k, other in before if k != number for pair in ((other, instr), (instr, other)))
                before.append((number, instr))
    return found


def met_within(module: Module, name: str, n: int, loop: Loop) -> set[Pair]:
    """Accesses that touch the same bytes within one run of a loop."""
    machine = Recording(module)
    args = [machine.array(ty.F64, [1.0] * 4000), machine.array(ty.I64, [n])]
    machine.call(name, [args[0] + 8000, args[1]])
    entries = [place for place, block in machine.ways if block is loop.preheader]
    found: set[Pair] = set()
    for start, end in pairwise([*entries, len(machine.seen)]):
        at: dict[int, set[Instruction]] = {}
        for instr, address in machine.seen[start:end]:
            if loop.contains(instr.block):
                at.setdefault(address, set()).add(instr)
        found.update((a, b) for meeting in at.values() for a in meeting for b in meeting)
    return found


def answers(source: str, name: str = "f") -> tuple[Module, dict[Pair, bool]]:
    """What the analysis says of every load and store of floats."""
    facts = facts_of_c(source, name, {0})
    return facts.module, _answers(facts.module.functions[name])


def _answers(fn: Function) -> dict[Pair, bool]:
    cfg = Cfg(fn)
    overwrites = Overwrites(Induction(fn, cfg, Loops(cfg, Dominators(cfg))))
    loads = [i for i in fn.instructions() if i.opcode == "load" and i.type.is_fp]
    stores = [i for i in fn.instructions() if i.opcode == "store" and i.operands[0].type.is_fp]
    return {(load, store): overwrites.never(load, store) for load in loads for store in stores}


CHOLESKY = """
void f(double *a, long *size) {
    long n = *size;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (long k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sum : sum / a[j * n + j];
        }
}"""
SOLVE = """
void f(double *x, long *size) {
    for (long i = 0; i < *size; i++)
        for (long j = 0; j < i; j++)
            x[i] -= x[1000 + j] * x[j];
}"""
BACKWARD = """
void f(double *x, long *size) {
    long n = *size;
    for (long i = n - 1; i >= 0; i--)
        for (long j = i + 1; j < n; j++)
            x[i] -= x[100 + i * n + j] * x[j];
}"""


@pytest.mark.parametrize(("source", "stay"), [(CHOLESKY, 3), (SOLVE, 1), (BACKWARD, 1)])
def test_factors_and_solutions_stay(source: str, stay: int) -> None:
    """All but the element that is computed: it is read before it is written."""
    module, found = answers(source)
    kept = {load for load, _ in found if all(found[pair] for pair in found if pair[0] is load)}
    assert len(kept) >= stay
    assert not any(found[pair] for pair in overwritten(module, "f", 5))


def _subscript(r: random.Random, counters: str) -> str:
    a, b = r.choice(counters), r.choice(counters)
    plus = r.choice(["", "", "", " + 1", " - 1", " + n"])
    return r.choice([f"{a} * n + {b}{plus}", f"({a}{r.choice(['', ' + 1', ' - 1'])}) * n + {b}", f"{a} + {b}{plus}",
                     f"{a}{plus}", f"(n - 1 - {a}) * n + {b}", f"2 * {a}{plus}", f"{a} * n - {b}"])  # fmt: skip


def _nest(seed: int) -> str:
    """A function of two or three loops in each other, bounds of which hold outer counters, some statements in them."""
    r = random.Random(seed)
    lows = ["0", "0", "0", "1"], ["0", "0", "i", "i + 1"], ["0", "0", "i", "j", "j + 1", "i + 1"]
    highs = ["n", "n - 1"], ["n", "i", "i + 1", "n - i"], ["n", "i", "j", "j + 1", "n - j", "i + j"]

    def statement(counters: str) -> str:
        a, b = _subscript(r, counters), _subscript(r, counters)
        text = r.choice([f"x[{a}] += 0.5 * x[{b}];", f"x[{a}] = 0.5 * x[{b}] + x[{_subscript(r, counters)}];"])
        if r.random() < 0.2:
            text = f"if ({r.choice(counters)} {r.choice(['<', '!=', '>'])} {r.choice(counters)}) {text}"
        return text

    def loop(level: int) -> str:
        name = "ijk"[level]
        low, high = r.choice(lows[level]), r.choice(highs[level])
        head = f"for (long {name} = {low}; {name} < {high}; {name}++)"
        if r.random() < 0.2:
            head = f"for (long {name} = {high} - 1; {name} >= {low}; {name}--)"
        body = []
        if r.random() < 0.5 or level == 2:
            body.append(statement("ijk"[: level + 1]))
        if level < 2 and (r.random() < 0.8 or not body):
            body.append(loop(level + 1))
            if level and r.random() < 0.4:
                body.append(loop(level + 1))
        if not body or r.random() < 0.3:
            body.append(statement("ijk"[: level + 1]))
        return f"{head} {{ {' '.join(body)} }}"

    return f"void f{seed}(double *x, long *size) {{ long n = *size; {loop(0)} {loop(0) if r.random() < 0.3 else ''} }}"


@cache
def _module(seeds: range) -> tuple[Module, dict[int, dict[Pair, bool]]]:
    source = "\n".join(_nest(seed) for seed in seeds)
    calls = "".join(f" f{seed}(x, size);" for seed in seeds)
    facts = facts_of_c(f"{source}\nvoid all(double *x, long *size) {{{calls} }}", "all", {0}, "-fno-inline")
    functions = {seed: facts.module.functions.get(f"f{seed}") for seed in seeds}
    return facts.module, {seed: _answers(fn) for seed, fn in functions.items() if fn is not None and fn.blocks}


def wrong(seeds: range) -> tuple[list[str], int, int]:
    """Pairs that are told apart and meet; how many are told apart; how many never meet in the runs."""
    module, found = _module(seeds)
    bad, told, never = [], 0, 0
    for seed in found:
        met: set[Pair] = set()
        for n in (0, 1, 2, 3, 5):
            met |= overwritten(module, f"f{seed}", n)
        bad += [_nest(seed) for pair, apart in found[seed].items() if apart and pair in met]
        told += sum(found[seed].values())
        never += sum(pair not in met for pair in found[seed])
    return bad, told, never


def test_random_nests() -> None:
    bad, told, never = wrong(range(25))
    assert not bad
    assert told > 0.25 * never


def _counted(module: Module, sources: dict[int, str], told: Told, met: Met) -> tuple[list[str], int, int]:
    """Sources in whose loops accesses are told apart and meet; how many are told apart; how many never meet."""
    bad, apart_in_all, never = [], 0, 0
    for seed, source in sources.items():
        fn = module.functions.get(f"f{seed}")
        if fn is None or not fn.blocks:
            continue
        cfg = Cfg(fn)
        loops = Loops(cfg, Dominators(cfg))
        overwrites = Overwrites(Induction(fn, cfg, loops))
        for loop in loops.all:
            inside = [i for b in loop.blocks for i in b.instructions if _float_access(i)]
            apart = {(a, b) for a in inside for b in inside if told(overwrites, a, b, loop)}
            meet = {pair for n in (0, 1, 2, 3, 5) for pair in met(module, f"f{seed}", n, loop)}
            bad += [source for _ in apart & meet]
            apart_in_all += len(apart)
            never += len(inside) ** 2 - len(meet)
    return bad, apart_in_all, never


def meeting(seeds: range) -> tuple[list[str], int, int]:
    """The same for accesses within one run of a loop."""
    module, _ = _module(seeds)
    return _counted(module, {seed: _nest(seed) for seed in seeds}, Overwrites.apart_within, met_within)


def _float_access(instr: Instruction) -> bool:
    return (instr.opcode == "load" and instr.type.is_fp) or (
        instr.opcode == "store" and instr.operands[0].type.is_fp)  # fmt: skip


def test_random_nests_within_runs_of_loops() -> None:
    bad, told, never = meeting(range(25))
    assert not bad
    assert told > 0.15 * never


def _spelled(seed: int) -> str:
    """A function of loops in each other as people spell them: sizes of every type, blocks that end at the least of two
    numbers, steps, triangles, rows."""
    r = random.Random(seed)
    kind = r.choice(["long", "int", "unsigned long", "unsigned"])
    head, names = f"void f{seed}(double *x, long *size) {{ {kind} n = *size, m = n + {r.choice([0, 1, 3])};", []

    def loop(level: int) -> str:
        name, outer = "ijkl"[level], names[-1] if names else ""
        end = r.choice(["n", "m", "n"])
        shapes = [f"for ({kind} {name} = 0; {name} < {end}; {name}++)"] * 2
        shapes += [f"for ({kind} {name} = 0; {name} < {end}; {name} += {r.choice([2, 3])})"]
        if outer:
            least = f"({outer} + 2 < {end} ? {outer} + 2 : {end})"
            shapes += [f"for ({kind} {name} = {outer}; {name} < {least}; {name}++)"] * 3
            shapes += [f"for ({kind} {name} = {outer} + 1; {name} < {end}; {name}++)",
                       f"for ({kind} {name} = 0; {name} < {outer}; {name}++)"]  # fmt: skip
        shape = r.choice(shapes)
        names.append(name)
        body = loop(level + 1) if level < r.choice([1, 2, 3]) else ""
        row = lambda: r.choice(["n", "m", "8"])  # noqa: E731
        one = [f"{r.choice(names)} * {row()} + {r.choice(names)}", f"{r.choice(names)} + {r.choice([0, 1])}",
               f"({r.choice(names)} * {row()} + {r.choice(names)}) * {row()} + {r.choice(names)}"]  # fmt: skip
        a, b = r.choice(one), r.choice(one)
        made = r.choice([f"x[{a}] += x[{b} + 400];", f"x[{a}] = 0.5 * x[{b}];"])
        names.pop()
        return f"{shape} {{ {body or made} {made if body and r.random() < 0.2 else ''} }}"

    return f"{head} {loop(0)} }}"


def between(seeds: range) -> tuple[list[str], int, int]:
    """Accesses that are told apart in different iterations of a loop and meet there, and how many."""
    sources = {seed: _spelled(seed) for seed in seeds}
    calls = "".join(f" f{seed}(x, size);" for seed in seeds)
    text = "\n".join(sources.values()) + f"\nvoid all(double *x, long *size) {{{calls} }}"
    module = facts_of_c(text, "all", {0}, "-fno-inline").module
    return _counted(module, sources, Overwrites.rows_apart, met_between)


def test_random_spellings_between_iterations_of_loops() -> None:
    bad, told, never = between(range(20))
    assert not bad
    assert told > 0.13 * never


@pytest.mark.slow
def test_more_random_spellings_between_iterations_of_loops() -> None:
    assert not between(range(60, 1000))[0]


@pytest.mark.slow
def test_more_random_nests_within_runs_of_loops() -> None:
    assert not meeting(range(40, 400))[0]


@pytest.mark.slow
def test_more_random_nests() -> None:
    assert not wrong(range(40, 400))[0]
