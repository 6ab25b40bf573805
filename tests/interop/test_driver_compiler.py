"""`irgrad cc` where a build system takes it for the compiler: assembly, probes, databases, odd names, closed output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from irgrad.interop.cli import main
from irgrad.interop.driver import main_cc
from irgrad.rules.errors import CompileError, LoadError

PROGRAM = """double __enzyme_autodiff(void *, double);
static double f(double x) { return x * x; }
int main(void) { return (int)__enzyme_autodiff((void *)f, 3.0); }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_linker_answers_a_probe(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main_cc(["-Wl,--version"]) == 0
    assert "LD" in capfd.readouterr().out.upper()
    assert not (folder / "a.out").exists()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="assembly of x86-64")
def test_assembly_is_assembled(folder: Path) -> None:
    (folder / "two.S").write_text(".globl two\ntwo: movl $VALUE, %eax\n ret\n")
    (folder / "p.c").write_text("int two(void);\nint main(void) { return two(); }\n")
    assert main(["cc", "-c", "-DVALUE=2", "two.S"]) == 0
    assert (folder / "two.o").read_bytes()[:4] == b"\x7fELF"
    assert main(["run", "-DVALUE=5", "p.c", "two.S"]) == 5
    (folder / "two.S").write_text("no such instruction\n")
    with pytest.raises(CompileError, match="does not assemble"):
        main_cc(["-c", "two.S"])


def test_one_output_for_several_objects_is_refused(folder: Path) -> None:
    (folder / "a.c").write_text("int a;\n")
    (folder / "b.c").write_text("int b;\n")
    with pytest.raises(LoadError, match="one output is named for several files"):
        main_cc(["-c", "a.c", "b.c", "-o", "x.o"])
    assert main_cc(["-c", "a.c", "b.c"]) == 0
    assert (folder / "a.o").exists() and (folder / "b.o").exists()


def test_rows_of_a_compilation_database(folder: Path) -> None:
    (folder / "a.c").write_text("int a;\n")
    assert main_cc(["-c", "a.c", "-DN=1", "-MD", "-MF", "a.d", "-MJ", "a.json", "-o", "a.o"]) == 0
    row = json.loads((folder / "a.json").read_text().rstrip(",\n"))
    assert (row["directory"], row["file"], row["output"]) == (str(folder), "a.c", "a.o")
    assert row["arguments"] == ["clang", "-xc", "a.c", "-o", "a.o", "-c", "-DN=1"]


def test_a_name_that_begins_with_a_dash(folder: Path) -> None:
    (folder / "-p.c").write_text(PROGRAM)
    assert main(["run", "./-p.c"]) == 6


def test_standard_output_is_closed(folder: Path) -> None:
    (folder / "p.c").write_text(PROGRAM)
    words = f"{sys.executable} -m irgrad.interop.cli run p.c >&-"
    done = subprocess.run(words, shell=True, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (6, b"")
