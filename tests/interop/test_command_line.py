"""Command lines as people and build systems write them, taken apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.interop.command_line import Source, read_command
from irgrad.rules.errors import LoadError


def test_options_and_files_in_any_order() -> None:
    command = read_command(["-O2", "a.c", "-I", "inc", "-lm", "b.cpp", "-DN=3", "-o", "x", "--", "-v", "--"], run=True)
    assert command.sources == [Source("a.c", "c"), Source("b.cpp", "c++")]
    assert command.flags == ["-I", "inc", "-DN=3"]
    assert (command.link, command.opt, command.output, command.args) == (["-lm"], "O2", "x", ["-v", "--"])
    assert command.cpp


@pytest.mark.parametrize(("words", "flags"), [
    ("-isystem inc -include a.h -D X -U Y -Xclang -foo -mllvm -bar", None),
    ("-Wall -Wextra -ffast-math -mavx2 -fPIC -fno-exceptions -I.. -w", None),
    ("-g -ggdb3 -gdwarf-4 -pipe -Wa,-x -save-temps", ""),
    ("-fopenmp", None), ("-fopenmp=libomp", "-fopenmp"), ("-fopenmp-simd", None), ("-pthread", None),
    ("--param x=3 -idirafter d -iquote q -march=native", None),
])  # fmt: skip
def test_flags_for_the_compiler(words: str, flags: str | None) -> None:
    assert read_command([*words.split(), "a.c"]).flags == (words if flags is None else flags).split()


@pytest.mark.parametrize(("words", "link"), [
    ("-L dir -l m -Wl,-rpath,/x -static a.o lib.a libz.so.1", "-Ldir -lm -Wl,-rpath,/x -static a.o lib.a libz.so.1"),
    ("-Xlinker -z -Xlinker now -z defs -u main -rdynamic -s -no-pie", None),
    ("-nostdlib -fuse-ld=lld -static-libgcc -T script start.S", None),
])  # fmt: skip
def test_words_for_the_linker(words: str, link: str | None) -> None:
    assert read_command([*words.split(), "a.c"]).link == (words if link is None else link).split()


@pytest.mark.parametrize(("words", "form"), [
    ("-c", ".o"), ("-S", ".s"), ("-shared", ".so"), ("", ""), ("-S -emit-llvm", ".ll"), ("-emit-llvm -S", ".ll"),
    ("-c -emit-llvm", ".bc"), ("-emit-llvm -c", ".bc"), ("-c -fPIC -shared", ".so"),
])  # fmt: skip
def test_what_is_written(words: str, form: str) -> None:
    assert read_command([*words.split(), "a.c"]).form == form


@pytest.mark.parametrize(("words", "opt"), [
    ("-O", "O1"), ("-O0", "O0"), ("-O1 -O3", "O3"), ("-Os", "Os"), ("-Og", "O1"), ("-Ofast", "Ofast"), ("", None),
])  # fmt: skip
def test_levels(words: str, opt: str | None) -> None:
    assert read_command([*words.split(), "a.c"]).opt == opt


def test_the_language_is_that_of_the_suffix_or_of_x() -> None:
    command = read_command("a.C b.ll c.bc -x c++ d.c e -x none f.c".split())
    assert [source.language for source in command.sources] == ["c++", "ll", "bc", "c++", "c++", "c"]
    command = read_command("-xc -".split())
    assert command.sources == [Source("-", "c")]
    with pytest.raises(LoadError, match="language of standard input"):
        read_command(["-"])
    with pytest.raises(LoadError, match="-x fortran"):
        read_command(["-x", "fortran", "a.f"])
    with pytest.raises(LoadError, match="-x fortran-header"):
        read_command(["-x", "fortran-header", "a.h"])


def test_headers_are_precompiled() -> None:
    for words, language in (("-x c++-header a.h", "c++"), ("-xc-header a.txt", "c"), ("a.hpp", "c++"), ("-c a.h", "c")):
        command = read_command(words.split())
        assert command.header
        assert [source.language for source in command.sources] == [language]
    assert not read_command("-x c++ a.h -x none b.c".split()).header


def test_a_standard_is_for_its_language_only() -> None:
    command = read_command("-std=c++17 -std=c11 -fno-rtti -Wall a.c b.cpp".split())
    assert command.flags_for("c") == ["-std=c11", "-Wall"]
    assert command.flags_for("c++") == ["-std=c++17", "-fno-rtti", "-Wall"]


def test_code_is_for_every_cpu_unless_one_is_named() -> None:
    assert read_command(["a.c"]).cpu == ""
    assert read_command(["-march=native", "a.c"]).cpu == "native"
    named = read_command(["-march=haswell", "-mno-fma", "-mavx512f", "a.c"])
    assert (named.cpu, named.features) == ("", ["-fma", "+avx512f"]), "the compiler says what haswell is"
    assert read_command(["-m64", "-mcmodel=large", "a.c"]).features == []


@pytest.mark.parametrize("word", [
    "-fprofile-instr-generate", "-fprofile-generate=x", "-fcs-profile-generate", "--coverage", "-fcoverage-mapping",
    "-finstrument-functions", "-fsanitize=address",
])  # fmt: skip
def test_instrumented_programs_are_refused(word: str) -> None:
    with pytest.raises(LoadError, match=f"`{word}` is not supported") as caught:
        read_command([word, "a.c"])
    assert "would be differentiated with the program" in caught.value.because


def test_rules_for_make() -> None:
    command = read_command("-MD -MT x.o -MF x.d -MQ $(y) -MP -c x.c".split())
    assert command.depends == {"-MD": "", "-MT": "x.o", "-MF": "x.d", "-MQ": "$(y)", "-MP": ""}
    assert command.targets == ["x.o", "$$(y)"]
    assert command.flags == []
    assert read_command(["-Wp,-MMD,deps/x.d", "x.c"]).depends == {"-MMD": "", "-MF": "deps/x.d"}


@pytest.mark.parametrize("words", [
    "--version", "-dumpmachine", "-v", "-print-search-dirs", "-E a.c", "-M a.c", "-E -x c -", "-### a.c",
])  # fmt: skip
def test_questions_that_the_compiler_answers(words: str) -> None:
    command = read_command(words.split())
    assert command.question
    assert command.words == words.split()


def test_v_with_a_file_is_no_question() -> None:
    assert not read_command(["-v", "a.c"]).question


def test_response_files(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text('-I "a b"\n-lm')
    outer.write_text(f"a.c @{inner} -O2")
    command = read_command([f"@{outer}", "@missing"])
    assert command.flags == ["-I", "a b"]
    assert (command.link, command.opt) == (["-lm", "@missing"], "O2")


def test_files_behind_two_dashes_for_cc() -> None:
    command = read_command(["-c", "--", "-odd.c"])
    assert command.sources == [Source("-odd.c", "c")]


def test_objects_of_bitcode_are_sources(tmp_path: Path) -> None:
    bitcode, machine = tmp_path / "a.o", tmp_path / "b.o"
    bitcode.write_bytes(b"BC\xc0\xde....")
    machine.write_bytes(b"\x7fELF....")
    command = read_command([str(bitcode), str(machine)])
    assert command.sources == [Source(str(bitcode), "bc")]
    assert command.link == [str(machine)]


def test_sanitizers_are_refused() -> None:
    with pytest.raises(LoadError, match="-fsanitize=address"):
        read_command(["-fsanitize=address", "a.c"])


def test_nothing_to_do() -> None:
    with pytest.raises(LoadError, match="no source file"):
        read_command(["-O2"])


def test_rules_are_kept_apart() -> None:
    command = read_command(["--rules", "mine.py", "a.c", "--rules", "package.rules"])
    assert command.rules == ["mine.py", "package.rules"]
    assert not command.flags


def test_memory_of_tapes() -> None:
    command = read_command(["--tape-memory=64MB", "f.c", "--checkpoint=src/solve.c:41=binomial:8", "--checkpoint=7=32"])
    assert command.tape_memory == "64MB"
    assert command.checkpoint == [("src/solve.c:41", "binomial:8"), ("7", "32")]
    assert not command.flags


def test_optimising_first_can_be_left_out() -> None:
    assert read_command(["f.c"]).preopt
    assert not read_command(["-O2", "--no-preopt", "f.c"]).preopt
