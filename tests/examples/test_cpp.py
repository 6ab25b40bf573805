"""The programs of examples/cpp, which check themselves: at the compiler's levels, with both C++ libraries.

By default every program runs at one level and the small ones at all of them; `--slow` runs everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.interop.cli import main
from irgrad.interop.loaders.compiler import libstdcxx_headers

pytestmark = pytest.mark.long

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cpp"
PROGRAMS = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".c", ".cpp"))
LEVELS = ("-O0", "-O1", "-O2", "-O3")
LIBCXX_ONLY = ("orbit.cpp",)  # libstdc++'s std::function copies what a lambda captures as bytes
SMALL = ("checkpoints.c", "kinetics.cpp", "newton.cpp", "line_search.cpp")


def _both(name: str) -> bool:
    return name.endswith(".cpp") and name not in LIBCXX_ONLY


def _all() -> list[object]:
    """Level, library and program; what does not run by default is marked slow."""
    rows = []
    for number, name in enumerate(PROGRAMS):
        for at, level in enumerate(LEVELS):
            for library in ("libc++", "libstdc++") if _both(name) else ("libc++",):
                usual = number % 4 == at and library == ("libstdc++" if number % 3 == 0 and _both(name) else "libc++")
                quick = usual or (name in SMALL and library == "libc++")
                rows.append(pytest.param(level, library, name, marks=() if quick else pytest.mark.slow))
    return rows


@pytest.mark.parametrize(("level", "library", "name"), _all())
def test_program(level: str, library: str, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    if library == "libstdc++" and not libstdcxx_headers():
        pytest.skip("libstdc++ is not installed: no headers below /usr/include/c++")
    status = main(["run", level, f"-stdlib={library}", str(FOLDER / name)])
    output = capfd.readouterr()
    assert status == 0, output.out + output.err
    assert output.out == (Path(__file__).parent / "cpp" / name).with_suffix(".txt").read_text()


def test_the_programs_are_many_and_of_a_size_to_read() -> None:
    assert len(PROGRAMS) >= 12
    for name in PROGRAMS:
        lines = (FOLDER / name).read_text().count("\n")
        assert 45 <= lines <= 150, f"{name} has {lines} lines"


def test_a_program_that_finds_a_wrong_number_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = (FOLDER / "newton.cpp").read_text()
    (tmp_path / "check.h").write_text((FOLDER / "check.h").read_text())
    (tmp_path / "newton.cpp").write_text(source.replace("want = -400", "want = -401"))
    assert main(["run", str(tmp_path / "newton.cpp")]) == 1
    assert "WRONG hessian" in capfd.readouterr().out
