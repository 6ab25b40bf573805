"""What is active, what needs a shadow, and what does not."""

from __future__ import annotations

from analysed import all_of, facts_of, facts_of_c, named

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.ir.model import Function


def obj(facts: Facts, kind: str, number: int = 0) -> Object:
    """The numbered object of a kind."""
    return [o for o in facts.pointers.objects if o.kind == kind][number]


INDEXED = """
static const double weights[4] = { 0.5, 1.5, 2.5, 3.5 };
static double counter;
void gather(double *x, int *index, double *coef, double *out, int *n) {
  double s = 0, unused = 0;
  double scratch[8];
  for (int i = 0; i < *n; i++) {
    int k = index[i];
    index[i] = (int)(x[k] > 0.5);
    scratch[i & 7] = x[k] * coef[i];
    unused += x[i];
    s += scratch[(i + 3) & 7] * weights[k & 3];
  }
  counter = unused;
  *out = s;
}
"""


def test_indices_constants_and_dead_ends_are_inactive() -> None:
    facts = facts_of_c(INDEXED, "gather", {0, 3})
    activity = facts.activity
    assert not any(activity.value(i) for i in facts.root.instructions() if i.type.is_int)
    by_name = {o.site.name: o for o in facts.pointers.objects if o.kind == "global" and o.site is not None}
    assert not activity.shadowed(by_name["weights"])
    assert "counter" not in by_name or not activity.shadowed(by_name["counter"])
    assert activity.object(obj(facts, "alloca"))
    assert not activity.shadowed(obj(facts, "argument", 2))
    assert activity.scratch == set()
    assert "reaches no differentiated argument" in activity.why(
        obj(facts, "argument", 2)
    ) or "depends on no" in activity.why(obj(facts, "argument", 2))


WORKSPACE = """
void f(double *x, double *work, double *out) {
  for (int i = 0; i < 10; i++) work[i] = x[i] * x[i];
  double s = 0;
  for (int i = 0; i < 10; i++) s += work[9 - i] * x[i];
  *out = s;
}
"""


def test_a_constant_workspace_is_active_scratch() -> None:
    facts = facts_of_c(WORKSPACE, "f", {0, 2})
    assert facts.activity.scratch == {1}
    assert facts.activity.object(obj(facts, "argument", 1))


CALLS = """
#include <math.h>
#include <stdio.h>
__attribute__((noinline)) static double square(double x) { return x * x; }
__attribute__((noinline)) static int count(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % 3; return s; }
__attribute__((noinline)) static void report(double v) { printf("%g\\n", v); }
void f(double *x, double *out, int *n) {
  int k = count(*n);
  double y = square(x[k]);
  report(y);
  *out = y + sin(x[0]) + floor(x[1]) * (int)x[2];
}
"""


def test_calls_that_touch_nothing_active() -> None:
    facts = facts_of_c(CALLS, "f", {0, 1}, "-g0")
    active = {c.callee_name: facts.activity.call(c) for c in all_of(facts, "call")}
    assert active["square"]
    assert active["llvm.sin.f64"]
    assert not active["count"]
    assert not active["report"]
    assert not active["llvm.floor.f64"]
    assert not active["printf"]
    functions = facts.module.functions
    assert facts.activity.function(functions["square"])
    assert not facts.activity.function(functions["count"])


TABLE = """
static double f0(double x) { return x * x; }
static double f1(double x) { return 3 * x; }
typedef double (*op)(double);
static const op table[2] = { f0, f1 };
void run(double *x, int *which, double *out) {
  double s = 0;
  for (int i = 0; i < 8; i++) s += table[which[i] & 1](x[i]);
  *out = s;
}
"""


def test_functions_in_tables_are_active() -> None:
    facts = facts_of_c(TABLE, "run", {0, 2})
    for name in ("f0", "f1"):
        fn = facts.module.functions[name]
        assert facts.activity.function(fn)
        assert facts.activity.value(fn.args[0])
    call = next(c for c in all_of(facts, "call", "run") if not isinstance(c.callee, Function))
    assert facts.activity.call(call)
    (table,) = (o for o in facts.pointers.objects if o.kind == "global")
    assert facts.activity.shadowed(table) and facts.activity.holds_pointers(table)  # descriptors of derivatives
    assert not facts.activity.object(table)


ROWS = """
#include <stdlib.h>
#include <string.h>
void rows(double *x, int *count, double *out) {
  double **m = malloc(4 * sizeof *m);
  int *idle = malloc(4 * sizeof *idle);
  for (int i = 0; i < 4; i++) { m[i] = x + 4 * i; idle[i] = count[i]; }
  double **copy = malloc(4 * sizeof *m);
  memcpy(copy, m, 4 * sizeof *m);
  double s = 0;
  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) s += copy[i][idle[j]] * copy[j][i];
  *out = s; free(m); free(copy); free(idle);
}
"""


def test_memory_that_holds_pointers_has_a_shadow_all_the_way() -> None:
    facts = facts_of_c(ROWS, "rows", {0, 2})
    heaps = [o for o in facts.pointers.objects if o.kind == "heap"]
    holding = [o for o in heaps if facts.pointers.contents(o)]
    idle = [o for o in heaps if not facts.pointers.contents(o)]
    assert len(holding) == 2
    assert all(facts.activity.shadowed(o) and facts.activity.holds_pointers(o) for o in holding)
    assert not any(facts.activity.object(o) for o in holding)
    assert not any(facts.activity.shadowed(o) for o in idle)


LIST = """
#include <stdlib.h>
struct node { double value; struct node *next; };
void sum(double *x, int *n, double *out) {
  struct node *head = 0;
  for (int i = 0; i < *n; i++) {
    struct node *fresh = malloc(sizeof *fresh);
    fresh->value = x[i] * x[i]; fresh->next = head; head = fresh;
  }
  double s = 0;
  while (head) { struct node *next = head->next; s += head->value; free(head); head = next; }
  *out = s;
}
"""


def test_linked_lists_are_shadowed_node_by_node() -> None:
    facts = facts_of_c(LIST, "sum", {0, 2})
    node = obj(facts, "heap")
    assert facts.activity.object(node)
    assert facts.activity.holds_pointers(node)
    for call in all_of(facts, "call"):
        if call.callee_name in ("malloc", "free"):
            assert facts.activity.call(call)


def test_an_inactive_function_of_the_same_program_stays_inactive() -> None:
    facts = facts_of_c(LIST, "sum", {2})
    assert not any(facts.activity.value(i) for i in all_of(facts, "fmul"))
    assert not facts.activity.shadowed(obj(facts, "heap"))


def test_why_names_the_way_from_argument_to_argument() -> None:
    facts = facts_of_c(WORKSPACE, "f", {0, 2})
    product = all_of(facts, "fmul")[0]
    text = facts.activity.why(product)
    assert "is active: it depends on argument `%0`" in text
    assert "reaches argument `%" in text


BYTES = """
#include <stddef.h>
static void swap(char *a, char *b, size_t n) { while (n--) { char t = *a; *a++ = *b; *b++ = t; } }
struct rec { double key; int tag; };
void f(struct rec *r, double *out) {
  if (r[0].key > r[1].key) swap((char *)&r[0], (char *)&r[1], sizeof(struct rec));
  *out = r[0].key;
}
"""


def test_floats_moved_byte_by_byte_are_refused() -> None:
    facts = facts_of_c(BYTES, "f", {0, 1})
    reasons = [reason for _, reason in facts.activity.refusals()]
    assert len(reasons) == 2
    assert all("a part of an active float" in r for r in reasons)
    assert facts_of_c(LIST, "sum", {0, 2}).activity.refusals() == []


WILD = """
declare ptr @somewhere()
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %p = call ptr @somewhere()
  %v = load double, ptr %x
  store double %v, ptr %p
  %w = load double, ptr %p
  store double %w, ptr %y
  ret void
}
"""


def test_active_memory_of_unknown_origin_is_refused() -> None:
    facts = facts_of(WILD, "f", {0, 1})
    refused = facts.activity.refusals()
    assert [i.opcode for i, _ in refused] == ["store", "load"]
    assert all("unknown origin" in reason for _, reason in refused)


COMPUTED = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %b = load i32, ptr %x, !tbaa !0
  %h = lshr i32 %b, 1
  %m = sub i32 1597463007, %h
  store i32 %m, ptr %y
  %g = load float, ptr %y
  %e = fmul float %g, %g
  store float %e, ptr %y
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"float", !2, i64 0}
!2 = !{!"omnipotent char", !3, i64 0}
!3 = !{!"Simple C/C++ TBAA"}
"""


def test_computed_bits_of_a_float_clear_its_shadow() -> None:
    facts = facts_of(COMPUTED, "f", {0, 1})
    store = all_of(facts, "store")[0]
    assert facts.activity.pointer(store.operands[1])
    assert not facts.activity.value(named(facts.root, "m")) or facts.types.carries(named(facts.root, "m")) is not None


BITS = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %b = load i64, ptr %x, !tbaa !0
  %n = xor i64 %b, -9223372036854775808
  %m = and i64 %b, 9223372036854775807
  %t = icmp slt i64 %b, 0
  %s = select i1 %t, i64 %n, i64 %m
  store i64 %s, ptr %y
  %d = load double, ptr %y
  %e = fmul double %d, %d
  store double %e, ptr %y
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"double", !2, i64 0}
!2 = !{!"omnipotent char", !3, i64 0}
!3 = !{!"Simple C/C++ TBAA"}
"""


def test_bit_tricks_on_floats_are_active_integers() -> None:
    facts = facts_of(BITS, "f", {0, 1})
    for name in ("b", "n", "m", "s"):
        assert facts.activity.value(named(facts.root, name)), name
    assert not facts.activity.value(named(facts.root, "t"))


def test_chains_lead_from_an_argument_to_one() -> None:
    facts = facts_of(BITS, "f", {0, 1})
    value = named(facts.root, "e")
    came, goes = facts.activity.chains(value)
    assert came[-1] is goes[0] is value
    assert [str(end) for end in (came[0], goes[-1])] == ["argument %y", "argument %y"]
