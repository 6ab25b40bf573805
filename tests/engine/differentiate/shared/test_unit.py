"""What all derivatives of one root share: conventions, shadows of globals, descriptors of functions."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import facts_of_c
from handwritten.made import HEADER, asked, module_of

import irgrad
from irgrad import engine
from irgrad.engine.differentiate.shared.unit import Unit, resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstAggregate, GlobalVariable
from irgrad.rules.errors import Unsupported

TABLES = """
NOINLINE static double scaled(double x, double k) { return x * k; }
NOINLINE static double shifted(double x, double k) { return x + k * k; }
NOINLINE static double alone(double x, double k) { return x * k; }
static double (*const table[2])(double, double) = {scaled, shifted};
double state[3] = {1, 2, 3};
extern double outside[3];
double *const links[2] = {&state[1], 0};
void f(double *x, int *k, double *o) {
    state[*k] = x[0];
    *o = table[*k](x[0], 2.0) * state[1] * *links[0] + alone(x[0], (double)*k) + outside[0];
}"""


def _unit(strict: bool = False) -> Unit:
    facts = facts_of_c(HEADER + TABLES, "f", {0, 2})
    return Unit(facts.module, facts.root, facts, asked("f", "reverse", ["dup", "const", "dup"], strict_fp=strict))


def test_functions_that_one_call_may_reach_share_a_convention() -> None:
    unit = _unit()
    functions = unit.module.functions
    scaled, shifted = unit.abis[functions["scaled"]], unit.abis[functions["shifted"]]
    assert (scaled.adjoint, scaled.ret_adjoint) == (shifted.adjoint, shifted.ret_adjoint)
    assert scaled.adjoint[0]


def test_names_of_new_functions_are_fresh() -> None:
    unit = _unit()
    ftype = ty.function(ty.VOID, ())
    first, second = unit.new_function("aug.g", ftype), unit.new_function("aug.g", ftype)
    assert first.name != second.name
    assert unit.module.functions[first.name or ""] is first
    assert first.head == "internal"


def test_shadows_of_tables_are_constant_and_those_of_numbers_are_not() -> None:
    unit = _unit()
    assert unit.shadow_global(unit.module.globals["table"]).constant
    text = HEADER + """
static const struct { double *to; double weight; } one = {0, 2.0};
void f(double *x, int *k, double *o) { *o = *(*k ? x : &one.weight) + (one.to ? 1 : 0); }"""
    facts = facts_of_c(text, "f", {0, 2})
    other = Unit(facts.module, facts.root, facts, asked("f", "reverse", ["dup", "const", "dup"]))
    (one,) = (var for name, var in facts.module.globals.items() if "one" in name)
    assert not other.shadow_global(one).constant


def test_a_shadow_global_is_made_once_and_starts_from_zero() -> None:
    unit = _unit()
    state = unit.module.globals["state"]
    shadow = unit.shadow_global(state)
    assert unit.shadow_global(state) is shadow
    assert shadow.value_type is state.value_type
    assert str(shadow.init.type if shadow.init else "") == "[3 x double]"


def test_the_shadow_of_a_table_of_pointers_points_to_shadows() -> None:
    unit = _unit()
    links = unit.module.globals["links"]
    init = unit.shadow_global(links).init
    assert isinstance(init, ConstAggregate)
    first = init.elems[0]
    base = first if isinstance(first, GlobalVariable) else getattr(first, "operands", [None])[0]
    assert base is unit.shadow_global(unit.module.globals["state"])


def test_external_memory_has_no_shadow() -> None:
    unit = _unit()
    with pytest.raises(Unsupported, match=r"external global `outside`(.|\n)*link="):
        unit.shadow_global(unit.module.globals["outside"])


def test_the_address_of_a_function_stands_for_its_descriptor() -> None:
    unit = _unit()
    scaled = unit.module.functions["scaled"]
    found = unit.shadow_constant(scaled)
    assert found is unit.descriptor(scaled)
    assert unit.addressed == [scaled]
    assert isinstance(found, GlobalVariable) and found.constant
    assert found.value_type is ty.struct((ty.PTR, ty.PTR, ty.PTR))


def test_sums_may_be_reordered_unless_strict() -> None:
    assert "reassoc" in _unit().flags
    assert _unit(strict=True).flags == ()


def test_callees_are_seen_through_aliases() -> None:
    module = module_of(
        "@other = alias double (double), ptr @g\n"
        "define double @g(double %x) {\n  ret double %x\n}\n"
        "define void @f(ptr %p) {\n  %x = load double, ptr %p\n  %y = call double @other(double %x)\n"
        "  store double %y, ptr %p\n  ret void\n}\n",
        "f",
        prepared=False,
    )
    assert resolve(module.aliases["other"]) is module.functions["g"]


CHOSEN = """
#include <math.h>
struct cell { double v; };
__attribute__((noinline)) static double sine(void *p, struct cell *x) { return sin(x->v); }
__attribute__((noinline)) static double cosine(void *p, struct cell *x) { return cos(x->v); }
static double (*const table[2])(void *, struct cell *) = {sine, cosine};
double f(double x, double y) { int k = x > 1; struct cell s = {x * y}; return table[k](&k, &s) * x + y; }
"""


def test_wide_derivatives_of_what_a_table_returns() -> None:
    """A result and its tape in one struct, of which each lane has a tangent."""
    kernel = irgrad.load(CHOSEN).kernel("f")
    (xx, xy), (yx, yy) = engine.hessian(kernel, argnums=(0, 1))(0.3, 0.7)
    s, c = np.sin(0.21), np.cos(0.21)
    np.testing.assert_allclose([xx, xy, yx, yy],
                               [2 * 0.7 * c - 0.3 * 0.49 * s, *[2 * 0.3 * c - 0.3 * 0.21 * s] * 2, -(0.3**3) * s])
