"""Functions of Zig: the standard library, structs, statuses, messages, what is compiled anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import fast

import irgrad
from benchmarks import languages
from irgrad import engine
from irgrad.interop.loaders.zig import call_libm, exported, imported, swap_whole


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
    kernel = languages.kernel("Zig", "energy", opt=opt)
    assert engine.check(kernel, *languages.arguments("energy")).ok


def test_functions_of_others_keep_their_bodies() -> None:
    """A file of the user may be called math.zig: the debug information tells."""
    text = 'define internal fastcc double @math.tanh.tanh__func_0(double %0) !dbg !1 {\n  ret double %0\n}\n'
    nodes = '!1 = distinct !DISubprogram(name: "tanh", file: !2)\n!2 = !DIFile(filename: "{}", directory: "/a/lib")\n'
    assert "call double @tanh" not in call_libm(text + nodes.format("math.zig"))
    made = call_libm(text + nodes.format("std/math/tanh.zig"))
    assert "%2 = call double @tanh(double %0)" in made and "declare double @tanh(double)" in made
    short = text.replace("(double %0)", "(float %0)").replace("ret double %0", "ret double 0.0")
    assert "call" not in call_libm(short + nodes.format("std/math/tanh.zig"))


def test_swaps_are_of_whole_values() -> None:
    text = ("define internal fastcc void @mem.swap__func_0(ptr noalias %0, ptr noalias %1) #0 !dbg !1 {\nEntry:\n"
            "  %2 = insertvalue { ptr, i64 } poison, ptr %0, 0\n  %3 = insertvalue { ptr, i64 } %2, i64 24, 1\n"
            '  ret void\n}\n!1 = distinct !DISubprogram(name: "swap", file: !2)\n'
            '!2 = !DIFile(filename: "std/{}", directory: "/a/lib")\n')  # fmt: skip
    made = swap_whole(text.replace("{}", "mem.zig"))
    assert "alloca [24 x i8]" in made and made.count("call void @llvm.memcpy") == 3
    assert swap_whole(text.replace("{}", "other.zig")) == text.replace("{}", "other.zig")


def test_exports_have_their_own_names() -> None:
    text = ("@f = alias double (double), ptr @m.f\n@m.fs = internal global i32 0\n"
            "define internal double @m.f(double %0) {\n  ret double %0\n}\n")  # fmt: skip
    made = exported(text)
    assert "define double @f(double %0)" in made and "alias" not in made and "@m.fs" in made


def test_a_function_under_two_names_is_found_by_both() -> None:
    source = """
fn cube(x: f64, p: *const [2]f64) callconv(.c) f64 { return p[0] * x * x * x + p[1]; }
comptime { @export(&cube, .{ .name = "first" }); @export(&cube, .{ .name = "second" }); }
"""
    lib = irgrad.load(source, language="zig")
    assert {"first", "second"} <= set(lib.functions())
    for name in ("first", "second"):
        kernel = lib.kernel(name, "f64(f64 x, f64[2] p)")
        assert engine.grad(kernel, wrt="x")(2.0, np.array([3.0, 1])) == 36


RNG = np.random.default_rng(0)
A = RNG.uniform(0.1, 0.4, 6)
PROGRAMS: list[tuple[str, str | None, tuple[Any, ...]]] = [
    ("kepler", None, (1.2, 0.4)),
    ("grown", "f64(f64[n] x, i64 n)", (RNG.normal(size=9),)),
    ("tridiagonal", "status i32(f64[n] a, f64[n] b, f64[n] c, f64[n] d, out f64[n] x, i64 n)",
     (A, RNG.uniform(2, 3, 6), A[::-1].copy(), RNG.normal(size=6))),
    ("quadrature", "f64(f64[k] p, i64 k, f64 b, i64 steps)", (np.array([1.3, 0.7]), 1.5, 20)),
    ("equation_of_state", None, (2.0, 1.4, 0.3, 0.2)),
    ("polynomial", "f64(f64[n] re, f64[n] im, i64 n, f64 x, f64 y)",
     (RNG.normal(size=5), RNG.normal(size=5), 0.6, 0.3)),
    ("vectors", "f64(f64[n] x, i64 n)", (RNG.uniform(0.5, 2, 11),)),
    ("interpolated", "f64(f64[n] x, f64[n] y, i64 n, f64 at)", (np.arange(5.0), RNG.normal(size=5), 2.3)),
    ("payoff", "f64(f64[n] z, i64 n, f64 spot, f64 vol, f64 strike, i8 smooth)",
     (RNG.normal(size=9), 1.0, 0.3, 1.05, np.int8(1))),
    ("payoff", "f64(f64[n] z, i64 n, f64 spot, f64 vol, f64 strike, i8 smooth)",
     (RNG.normal(size=9), 1.0, 0.3, 1.05, np.int8(0))),
    ("series", None, (0.7,)),
    ("matmul", "void(f64[n,n] a, f64[n,n] b, out f64[n,n] c, i64 n)",
     (RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3)))),
    ("moving", "void(f64[n] x, out f64[n] y, i64 n, i64 width)", (RNG.normal(size=8), 3)),
    ("single", "f32(f32[n] x, i64 n)", (RNG.normal(size=4).astype(np.float32),)),
    ("pendulum", None, (1.1, 2.0, 0.05, np.uint32(30))),
]  # fmt: skip


IDIOMS: list[tuple[str, str | None, tuple[Any, ...]]] = [
    ("solve", "status i32(f64[n,n] a, f64[n] b, out f64[n] x, i64 n)", (RNG.normal(size=(5, 5)), RNG.normal(size=5))),
    ("spline", "status i32(f64[n] x, f64[n] y, i64 n, f64 t, out f64 value)",
     (np.linspace(0, 4, 6), RNG.normal(size=6), 2.3)),
    ("lorenz", "f64(f64[3] y, f64 rho, f64 h, i64 steps)", (np.array([1.0, 2, 20]), 28.0, 0.01, 12)),
    ("gauss_legendre", "f64(f64[2] p, f64 a, f64 b)", (np.array([0.7, 1.3]), 0.1, 1.4)),
    ("runge", None, (0.1, 1.4, 25.0)),
    ("flagged", "f64(f64[n] x, u8[n] kinds, i64 n)", (RNG.normal(size=6), np.array([0, 1, 2, 3, 6, 21], np.uint8))),
    ("lanes", "f64(f64[n] x, i64 n)", (RNG.normal(size=12),)),
    *(("volume", "f64(f64 p, f64 t, f64 tc, f64 pc, f64 omega, i8 ideal)",
       (2e6, 350.0, 304.2, 7.38e6, 0.225, np.int8(ideal))) for ideal in (0, 1)),
    ("bond", "f64(f64[3] b, f64 tau, f64 coupon, i32 years)", (np.array([0.03, -0.01, 0.02]), 1.7, 0.04, np.int32(6))),
    ("asian", "f64(f64 spot, f64 vol, f64 strike, i64 seed, i32 paths)", (1.0, 0.3, 1.05, 7, np.int32(40))),
    ("listed", "f64(f64[4] x)", (RNG.normal(size=4),)),
    ("columns", "f64(f64[n] x, f64[n] mass, i64 n, f64 h)", (RNG.normal(size=5), RNG.uniform(1, 2, 5), 0.1)),
    ("median", "f64(f64[n] x, i64 n)", (RNG.normal(size=9),)),
    ("spectrum", "void(f64[n] x, out f64[n] power, i64 n)", (RNG.normal(size=8),)),
    ("terms", None, (1.3, 0.7)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "signature", "args"), fast(2, IDIOMS))
def test_idioms(name: str, signature: str | None, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(Path(__file__).with_name("idioms.zig")).kernel(name, signature)
    expected: dict[str, Any] = {
        "solve": lambda a, b: np.linalg.solve(a, b),
        "spectrum": lambda x: np.abs(np.fft.fft(x)) ** 2,
        "runge": lambda a, b, k: (np.arctan(b * k**0.5) - np.arctan(a * k**0.5)) / k**0.5,
        "listed": lambda x: sum(x[i] ** 2 * np.prod(x[i + 1 :]) for i in range(4)),
    }
    if name in expected:
        np.testing.assert_allclose(kernel(*args), expected[name](*args), rtol=1e-8)
    assert engine.check(kernel, *args).ok


def test_statuses_of_error_sets() -> None:
    kernel = irgrad.load(Path(__file__).with_name("idioms.zig")).kernel(
        "spline", "status i32(f64[n] x, f64[n] y, i64 n, f64 t, out f64 value)",
        errors={1: "too short", 2: "not increasing"})  # fmt: skip
    for x, said in ((np.array([0.0, 1]), "too short"), (np.array([0.0, 2, 1, 3]), "not increasing")):
        with pytest.raises(irgrad.KernelError, match=said):
            engine.grad(kernel, wrt="y")(x, x, 0.5)


@pytest.mark.parametrize(("name", "signature", "args"), fast(2, PROGRAMS))
def test_programs(name: str, signature: str | None, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(Path(__file__).with_name("programs.zig")).kernel(name, signature)
    if name == "matmul":
        np.testing.assert_allclose(kernel(*args), args[0] @ args[1], rtol=1e-13)
    if name == "interpolated":
        np.testing.assert_allclose(kernel(*args), np.interp(args[2], args[0], args[1]), rtol=1e-13)
    if name == "tridiagonal":
        a, b, c, d = args
        whole = np.diag(b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1)
        np.testing.assert_allclose(kernel(*args), np.linalg.solve(whole, d), rtol=1e-13)
    assert engine.check(kernel, *args).ok
