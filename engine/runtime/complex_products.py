"""Bodies of `irgrad.complex_product.*` (`complex_products.ll`; see `normalise/complex_products.py`), and of
`irgrad.parts.*`: functions of the C library of `float complex` and `long double complex` numbers, by their parts."""

from __future__ import annotations

import re
from pathlib import Path

from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.types import Type

__all__ = ["ATTRIBUTES", "FUNCTIONS", "HELPERS", "PARTS", "link_complex_parts", "link_complex_products", "product_name"]

HELPERS = frozenset({"__mulsc3", "__muldc3"})
"""Names of the functions that compilers call where both parts of a product are NaN."""
ATTRIBUTES = PURE
_PREFIX = "irgrad.complex_product."
_WIDTHS = {"f64": (), "f32": (("double", "float"), (".f64", ".f32"))}


FUNCTIONS = frozenset(
    "cexp clog csqrt csin ccos ctan csinh ccosh ctanh casin cacos catan casinh cacosh catanh cpow".split()
)
PARTS = "irgrad.parts."
_DECLARED_PARTS = re.compile(rf"^declare [^@\n]+ @{re.escape(PARTS)}(c[a-z]+)([fl])\([^\n]*\n", re.M)


def product_name(scalar: Type) -> str:
    """Name of the product of complex numbers with parts of this type."""
    return _PREFIX + type_suffix(scalar)


def link_complex_products(text: str) -> str:
    """The module with bodies in place of the declarations."""
    for suffix, changes in _WIDTHS.items() if f"@{_PREFIX}" in text else ():
        text, declared = re.subn(rf"^declare [^@\n]+ @{re.escape(_PREFIX + suffix)}\([^\n]*\n", "", text, flags=re.M)
        if declared:
            body = Path(__file__).with_suffix(".ll").read_text()
            for old, new in changes:
                body = body.replace(old, new)
            text = joined(text, body)
    return text


def link_complex_parts(text: str) -> str:
    """The module with bodies for the functions by parts: they call the C library's, as x86-64 passes its arguments."""
    if f"@{PARTS}" not in text:
        return text
    bodies: list[str] = []

    def taken(found: re.Match[str]) -> str:
        bodies.append((_in_vectors if found[2] == "f" else _in_memory)(found[1], 2 if found[1] == "cpow" else 1))
        return ""

    return joined(_DECLARED_PARTS.sub(taken, text), "\n".join(bodies))


def _in_vectors(stem: str, count: int) -> str:
    name, numbers = f"{stem}f", [f"float %a{i}" for i in range(2 * count)]
    lines = [f"declare <2 x float> @{name}({', '.join(['<2 x float>'] * count)})",
             f"define internal {{ float, float }} @{PARTS}{name}({', '.join(numbers)}) {{"]  # fmt: skip
    for i in range(count):
        lines += [f"  %h{i} = insertelement <2 x float> poison, float %a{2 * i}, i32 0",
                  f"  %v{i} = insertelement <2 x float> %h{i}, float %a{2 * i + 1}, i32 1"]  # fmt: skip
    given = ", ".join(f"<2 x float> %v{i}" for i in range(count))
    lines += [f"  %y = call <2 x float> @{name}({given})", "  %re = extractelement <2 x float> %y, i32 0",
              "  %im = extractelement <2 x float> %y, i32 1",
              "  %r = insertvalue { float, float } poison, float %re, 0",
              "  %s = insertvalue { float, float } %r, float %im, 1", "  ret { float, float } %s", "}"]  # fmt: skip
    return "\n".join(lines)


def _in_memory(stem: str, count: int) -> str:
    name, number, pair = f"{stem}l", "x86_fp80", "{ x86_fp80, x86_fp80 }"
    passed = f"ptr byval({pair}) align 16"
    numbers = ", ".join(f"{number} %a{i}" for i in range(2 * count))
    lines = [f"declare {pair} @{name}({', '.join([passed] * count)})",
             f"define internal {pair} @{PARTS}{name}({numbers}) {{"]  # fmt: skip
    for i in range(count):
        lines += [f"  %p{i} = alloca {pair}, align 16", f"  %q{i} = getelementptr i8, ptr %p{i}, i64 16",
                  f"  store {number} %a{2 * i}, ptr %p{i}, align 16",
                  f"  store {number} %a{2 * i + 1}, ptr %q{i}, align 16"]  # fmt: skip
    lines += [f"  %y = call {pair} @{name}({', '.join(f'{passed} %p{i}' for i in range(count))})",
              f"  ret {pair} %y", "}"]  # fmt: skip
    return "\n".join(lines)
