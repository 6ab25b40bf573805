"""The plan of a tape: made without an instruction, followed by emission to the letter, and readable."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handwritten.made import OUT, asked, gradient, make, module_of
from handwritten.planned import facts_of, planned
from oracle.generator import SHAPED, generate, source_file
from shares import fast

import irgrad
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.tape.tape_plan import TapePlan
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir.model import Instruction
from irgrad.engine.ir.printer import to_text
from irgrad.engine.pipeline.derivatives import derive
from irgrad.interop.loaders import load

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from benchmarks.cases import CASES
from benchmarks.native import HERE

CHAIN = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++) {
        double u = s * x[1], v = sin(u);
        s = v + x[2] / (s * s + 1);
    }
    *o = s;
}"""


def _line(text: str, *words: str) -> str:
    """The line of a plan with these words."""
    return next(line for line in text.splitlines() if all(word in line for word in words))


def test_no_instruction_is_made() -> None:
    facts = facts_of(CHAIN, "dcd")
    before = to_text(facts.unit.module)
    plan = TapePlan(facts)
    assert plan.saved
    assert to_text(facts.unit.module) == before


def test_the_plan_can_be_read() -> None:
    plan = planned(CHAIN, "dcd")
    text = str(plan)
    assert text.startswith("tape of f\n")
    assert "prog.c:" in _line(text, "loop", "depth 1", "bytes an iteration")
    assert "; for " in _line(text, "kept", "phi: double", "array over")
    assert "prog.c:" in _line(text, "recomputed", "fmul", "for ", "llvm.sin")
    assert _line(text, "reloaded", "load", "read by the reverse of")
    assert _line(text, "outside of loops: ", " bytes")


def test_the_plan_names_records_and_slots() -> None:
    text = str(planned(CHAIN.replace("i < *n", "i < *n && s < 9"), "dcd"))
    assert ", record; for" in text
    assert _line(text, "record of loop", "ptr, slot")


def test_who_asked_leads_to_an_instruction_that_reads() -> None:
    plan = planned(CHAIN, "dcd")
    readers = {plan.name(why) for why in plan.reads.items.values()}
    for key in [*plan.saved, *plan.demands.computed]:
        asked = plan.why(key)
        assert asked
        assert asked[-1] in readers


def test_something_that_was_not_planned_is_an_error_of_the_engine() -> None:
    plan = planned(CHAIN, "dcd")
    for key in plan.saved:
        plan.require(key)
    free = next(i for i in plan.demands.computed if i not in plan.saved)
    with pytest.raises(AssertionError, match=r"internal error: the plan of the tape of `f` lacks .*prog\.c"):
        plan.require(free)


def test_emission_cannot_go_beyond_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what products read, a value that is saved for one was not planned."""
    from irgrad.engine.differentiate.tape import reads

    monkeypatch.setattr(reads, "by_row", lambda r, instr: [r.give(o) for o in instr.operands])
    with pytest.raises(AssertionError, match="internal error"):
        make(CHAIN, "f", "reverse", ["dup", "const", "dup"])


def test_the_cut_chooses_one_value_for_several() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[0];
        for (long i = 0; i < *n; i++) {
            double a = s * 0.5, b = s + 1.0, c = a * b;
            s = sin(c) * a + b * 0.25;
        }
        *o = s;
    }"""
    plan = planned(source, "dcd")
    (loop,) = plan.facts.loops.all
    kept = {i.opcode for i, saved in plan.saved.items() if isinstance(i, Instruction) and saved.level is loop}
    assert kept | {i.opcode for i in plan.demands.shared} == {"phi", "call"}
    assert {i.opcode for i in plan.rules.again} == {"fmul", "fadd"}
    (dx, _), _ = gradient(source, "f", "dcd", np.array([0.4]), np.array([7]), OUT)
    h = 1e-30j

    def value(s: complex) -> complex:
        for _ in range(7):
            a, b = s * 0.5, s + 1.0
            s = np.sin(a * b) * a + b * 0.25
        return s

    np.testing.assert_allclose(dx, [value(0.4 + h).imag / 1e-30], rtol=1e-12)


# -- emission and the plan, on many programs ---------------------------------------------------------------------------


class Watch:
    """What was planned and what emission asked for, of all functions that were differentiated."""

    def __init__(self) -> None:
        self.functions = self.planned = 0
        self.never: list[str] = []  # planned, and never asked for
        self.lacking: list[str] = []  # asked for, and not planned

    def see(self, made: Reverse) -> None:
        """Compare."""
        plan, storage = made.plan, made.storage
        asked: set[Hashable] = {k for k in storage.slots if not (isinstance(k, tuple) and k[0] == "last")}
        together = {group.key for group, _ in plan.groups.values()}  # arrays of values that lie side by side
        asked |= storage.flats.keys() - together
        asked |= storage.shared.keys() & plan.groups.keys()
        self.functions += 1
        self.planned += len(plan.saved)
        self.never += [f"{made.fn.name}: {plan.name(key)}" for key in plan.saved if key not in asked]
        self.lacking += [f"{made.fn.name}: {plan.name(key)}" for key in asked if key not in plan.saved]

    def check(self, functions: int) -> None:
        """Nothing of either kind."""
        assert self.functions >= functions
        assert self.planned
        assert not self.lacking
        assert not self.never


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Watch]:
    """Watches every reverse derivative that is made; none comes from a cache."""
    found = Watch()
    generate: Callable[[Reverse], Reverse] = Reverse.generate

    def watched(made: Reverse) -> Reverse:
        result = generate(made)
        found.see(result)
        return result

    monkeypatch.setattr(Reverse, "generate", watched)
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    yield found


def _slots(program: Any) -> list[int]:
    return [n for n, slot in enumerate(program.slots) if slot.differentiable]


@pytest.mark.long
def test_benchmark_kernels(watch: Watch) -> None:
    for source, function, signature in dict.fromkeys((c.source, c.function, c.signature) for c in CASES):
        kernel = irgrad.load(HERE / "kernels" / source).kernel(function, signature)
        assert kernel.primal.pullback(_slots(kernel.primal)).stage.text
    watch.check(20)


@pytest.mark.parametrize("start", fast(1, [0, SHAPED]))
def test_random_kernels(watch: Watch, start: int) -> None:
    kernels = [generate(seed) for seed in range(start, start + 12)]
    library = irgrad.load(source_file(kernels))
    made = 0
    for k in kernels:
        primal = library.kernel(k.name, k.signature).primal
        active = _slots(primal)
        tangent = primal.jvp(active)
        programs = (primal.pullback(active), primal.vjp(active, 4), tangent.vjp(_slots(tangent)),
                    primal.forward_with_tape(active))  # fmt: skip
        for program in programs:
            try:
                assert program.stage.text is not None
                made += 1
            except irgrad.IRGradError:
                continue  # refused: nothing was made
    assert made >= 36
    watch.check(36)


CALLS = """
NOINLINE double g(double *x, long n, double s) {
    for (long i = 0; i < n; i++) { double t = s * x[i]; x[i] = sin(t); s += t * x[i]; }
    return s;
}
void f(double *x, long *n, double *o) {
    double s = 0.5;
    for (long k = 0; k < 3; k++) s = g(x + k, *n - k, s) * s;
    *o = s;
}"""


@pytest.mark.parametrize("width", [1, 4])
def test_programs_in_two_halves(watch: Watch, width: int) -> None:
    derive(module_of(CALLS, "f"), Request("f", "split_reverse", ("dup", "const", "dup"), width=width))
    watch.check(2)


def test_derivatives_of_derivatives(watch: Watch) -> None:
    first = make(CALLS, "f", "forward", ["dup", "const", "dup"])
    module = module_of(first.text, first.derived.name)
    derive(module, asked(first.derived.name, "reverse", ["dup", "dup", "const", "dup", "dup"]))
    watch.check(1)


def test_shadows_that_may_be_the_values_own_memory(watch: Watch) -> None:
    """Programs in the notation, activity being decided when they run."""
    head = """#include <math.h>
    extern int enzyme_runtime_activity, enzyme_const, enzyme_width;
    void __enzyme_autodiff(void *, ...);
    static double f(const double *x, double *y, long n, int which) {
        const double *p = which ? x : y;
        double s = 0.5;
        for (long i = 0; i < n; i++) { s = s * p[i] + sin(x[i] * s); y[i] = s * y[i]; }
        return s;
    }
    """
    calls = """
    void r(double *x, double *d, double *y, double *e, long n) {
        __enzyme_autodiff((void *)f, enzyme_runtime_activity, x, d, y, e, n, 1);
    }
    void w(double *x, double *d, double *d2, double *y, double *e, double *e2, long n) {
        __enzyme_autodiff((void *)f, enzyme_width, 2, x, d, d2, y, e, e2, n, 0);
    }"""
    assert "define" in lower(load(head + calls).text)
    watch.check(2)


def test_what_is_saved_of_an_instruction_belongs_to_its_loop() -> None:
    plan = planned(CHAIN, "dcd")
    for key, saved in plan.saved.items():
        if isinstance(key, Instruction):
            assert saved.level is plan.facts.level(key)
