"""Regions that depend on the number of threads, in the IR that clang writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.engine.parallel.numbered import with_numbers
from irgrad.engine.parallel.regions import forks, on_one_thread
from irgrad.interop.loaders.compiler import Options, compile_source

HEAD = "#include <omp.h>\n"


def _text(path: Path, source: str) -> str:
    (path / "f.c").write_text(HEAD + source)
    return compile_source(path / "f.c", "c", Options(flags=("-fopenmp",))).text


def _region(inside: str, clauses: str = "") -> str:
    return f"void f(double *x, long n) {{\n#pragma omp parallel {clauses}\n  {{ {inside} }}\n}}\n"


@pytest.mark.parametrize(("inside", "phases"), [
    ("x[omp_get_thread_num()] = 1;", 1),
    ("x[0] += 1;", 1),
    ("x[omp_get_thread_num()] = 1;\n#pragma omp barrier\nx[0] += 1;", 2),
    ("x[omp_get_num_threads()] = 1;\n#pragma omp for\nfor (long i = 0; i < n; i++) x[i] = i;", 2),
    ("for (int k = 0; k < omp_get_num_threads(); k++) {\n#pragma omp barrier\nx[k] = 1; }", 2),
])  # fmt: skip
def test_regions_that_have_teams(tmp_path: Path, inside: str, phases: int) -> None:
    text = _text(tmp_path, _region(inside, "num_threads(3)"))
    made = with_numbers(text)
    assert made.others == []
    assert not list(forks(made.text))
    assert made.text.count("define internal void @f.omp_outlined.team(i32 ") == 1
    assert made.text.count("@f.omp_outlined.numbered.phase.") == 2 * phases
    assert on_one_thread(made.text).count("define ") == made.text.count("define ")


@pytest.mark.parametrize("inside", [
    "\n#pragma omp for\nfor (long i = 0; i < n; i++) x[i] = i;",
    "\n#pragma omp single\nx[0] = 1;",
])  # fmt: skip
def test_regions_that_do_not_depend_on_their_threads(tmp_path: Path, inside: str) -> None:
    text = _text(tmp_path, _region(inside))
    assert with_numbers(text).text is text
    assert with_numbers("define void @f() {\n  ret void\n}\n").others == []


def test_a_barrier_in_a_called_function(tmp_path: Path) -> None:
    helper = "static void g(double *x) { x[omp_get_thread_num()] += 1;\n#pragma omp barrier\n x[0] *= 2; }\n"
    made = with_numbers(_text(tmp_path, helper + _region("g(x); g(x + 1);")))
    assert made.others == []
    assert made.text.count("define internal void @f.omp_outlined.numbered.phase.") == 3


def test_why_a_region_stays(tmp_path: Path) -> None:
    text = _text(tmp_path, "void g(int);\n" + _region("g(omp_get_thread_num());"))
    made = with_numbers(text)
    assert made.text is text
    assert made.others == [f"{tmp_path}/f.c:4:1: `g` is not here, which may ask for the thread"] or (
        len(made.others) == 1 and made.others[0].endswith("`g` is not here, which may ask for the thread"))  # fmt: skip
