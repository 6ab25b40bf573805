"""Shadows that may be the value's own memory. What they compute: `notation_programs/runtime.c`."""

from __future__ import annotations

import pytest

from irgrad.engine.differentiate.layout.separate_shadows import join_constants
from irgrad.engine.differentiate.layout.shadow_types import Apart
from irgrad.engine.differentiate.shadow.runtime_activity import same
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, GlobalVariable
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

HEAD = """extern int enzyme_runtime_activity, enzyme_const;
void __enzyme_autodiff(void *, ...);
double f(const double *x, const double *y, int which) { const double *p = which ? x : y; return p[0] * p[1]; }
"""


class _Unit:
    """What is asked of a unit here."""

    width: int = Apart(2)


def test_each_lane_is_asked() -> None:
    b = Builder(Block())
    shadows = [GlobalVariable(f"s{j}", ty.F64, None, False, "", "") for j in range(2)]
    found = same(_Unit(), b, shadows[0], join_constants(ty.PTR, shadows))  # type: ignore[arg-type]
    assert [i.opcode for i in b.block.instructions] == ["icmp", "icmp"]
    assert len(found) == 2


def test_a_constant_argument_is_its_own_shadow() -> None:
    call = "void r(double *x, double *d, double *y) {{ __enzyme_autodiff((void *)f, {}x, d, enzyme_const, y, 1); }}"
    text = lower(load(HEAD + call.format("enzyme_runtime_activity, ")).text)
    derivative = text.split("@irgrad.root.1.vjp.1101(", 1)[1].split("\n}", 1)[0]
    assert "icmp eq ptr" in derivative
    with pytest.raises(Unsupported, match="active values go through parameter 2 of `f`"):
        lower(load(HEAD + call.format("")).text)


def test_registered_derivatives_are_refused() -> None:
    text = load(HEAD + """
double g(const double *x) { return *x; }
void g_augmented(const double *x, const double *d) {}
void g_reverse(const double *x, double *d, double r) { *d += r; }
void *__enzyme_register_gradient_g[] = {(void *)g, (void *)g_augmented, (void *)g_reverse};
double h(const double *x) { return g(x) * 2; }
void r(double *x, double *d) { __enzyme_autodiff((void *)h, enzyme_runtime_activity, x, d); }
""").text  # fmt: skip
    with pytest.raises(Unsupported, match="gets shadows under enzyme_runtime_activity"):
        lower(text)
