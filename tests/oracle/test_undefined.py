"""Poison and undef in the interpreter: what makes them, hands them on and ends them, and where they are errors."""

from __future__ import annotations

import re
from typing import Any

import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.reader import read
from oracle.interpreter import Machine
from oracle.memory import Memory, bits, bytewise
from oracle.numbers import Dual, DualDomain, FloatDomain
from oracle.undefined import ODD, POISON, UNDEF, Fault, Undefined, UndefinedUse, Used, filled

DECLARED = """
declare double @llvm.sqrt.f64(double)
declare <2 x double> @llvm.sqrt.v2f64(<2 x double>)
declare double @llvm.vector.reduce.fadd.v2f64(double, <2 x double>)
declare <2 x double> @llvm.masked.load.v2f64.p0(ptr, i32, <2 x i1>, <2 x double>)
declare <2 x double> @llvm.masked.gather.v2f64.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x double>)
declare {i32, i1} @llvm.sadd.with.overflow.i32(i32, i32)
declare i32 @llvm.abs.i32(i32, i1)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.smax.i32(i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
declare void @llvm.assume(i1)
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare i32 @printf(ptr, ...)
declare double @cos(double)
@zeros = global [2 x double] zeroinitializer
@elsewhere = external global double
"""


def machine_of(body: str, result: str = "void") -> Machine:
    """`result @f(double %x, i32 %i, ptr %p)` with this body."""
    lines = body if re.search(r"^\w+:$", body, re.M) else f"entry:\n{body}"
    return Machine(read(f"{DECLARED}\ndefine {result} @f(double %x, i32 %i, ptr %p) {{\n{lines}\n}}"), FloatDomain())


def value_of(expression: str, result: str, before: str = "") -> Any:
    """What an instruction gives for x = 0.5, i = 7, p = two numbers, seen from inside the machine."""
    machine = machine_of(f"{before}\n%r = {expression}\nret {result} %r", result)
    return machine.invoke(machine.module.functions["f"], [0.5, 7, machine.array(ty.F64, [1.0, 2.0])])


POISONED = {
    "add": ("add nsw i32 %i, 2147483647", "i32"),
    "add unsigned": ("add nuw i32 %i, -7", "i32"),
    "sub": ("sub nuw i32 %i, 8", "i32"),
    "mul": ("mul nsw i32 %i, 1000000000", "i32"),
    "shl": ("shl i32 %i, 32", "i32"),
    "shl nuw": ("shl nuw i32 %i, 30", "i32"),
    "shl nsw": ("shl nsw i32 %i, 29", "i32"),
    "lshr": ("lshr exact i32 %i, 1", "i32"),
    "ashr": ("ashr i32 %i, 40", "i32"),
    "udiv": ("udiv exact i32 %i, 2", "i32"),
    "sdiv": ("sdiv exact i32 %i, 2", "i32"),
    "or": ("or disjoint i32 %i, 4", "i32"),
    "trunc": ("trunc nuw i32 %i to i2", "i2"),
    "trunc signed": ("trunc nsw i32 %i to i3", "i3"),
    "zext": ("zext nneg i32 %n to i64", "i64", "%n = sub i32 0, %i"),
    "icmp": ("icmp samesign ult i32 %n, %i", "i1", "%n = sub i32 0, %i"),
    "fptosi": ("fptosi double 3.0e9 to i32", "i32"),
    "fptoui": ("fptoui double -1.0 to i32", "i32"),
    "fptosi nan": ("fptosi double 0x7FF8000000000000 to i32", "i32"),
    "nnan": ("fmul nnan double %x, 0x7FF8000000000000", "double"),
    "nnan result": ("fsub nnan double 0x7FF0000000000000, 0x7FF0000000000000", "double"),
    "ninf": ("fdiv ninf double %x, 0.0", "double"),
    "fast": ("fadd fast double %x, 0x7FF0000000000000", "double"),
    "fcmp": ("fcmp nnan olt double %x, 0x7FF8000000000000", "i1"),
    "call nnan": ("call nnan double @llvm.sqrt.f64(double -1.0)", "double"),
    "call nnan argument": ("call nnan double @llvm.sqrt.f64(double 0x7FF8000000000000)", "double"),
    "select nnan": ("select nnan i1 true, double 0x7FF8000000000000, double %x", "double"),
    "extract": ("extractelement <2 x double> zeroinitializer, i32 %i", "double"),
    "abs": ("call i32 @llvm.abs.i32(i32 -2147483648, i1 true)", "i32"),
    "ctlz": ("call i32 @llvm.ctlz.i32(i32 0, i1 true)", "i32"),
    "inbounds": ("getelementptr inbounds double, ptr %p, i64 3", "ptr"),
    "inbounds before": ("getelementptr inbounds double, ptr %p, i64 -1", "ptr"),
    "inbounds null": ("getelementptr inbounds double, ptr null, i64 1", "ptr"),
    "inbounds by a number": ("getelementptr inbounds double, ptr %p, i32 %i", "ptr"),
}


@pytest.mark.parametrize("name", POISONED)
def test_broken_promises_are_poison(name: str) -> None:
    expression, result, *before = POISONED[name]
    assert value_of(expression, result, *before) is POISON
    flags = "nsw|nuw|exact|disjoint|nneg|samesign|nnan|ninf|fast|inbounds"
    kept = re.sub(rf"\b(?:{flags}) ", "", expression)
    if kept != expression:
        assert not isinstance(value_of(kept, result, *before), Undefined), "without the promise it is defined"


@pytest.mark.parametrize(("expression", "result", "expected"), [
    ("add nsw nuw i32 %i, 1", "i32", 8),
    ("sub nsw i32 %i, 8", "i32", 0xFFFFFFFF),
    ("mul nsw i32 %i, -300000000", "i32", -2_100_000_000 & 0xFFFFFFFF),
    ("shl nsw nuw i32 %i, 28", "i32", 0x70000000),
    ("sdiv exact i32 -14, %i", "i32", -2 & 0xFFFFFFFF),
    ("trunc nuw nsw i32 %i to i8", "i8", 7),
    ("trunc nsw i32 -1 to i8", "i8", 255),
    ("fptosi double -2147483648.9 to i32", "i32", 1 << 31),
    ("fadd fast double %x, 1.0", "double", 1.5),
    ("call i32 @llvm.abs.i32(i32 -2147483648, i1 false)", "i32", 1 << 31),
    ("call i32 @llvm.ctlz.i32(i32 0, i1 false)", "i32", 32),
    ("and i32 undef, 0", "i32", 0),
    ("or i8 undef, -1", "i8", 255),
    ("mul i32 undef, 0", "i32", 0),
    ("select i1 false, double poison, double %x", "double", 0.5),
    ("insertelement <2 x double> <double poison, double 2.0>, double %x, i64 0", "<2 x double>", (0.5, 2.0)),
    ("freeze double poison", "double", ODD),
    ("freeze <2 x double> <double undef, double 1.0>", "<2 x double>", (ODD, 1.0)),
    ("freeze i32 %i", "i32", 7),
    ("call <2 x double> @llvm.masked.load.v2f64.p0(ptr %p, i32 8, <2 x i1> <i1 false, i1 true>, "
     "<2 x double> zeroinitializer)", "<2 x double>", (0.0, 2.0)),
    ("load double, ptr @zeros", "double", 0.0),
])  # fmt: skip
def test_what_stays_defined(expression: str, result: str, expected: Any) -> None:
    assert value_of(expression, result) == expected


def test_end_of_an_object_is_inside() -> None:
    assert value_of("getelementptr inbounds double, ptr %p, i64 2", "ptr") & 0xFFFF == 16


HANDED_ON = [
    ("fadd double %x, {}", "double"), ("fneg double {}", "double"), ("fdiv double {}, %x", "double"),
    ("call double @llvm.sqrt.f64(double {})", "double"), ("call double @cos(double {})", "double"),
    ("fcmp olt double {}, %x", "i1"), ("fptosi double {} to i32", "i32"), ("bitcast double {} to i64", "i64"),
    ("fptrunc double {} to float", "float"), ("add i32 %i, {}", "i32"), ("xor i32 {}, %i", "i32"),
    ("icmp eq i32 {}, %i", "i1"), ("sitofp i32 {} to double", "double"), ("zext i32 {} to i64", "i64"),
    ("shl i32 %i, {}", "i32"), ("call i32 @llvm.smax.i32(i32 {}, i32 %i)", "i32"),
    ("select i1 true, double {}, double %x", "double"), ("select i1 {}, double 1.0, double %x", "double"),
    ("getelementptr i8, ptr {}, i64 1", "ptr"), ("getelementptr i8, ptr %p, i64 {}", "ptr"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "result"), HANDED_ON)
def test_operations_hand_it_on(expression: str, result: str) -> None:
    assert value_of(expression.format("poison"), result) is POISON
    assert isinstance(value_of(expression.format("undef"), result), Undefined)


@pytest.mark.parametrize(("expression", "result", "lost"), [
    ("fmul <2 x double> <double poison, double 3.0>, splat (double 2.0)", "<2 x double>", (True, False)),
    ("shufflevector <2 x double> splat (double 1.0), <2 x double> poison, <3 x i32> <i32 1, i32 poison, i32 2>",
     "<3 x double>", (False, True, True)),
    ("insertelement <2 x double> zeroinitializer, double 1.0, i64 5", "<2 x double>", (True, True)),
    ("select <2 x i1> <i1 true, i1 poison>, <2 x double> zeroinitializer, <2 x double> zeroinitializer",
     "<2 x double>", (False, True)),
    ("select i1 poison, <2 x double> zeroinitializer, <2 x double> zeroinitializer", "<2 x double>", (True, True)),
    ("call <2 x double> @llvm.sqrt.v2f64(<2 x double> <double 4.0, double poison>)", "<2 x double>", (False, True)),
    ("call <2 x double> @llvm.masked.load.v2f64.p0(ptr %p, i32 8, <2 x i1> <i1 false, i1 true>, <2 x double> poison)",
     "<2 x double>", (True, False)),
    ("call <2 x double> @llvm.masked.gather.v2f64.v2p0(<2 x ptr> poison, i32 8, <2 x i1> zeroinitializer, "
     "<2 x double> <double poison, double 0.0>)", "<2 x double>", (True, False)),
    ("call {i32, i1} @llvm.sadd.with.overflow.i32(i32 poison, i32 1)", "{i32, i1}", (True, True)),
    ("getelementptr inbounds double, ptr %p, <2 x i64> <i64 1, i64 9>", "<2 x ptr>", (False, True)),
    ("bitcast i64 poison to <2 x i32>", "<2 x i32>", (True, True)),
    ("bitcast <2 x i64> <i64 1, i64 poison> to <4 x i32>", "<4 x i32>", (False, False, True, True)),
    ("fptosi <2 x double> <double 1.0, double 9.9e9> to <2 x i32>", "<2 x i32>", (False, True)),
])  # fmt: skip
def test_each_lane_for_itself(expression: str, result: str, lost: tuple[bool, ...]) -> None:
    assert tuple(isinstance(v, Undefined) for v in value_of(expression, result)) == lost


def test_a_sum_of_lanes() -> None:
    call = "call double @llvm.vector.reduce.fadd.v2f64(double 0.0, <2 x double> <double {}, double 2.0>)"
    assert value_of(call.format("poison"), "double") is POISON
    assert value_of(call.format("1.0"), "double") == 3.0


MEMORY = {
    "stack": ("%m = alloca double", "load double, ptr %m", UNDEF),
    "heap": ("%m = call ptr @malloc(i64 8)", "load double, ptr %m", UNDEF),
    "zeroed heap": ("%m = call ptr @calloc(i64 1, i64 8)", "load double, ptr %m", 0.0),
    "elsewhere": ("", "load double, ptr @elsewhere", UNDEF),
    "poison": ("%m = alloca double\nstore double poison, ptr %m", "load double, ptr %m", POISON),
    "poison as an integer": ("%m = alloca double\nstore double poison, ptr %m", "load i32, ptr %m", POISON),
    "half": ("%m = alloca i64\nstore i32 7, ptr %m", "load i32, ptr %m", 7),
    "other half": ("%m = alloca [2 x i32]\nstore i32 7, ptr %m\n%q = getelementptr i32, ptr %m, i64 1",
                   "load i32, ptr %q", UNDEF),
    "copied": ("%m = alloca double\n%q = call ptr @calloc(i64 1, i64 8)\n"
               "call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %m, i64 8, i1 false)", "load double, ptr %q", UNDEF),
    "set": ("%m = alloca double\ncall void @llvm.memset.p0.i64(ptr %m, i8 0, i64 8, i1 false)",
            "load double, ptr %m", 0.0),
    "begun": ("%m = alloca double\nstore double 1.0, ptr %m\ncall void @llvm.lifetime.start.p0(ptr %m)",
              "load double, ptr %m", UNDEF),
    "ended": ("%m = alloca double\nstore double 1.0, ptr %m\ncall void @llvm.lifetime.end.p0(ptr %m)",
              "load double, ptr %m", POISON),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMORY)
def test_memory(name: str) -> None:
    before, expression, expected = MEMORY[name]
    found = value_of(expression, expression.split()[1].rstrip(","), before)
    assert found is expected if isinstance(expected, Undefined) else found == expected


def test_integers_of_which_some_bytes_are_written() -> None:
    """As when a struct with padding is copied in words: what was written comes out, the rest is no number."""
    memory = Memory(FloatDomain())
    p, q = memory.allocate(8), memory.allocate(8)
    memory.store(p, ty.I16, 0x1234)
    word = memory.load(p, ty.I64)
    assert isinstance(word, Undefined) and word is not UNDEF
    memory.store(q, ty.I64, word)
    assert memory.load(q, ty.I16) == 0x1234 and memory.load(q + 4, ty.I32) is UNDEF
    assert bytewise("and", word, 0xFFFF, 64, memory.domain) == 0x1234
    assert bits([7, UNDEF, POISON], memory.domain) is POISON
    text = "%m = alloca i64\nstore i16 4660, ptr %m\n%w = load i64, ptr %m"
    assert value_of("trunc i64 %w to i16", "i16", text) == 0x1234
    assert isinstance(value_of("trunc i64 %w to i32", "i32", text), Undefined)
    assert value_of("lshr i64 %s, 48", "i64", f"{text}\n%s = shl i64 %w, 48") == 0x1234
    assert value_of("freeze i64 %w", "i64", text) & 0xFFFF == 0x1234


def test_tangents_beside_undefined_bytes() -> None:
    memory = Memory(DualDomain())
    p = memory.allocate(16)
    memory.store(p, ty.F32, Dual(1.5, 2.0))
    memory.copy(p + 8, p, 8)
    assert memory.load(p + 8, ty.F32).t == 2.0 and memory.load(p + 12, ty.F32) is UNDEF
    assert isinstance(memory.load(p + 8, ty.I64), Undefined)


def test_no_operator_takes_it() -> None:
    operators = (bool, int, float, abs, hash, iter, lambda v: v == v, lambda v: v < 1, lambda v: v + 1,
                 lambda v: 1.0 * v, lambda v: v & 1, lambda v: v >> 3, lambda v: v.real,
                 lambda v: Dual(1.0, 1.0) * v)  # fmt: skip
    for value in (POISON, UNDEF, Undefined([1, UNDEF])):
        for operator in operators:
            with pytest.raises(Used):
                operator(value)
    assert repr(filled(ty.vector(2, ty.F64), POISON)) == "(poison, poison)" and repr(UNDEF) == "undef"


BRANCH = "entry:\n%c = fcmp olt double {}, %x\nbr i1 %c, label %yes, label %no\nyes:\nret void\nno:\nret void"
SWITCH = "entry:\n%s = add i32 {}, %i\nswitch i32 %s, label %no [ i32 1, label %yes ]\nyes:\nret void\nno:\nret void"
ERRORS = {
    "branch": (BRANCH.format("poison"), "br i1 %c"),
    "branch on undef": (BRANCH.format("undef"), "br i1 %c"),
    "switch": (SWITCH.format("poison"), "switch i32 %s"),
    "load": ("%q = getelementptr inbounds double, ptr %p, i64 5\n%v = load double, ptr %q\nret void", "%v = load"),
    "store": ("store double %x, ptr poison\nret void", "store double %x, ptr poison"),
    "masked load": ("%v = call <2 x double> @llvm.masked.load.v2f64.p0(ptr %p, i32 8, <2 x i1> <i1 true, i1 poison>, "
                    "<2 x double> poison)\nret void", "@llvm.masked.load"),
    "division": ("%v = udiv i32 %i, poison\nret void", "%v = udiv"),
    "remainder by lanes": ("%v = srem <2 x i32> <i32 5, i32 6>, <i32 1, i32 undef>\nret void", "the divisor"),
    "size of a copy": ("call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 undef, i1 false)\nret void", "memcpy"),
    "size of memory": ("%v = call ptr @malloc(i64 poison)\nret void", "@malloc"),
    "free": ("call void @free(ptr undef)\nret void", "@free"),
    "printf": ("%v = call i32 (ptr, ...) @printf(ptr %p, double poison)\nret void", "@printf"),
    "fact": ("call void @llvm.assume(i1 undef)\nret void", "@llvm.assume"),
    "function pointer": ("call void poison()\nret void", "call void poison()"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_where_it_is_an_error(name: str) -> None:
    """The message names the instruction and its function."""
    body, words = ERRORS[name]
    machine = machine_of(body)
    with pytest.raises(UndefinedUse) as caught:
        machine.call("f", [0.5, 7, machine.array(ty.F64, [1.0, 2.0])])
    assert words in str(caught.value) and "of `f`" in str(caught.value)


def test_results_and_arguments_are_defined() -> None:
    machine = machine_of("ret double poison", "double")
    with pytest.raises(UndefinedUse, match="the result of `f` is poison"):
        machine.call("f", [0.5, 7, 0])
    machine = machine_of("ret <2 x double> <double 1.0, double undef>", "<2 x double>")
    with pytest.raises(UndefinedUse, match="the result of `f` is undef"):
        machine.call("f", [0.5, 7, 0])
    text = ("define void @g(double noundef %v) {\nret void\n}\n"
            "define void @f(double %x) {\ncall void @g(double {})\nret void\n}")  # fmt: skip
    Machine(read(text.replace("{}", "%x")), FloatDomain()).call("f", [0.5])
    with pytest.raises(UndefinedUse, match="argument 0 of `g`"):
        Machine(read(text.replace("{}", "undef")), FloatDomain()).call("f", [0.5])


def test_results_in_memory_are_defined() -> None:
    machine = machine_of("%q = getelementptr double, ptr %p, i64 1\nstore double poison, ptr %q\nret void")
    p = machine.array(ty.F64, [1.0, 2.0])
    machine.call("f", [0.5, 7, p])
    assert machine.read(p, ty.F64, 1) == [1.0]
    with pytest.raises(UndefinedUse, match="element 1"):
        machine.read(p, ty.F64, 2)


@pytest.mark.parametrize("instruction", ["%v = sdiv i32 -2147483648, -1", "call void @llvm.assume(i1 false)"])
def test_faults_without_undefined_values(instruction: str) -> None:
    with pytest.raises(Fault) as caught:
        machine_of(f"{instruction}\nret void").call("f", [0.5, 7, 0])
    assert not isinstance(caught.value, UndefinedUse)


def test_the_way_not_taken() -> None:
    """A phi takes the value of the edge that was gone along, whatever the other one holds."""
    text = ("entry:\n%c = icmp eq i32 %i, {}\nbr i1 %c, label %a, label %b\na:\nbr label %b\n"
            "b:\n%r = phi double [ poison, %entry ], [ %x, %a ]\nret double %r")  # fmt: skip
    for number, good in ((7, True), (8, False)):
        machine = machine_of(text.format(number), "double")
        found = machine.invoke(machine.module.functions["f"], [0.5, 7, 0])
        assert found == 0.5 if good else found is POISON
