"""Worksharing loops of OpenMP: which are marked, and which a thread keeps to itself."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irgrad
from irgrad.engine.analyses.control.promises import worksharing_loops
from irgrad.engine.grids.threads_of_loops import shared_loops
from irgrad.engine.grids.worksharing import mark_worksharing
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.parallel.one_thread import loops_on_one_thread

HEAD = "#include <math.h>\n#include <stdlib.h>\n#include <omp.h>\nvoid f(const double *x, double *y, long n) {\n"
SIGNATURE = "void(f64[n] x, out f64[n] y, i64 n)"
EACH = "for (long i = 0; i < n; i++)"
ALL = f"#pragma omp parallel for\n{EACH}"
SUM = "#pragma omp critical\ny[0] += s[0];"
SHARED = {
    "parallel for": f"{ALL} y[i] = sin(x[i]);",
    "schedule": f"#pragma omp parallel for schedule(static, 4)\n{EACH} y[i] = sin(x[i]);",
    "dynamic": f"#pragma omp parallel for schedule(dynamic)\n{EACH} y[i] = sin(x[i]);",
    "simd": f"#pragma omp parallel for simd\n{EACH} y[i] = sin(x[i]);",
    "a sum": f"double s = 0;\n#pragma omp parallel for reduction(+:s)\n{EACH} s += x[i] * x[i];\ny[0] = s;",
    "of int": "#pragma omp parallel for\nfor (int i = 0; i < (int)n; i++) y[i] = x[i];",
    "private": f"double w[2];\n#pragma omp parallel for private(w)\n{EACH} {{ w[0] = x[i]; y[i] = w[0]; }}",
    "an array of all": f"double *w = malloc(8 * n);\n{ALL} w[i] = x[i];\ny[1] = w[1]; free(w);",
}
CARRIED = "memory of the thread goes from iteration to iteration"
ALONE = {
    "a critical section": (f"{ALL} {{\n#pragma omp critical\ny[0] += x[i];\n}}", "nothing says"),
    "a critical section of a region inside": (
        f"{ALL} {{\ny[i] = sin(x[i]);\n#pragma omp parallel\n{{\n#pragma omp critical\ny[0] += x[i];\n}} }}",
        "nothing says"),
    "one thread by the source": (
        "y[0] = x[0];\n#pragma omp parallel for num_threads(1)\n"
        "for (long i = 1; i < n; i++) y[i] = sin(y[i-1]) + x[i];",
        "nothing says"),
    "a region inside, where regions are counted": (
        f"y[0] = omp_get_level();\n{ALL} {{\n#pragma omp parallel\ny[i] = sin(x[i]);\n}}", "nothing says"),
    "an atomic update": (f"{ALL} {{\n#pragma omp atomic\ny[0] += x[i];\n}}", "it has atomic operations"),
    "a maximum": (f"double s = 0;\n#pragma omp parallel for reduction(max:s)\n{EACH} s = fmax(s, x[i]);\ny[0] = s;",
                  "each iteration goes on"),
    "the last one": (f"double s;\n#pragma omp parallel for lastprivate(s)\n{EACH} {{ s = x[i]; y[i] = s * s; }}\n"
                     "y[0] = s;", "goes on with|is used behind it"),
    "sums in an array": ("double s[3] = {0};\n#pragma omp parallel for reduction(+:s[:3])\n"
                         f"{EACH} s[i % 3] += x[i];\ny[0] = s[0];", CARRIED),
    "memory of a thread": ("#pragma omp parallel\n{ double *s = calloc(8, 8);\n#pragma omp for\n"
                           f"{EACH} s[i & 7] += x[i];\n{SUM} free(s); }}", CARRIED),
    "an array of a thread": ("#pragma omp parallel\n{ double s[8] = {0};\n#pragma omp for\n"
                             f"{EACH} s[(i * i) & 7] += x[i];\n{SUM} }}", CARRIED),
    "a variable that is handed on": ("#pragma omp parallel\n{ double s = 0;\n#pragma omp for\n"
                                     f"{EACH} y[i] = modf(x[i], &s) + s;\n{SUM.replace('s[0]', 's')} }}",
                                     "is used behind it"),
    "a slot for each thread": ("double s[64] = {0};\n#pragma omp parallel\n{ int t = omp_get_thread_num();\n"
                               f"#pragma omp for\n{EACH} s[t] += x[i]; }}\ny[0] = s[0];", "nothing says"),
}  # fmt: skip


def _kernel(body: str) -> irgrad.Kernel:
    return irgrad.load(f"{HEAD}{body}\n}}", flags=["-fopenmp"]).kernel("f", SIGNATURE)


@pytest.mark.parametrize("name", SHARED)
def test_loops_that_many_threads_share(name: str) -> None:
    found = shared_loops(_kernel(SHARED[name]))
    assert len(found.shared) == 1 and found.shared[0].startswith("<string>:"), found


@pytest.mark.parametrize("body", [
    f"double *w = malloc(8 * n), s = 0; {EACH} w[i] = x[i];\n#pragma omp parallel for reduction(+:s)\n"
    f"{EACH} s += w[i ? i - 1 : n - 1] * w[(i * i) % n];\ny[0] = s; free(w);",
    f"double w[64]; {EACH} w[i & 63] = x[i];\n{ALL} {{ double h[2] = {{w[i & 63], x[i]}}; y[i] = h[i & 1]; }}",
])  # fmt: skip
def test_memory_of_all_threads_is_read_at_any_place(body: str) -> None:
    """It was reserved outside of the region."""
    assert len(shared_loops(_kernel(body)).shared) == 1


@pytest.mark.parametrize("name", ALONE)
def test_loops_that_stay_with_one_thread(name: str) -> None:
    body, why = ALONE[name]
    found = shared_loops(_kernel(body))
    assert found.shared == ()
    assert found.others and all(re.search(why, row) for row in found.others), found


TEXT = """
declare void @__kmpc_for_static_init_8(ptr, i32, i32, ptr, ptr, ptr, ptr, i64, i64)
define void @f(ptr %is, ptr %low, ptr %upper, ptr %step) {
entry:
  call void @__kmpc_for_static_init_8(ptr null, i32 0, i32 34, ptr %is, ptr %low, ptr %upper, ptr %step, i64 1, i64 1)
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %top = load i64, ptr %upper, align 8
  %c = icmp sle i64 %i, %top
  br i1 %c, label %body, label %done
body:
  br label %inner
inner:
  %k = phi i64 [ 0, %body ], [ %l, %inner ]
  WORK
  %l = add i64 %k, 1
  %d = icmp eq i64 %l, 9
  br i1 %d, label %next, label %inner
next:
  %j = add i64 %i, 1
  br label %head, !llvm.loop !0
done:
  ret void
}
@place = private constant i32 0
declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
define void @region(ptr %thread, ptr %bound, ptr %is, ptr %low, ptr %upper, ptr %step) {
  call void @f(ptr %is, ptr %low, ptr %upper, ptr %step)
  ret void
}
define void @whole(ptr %a, ptr %b, ptr %c, ptr %d) {
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr @place, i32 4, ptr @region, ptr %a, ptr %b, ptr %c, ptr %d)
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.mustprogress"}
"""


def test_the_loop_of_the_upper_bound_is_marked() -> None:
    made = mark_worksharing(TEXT.replace("WORK", ""))
    assert worksharing_loops(made) == ["!0"] and made.count("!llvm.loop ") == 1
    assert verify_module(read(made)) == []
    bare = mark_worksharing(TEXT.replace("WORK", "").replace(", !llvm.loop !0", ""))
    assert len(worksharing_loops(bare)) == 1 and "br label %head, !llvm.loop " in bare


@pytest.mark.parametrize("work", ["fence seq_cst", "call void @__kmpc_barrier(ptr null, i32 0)", "call void @waits()"])
def test_loops_in_which_threads_meet_are_not(work: str) -> None:
    more = ("declare void @__kmpc_barrier(ptr, i32)\ndefine void @waits() {\n"
            "  call void @__kmpc_barrier(ptr null, i32 0)\n  ret void\n}\n")  # fmt: skip
    text = more + TEXT.replace("WORK", work)
    assert mark_worksharing(text).partition("irgrad.loop")[1] == "" and worksharing_loops(text) == []


ORPHAN = """
LINKAGE void part(const double *x, double *y, double *own, long n) {
  #pragma omp for
  for (long i = 0; i < n; i++) { own[i % 3] = sin(x[i]); y[i] = own[i % 3]; }
}
void f(const double *x, double *y, long n) {
  MORE
  #pragma omp parallel
  { double own[3]; part(x, y, own, n); }
}
"""


def test_loops_of_functions_that_regions_call() -> None:
    def marked(linkage: str, more: str) -> int:
        source = "#include <math.h>\n" + ORPHAN.replace("LINKAGE", linkage).replace("MORE", more)
        return len(worksharing_loops(irgrad.load(source, flags=["-fopenmp"]).text))

    assert marked("static", "") == 1
    assert marked("static", "double own[3]; part(x, y, own, n);") == 0  # `own` may be that of a thread


def test_other_modules_stay_as_they_are() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert mark_worksharing(text) is text


LOOPS = """
static void g(double *x) {
#pragma omp atomic
x[0] += 1;
}
static void h(double *x) {
#pragma omp for
for (int i = 0; i < 9; i++) x[i] += i;
}
void f(double *x, long n) {
#pragma omp parallel for
for (long i = 0; i < n; i++) g(x);
#pragma omp parallel for
for (long i = 0; i < n; i++) {
#pragma omp critical
x[0] *= 2;
}
#pragma omp parallel for ordered
for (long i = 0; i < n; i++) {
#pragma omp ordered
x[0] += 1;
}
#pragma omp parallel for
for (long i = 0; i < n; i++) {
#pragma omp task
x[0] += 1;
}
#pragma omp parallel
h(x);
h(x);
#pragma omp parallel
{ int me = omp_get_thread_num();
#pragma omp for
for (long i = 0; i < n; i++) x[me] += 1; }
#pragma omp parallel for
for (long i = 0; i < n; i++) x[i] += 1;
}
"""


def test_loops_on_one_thread() -> None:
    lib = irgrad.load("#include <omp.h>" + LOOPS, flags=["-fopenmp"])
    rows = dict(row.split(": ", 1) for row in loops_on_one_thread(lib.text))
    assert {int(place.split(":")[1]): why.split(":")[0] for place, why in rows.items()} == {
        11: "it has atomic updates", 13: "it has a critical section", 18: "it has an ordered part",
        23: "it has tasks", 7: "its function is called outside of parallel regions as well, with what may be memory of "
        "one thread", 33: "threads of its region run one after the other",
    }  # fmt: skip
    assert all(place.startswith("<string>:") for place in rows)
    with pytest.warns(RuntimeWarning, match=r"a worksharing loop runs on one thread: <string>:18:1: it has an ordered"):
        kernel = lib.kernel("f", "void(inout f64[n] x, i64 n)", threads=2)
    with pytest.warns(RuntimeWarning, match=r"a worksharing loop runs on one thread: <string>:13:1: it has a critical"):
        kernel(np.ones(20))


@pytest.mark.parametrize(("clauses", "opt"), [
    *((f"parallel for schedule({how})", opt) for how in ("runtime", "dynamic, 3") for opt in (None, "O1", "O2", "O3")),
    ("parallel for simd", None), ("parallel for simd schedule(guided)", None), ("simd", "O2"),
])  # fmt: skip
def test_an_array_of_a_thread(clauses: str, opt: str | None) -> None:
    """One array serves all iterations of a thread, although clang calls accesses of such loops independent."""
    text = """#include <math.h>
#include <stdlib.h>
double f(const double *x, double *y, long n) {
  double *u = malloc(n * sizeof *u), q[4], s = 0;
  for (long i = 0; i < n; i++) u[i] = 0.5 * x[i];
  #pragma omp CLAUSES private(q)
  for (long i = 0; i < n; i++) { for (int k = 0; k < 4; k++) q[k] = sin(k + x[i]); y[i] += q[i % 4] * q[3]; }
  for (long i = 0; i < n; i++) s += y[i] * y[i] + u[i];
  free(u);
  return s;
}""".replace("CLAUSES", clauses)
    signature, x = "f64(f64[n] x, out f64[n] y, i64 n)", np.linspace(-1.0, 1.0, 19)
    kernel = irgrad.load(text, flags=["-fopenmp"], opt=opt).kernel("f", signature)
    rows = np.sin(x + np.arange(19) % 4), np.sin(x + 3)
    np.testing.assert_allclose(kernel(x)[1], rows[0] * rows[1], rtol=1e-13)
    slopes = np.cos(x + np.arange(19) % 4) * rows[1] + rows[0] * np.cos(x + 3)
    np.testing.assert_allclose(irgrad.grad(kernel, of="return")(x), 2 * rows[0] * rows[1] * slopes + 0.5, rtol=1e-12)
