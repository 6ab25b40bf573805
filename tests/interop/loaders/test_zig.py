"""Functions of Zig beside the same functions of C: values and derivatives, messages, what is compiled anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.loaders.zig import call_libm, exported, imported

C = r"""
#include <math.h>
double energy(const double *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) { double d = pos[3*i+k] - pos[3*j+k]; r += d * d; }
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
static void slope(const double *y, double *dy) {
    dy[0] = 10 * (y[1] - y[0]); dy[1] = y[0] * (28 - y[2]) - y[1]; dy[2] = y[0] * y[1] - 8.0 / 3 * y[2];
}
void rk4(double *y, double h, long steps) {
    for (long s = 0; s < steps; s++) {
        double k[4][3], t[3];
        slope(y, k[0]);
        for (int m = 1; m < 4; m++) {
            double w = m == 3 ? h : h / 2;
            for (int i = 0; i < 3; i++) t[i] = y[i] + w * k[m - 1][i];
            slope(t, k[m]);
        }
        for (int i = 0; i < 3; i++) y[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}
void diffuse(const double *u, double *v, long n) {
    v[0] = u[0]; v[n - 1] = u[n - 1];
    for (long i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * exp(-u[i]);
}
"""
ZIG = r"""
pub export fn energy(pos: [*]const [3]f64, mass: [*]const f64, n: usize) f64 {
    var e: f64 = 0;
    for (pos[0..n], mass[0..n], 0..) |a, m, i| {
        for (pos[0..i], mass[0..i]) |b, w| {
            var r: f64 = 0.01;
            for (a, b) |x, y| r += (x - y) * (x - y);
            e -= m * w / @sqrt(r);
        }
    }
    return e;
}
fn slope(y: [3]f64) [3]f64 {
    return .{ 10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2] };
}
pub export fn rk4(y: *[3]f64, h: f64, steps: i64) void {
    var s: i64 = 0;
    while (s < steps) : (s += 1) {
        var k: [4][3]f64 = undefined;
        k[0] = slope(y.*);
        for (1..4) |m| {
            const w = if (m == 3) h else h / 2;
            var t: [3]f64 = undefined;
            for (&t, y, k[m - 1]) |*p, a, b| p.* = a + w * b;
            k[m] = slope(t);
        }
        for (y, 0..) |*p, i| p.* += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}
fn inside(u: []const f64, v: []f64) void {
    for (1..u.len - 1) |i| v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * @exp(-u[i]);
}
pub export fn diffuse(u: [*]const f64, v: [*]f64, n: usize) void {
    v[0] = u[0];
    v[n - 1] = u[n - 1];
    inside(u[0..n], v[0..n]);
}
"""
SIGNATURES = {
    "energy": "f64(f64[n,3] pos, f64[n] mass, i64 n)",
    "rk4": "void(inout f64[3] y, f64 h, i64 steps)",
    "diffuse": "void(f64[n] u, out f64[n] v, i64 n)",
}


def _arguments(name: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    return {"energy": (rng.normal(size=(7, 3)), rng.uniform(1, 2, 7)), "rk4": (np.array([1.0, 2, 20]), 0.01, 25),
            "diffuse": (rng.normal(size=12),)}[name]  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_derivatives_are_those_of_c(name: str) -> None:
    sources = ((C, "c"), (ZIG, "zig"))
    kernels = [irgrad.load(text, language=spoken).kernel(name, SIGNATURES[name]) for text, spoken in sources]
    arguments = _arguments(name)
    (value, pullback), (same, other) = (engine.vjp(kernel, *arguments) for kernel in kernels)
    np.testing.assert_allclose(same, value, rtol=1e-13)
    for mine, his in zip(pullback(np.ones_like(value)), other(np.ones_like(value)), strict=True):
        np.testing.assert_allclose(his, mine, rtol=1e-13, atol=1e-13)
    with jax.enable_x64(True):
        by_jax = [jax.jit(jax.jacrev(lambda *a, k=kernel: k(*a)))(*arguments) for kernel in kernels]
    np.testing.assert_allclose(by_jax[1], by_jax[0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("name", "at"), fast(5, [
    *((name, (0.3,)) for name in (
        "acos asin asinh atan atanh cbrt cosh exp2 expm1 gamma_ lgamma_ log10 log1p log2 sinh tan_ tanh").split()),
    ("acosh", (1.7,)), ("atan2", (0.4, -0.6)), ("hypot", (0.4, -0.6)), ("pow_", (1.3, 0.7)), ("copysign", (0.4, -0.6)),
]))  # fmt: skip
@pytest.mark.parametrize("dtype", fast(1, ["f64", "f32"]))
def test_functions_of_the_standard_library(name: str, at: tuple[float, ...], dtype: str) -> None:
    plain = name.rstrip("_")
    arguments = ", ".join("xy"[: len(at)])
    typed = f"{dtype}, {arguments}" if name in ("gamma_", "lgamma_", "pow_") else arguments
    call = f"@tan({arguments})" if plain == "tan" else f"std.math.{plain}({typed})"
    parameters = ", ".join(f"{letter}: {dtype}" for letter in "xy"[: len(at)])
    source = f'const std = @import("std");\nexport fn f({parameters}) {dtype} {{ return {call}; }}\n'
    kernel = irgrad.load(source, language="zig").kernel("f")
    libm = irgrad.load(f"#include <math.h>\ndouble f({', '.join(f'double {v}' for v in 'xy'[: len(at)])}) "
                       f"{{ return {'tgamma' if plain == 'gamma' else plain}({arguments}); }}").kernel("f")  # fmt: skip
    close = 1e-12 if dtype == "f64" else 3e-6
    given = tuple(np.dtype(dtype.replace("f", "float")).type(v) for v in at)
    np.testing.assert_allclose(kernel(*given), libm(*at), rtol=close)
    wrt = list(range(len(at)))
    for mine, his in zip(engine.grad(kernel, argnums=wrt)(*given), engine.grad(libm, argnums=wrt)(*at), strict=True):
        np.testing.assert_allclose(mine, his, rtol=close)


def test_structs_and_statuses() -> None:
    source = """
const Spring = extern struct { at: [2]f64, stiffness: f64, kind: i32 };
export fn stored(springs: [*]const Spring, n: usize, out: *f64) i32 {
    out.* = 0;
    for (springs[0..n]) |s| {
        if (s.stiffness < 0) return 2;
        for (s.at) |x| out.* += 0.5 * s.stiffness * x * x;
    }
    return 0;
}
"""
    signature = ("struct spring { f64[2] at; f64 stiffness; i32 kind; }; "
                 "status i32(spring[n] springs, i64 n, out f64 sum)")  # fmt: skip
    kernel = irgrad.load(source, language="zig").kernel("stored", signature, errors={2: "a spring that pushes"})
    springs = {"at": np.array([[1.0, 2], [3, 4]]), "stiffness": np.array([2.0, 3]), "kind": np.zeros(2, np.int32)}
    gradient = engine.grad(kernel)(springs)
    np.testing.assert_allclose(gradient["at"], springs["at"] * springs["stiffness"][:, None])
    np.testing.assert_allclose(gradient["stiffness"], [2.5, 12.5])
    with pytest.raises(irgrad.KernelError, match="a spring that pushes"):
        kernel({**springs, "stiffness": np.array([2.0, -3])})


def test_what_zig_says_has_the_name_and_the_line_of_the_source(tmp_path: Path) -> None:
    said = r"(?s)`<string>` does not compile.*<string>:2:\d+: error: use of undeclared"
    with pytest.raises(irgrad.CompileError, match=said):
        irgrad.load("export fn f(x: f64) f64 {\n return y * x; }\n", language="zig")
    file = tmp_path / "broken.zig"
    file.write_text("export fn f(x: f64) f64 { return x }\n")
    with pytest.raises(irgrad.CompileError, match=r"broken\.zig:1:\d+: error: expected"):
        irgrad.load(file)
    with pytest.raises(irgrad.LoadError, match=r"(?s)Zig has no macros.*N.*declare constants"):
        irgrad.load("export fn f(x: f64) f64 { return x; }\n", language="zig", define={"N": 3})


def test_refusals_name_lines_of_the_source() -> None:
    source = "export fn f(x: f64) f64 {\n    const bits: u64 = @bitCast(x);\n    return @bitCast(bits +% 4096);\n}\n"
    with pytest.raises(irgrad.Unsupported, match=r"(?s)bits of an active float.*<string>:3"):
        engine.grad(irgrad.load(source, language="zig").kernel("f"))(1.0)


def test_imports_that_change_are_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "constants.zig").write_text("pub const k: f64 = 3.0;\n")
    (tmp_path / "parts.zig").write_text('pub const k = @import("constants.zig").k;\n')
    source = tmp_path / "model.zig"
    source.write_text('const parts = @import("parts.zig");\nexport fn f(x: f64) f64 { return parts.k * x; }\n')
    assert {row.name for row in imported(source)} == {"parts.zig", "constants.zig"}
    assert irgrad.load(source).kernel("f")(2.0) == 6
    assert irgrad.load(source).kernel("f")(2.0) == 6
    (tmp_path / "constants.zig").write_text("pub const k: f64 = 5.0;\n")
    assert irgrad.load(source).kernel("f")(2.0) == 10


@pytest.mark.parametrize("opt", ["O0", "O2"])
def test_levels(opt: str) -> None:
    kernel = irgrad.load(ZIG, language="zig", opt=opt).kernel("energy", SIGNATURES["energy"])
    assert engine.check(kernel, *_arguments("energy")).ok


def test_functions_of_others_keep_their_bodies() -> None:
    """A file of the user may be called math.zig: the debug information tells."""
    text = 'define internal fastcc double @math.tanh.tanh__func_0(double %0) !dbg !1 {\n  ret double %0\n}\n'
    nodes = '!1 = distinct !DISubprogram(name: "tanh", file: !2)\n!2 = !DIFile(filename: "{}", directory: "/a/lib")\n'
    assert "call double @tanh" not in call_libm(text + nodes.format("math.zig"))
    made = call_libm(text + nodes.format("std/math/tanh.zig"))
    assert "%2 = call double @tanh(double %0)" in made and "declare double @tanh(double)" in made
    short = text.replace("(double %0)", "(float %0)").replace("ret double %0", "ret double 0.0")
    assert "call" not in call_libm(short + nodes.format("std/math/tanh.zig"))


def test_exports_have_their_own_names() -> None:
    text = ("@f = alias double (double), ptr @m.f\n@m.fs = internal global i32 0\n"
            "define internal double @m.f(double %0) {\n  ret double %0\n}\n")  # fmt: skip
    made = exported(text)
    assert "define double @f(double %0)" in made and "alias" not in made and "@m.fs" in made
