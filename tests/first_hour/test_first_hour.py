"""What a new user does in the first hour: each script was written from the page that it names, and runs."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from irgrad.rules import layer

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
TASKS = sorted(file.stem for file in HERE.glob("*.py") if not file.stem.startswith(("test_", "wrong_uses")))
_HEAD = re.compile(r"Page: (?P<page>[\w-]+\.md)#(?P<anchor>[\w-]+); lines: (?P<lines>\d+)\.$")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a user, whose `irgrad` is the one under test."""
    command = tmp_path / "bin" / "irgrad"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m irgrad.interop.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(command.parent), os.environ.get("PATH", "")]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_enough() -> None:
    assert len(TASKS) >= 9  # with the Makefile and the CMake target below


@pytest.mark.parametrize("task", TASKS)
def test_task(task: str, folder: Path) -> None:
    with layer(task):  # its rules end with it
        runpy.run_path(str(HERE / f"{task}.py"), run_name="__main__")


@pytest.mark.parametrize("task", TASKS)
def test_the_page_that_leads_there(task: str) -> None:
    text = (HERE / f"{task}.py").read_text(encoding="utf-8")
    match = _HEAD.search((ast.get_docstring(ast.parse(text)) or "").replace("\n", " "))
    assert match, "the first line names page and lines"
    titles = re.findall(r"^#+ (.*)$", (DOCS / match["page"]).read_text(encoding="utf-8"), re.M)
    assert match["anchor"] in {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
    body = text.split('"""\n', 1)[1]
    count = sum(bool(line.strip()) for line in body.splitlines())
    assert int(match["lines"]) == count, f"lines: {count}"


SOURCE = """double f(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
"""
MAIN = """#include "f_grad.h"
int main(void) { double x[2] = {1, 2}, g[2] = {0}; return f_grad(x, g, 2) != 5 || g[1] != 4; }
"""
TARGETS = {
    "make": ("Makefile", """prog: main.c f.c
\tirgrad grad f.c f --sig "f64(f64[n] x, i64 n)" --wrt x -o f_grad.o
\tirgrad cc -O2 main.c f_grad.o -lm -o $@
""", ["make", "-s"], "./prog"),
    "cmake": ("CMakeLists.txt", """cmake_minimum_required(VERSION 3.16)
project(prog C)
add_custom_command(OUTPUT f_grad.o f_grad.h DEPENDS f.c
  COMMAND irgrad grad ${CMAKE_SOURCE_DIR}/f.c f --sig "f64(f64[n] x, i64 n)" --wrt x -o f_grad.o VERBATIM)
add_executable(prog main.c ${CMAKE_BINARY_DIR}/f_grad.o)
target_include_directories(prog PRIVATE ${CMAKE_BINARY_DIR})
target_link_libraries(prog m)
""", ["sh", "-c", "cmake -S . -B build && cmake --build build"], "build/prog"),
}  # fmt: skip


@pytest.mark.parametrize("tool", TARGETS)
def test_a_target_of_a_build(tool: str, folder: Path) -> None:
    """Page: builds.md."""
    name, text, command, program = TARGETS[tool]
    for file, content in ((name, text), ("f.c", SOURCE), ("main.c", MAIN)):
        (folder / file).write_text(content, encoding="utf-8")
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([program], check=True)
