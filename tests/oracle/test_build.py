"""Sources and libraries that several processes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle import build


def test_a_source_in_use_is_never_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler of another process has the source mapped: what it mapped stays whole when it is written again."""
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    text = "double f(double x) { return 2 * x; }\n"
    path = build._source("name", text, "c")
    with path.open() as held:
        assert build._source("name", "", "c") == path
        assert held.read() == text
    assert path.read_text() == ""
    assert [file.name for file in path.parent.iterdir()] == ["name.c"]


def test_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    text = "double f(double x) { return 2 * x; }\n"
    ir = build.to_ir(text, "-O1")
    assert "@f(double" in ir
    monkeypatch.setattr(build.subprocess, "run", None)
    assert build.to_ir(text, "-O1") == ir
