"""Files for use without Python: IR, bitcode, assembly, object, shared library."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.objects import emit, write
from irgrad.rules.errors import CompileError, LoadError

TEXT = """
declare double @llvm.sin.f64(double)
declare double @erf(double)
define double @f(double %x) {
  %s = call double @llvm.sin.f64(double %x)
  %e = call double @erf(double %s)
  %r = call double @inner(double %e)
  ret double %r
}
define double @inner(double %x) noinline {
  %r = fmul double %x, 2.0
  ret double %r
}
"""


def test_every_form_has_its_look() -> None:
    assert "define double @f" in emit(TEXT, ["f"], ".ll").decode()
    assert emit(TEXT, ["f"], ".bc").startswith(b"BC\xc0\xde")
    assert b".globl\tf" in emit(TEXT, ["f"], ".s")
    assert emit(TEXT, ["f"], ".o").startswith(b"\x7fELF")
    parse(emit(TEXT, ["f"], ".ll").decode())


def test_a_shared_library_is_loaded_and_hides_helpers(tmp_path: Path) -> None:
    path = write(tmp_path / "f.so", TEXT, ["f"])
    library = ctypes.CDLL(str(path))
    library.f.restype, library.f.argtypes = ctypes.c_double, [ctypes.c_double]
    assert library.f(0.5) == pytest.approx(2 * math.erf(math.sin(0.5)), rel=1e-15)
    assert not hasattr(library, "inner")


def test_baseline_needs_no_feature_of_this_cpu() -> None:
    text = "define void @f(ptr %x, ptr %y) {\n  %a = load <8 x double>, ptr %x\n  %b = fadd <8 x double> %a, %a\n"
    text += "  store <8 x double> %b, ptr %y\n  ret void\n}\n"
    assembly = emit(text, ["f"], ".s", cpu="baseline").decode()
    assert "%zmm" not in assembly
    assert "%ymm" not in assembly


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"`\.exe` cannot be written"):
        write(tmp_path / "f.exe", TEXT, ["f"])
    with pytest.raises(LoadError, match="does not exist"):
        write(tmp_path / "missing" / "f.o", TEXT, ["f"])
    with pytest.raises(LoadError, match="`g` has no body"):
        write(tmp_path / "f.o", TEXT, ["g"])
    assert list(tmp_path.iterdir()) == [], "nothing is half-written"


@pytest.mark.parametrize("form", [".s", ".o", ".so"])
def test_code_for_every_cpu_has_no_instruction_of_some(form: str) -> None:
    name = "llvm.x86.avx.hadd.pd.256"
    text = f"""declare <4 x double> @{name}(<4 x double>, <4 x double>)
define void @f(ptr %x) {{
  %v = load <4 x double>, ptr %x
  %h = call <4 x double> @{name}(<4 x double> %v, <4 x double> %v)
  store <4 x double> %h, ptr %x
  ret void
}}"""
    with pytest.raises(CompileError, match="an instruction that the CPU has not"):
        emit(text, ["f"], form, cpu="baseline")
    assert emit(text, ["f"], form, cpu="haswell")
