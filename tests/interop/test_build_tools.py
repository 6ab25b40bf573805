"""The archiver, its index, and CMake's toolchain file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from irgrad.interop.build_tools import toolchain
from irgrad.interop.cli import main
from irgrad.interop.driver import main_cc

LIBRARY = "double square(double x) { return x * x; }\n"
MAIN = """
double __enzyme_autodiff(void *, ...);
double square(double);
static double twice(double x) { return 2 * square(x); }
int main(void) { return __enzyme_autodiff((void *)twice, 3.0) != 12; }
"""


def _written(folder: Path) -> None:
    (folder / "square.c").write_text(LIBRARY, encoding="utf-8")
    (folder / "main.c").write_text(MAIN, encoding="utf-8")


def test_archives_of_bitcode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _written(tmp_path)
    assert main_cc(["-c", "-flto", "square.c", "-o", "square.o"]) == 0
    assert main(["ar", "qc", "libsquare.a", "square.o"]) == 0 and main(["ranlib", "libsquare.a"]) == 0
    assert main_cc(["main.c", "libsquare.a", "-o", "prog"]) == 0
    assert subprocess.run(["./prog"], check=False).returncode == 0
    assert main(["ar", "t", "nothing.a"]) != 0


def test_the_rule_of_a_link_of_objects_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prog.d` belongs to `prog.c`: after the link of `prog` it still names the headers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.h").write_text("#define PART 1\n", encoding="utf-8")
    (tmp_path / "prog.c").write_text('#include "part.h"\nint main(void) { return PART - 1; }\n', encoding="utf-8")
    assert main_cc(["-MMD", "-c", "-flto", "prog.c", "-o", "prog.o"]) == 0
    rule = (tmp_path / "prog.d").read_text(encoding="utf-8")
    assert "part.h" in rule
    assert main_cc(["-MMD", "-flto", "prog.o", "-o", "prog"]) == 0
    assert (tmp_path / "prog.d").read_text(encoding="utf-8") == rule


@pytest.mark.long
def test_toolchain_file_of_cmake(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    _written(tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\nset(CMAKE_C_FLAGS -flto)\n"
        "add_library(square STATIC square.c)\nadd_executable(prog main.c)\ntarget_link_libraries(prog square)\n",
        encoding="utf-8",
    )
    file = tmp_path / "irgrad.cmake"
    assert main(["cmake-file", "-o", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == toolchain()
    for command in (["cmake", "-S", ".", "-B", "b", f"-DCMAKE_TOOLCHAIN_FILE={file}"], ["cmake", "--build", "b"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.run([tmp_path / "b" / "prog"], check=False).returncode == 0
    assert sys.executable.rpartition("/")[0] in toolchain()
