"""The runtime of OpenMP that is linked into modules."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import irgrad as ig
from irgrad.interop.cli import main
from irgrad.interop.loaders.openmp import complete

ASKED = r"""
#include <omp.h>
int f(void) {
  int bad = 0, chunk;
  omp_sched_t kind;
  bad |= omp_get_thread_num() != 0 || omp_get_num_threads() != 1 || omp_in_parallel() || omp_get_level() != 0;
  omp_set_num_threads(4);
  bad |= (omp_get_max_threads() != 4) << 1;
  omp_set_schedule(omp_sched_dynamic, 7);
  omp_get_schedule(&kind, &chunk);
  bad |= (kind != omp_sched_dynamic || chunk != 7) << 2;
#pragma omp parallel
  bad |= (omp_get_num_threads() != 4 || omp_get_level() != 1 || omp_get_team_size(1) != 4) << 3;
  bad |= (omp_get_level() != 0 || omp_get_ancestor_thread_num(0) != 0 || omp_get_team_size(3) != -1) << 4;
  double *a = omp_alloc(8 * sizeof *a, omp_default_mem_alloc);
  a[7] = 1;
  omp_free(a, omp_default_mem_alloc);
  omp_lock_t lock;
  omp_init_lock(&lock);
  bad |= (!omp_test_lock(&lock) || omp_test_lock(&lock)) << 5;
  omp_nest_lock_t nest;
  omp_init_nest_lock(&nest);
  bad |= (omp_test_nest_lock(&nest) != 1 || omp_test_nest_lock(&nest) != 2) << 6;
  return bad;
}
"""
SUM = """
double f(const double *x, long n) {
  double s = 0;
#pragma omp parallel for reduction(+:s)
  for (long i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
"""


def test_functions_of_the_header_answer_as_the_execution_is() -> None:
    library = ig.load(ASKED, flags=["-fopenmp"])
    assert library.kernel("f", "i32()")() == 0
    assert "@omp_" not in "".join(row for row in library.text.splitlines() if row.startswith("declare"))


def test_the_header_is_there_for_cpp_and_without_the_option() -> None:
    cpp = ig.load('#include <omp.h>\nextern "C" int f() { return omp_get_max_threads(); }', language="c++")
    assert cpp.kernel("f", "i32()")() == 1
    assert ig.load(ASKED, flags=["-Wno-unknown-pragmas"], define={"NONE": 1}).functions() == ("f",)


def test_ir_of_another_compiler_gets_the_runtime(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(SUM)
    assert main(["cc", "-fopenmp", "-S", "-emit-llvm", str(tmp_path / "f.c"), "-o", str(tmp_path / "f.ll")]) == 0
    x = np.linspace(1, 2, 7)
    kernel = ig.load(tmp_path / "f.ll").kernel("f", "f64(f64[n] x, i64 n)")
    np.testing.assert_allclose(ig.grad(kernel)(x), 2 * x)
    plain = "define i32 @f() {\n  ret i32 1\n}\n"
    assert complete(plain) == plain


LANES = """
double f(const double *x, double *y, long n) {
    double s = 0; OUTSIDE
    #pragma omp parallel for simd PRIVATE
    for (long i = 0; i < n; i++) {
        INSIDE
        for (int k = 0; k < 4; k++) q[k] = (k + 1) * x[i] * x[i] + k;
        y[i] += q[i % 4] * q[3];
    }
    for (long i = 0; i < n; i++) s += y[i] * y[i];
    return s;
}
"""


@pytest.mark.parametrize("opt", [None, "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("words", [("double q[4];", "private(q)", ""), ("", "", "double q[4];")])
def test_vectors_do_not_share_an_array(words: tuple[str, str, str], opt: str | None) -> None:
    """clang 22 makes vectors of this loop whose lanes share the array: native programs are wrong from -O2 on."""
    source = LANES
    for word, text in zip(("OUTSIDE", "PRIVATE", "INSIDE"), words, strict=True):
        source = source.replace(word, text)
    kernel = ig.load(source, flags=["-fopenmp"], opt=opt).kernel("f", "f64(f64[n] x, inout f64[n] y, i64 n)")
    x, rows, n = np.linspace(0.1, 2, 37), np.arange(37), np.arange(4)

    def value(x: Any) -> Any:
        q = (n + 1) * x[:, None] ** 2 + n
        return ((q[rows, rows % 4] * q[:, 3]) ** 2).sum()

    found, _ = kernel(x, np.zeros(37))
    assert found == pytest.approx(value(x), rel=1e-13)
    slopes = ig.grad(kernel, wrt="x", of="return")(x, np.zeros(37))
    wanted = [value(x + 1e-200j * row).imag / 1e-200 for row in np.eye(37)]
    np.testing.assert_allclose(np.ravel(slopes), wanted, rtol=1e-12)


def test_under_jax() -> None:
    kernel = ig.load(SUM, flags=["-fopenmp"]).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.linspace(1, 2, 6)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(jax.grad(kernel))(x), 2 * x)
        np.testing.assert_allclose(jax.vmap(jax.grad(kernel))(np.stack([x, 3 * x])), [2 * x, 6 * x])


def test_nothing_of_libomp_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(SUM)
    code = (f"import irgrad as ig, numpy as np\nk = ig.load({str(tmp_path / 'f.c')!r}, flags=['-fopenmp'])"
            ".kernel('f', 'f64(f64[n] x, i64 n)')\nig.grad(k)(np.ones(3))\n"
            "assert not [r for r in open('/proc/self/maps') if 'omp' in r.rpartition('/')[2]]")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
    assert main(["cc", "-fopenmp", "-shared", "-fPIC", str(tmp_path / "f.c"), "-o", str(tmp_path / "f.so")]) == 0
    library = ctypes.CDLL(str(tmp_path / "f.so"))
    library.f.restype = ctypes.c_double
    assert library.f((ctypes.c_double * 2)(1.0, 2.0), ctypes.c_long(2)) == 5.0


def test_settings_are_those_of_the_program(tmp_path: Path) -> None:
    """Each object has its own functions, and all share what was set."""
    (tmp_path / "a.c").write_text("#include <omp.h>\nint asked(void);\nint main(void) {\n"
                                  "  omp_set_num_threads(5);\n  return asked();\n}\n")  # fmt: skip
    (tmp_path / "b.c").write_text("#include <omp.h>\nint asked(void) { return omp_get_max_threads(); }\n")
    for name in ("a", "b"):
        assert main(["cc", "-c", "-fopenmp", str(tmp_path / f"{name}.c"), "-o", str(tmp_path / f"{name}.o")]) == 0
    objects = [str(tmp_path / f"{name}.o") for name in ("a", "b")]
    assert main(["cc", "-fopenmp", *objects, "-o", str(tmp_path / "prog")]) == 0
    assert subprocess.run([tmp_path / "prog"], check=False).returncode == 5


def test_a_construct_that_is_not_supported_is_named_with_its_line() -> None:
    source = """#include <stdint.h>
typedef enum omp_event_handle_t { omp_event_handle_t_max = UINTPTR_MAX } omp_event_handle_t;
double f(double x) {
  omp_event_handle_t e;
#pragma omp task detach(e)
  x *= 2;
  return x;
}
"""
    with pytest.raises(ig.LoadError, match=r"__kmpc_task_allow_completion_event.*not supported(.|\n)*<string>:5"):
        ig.load(source, flags=["-fopenmp"])


_LAST = """
double f(const double *x, double *y, int n) {
  double last = 0;
  #pragma omp parallel for SCHEDULE lastprivate(conditional: last)
  for (int i = 0; i < n; i++) {
    if (x[i] < 0.9) last = x[i] * x[i] * x[0];
    y[i] = x[i] * x[i];
  }
  return last;
}
"""


@pytest.mark.parametrize("schedule", ["", "schedule(dynamic, 3)"])
def test_the_last_that_held_is_one_of_this_call(schedule: str) -> None:
    """A later iteration that assigned in an earlier call says nothing of this one."""
    lib = ig.load(_LAST.replace("SCHEDULE", schedule), flags=["-fopenmp"])
    kernel = lib.kernel("f", "f64(f64[n] x, out f64[n] y, i32 n)")
    late, early = np.array([1.5, 0.8, 0.7, 0.5]), np.array([1.5, 0.6, 0.4, 1.1])
    for x, place in ((late, 3), (early, 2), (late, 3)):
        assert kernel(x)[0] == pytest.approx(x[place] ** 2 * x[0], rel=1e-14)
        gradient = ig.grad(kernel, of="return")(x)
        wanted = np.zeros(4)
        wanted[place], wanted[0] = 2 * x[place] * x[0], x[place] ** 2
        np.testing.assert_allclose(gradient, wanted, rtol=1e-13)
