"""Every opcode in every form: LLVM reads the reprinted instruction as the same one."""

# ruff: noqa: E501 - instructions are written on one line, as LLVM prints them

from __future__ import annotations

import pytest
from analysed import normal_form

from irgrad.engine.ir.model import MetadataValue
from irgrad.engine.ir.opcodes import OPCODES
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.instructions import PARSERS
from irgrad.engine.ir.text.reader import read

ARGUMENTS = "double %x, double %y, float %f, i32 %i, i32 %j, i64 %l, i1 %c, ptr %p, <4 x double> %v, <4 x i32> %m, { i32, [2 x double] } %s"
DECLARATIONS = """
declare double @g(double)
declare i32 @printf(ptr, ...)
declare i32 @__gxx_personality_v0(...)
declare double @llvm.experimental.constrained.fadd.f64(double, double, metadata, metadata)
declare void @llvm.assume(i1)
@t = external constant ptr
"""
FORMS = [
    *(f"%r = {o} i32 %i, %j" for o in "add sub mul udiv sdiv urem srem shl lshr ashr and or xor".split()),
    "%r = add nuw nsw i32 %i, 1", "%r = sdiv exact i32 %i, %j", "%r = or disjoint i32 %i, %j", "%r = add <4 x i32> %m, splat (i32 3)",
    *(f"%r = {o} double %x, %y" for o in "fadd fsub fmul fdiv frem".split()),
    "%r = fadd fast double %x, 1.5", "%r = fmul reassoc nnan contract <4 x double> %v, %v", "%r = fneg nsz double %x",
    "%r = icmp slt i32 %i, %j", "%r = icmp samesign ult i32 %i, 4", "%r = icmp eq ptr %p, null", "%r = fcmp nnan olt double %x, %y",
    "%r = fcmp uno <4 x double> %v, zeroinitializer",
    "%r = trunc nuw nsw i64 %l to i32", "%r = zext nneg i32 %i to i64", "%r = sext i32 %i to i128", "%r = fptrunc double %x to float",
    "%r = fpext fast float %f to double", "%r = fptosi double %x to i8", "%r = fptoui <4 x double> %v to <4 x i32>",
    "%r = uitofp nneg i32 %i to double", "%r = sitofp i32 %i to half", "%r = ptrtoint ptr %p to i64", "%r = inttoptr i64 %l to ptr",
    "%r = ptrtoaddr ptr %p to i64",
    "%r = bitcast double %x to i64", "%r = addrspacecast ptr %p to ptr addrspace(1)", "%r = freeze double %x",
    "%r = select i1 %c, double %x, double %y", "%r = select fast i1 %c, double %x, double 0.0",
    "%r = load double, ptr %p, align 8", "%r = load volatile double, ptr %p, align 4", "%r = load { i32, double }, ptr %p",
    '%r = load atomic i32, ptr %p syncscope("x") acquire, align 4', "store double %x, ptr %p, align 8", "store volatile i32 %i, ptr %p",
    "store atomic i32 %i, ptr %p release, align 4", "fence acq_rel", 'fence syncscope("singlethread") seq_cst',
    "%r = atomicrmw fadd ptr %p, double %x seq_cst, align 8", "%r = atomicrmw volatile xchg ptr %p, i32 1 monotonic, align 4",
    "%r = cmpxchg weak ptr %p, i32 %i, i32 %j acq_rel monotonic, align 4", "%r = cmpxchg volatile ptr %p, i32 0, i32 1 seq_cst seq_cst, align 4",
    "%r = alloca double", "%r = alloca [4 x i8], align 16", "%r = alloca i32, i64 %l, align 4", "%r = alloca inalloca i32",
    "%r = getelementptr inbounds nuw double, ptr %p, i64 %l", "%r = getelementptr { i32, [2 x double] }, ptr %p, i64 0, i32 1, i64 %l",
    "%r = getelementptr i8, ptr %p, <4 x i32> %m", "%r = getelementptr nusw i8, ptr %p, i64 1",
    "%r = extractelement <4 x double> %v, i32 %i", "%r = insertelement <4 x double> %v, double %x, i64 2",
    "%r = shufflevector <4 x double> %v, <4 x double> poison, <2 x i32> <i32 3, i32 poison>",
    "%r = extractvalue { i32, [2 x double] } %s, 1, 0", "%r = insertvalue { i32, [2 x double] } %s, double %x, 1, 1",
    "%r = va_arg ptr %p, double",
    "%r = call double @g(double %x)", "%r = tail call fast double @g(double noundef %x) nounwind memory(none)", "%r = notail call double @g(double %x)",
    "%r = call i32 (ptr, ...) @printf(ptr nonnull %p, double %x, i32 3)", "%r = call fastcc double %p(double %x, i32 1)",
    "%r = call noundef nonnull align 8 dereferenceable(16) ptr %p(ptr byval({ i32, double }) align 8 %p)",
    '%r = call double @llvm.experimental.constrained.fadd.f64(double %x, double %y, metadata !"round.dynamic", metadata !"fpexcept.strict")',
    'call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 16), "nonnull"(ptr %p) ]', 'call void asm sideeffect "nop", "~{memory}"()',
    "%r = call cc 10 double %p()", '%r = call i32 asm "mov $1, $0", "=r,r"(i32 %i)',
    "%r = call double @g(double %x), !tbaa !0, !fpmath !1",
]  # fmt: skip
ENDINGS = {
    "ret": "ret void",
    "br": "br label %a\na:\n  br i1 %c, label %a2, label %b\na2:\n  ret void\nb:\n  br label %a2",
    "phi": "br label %a\na:\n  %r = phi fast double [ %x, %0 ], [ %r, %a ]\n  br i1 %c, label %a, label %b, !prof !1\nb:\n  ret void",
    "switch": "switch i32 %i, label %a [\n    i32 1, label %b\n    i32 -5, label %a\n  ]\na:\n  ret void\nb:\n  unreachable",
    "indirectbr": "indirectbr ptr %p, [label %a, label %b]\na:\n  ret void\nb:\n  ret void",
    "invoke": (
        "%r = invoke double @g(double %x)\n          to label %a unwind label %b\na:\n  ret void\nb:\n  %e = landingpad { ptr, i32 }\n"
        "          cleanup\n          catch ptr @t\n          filter [1 x ptr] [ptr @t]\n  resume { ptr, i32 } %e"
    ),
    "catch": (
        "invoke void %p()\n          to label %ok unwind label %d\nok:\n  ret void\nd:\n  %s1 = catchswitch within none [label %h] unwind to caller\n"
        "h:\n  %q = catchpad within %s1 [ptr null, i32 64, ptr %p]\n  catchret from %q to label %ok"
    ),
    "cleanup": (
        "invoke void %p()\n          to label %ok unwind label %d\nok:\n  ret void\nd:\n  %q = cleanuppad within none []\n"
        "  cleanupret from %q unwind to caller"
    ),
    "callbr": 'callbr void asm "", "!i"()\n          to label %a [label %b]\na:\n  ret void\nb:\n  ret void',
}


def check(body: str) -> None:
    personality = " personality ptr @__gxx_personality_v0" if "pad" in body else ""
    metadata = '!0 = !{!2, !2, i64 0}\n!1 = !{float 2.5}\n!2 = !{!"double", !3, i64 0}\n!3 = !{!"root"}\n'
    if "!prof" in body:
        metadata = metadata.replace("!{float 2.5}", '!{!"branch_weights", i32 1, i32 2}')
    text = f"{DECLARATIONS}define void @f({ARGUMENTS}){personality} {{\n  {body}\n}}\n{metadata}"
    assert normal_form(to_text(read(text))) == normal_form(text)


@pytest.mark.parametrize("form", FORMS)
def test_form(form: str) -> None:
    check(form + "\n  ret void")


@pytest.mark.parametrize("name", ENDINGS)
def test_control_flow(name: str) -> None:
    check(ENDINGS[name])


def test_musttail() -> None:
    text = "declare double @g(double)\ndefine double @f(double %x) {\n  %r = musttail call double @g(double %x)\n ret double %r\n}\n"
    assert normal_form(to_text(read(text))) == normal_form(text)


def test_every_opcode_has_a_parser_and_a_form() -> None:
    assert set(PARSERS) - {"tail", "musttail", "notail"} == set(OPCODES)
    text = "\n".join([*FORMS, *ENDINGS.values()])
    assert [o for o in OPCODES if f"{o} " not in text and f"{o}\n" not in text and not text.endswith(o)] == []


def test_metadata_operands_hold_their_value() -> None:
    text = "define void @f(ptr %p) {\n  call void %p(metadata ptr %q, metadata !{})\n  %q = alloca i8\n  ret void\n}\n"
    call, alloca = read(text).functions["f"].entry.instructions[:2]
    assert isinstance(call.operands[0], MetadataValue) and call.operands[0].value is alloca
