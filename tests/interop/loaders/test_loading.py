"""load: every kind of source, and a clear error for every kind of mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irgrad.engine import batch_grad, grad
from irgrad.engine.codegen.llvm import binding
from irgrad.interop.loaders import load
from irgrad.rules.errors import CompileError, IRGradError, LoadError, SignatureError

SQUARE = "double square(double x) { return x * x; }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "square.c").write_text(SQUARE)
    (tmp_path / "cube.c").write_text("double square(double);\ndouble cube(double x) { return x * square(x); }\n")
    return tmp_path


def test_c_file(folder: Path) -> None:
    library = load(folder / "square.c")
    assert library.functions() == ("square",)
    assert library.source_names == (str(folder / "square.c"),)
    assert library.debug
    assert load(str(folder / "square.c")).digest == library.digest


def test_c_string() -> None:
    assert load(SQUARE).functions() == ("square",)
    assert load("double f(double x) { return x; }").source_names == ("<string>",)


def test_the_ir_of_a_string_depends_on_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    first = load(SQUARE)
    monkeypatch.chdir(tmp_path)
    assert load(SQUARE).text == first.text
    assert "irgrad-src" not in first.text
    assert "irgrad-cc" not in first.text


def test_files_are_linked_together(folder: Path) -> None:
    library = load([folder / "cube.c", folder / "square.c"])
    assert set(library.functions()) == {"cube", "square"}
    assert "declare double @square" not in library.text
    assert set(load(folder / "cube.c", link=[folder / "square.c"]).functions()) == {"cube", "square"}


def test_cxx_file(tmp_path: Path) -> None:
    path = tmp_path / "norm.cc"
    path.write_text(
        "#include <cmath>\n#include <vector>\n"
        "template <class T> T sq(T x) { return x * x; }\n"
        'extern "C" double norm(const double *x, int n) {\n'
        "  std::vector<double> v(x, x + n);\n  double s = 0;\n  for (double a : v) s += sq(a);\n"
        "  return std::sqrt(s);\n}\nnamespace ns { double twice(double x) { return 2 * x; } }\n"
    )
    library = load(path)
    assert "norm" in library.functions()
    assert library.resolve("twice") == "_ZN2ns5twiceEd"


def test_ir_and_bitcode_round_trip(folder: Path) -> None:
    library = load(folder / "square.c")
    (folder / "square.ll").write_text(library.text)
    again = load(folder / "square.ll")
    assert again.functions() == library.functions()
    (folder / "square.ll").write_text(again.text)
    assert load(folder / "square.ll").text == again.text
    llvm = binding()
    module = llvm.parse_assembly(library.text, context=llvm.create_context())
    (folder / "square.bc").write_bytes(module.as_bitcode())
    assert load(folder / "square.bc").functions() == ("square",)
    assert load([folder / "square.bc", folder / "cube.c"]).functions() == ("square", "cube")
    assert load(library.text, language="ll").functions() == ("square",)


def test_include_define_and_flags(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "factor.h").write_text("#define FACTOR 3.0\n")
    source = '#include "factor.h"\ndouble f(double x) { return FACTOR * N * x; }\n'
    source = source.replace("FACTOR * N * x", "x * (FACTOR * N)")
    assert "define double @f" in load(source, include=[tmp_path / "inc"], define={"N": 7}).text
    assert ", 2.400000e+01" in load(source, include=[tmp_path / "inc"], define={"N": 8}, opt="O2").text
    assert "double 4.000000e+00" in load("double f() {\n return Q; }", flags=["-DQ=4.0"]).text
    assert load("#ifndef A\n#error no A\n#endif\nint f() { return 1; }", define={"A": True}).functions() == ("f",)
    source = "static int f() { return 1; }\n#if !ON || OFF || !SET\n#error another value\n#endif"
    macros = {"static": "", "ON": True, "OFF": False, "SET": None}
    assert load(source, define=macros).functions() == ("f",), "an empty macro is empty"


def test_user_flags_win() -> None:
    source = "double f(double x) { return x * 2 * 4; }\n"
    assert "fast" in load(source, flags=["-ffast-math"]).text
    assert load(source, flags=["-O0"]).text == load(source, opt="O0").text == load(source, flags=["-O2", "-O0"]).text
    assert "alloca" in load(source, opt="O2", flags=["-O0"]).text
    assert "alloca" not in load(source, opt="O0", flags=["-O2"]).text
    assert "alloca" in load(source).text, "irgrad runs the passes itself"
    assert "alloca" not in load(source, flags=["-O3"]).text


def test_warnings_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "w.c"
    path.write_text("int f(void) { int unused; return 1; }\n")
    assert "unused variable" in load(path, flags=["-Wall"]).warnings
    assert "unused variable" in load(path, flags=["-Wall"]).warnings, "from the cache as well"


def test_a_header_that_changes_is_seen(tmp_path: Path) -> None:
    header, path = tmp_path / "k.h", tmp_path / "k.c"
    path.write_text('#include "k.h"\ndouble f(void) { return K; }\n')
    header.write_text("#define K 2.0\n")
    assert "double 2.0" in load(path).text
    header.write_text("#define K 3.0\n")
    assert "double 3.0" in load(path).text


def test_source_that_does_not_compile() -> None:
    with pytest.raises(CompileError) as caught:
        load("double f(double x) {\n  return x * undeclared_name;\n}")
    message = str(caught.value)
    assert "`<string>` does not compile" in message
    assert "<string>:2:14: error: use of undeclared identifier 'undeclared_name'" in message


def test_a_missing_file_names_the_nearest(folder: Path) -> None:
    with pytest.raises(LoadError, match=r"there is no file `.*squar\.c`(.*\n)+.*`square\.c`"):
        load(folder / "squar.c")
    with pytest.raises(LoadError, match="no file with a similar name"):
        load(folder / "zzzzzzzz.c")
    with pytest.raises(LoadError, match=r"the folder `.*nowhere` does not exist"):
        load(folder / "nowhere" / "a.c")
    with pytest.raises(LoadError, match="is a folder"):
        load(folder)


def test_unknown_kinds(folder: Path) -> None:
    (folder / "x.py").write_text("pass")
    with pytest.raises(LoadError, match=r"suffix is `\.py`, known are \.c"):
        load(folder / "x.py")
    with pytest.raises(LoadError, match="`cobol` is no language"):
        load(folder / "x.py", language="cobol")
    with pytest.raises(LoadError, match="cannot be loaded as `cobol`"):
        load("int f() { }", language="cobol")
    (folder / "source.txt").write_text(SQUARE)
    assert load(folder / "source.txt", language="c").functions() == ("square",)


def test_empty_list_and_flags_in_one_string() -> None:
    with pytest.raises(LoadError, match="the list of sources is empty"):
        load([])
    with pytest.raises(LoadError, match="`flags` is a string"):
        load(SQUARE, flags="-O2 -g")


def test_shared_libraries_give_symbols(tmp_path: Path) -> None:
    from irgrad.engine.codegen import symbols
    from irgrad.engine.codegen.objects import write

    path = write(tmp_path / "extra.so", load("double extra_symbol_of_test(double x) { return x; }").text,
                 ["extra_symbol_of_test"])
    assert not symbols.is_known("extra_symbol_of_test")
    load("double extra_symbol_of_test(double);\ndouble f(double x) { return extra_symbol_of_test(x); }", link=[path])
    assert symbols.is_known("extra_symbol_of_test")
    with pytest.raises(LoadError, match="there is no file"):
        load(SQUARE, link=[tmp_path / "none.so"])
    (tmp_path / "bad.so").write_bytes(b"no library")
    with pytest.raises(LoadError, match="cannot be opened"):
        load(SQUARE, link=[tmp_path / "bad.so"])


@pytest.mark.parametrize("name", ["here.so", "./here.so"])
def test_shared_libraries_of_the_current_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irgrad.engine.codegen import symbols
    from irgrad.engine.codegen.objects import write

    symbol = f"symbol_of_{len(name)}"
    write(tmp_path / "here.so", load(f"double {symbol}(double x) {{ return x; }}").text, [symbol])
    monkeypatch.chdir(tmp_path)
    load(SQUARE, link=[name])
    assert symbols.is_known(symbol)


def test_without_optimising_first_the_derivatives_are_the_same() -> None:
    source = """static double part(const double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) { double t = x[i] * x[i]; s += t * x[(i + 1) % n]; }
  return s;
}
double f(const double *x, int n) { return part(x, n) * part(x, n); }
"""
    x = np.array([0.5, -1.0, 2.0])
    kernels = [load(source, preopt=preopt).kernel("f", "f64(f64[n] x, i32 n)") for preopt in (True, False)]
    slopes = [grad(kernel)(x) for kernel in kernels]
    part, inner = np.sum(x**2 * np.roll(x, -1)), 2 * x * np.roll(x, -1) + np.roll(x, 1) ** 2
    for slope in slopes:
        np.testing.assert_allclose(slope, 2 * part * inner, rtol=1e-13)
    assert "alloca" not in kernels[0].primal.stage.text
    assert "alloca" in kernels[1].primal.stage.text


def test_a_draft_has_the_types_of_the_source(tmp_path: Path) -> None:
    """Also of what is only handed on; the draft is a signature as it stands."""
    body = """struct s { double a; int b; };
double h(const struct s *p, const int *q, int n) { return p->a * p->a * q[n - 1]; }
double f(const struct s *p, const int *q, int n) { return h(p, q, n); }
"""
    (tmp_path / "f.c").write_text(body)
    for source in (body, tmp_path / "f.c"):
        library = load(source)
        with pytest.raises(SignatureError) as caught:
            library.kernel("f")
        drafted = "struct s { f64 a; i32 b; }; f64(s[] p, i32[n] q, i32 n)"
        assert f'"{drafted}"' in caught.value.fix
        value = library.kernel("f", drafted)({"a": 3.0, "b": 1}, np.array([5, 2], np.int32))
        assert value == 18.0
    text = "declare void @g(ptr)\ndefine void @f(ptr %p) {\n  call void @g(ptr %p)\n  ret void\n}\n"
    with pytest.raises(SignatureError, match=r"void\(\?\[n\] p\)"):
        load(text, language="ll").kernel("f")


def test_for_every_cpu_products_are_rounded_before_sums(tmp_path: Path) -> None:
    source = tmp_path / "fused.c"
    source.write_text("double f(const double *x, long n) { double s = 0;\n"
                      "for (long i = 0; i < n; i++) s = s * x[i] + x[i]; return s; }")  # fmt: skip
    x = np.random.default_rng(1).uniform(0.5, 1.5, 40)
    plain = load(source, cpu="baseline").kernel("f", "f64(f64[n] x, i64 n)")
    native = load(source).kernel("f", "f64(f64[n] x, i64 n)")
    values, total = [0.0], 0.0
    for one in x:
        total = total * one + one
        values.append(total)
    assert plain(x) == total
    assert native(x) == pytest.approx(total, rel=1e-14)
    want, after = np.zeros(40), 1.0
    for i in range(39, -1, -1):
        want[i] = after * values[i] + after
        after *= x[i]
    np.testing.assert_allclose(grad(plain)(x), want, rtol=1e-13)
    np.testing.assert_allclose(batch_grad(plain)(np.stack([x, x]))[1], want, rtol=1e-13)
    assert repr(plain.options) != repr(native.options)
    with pytest.raises(IRGradError, match="cpu='old' is no choice"):
        load(source, cpu="old")
