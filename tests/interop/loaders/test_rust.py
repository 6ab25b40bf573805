"""Functions of Rust: beside those of C, ten programs with the idioms of the language, names, messages, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from shares import fast
from toolchains import needs_rustc

import irgrad
from benchmarks import languages
from irgrad import engine
from irgrad.interop.loaders import rust, rust_panics
from irgrad.interop.loaders.languages import RUSTC

RNG = np.random.default_rng(0)
A = RNG.uniform(0.1, 0.4, 6)
PROGRAMS: list[tuple[str, str | None, tuple[Any, ...]]] = [
    ("tridiagonal", "void(f64[n] a, f64[n] b, f64[n] c, f64[n] d, inout f64[n] x)",
     (A, RNG.uniform(2, 3, 6), A[::-1].copy(), RNG.normal(size=6), np.zeros(6))),
    ("monte_carlo", "f64(f64[n] z, f64 spot, f64 vol, f64 strike, bool digital)",
     (RNG.normal(size=9), 1.0, 0.3, 1.05, True)),
    ("monte_carlo", "f64(f64[n] z, f64 spot, f64 vol, f64 strike, bool digital)",
     (RNG.normal(size=9), 1.0, 0.3, 1.05, False)),
    ("quadrature", "f64(f64[n] p, f64 b, i64 steps)", (np.array([1.3, 0.7, 0.4]), 1.5, 20)),
    ("polynomial", "f64(f64[n] re, f64[n] im, f64 x, f64 y)",
     (RNG.normal(size=5), RNG.normal(size=5), 0.6, 0.3)),
    ("equation_of_state", None, (2.0, 1.4, 0.3, 0.2)),
    ("matmul", "void(f64[n,n] a, f64[n,n] b, inout f64[n,n] c, i64 n)",
     (RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3)), np.zeros((3, 3)))),
    ("kepler", None, (1.2, 0.4)),
    ("pendulum", None, (1.1, 2.0, 0.05, np.uint32(30))),
    ("moving", "void(f64[n] x, inout f64[n] y, i64 width)", (RNG.normal(size=8), np.zeros(8), 3)),
    ("softmax_loss", "f64(f64[n] x, i64 target)", (RNG.uniform(0.1, 1, 5), 2)),
    ("models::inner::square", None, (3.0,)),
]  # fmt: skip
FILE = Path(__file__).with_name("programs.rs")


def _expected(name: str, args: tuple[Any, ...]) -> Any:
    """The value by NumPy, for the programs that have a formula there."""
    if name == "tridiagonal":
        a, b, c, d, _ = args
        return np.linalg.solve(np.diag(b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1), d)
    if name == "monte_carlo":
        z, spot, vol, strike, digital = args
        s = spot * np.exp(-0.5 * vol**2 + vol * z)
        return np.mean(0.5 * (1 + np.tanh((s - strike) / 0.1)) if digital else np.maximum(s - strike, 0))
    if name == "polynomial":
        re, im, x, y = args
        return abs(np.polyval((re + 1j * im)[::-1], x + 1j * y)) ** 2
    if name == "equation_of_state":
        v, t, a, b = args
        return t / (v - b) - a / v**2
    if name == "matmul":
        return args[0] @ args[1]
    if name == "moving":
        x, _, width = args
        return [np.mean(x[max(0, n + 1 - width) : n + 1]) for n in range(len(x))]
    return None


@needs_rustc
@pytest.mark.parametrize(("name", "signature", "args"), fast(3, PROGRAMS))
def test_programs(name: str, signature: str | None, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(FILE).kernel(name, signature)
    expected = _expected(name, args)
    if expected is not None:
        np.testing.assert_allclose(kernel(*args), expected, rtol=1e-13)
    assert engine.check(kernel, *args).ok


X = RNG.normal(size=6)
IDIOMS: list[tuple[str, str | None, tuple[Any, ...]]] = [
    ("spline", "f64(f64[n] x, f64[n] y, f64 at)", (np.linspace(0, 4, 6), X, 2.3)),
    ("lorenz", "f64(f64[3] y, f64 rho, f64 h, i64 steps)", (np.array([1.0, 2, 20]), 28.0, 0.01, 12)),
    ("solve", "void(f64[n,n] a, f64[n] b, inout f64[n] x)",
     (RNG.normal(size=(5, 5)), RNG.normal(size=5), np.zeros(5))),
    ("runge", None, (0.1, 1.4, 25.0)),
    ("book", "f64(f64 spot, f64 vol, f64[n] strikes, u64 seed, i64 paths)",
     (1.0, 0.3, np.array([0.9, 1.0, 1.1]), np.uint64(7), 30)),
    ("volume", None, (2e6, 350.0, 304.2, 7.38e6, 0.225)),
    ("linked", "f64(f64[n] x)", (X,)),
    ("trimmed", "f64(f64[n] x)", (RNG.normal(size=9),)),
    ("path", "f64(f64[n,2] points)", (RNG.normal(size=(5, 2)),)),
    ("wave", "void(inout f64[n] u, f64 c, i64 steps)", (RNG.normal(size=8), 0.2, 4)),
]  # fmt: skip


@needs_rustc
@pytest.mark.parametrize(("name", "signature", "args"), fast(3, IDIOMS))
def test_idioms(name: str, signature: str | None, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(FILE.with_name("idioms.rs")).kernel(name, signature)
    expected: dict[str, Any] = {
        "solve": lambda a, b, x: np.linalg.solve(a, b),
        "runge": lambda a, b, k: (np.arctan(b * k**0.5) - np.arctan(a * k**0.5)) / k**0.5,
        "path": lambda points: np.sum(np.hypot(*np.diff(points, axis=0).T)),
    }
    if name in expected:
        np.testing.assert_allclose(kernel(*args), expected[name](*args), rtol=1e-8)
    assert engine.check(kernel, *args).ok


@needs_rustc
def test_memory_of_zeros() -> None:
    """`vec![0.0; n]` in memory that was used before."""
    kernel = irgrad.load("""
pub fn f(x: &[f64]) -> f64 {
    let sizes: Vec<Vec<f64>> = (0..9).map(|k| vec![x[0] + 7.0; x.len() + k % 2]).collect();
    let used: f64 = sizes.iter().flatten().sum();
    drop(sizes);
    let mut c = vec![0.0; x.len()];
    for i in 1..x.len() { c[i] = x[i] / (2.0 + x[0] * c[i - 1]); }
    c.iter().map(|v| v * v).sum::<f64>() + 1e-3 * used
}
""", language="rust").kernel("f", "f64(f64[n] x)")
    x = np.arange(1.0, 6)
    c = [0.0]
    for i in range(1, 5):
        c.append(x[i] / (2 + x[0] * c[-1]))
    used = sum((x[0] + 7) * (5 + k % 2) for k in range(9))
    for _ in range(3):
        np.testing.assert_allclose(kernel(x), np.sum(np.square(c)) + 1e-3 * used, rtol=1e-13)
        assert engine.check(kernel, x).ok


FAILS = """
pub fn at(x: &[f64], i: usize) -> f64 { x[i] * x[i] }
pub fn root(x: f64) -> f64 { if x < 0.0 { panic!("no root of {x}") } x.sqrt() }
fn found(x: f64) -> Option<f64> { (x > 1.0).then_some(x * x) }
pub fn some(x: f64) -> f64 { found(x).expect("too small") }
pub fn unwrapped(x: f64) -> f64 { "a".parse::<f64>().map(|v| v * x).unwrap() }
pub fn copied(x: &[f64], y: &mut [f64]) { y.copy_from_slice(&x[1..]); }
#[inline(never)] fn deep(x: &[f64], n: usize) -> f64 { if n == 0 { x[7] } else { x[0] * deep(x, n - 1) } }
pub fn recursive(x: &[f64], n: usize) -> f64 { deep(x, n) + 1.0 }
pub fn whole(a: i64, b: i64, x: f64) -> f64 { (a / b) as f64 * x }
pub fn held(x: f64) -> f64 { let v = vec![x; 3]; assert!(v[1] < 2.0, "held memory"); v.iter().sum() }
pub fn kept(x: &[f64], i: usize) -> f64 { (0..i).map(|k| x[k].exp()).sum() }
"""


@needs_rustc
@pytest.mark.parametrize(("name", "signature", "good", "bad", "said"), fast(3, [
    ("recursive", "f64(f64[n] x, i64 k)", (np.arange(1.0, 9), 2), (np.arange(1.0, 4), 2),
     "index out of bounds at <string>:8"),
    ("some", None, (2.0,), (0.5,), "too small at <string>:5"),
    ("at", "f64(f64[n] x, i64 i)", (np.arange(3.0), 2), (np.arange(3.0), 3), "index out of bounds at <string>:2"),
    ("root", None, (2.0,), (-2.0,), "no root of {} at <string>:3"),
    ("copied", "void(f64[n] x, inout f64[m] y)", (np.arange(3.0), np.zeros(2)), (np.arange(3.0), np.zeros(3)),
     "`copy_from_slice` panics at <string>:7"),
    ("whole", None, (7, 2, 0.5), (7, 0, 0.5), "attempt to divide by zero at <string>:10"),
    ("held", None, (1.0,), (3.0,), "held memory at <string>:11"),
    ("kept", "f64(f64[n] x, i64 i)", (np.arange(3.0), 2), (np.arange(3.0), 4), "index out of bounds at <string>:12"),
]))  # fmt: skip
def test_panics_are_errors_of_the_kernel(name: str, signature: str | None, good: Any, bad: Any, said: str) -> None:
    kernel = irgrad.load(FAILS, language="rust").kernel(name, signature)
    assert engine.check(kernel, *good).ok
    for call in (kernel, lambda *args: engine.vjp(kernel, *args)[1](np.ones_like(kernel(*good)))):
        with pytest.raises(irgrad.KernelError) as error:
            call(*bad)
        assert said in str(error.value)
    assert engine.check(kernel, *good).ok  # nothing of the failure is left


@needs_rustc
def test_a_failure_under_jax_names_the_sample() -> None:
    kernel = irgrad.load(FAILS, language="rust").kernel("root")
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.vmap(jax.grad(kernel))(np.array([1.0, 4.0])), [0.5, 0.25])
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"no root of \{\} at <string>:3 \(sample 1\)"):
            jax.block_until_ready(jax.vmap(kernel)(np.array([1.0, -4.0])))


@needs_rustc
def test_statuses_of_ones_own_stay() -> None:
    kernel = irgrad.load(FILE).kernel("raw", "status i32(f64[n] x, i64 n, out f64 y)", errors={3: "nothing there"})
    np.testing.assert_allclose(engine.grad(kernel)(np.array([2.0, 3, 4])), [12, 8, 6])
    with pytest.raises(irgrad.KernelError, match="status 3: nothing there"):
        kernel(np.zeros(0))


@needs_rustc
def test_public_functions_go_by_their_paths() -> None:
    names = irgrad.load("mod a { pub fn f(x: f64) -> f64 { x } }\npub mod b { pub fn f(x: f64) -> f64 { 2.0 * x } }\n"
                        "pub struct S; impl S { pub fn g(x: f64) -> f64 { a::f(x) } }\n", language="rust")  # fmt: skip
    assert {"b::f", "S::g"} <= set(names.functions())
    assert names.kernel("b::f")(1.5) == 3.0 and names.kernel("g")(1.5) == 1.5


@needs_rustc
def test_modules_that_change_are_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "parts.rs").write_text("pub const K: f64 = 3.0;\n")
    source = tmp_path / "model.rs"
    source.write_text("mod parts;\npub fn f(x: f64) -> f64 { parts::K * x }\n")
    assert irgrad.load(source).kernel("f")(2.0) == 6
    (tmp_path / "parts.rs").write_text("pub const K: f64 = 5.0;\n")
    assert irgrad.load(source).kernel("f")(2.0) == 10


@needs_rustc
def test_what_rustc_says_has_the_name_and_the_line_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(
        irgrad.CompileError, match=r"(?s)`<string>` does not compile.*cannot find value `y`.*<string>:2"
    ):
        irgrad.load("pub fn f(x: f64) -> f64 {\n y * x }\n", language="rust")
    with pytest.raises(irgrad.LoadError, match=r"(?s)Rust has no macros.*N.*--cfg"):
        irgrad.load("pub fn f(x: f64) -> f64 { x }\n", language="rust", define={"N": 3})
    source = "pub fn f(x: f64) -> f64 {\n let bits = x.to_bits();\n f64::from_bits(bits.wrapping_add(4096))\n}\n"
    with pytest.raises(irgrad.Unsupported, match=r"(?s)bits of an active float.*<string>:3"):
        engine.grad(irgrad.load(source, language="rust").kernel("f"))(1.0)


@needs_rustc
@pytest.mark.long
@pytest.mark.parametrize("opt", ["O0", "O2"])
def test_levels(opt: str) -> None:
    kernel = languages.kernel("Rust", "energy", opt=opt)
    assert engine.check(kernel, *languages.arguments("energy")).ok


@needs_rustc
@pytest.mark.long
def test_printing_goes_through_rusts_library(capfd: pytest.CaptureFixture[str]) -> None:
    source = 'pub fn f(x: f64) -> f64 { println!("x = {x}"); x * x }\n'
    assert engine.grad(irgrad.load(source, language="rust").kernel("f"))(3.0) == 6.0
    assert "x = 3" in capfd.readouterr().out


@needs_rustc
@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_methods_of_floats(dtype: str) -> None:
    one = ("sin cos tan asin acos atan sinh cosh tanh asinh atanh exp exp2 ln log2 log10 ln_1p exp_m1 sqrt cbrt abs "
           "signum floor ceil round trunc fract to_degrees to_radians recip").split()  # fmt: skip
    two = "powf atan2 hypot max min copysign rem_euclid log".split()
    terms = [*(f"x.{name}()" for name in one), "(x + 1.0).acosh()", *(f"x.{name}(0.37)" for name in two), "x % 0.2",
             "x.powi(-3)", "x.powi(5)", "x.mul_add(x, 2.0)", "x.clamp(0.1, 0.9)", "x.sin_cos().1"]  # fmt: skip
    source = "".join(f"pub fn f{n}(x: {dtype}) -> {dtype} {{ {term} }}\n" for n, term in enumerate(terms))
    lib = irgrad.load(source, language="rust")
    at = np.dtype(dtype.replace("f", "float")).type(0.43)
    wrong = [term for n, term in enumerate(terms) if not engine.check(lib.kernel(f"f{n}"), at).ok]
    assert not wrong


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRGRAD_RUSTC", str(tmp_path / "rustc"))
    with pytest.raises(irgrad.LoadError, match=r"(?s)rustc` was not found.*IRGRAD_RUSTC.*rustup"):
        RUSTC.find()
    monkeypatch.delenv("IRGRAD_RUSTC")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    with pytest.raises(irgrad.LoadError, match=r"(?s)no Rust compiler was found.*install Rust"):
        irgrad.load("pub fn f(x: f64) -> f64 { x }\n", language="rust")


def test_a_compiler_that_is_too_new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "rustc"
    fake.write_text("#!/bin/sh\necho 'LLVM version: 99.0'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("IRGRAD_RUSTC", str(fake))
    with pytest.raises(irgrad.LoadError, match=r"(?s)is not a rustc of LLVM <= 22.*99"):
        RUSTC.find()


@pytest.mark.parametrize(("symbol", "path"), [
    ("_ZN5model5inner1f17hc0850137a7132022E", ["model", "inner", "f"]),
    ("_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt", ["core", "panicking", "panic_fmt"]),
    ("_RNvNtNtCsgEmfK2I1SDS_4core9panicking11panic_const23panic_const_div_by_zero",
     ["core", "panicking", "panic_const", "panic_const_div_by_zero"]),
    ("energy", []),
])  # fmt: skip
def test_symbols(symbol: str, path: list[str]) -> None:
    assert rust_panics.demangled(symbol) == path


def test_memory_is_that_of_c() -> None:
    text = ("declare noalias ptr @_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc(i64, i64) #1\n"
            "declare void @_RNvCsfLfy6EI15iL_7___rustc35___rust_no_alloc_shim_is_unstable_v2() #2\n"
            "declare void @_RNvCsfLfy6EI15iL_7___rustc14___rust_dealloc(ptr, i64, i64) #1\n")  # fmt: skip
    made = rust.own_memory(text)
    assert "define internal ptr @_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc(i64 %size, i64 %align)" in made
    assert "call noalias ptr @malloc(i64 %size)" in made and "declare void @free(ptr)" in made
    assert not [row for row in made.splitlines() if row.startswith("declare") and "rust" in row]
    zeroed = rust.own_memory("declare ptr @_RNvCsfLfy6EI15iL_7___rustc19___rust_alloc_zeroed(i64, i64) #1\n")
    assert "@calloc(i64 %size, i64 1)" in zeroed and "@malloc" not in zeroed


@needs_rustc
def test_rules_hold_for_functions_of_the_module() -> None:
    lib = irgrad.load("""
#[inline(never)] #[no_mangle] pub extern "C" fn cube(x: f64) -> f64 { x * x * x }
#[inline(never)] #[no_mangle] pub extern "C" fn square(x: f64) -> f64 { assert!(x < 9.0, "too large"); x * x }
pub fn both(x: f64) -> f64 { square(x) + cube(x) }
""", language="rust")  # fmt: skip
    both = lib.kernel("both")
    assert engine.grad(both)(2.0) == 16
    with irgrad.rules.layers.layer():
        irgrad.rule(lib.function("cube"))(lambda x: 100 * x)
        assert engine.grad(both)(2.0) == 204
        irgrad.rule(lib.function("square"))(lambda x: 2 * x)
        with pytest.raises(irgrad.Unsupported, match="`square` has a rule, and may panic"):
            engine.grad(both)(2.0)


COLLECTIONS = "vecvec dyns zips sorts maxes matches matrices closures generics strings single".split()


@needs_rustc
@pytest.mark.parametrize("name", fast(1, COLLECTIONS))
def test_collections_and_iterators(name: str) -> None:
    real = "f32" if name == "single" else "f64"
    kernel = irgrad.load(Path(__file__).with_name("collections.rs")).kernel(name, f"{real}({real}[n] x)")
    x = np.array([0.7, 1.3, 0.4, 0.9], kernel.signature.parameters[0].dtype.numpy_name)
    assert engine.check(kernel, x).ok
