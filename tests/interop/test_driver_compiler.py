"""`irgrad cc` where a build system takes it for the compiler: assembly, probes, databases, odd names, closed output."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from shares import fast

from irgrad.interop.cli import main
from irgrad.interop.command_line import Source, read_command
from irgrad.interop.driver import _compilation, main_cc
from irgrad.interop.loaders.compiler import find_compiler, zig_words
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


OPTIONS = (
    "-mavx2 -mfma -mavx -msse4.2 -msse3 -mavx512f -mno-sse3 -mpopcnt -mbmi2 -mf16c -march=haswell -march=x86-64 "
    "-march=x86-64-v2 -march=x86-64-v3 -march=x86-64-v4 -mtune=generic -ffast-math -ffinite-math-only "
    "-funsafe-math-optimizations -fsigned-char -funsigned-char -fshort-enums -fshort-wchar -fPIC -fPIE "
    "-fexceptions -ffreestanding -fopenmp-simd -fstack-protector-all -fgnu89-inline -O1 -O2 -O3 -Os -Oz -g -Wall "
    "-std=c99 -std=gnu17 -ansi -m64 -mcmodel=large -mlong-double-64 -DNDEBUG -pthread -fpack-struct=1"
).split()
NAMES = """__AVX__ __AVX2__ __FMA__ __SSE3__ __SSE4_2__ __AVX512F__ __POPCNT__ __BMI2__ __F16C__ __FAST_MATH__
__FINITE_MATH_ONLY__ __CHAR_UNSIGNED__ __PIC__ __PIE__ __EXCEPTIONS __STDC_HOSTED__ __GNUC_GNU_INLINE__ __OPTIMIZE__
__OPTIMIZE_SIZE__ __STRICT_ANSI__ __code_model_large__ NDEBUG _REENTRANT __SSP_ALL__ __STDC_VERSION__
__SIZEOF_WCHAR_T__ __SIZEOF_LONG_DOUBLE__""".split()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="options of x86-64")
@pytest.mark.parametrize("option", fast(8, OPTIONS))
def test_an_option_means_what_it_means_to_the_compiler(option: str, folder: Path) -> None:
    """The macros that the option predefines are those that the compiler prints, asked at once."""
    compiler = find_compiler()
    words = zig_words([option], "c") if compiler.zig else [option]
    level = [] if option.startswith("-O") else ["-O2"]
    (folder / "a.c").write_text("")
    asked = [*compiler.command["c"], *compiler.flags, *level, "-UNDEBUG", *words, "-E", "-dM", "a.c"]
    rows = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()
    told = dict(row.split(maxsplit=2)[1:] for row in rows if len(row.split(maxsplit=2)) == 3)
    checks = [f"#if !defined({name}) || ({name}) != ({told[name]})" if told.get(name) else f"#ifdef {name}"
              for name in NAMES]  # fmt: skip
    source = "".join(f"{check}\n#error {name}\n#endif\n" for check, name in zip(checks, NAMES, strict=True))
    (folder / "a.c").write_text(source)
    _compilation(read_command([option, "-c", "a.c"]), Source("a.c", "c"))


CODE = """#include <math.h>
extern int shared; int own;
double axpy(double *restrict y, const double *restrict x, double a, int n) {
  for (int i = 0; i < n; i++) y[i] += a * x[i];
  return y[0];
}
double sum(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
double root(double x) { return sqrt(x); }
double down(double x) { return floor(x); }
int ones(unsigned long x) { return __builtin_popcountl(x); }
int get(void) { return shared + own; }
int less(char c) { return c < 0; }
int same(double x) { return x == x; }
void take(char *);
void frame(int n) { char local[64]; take(local); }
"""
_BODY = r"(?:.*\n)*?.*"
PARTS = {
    "256 bits": r"%ymm", "512 bits": r"%zmm", "multiply and add": r"vfmadd", "three operands": r"\bvadd",
    "population count": r"\bpopcnt", "rounding": r"\bv?roundsd", "floor by call": r"(?:call|jmp)q?\s+floor",
    "a sum in another order": rf"\nsum:{_BODY}v?addpd{_BODY}size\s+sum", "global offsets": r"GOTPCREL",
    "a guard": r"__stack_chk_fail", "a NaN is compared": rf"\nsame:{_BODY}cmp{_BODY}size\s+same",
    "marks of branch targets": r"endbr64",
}
"""What options change in code, as patterns of assembly."""
CHANGES = (
    "-O1 -O3 -Os -mavx -mavx2 -mfma -msse4.1 -mpopcnt -mavx512f -march=haswell -march=x86-64-v2 -march=x86-64-v3 "
    "-march=x86-64-v4 -ffast-math -fassociative-math -ffinite-math-only -funsigned-char -fPIC -fstack-protector-all "
    "-fno-vectorize -fno-unroll-loops -fno-builtin -fcf-protection -ffp-contract=off -mprefer-vector-width=128 -mno-avx"
).split()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="options of x86-64")
@pytest.mark.parametrize("option", fast(3, CHANGES))
def test_an_option_changes_code_as_in_the_compiler(option: str, folder: Path) -> None:
    """Which kinds of instructions stand in the assembly, against the bundled compiler's own."""
    compiler = find_compiler()
    level = [] if option.startswith("-O") else ["-O2"]
    (folder / "a.c").write_text(CODE)
    words = zig_words([option], "c") if compiler.zig else [option]
    own = ["-fno-math-errno", "-fno-stack-protector"]  # of irgrad, and not of zig
    asked = [*compiler.command["c"], *compiler.flags, *level, *own, *words, "-S", "a.c", "-o", "theirs.s"]
    subprocess.run(asked, check=True, capture_output=True)
    assert main(["cc", *level, option, "-S", "a.c", "-o", "ours.s"]) == 0
    ours, theirs = Path("ours.s").read_text(), Path("theirs.s").read_text()
    found = [{part for part, words in PARTS.items() if re.search(words, text)} for text in (ours, theirs)]
    assert found[0] == found[1]



def test_assertions_stay_unless_they_are_switched_off(folder: Path) -> None:
    (folder / "a.c").write_text("#include <assert.h>\nint main(void) { assert(0); return 3; }\n")
    assert main(["run", "-O2", "a.c"]) == 128 + signal.SIGABRT
    assert main(["run", "-O2", "-DNDEBUG", "a.c"]) == 3


@pytest.mark.parametrize("option", ["-pg", "-p", "-mfentry", "-finstrument-functions", "-fsanitize=address"])
def test_instrumented_code_is_refused_by_name(option: str) -> None:
    with pytest.raises(LoadError, match=f"`{option}` is not supported"):
        read_command([option, "a.c"])


@pytest.mark.skipif(shutil.which("ar") is None, reason="archives are made by ar")
def test_main_in_an_archive_of_flto_objects(folder: Path) -> None:
    (folder / "p.c").write_text(PROGRAM)
    assert main_cc(["-c", "-flto", "p.c"]) == 0
    subprocess.run(["ar", "rcs", "libp.a", "p.o"], check=True, capture_output=True)
    assert main_cc(["-flto", "libp.a", "-o", "m"]) == 0
    assert subprocess.run(["./m"], check=False).returncode == 6


def _run(program: str) -> int:
    return subprocess.run([f"./{program}"], check=False).returncode


@pytest.mark.skipif(shutil.which("ar") is None, reason="archives are made by ar")
def test_whole_archives(folder: Path) -> None:
    """Members that nothing names are taken, of bitcode and of machine code, derivatives in them too."""
    (folder / "p.c").write_text("extern double total __attribute__((weak)); int other(void) __attribute__((weak));\n"
                                "int main(void) { return (&total ? (int)total : 0) + (other ? other() : 0); }\n")
    (folder / "r.c").write_text("double total; double __enzyme_autodiff(void *, double);\n"
                                "static double f(double x) { return x * x; }\n"
                                "__attribute__((constructor)) static void add(void) {"
                                " total += __enzyme_autodiff((void *)f, 3.0); }\n")  # fmt: skip
    (folder / "o.c").write_text("int other(void) { return 10; }\n")
    assert main_cc(["-c", "-flto", "r.c"]) == 0
    assert main_cc(["-c", "o.c"]) == 0
    subprocess.run(["ar", "rcs", "libr.a", "r.o", "o.o"], check=True, capture_output=True)
    whole, end = "-Wl,--whole-archive", "-Wl,--no-whole-archive"
    state = ["-Wl,--push-state", end, "libr.a", "-Wl,--pop-state"]
    for words in (["libr.a"], [whole, end, "libr.a"], [whole, *state, end]):
        assert main_cc(["p.c", *words, "-o", "plain"]) == 0
        assert _run("plain") == 0
    assert main_cc(["-c", "p.c"]) == 0
    for words in ([whole, "libr.a", end], ["-Wl,--whole-archive,libr.a,--no-whole-archive"],
                  ["-L.", "-Wl,--push-state,--whole-archive", "-lr", "-Wl,--pop-state"]):  # fmt: skip
        for first in ("p.c", "p.o"):
            assert main_cc([first, *words, "-o", "all"]) == 0
            assert _run("all") == 16
    assert main_cc(["-shared", whole, "libr.a", end, "-o", "libs.so"]) == 0
    assert main_cc(["p.c", "-L.", "-Wl,--no-as-needed", "-ls", "-Wl,-rpath,.", "-o", "shared"]) == 0
    assert _run("shared") == 16


@pytest.mark.parametrize("language", ["c", "c++"])
def test_precompiled_headers(language: str, folder: Path) -> None:
    """Found beside the header, or named; a header that changes is seen, also through the cache."""
    suffix = {"c": "c", "c++": "cpp"}[language]
    header = "double __enzyme_autodiff(void *, double);\nstatic double f(double x) { return %s; }\n"
    (folder / "own.h").write_text("#pragma once\n#include <math.h>\n" + header % "x * x")
    (folder / f"p.{suffix}").write_text("int main(void) { return (int)__enzyme_autodiff((void *)f, 3.0); }\n")
    make = ["-x", f"{language}-header", "own.h"]
    assert main_cc([*make, "-o", "own.h.pch", "-MD", "-MT", "own.h.pch", "-MF", "own.d"]) == 0
    rule = Path("own.d").read_text()
    assert rule.startswith("own.h.pch: own.h ") and "math.h" in rule
    for words in (["-include", "own.h"], ["-Xclang", "-include-pch", "-Xclang", "own.h.pch"]):
        assert main_cc([*words, f"p.{suffix}", "-o", "p"]) == 0
        assert _run("p") == 6
    (folder / "own.h").write_text("#pragma once\n#include <math.h>\n" + header % "x * x * x")
    assert main_cc([*make, "-Xclang", "-emit-pch", "-o", "own.h.pch"]) == 0
    named = ["-Xclang", "-include-pch", "-Xclang", "own.h.pch"]
    assert main_cc([*named, f"p.{suffix}", "-MD", "-MF", "p.d", "-o", "p"]) == 0
    assert _run("p") == 27
    assert "own.h.pch" in Path("p.d").read_text()
    assert main_cc(make) == 0
    assert (folder / "own.h.gch").is_file()
    with pytest.raises(LoadError, match="headers are not linked"):
        main_cc(["own.h", "p.o", "-o", "p"])
    (folder / "bad.h").write_text("int f(;\n")
    with pytest.raises(CompileError, match=r"`bad.h` does not compile(.|\n)*bad.h:1:7: error: expected"):
        main_cc(["-x", f"{language}-header", "bad.h"])
