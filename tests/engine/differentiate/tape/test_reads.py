"""What the reverse of an instruction reads, and to whom it hands adjoints."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.planned import facts_of, find

import irgrad
from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
from irgrad.engine.differentiate.tape.combined_calls import CombinedCalls
from irgrad.engine.differentiate.tape.reads import READS, Read, Reads
from irgrad.engine.ir.model import Instruction, Value
from irgrad.engine.schedule.loop_schedule import StencilSchedule


def reads(facts: ReverseFacts) -> Reads:
    return Reads(facts, StencilSchedule(facts), CombinedCalls(facts, lambda _: 0))


def of(found: Reads, what: str, by: Instruction) -> set[Value]:
    return {item.subject for item, why in found.items.items() if item.what == what and why is by}  # type: ignore[misc]


def body(expression: str, active: str = "dd") -> tuple[ReverseFacts, Reads]:
    facts = facts_of(f"void f(double *x, double *o) {{ *o = {expression}; }}", active)
    return facts, reads(facts)


@pytest.mark.parametrize(("expression", "opcode", "operands", "result"), [
    ("x[0] - x[1]", "fsub", set(), False),
    ("x[0] * x[1]", "fmul", {0, 1}, False),
    ("x[0] / x[1]", "fdiv", {1}, True),
    ("sin(x[0])", "llvm.sin", {0}, False),
    ("exp(x[0])", "llvm.exp", set(), True),
    ("x[0] * 3", "fmul", set(), False),
])  # fmt: skip
def test_rows_say_what_their_partials_read(expression: str, opcode: str, operands: set[int], result: bool) -> None:
    facts, found = body(expression)
    instr = find(facts, opcode)
    values = of(found, "value", instr)
    if opcode == "fdiv":  # x / y has the slope -x / y^2, written with the operands or with the result
        assert values & {instr.operands[1], instr}
        return
    assert values == {instr.operands[i] for i in operands} | ({instr} if result else set())


def test_what_gets_no_adjoint_reads_nothing() -> None:
    facts = facts_of("void f(double *x, double *o, double *p) { *o = x[0] + x[1]; *p = x[0] * x[1]; }", "ddc")
    found = reads(facts)
    product = find(facts, "fmul")
    assert not of(found, "value", product)
    assert product not in found.given
    assert facts.active(product) or not facts.unit.differentiable(product)


def test_the_condition_of_a_choice() -> None:
    facts, found = body("(x[0] * x[1] > 1 ? x[0] : x[1]) * x[2]")
    choice = find(facts, "select")
    assert of(found, "value", choice) == {choice.operands[0]}


def test_memory_is_reached_through_shadows() -> None:
    facts = facts_of("void f(double *x, double *o) { for (int i = 0; i < 9; i++) o[i] = x[i * i]; }", "dd")
    found = reads(facts)
    load, store = find(facts, "load"), find(facts, "store")
    assert of(found, "shadow", load) == {load.operands[0]}
    assert of(found, "shadow", store) == {store.operands[1]}
    assert not of(found, "value", load)


def test_runtime_activity_compares_addresses() -> None:
    source = "void f(double *x, double *o) { for (int i = 0; i < 9; i++) o[i] = x[i * i]; }"
    facts = facts_of(source, "dd", runtime_activity=True)
    found = reads(facts)
    for access, address in ((find(facts, "load"), 0), (find(facts, "store"), 1)):
        assert of(found, "value", access) == {access.operands[address]}


def test_copies_read_their_size() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        for (int k = 0; k < *n; k++) memcpy(o + k * k, x + k * n[k], 8 * n[k + 1]);
        o[*n] += x[*n] * 2;
    }"""
    facts = facts_of(source, "dcd")
    found = reads(facts)
    copy = find(facts, "llvm.memcpy")
    assert of(found, "value", copy) == {copy.args[2]}
    assert of(found, "shadow", copy) == {a for a in copy.args[:2] if isinstance(a, Instruction)}


def test_a_call_reads_its_arguments_and_its_tape() -> None:
    source = """
    NOINLINE double g(double *x, double s) { static int calls; calls++; return sin(s) * x[1]; }
    void f(double *x, double *o) { double s = 0; for (int i = 0; i < 9; i++) s += g(x + i, x[i] * s); *o = s; }"""
    facts = facts_of(source, "dd")
    found = reads(facts)
    inner = find(facts, "g")
    assert of(found, "value", inner) == {a for a in inner.args if isinstance(a, Instruction)}
    assert of(found, "tape", inner) == {inner}
    found = reads(facts_of(source.replace("static int calls; calls++;", ""), "dd"))  # both sweeps of it run in reverse
    assert not [item for item in found.items if item.what == "tape"]


def test_control_is_read_once() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[1];
        for (long i = 0; i < *n; i++) { if (x[i] > 1) { x[i] = sin(s); s *= x[i]; } else s = s * s * s; }
        *o = s;
    }"""
    facts = facts_of(source, "dcd")
    found = reads(facts)
    counts = [item.subject for item in found.items if item.what == "count"]
    assert counts == facts.loops.all
    assert Read("value", find(facts, "fcmp")) in found.items
    assert not any(item.what == "from" for item in found.items)


def test_a_merge_of_many_is_told_by_number() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[1];
        for (long i = 0; i < *n; i++) switch (n[i]) {
            case 1: s = sin(s); x[i] = s; break; case 5: s *= x[i]; x[0] += s; break; case 9: x[1] = s; break; }
        *o = s;
    }"""
    facts = facts_of(source, "dcd")
    assert any(item.what == "from" for item in reads(facts).items)


def test_handlers_have_a_counterpart_in_emission() -> None:
    from irgrad.engine.differentiate.reverse.adjoints import HANDLERS

    assert READS.keys() == HANDLERS.keys()


def test_counts_that_are_stored_before_numbers_in_one_block() -> None:
    """A store of an integer clears the adjoints of the floats that may lie there: the shadow of the block is read."""
    kernel = irgrad.load("""
    #include <stdlib.h>
    typedef struct { long size, room, marked; char data[]; } list;
    static list *make(long room) {
        list *l = malloc(sizeof(list) + room * 8); l->size = l->marked = 0; l->room = room; return l; }
    static list *add(list *l, double v) {
        if (l->size == l->room) { l->room = 2 * l->room + 1; l = realloc(l, sizeof(list) + l->room * 8); }
        ((double *)l->data)[l->size++] = v;
        return l;
    }
    double f(const double *x, long n) {
        list *l = make(1);
        for (long i = 0; i < n; i++) { l = add(l, x[i] * x[i]); l->marked = 1; }
        double s = 0;
        for (long i = 0; i < l->size; i++) s += ((double *)l->data)[i] * (i + 1);
        free(l);
        return s;
    }""").kernel("f", "f64(f64[n] x, i64 n)")
    x = np.arange(1.0, 8.0)
    np.testing.assert_allclose(irgrad.grad(kernel, wrt="x")(x), 2 * x * np.arange(1, 8), rtol=1e-14)
