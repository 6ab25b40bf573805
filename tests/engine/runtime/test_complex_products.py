"""The body of a complex product: what Annex G of the C standard asks for."""

from __future__ import annotations

import ctypes
import itertools
import math

import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.runtime.complex_products import link_complex_products

DECLARED = "declare {{ {T}, {T} }} @irgrad.complex_product.{s}({T}, {T}, {T}, {T}) nounwind\n"
TYPES = {"f32": "float", "f64": "double"}


@pytest.mark.parametrize("suffix", TYPES)
def test_products_of_odd_numbers(suffix: str) -> None:
    """Infinite times not zero is infinite whatever else is NaN; finite numbers give the formula."""
    T = TYPES[suffix]
    loads = "".join(f"  %p{n} = getelementptr {T}, ptr %in, i64 {n}\n  %x{n} = load {T}, ptr %p{n}\n" for n in range(4))
    text = link_complex_products(f"""{DECLARED.format(T=T, s=suffix)}
define void @f(ptr %in, ptr %out) {{
{loads}
  %y = call {{ {T}, {T} }} @irgrad.complex_product.{suffix}({T} %x0, {T} %x1, {T} %x2, {T} %x3)
  store {{ {T}, {T} }} %y, ptr %out
  ret void
}}
""")
    call = compile_module(text, ["f"], cache=False).function("f", None, ctypes.c_void_p, ctypes.c_void_p)
    element = ctypes.c_float if suffix == "f32" else ctypes.c_double
    given, found = (element * 4)(), (element * 2)()
    odd = (0.0, -2.0, math.inf, -math.inf, math.nan)
    for numbers in itertools.product(odd, repeat=4):
        given[:] = numbers
        call(ctypes.addressof(given), ctypes.addressof(found))
        a, b = numbers[:2], numbers[2:]
        infinite = [any(map(math.isinf, z)) for z in (a, b)]
        zero = [not any(z) and not any(map(math.isnan, z)) for z in (a, b)]
        missing = [any(map(math.isnan, z)) and not i for z, i in zip((a, b), infinite, strict=True)]
        if any(infinite) and not any(zero) and not any(missing):
            assert any(map(math.isinf, found)), numbers
        if all(map(math.isfinite, numbers)):
            assert tuple(found) == (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])


def test_other_text_is_left_alone() -> None:
    assert link_complex_products("declare double @f(double)\n") == "declare double @f(double)\n"


def test_both_widths_in_one_module() -> None:
    text = link_complex_products("".join(DECLARED.format(T=T, s=s) for s, T in TYPES.items()))
    for scalar in TYPES.values():
        assert text.count(f"define internal {{ {scalar}") == 2
    assert "declare { " not in text
