"""Floats and pointers that are copied in pieces: put together where the pieces are those of one word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reinterpret.pieces import join_pieces

HEAD = "define {} @f({}) {{\n{}\n}}\n"


def joined(body: str, arguments: str = "double %x, ptr %p, ptr %q", result: str = "void") -> Function:
    """@f, its pieces joined."""
    module = read(HEAD.format(result, arguments, body), roots=["f"])
    join_pieces(module, module.functions["f"])
    return module.functions["f"]


def stored(fn: Function) -> list[str]:
    """The types that are stored."""
    return [str(i.operands[0].type) for i in fn.instructions() if i.opcode == "store"]


def opcodes(fn: Function) -> list[str]:
    return [i.opcode for i in fn.instructions()]


def each(lines: str, places: Sequence[int]) -> str:
    """The lines once for each place, `#` replaced by its number."""
    return "\n".join(lines.replace("#", str(i)) for i in places)


BYTES = each("%a# = getelementptr i8, ptr %p, i64 #\n%v# = load i8, ptr %a#\n", range(8))
PUT = each("%b# = getelementptr i8, ptr %q, i64 #\nstore i8 %v#, ptr %b#\n", range(8))


def test_bytes_that_are_loaded_first() -> None:
    fn = joined(BYTES + PUT + "ret void")
    assert stored(fn) == ["i64"]
    assert opcodes(fn).count("load") == 1


@pytest.mark.parametrize(
    ("target", "wanted"), [("alloca [8 x i8]", ["i64"]), ("getelementptr i8, ptr %q, i64 0", ["i8"] * 8)]
)
def test_bytes_one_by_one_only_between_variables(target: str, wanted: list[str]) -> None:
    """The first byte that is stored may be the second that is loaded."""
    one = """%a# = getelementptr i8, ptr %s, i64 #
             %v# = load i8, ptr %a#
             %b# = getelementptr i8, ptr %t, i64 #
             store i8 %v#, ptr %b#
          """
    fn = joined(f"%s = alloca [8 x i8]\n%t = {target}\n" + each(one, range(8)) + "ret void")
    assert stored(fn) == wanted


def test_a_float_in_pieces_is_stored_as_one() -> None:
    body = """
    %bits = bitcast double %x to i64
    %low = trunc i64 %bits to i32
    %up = lshr i64 %bits, 32
    %high = trunc i64 %up to i16
    %top = lshr i64 %bits, 48
    %last = trunc i64 %top to i16
    store i32 %low, ptr %p
    %b = getelementptr i8, ptr %p, i64 4
    store i16 %high, ptr %b
    %c = getelementptr i8, ptr %p, i64 6
    store i16 %last, ptr %c
    ret void"""
    assert stored(joined(body)) == ["double"]


def test_pieces_that_cross_words() -> None:
    """A vectoriser's choice: bytes, a vector that begins in the middle of a word, the rest of an integer."""
    body = """
    %s = alloca [32 x i8], align 16
    store double %x, ptr %s
    %s8 = getelementptr i8, ptr %s, i64 8
    store double %y, ptr %s8
    %bits = bitcast double %x to <8 x i8>
    %e0 = extractelement <8 x i8> %bits, i64 0
    store i8 %e0, ptr %p
    %e1 = extractelement <8 x i8> %bits, i64 1
    %p1 = getelementptr i8, ptr %p, i64 1
    store i8 %e1, ptr %p1
    %s2 = getelementptr i8, ptr %s, i64 2
    %v = load <8 x i8>, ptr %s2
    %p2 = getelementptr i8, ptr %p, i64 2
    store <8 x i8> %v, ptr %p2
    %w = bitcast double %y to i64
    %shifted = lshr i64 %w, 16
    %four = trunc i64 %shifted to i32
    %p10 = getelementptr i8, ptr %p, i64 10
    store i32 %four, ptr %p10
    %more = lshr i64 %w, 48
    %two = trunc i64 %more to i16
    %p14 = getelementptr i8, ptr %p, i64 14
    store i16 %two, ptr %p14
    ret void"""
    fn = joined("%p = alloca [16 x i8], align 8\n" + body, "double %x, double %y")
    assert stored(fn) == ["double"] * 4


def test_halves_of_a_word() -> None:
    """A float and an integer beside it, byte by byte."""
    single = "%i = bitcast float %x to <4 x i8>\n" + each("%v# = extractelement <4 x i8> %i, i64 #\n", range(4))
    put = each("%b# = getelementptr i8, ptr %q, i64 #\nstore i8 %v#, ptr %b#\n", range(4))
    rest = "%b4 = getelementptr i8, ptr %q, i64 4\nstore i32 %n, ptr %b4\n"
    fn = joined(single + put + rest + "ret void", "float %x, ptr %q, i32 %n")
    assert stored(fn) == ["float", "i32"]


def test_a_read_in_between_ends_a_word() -> None:
    half = PUT.split("%b4")[0]
    fn = joined(BYTES + half + "%z = load i8, ptr %q\n" + PUT[len(half):] + "store i8 %z, ptr %p\nret void")
    assert stored(fn) == ["i8"] * 9


def test_a_write_in_between_keeps_the_pieces() -> None:
    """Bytes of a word that is changed while it is read are of two words."""
    first, second = BYTES.split("%a4", 1)
    fn = joined(first + "store double %x, ptr %p\n%a4" + second + PUT + "ret void")
    assert stored(fn) == ["double", *["i8"] * 8]


def test_an_address_that_is_put_together() -> None:
    body = """
    %low = load i32, ptr %p
    %at = getelementptr i8, ptr %p, i64 4
    %high = load i32, ptr %at
    %a = zext i32 %low to i64
    %b = zext i32 %high to i64
    %c = shl i64 %b, 32
    %d = or disjoint i64 %c, %a
    %r = inttoptr i64 %d to ptr
    ret ptr %r"""
    fn = joined(body, "ptr %p", "ptr")
    assert opcodes(fn) == ["load", "getelementptr", "ret"]
    assert next(i.type.is_ptr for i in fn.instructions() if i.opcode == "load")


def test_what_the_source_calls_integers_is_left_alone() -> None:
    body = """
    %v = load i32, ptr %p, !tbaa !0
    store i32 %v, ptr %q, !tbaa !0
    %p4 = getelementptr i8, ptr %p, i64 4
    %w = load i32, ptr %p4, !tbaa !0
    %q4 = getelementptr i8, ptr %q, i64 4
    store i32 %w, ptr %q4, !tbaa !0
    ret void"""
    nodes = '!0 = !{!1, !1, i64 0}\n!1 = !{!"int", !2, i64 0}\n!2 = !{!"omnipotent char", !3, i64 0}\n!3 = !{!"C"}\n'
    module = read(HEAD.format("void", "ptr noalias %p, ptr noalias %q", body) + nodes, roots=["f"])
    assert not join_pieces(module, module.functions["f"])


def test_what_is_volatile_stays() -> None:
    fn = joined(BYTES.replace("load i8", "load volatile i8") + PUT + "ret void")
    volatile = [i for i in fn.instructions() if isinstance(i, Instruction) and i.volatile]
    assert len(volatile) == 8


COPY = """
#include <math.h>
#include <stdlib.h>
static void copy(void *to, const void *from, size_t n) {
  char *t = to; const char *f = from;
  for (size_t i = 0; i < n; i++) t[i] = f[i];
}
"""
C = COPY + """
typedef struct { double *row; int n; float f; double a, b; } item;
static void swap(void *p, void *q, size_t n) {
  char *a = p, *b = q;
  for (size_t i = 0; i < n; i++) { char t = a[i]; a[i] = b[i]; b[i] = t; }
}
double loss(const double *x, long n) {
  item *s = malloc(3 * sizeof *s);
  for (int i = 0; i < 3; i++) {
    s[i].row = malloc(3 * sizeof(double));
    for (int k = 0; k < 3; k++) s[i].row[k] = sin(x[k] * (i + 1));
    s[i].n = i + 1; s[i].f = (float)x[i]; s[i].a = x[0] * x[i]; s[i].b = exp(-x[i]);
  }
  copy(&s[0], &s[2], sizeof *s);
  swap(&s[1], &s[2], sizeof *s);
  s[2].b *= s[0].b;
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < s[i].n && k < 3; k++) sum += s[i].row[k] * s[i].a;
    sum += s[i].b * s[i].f;
  }
  return sum;
}
"""
VARIABLE = COPY + """
typedef struct item { struct item *own; char n; struct item *next; double a; } item;
double loss(const double *x, long n) {
  static item kept;
  item *s = malloc(sizeof *s);
  kept.own = kept.next = &kept; kept.n = 2;
  s->own = s; s->n = 2; s->next = &kept; s->a = sin(x[0]) + x[1] * x[2];
  copy(&kept, s, sizeof *s);
  s->n += 1;
  if (kept.n > 1) kept.a *= cos(x[1]);
  double sum = kept.a * x[2] + s->a + 0.01 * kept.n;
  free(s);
  return sum;
}
"""
OWN_ADDRESS = COPY + """
typedef struct node { double a; struct node *next; } node;
double loss(const double *x, long n) {
  static node kept;
  node *s = malloc(sizeof *s);
  s->a = x[2] * x[1]; s->next = &kept;
  copy(&kept, s, sizeof *s);
  double sum = sin(kept.a) + cos(kept.next->a * x[0]);
  free(s);
  return sum;
}
"""


@pytest.mark.parametrize("source", [C, VARIABLE, OWN_ADDRESS])
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_structs_by_bytes(source: str, level: str | None) -> None:
    """Of memory on the heap, and of a variable, whose members and whose address are constants."""
    kernel = irgrad.load(source, language="c", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    x, step = np.array([0.4, 0.9, 1.3]), 1e-3
    ways = step * np.eye(3)
    want = [(8 * (kernel(x + h) - kernel(x - h)) - kernel(x + 2 * h) + kernel(x - 2 * h)) / (12 * step) for h in ways]
    found = engine.grad(kernel)(x)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)  # a member is single
    tangent = engine.jvp(kernel, (x,), (np.ones(3),))[1]
    np.testing.assert_allclose(tangent, found.sum(), rtol=1e-6)


MADE = "%m = call noalias ptr @malloc(i64 16)\n%n = call noalias ptr @malloc(i64 16)\n"
DECLARED = "declare noalias ptr @malloc(i64)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
FORWARDED = """%w = ptrtoint ptr %p to i64
store ptr %p, ptr %m
#call
""" + each("%s# = lshr i64 %w, <8 * #>\n%t# = trunc i64 %s# to i8\n%a# = getelementptr i8, ptr %n, i64 #\n"
           "store i8 %t#, ptr %a#\n", range(7)) + """%l = getelementptr i8, ptr %m, i64 7
%e = load i8, ptr %l
%o = getelementptr i8, ptr %n, i64 7
store i8 %e, ptr %o
%r = load ptr, ptr %n
ret void"""  # fmt: skip


def _forwarded(call: str = "") -> list[str]:
    body = FORWARDED.replace("#call", call)
    for i in range(7):
        body = body.replace(f"<8 * {i}>", str(8 * i))
    module = read(DECLARED + HEAD.format("void", "ptr %p", MADE + body), roots=["f"])
    join_pieces(module, module.functions["f"])
    return stored(module.functions["f"])


def test_an_address_that_is_in_fresh_memory_and_known() -> None:
    """Seven bytes are of the address, one of the memory that it was stored in: other memory is written meanwhile."""
    assert _forwarded() == ["ptr", "ptr"]


@pytest.mark.parametrize(("call", "wanted"), [
    ("call void @llvm.memcpy.p0.p0.i64(ptr %n, ptr %m, i64 16, i1 false)", ["ptr", "ptr"]),
    ("call void @llvm.memcpy.p0.p0.i64(ptr %m, ptr %n, i64 8, i1 false)", ["ptr", *["i8"] * 8]),
    ("call ptr @malloc(i64 1)", ["ptr", *["i8"] * 8]),
])  # fmt: skip
def test_copies_of_known_length(call: str, wanted: list[str]) -> None:
    assert _forwarded(call) == wanted


def test_the_rest_of_a_vector() -> None:
    """Of sixteen bytes, one word is a float, seven bytes are of another word: numbers."""
    fn = joined("""%a = getelementptr i8, ptr %p, i64 1
      %v = load <14 x i8>, ptr %a
      %k = load i8, ptr %p
      store i8 %k, ptr %q
      %b = getelementptr i8, ptr %q, i64 1
      store <14 x i8> %v, ptr %b
      ret void""")  # fmt: skip
    assert stored(fn) == ["i32", "i16", "i8", "i64"]


def test_a_float_taken_out_of_many_bytes() -> None:
    fn = joined("""%s = alloca [24 x i8]
      %a = getelementptr i8, ptr %s, i64 8
      store double %x, ptr %a
      %b = getelementptr i8, ptr %s, i64 7
      %v = load <16 x i8>, ptr %b
      %w = bitcast <16 x i8> %v to i128
      %h = lshr i128 %w, 8
      %t = trunc i128 %h to i64
      %r = bitcast i64 %t to double
      ret double %r""", result="double")  # fmt: skip
    assert next(i for i in fn.instructions() if i.opcode == "ret").operands[0] is fn.args[0]
