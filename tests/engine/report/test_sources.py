"""Where the source texts come from: files, strings, the library."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from explained import SOURCE, kernel

from irgrad.engine import explain
from irgrad.engine.report.facts import Place
from irgrad.engine.report.sources import source_texts
from irgrad.interop.loaders import load

TEXT = "double half(double x);\ndouble f(double x) {\n    return half(x) * x;\n}\n"


def test_a_string_is_known() -> None:
    (found,) = explain(kernel("nested"), lanes=False).sources
    assert found.name == "<string>"
    assert list(found.lines) == SOURCE.splitlines()
    copied = pickle.loads(pickle.dumps(kernel("nested")))
    assert explain(copied, lanes=False).sources == (found,)


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("half.h").write_text("static inline double half(double x) { return 0.5 * x; }\n")
    Path("f.c").write_text('#include "half.h"\ndouble f(double x) {\n    return half(x) * x;\n}\n')
    f = load("f.c").kernel("f")
    found = {source.name: source.lines for source in explain(f, lanes=False).sources}
    assert {Path(name).name for name in found} == {"f.c", "half.h"}
    Path("f.c").unlink()
    assert {Path(source.name).name for source in explain(f, lanes=False).sources} == {"half.h"}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    places = [Place("no/such/file.c", 3), Place(str(tmp_path), 1), Place(), Place("<string>", 2)]
    assert [source.name for source in source_texts(kernel("nested"), places)] == ["<string>"]


def test_of_several_strings_none_is_known() -> None:
    f = load([TEXT, "double half(double x) {\n    return 0.5 * x;\n}\n"]).kernel("f")
    assert explain(f, lanes=False).sources == ()
