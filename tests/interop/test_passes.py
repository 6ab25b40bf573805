"""`irgrad opt`: which passes there are, what some of them do to a file, and what is refused."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.pipeline.stages import STAGES
from irgrad.interop.passes import listed, optimised
from irgrad.rules.errors import IRGradError

RETURNS = """define double @f(i1 %c, double %x) {
  br i1 %c, label %one, label %two
one:
  ret double 1.0
two:
  ret double %x
}
define double @g(double %x) {
  %y = call double @f(i1 false, double %x)
  ret double %y
}
"""
UNIFY = next(step.name for steps in STAGES.values() for step in steps if "return" in step.name)


def _file(folder: Path, text: str = RETURNS, name: str = "f.ll") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def _returns(text: str, name: str) -> int:
    found = re.search(rf"^define [^\n]*@{name}\(.*?^}}", text, re.M | re.S)
    assert found is not None
    return len(re.findall(r"^  ret ", found[0], re.M))


def test_every_pass_is_listed_under_its_stage() -> None:
    lines = listed().splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(STAGES)
    at = 0
    for stage, passes in STAGES.items():
        assert lines[at] == stage
        for step, line in zip(passes, lines[at + 1 :], strict=False):
            assert line.split(maxsplit=1) == [step.name, step.about]
        at += 1 + len(passes)
    assert at == len(lines)


def test_one_pass_of_a_file_of_ir(tmp_path: Path) -> None:
    text = optimised(_file(tmp_path), UNIFY)
    assert _returns(RETURNS, "f") == 2 and _returns(text, "f") == 1
    assert "@g(" in text


def test_no_pass_is_no_change(tmp_path: Path) -> None:
    assert _returns(optimised(_file(tmp_path), ""), "f") == 2


def test_standard_input_is_ir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(RETURNS))
    assert _returns(optimised("-", UNIFY), "f") == 1


def test_a_file_of_c_is_compiled_first(tmp_path: Path) -> None:
    source = _file(tmp_path, "double f(double x) { return x > 0 ? 2 * x : 3.0; }", "f.c")
    import ctypes

    text = optimised(source, ",".join(STAGES), ["f"])
    found = compile_module(text, ["f"], cache=False).function("f", ctypes.c_double, ctypes.c_double)
    assert (found(4.0), found(-1.0)) == (8.0, 3.0)


def test_names_that_are_no_pass_or_no_function(tmp_path: Path) -> None:
    file = _file(tmp_path)
    with pytest.raises(IRGradError, match="there is no pass `nothing`"):
        optimised(file, "nothing")
    with pytest.raises(IRGradError, match="`h` has no body in this file") as caught:
        optimised(file, UNIFY, ["f", "h"])
    assert caught.value.fix == "one of f, g"


def test_what_is_no_ir_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IRGradError):
        optimised(_file(tmp_path, "define double @f( {\n}\n"), UNIFY)
