"""Facts about a function before its reverse derivative: levels, nests, merges, shadows."""

from __future__ import annotations

from handwritten.planned import facts_of, find

NEST = """
void f(double *x, long *n, long *m, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        for (long j = 0; j < *m; j++) s = sin(s * x[1]);
    *o = s;
}"""
TRIANGLE = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        for (long j = 0; j < i; j++) s = sin(s * x[1]);
    *o = s;
}"""
SEARCH = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n && s < 3; i++) s = s * s + x[i];
    *o = s;
}"""


def test_a_nest_is_counted_from_its_outermost_loop() -> None:
    facts = facts_of(NEST, "dccd")
    outer, inner = facts.loops.all
    assert facts.top(inner) is outer
    assert facts.chain(inner) == [outer, inner]


def test_an_inner_loop_that_depends_on_the_outer_one_is_its_own_nest() -> None:
    facts = facts_of(TRIANGLE, "dcd")
    inner = facts.loops.all[-1]
    assert inner.depth == 2
    assert facts.chain(inner) == [inner]


def test_a_loop_that_is_left_early_is_not_counted() -> None:
    facts = facts_of(SEARCH, "dcd")
    assert facts.loops.all
    assert all(facts.top(loop) is None for loop in facts.loops.all)


def test_values_outside_of_loops_are_there_in_one_function_only() -> None:
    source = "NOINLINE double g(double *x) { return sin(x[0]) * x[1]; }\nvoid f(double *x, double *o) { *o = g(x); }"
    whole = facts_of("void f(double *x, double *o) { *o = sin(x[0]) * x[1]; }", "dd")
    assert whole.direct(find(whole, "llvm.sin"))
    callee = facts_of(source, "dd", callee="g")
    assert not callee.direct(find(callee, "llvm.sin"))


def test_a_branch_decides_where_control_came_from() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = x[1];
        for (long i = 0; i < *n; i++) { if (x[i] > 1) { x[i] = sin(s); s *= x[i]; } else s = s * s * s; }
        *o = s;
    }"""
    facts = facts_of(source, "dcd")
    headers = {loop.header for loop in facts.loops.all}
    merges = [b for b in facts.cfg.rpo if len(facts.cfg.preds(b)) == 2 and b not in headers]
    inside = [b for b in merges if facts.loops.of(b) is not None]
    assert inside
    for block in inside:
        branch = facts.branch_of(block, facts.cfg.preds(block))
        assert branch is not None
        assert branch[0] is find(facts, "fcmp")


def test_shadows_are_of_pointers_to_active_memory() -> None:
    source = """
    void f(double *x, double *y, long *n, double *o) {
        double t[40];
        for (long i = 0; i < *n; i++) t[(i * i) % 40] = x[i] * y[i];
        *o = t[*n] * t[3];
    }"""
    facts = facts_of(source, "dccd")
    local = find(facts, "alloca")
    assert facts.own_memory == [local]
    assert facts.has_shadow(local)
    moved = [i for b in facts.cfg.rpo for i in b.instructions if i.opcode == "getelementptr"]
    bases = {i.operands[0] for i in moved if facts.has_shadow(i)}
    assert {facts.fn.args[0], local} <= bases
    assert facts.fn.args[1] in {i.operands[0] for i in moved} - bases
    assert not facts.has_shadow(find(facts, "fmul"))


def test_blocks_that_never_return_have_no_reverse() -> None:
    facts = facts_of("void f(double *x, double *o) { if (x[0] < 0) abort(); *o = x[0] * x[0]; }", "dd")
    dead = [b for b in facts.cfg.rpo if b.terminator.opcode == "unreachable"]
    assert dead
    assert not facts.live & set(dead)
    assert facts.exit in facts.live
