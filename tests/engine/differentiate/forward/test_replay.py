"""Forward mode in split form: what the first run logs, what cannot be run twice; what it computes is in
`notation_programs/fwdsplit.c`."""

from __future__ import annotations

import pytest

from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

ROOT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@table = internal constant [2 x double] [double 1.0, double 2.0]
define void @f(ptr "irgrad-overlaps" %x, ptr noalias %ret) {
  %room = alloca [2 x double]
  call void @llvm.memcpy.p0.p0.i64(ptr %room, ptr %x, i64 16, i1 false)
  %a = load double, ptr %room
  %b = load double, ptr %x
  %c = load double, ptr @table
  %ab = fmul double %a, %b
  %abc = fmul double %ab, %c
  store double %abc, ptr %x
  store double %abc, ptr %ret
  ret void
}
"""
HEAD = """#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_primal_return;
struct taped { void *tape; double value; };
struct taped __enzyme_augmentfwd(void *, ...);
double __enzyme_fwdsplit(void *, ...);
double __enzyme_reverse(void *, ...);
struct list { double *p; };
static double plain(double *x) { return x[0] * x[0]; }
static double says(double *x) { printf("%g\\n", x[0]); return x[0] * x[0]; }
static double over(double *x) { x[0] *= 2; return x[0] * x[0]; }
static double hands(double *x, struct list *l) { l->p = malloc(8); l->p[0] = x[0]; return x[0]; }
static double *gives(double *x) { return x + 1; }
static double counts(double *x, _Atomic long *n) { return x[0] * (*n)++; }
static double through(double *x, double (*f)(double)) { return f(x[0]); }
static double ready(double x) { return x + 1; }
"""


def test_the_first_run_logs_what_it_reads_from_the_program() -> None:
    module = read(ROOT)
    derived = derive(module, Request("f", "split_forward", ("dup", "dup")))
    text = to_text(module)
    first = text.split("define void @f(", 1)[1].split("\n}", 1)[0]
    assert first.count("call ptr @irgrad.log.put(") == 2  # the copy and one load; not the stack, not the table
    tangents = text.split(f"@{derived.name}.body(", 1)[1].split("\n}", 1)[0]
    assert tangents.count("call ptr @irgrad.log.get(") == 2
    stored = [line for line in tangents.splitlines() if "store double" in line]
    assert len(stored) == 2  # tangents of both outputs, no values
    assert f"@{derived.name}.tangent(ptr %a0, ptr %s0, ptr %a1, ptr %s1, ptr %log)" in text


def test_memory_that_stays_is_read_again_unless_the_function_writes_it() -> None:
    for store, logged in ((ROOT, 2), (ROOT.replace("  store double %abc, ptr %x\n", ""), 0)):
        module = read(store)
        derive(module, Request("f", "split_forward", ("dup", "dup"), kept=(0,)))
        first = to_text(module).split("define void @f(", 1)[1].split("\n}", 1)[0]
        assert first.count("call ptr @irgrad.log.put(") == logged


@pytest.mark.parametrize(("body", "what", "because"), [
    ("double r(double *x, double *d) { struct taped t = __enzyme_augmentfwd((void *)says, x, d); "
     "return __enzyme_fwdsplit((void *)says, x, d, t.tape); }",
     "a call that the tangent pass cannot run again", "it does something that the program sees"),
    ("double r(double *x, double *d) { return __enzyme_fwdsplit((void *)over, x, d, NULL); }",
     "the tangent pass is given no tape, and needs one", "writes over memory that it reads here"),
    ("double r(double *x, double *d, struct list *l, struct list *m, void *t) { "
     "return __enzyme_fwdsplit((void *)hands, x, d, l, m, t); }",
     "a call that the tangent pass cannot run again", "the memory that it allocates outlives the function"),
    ("double r(double *x, double *d, void *t) { return __enzyme_fwdsplit((void *)gives, x, d, t); }",
     "`gives` returns a pointer, and its tangents are computed apart", "known when the second half runs only"),
    ("double r(double *x, double *d, long *n, void *t) { "
     "return __enzyme_fwdsplit((void *)counts, x, d, enzyme_const, n, t); }",
     "`atomicrmw` in a function whose tangent pass runs by itself", "reads and writes memory at once"),
    ("double r(double *x, double *d, void *f, void *t) { puts((char *)ready); "
     "return __enzyme_fwdsplit((void *)through, x, d, enzyme_const, f, t); }",
     "a call", ""),
    ("double r(double *x, double *d, void *t) { "
     "return __enzyme_fwdsplit((void *)plain, enzyme_primal_return, x, d, t); }",
     "enzyme_primal_return stands in __enzyme_fwdsplit", "it computes tangents only"),
    ("double r(double *x, double *d) { struct taped t = __enzyme_augmentfwd((void *)plain, x, d); "
     "return __enzyme_fwdsplit((void *)plain, x, d, t.tape) + __enzyme_reverse((void *)plain, x, d, t.tape); }",
     "`plain` is differentiated by __enzyme_reverse and by __enzyme_fwdsplit", "their tapes differ"),
])  # fmt: skip
def test_what_cannot_be_run_twice_names_the_line(body: str, what: str, because: str) -> None:
    text = load(HEAD + body).text
    with pytest.raises(Unsupported) as caught:
        lower(text)
    assert what in caught.value.what
    assert because in caught.value.because
    assert "<string>:" in caught.value.where
    assert caught.value.fix
