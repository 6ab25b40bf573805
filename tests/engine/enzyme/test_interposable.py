"""A derivative is made of the body that runs: weak functions and constants, -fsemantic-interposition, linked or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from irgrad.engine.enzyme.interposable import interposable
from irgrad.engine.enzyme.lower import lower
from irgrad.interop.cli import main
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

PROGRAM = """#include <stdio.h>
double __enzyme_autodiff(void *, ...);
__attribute__((weak)) double scale(double x) { return x; }
__attribute__((weak)) const double factor = 5;
double f(double x) { return factor * scale(x); }
int main(void) { printf("%g %g\\n", f(3), __enzyme_autodiff((void *)f, 3.0)); return 0; }
"""
STRONG = "double scale(double x) { return x * x; }\nextern const double factor;\nconst double factor = 2;\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.c").write_text(PROGRAM)
    Path("q.c").write_text(STRONG)
    Path("k.c").write_text("extern const double factor;\nconst double factor = 2;\n")
    return tmp_path


def _run() -> str:
    return subprocess.run(["./a.out"], check=True, capture_output=True, text=True).stdout


def test_what_may_be_replaced() -> None:
    weak = "define weak double @a() {\n  ret double 0.0\n}\ndefine weak_odr double @b() {\n  ret double 0.0\n}\n"
    visible = "define dso_local double @c() {\n  ret double 0.0\n}\ndefine double @\"d e\"() {\n  ret double 0.0\n}\n"
    flag = '!0 = !{i32 1, !"SemanticInterposition", i32 1}\n'
    assert interposable(weak + visible) == {"a"}
    assert interposable(weak + visible + flag) == {"a", "b", "d e"}
    assert interposable("define weak noalias ptr @_Znwm(i64 %0) {\n  ret ptr null\n}\n") == set()


def test_an_object_that_is_linked_later_is_refused() -> None:
    with pytest.raises(Unsupported, match="`f` reaches `scale`, which another definition may replace") as caught:
        lower(load(PROGRAM).text)
    assert "-flto" in caught.value.fix and "<string>:6" in caught.value.where


@pytest.mark.parametrize(("words", "told"), [
    (["p.c"], "15 5\n"), (["p.c", "q.c"], "18 12\n"), (["-O0", "p.c", "q.c"], "18 12\n"), (["p.c", "k.o"], "6 2\n"),
    (["-fPIC", "-fsemantic-interposition", "p.c", "q.c"], "18 12\n"),
])  # fmt: skip
def test_a_whole_program_knows_its_bodies(words: list[str], told: str, here: Path) -> None:
    assert main(["cc", "-c", "k.c"]) == 0
    assert main(["cc", *words]) == 0
    assert _run() == told


def test_bodies_of_flto_are_those_of_the_link(here: Path) -> None:
    assert main(["cc", "-c", "-flto", "p.c", "q.c"]) == 0
    assert main(["cc", "p.o", "q.o"]) == 0
    assert _run() == "18 12\n"


@pytest.mark.parametrize("words", [["p.c", "q.o"], ["p.c", "libq.a"], ["-c", "p.c"], ["-shared", "-fPIC", "p.c"]])
def test_a_body_that_the_linker_replaces_is_refused(
    words: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cc", "-c", "q.c"]) == 0
    subprocess.run(["ar", "rcs", "libq.a", "q.o"], check=True)
    assert main(["cc", *words]) == 1
    assert "`f` reaches `scale`, which another definition may replace" in capsys.readouterr().err


def test_another_object_behind_the_same_name_is_no_cached_program(here: Path) -> None:
    Path("r.c").write_text("double other(double x) { return x; }\n")
    assert main(["cc", "-c", "r.c", "k.c"]) == 0
    assert main(["cc", "p.c", "k.o", "r.o"]) == 0 and _run() == "6 2\n"
    Path("r.c").write_text("double scale(double x) { return x * x; }\n")
    assert main(["cc", "-c", "r.c"]) == 0
    assert main(["cc", "p.c", "k.o", "r.o"]) == 1


def test_functions_of_a_library_that_a_program_may_replace(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("l.c").write_text("double __enzyme_autodiff(void *, ...);\ndouble sq(double x) { return x; }\n"
                           "double f(double x) { return sq(x) * 2; }\n"
                           "double df(double x) { return __enzyme_autodiff((void *)f, x); }\n")
    assert main(["cc", "-fPIC", "-shared", "l.c", "-o", "libl.so"]) == 0, "compilers inline `sq` as well"
    assert main(["cc", "-fPIC", "-shared", "-fsemantic-interposition", "l.c", "-o", "libl.so"]) == 1
    assert "`f` reaches `f`, `sq`" in capsys.readouterr().err
    own = Path("l.c").read_text()
    for name in ("sq", "f"):
        own = own.replace(f"double {name}(", f"static double {name}(")
    Path("l.c").write_text(own)
    assert main(["cc", "-fPIC", "-shared", "-fsemantic-interposition", "l.c", "-o", "libl.so"]) == 0
