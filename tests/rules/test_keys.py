"""What a rule may be keyed by."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.rules import extern, layer, opcode
from irgrad.rules.definitions.definition import Key
from irgrad.rules.errors import RuleError
from irgrad.rules.keys import canonical, key_of
from irgrad.rules.layers import current


def test_spellings_are_one_key() -> None:
    names = ("sin", "sinf", "llvm.sin.f64", "llvm.sin.v4f32", "llvm.sin", "__nv_sin", "__sin_finite")
    assert {canonical(name) for name in names} == {"sin"}
    assert canonical("my_solver") == "my_solver"


def test_opcodes_have_keys_of_their_own() -> None:
    assert key_of(opcode("fmul")).key == Key("opcode", "fmul")


def test_extern_states_the_prototype() -> None:
    with layer():
        declared = extern("solve", "void(f64[n] b, out f64[n] x, i64 n)")
        assert key_of(declared).key == Key("function", "solve")
        assert str(current().prototype("solve")) == "void(f64[n] b, out f64[n] x, i64 n)"
    assert current().prototype("solve") is None


def test_ctypes_functions_bring_their_types() -> None:
    function = ctypes.CDLL(None).qsort
    function.argtypes = [ctypes.POINTER(ctypes.c_double), ctypes.c_long, ctypes.c_float]
    function.restype = None
    declared = key_of(function)
    assert declared.key.name == "qsort"
    assert str(declared.prototype) == "void(f64*, i64, f32)"


def test_other_objects_are_refused() -> None:
    with pytest.raises(RuleError, match="a float is no key of a rule"):
        key_of(3.0)
