"""`explain` as a whole: without debug locations, of files, of functions with rules and structs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explained import SIGNATURES, SOURCE, kernel, line

import irgrad
from irgrad.engine import explain
from irgrad.engine.report.explain import Explanation
from irgrad.interop.loaders import load
from irgrad.rules import layer, rule


def test_every_kernel_can_be_explained() -> None:
    for name in SIGNATURES:
        for derivative in ("vjp", "jvp"):
            found = explain(kernel(name), derivative)
            assert isinstance(found, Explanation)
            assert found.kernel == name
            assert found.debug
            assert repr(found) == str(found)
            assert not [value for value in found.kept if not value.reader]


def test_without_debug_locations() -> None:
    bare = load(SOURCE, flags=["-g0"]).kernel("nested", SIGNATURES["nested"])
    found, full = explain(bare, lanes=False), explain(kernel("nested"), lanes=False)
    assert not found.debug
    assert found.sources == ()
    assert "no source lines: the module has no debug locations" in str(found)
    assert not any(value.place for value in found.active)
    assert [loop.trips for loop in found.loops] == [loop.trips for loop in full.loops]
    assert found.total == full.total
    assert found.tape_bytes(n=4, m=5) == full.tape_bytes(n=4, m=5)
    assert "There are no source lines" in found.to_html()


def test_a_kernel_with_a_rule() -> None:
    plain = explain(kernel("ruled"), "grad", lanes=False)
    with layer("here"):

        @rule("mine")
        def _(a, s):  # type: ignore[no-untyped-def]
            return s, a

        found = explain(kernel("ruled"), "grad", lanes=False)
    (use,) = [use for use in found.rules if use.callee == "mine"]
    assert use.how == "rule"
    assert [place.line for place in use.calls] == [line("s = mine(x[i], s);")]
    assert "mine" in {value.opcode for value in found.active}
    assert not [use for use in plain.rules if use.callee == "mine"]  # inlined
    assert {value.opcode for value in plain.active} >= {"sin"}
    assert "sin" not in {value.opcode for value in found.active}


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernels.c").write_text(SOURCE)
    found = explain(load("kernels.c").kernel("heat", SIGNATURES["heat"]), lanes=False)
    assert {place.file for place in (loop.place for loop in found.loops)} == {"kernels.c"}
    assert [source.name for source in found.sources] == ["kernels.c"]
    page = tmp_path / "page.html"
    assert found.to_html(page) == page.read_text()


def test_a_function_with_structs() -> None:
    source = """struct p { double x, y; };
double f(const struct p *a, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += a[i].x * a[i].y;
    return s;
}
"""
    made: Any = irgrad.load(source).kernel("f", "struct p { f64 x; f64 y; }; f64(p[n] a, i64 n)")
    found = explain(made.kernel, lanes=False)
    assert found.loops[0].trips == "n"
    assert found.sources[0].lines[3].endswith("a[i].y;")
    with pytest.raises(irgrad.SignatureError, match="kernel over trees"):
        explain(made)


def test_a_derivative_that_is_refused_is_explained_as_far_as_it_goes() -> None:
    source = "double outside(double x);\ndouble f(double x) {\n    return outside(x) * x;\n}\n"
    found = explain(irgrad.load(source).kernel("f"))
    assert "outside" in found.refusal
    assert [use.how for use in found.rules] == ["nothing"]
    assert found.lanes == ()
    assert f"refused: {found.refusal.splitlines()[0]}" in str(found)
    assert "outside" in found.to_html()
    assert explain(kernel("nested")).refusal == ""


def test_the_page_of_the_manual(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (repository / "docs" / "explain.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert names["found"].tape_bytes(n=1000, m=50) == 408000
    printed = str(names["found"])
    shown = re.search(r"^```(?:text)?\n(grad of.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert shown is not None
    for row in shown[1].splitlines():
        assert row.strip(" .").removesuffix("read by") in printed
    assert Path("nested.html").stat().st_size > 10_000


def test_public_name() -> None:
    assert irgrad.engine.explain is explain
    assert "explain" in irgrad.engine.__all__


def test_regions_of_openmp_are_told_with_their_threads() -> None:
    source = """double f(const double *x, long n) {
  double s = 0;
#pragma omp parallel for reduction(+:s)
  for (long i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
double g(double x) { return x * x; }
"""
    library = irgrad.load(source, flags=["-fopenmp"])
    report = irgrad.explain(library.kernel("f", "f64(f64[n] x, i64 n)"), lanes=False)
    assert report.one_thread == (3,)
    assert "OpenMP: one thread runs the parallel regions at lines 3" in str(report)
    assert "one thread runs the parallel regions at lines 3" in report.to_html()
    assert irgrad.explain(library.kernel("g"), lanes=False).one_thread == ()


def test_the_tape_by_line_adds_up_and_is_drawn() -> None:
    import matplotlib

    matplotlib.use("Agg")
    source = """
    #include <math.h>
    double f(double x, long n, long m) {
        for (long t = 0; t < m; t++)
            for (long i = 0; i < n; i++)
                x = sin(x) + exp(-x * x);
        return x;
    }
    """
    found = explain(load(source).kernel("f", "f64(f64 x, i64 n, i64 m)"), lanes=False)
    lines = found.tape_by_line(n=30, m=20)
    assert lines and sum(lines.values()) == found.tape_bytes(n=30, m=20)
    (bars,) = found.plot(n=30, m=20).containers
    assert [bar.get_width() * 1e6 for bar in bars] == pytest.approx(list(lines.values()))


def test_time_by_line_is_where_the_work_is_and_is_drawn() -> None:
    import matplotlib

    matplotlib.use("Agg")
    source = """#include <math.h>
double f(const double *x, long n, long m) {
    double s = 0, p = 1;
    for (long t = 0; t < m; t++)
        for (long i = 0; i < n; i++) s = sin(s + x[i]);
    for (long t = 0; t < 9 * m; t++)
        for (long i = 0; i < n; i++) p = cos(p * x[i]);
    return s + p;
}
"""
    found = explain(load(source).kernel("f", "f64(f64[n] x, i64 n, i64 m)"), lanes=False)
    args = (np.ones(200), 300)
    times = found.time_by_line(*args, seconds=0.5)
    first, second = (sum(times.get(f"line {n}", 0) for n in rows) for rows in ((4, 5), (6, 7)))
    assert set(times) <= {f"line {n}" for n in range(4, 8)} and second > 3 * first > 0
    ax = found.plot(args=args)
    assert len(ax.containers[0]) == len(ax.get_yticks()) and ax.get_xlim()[1] > 0.4
    with pytest.raises(irgrad.IRGradError, match="another device"):
        explain(load(source).kernel("f", "f64(f64[n] x, i64 n, i64 m)"), target="sm_90").time_by_line(*args)
