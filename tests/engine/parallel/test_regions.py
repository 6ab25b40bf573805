"""Regions in the IR that clang writes, and what becomes of them on one thread."""

from __future__ import annotations

from pathlib import Path

from irgrad.engine.parallel.regions import ENTER, LEAVE, forks, has_forks, lines_on_one_thread, on_one_thread
from irgrad.interop.loaders.compiler import Options, compile_source

SOURCE = """
int omp_get_level(void);
double f(double *x, long n) {
  double s = 0;
#pragma omp parallel for reduction(+:s) firstprivate(n)
  for (long i = 0; i < n; i++) s += x[i];
#pragma omp parallel if (n > 2)
  x[0] = LEVEL;
#pragma omp teams
  x[1] = s;
#pragma omp parallel
  {}
  return s;
}
"""


def _text(path: Path, level: str) -> str:
    (path / "f.c").write_text(SOURCE)
    return compile_source(path / "f.c", "c", Options(flags=("-fopenmp",), define=(("LEVEL", level),))).text


def test_forks_of_a_module(tmp_path: Path) -> None:
    text = _text(tmp_path, "1")
    found = list(forks(text))
    assert len(found) == text.count("call void (ptr, i32, ptr, ...) @__kmpc_fork_") == 4
    assert [fork.teams for fork in found] == [False, False, True, False]
    assert all(f" {fork.region}(" in text for fork in found)
    assert len(found[0].captured.split(", ")) == 3
    assert found[3].captured == ""
    assert "__kmpc_fork_call" in text[found[0].start : found[0].end]
    assert not has_forks("define void @f() { ret void }") and not list(forks("define void @f() { ret void }"))


def test_on_one_thread_each_region_is_a_call(tmp_path: Path) -> None:
    text = _text(tmp_path, "1")
    made = on_one_thread(text)
    assert not list(forks(made))
    for fork in forks(text):
        more = f", {fork.captured}" if fork.captured else ""
        assert f"call void {fork.region}(ptr @irgrad.omp.zero, ptr @irgrad.omp.zero{more})" in made
    assert ENTER not in made
    assert lines_on_one_thread(text) == []
    assert lines_on_one_thread(made) == [5, 7, 9, 11]
    assert on_one_thread("declare void @f()\n") == "declare void @f()\n"


def test_levels_are_counted_where_somebody_asks(tmp_path: Path) -> None:
    made = on_one_thread(_text(tmp_path, "omp_get_level()"))
    assert made.count(f"call void @{ENTER}()") == made.count(f"call void @{LEAVE}()") == 4  # three regions, one serial
