"""What the loader decides: ifuncs, weak symbols that nothing defines, the CPU's features."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen.llvm import host_features, parse
from irgrad.engine.ir.text.load_time import FEATURE_BITS, call_resolvers, drop_weak, for_cpu, weak_symbols

SIGNATURE = "f64(f64[n] x, i64 n)"
X = np.array([0.5, -0.3, 1.2, 0.7])
PICKED = """
static double plain(double x) { return x * x; }
static double wide(double x) { return x * x * x; }
typedef double (*F)(double);
static F pick(void) { __builtin_cpu_init(); return __builtin_cpu_supports("%s") ? wide : plain; }
double power(double x) __attribute__((ifunc("pick")));
double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += power(x[i]) * (i + 1); return s; }
"""
BASELINE = ("64bit", "cmov", "mmx", "sse", "sse2")
WEIGHTS = np.arange(1.0, 5.0)


@pytest.mark.parametrize("level", ["O0", "O2", None])
@pytest.mark.parametrize("cpu", ["native", "baseline"])
@pytest.mark.parametrize("feature", ["sse2", "avx2", "avx512f", "x86-64-v3", "x86-64-v4", "fma4"])
def test_an_ifunc_is_what_the_loader_would_choose(feature: str, cpu: str, level: str | None) -> None:
    has = (cpu == "native" and feature in _supported()) or feature == "sse2"
    kernel = irgrad.load(PICKED % feature, cpu=cpu, opt=level).kernel("f", SIGNATURE)
    assert kernel(X) == pytest.approx((X ** (3 if has else 2) * WEIGHTS).sum())
    want = (3 * X**2 if has else 2 * X) * WEIGHTS
    np.testing.assert_allclose(irgrad.grad(kernel)(X), want)
    assert irgrad.jvp(kernel, (X,), (X,))[1] == pytest.approx(want @ X)


def _supported() -> set[str]:
    words = {word[1:] for word in host_features().split(",") if word[0] == "+"}
    levels = {"x86-64-v3": {"avx2", "bmi2", "fma", "movbe", "f16c"}, "x86-64-v4": {"avx512f", "avx512vl", "avx512bw"}}
    return words | {level for level, needed in levels.items() if needed <= words}


def test_the_bits_are_those_that_the_compiler_asks_for() -> None:
    """The features of each of seven CPUs are those whose number has one bit set: so each is known by its answers."""
    names = [name for name in FEATURE_BITS if name not in BASELINE and not name.startswith("x86-64")]
    rows = "".join(f'  y[{i}] = __builtin_cpu_supports("{name}") != 0;\n' for i, name in enumerate(names))
    text = irgrad.load(f"void f(double *y) {{\n{rows}}}\n").text
    text = re.sub(r"^(@__cpu_\w+ = )internal constant (\{[^}]*\}|\[[^]]*\]) [^\n]*$", r"\1external global \2", text,
                  flags=re.M)  # fmt: skip
    for bit in range(len(names).bit_length()):
        want = [float(number >> bit & 1) for number in range(len(names))]
        has = [name for name, there in zip(names, want, strict=True) if there]
        known = for_cpu(text, lambda has=has: has)
        assert "external global" not in known
        library = irgrad.load(known, language="ll")
        assert list(library.kernel("f", f"void(out f64[{len(names)}] y)")()) == want


CLONES = [
    ("c", '__attribute__((target_clones("avx2", "default"))) double dot(const double *a, const double *b, long n) '
          "{ double s = 0; for (long i = 0; i < n; i++) s += a[i] * b[i]; return s; }\n"
          "double f(const double *x, long n) { return dot(x, x, n) * x[0]; }"),
    ("c++", '__attribute__((target("default"))) static double g(double x) { return x * x; }\n'
            '__attribute__((target("avx2"))) static double g(double x) { return x * x + 0; }\n'
            'extern "C" double f(const double *x, long n) '
            "{ double s = 0; for (long i = 0; i < n; i++) s += g(x[i]); return s * x[0]; }"),
    ("c", "struct v { double a, b, c; long n; };\nstatic double big(struct v s) { return s.a * s.b * s.c; }\n"
          "static double small(struct v s) { return s.a; }\ntypedef double (*F)(struct v);\n"
          'static F pick(void) { return __builtin_cpu_supports("sse2") ? big : small; }\n'
          'double g(struct v s) __attribute__((ifunc("pick")));\n'
          "double f(const double *x, long n) { struct v s = {x[0], x[1], x[2], n}; return g(s) + x[3]; }"),
]


@pytest.mark.parametrize("level", ["O0", "O2", None])
@pytest.mark.parametrize(("language", "source"), CLONES, ids=["clones", "versions", "by value"])
def test_clones_and_versions(language: str, source: str, level: str | None) -> None:
    kernel = irgrad.load(source, language=language, opt=level).kernel("f", SIGNATURE)
    assert irgrad.check(kernel, X).ok


def test_a_resolver_that_knows_more_than_the_cpu_is_asked() -> None:
    text = ("declare ptr @choose()\ndefine double @one(double inreg %x) {\n  ret double %x\n}\n"
            "define internal ptr @r() {\n  %p = select i1 true, ptr @one, ptr null\n  ret ptr %p\n}\n"
            "@i = internal ifunc double (double), ptr @r\n@v = ifunc void (ptr, ...), ptr @choose\n")
    made = call_resolvers(text)
    assert "define internal double @i(double inreg %a0)" in made
    assert "musttail call void (ptr, ...) %f(ptr  %a0, ...)" in made
    parse(made).close()
    assert call_resolvers("define void @f() {\n ret void\n}\n").startswith("define void @f")


def test_the_make_of_the_cpu_is_not_told() -> None:
    text = ("@__cpu_model = external dso_local global { i32, i32, i32, [1 x i32] }\n"
            "define i32 @f() {\n  %1 = load i32, ptr @__cpu_model, align 4\n  ret i32 %1\n}\n")
    assert for_cpu(text, list) is text


WEAK = """
extern double hook(double) __attribute__((weak));
extern double scale __attribute__((weak));
extern double cos(double) __attribute__((weak));
const char *name = "hook@hook";
double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) { double v = x[i];
  if (hook) v = hook(v); if (&scale) v *= scale; if (cos) v = cos(v); s += v * v; } return s; }
"""


@pytest.mark.parametrize("level", ["O0", "O2", None])
def test_weak_symbols_that_nothing_defines(level: str | None, tmp_path: Path) -> None:
    kernel = irgrad.load(WEAK, opt=level).kernel("f", SIGNATURE)
    np.testing.assert_allclose(irgrad.grad(kernel)(X), -2 * np.cos(X) * np.sin(X))
    more = tmp_path / "more.c"
    more.write_text("double scale = 3; double hook(double x) { return x * x; }")
    first = tmp_path / "first.c"
    first.write_text(WEAK)
    kernel = irgrad.load([first, more], opt=level).kernel("f", SIGNATURE)
    np.testing.assert_allclose(irgrad.grad(kernel)(X), -np.sin(6 * X**2) * 6 * X)


def test_names_in_strings_stay() -> None:
    text = ('@s = constant [6 x i8] c"a@hook"\n@"a b" = extern_weak global double\n'
            "declare extern_weak double @hook(double)\n"
            'define double @f() {\n  %1 = load double, ptr @"a b"\n  %2 = call double @hook(double %1)\n'
            "  ret double %2\n}\n")
    assert weak_symbols(text) == ["a b", "hook"]
    made = drop_weak(text, ["hook", "a b"])
    assert 'c"a@hook"' in made and "load double, ptr null" in made and "call double null(double %1)" in made
    parse(made).close()
    assert drop_weak(text, []) is text


def test_the_make_of_the_cpu() -> None:
    source = """
void is(double *y) {
  __builtin_cpu_init();
  y[0] = __builtin_cpu_is("intel"); y[1] = __builtin_cpu_is("amd"); y[2] = __builtin_cpu_is("znver3");
  y[3] = __builtin_cpu_is("haswell");
}
double f(double x) { return __builtin_cpu_is("amd") ? x * x : x * x * x; }
"""
    text = irgrad.load(source).text
    if "@__cpu_model = external" in text:
        pytest.skip("libgcc's library is not there")
    said = list(irgrad.load(source).kernel("is", "void(out f64[4] y)")())
    kind = re.search(r"^vendor_id\s*: (\S+)", Path("/proc/cpuinfo").read_text(), re.M)
    if kind is not None:
        assert said[:2] == [kind[1] == "GenuineIntel", kind[1] == "AuthenticAMD"]
    assert irgrad.grad(irgrad.load(source).kernel("f", "f64(f64 x)"))(3.0) == (6.0 if said[1] else 27.0)
    model = re.search(r"^@__cpu_model = [^\n]*\n", text, re.M)
    assert model is not None
    asked = text.replace(model[0], "@__cpu_model = external global { i32, i32, i32, [1 x i32] }\n")
    assert for_cpu(asked, list) is asked
    for vendor, want in ((1, [1.0, 0.0]), (2, [0.0, 1.0])):
        known = for_cpu(asked, list, lambda vendor=vendor: (vendor, 0, 0))
        assert list(irgrad.load(known, language="ll").kernel("is", "void(out f64[4] y)")())[:2] == want
