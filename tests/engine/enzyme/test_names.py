"""Words of the notation: names inside of names, annotations as globals and as strings."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.names import annotation, family, spelled_out
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstExpr, ConstInt, GlobalVariable


@pytest.mark.parametrize(("name", "want"), [
    ("__enzyme_autodiff", "__enzyme_autodiff"),
    ("__enzyme_autodiff_two", "__enzyme_autodiff"),
    ("_Z17__enzyme_autodiffIdJPvdEET_DpT0_", "__enzyme_autodiff"),
    ("_Z16__enzyme_fwddiffPvz", "__enzyme_fwddiff"),
    ("__enzyme_augmentfwd_x", "__enzyme_augmentfwd"),
    ("__enzyme_augmentsize", "__enzyme_augmentsize"),
    ("__enzyme_batch", "__enzyme_batch"),
    ("__enzyme_unheard_of", "__enzyme_unheard_of"),
    ("autodiff", None),
    (None, None),
])  # fmt: skip
def test_names_are_recognised_inside_of_names(name: str | None, want: str | None) -> None:
    assert family(name) == want


@pytest.mark.parametrize(("name", "want"), [
    ("enzyme_dup", "dup"), ("enzyme_dupnoneedv", "dupnoneedv"), ("_ZL10enzyme_dup", "dup"),
    ("_ZN2ns12enzyme_constE", "const"), ("my_enzyme_dup", ""), ("dup", ""),
])  # fmt: skip
def test_an_annotation_is_a_global_of_that_name(name: str, want: str) -> None:
    var = GlobalVariable(name, ty.I32, None, False, "external", "")
    assert annotation(var) == want
    assert annotation(ConstExpr("ptrtoint", ty.I64, [var])) == want
    assert annotation(ConstExpr("ptrtoaddr", ty.I64, [var])) == want
    assert annotation(ConstInt(ty.I32, 0)) == ""


def test_strings_become_globals() -> None:
    text = spelled_out('  call void (...) @f(metadata !"enzyme_const", i32 1, metadata !"enzyme_dup")\n'
                       '@enzyme_dup = external global i32\n')  # fmt: skip
    assert "@f(ptr @enzyme_const, i32 1, ptr @enzyme_dup)" in text
    assert text.count("@enzyme_dup = ") == 1
    assert text.count("@enzyme_const = external global i32") == 1
    assert spelled_out("nothing here") == "nothing here"
