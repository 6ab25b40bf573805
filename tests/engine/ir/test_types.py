"""Sizes, alignments and offsets agree with LLVM's for x86-64."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import llvmlite.binding as llvm
import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.text.cursor import Cursor
from irgrad.engine.ir.text.reader import read

TYPES = [
    "i1",
    "i8",
    "i17",
    "i64",
    "i128",
    "half",
    "float",
    "double",
    "x86_fp80",
    "fp128",
    "ptr",
    "<4 x float>",
    "<3 x double>",
    "[3 x i16]",
    "{ i8, double }",
    "<{ i8, double }>",
    "{ i8, [3 x i16], ptr, i1 }",
    "{ x86_fp80, i8 }",
    "{}",
    "[0 x i32]",
    "{ i8, { i16, i64 }, i8 }",
    "<8 x i1>",
    "{ i8, i128 }",
]


@pytest.mark.parametrize("text", TYPES)
def test_layout_agrees_with_llvm(text: str) -> None:
    kind = Cursor(Module(), text).type_()
    module = llvm.parse_assembly(
        f'target triple = "x86_64-unknown-linux-gnu"\n@x = global {text} zeroinitializer', llvm.create_context()
    )
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine()
    shown = module.get_global_variable("x").global_value_type
    assert ty.size_of(kind) == machine.target_data.get_abi_size(shown)
    assert ty.align_of(kind) == machine.target_data.get_abi_alignment(shown)
    if isinstance(kind, ty.StructType) and kind.fields:
        wanted = [machine.target_data.get_element_offset(shown, i) for i in range(len(kind.fields))]
        assert list(ty.field_offsets(kind))[:-1] == wanted


def test_equal_types_are_one_object() -> None:
    assert ty.struct((ty.I8, ty.F64)) is ty.struct((ty.I8, ty.F64))
    assert ty.vector(4, ty.F32) is ty.vector(4, ty.F32)
    assert ty.function(ty.VOID, (ty.PTR,), True) is not ty.function(ty.VOID, (ty.PTR,))
    assert ty.named_struct("%S") is not ty.named_struct("%S")


def test_what_has_no_size_says_so() -> None:
    for kind in (ty.VOID, ty.LABEL, ty.named_struct("%opaque")):
        with pytest.raises(TypeError):
            ty.size_of(kind)


def test_types_go_with_their_module() -> None:
    def live() -> int:
        return len(ty._ARRAYS) + len(ty._FUNCTIONS) + len(ty._STRUCTS)

    text = "%S = type { i8, double }\ndefine void @f([3 x %S] %x, { %S, i8 } %y) {\n  ret void\n}\n"
    read(text)
    gc.collect()
    before = live()
    for _ in range(20):
        read(text)
    gc.collect()
    assert live() == before


def test_threads_get_one_object() -> None:
    start = Barrier(8)

    def make(_: int) -> list[ty.Type]:
        start.wait(30)
        return [ty.array(n, ty.struct((ty.I8, ty.int_(n)))) for n in range(1000, 1400)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(make, range(8)))
    assert all(a is b for other in results[1:] for a, b in zip(results[0], other, strict=True))
