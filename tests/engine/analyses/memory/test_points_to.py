"""Points-to sets, call targets and read/write summaries on small programs."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import all_of, facts_of, facts_of_c, named

import irgrad
from irgrad import engine
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.model import Function, Value
from irgrad.engine.ir.text.reader import read


def kinds(pointers: Pointers, value: Value) -> set[str]:
    """The objects a value may point to, as `kind name`."""
    mask = pointers.of(value)
    return {str(o) for o in pointers.objects if mask >> o.index & 1}


TWO = """
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
entry:
  %flag = load i32, ptr %c
  %test = icmp eq i32 %flag, 0
  %p = select i1 %test, ptr %a, ptr %b
  %q = getelementptr inbounds double, ptr %p, i64 3
  %x = load double, ptr %q
  store double %x, ptr %b
  ret void
}
"""


def test_arguments_are_separate_and_select_joins_them() -> None:
    pointers = facts_of(TWO, "f", {0}).pointers
    root = pointers.root
    assert kinds(pointers, named(root, "q")) == {"argument %a", "argument %b"}
    assert pointers.may_alias(named(root, "p"), named(root, "b"))
    assert not pointers.may_alias(named(root, "a"), named(root, "b"))
    assert pointers.names(pointers.writes(root)) == "{argument %b}"
    assert pointers.names(pointers.reads(root)) == "{argument %a, argument %b, argument %c}"


def test_arguments_that_overlap_are_written_together() -> None:
    text = TWO.replace("noalias %a", '"irgrad-overlaps" %a').replace("noalias %b", '"irgrad-overlaps" %b')
    pointers = facts_of(text, "f", {0}).pointers
    root = pointers.root
    assert pointers.may_alias(named(root, "a"), named(root, "b"))
    assert not pointers.may_alias(named(root, "a"), named(root, "c"))
    assert pointers.names(pointers.writes(root)) == "{unknown, argument %a, argument %b}"


STREAM = """
@stderr = external global ptr
@other = external global ptr
define void @f(ptr noalias %a) {
entry:
  %s = load ptr, ptr @stderr
  store ptr %s, ptr %a
  %o = load ptr, ptr @other
  %deep = load ptr, ptr %s
  ret void
}
"""


def test_streams_of_the_c_library_lead_to_memory_of_its_own() -> None:
    pointers = facts_of(STREAM, "f", {0}).pointers
    root = pointers.root
    assert kinds(pointers, named(root, "s")) == kinds(pointers, named(root, "deep")) == {"global @stderr"}
    assert "unknown" in kinds(pointers, named(root, "o"))


INTEGERS = """
define void @f(ptr noalias %a, ptr noalias %b) {
entry:
  %slot = alloca i64
  %n = ptrtoint ptr %a to i64
  store i64 %n, ptr %slot
  %m = load i64, ptr %slot
  %k = add i64 %m, 8
  %p = inttoptr i64 %k to ptr
  %x = load double, ptr %p
  store double %x, ptr %b
  %wild = inttoptr i64 4096 to ptr
  %y = load double, ptr %wild
  ret void
}
"""


def test_pointers_travel_as_integers_through_memory() -> None:
    pointers = facts_of(INTEGERS, "f", {0}).pointers
    assert kinds(pointers, named(pointers.root, "p")) == {"argument %a"}
    assert kinds(pointers, named(pointers.root, "wild")) == {"unknown"}


AGGREGATES = """
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
entry:
  %pair = insertvalue { ptr, ptr } poison, ptr %a, 0
  %both = insertvalue { ptr, ptr } %pair, ptr %b, 1
  %one = extractvalue { ptr, ptr } %both, 0
  %v = insertelement <2 x ptr> poison, ptr %c, i64 0
  %e = extractelement <2 x ptr> %v, i64 0
  %x = load double, ptr %one
  store double %x, ptr %e
  ret void
}
"""


def test_pointers_travel_in_structs_and_vectors() -> None:
    pointers = facts_of(AGGREGATES, "f", {0}).pointers
    assert "argument %a" in kinds(pointers, named(pointers.root, "one"))
    assert "argument %c" not in kinds(pointers, named(pointers.root, "one"))
    assert kinds(pointers, named(pointers.root, "e")) == {"argument %c"}


SWAP = """
void step(double *a, double *b, int *n_) {
  int n = *n_;
  double *u = a, *v = b;
  for (int t = 0; t < 10; t++) {
    for (int i = 1; i < n - 1; i++) v[i] = u[i-1] * u[i+1];
    double *w = u; u = v; v = w;
  }
}
"""


def test_swapped_buffers_may_be_either() -> None:
    pointers = facts_of_c(SWAP, "step", {0, 1}).pointers
    store = next(s for s in all_of(facts_of_c(SWAP, "step", {0, 1}), "store"))
    assert store is not None
    masks = {
        kind for i in pointers.root.instructions() if i.opcode == "store" for kind in kinds(pointers, i.operands[1])
    }
    assert len(masks) == 2
    assert pointers.reads(pointers.root) & pointers.writes(pointers.root)


TABLE = """
static double f0(double x) { return x * x; }
static double f1(double x) { return 3 * x; }
static double f2(double x) { return x * x * x; }
typedef double (*op)(double);
static op table[3] = { f0, f1, f2 };
void run(double *x, int *which, double *out) {
  double s = 0;
  for (int i = 0; i < 8; i++) s += table[which[i] % 3](x[i]);
  *out = s;
}
"""


def test_indirect_calls_are_resolved_through_tables() -> None:
    facts = facts_of_c(TABLE, "run", {0, 2})
    call = next(c for c in all_of(facts, "call", "run") if not isinstance(c.callee, Function))
    callees = facts.pointers.callees(call)
    assert callees is not None
    assert sorted(str(f.name) for f in callees) == ["f0", "f1", "f2"]
    assert {f.name for f in facts.pointers.functions} == {"run", "f0", "f1", "f2"}


UNKNOWN = """
declare ptr @mystery(ptr)
declare void @quiet(ptr nocapture readonly) memory(argmem: read)
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
entry:
  %local = alloca ptr
  store ptr %b, ptr %local
  %p = call ptr @mystery(ptr %local)
  call void @quiet(ptr %c)
  %r = load ptr, ptr %local
  %f = load ptr, ptr %a
  call void %f(ptr %a)
  ret void
}
"""


HANDED = """
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %g, ptr noalias %table) {
  %a = load double, ptr %x
  %b = call double %g(double %a)
  %h = load ptr, ptr %table
  %c = call double %h(double %b)
  store double %c, ptr %y
  ret void
}
"""


def test_functions_that_a_caller_hands_over_may_be_anything() -> None:
    facts = facts_of(HANDED, "f", {0, 1})
    for name in ("b", "c"):
        call = named(facts.pointers.root, name)
        assert facts.pointers.effect(call) is not None
        assert facts.pointers.callees(call) is None
        assert facts.activity.value(call)


def test_what_an_unknown_function_gets_escapes() -> None:
    facts = facts_of(UNKNOWN, "f", {0})
    pointers = facts.pointers
    root = pointers.root
    objects = pointers.object_of
    assert pointers.escaped(objects[root.args[1]])
    assert not pointers.escaped(objects[root.args[2]])
    assert pointers.may_alias(named(root, "p"), named(root, "b"))
    assert "unknown" in kinds(pointers, named(root, "r"))
    mystery, quiet, indirect = all_of(facts, "call")
    assert pointers.instr_writes(mystery) >> objects[root.args[1]].index & 1
    assert pointers.instr_writes(quiet) == 0
    assert pointers.names(pointers.instr_reads(quiet)) == "{argument %c}"
    assert pointers.callees(indirect) is None


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


def test_linked_list_lives_in_one_heap_object() -> None:
    facts = facts_of_c(LIST, "sum", {0, 2})
    heap = [o for o in facts.pointers.objects if o.kind == "heap"]
    assert len(heap) == 1
    assert heap[0].size == 16
    assert facts.pointers.contents(heap[0]) == 1 << heap[0].index
    assert not facts.pointers.escaped(heap[0])


ROWS = """
#include <stdlib.h>
#include <string.h>
void rows(double *x, double *out) {
  double **m = malloc(4 * sizeof *m);
  for (int i = 0; i < 4; i++) m[i] = x + 4 * i;
  double **copy = malloc(4 * sizeof *m);
  memcpy(copy, m, 4 * sizeof *m);
  double s = 0;
  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) s += copy[i][j] * copy[j][i];
  *out = s; free(m); free(copy);
}
"""


def test_memcpy_carries_pointers() -> None:
    facts = facts_of_c(ROWS, "rows", {0, 1})
    loads = [i for i in all_of(facts, "load") if i.type.is_fp]
    assert loads
    assert all(kinds(facts.pointers, i.operands[0]) == {"argument %0"} for i in loads) or all(
        len(kinds(facts.pointers, i.operands[0])) == 1 for i in loads
    )


SIZES = """
struct map { const double *data; long rows; };
__attribute__((noinline)) static double first(const struct map *m, long *left) {
  *left = m->rows - 1;
  return m->data ? m->data[0] : 0;
}
void f(const double *restrict x, const long *restrict n, double *restrict y) {
  struct map m = {x, *n};
  struct map *null = 0, *at = *n > 3 ? &m : null;
  long left;
  *y = first(at, &left) * left;
}
"""


def test_an_argument_of_sizes_is_not_taken_for_pointers() -> None:
    """A pointer that is read from nowhere (a null pointer's memory) has nothing to do with the sizes."""
    pointers = facts_of_c(SIZES, "f", {0, 2}).pointers
    assert not pointers.pointee_of
    assert all(pointers.of(load) & 1 == 0 for f in pointers.functions for load in f.instructions())


HELD = """
define void @f(ptr noalias %a, ptr noalias %b) {
entry:
  %slot = alloca [2 x i64]
  %i = load i64, ptr %b, !tbaa !0
  store ptr %a, ptr %slot, !tbaa !4
  %at = getelementptr [2 x i64], ptr %slot, i64 0, i64 %i
  STORE
  %n = load i64, ptr %at, !tbaa !0
  %p = load ptr, ptr %slot, !tbaa !4
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"long", !2, i64 0}
!2 = !{!"omnipotent char", !3, i64 0}
!3 = !{!"Simple C/C++ TBAA"}
!4 = !{!5, !5, i64 0}
!5 = !{!"any pointer", !2, i64 0}
"""


def test_an_integer_is_a_pointer_where_one_was_stored_as_an_integer() -> None:
    root = facts_of(HELD.replace("STORE", ""), "f", {0}).pointers
    assert kinds(root, named(root.root, "n")) == set()
    assert kinds(root, named(root.root, "p")) == {"argument %a"}
    for how in ("store i64 %w, ptr %at, !tbaa !0", "store i64 %w, ptr %at"):
        stored = facts_of(HELD.replace("STORE", f"%w = ptrtoint ptr %a to i64\n  {how}"), "f", {0}).pointers
        assert kinds(stored, named(stored.root, "n")) == {"argument %a"}


def test_a_difference_beside_null_is_no_pointer() -> None:
    """An empty vector ends at `null + (end - begin)`: no address, since null has no inside. Without `inbounds` it may
    be one."""
    text = """
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %out) {
  %m = call ptr @malloc(i64 8)
  %end = ptrtoint ptr %m to i64
  %begin = ptrtoint ptr %a to i64
  %size = sub i64 %end, %begin
  %p = getelementptr inbounds i8, ptr null, i64 %size
  %q = getelementptr i8, ptr null, i64 %size
  store ptr %p, ptr %out
  store ptr %q, ptr %b
  ret void
}
declare ptr @malloc(i64)
"""
    facts = facts_of(text, "f", {0})
    root = facts.root
    assert kinds(facts.pointers, named(root, "p")) == set()
    assert kinds(facts.pointers, named(root, "q")) == {"heap %m in @f"}


HIDDEN = """
@either = internal global { i64 } zeroinitializer
@bytes = internal global [64 x i8] undef
@table = internal constant [2 x i64] [i64 1, i64 2]
@read = internal global [2 x i64] zeroinitializer
declare ptr @malloc(i64)
define void @fill() {
  %p = call ptr @malloc(i64 800)
  store ptr %p, ptr @either
  store ptr %p, ptr @bytes
  %n = load i64, ptr @table
  ret void
}
define void @f(ptr noalias %a) {
entry:
  %p = load ptr, ptr @either
  %q = load ptr, ptr getelementptr (i8, ptr @bytes, i64 8)
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr @bytes, i64 64, i1 false)
  %r = load ptr, ptr @read
  %s = load ptr, ptr @table
  %n = load i64, ptr @either
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def test_a_variable_of_numbers_may_hold_a_pointer_of_a_function_out_of_reach() -> None:
    facts = facts_of(HIDDEN, "f", set())
    found = {name: kinds(facts.pointers, named(facts.root, name)) for name in "pqrsn"}
    assert {name for name, held in found.items() if "unknown" in held} == {"p", "q"}
    assert facts.pointers.contents(facts.pointers.object_of[facts.root.args[0]]) & 1


FLOATS = """
define void @f(ptr noalias "irgrad-float" %a, ptr noalias %b) {
entry:
  %s = alloca { ptr, double }
  store ptr %a, ptr %s
  %t = alloca double
  MORE
  %p = load ptr, ptr %s
  %q = load ptr, ptr %p
  %x = load double, ptr %q
  store double %x, ptr %b
  ret void
}
"""


def test_an_argument_of_floats_holds_addresses_only_where_there_are_no_others() -> None:
    """What is loaded from memory that holds other things too is not looked for in floats."""
    found = facts_of(FLOATS.replace("MORE", ""), "f", {0}).pointers
    assert "pointee %a" in kinds(found, named(found.root, "q"))
    found = facts_of(FLOATS.replace("MORE", "store ptr %s, ptr %s\n  store ptr %t, ptr %s"), "f", {0}).pointers
    assert "pointee %a" not in kinds(found, named(found.root, "q"))
    assert "unknown" not in kinds(found, named(found.root, "q"))


DESCRIBED = """
@_ZTISt12out_of_range = external constant ptr
@_ZTVN10__cxxabiv120__si_class_type_infoE = external global [0 x ptr]
@_ZTI5E = internal constant { ptr, ptr } { ptr @_ZTVN10__cxxabiv120__si_class_type_infoE, ptr @_ZTISt12out_of_range }
define void @f(ptr noalias %a, i64 %i) {
entry:
  %s = alloca [2 x ptr]
  store ptr %a, ptr %s
  %s1 = getelementptr i8, ptr %s, i64 8
  store ptr @_ZTI5E, ptr %s1
  %at = getelementptr i8, ptr %s, i64 %i
  %p = load ptr, ptr %at
  store ptr %a, ptr %p
  %q = load ptr, ptr @_ZTI5E
  %r = load ptr, ptr %q
  ret void
}
"""


def test_nothing_is_stored_in_type_descriptors_and_nothing_unknown_is_there() -> None:
    found = facts_of(DESCRIBED, "f", {0}).pointers
    for name in "qr":
        assert not kinds(found, named(found.root, name)) & {"unknown", "argument %a"}


BEHIND_A_TREE = """
#include <map>
#include <memory>
#include <vector>
struct W { std::map<int, std::unique_ptr<std::vector<double>>> rows; std::vector<int> dead; };
extern "C" double loss(const double *x, long n) {
  W w;
  for (int i = 0; i < n; i++) {
    auto &p = w.rows[i % 2];
    if (!p) p = std::make_unique<std::vector<double>>();
    p->push_back(x[i]);
  }
  w.dead.push_back(1);
  for (int e : w.dead) w.rows.erase(e);
  double s = 0;
  for (auto &[k, p] : w.rows) for (double v : *p) s += v * v * (k + 1);
  return s;
}
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_what_follows_the_head_of_a_tree_is_no_node(level: str) -> None:
    """It lies where nodes have their parent; the types of pointers tell that it is another thing."""
    x = np.array([0.5, 0.3, 1.2, 0.7])
    kernel = irgrad.load(BEHIND_A_TREE, language="c++", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    np.testing.assert_allclose(engine.grad(kernel)(x), [1.0, 0, 2.4, 0], rtol=1e-13)
    np.testing.assert_allclose(engine.jvp(kernel, (x,), (x,))[1], 2 * 0.25 + 2 * 1.44, rtol=1e-13)


DISTANCES = """
declare ptr @malloc(i64)
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {
  %a = call ptr @malloc(i64 80)
  %b = call ptr @malloc(i64 80)
  %many = load i64, ptr %n
  %end = getelementptr double, ptr %a, i64 %many
  %ai = ptrtoint ptr %a to i64
  %bi = ptrtoint ptr %b to i64
  %ei = ptrtoint ptr %end to i64
  %length = sub i64 %ei, %ai
  %apart = sub i64 %bi, %ai
  %low = and i64 %ei, %many
  %down = sub i64 %ei, %low
  %p = getelementptr i8, ptr %b, i64 %length
  %q = getelementptr i8, ptr %a, i64 %apart
  %v = load double, ptr %x
  store double %v, ptr %p
  %w = load double, ptr %q
  store double %w, ptr %y
  ret void
}
"""


def test_the_distance_of_two_places_in_one_object_leads_nowhere() -> None:
    pointers = Pointers(module := read(DISTANCES, roots=["f"]), module.functions["f"])
    assert not pointers.of(named(pointers.root, "length"))
    assert pointers.of(named(pointers.root, "down")) == pointers.of(named(pointers.root, "a")), "rounded down"
    assert pointers.of(named(pointers.root, "apart")) == pointers.of(named(pointers.root, "b"))
    assert pointers.of(named(pointers.root, "p")) == pointers.of(named(pointers.root, "b"))
