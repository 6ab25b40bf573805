"""The large program: it compiles and is right, and irgrad reads only what its derivative reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.large_program import LINES_OF_A_PART, ir_lines, program
from irgrad.engine.ir.text import body
from irgrad.interop.cli import main

pytestmark = pytest.mark.long


def test_only_what_is_differentiated_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    own = body.BodyReader.read
    monkeypatch.setattr(body.BodyReader, "read", lambda self: (read.append(self.function.name), own(self)))
    counts = []
    for parts in (1, 8):
        read.clear()
        source = tmp_path / f"large{parts}.c"
        source.write_text(program(parts))
        assert main(["run", "-O2", str(source)]) == 0
        assert not [name for name in read if name.startswith(("mix", "parse"))]
        counts.append(len(read))
    assert counts[0] == counts[1] > 0


def test_the_lines_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "large.c"
    source.write_text(program(6))
    assert 0.7 < ir_lines(source, "-O2") / (6 * LINES_OF_A_PART) < 1.5
