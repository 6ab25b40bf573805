"""PTX of device modules: libdevice in place of libm, what ptxas says of it, what is refused before LLVM sees it."""

from __future__ import annotations

import ctypes
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgrad.engine.codegen import nvptx
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import binding, parse
from irgrad.engine.codegen.target import Target
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import CompileError, LoadError, Unsupported

TEXT = """
@table = internal constant [2 x double] [double 2.0, double 3.0]
declare double @llvm.sin.f64(double)
declare double @sin(double)
declare float @expf(float)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define double @unused(double %x) {
  ret double %x
}
define ptx_kernel void @f(ptr noalias %x, ptr noalias %y) {
  %n = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr double, ptr %x, i32 %n
  %v = load double, ptr %p
  %s = call double @llvm.sin.f64(double %v)
  %t = call double @sin(double %s)
  %h = fptrunc double %t to float
  %e = call float @expf(float %h)
  %d = fpext float %e to double
  %i = and i32 %n, 1
  %tp = getelementptr double, ptr @table, i32 %i
  %tv = load double, ptr %tp
  %m = fmul double %d, %tv
  %q = getelementptr double, ptr %y, i32 %n
  store double %m, ptr %q
  ret void
}
"""
needs_library = pytest.mark.skipif(nvptx._library() is None, reason="libdevice and ptxas are not installed")


@needs_library
def test_functions_of_mathematics_are_those_of_libdevice() -> None:
    code = nvptx.ptx(TEXT, ["f"], "sm_90")
    assert ".visible .entry f(" in code and ".target sm_90" in code and "unused" not in code
    assert not re.findall(r"call[^;]*\b(sin|expf)\b", code)
    assert "ld.global.nc" in code, "what is only read goes through the read-only path"


WRITTEN = """
declare { double, double } @llvm.sincos.f64(double)
declare { double, double } @llvm.modf.f64(double)
declare { double, i32 } @llvm.frexp.f64.i32(double)
declare i64 @llvm.lround.i64.f64(double)
declare i64 @llvm.llrint.i64.f64(double)
define ptx_kernel void @f(ptr %x, ptr %y) {
  %v = load double, ptr %x
  %a = call { double, double } @llvm.sincos.f64(double %v)
  store { double, double } %a, ptr %y
  %b = call { double, double } @llvm.modf.f64(double %v)
  %yb = getelementptr i8, ptr %y, i64 16
  store { double, double } %b, ptr %yb
  %c = call { double, i32 } @llvm.frexp.f64.i32(double %v)
  %yc = getelementptr i8, ptr %y, i64 32
  store { double, i32 } %c, ptr %yc
  %d = call i64 @llvm.lround.i64.f64(double %v)
  %yd = getelementptr i8, ptr %y, i64 48
  store i64 %d, ptr %yd
  %e = call i64 @llvm.llrint.i64.f64(double %v)
  %ye = getelementptr i8, ptr %y, i64 56
  store i64 %e, ptr %ye
  ret void
}
"""


@pytest.mark.parametrize("x", [0.3, -2.5, 3.5, 1e10, -0.0, float("inf")])
def test_intrinsics_that_libdevice_has_not_in_this_form(x: float) -> None:
    """Their bodies, run on the host: results of Python's `math`."""
    text = nvptx.write_intrinsics(WRITTEN.replace("ptx_kernel ", ""))
    assert "@llvm.sincos" not in text and "@llvm.lround" not in text
    given, out = np.array([x]), np.zeros(8)
    compiled = compile_module(text, ["f"], strict_fp=True)
    compiled.function("f", None, ctypes.c_void_p, ctypes.c_void_p)(given.ctypes.data, out.ctypes.data)
    numbers = out.view(np.int64)
    part, whole = math.modf(x)
    assert out[2] == part and out[3] == whole and math.copysign(1, out[2]) == math.copysign(1, x)
    if math.isinf(x):
        return
    assert out[0] == pytest.approx(math.sin(x), abs=1e-15) and out[1] == pytest.approx(math.cos(x), abs=1e-15)
    mantissa, exponent = math.frexp(x)
    assert out[4] == mantissa and numbers[5] & 0xFFFFFFFF == exponent & 0xFFFFFFFF
    assert numbers[6] == math.copysign(math.floor(abs(x) + 0.5), x) and numbers[7] == round(x)


@needs_library
def test_ptxas_accepts_those_bodies() -> None:
    assert nvptx.resources(nvptx.ptx(WRITTEN, ["f"], "sm_80"), "sm_80")["registers"] > 0


@needs_library
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_ptxas_accepts_it(architecture: str) -> None:
    code = nvptx.ptx(TEXT, ["f"], architecture)
    assert nvptx.cubin(code, architecture)[:4] == b"\x7fELF"
    used = nvptx.resources(code, architecture)
    assert 0 < used["registers"] < 64 and used["spilled"] == used["loaded"] == 0


@needs_library
def test_ptxas_says_what_is_wrong() -> None:
    with pytest.raises(CompileError, match="ptxas does not accept the PTX"):
        nvptx.cubin(".version 7.0\n.target sm_80\nnonsense", "sm_80")


@needs_library
@pytest.mark.parametrize(("kind", "name"), [("double", "f64"), ("float", "f32")])
def test_remainders_are_those_of_libdevice(kind: str, name: str) -> None:
    """What LLVM makes of `frem` for this target divides, and is wrong where the quotient is large."""
    code = nvptx.ptx(f"""
define ptx_kernel void @f(ptr %x) {{
  %a = load {kind}, ptr %x
  %p = getelementptr {kind}, ptr %x, i64 1
  %b = load {kind}, ptr %p
  %r = frem {kind} %a, %b
  store {kind} %r, ptr %x
  ret void
}}""", ["f"], "sm_80")
    assert f"div.rn.{name}" not in code and "bra" in code, "a loop over the bits, not a quotient"


def test_libdevice_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvptx, "_wheels", lambda *places: None)
    with pytest.raises(LoadError, match="libdevice is not installed") as caught:
        nvptx.ptx(TEXT, ["f"], "sm_90")
    assert "pip install" in caught.value.fix
    with pytest.raises(LoadError, match="ptxas is not installed"):
        nvptx.cubin("", "sm_90")
    assert nvptx.ptxas() is None and nvptx.identity().startswith("LLVM")


def test_a_kernel_without_mathematics_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvptx, "_wheels", lambda *places: None)
    code = nvptx.ptx("define ptx_kernel void @f(ptr %x) {\n  store double 1.0, ptr %x\n  ret void\n}", ["f"], "sm_80")
    assert ".entry f" in code


@pytest.mark.parametrize("name", ["h100", "sm_9", "sm_9x", "gfx90a", ""])
def test_architectures_of_another_form(name: str) -> None:
    with pytest.raises(LoadError, match="is no architecture of a GPU"):
        nvptx.nvidia(name)


REFUSED: dict[str, tuple[str, str]] = {
    "a function of the host": (
        "declare i32 @puts(ptr)\ndefine void @f(ptr %x) {\n  %r = call i32 @puts(ptr %x)\n  ret void\n}",
        "a call of `puts`"),
    "a variable": ("@count = global i32 0\ndefine void @f() {\n  store i32 1, ptr @count\n  ret void\n}",
                   "`count` is a variable of the program"),
    "an 80-bit number": (
        "define void @f(ptr %x) {\n  %v = load x86_fp80, ptr %x\n  store x86_fp80 %v, ptr %x\n  ret void\n}",
        "a number of 80 or 128 bits"),
    "assembly": ('define void @f() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}', "assembly"),
    "a pointer to a function": ("define void @f(ptr %g) {\n  call void %g()\n  ret void\n}",
                                "a call through a pointer"),
    "an array of unknown length": (
        "define void @f(i64 %n, ptr %o) {\n  %a = alloca double, i64 %n\n  store ptr %a, ptr %o\n  ret void\n}",
        "an array on the stack without a constant length"),
    "an exception": (
        "declare void @g()\ndeclare i32 @p(...)\ndefine void @f() personality ptr @p {\n"
        "  invoke void @g() to label %a unwind label %b\na:\n  ret void\nb:\n  %l = landingpad { ptr, i32 } cleanup\n"
        "  resume { ptr, i32 } %l\n}", "an exception"),
    "a variable argument": (
        "define double @f(ptr %l) {\n  %v = va_arg ptr %l, double\n  ret double %v\n}", "a variable argument"),
    "a computed jump": (
        "define void @f(ptr %p) {\n  indirectbr ptr %p, [label %a]\na:\n  ret void\n}", "a computed jump"),
    "a remainder of vectors": (
        "define <2 x double> @f(<2 x double> %x) {\n  %r = frem <2 x double> %x, %x\n  ret <2 x double> %r\n}",
        "a remainder of vectors or short floats"),
    "a fence": ("define void @f() {\n  fence seq_cst\n  ret void\n}", "a fence between threads"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_device_cannot_run_is_refused(name: str) -> None:
    text, what = REFUSED[name]
    with pytest.raises(Unsupported, match=f"a GPU cannot run this: {re.escape(what)}") as caught:
        nvptx.ptx(text, ["f"], "sm_90")
    assert caught.value.because and "CPU" in caught.value.fix


def test_the_line_of_a_variable_is_that_of_its_first_use() -> None:
    text = """
@count = global [2 x i32] zeroinitializer
define void @f() !dbg !3 {
  store i32 1, ptr getelementptr (i8, ptr @count, i64 4), !dbg !5
  ret void
}
!llvm.dbg.cu = !{!0}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.c", directory: "")
!3 = distinct !DISubprogram(name: "f", file: !1, line: 6, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 7, column: 3, scope: !3)
"""
    with pytest.raises(Unsupported, match="`count` is a variable of the program") as caught:
        nvptx.refuse_host_code(read(text))
    assert caught.value.where == "a.c:7:3"


@pytest.mark.parametrize("call", ["@abort()", "@__assert_fail(ptr @text, ptr @text, i32 7, ptr @text)",
                                  "@irgrad.tape.lost(i1 true, ptr @text)"])  # fmt: skip
def test_a_failed_assertion_stops_the_launch(call: str) -> None:
    """What ends a program is a trap of the device, which fails the launch; another function of the host is refused."""
    text = f"""
@text = internal constant [2 x i8] c"x\\00"
declare void @abort()
declare void @exit(i32)
declare void @__assert_fail(ptr, ptr, i32, ptr)
declare void @irgrad.tape.lost(i1, ptr)
define ptx_kernel void @f(ptr %x) {{
  %v = load double, ptr %x
  %bad = fcmp olt double %v, 0.0
  br i1 %bad, label %fail, label %good
fail:
  call void {call}
  unreachable
good:
  store double 1.0, ptr %x
  ret void
}}"""
    code = nvptx.ptx(text, ["f"], "sm_80")
    assert "trap;" in code and "abort" not in code and "assert" not in code and "lost" not in code
    with pytest.raises(Unsupported, match="a GPU cannot run this: a call of `exit`"):
        nvptx.ptx(text.replace(f"call void {call}", "call void @exit(i32 3)"), ["f"], "sm_80")


def test_functions_that_will_get_a_body_are_not_refused() -> None:
    module = read("declare ptr @mine(i64)\ndefine void @f() {\n  %p = call ptr @mine(i64 8)\n  ret void\n}")
    nvptx.refuse_host_code(module, ["mine"])
    with pytest.raises(Unsupported, match="a call of `mine`"):
        nvptx.refuse_host_code(module)


def test_wheels_are_looked_for_in_all_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cu13" / "bin").mkdir(parents=True)
    (tmp_path / "cu13" / "bin" / "ptxas").touch()

    class Spec:
        submodule_search_locations = (str(tmp_path / "absent"), str(tmp_path))

    found: Any = Spec()
    monkeypatch.setattr(nvptx.util, "find_spec", lambda name: found)
    assert nvptx.ptxas() == tmp_path / "cu13" / "bin" / "ptxas"
    monkeypatch.setattr(nvptx.util, "find_spec", lambda name: None)
    assert nvptx.ptxas() is None


def test_amd_is_one_target_more() -> None:
    """ROCm stays open: a trivial kernel reaches its assembly through the same description of a target."""

    def initialise() -> None:
        binding().initialize_all_targets()
        binding().initialize_all_asmprinters()

    amd = Target("gfx90a", lambda: "amdgcn-amd-amdhsa", lambda: "gfx90a", lambda: "", vector_math=False,
                 initialise=initialise, code_model="default", reloc="default")  # fmt: skip
    module = parse("define amdgpu_kernel void @f(ptr addrspace(1) %x) {\n  store double 2.0, ptr addrspace(1) %x\n"
                   "  ret void\n}")  # fmt: skip
    machine = amd.machine()
    module.triple, module.data_layout = "amdgcn-amd-amdhsa", str(machine.target_data)
    assembly = str(machine.emit_assembly(module))
    assert "global_store_dwordx2" in assembly and ".amdhsa_kernel f" in assembly
