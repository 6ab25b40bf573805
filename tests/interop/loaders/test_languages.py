"""One table of functions in all languages, with the same derivatives; a new language is one entry: sums of products of
x, in a language of our own."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from shares import fast
from toolchains import missing

import irgrad
from benchmarks.languages import FUNCTIONS, arguments, kernel
from irgrad import engine
from irgrad.interop.loaders import languages
from irgrad.interop.loaders.compiler import Compilation, Options
from irgrad.interop.loaders.languages import LANGUAGES, Language, by_name, by_suffix
from irgrad.rules.errors import LoadError


def _polynomial(path: Path, options: Options, display: str | None) -> Compilation:
    """`name: a b c` is a + b x + c x^2, by Horner's scheme."""
    lines = []
    for line in filter(None, path.read_text().splitlines()):
        name, _, words = line.partition(":")
        *rest, last = map(float, words.split())
        body, value = [], repr(last)
        for number, coefficient in enumerate(reversed(rest)):
            body.append(f"  %p{number} = fmul double {value}, %x")
            body.append(f"  %s{number} = fadd double %p{number}, {coefficient!r}")
            value = f"%s{number}"
        lines += [f"define double @{name}(double %x) {{", *body, f"  ret double {value}", "}"]
    return Compilation("\n".join(lines) + "\n", "", (), cached=False)


POLYNOMIALS = Language("polynomials", (".poly",), _polynomial, trusted=False)


def test_another_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.poly"
    path.write_text("f: 1.0 -2.0 3.0\ng: 0.5 4.0\n")
    with pytest.raises(LoadError, match="no known kind"):
        irgrad.load(path)
    monkeypatch.setattr(languages, "LANGUAGES", (*LANGUAGES, POLYNOMIALS))
    library = irgrad.load(path)
    assert library.functions() == ("f", "g")
    assert float(library.kernel("f")(2.0)) == 9.0
    assert float(irgrad.engine.grad(library.kernel("f"))(2.0)) == 10.0
    linked = irgrad.load([path, "double h(double); double g(double);\ndouble h(double x) { return g(x) * x; }"])
    np.testing.assert_allclose(irgrad.engine.grad(linked.kernel("h"))(0.25), 0.5 + 8 * 0.25)
    assert float(irgrad.load("k: 0.0 7.0\n", language="polynomials").kernel("k")(1.0)) == 7.0


def test_names_and_suffixes_are_each_one_language() -> None:
    names = [language.name for language in LANGUAGES]
    suffixes = [suffix for language in LANGUAGES for suffix in language.suffixes]
    assert len(set(names)) == len(names) and len(set(suffixes)) == len(suffixes)
    for language in LANGUAGES:
        assert by_name(language.name) is language
        assert all(by_suffix(suffix) is language for suffix in language.suffixes)
    assert by_name("cobol") is None and by_suffix(".cob") is None


TOOLS = {"Rust": "rustc", "Fortran": "flang"}


CELLS = [("Zig", "energy"), ("Rust", "energy"), ("Fortran", "energy")]
CELLS += [(language, function) for language in ("C++", "Zig", "Numba", "Rust", "Fortran") for function in FUNCTIONS
          if (language, function) not in CELLS]  # fmt: skip


@pytest.mark.parametrize(("language", "function"), fast(3, CELLS))
def test_derivatives_are_those_of_c(language: str, function: str) -> None:
    why = missing(TOOLS[language]) if language in TOOLS else ""
    if why:
        pytest.skip(why)
    kernels, given = [kernel("C", function), kernel(language, function)], arguments(function)
    (value, pullback), (same, other) = (engine.vjp(row, *given) for row in kernels)
    np.testing.assert_allclose(same, value, rtol=1e-13)
    for mine, his in zip(pullback(np.ones_like(value)), other(np.ones_like(value)), strict=True):
        np.testing.assert_allclose(his, mine, rtol=1e-13, atol=1e-13)
    with jax.enable_x64(True):
        by_jax = [jax.jit(jax.jacrev(lambda *a, k=row: k(*a)))(*given) for row in kernels]
    np.testing.assert_allclose(by_jax[1], by_jax[0], rtol=1e-13, atol=1e-13)
