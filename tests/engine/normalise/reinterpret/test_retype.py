"""Floats that the compiler moves as integers keep their derivatives, in both modes."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient, make, module_of

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.ir import types as ty
from irgrad.engine.normalise.reinterpret.retype import loosen, retype, undecided
from irgrad.engine.pipeline.stages import NORMALISE
from irgrad.rules.errors import Unsupported

PAIRS = """
typedef struct { float a, b; } Pair;
void f(Pair *x, Pair *y, int *at, double *o) {
    for (int i = 0; i < 4; i++) y[at[i]] = x[i];      /* load i64, store i64 */
    double s = 0;
    for (int i = 0; i < 4; i++) s += y[i].a * y[i].b * (i + 1);
    *o = s;
}
"""
BEST = """
typedef struct { float key; int id; } Row;
void f(Row *x, Row *best, long *n, double *o) {
    Row found = x[0];
    for (long i = 1; i < *n; i++) if (x[i].key > found.key) found = x[i];
    *best = found;
    *o = best->key * best->id;
}
"""
SUMS = """
typedef struct { float r, i; } Pair;
void f(Pair *x, double *o) {
    Pair f[4], first = x[0];
    for (int k = 0; k < 4; k++) { f[k] = first; f[k].r += x[k].r * k; f[k].i *= x[k].i; }  /* an i64 in parts */
    double s = 0;
    for (int k = 0; k < 4; k++) s += f[k].r * f[k].i;
    *o = s;
}
"""
NUMBERED = """
typedef struct { MEMBERS } Row;
void f(double *x, double *o) {
    Row row[4], turned[4];
    for (int i = 0; i < 4; i++) row[i] = (Row){.id = 3 * i - 2, .key = x[i]};
    for (int i = 0; i < 4; i++) turned[3 - i] = row[i];     /* load i64, store i64 */
    *o = 0;
    for (int i = 0; i < 4; i++) {
        Row r = turned[i].id & 1 ? turned[i] : row[i];
        *o += (double)r.key * r.id * r.key;
    }
}
"""
WORDS = """
static __attribute__((noinline)) void move(long *to, const long *from) {
    for (int i = 0; i < 4; i++) to[i] = from[3 - i];
}
void f(double *x, long *n, double *o) {
    double a[4], b[4], *p[4], *q[4];
    long counts[4];
    for (int i = 0; i < 4; i++) { counts[i] = n[3 - i]; a[i] = x[i] * i; p[i] = &a[i]; }
    move((long *)b, (long *)a);
    move((long *)q, (long *)p);
    *o = 0;
    for (int i = 0; i < 4; i++) *o += b[i] * *q[i] * counts[i];
}
"""
LINKS = """
struct link { struct link *left, *right; double key; };
struct head { struct link *first; long count; };     /* begins as a link does */
static __attribute__((noinline)) void move(struct head *to, const struct head *from) {
    to->first = from->first;
    to->count = from->count;
}
static __attribute__((noinline)) void count(struct head *h) { h->count++; }
void f(double *x, long *n, double *o) {
    struct link links[4];
    struct head head, other;
    struct link *at = (struct link *)&head;
    head.count = 0;
    for (int i = 0; i < *n; i++) {
        links[i].key = x[i] * x[i];
        links[i].left = 0;
        if (at->left) at->right = &links[i]; else at->left = &links[i];
        if (x[i] > 1) at = &links[i];
        count(&head);
    }
    move(&other, &head);
    count(&other);
    *o = other.count * other.first->key;
}
"""
SLOTS = """
struct slot { long value; };
static __attribute__((noinline)) void swap(struct slot *a, struct slot *b) {
    long t = a->value;
    a->value = b->value;
    b->value = t;
}
static __attribute__((noinline)) void count(struct slot *c) { c->value++; }
void f(double *x, double *o) {
    double a[4], *p[4];
    struct slot c = {0};
    for (int i = 0; i < 4; i++) { a[i] = x[i] * x[i]; p[i] = &a[i]; }
    for (int i = 0; i < 4; i += 2) { swap((struct slot *)&p[i], (struct slot *)&p[i + 1]); count(&c); }
    *o = 0;
    for (int i = 0; i < 4; i++) *o += *p[i] * (i + 1) * c.value;
}
"""
SHIFTED = """
#include <string.h>
struct node { long value; struct node *next; };
static __attribute__((noinline)) void shift(struct node *a) { for (; a->next; a = a->next) a->value = a->next->value; }
static __attribute__((noinline)) void add(struct node *a) { a->value += 2; }
void f(double *x, double *o) {
    double y[6], r = 0, *p;
    struct node c = {0, 0}, b = {0, &c}, a = {0, &b};
    for (int i = 0; i < 6; i++) {
        struct node *s = x[i] > 0.85 ? &b : &c;
        y[i] = x[i] * x[i];
        a.value = b.value = c.value = 0;
        if (x[i] > 0.62) {
            p = &y[i];
            PUT;
            shift(&a);
            s = x[i] > 0.85 ? &a : &b;
            GET;
            r += *p * (i + 1);
        } else {
            s->value = i;
            add(&a); add(&b); add(&c);
            shift(&a);
            add(&a);
            r += x[i] * a.value;
        }
    }
    *o = r;
}
"""
WAYS = {
    "bytes": ("memcpy(&s->value, &p, 8)", "memcpy(&p, &s->value, 8)"),
    "struct": ("struct node t = *s; memcpy(&t.value, &p, 8); memcpy(s, &t, sizeof t)",
               "struct node u; memcpy(&u, s, sizeof u); memcpy(&p, &u.value, 8)"),
    "pointer": ("*(double **)&s->value = p", "p = *(double **)&s->value"),
    "integer": ("s->value = (long)p", "p = (double *)s->value"),
}
ORDER = np.array([2, 3, 0, 1], np.int32)


def test_a_struct_of_two_floats() -> None:
    x = np.arange(1, 9, dtype=np.float32)
    (dx, dy, _), _made = gradient(PAIRS, "f", "ddcd", x, np.zeros(8, np.float32), ORDER, OUT)
    weight = np.repeat(ORDER + 1, 2)
    assert dx.tolist() == (x.reshape(4, 2)[:, ::-1].reshape(-1) * weight).tolist()
    assert not dy.any(), "what is overwritten has no influence"


def test_the_loads_and_stores_have_the_type_of_the_floats() -> None:
    module = module_of(PAIRS, "f")
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    facts = Facts(module, module.functions["f"], {0, 1, 3})
    moved = [i for i in facts.root.instructions() if i.opcode == "load" and i.type is ty.I64]
    assert moved, "otherwise the program shows nothing"
    assert undecided(facts) is not None
    assert retype(facts)
    assert all(i.type is ty.vector(2, ty.F32) for i in moved)
    assert undecided(Facts(module, facts.root, {0, 1, 3})) is None


def test_an_integer_beside_a_float_keeps_its_bits() -> None:
    """Among them numbers whose bits are a NaN."""
    x = np.zeros(5, np.dtype([("key", "f4"), ("id", "i4")]))
    x["key"] = [0.5, 2.0, -1.0, 7.0, 3.0]
    x["id"] = [3, -1, 0x7FA00001, -5, 1]
    best, o = np.zeros(1, x.dtype), np.zeros(1)
    dx, dbest, do = np.zeros((5, 2), np.float32), np.zeros((1, 2), np.float32), np.ones(1)
    made = make(BEST, "f", "reverse", ["dup", "dup", "const", "dup"])
    made(x, dx, best, dbest, np.array([5]), o, do)
    assert (best["key"][0], best["id"][0], o[0]) == (7.0, -5, -35.0)
    assert dx[:, 0].tolist() == [0, 0, 0, -5.0, 0]


def test_the_bits_of_a_double_chosen_as_an_integer() -> None:
    source = """define void @f(ptr %x, ptr %k, ptr %o) {
  %a = load i64, ptr %x, align 8
  %p = getelementptr inbounds double, ptr %x, i64 1
  %b = load double, ptr %p, align 8
  %square = fmul double %b, %b
  %bits = bitcast double %square to i64
  %c = load i1, ptr %k
  %chosen = select i1 %c, i64 %a, i64 %bits
  store i64 %chosen, ptr %o, align 8
  %z = load double, ptr %x, align 8
  ret void
}"""
    x = np.array([1.5, 3.0])
    for k, want in ((1, [1.0, 0.0]), (0, [0.0, 6.0])):
        (dx, _), _made = gradient(source, "f", "dcd", x, np.array([k], np.int8), OUT)
        assert dx.tolist() == want


@pytest.mark.parametrize("operation", ["add i64 %bits, 4096", "mul i64 %bits, 3", "lshr i64 %bits, 1"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_arithmetic_on_the_bits_is_refused(operation: str, mode: str) -> None:
    source = f"""define void @f(ptr %x, ptr %o) {{
  %a = load double, ptr %x, align 8
  %y = fmul double %a, %a
  %bits = bitcast double %y to i64
  %other = {operation}
  %r = bitcast i64 %other to double
  %z = fmul double %r, %a
  store double %z, ptr %o, align 8
  ret void
}}"""
    with pytest.raises(Unsupported, match=r"in +@f"):
        make(source, "f", mode, ["dup", "dup"])


def test_numbers_made_of_bits_are_not_active() -> None:
    """The exponent read as a number: its derivative is zero almost everywhere."""
    source = """
    void f(double *x, double *o) {
        long bits;
        double y = *x * 3;
        memcpy(&bits, &y, 8);
        *o = y * (double)((bits >> 52) & 2047);
    }"""
    (dx, _), _made = gradient(source, "f", "dd", np.array([1.7]), OUT)
    assert dx[0] == 3 * (1023 + 2)


def test_parts_of_a_copied_pair() -> None:
    """The shift that takes out the upper float is before the truncation, and is not rewritten itself."""
    x = np.arange(1, 9, dtype=np.float32) / 4
    (dx, _), _made = gradient(SUMS, "f", "dd", x, OUT)
    r, i = x.reshape(4, 2).astype(float).T
    want = np.zeros((4, 2))
    want[0] = [sum(i[0] * i), sum((r[0] + r * np.arange(4)) * i)]
    want[:, 0] += np.arange(4) * i[0] * i
    want[:, 1] += (r[0] + r * np.arange(4)) * i[0]
    np.testing.assert_allclose(dx, want.reshape(-1), rtol=1e-5)


@pytest.mark.parametrize("members", ["float key; int id;", "int id; float key;", "short id; float key;"])
def test_a_number_beside_a_float_in_one_register_is_no_float(members: str) -> None:
    source, x = NUMBERED.replace("MEMBERS", members), np.array([0.5, 2.0, -1.0, 0.25])
    ids = 3 * np.arange(4) - 2
    taken = [3 - i if ids[3 - i] & 1 else i for i in range(4)]
    want = np.zeros(4)
    np.add.at(want, taken, 2 * x[taken] * ids[taken])
    (dx, _), _made = gradient(source, "f", "dd", x, OUT)
    assert dx.tolist() == want.tolist()
    to = np.zeros(1)
    make(source, "f", "forward", ["dup", "dup"])(x, np.ones(4), np.zeros(1), to)
    assert to[0] == want.sum()


def test_integers_that_move_doubles_and_pointers_are_not_reordered_by_their_type() -> None:
    """C forbids it; programs do it. The types of integers elsewhere stand."""
    x, n = np.array([1.5, 3.0, -2.0, 0.5]), np.array([1, 2, 3, 4])
    (dx, _), _made = gradient(WORDS, "f", "dcd", x, n, OUT)
    weights = n[::-1] * (np.arange(4.0) * np.arange(4.0))[::-1]
    assert dx.tolist() == (2 * x * weights[::-1]).tolist()
    module = module_of(WORDS, "f")
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    facts = Facts(module, module.functions["f"], {0, 2})
    assert loosen(facts)
    kept = [i for fn in facts.pointers.functions for i in fn.instructions()
            if i.opcode == "load" and i.type is ty.I64 and "tbaa" in i.metadata]  # fmt: skip
    assert kept and all(i.block is not None and i.block.function is facts.root for i in kept)
    assert not loosen(Facts(module, facts.root, {0, 2}))


def test_a_member_that_is_computed_with_is_a_number_where_it_is_moved() -> None:
    """A pointer to a link may be one to the head, by its flow: it is never written where the head counts."""
    module = module_of(LINKS, "f")
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    facts = Facts(module, module.functions["f"], {0, 2})
    moved = [i for fn in facts.pointers.functions for i in fn.instructions() if fn is not facts.root
             if i.opcode == "load" and i.type is ty.I64]  # fmt: skip
    assert not loosen(facts)
    assert moved and all("tbaa" in i.metadata for i in moved)


def test_a_member_that_is_computed_with_elsewhere_may_move_pointers() -> None:
    x = np.array([1.5, 3.0, -2.0, 0.5])
    (dx, _), _made = gradient(SLOTS, "f", "dd", x, OUT)
    assert dx.tolist() == (4 * x * [2, 1, 4, 3]).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_a_member_that_counts_at_times_and_holds_pointers_at_others(way: str) -> None:
    """The objects that it may lead to are several, so that no pointer is written for certain in any of them."""
    x = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4])
    put, get = WAYS[way]
    (dx, _), _made = gradient(SHIFTED.replace("PUT", put).replace("GET", get), "f", "dd", x, OUT)
    assert dx.tolist() == np.where(x > 0.62, 2 * x * np.arange(1, 7), 4).tolist()
