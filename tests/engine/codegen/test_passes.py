"""Passes are run in order, seen, timed and verified; a module changes its form when a pass asks for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.engine.codegen.passes import (
    Code,
    Pass,
    Settings,
    function_pass,
    llvm_pass,
    model_pass,
    observed,
    recorded,
    run_passes,
    table,
    text_pass,
)
from irgrad.engine.ir.model import Function, Module
from irgrad.rules.errors import IRInvalid

TEXT = """
define double @f(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define double @g(double %x) {
  %y = fadd double %x, 1.0
  ret double %y
}
"""
ALL = ("IRGRAD_PRINT_AFTER", "IRGRAD_PRINT_TO", "IRGRAD_VERIFY", "IRGRAD_PROGRESS")


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALL:
        monkeypatch.delenv(name, raising=False)


def _squares(text: str) -> str:
    """Products become sums."""
    return text.replace("fmul", "fadd")


def _count(module: Module) -> int:
    """As many as there are functions."""
    return len(module.functions)


def _swap(module: Module, fn: Function) -> None:
    """Operands change places."""
    for instr in fn.instructions():
        instr.operands = instr.operands[::-1]


def _drop_g(code: Code, settings: Settings) -> None:
    """LLVM forgets a function that is not a root."""
    for function in list(code.llvm.functions):
        if function.name not in settings.roots:
            function.linkage = "internal"


STEPS = (text_pass("squares", _squares), model_pass("count", _count), function_pass("swap", _swap),
         llvm_pass("drop", _drop_g))  # fmt: skip


def _run(steps: tuple[Pass, ...] = STEPS, **settings: object) -> Code:
    return run_passes(steps, Code(TEXT), Settings(("f",), **settings))  # type: ignore[arg-type]


def test_each_pass_gets_the_form_it_wants() -> None:
    code = _run()
    assert code.form == "llvm" and code.changes == 2
    assert "fadd double 1.000000e+00, %x" in code.text and "internal double @g" in code.text
    code.close()


def test_only_some_functions() -> None:
    text = _run(STEPS[2:3], functions=frozenset(("f",))).text
    assert "fadd double %x, 1.0" in text, "g stays as it is"


def test_a_pass_says_what_it_does() -> None:
    assert [step.about for step in STEPS][:2] == ["Products become sums.", "As many as there are functions."]
    assert [step.form for step in STEPS] == ["text", "model", "model", "llvm"]


def test_printed_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("IRGRAD_PRINT_AFTER", "count,swap")
    _run()
    told = capsys.readouterr().err
    assert told.count("; -- after ") == 2 and "; -- after swap --" in told and "; -- after squares" not in told


def test_printed_into_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRGRAD_PRINT_AFTER", "all")
    monkeypatch.setenv("IRGRAD_PRINT_TO", str(tmp_path / "ir"))
    _run()
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert [name.partition("-")[2] for name in names] == ["squares.ll", "count.ll", "swap.ll", "drop.ll"]
    assert all("define double @f" in (tmp_path / "ir" / name).read_text() for name in names)


@pytest.mark.parametrize("form", ["model", "llvm"])
def test_a_pass_that_breaks_the_module_is_named(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    def broken(module: Module) -> None:
        """An operand too few."""
        next(module.functions["f"].instructions()).operands.pop()

    def unterminated(code: Code, settings: Settings) -> None:
        """What LLVM finds wrong."""
        code.llvm.verify = _raises

    step = model_pass("broken", broken) if form == "model" else llvm_pass("broken", unterminated)
    monkeypatch.setenv("IRGRAD_VERIFY", "1")
    with pytest.raises(IRInvalid, match="not well formed after the pass `broken`"):
        _run((STEPS[0], step))
    monkeypatch.setenv("IRGRAD_VERIFY", "0")
    _run((STEPS[0], step))


def _raises() -> None:
    raise RuntimeError("Basic Block in function 'f' does not have terminator!")


def test_recorded_runs() -> None:
    with recorded() as runs:
        code = _run()
        with observed("derivative", code):
            pass
    assert [run.name for run in runs] == ["squares", "count", "swap", "drop", "derivative"]
    assert {run.instructions for run in runs} == {4} and all(run.seconds >= 0 for run in runs)
    assert table(runs).count(" ms ") == 5
    with recorded() as later:
        pass
    assert not later and len(runs) == 5


def test_progress_tells_each_pass(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("IRGRAD_PROGRESS", "2")
    _run()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[-1] for line in lines] == ["squares", "count", "swap", "drop"]
    assert all(line.split()[1] == "ms" for line in lines)
