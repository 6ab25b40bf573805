"""Plans are made once, and live with their kernel."""

from __future__ import annotations

import gc
import weakref

import numpy as np
from samples import library, sample

from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.interop.programs.plans import Plan, plan_of

VALUES = Values(lambda x: isinstance(x, np.ndarray), lambda x, p: np.asarray(x), lambda x, p: int(x), "map")


def _plan(kernel, values):
    call = bound_call(kernel, values, VALUES)
    return plan_of(Plan, call.spec, call.sizes, call.constants)


def test_a_plan_is_made_once_with_its_derivatives() -> None:
    plan = _plan(sample("scale"), [np.ones(3), np.array(0.5)])
    assert plan is _plan(sample("scale"), [np.ones(3), np.array(0.7)])
    assert plan is not _plan(sample("scale"), [np.ones(4), np.array(0.5)])
    assert plan.results == [((3,), "float64"), ((3,), "float64")] and plan.flows == [True, True]
    (first, term), *_ = plan.gradients((0,), (0, 1))
    assert first is plan.gradients((0,), (0, 1))[0][0] and first.spec == term.spec
    assert plan.tangents((0,))[0][0].spec.directions == ((0,),)
    assert plan.mapped(5).results[0] == ((5, 3), "float64") and plan.mapped(5) is plan.mapped(5)
    assert plan.mapped(2).mapped(5).batch == (5, 2)


def test_names_tell_programs_apart() -> None:
    plan = _plan(sample("scale"), [np.ones(3), np.array(0.5)])
    others = [plan.mapped(2), plan.gradients((0,), (0,))[0][0], _plan(sample("scale"), [np.ones(4), np.array(0.5)])]
    assert len({row.name for row in (plan, *others)}) == 4 and plan.name.startswith("scale.")


def test_plans_go_with_their_kernel() -> None:
    kernel = library().kernel("cubes", "f64(f64[n] x, f64 a, i64 n)")
    _plan(kernel, [np.ones(3), np.array(0.5)]).gradients((0,), (0,))
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
