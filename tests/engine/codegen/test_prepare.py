"""prepare: canonical, optimised, still scalar modules that keep their source lines."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest
from counting_work import lines_run

from irgrad import engine
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.prepare import prepare, strip_target
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRSyntaxError, LoadError

SUM = """
double sum(const double *x, int n, double *o) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) return -1;
    o[i] = x[i] * 2;
    s += o[i];
  }
  return s;
}
static double helper(double x) { return x * x; }
double other(double x) { return helper(x); }
"""


def _body(text: str, name: str) -> str:
    return re.search(rf"define [^@\n]*@{name}\(.*?\n}}", text, re.S)[0]  # type: ignore[index]


def _blocks(body: str) -> dict[str, list[str]]:
    """label -> lines."""
    blocks: dict[str, list[str]] = {}
    label = ""
    for line in body.splitlines()[1:-1]:
        if found := re.match(r"([\w.$-]+):", line):
            label = found[1]
            blocks[label] = []
        elif line.strip():
            blocks.setdefault(label, []).append(line.strip())
    return blocks


def test_only_roots_stay_and_helpers_are_inlined() -> None:
    text = prepare(load(SUM).text, ["other"])
    assert _body(text, "other")
    assert "@sum" not in text
    assert "@helper" not in text


def test_loops_and_exits_are_canonical() -> None:
    body = _body(prepare(load(SUM).text, ["sum"]), "sum")
    assert body.count("\n  ret ") == 1, "one return"
    blocks = _blocks(body)
    targets = {label: re.findall(r"label %([\w.$-]+)", lines[-1]) for label, lines in blocks.items()}
    order = list(blocks)
    back_edges = [(a, b) for a in order for b in targets[a] if order.index(b) <= order.index(a)]
    assert len(back_edges) == 1, "one latch"
    (latch, header) = back_edges[0]
    entering = [label for label in order if header in targets[label] and label != latch]
    assert len(entering) == 1, "one way in: a preheader"
    assert targets[entering[0]] == [header]


def test_code_stays_scalar_and_is_not_unrolled_at_run_time() -> None:
    source = "void f(const double *restrict x, double *restrict o, int n) {\n"
    source += "  for (int i = 0; i < n; i++) o[i] = x[i] * x[i];\n}"
    text = prepare(load(source).text, ["f"])
    assert " x double>" not in text
    assert text.count("fmul") == 1


def test_short_constant_loops_are_unrolled() -> None:
    source = "double f(const double *x) {\n  double s = 0;\n  for (int i = 0; i < 3; i++) s += x[i] * x[i];\n"
    source += "  return s;\n}"
    body = _body(prepare(load(source).text, ["f"]), "f")
    assert "br " not in body


def test_source_lines_are_kept() -> None:
    text = prepare(load(SUM).text, ["sum"])
    (location,) = set(re.findall(r"fmul double.*!dbg (!\d+)", text))
    assert re.search(rf"^{location} = !DILocation\(line: 6,", text, re.M)


def test_functions_with_a_rule_stay_out_of_line() -> None:
    source = "double mine(double x) { return x * x; }\ndouble f(double x) { return mine(x) + mine(2.0); }"
    inlined = prepare(load(source).text, ["f"])
    assert "@mine" not in inlined
    kept = prepare(load(source).text, ["f"], keep=lambda name: name == "mine")
    assert _body(kept, "f").count("@mine(") == 2
    assert re.search(r"define [^@]*double @mine\(double [^,]*\)", kept), "its prototype is unchanged"


def test_aliases_are_internal() -> None:
    text = """
@two = unnamed_addr alias double (double), ptr @one
@"t h" = weak_odr hidden alias double (double), ptr @one
define double @one(double %x) {
  ret double %x
}
define double @f(double %x) {
  %y = call double @two(double %x)
  %z = call double @"t h"(double %y)
  ret double %z
}
"""
    assert "alias" not in prepare(text, ["f"])


def test_unoptimised_input_is_optimised() -> None:
    text = load(SUM, opt="O0").text
    assert "alloca" in text
    for attributes in ("", "noinline optnone "):
        body = _body(prepare(text.replace("attributes #0 = { ", f"attributes #0 = {{ {attributes}"), ["sum"]), "sum")
        assert "alloca" not in body


def test_libm_calls_that_write_errno_become_intrinsics() -> None:
    source = "#include <math.h>\ndouble f(double x, float y) { return sin(x) * pow(x, 2.5) + expf(y); }"
    library = load(source, flags=["-fmath-errno"])
    assert "@sin(" in library.text
    text = prepare(library.text, ["f"])
    for name in ("llvm.sin.f64", "llvm.pow.f64", "llvm.exp.f32"):
        assert f"@{name}(" in _body(text, "f")
    parse(text)


def test_minimum_and_maximum_of_c23_become_intrinsics() -> None:
    text = """declare double @fmaximum(double, double)
declare double @fminimum_num(double, double)
define double @f(double %x, double %y) {
  %a = call double @fmaximum(double %x, double %y)
  %b = call double @fminimum_num(double %a, double %y)
  ret double %b
}
"""
    body = _body(prepare(text, ["f"]), "f")
    assert "@llvm.maximum.f64(" in body and "@llvm.minimumnum.f64(" in body


def test_a_function_named_like_libm_with_another_type_is_left_alone() -> None:
    text = "declare i32 @sin(i32)\ndefine i32 @f(i32 %x) {\n  %r = call i32 @sin(i32 %x)\n  ret i32 %r\n}\n"
    assert "call i32 @sin(" in prepare(text, ["f"])


def test_cpu_attributes_are_dropped() -> None:
    text = 'define void @f() #0 {\n  ret void\n}\nattributes #0 = { noinline optnone "target-cpu"="znver5" '
    text += '"frame-pointer"="all" }\n'
    stripped = strip_target(text)
    assert "znver5" not in stripped
    assert "optnone" not in stripped
    assert "noinline" not in stripped
    parse(stripped)
    assert " noinline " in strip_target("attributes #0 = { noinline nounwind }")


CXX = """
#include <vector>
extern "C" double f(const double *x, int n) {
  std::vector<double> v(x, x + n);
  v.push_back(1.5);
  double s = 0;
  for (double a : v) s += a * a;
  return s;
}
extern "C" double careful(double x) {
  try {
    if (x < 0) throw 1;
    return f(&x, 1);
  } catch (int) {
    return -1;
  }
}
"""


def test_cleanups_of_cxx_code_are_dropped_but_not_its_handlers() -> None:
    library = load(CXX, language="c++")
    text = prepare(library.text, ["f"])
    assert "invoke" in library.text
    assert " invoke " not in text
    assert "landingpad" not in text
    assert "personality" not in text
    x = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
    function = compile_module(text, ["f"]).function("f", ctypes.c_double, ctypes.c_void_p, ctypes.c_int)
    assert function(ctypes.addressof(x), 3) == 16.25
    text = prepare(library.text, ["careful"])
    assert "landingpad" in text
    function = compile_module(text, ["careful"]).function("careful", ctypes.c_double, ctypes.c_double)
    assert [function(-1.0), function(2.0)] == [-1.0, 6.25]


def test_errors() -> None:
    with pytest.raises(LoadError, match="`nothing` has no body"):
        prepare(load(SUM).text, ["nothing"])
    with pytest.raises(IRSyntaxError):
        prepare("define void @f( {", ["f"])


def test_it_is_deterministic() -> None:
    library = load(SUM)
    assert prepare(library.text, ["sum"]) == prepare(library.text, ["sum"])


def test_no_python_runs_for_each_instruction() -> None:
    def preparing(count: int) -> Callable[[], object]:
        terms = "\n".join(f"  s += x[{i}] * x[{i + 1}] + (x[{i}] > {i} ? x[{i + 2}] : s * 0.5);" for i in range(count))
        text = load(f"double f(const double *x, double s) {{\n{terms}\n  return s;\n}}").text
        assert _body(prepare(text, ["f"]), "f").count("\n") > 3 * count
        return lambda: prepare(text, ["f"])

    assert lines_run(preparing(160)) <= 1.1 * lines_run(preparing(40))



def test_functions_with_a_rule_are_kept_although_always_inline() -> None:
    source = """
__attribute__((always_inline)) static inline double mine(double x) { return x * x; }
__attribute__((always_inline)) static inline double other(double x) { return x + 1; }
double f(double x) { return mine(x) + other(x); }
"""
    kept = prepare(load(source).text, ["f"], keep=lambda name: name == "mine")
    assert _body(kept, "f").count("@mine(") == 1
    assert "@other" not in kept


def test_without_optimising_first_only_the_form_changes() -> None:
    text = prepare(load(SUM).text, ["sum", "other"], preopt=False)
    assert "call double @helper(" in text, "helpers are not inlined"
    assert "alloca double" in text, "variables stay in memory"
    assert text.count("ret double") == 3, "every function has one return"


MATRICES = """
typedef double m2 __attribute__((matrix_type(2, 2)));
double f(const double *x) {
  m2 a, b;
  for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) a[i][j] = x[2 * i + j];
  b = a * __builtin_matrix_transpose(a) * a;
  return b[0][1];
}
"""


@pytest.mark.parametrize(("opt", "preopt"), [(None, True), (None, False), ("O0", True), ("O2", True)])
def test_matrices_are_lowered(opt: str | None, preopt: bool) -> None:
    """Code generation ends the process over matrix intrinsics."""
    kernel = load(MATRICES, flags=["-fenable-matrix"], opt=opt, preopt=preopt).kernel("f", "f64(f64[4] x)")
    x = np.array([1.0, 2.0, 3.0, 5.0])
    a = x.reshape(2, 2)
    assert kernel(x) == (a @ a.T @ a)[0, 1]
    want = [(kernel(x + 1e-6 * e) - kernel(x - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(engine.grad(kernel)(x), want, rtol=1e-7)
