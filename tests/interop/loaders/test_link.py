"""Reading and linking IR: damaged, foreign and conflicting inputs are LoadErrors."""

from __future__ import annotations

import os
import re
import string
from pathlib import Path

import pytest

import irgrad as ig
from irgrad.interop.loaders import link, load
from irgrad.interop.loaders.link import link_inputs, read_bitcode, read_text
from irgrad.rules.errors import LoadError

F = "define double @f(double %x) {\n  ret double %x\n}\n"
G = "declare double @f(double)\ndefine double @g(double %x) {\n  %r = call double @f(double %x)\n  ret double %r\n}\n"


def _bitcode(tmp_path: Path) -> Path:
    from irgrad.engine.codegen.llvm import parse

    path = tmp_path / "f.bc"
    path.write_bytes(parse(F).as_bitcode())
    return path


def test_one_module_is_returned_as_llvm_prints_it() -> None:
    assert F in link_inputs([F], ["f.ll"])
    assert F in link_inputs([F.replace("define double", "  define   double").replace("x) {", "x ) { ; one")], ["f.ll"])


@pytest.mark.parametrize("text", [
    "define double @f(double %x) { %y = fmul double %x, %x\n ret double %y }\n",
    "  define   double @f( double %x )   ; comment\n{\nentry: %y = fmul double %x, %x ; square\n ret double %y\n}\n",
    "define double @f(double %x) { %c = fcmp ogt double %x, 0.0 br i1 %c, label %a, label %b a: %y = fmul double "
    "%x, %x ret double %y b: ret double 0.0 }\n",
    "declare double @llvm.powi.f64.i32(\n double, i32)\ndefine double @f(double %x) {\n %y = call\n double "
    "@llvm.powi.f64.i32(double\n %x, i32 2)\n ret double %y\n}\n",
])  # fmt: skip
def test_text_of_any_layout_is_read(text: str) -> None:
    assert ig.engine.grad(load(text, language="ll").kernel("f"))(1.5) == 3.0


@pytest.mark.parametrize(("text", "words"), [
    ("define double @f(double %x) {\n  %y = fmul double %x, %x\n  ret double %z\n}\n",
     ["line 3", "`%z`", "LLVM says of line 3: use of undefined value '%z'"]),
    ("define double @f(double %x) { %y = fmul double %x, %x\n ret double %z }\n", ["LLVM says of line 2"]),
])  # fmt: skip
def test_what_nobody_reads_is_told_with_its_line(text: str, words: list[str]) -> None:
    with pytest.raises(LoadError) as caught:
        load(text, language="ll")
    for word in words:
        assert word in str(caught.value)


def test_modules_are_linked() -> None:
    text = link_inputs([F, G], ["f.ll", "g.ll"])
    assert "define double @f" in text
    assert "define double @g" in text
    assert "declare" not in text


def test_many_modules_are_linked_in_their_order() -> None:
    """Of weak definitions the first one counts, arrays of all modules stand in their order."""
    kind = "{ i32, ptr, ptr }"
    ctors = f"@llvm.global_ctors = appending global [1 x {kind}] [{kind} {{ i32 N, ptr @fN, ptr null }}]"
    parts = [f"""{ctors}
define weak i32 @which() {{
  ret i32 N
}}
define internal void @own() {{
  ret void
}}
define void @fN() {{
  call void @own()
  ret void
}}
""".replace("N", str(number)) for number in range(1, 8)]
    text = link_inputs(parts, [f"{number}.ll" for number in range(1, 8)])
    assert "ret i32 1" in text and text.count("@which()") == 1
    assert re.findall(r"i32 (\d), ptr @f", text) == list("1234567")
    assert len(set(re.findall(r"define internal void (@\S+)\(", text))) == 7


def test_what_was_linked_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [F.replace("@f", "@once"), G.replace("@f", "@once")], ["f.ll", "g.ll"]
    text = link_inputs(*parts)
    monkeypatch.setattr(link, "_linked", None)
    assert link_inputs(*parts) == text
    with pytest.raises(TypeError):
        link_inputs([*parts[0], "define void @h() {\n  ret void\n}\n"], [*parts[1], "h.ll"])


def test_the_module_that_defines_something_again_is_named() -> None:
    rows = [f"define void @f{number % 5}() {{\n  ret void\n}}\n" for number in range(7)]
    with pytest.raises(LoadError, match=r"`5\.ll` cannot be linked with `0\.ll`(.*\n)+.*'f0': symbol multiply"):
        link_inputs(rows, [f"{number}.ll" for number in range(7)])
    with pytest.raises(LoadError, match=r"`a\.ll` is loaded twice"):
        link_inputs([G, F, F], ["g.ll", "a.ll", "a.ll"])


def test_two_definitions_of_one_symbol() -> None:
    with pytest.raises(LoadError, match=r"`b\.ll` cannot be linked with `a\.ll`(.*\n)+.*'f': symbol multiply defined"):
        link_inputs([F, F], ["a.ll", "b.ll"])


def test_text_that_is_no_ir() -> None:
    with pytest.raises(LoadError, match=r"`a\.ll`(.*\n)+.*`this` where a top-level entity was expected"):
        link_inputs(["this is no IR\n"], ["a.ll"])
    with pytest.raises(LoadError, match=r"does not dominate|is not valid"):
        cycle = "%y = fadd double %z, 1.0\n  %z = fadd double %y, 1.0\n  ret double %z"
        link_inputs([F.replace("ret double %x", cycle)], ["a.ll"])


def test_ir_of_a_newer_llvm() -> None:
    newer = F.replace("define double", "define attribute_of_the_future double")
    with pytest.raises(LoadError, match=r"IR of LLVM 22(.*\n)+.*newer LLVM"):
        link_inputs([newer], ["newer.ll"])


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.ll"
    path.write_bytes(b"define void @f() { ret void }\n\0garbage")
    with pytest.raises(LoadError, match="contains a NUL byte"):
        read_text(path)
    path.write_bytes(b"; \xff\xfe\n")
    with pytest.raises(LoadError, match="is not LLVM IR text"):
        read_text(path)
    path.write_text(F)
    with pytest.raises(LoadError, match="is not bitcode"):
        read_bitcode(path)
    assert read_text(path) == F


def test_bitcode_in_a_file_named_ll(tmp_path: Path) -> None:
    path = tmp_path / "f.ll"
    path.write_bytes(_bitcode(tmp_path).read_bytes())
    assert load(path).functions() == ("f",)


def test_damaged_bitcode(tmp_path: Path) -> None:
    path = _bitcode(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 // 4 * 4])
    with pytest.raises(LoadError, match=r"f\.bc`"):
        read_bitcode(path)


def test_bitcode_of_a_newer_llvm_is_named(tmp_path: Path) -> None:
    from irgrad.interop.loaders import link

    path = _bitcode(tmp_path)
    data = path.read_bytes()
    assert link._bitcode_producers(data) == ["22"]
    # Search for the one bit whose flip makes the version 2x of another tens digit: 22 -> 62.
    digits = string.ascii_lowercase + string.ascii_uppercase + string.digits
    flip = digits.index("2") ^ digits.index("6")
    for at in range(8 * 200):
        changed = (int.from_bytes(data, "little") ^ flip << at).to_bytes(len(data), "little")
        if link._bitcode_producers(changed) == ["62"]:
            path.write_bytes(changed)
            break
    with pytest.raises(LoadError, match=r"of a newer LLVM than 22.*\n.*LLVM 62"):
        read_bitcode(path)


@pytest.mark.parametrize(("head", "words"), [
    ('target triple = "i386-pc-linux"\n', "`i386-pc-linux`"),
    ('target datalayout = "e-m:e-p:32:32-i64:64-S128"\n', "addresses of 32 bits"),
    ('target triple = "x86_64-linux-gnux32"\n', "x32"), ('target triple = "nvptx64-nvidia-cuda"\n', "nvptx64"),
])  # fmt: skip
def test_modules_for_another_machine(head: str, words: str) -> None:
    with pytest.raises(LoadError, match="is compiled for another machine") as caught:
        load(head + F, language="ll")
    assert words in str(caught.value) and "-m32" in str(caught.value)


def test_sources_for_another_machine() -> None:
    for flags in (["-m32"], ["-target", "aarch64-linux-gnu" if os.uname().machine == "x86_64" else "x86_64-linux-gnu"]):
        with pytest.raises(LoadError, match="is compiled for another machine"):
            load("double f(const double *x, int n) { return x[n]; }", flags=flags)
    with pytest.raises(LoadError, match="is compiled for another machine"):  # whose headers are missing here
        load("#include <stdlib.h>\ndouble f(const double *x, int n) { return x[n]; }", flags=["-m32"])
