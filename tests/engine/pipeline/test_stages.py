"""The stages: what each pass does to a small module, and how passes and stages are found by name."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from analysed import ir_of

import irgrad
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.passes import Code, Settings, function_pass, run_passes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstFloat, Function, Module, const_float
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline import stages
from irgrad.engine.pipeline.stages import NORMALISE, STAGES, find_passes
from irgrad.interop.passes import optimised
from irgrad.rules.errors import IRGradError

RETURNS = """define double @f(i32 %k, double %x) {
entry:
  switch i32 %k, label %other [ i32 0, label %zero
                                i32 1, label %one ]
zero:
  ret double 0.5
one:
  ret double %x
other:
  %y = fmul double %x, %x
  ret double %y
}
define void @g(i1 %c, ptr %p) {
  br i1 %c, label %return, label %no
return:
  store double 1.0, ptr %p
  ret void
no:
  ret void
}
"""
D, INT = ctypes.c_double, ctypes.c_int
MESSY = """
double f(int n, double x) {
  double s = 0;
  for (int i = 0; ; i++) {
    if (i > n) return s;
    for (int j = 0; j < i; j++) { if (s > 50) goto done; s += x * j; }
    if (i == 7) { s += 1; continue; }
    if (s < -3) break;
    s = s * 0.5 + i;
  }
done:
  return s + 100;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_loops_have_preheader_latch_and_exits_of_their_own(level: str) -> None:
    text = ir_of(MESSY, (level, "-Xclang", "-disable-O0-optnone"))
    want = compile_module(text, ["f"], cache=False).function("f", D, INT, D)
    module = read(text, roots=["f"])
    fn = module.functions["f"]
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    loops = Loops(Cfg(fn))
    assert len(loops.all) == 2
    for loop in loops.all:
        assert loop.preheader is not None
        assert len(loop.latches) == 1
        for block in loop.exits:
            assert all(loop.contains(p) for p in loops.cfg.preds(block)), "the exit belongs to this loop alone"
    assert sum(b.terminator.opcode == "ret" for b in fn.blocks) == 1
    got = compile_module(to_text(module), ["f"], cache=False).function("f", D, INT, D)
    for n in (-1, 0, 1, 5, 7, 8, 40):
        for x in (-2.0, 0.25, 3.0):
            assert got(n, x) == want(n, x)


def test_every_function_of_the_module_is_done() -> None:
    module = read(RETURNS)
    run_passes(NORMALISE, Code(model=module), Settings(("f",)))
    for name in ("f", "g"):
        assert sum(b.terminator.opcode == "ret" for b in module.functions[name].blocks) == 1


# -- one pass at a time: NAME.in.ll and NAME.out.ll side by side; `irgrad opt -p NAME --root f` writes the second ------

FOLDER = Path(__file__).parent / "passes"
CASES = sorted(path.name.removesuffix(".in.ll") for path in FOLDER.glob("*.in.ll"))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line and not line.startswith(("; ModuleID", "source_file"))]


@pytest.mark.parametrize("name", CASES)
def test_one_pass(name: str) -> None:
    made = optimised(str(FOLDER / f"{name}.in.ll"), name, ["f"])
    assert _lines(made) == _lines((FOLDER / f"{name}.out.ll").read_text())
    assert _lines(made) != _lines(optimised(str(FOLDER / f"{name}.in.ll"), "", ["f"])), "the pass does nothing here"


def test_the_cases_are_passes_of_the_list() -> None:
    known = {step.name for passes in STAGES.values() for step in passes}
    assert set(CASES) <= known and len(CASES) >= 15


# -- the list ----------------------------------------------------------------------------------------------------------


def test_every_pass_has_a_name_of_its_own_and_says_what_it_does() -> None:
    for stage, passes in STAGES.items():
        assert passes, stage
        for step in passes:
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", step.name), step.name
            assert step.about and step.form in ("text", "model", "llvm"), step.name
    names = [step.name for stage, passes in STAGES.items() if stage != "lower" for step in passes]
    assert len(set(names)) == len(names)
    assert not {step.name for passes in STAGES.values() for step in passes} & set(STAGES)


def test_names_of_passes_and_stages() -> None:
    assert find_passes("unify-returns,close-loops") == (NORMALISE[7], NORMALISE[11])
    assert find_passes("prepare") == STAGES["prepare"]
    with pytest.raises(IRGradError, match="no pass `unify-return`") as caught:
        find_passes("unify-return")
    assert caught.value.fix == "`unify-returns`?"


# -- a new pass is a function and an entry of the list -----------------------------------------------------------------


def _double_constants(module: Module, fn: Function) -> None:
    """Every product with 3 becomes one with 6."""
    for instr in fn.instructions():
        if instr.opcode == "fmul":
            instr.operands = [SIX if isinstance(o, ConstFloat) and o.bits == THREE.bits else o for o in instr.operands]


THREE, SIX = const_float(ty.F64, 3.0), const_float(ty.F64, 6.0)


def test_a_new_pass_is_one_entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is found by name, printed, and part of every derivative."""
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "cache"))
    kernel = irgrad.load("double f(double x) { return 3 * x * x; }").kernel("f")
    assert float(irgrad.engine.grad(kernel)(5.0)) == 30.0
    step = function_pass("double-constants", _double_constants)
    longer = (*NORMALISE, step)
    monkeypatch.setattr(stages, "NORMALISE", longer)
    monkeypatch.setitem(STAGES, "normalise", longer)
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "another"))
    monkeypatch.setenv("IRGRAD_PRINT_AFTER", "double-constants")
    monkeypatch.setenv("IRGRAD_PRINT_TO", str(tmp_path / "printed"))
    assert find_passes("double-constants") == (step,)
    kernel = irgrad.load("double f(double x) { return 3 * x * x; }").kernel("f")
    assert float(irgrad.engine.grad(kernel)(5.0)) == 60.0
    (printed,) = (tmp_path / "printed").iterdir()
    assert printed.name.endswith("-double-constants.ll") and "6.000000e+00" in printed.read_text()
