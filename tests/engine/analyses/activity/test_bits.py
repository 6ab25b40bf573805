"""Bits of floats in integer code: what is constant almost everywhere is let through, the rest is refused."""

from __future__ import annotations

import pytest

import irgrad
from irgrad import engine

HEAD = "#include <stdint.h>\n#include <string.h>\n"


def _kernel(body: str) -> irgrad.Kernel:
    text = f"{HEAD}double f(double x) {{ uint64_t b; memcpy(&b, &x, 8); double y; {body} }}"
    return irgrad.load(text).kernel("f")


def test_exponents_and_comparisons_are_constant_almost_everywhere() -> None:
    assert engine.grad(_kernel("y = (double)(int64_t)(b >> 52); return y * x;"))(1.5) == 1023.0
    assert engine.grad(_kernel("return b > 5 ? x * x : x;"))(1.5) == 3.0


@pytest.mark.parametrize(
    "body",
    [
        "b = b * 3 + 1; memcpy(&y, &b, 8); return y;",
        "return (double)(int64_t)b * 1e-15;",
        "b = 0x5fe6eb50c7b537a9 - (b >> 1); memcpy(&y, &b, 8); return y;",
    ],
)
def test_arithmetic_is_refused_in_both_modes(body: str) -> None:
    kernel = _kernel(body)
    with pytest.raises(irgrad.Unsupported, match="bits of an active float"):
        engine.grad(kernel)(1.5)
    with pytest.raises(irgrad.Unsupported, match="bits of an active float"):
        engine.jvp(kernel, (1.5,), (1.0,))
