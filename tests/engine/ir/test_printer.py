"""print(read(text)) means what text means: LLVM normalises both to the same module, and both compute the same."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import pytest
from analysed import normal_form

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, const_float
from irgrad.engine.ir.printer import function_to_text, instruction_to_text, to_text
from irgrad.engine.ir.text.reader import read

from .conftest import UNITS


@pytest.mark.parametrize("unit", UNITS)
def test_round_trip_is_the_same_module(corpus: dict[str, str], unit: str) -> None:
    assert normal_form(to_text(read(corpus[unit]))) == normal_form(corpus[unit])


def test_the_corpus_is_large(corpus: dict[str, str]) -> None:
    count = sum(bool(f.blocks) for text in corpus.values() for f in read(text).functions.values())
    assert count >= 300


def test_printing_is_a_fixed_point(corpus: dict[str, str]) -> None:
    once = to_text(read(corpus["data-O1"]))
    assert to_text(read(once)) == once


DOUBLES = (ctypes.c_double * 8)(0.5, 2.0, -1.0, 3.25, 1e-3, 7.0, 0.1, 4.0)
P, D, INT, L = ctypes.c_void_p, ctypes.c_double, ctypes.c_int, ctypes.c_long
CALLS: list[tuple[str, str, type, list[type], list[object]]] = [
    ("loops-O2", "sum", D, [P, INT], [DOUBLES, 8]),
    ("loops-O2", "dot", D, [P, P, L], [DOUBLES, DOUBLES, 8]),
    ("loops-O2", "newton", D, [D], [2.0]),
    ("loops-O0", "horner", D, [P, INT, D], [DOUBLES, 8, 1.1]),
    ("loops-O0", "kind", D, [INT, D], [100, 0.3]),
    ("loops-O2", "kind", D, [INT, D], [7, 0.3]),
    ("loops-Os", "classify", INT, [ctypes.c_char_p], [b"aezyxq..."]),
    ("loops-O2", "branches", D, [D, D], [3.0, 1.0]),
    ("loops-O0", "heap", D, [INT], [9]),
    ("loops-Os", "fib", INT, [INT], [12]),
    ("loops-O2", "parity", INT, [INT], [41]),
    ("loops-O2", "bits", ctypes.c_uint64, [ctypes.c_uint64], [0x123456789]),
    ("loops-O2", "dispatch", D, [INT, D], [1, 1.5]),
    ("loops-O0", "vla", D, [INT], [10]),
    ("loops-O0", "early", D, [P, INT], [DOUBLES, 8]),
    ("loops-O2", "collatz", L, [L], [27]),
    ("data-O1", "unpun", D, [ctypes.c_uint64], [0x3FF8000000000000]),
    ("data-O0", "pun", ctypes.c_uint64, [D], [1.25]),
    ("data-O1", "sat", ctypes.c_int64, [D], [77.7]),
    ("data-O0", "logic", ctypes.c_bool, [ctypes.c_bool, ctypes.c_bool], [True, False]),
    ("data-O0", "goto_computed", INT, [INT], [1]),
    ("wide-O0", "fsum", ctypes.c_float, [P, INT], [DOUBLES, 4]),
    ("wide-O0", "slp", D, [P], [DOUBLES]),
    ("wide-O0", "stencil", D, [P, INT], [DOUBLES, 8]),
]


@pytest.fixture(scope="session")
def compiled(corpus: dict[str, str]) -> Callable[[str], tuple[object, object]]:
    """Unit -> the JIT engines of the text and of the reprinted text."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engines: dict[str, tuple[object, object]] = {}

    def build(text: str) -> object:
        # Thread-local data and symbols that only another unit has are of no use to the functions called here.
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text, llvm.create_context()), machine)
        engine.finalize_object()
        return engine

    def get(unit: str) -> tuple[object, object]:
        if unit not in engines:
            wanted = [name for u, name, *_ in CALLS if u == unit]
            text = only(corpus[unit], wanted)
            engines[unit] = build(text), build(to_text(read(text)))
        return engines[unit]

    return get


def only(text: str, names: list[str]) -> str:
    """The module reduced by LLVM to some functions and what they need."""
    module = llvm.parse_assembly(text, llvm.create_context())
    for function in module.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    builder = llvm.create_pass_builder(
        llvm.Target.from_default_triple().create_target_machine(), llvm.create_pipeline_tuning_options()
    )
    manager = llvm.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.run(module, builder)
    return str(module)


@pytest.mark.parametrize(("unit", "name", "result", "types", "args"), CALLS, ids=[f"{c[0]}-{c[1]}" for c in CALLS])
def test_reprinted_code_computes_the_same(
    compiled: Callable[[str], tuple[object, object]],
    unit: str,
    name: str,
    result: type,
    types: list[type],
    args: list[object],
) -> None:
    got = []
    for engine in compiled(unit):
        address = engine.get_function_address(name)  # type: ignore[attr-defined]
        assert address
        got.append(ctypes.CFUNCTYPE(result, *types)(address)(*args))
    assert repr(got[0]) == repr(got[1])


def test_numbers_that_do_not_rise_are_renamed_everywhere() -> None:
    text = """
define double @f(double %0) {
  %2 = fadd double %0, 1.0
  %3 = fmul double %2, %2
    #dbg_value(double %3, !0, !DIExpression(), !1)
  ret double %3
}
"""
    function = read(text).functions["f"]
    first, second = function.entry.instructions[:2]
    first.name, second.name = "9", "4"
    printed = function_to_text(function)
    assert "%9 = fadd" in printed
    assert "%v0 = fmul double %9, %9" in printed
    assert "ret double %v0" in printed


def test_values_without_names_and_double_names_get_free_ones() -> None:
    function = Function("f", ty.function(ty.F64, (ty.F64,)), ["x"])
    block = Block("entry")
    block.function = function
    function.blocks.append(block)
    build = Builder(block)
    a = build.binary("fadd", function.args[0], const_float(ty.F64, 1.0))
    b = build.binary("fmul", a, a)
    b.name = "x"
    build.ret(b)
    text = function_to_text(function)
    assert "%v0 = fadd double %x, 1.000000e+00" in text
    assert "%x.1 = fmul double %v0, %v0" in text
    llvm.parse_assembly(text, llvm.create_context()).verify()
    assert instruction_to_text(block.instructions[1]) == "%x.1 = fmul double %v0, %v0"


def test_long_names_are_cut() -> None:
    """LLVM reads no local name of more than 1024 bytes, and the blocks of templates are named after whole types."""
    function = Function("f", ty.function(ty.F64, (ty.F64,)), ["x"])
    block = Block("r." + "é" * 600)
    block.function = function
    function.blocks.append(block)
    build = Builder(block)
    sums = [build.binary("fadd", function.args[0], const_float(ty.F64, float(i))) for i in range(2)]
    for i, value in enumerate(sums):
        value.name = "s" * 1100 + str(i)
    build.ret(build.binary("fmul", *sums))
    text = function_to_text(function)
    llvm.parse_assembly(text, llvm.create_context()).verify()
    assert "s" * 250 in text


def test_quoted_names_survive() -> None:
    text = 'define i32 @"a \\22b\\22"(i32 %"x y") {\n"start here":\n  ret i32 %"x y"\n}\n'
    module = read(text)
    assert list(module.functions) == ['a "b"']
    assert normal_form(to_text(module)) == normal_form(text)


def test_an_assumption_of_a_value_that_is_gone_is_left_out() -> None:
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read("""declare void @llvm.assume(i1)
define void @f(ptr %p) {
  %1 = load ptr, ptr %p
  call void @llvm.assume(i1 true) [ "align"(ptr %1, i64 8) ]
  call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 8) ]
  ret void
}
""")
    assert to_text(module).count('"align"') == 2
    block = module.functions["f"].entry
    block.instructions = block.instructions[1:]
    assert to_text(module).count('"align"') == 1
